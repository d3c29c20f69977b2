// A sum of the residual stream with what a sublayer adds, and the norm of it, in one pass over memory.
#include <cmath>
#include <vector>

#include "numbers.h"
#include "threads.h"

namespace {

template <class T>
void add_row(float* sum, const float* hidden, const T* added, int64_t width, const Dropout& dropout, int64_t row) {
    if (!added) {
        std::memcpy(sum, hidden, width * sizeof(float));
    } else if (dropout.is_on()) {
        const uint32_t key = row_key(dropout.seed, row);
        const uint32_t below = dropout.dropped_below;
        const float scale_kept = dropout.scale;
#pragma omp simd
        for (int64_t i = 0; i < width; i++)
            sum[i] = hidden[i] + widened(added[i]) * kept(key, i, below, scale_kept);
    } else {
#pragma omp simd
        for (int64_t i = 0; i < width; i++) sum[i] = hidden[i] + widened(added[i]);
    }
}

template <class T>
void forward(const float* hidden, const T* added, const float* weight, const float* bias, float eps,
             const Dropout& dropout, float* sums, float* means, float* scales, float* exact, T* normed, int64_t rows,
             int64_t width) {
#pragma omp parallel for schedule(static) if (rows * width > 16384)
    for (int64_t row = 0; row < rows; row++) {
        float* sum = sums + row * width;
        add_row(sum, hidden + row * width, added ? added + row * width : nullptr, width, dropout, row);
        float total = 0.0f, squares = 0.0f;
#pragma omp simd reduction(+ : total)
        for (int64_t i = 0; i < width; i++) total += sum[i];
        const float mean = total / width;
#pragma omp simd reduction(+ : squares)
        for (int64_t i = 0; i < width; i++) squares += (sum[i] - mean) * (sum[i] - mean);
        const float scale = 1.0f / std::sqrt(squares / width + eps);
        means[row] = mean;
        scales[row] = scale;
        T* out = normed + row * width;
        float* wide = exact ? exact + row * width : nullptr;
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            float value = (sum[i] - mean) * scale * weight[i];
            if (bias) value += bias[i];
            if (wide) wide[i] = value;
            out[i] = narrowed<T>(value);
        }
    }
}

template <class T>
void backward(const float* grad_exact, const T* grad_normed, const float* grad_sum, const float* sums,
              const float* means, const float* scales, const float* weight, const Dropout& dropout, float* grad_hidden,
              T* grad_added, float* grad_weight, float* grad_bias, int64_t rows, int64_t width) {
    const int threads = rows * width > 16384 ? most_threads() : 1;
    std::vector<float> parts(size_t(threads) * 3 * width, 0.0f);
#pragma omp parallel num_threads(threads)
    {
        float* part_weight = parts.data() + size_t(this_thread()) * 3 * width;
        float *part_bias = part_weight + width, *grad = part_bias + width;
#pragma omp for schedule(static)
        for (int64_t row = 0; row < rows; row++) {
            const float *sum = sums + row * width, mean = means[row], scale = scales[row];
            const T* narrow = grad_normed ? grad_normed + row * width : nullptr;
            const float* wide = grad_exact ? grad_exact + row * width : nullptr;
            float mean_grad = 0.0f, mean_product = 0.0f;
            if (wide && narrow) {
#pragma omp simd
                for (int64_t i = 0; i < width; i++) grad[i] = wide[i] + widened(narrow[i]);
            } else if (wide) {
                std::memcpy(grad, wide, width * sizeof(float));
            } else {
#pragma omp simd
                for (int64_t i = 0; i < width; i++) grad[i] = widened(narrow[i]);
            }
#pragma omp simd reduction(+ : mean_grad, mean_product)
            for (int64_t i = 0; i < width; i++) {
                const float normal = (sum[i] - mean) * scale, weighted = grad[i] * weight[i];
                part_weight[i] += grad[i] * normal;
                part_bias[i] += grad[i];
                mean_grad += weighted;
                mean_product += weighted * normal;
            }
            mean_grad /= width;
            mean_product /= width;
            float* out = grad_hidden + row * width;
#pragma omp simd
            for (int64_t i = 0; i < width; i++) {
                const float normal = (sum[i] - mean) * scale;
                out[i] = scale * (grad[i] * weight[i] - mean_grad - normal * mean_product);
            }
            if (grad_sum) {
                const float* more = grad_sum + row * width;
#pragma omp simd
                for (int64_t i = 0; i < width; i++) out[i] += more[i];
            }
            if (!grad_added) continue;
            T* added = grad_added + row * width;
            if (dropout.is_on()) {
                const uint32_t key = row_key(dropout.seed, row);
                const uint32_t below = dropout.dropped_below;
                const float scale_kept = dropout.scale;
#pragma omp simd
                for (int64_t i = 0; i < width; i++)
                    added[i] = narrowed<T>(out[i] * kept(key, i, below, scale_kept));
            } else {
#pragma omp simd
                for (int64_t i = 0; i < width; i++) added[i] = narrowed<T>(out[i]);
            }
        }
    }
    // In the order of the threads, so that the same number of threads gives the same sums.
    std::memset(grad_weight, 0, width * sizeof(float));
    std::memset(grad_bias, 0, width * sizeof(float));
    for (int thread = 0; thread < threads; thread++)
        for (int64_t i = 0; i < width; i++) {
            grad_weight[i] += parts[size_t(thread) * 3 * width + i];
            grad_bias[i] += parts[(size_t(thread) * 3 + 1) * width + i];
        }
}

}  // namespace

// `added`, `bias` and `exact` may be null. `normed` is narrow where `added` is.
extern "C" void residual_norm_forward(int narrow, const float* hidden, const void* added, const float* weight,
                                      const float* bias, float eps, float dropped, uint64_t seed, float* sums,
                                      float* means, float* scales, float* exact, void* normed, int64_t rows,
                                      int64_t width) {
    const Dropout dropout(dropped, seed);
    if (narrow)
        forward(hidden, (const bf16*)added, weight, bias, eps, dropout, sums, means, scales, exact, (bf16*)normed, rows,
                width);
    else
        forward(hidden, (const float*)added, weight, bias, eps, dropout, sums, means, scales, exact, (float*)normed,
                rows, width);
}

// Of the three gradients that come in, `grad_exact` and `grad_normed` belong to the same numbers and one of them may be
// null, `grad_sum` too. `grad_added` is null where nothing was added.
extern "C" void residual_norm_backward(int narrow, const float* grad_exact, const void* grad_normed,
                                       const float* grad_sum, const float* sums, const float* means,
                                       const float* scales, const float* weight, float dropped, uint64_t seed,
                                       float* grad_hidden, void* grad_added, float* grad_weight, float* grad_bias,
                                       int64_t rows, int64_t width) {
    const Dropout dropout(dropped, seed);
    if (narrow)
        backward(grad_exact, (const bf16*)grad_normed, grad_sum, sums, means, scales, weight, dropout, grad_hidden,
                 (bf16*)grad_added, grad_weight, grad_bias, rows, width);
    else
        backward(grad_exact, (const float*)grad_normed, grad_sum, sums, means, scales, weight, dropout, grad_hidden,
                 (float*)grad_added, grad_weight, grad_bias, rows, width);
}
