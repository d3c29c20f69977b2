// Activations and their derivatives, one pass over memory each.
#include "activations.h"

namespace {

constexpr int64_t CHUNK = 4096;

template <class A, class T>
void forward(const T* x, T* y, int64_t count) {
#pragma omp parallel for schedule(static) if (count > 4 * CHUNK)
    for (int64_t start = 0; start < count; start += CHUNK) {
        const int64_t stop = start + CHUNK < count ? start + CHUNK : count;
#pragma omp simd
        for (int64_t i = start; i < stop; i++) y[i] = narrowed<T>(A::value(widened(x[i])));
    }
}

template <class A, class T>
void backward(const T* x, const T* grad_y, T* grad_x, int64_t count) {
#pragma omp parallel for schedule(static) if (count > 4 * CHUNK)
    for (int64_t start = 0; start < count; start += CHUNK) {
        const int64_t stop = start + CHUNK < count ? start + CHUNK : count;
#pragma omp simd
        for (int64_t i = start; i < stop; i++)
            grad_x[i] = narrowed<T>(widened(grad_y[i]) * A::slope(widened(x[i])));
    }
}

// Rows of x hold what is activated and, behind it, what it is multiplied with.
template <class A, class T>
void gated_forward(const T* x, T* y, int64_t rows, int64_t width) {
#pragma omp parallel for schedule(static) if (rows * width > 4 * CHUNK)
    for (int64_t row = 0; row < rows; row++) {
        const T *activated = x + row * 2 * width, *gate = activated + width;
        T* out = y + row * width;
#pragma omp simd
        for (int64_t i = 0; i < width; i++)
            out[i] = narrowed<T>(A::value(widened(activated[i])) * widened(gate[i]));
    }
}

template <class A, class T>
void gated_backward(const T* x, const T* grad_y, T* grad_x, int64_t rows, int64_t width) {
#pragma omp parallel for schedule(static) if (rows * width > 4 * CHUNK)
    for (int64_t row = 0; row < rows; row++) {
        const T *activated = x + row * 2 * width, *gate = activated + width, *grad = grad_y + row * width;
        T *grad_activated = grad_x + row * 2 * width, *grad_gate = grad_activated + width;
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            const float wanted = widened(grad[i]), x_value = widened(activated[i]);
            grad_activated[i] = narrowed<T>(wanted * widened(gate[i]) * A::slope(x_value));
            grad_gate[i] = narrowed<T>(wanted * A::value(x_value));
        }
    }
}

template <class A>
void run(int narrow, int gated, const void* x, const void* grad_y, void* out, int64_t rows, int64_t width) {
    // Without a gradient it is the forward pass.
    if (narrow) {
        const bf16 *in = (const bf16*)x, *grad = (const bf16*)grad_y;
        if (gated)
            grad ? gated_backward<A>(in, grad, (bf16*)out, rows, width) : gated_forward<A>(in, (bf16*)out, rows, width);
        else
            grad ? backward<A>(in, grad, (bf16*)out, rows * width) : forward<A>(in, (bf16*)out, rows * width);
    } else {
        const float *in = (const float*)x, *grad = (const float*)grad_y;
        if (gated)
            grad ? gated_backward<A>(in, grad, (float*)out, rows, width)
                 : gated_forward<A>(in, (float*)out, rows, width);
        else
            grad ? backward<A>(in, grad, (float*)out, rows * width) : forward<A>(in, (float*)out, rows * width);
    }
}

}  // namespace

// kind: 0 GELU, 1 GELU by tanh, 2 ReLU. `width` counts the activated columns. `grad_y` is null in the forward pass.
extern "C" void activate(int kind, int narrow, int gated, const void* x, const void* grad_y, void* out, int64_t rows,
                         int64_t width) {
    if (kind == 0)
        run<Gelu>(narrow, gated, x, grad_y, out, rows, width);
    else if (kind == 1)
        run<GeluTanh>(narrow, gated, x, grad_y, out, rows, width);
    else
        run<Relu>(narrow, gated, x, grad_y, out, rows, width);
}
