// What stands between the products of inference, a row or 16 numbers at a time: activations, norms, and the change into
// the numbers that products read.
#pragma once

#include <cmath>
#include <type_traits>

#include "words.h"

#if HAS_VECTORS
#include "activations.h"

// 2^x to three millionths, which is far below what bf16 keeps; at least 2^-120.
inline __m512 power_of_two(__m512 x) {
    x = _mm512_max_ps(x, _mm512_set1_ps(-120.0f));
    const __m512 rest = _mm512_reduce_ps(x, 1);  // above the next whole number below
    __m512 sum = _mm512_set1_ps(0.013534137f);
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(0.05201149f));
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(0.24144276f));
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(0.69300383f));
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(1.0000026f));
    return _mm512_scalef_ps(sum, x);
}

// What a score weighs beside the highest one, as near as the kind of the next product can tell. In fp32 what is below
// e^-64 is 0, since products of smaller weights may be no normal numbers, at which processors are slow.
template <class Kind>
inline __m512 weight_of(__m512 score, float highest, float scale) {
    if constexpr (std::is_same_v<Kind, Fp32>) {
        const __m512 below = _mm512_mul_ps(_mm512_sub_ps(score, _mm512_set1_ps(highest)), _mm512_set1_ps(scale));
        // What is no number is kept.
        const __mmask16 counts = _mm512_cmp_ps_mask(below, _mm512_set1_ps(-64.0f), _CMP_NLT_UQ);
        return _mm512_maskz_mov_ps(counts, exponential(below));
    } else {
        const float by = 1.44269504f * scale;
        return power_of_two(_mm512_fmadd_ps(score, _mm512_set1_ps(by), _mm512_set1_ps(-by * highest)));
    }
}

// The share of the normal distribution below x is 1/2 + x P(x^2) up to `end`, where it is all but one. The polynomials
// are minimax fits of GELU itself, within 4e-5 of it.
struct Bell {
    float end, parts[9];
};
constexpr Bell BY_ERROR_FUNCTION = {4.4f,
                                    {0.39876161f, -0.066076431f, 0.00964302849f, -0.00105499263f, 8.4293036e-05f,
                                     -4.72486996e-06f, 1.74084821e-07f, -3.75405146e-09f, 3.569432e-11f}};
constexpr Bell BY_TANH = {4.2f,
                          {0.398809793f, -0.0664997036f, 0.00993787725f, -0.00113977201f, 9.75176025e-05f,
                           -5.9392069e-06f, 2.3971873e-07f, -5.68579077e-09f, 5.95680446e-11f}};

inline __m512 gelu(__m512 x, const Bell& bell) {
    const __m512 near = _mm512_max_ps(_mm512_set1_ps(-bell.end), _mm512_min_ps(_mm512_set1_ps(bell.end), x));
    const __m512 square = _mm512_mul_ps(near, near);
    __m512 sum = _mm512_set1_ps(bell.parts[8]);
#pragma GCC unroll 8
    for (int i = 7; i >= 0; i--) sum = _mm512_fmadd_ps(sum, square, _mm512_set1_ps(bell.parts[i]));
    return _mm512_mul_ps(x, _mm512_fmadd_ps(sum, near, _mm512_set1_ps(0.5f)));
}

// `activation` as in `activate`: GELU, GELU by tanh, ReLU; as near as the kind of the next product can tell.
template <class Kind>
inline __m512 activated(int activation, __m512 x) {
    if (activation == 2) return _mm512_max_ps(x, _mm512_setzero_ps());
    if constexpr (std::is_same_v<Kind, Fp32>)
        return activation == 0 ? Gelu::value(x) : GeluTanh::value(x);
    else
        return gelu(x, activation == 0 ? BY_ERROR_FUNCTION : BY_TANH);
}

// 16 numbers into a row.
inline void put(bf16* to, __m512 values) { _mm256_storeu_si256((__m256i*)to, narrowed(values)); }
inline void put(float* to, __m512 values) { _mm512_storeu_ps(to, values); }

// The last lanes of a row that is `width` wide and filled up with zeros.
inline __mmask16 lanes(int64_t column, int64_t width) {
    return width - column >= 16 ? 0xffff : width <= column ? 0 : __mmask16((1u << (width - column)) - 1u);
}

// A layer norm whose weight and bias are filled up with zeros; without a weight it changes nothing.
struct Norm {
    const float *weight, *bias;
};

// `to` may be `from`. Both are `padded` wide, a multiple of 16.
inline void normalise(const float* from, float* to, const Norm& norm, float eps, int64_t width, int64_t padded) {
    __m512 sum = _mm512_setzero_ps(), squares = _mm512_setzero_ps();
    for (int64_t i = 0; i < padded; i += 16) sum = _mm512_add_ps(sum, _mm512_loadu_ps(from + i));
    const __m512 mean = _mm512_set1_ps(_mm512_reduce_add_ps(sum) / width);
    for (int64_t i = 0; i < padded; i += 16) {
        const __m512 apart = _mm512_maskz_sub_ps(lanes(i, width), _mm512_loadu_ps(from + i), mean);
        squares = _mm512_fmadd_ps(apart, apart, squares);
    }
    const __m512 scale = _mm512_set1_ps(1.0f / std::sqrt(_mm512_reduce_add_ps(squares) / width + eps));
    for (int64_t i = 0; i < padded; i += 16) {
        const __m512 normal = _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(from + i), mean), scale);
        const __m512 bias = norm.bias ? _mm512_loadu_ps(norm.bias + i) : _mm512_setzero_ps();
        _mm512_storeu_ps(to + i, _mm512_fmadd_ps(normal, _mm512_loadu_ps(norm.weight + i), bias));
    }
}

// A left operand of products: rows of numbers as a kind has them, and how those of 8 bits become what they stand for.
template <class Kind>
struct Operand {
    int64_t stride;  // bytes
    Buffer<char> numbers;
    Buffer<float> scales, lows;

    // What fills rows up is zero from the beginning and stays so.
    Operand(int64_t rows, int64_t words)
        : stride(words * 4),
          numbers((rows + Kind::GROUP) * stride),
          scales(rows + Kind::GROUP),
          lows(rows + Kind::GROUP) {
        std::memset(numbers, 0, (rows + Kind::GROUP) * stride);
    }
    char* row(int64_t row) const { return numbers + row * stride; }

    // `width` is a multiple of 16.
    void narrow(int64_t at, const float* values, int64_t width) const {
        auto* to = (typename Kind::Number*)row(at);
        if constexpr (!std::is_same_v<Kind, Int8>) {
            for (int64_t i = 0; i < width; i += 16) put(to + i, _mm512_loadu_ps(values + i));
        } else {
            // Zero is always within reach, so that what fills a row up changes nothing.
            __m512 low = _mm512_setzero_ps(), high = low;
            for (int64_t i = 0; i < width; i += 16) {
                const __m512 value = _mm512_loadu_ps(values + i);
                low = _mm512_min_ps(low, value);
                high = _mm512_max_ps(high, value);
            }
            const float lowest = _mm512_reduce_min_ps(low), range = _mm512_reduce_max_ps(high) - lowest;
            scales[at] = range / 255.0f;
            lows[at] = lowest;
            const __m512 steps = _mm512_set1_ps(range > 0.0f ? 255.0f / range : 0.0f), from = _mm512_set1_ps(lowest);
            for (int64_t i = 0; i < width; i += 16) {
                const __m512 above = _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(values + i), from), steps);
                _mm_storeu_si128((__m128i*)(to + i), _mm512_cvtusepi32_epi8(_mm512_cvtps_epu32(above)));
            }
        }
    }
};

// A left operand whose rows are made in fp32, `width` wide, before they are narrowed; one in fp32 is made in its place.
template <class Kind>
struct MadeOperand {
    static constexpr bool IN_PLACE = std::is_same_v<Kind, Fp32>;
    int64_t width;
    Operand<Kind> operand;
    Buffer<float> made;

    MadeOperand(int64_t rows, int64_t width, int64_t words)
        : width(width), operand(rows, words), made(IN_PLACE ? 0 : (rows + Kind::GROUP) * width) {}
    float* row(int64_t row) const {
        if constexpr (IN_PLACE)
            return (float*)operand.row(row);
        else
            return made + row * width;
    }
    void narrow(int64_t first, int64_t rows) const {
        for (int64_t i = first; !IN_PLACE && i < first + rows; i++) operand.narrow(i, row(i), width);
    }
};

// A weight for products, as `kernels/encoding.py` lays it out; all vectors have a number for each column of the panels.
struct Matrix {
    const uint32_t* panels;  // [panels][words][32]
    const float *steps, *sums;  // of numbers of 8 bits: what a column counts in, and its sum; else null
    const float* bias;
    int64_t count, words;
};

// 16 columns of a row of a product as what they stand for, bias included.
template <class Kind>
inline __m512 finished(const typename Kind::Sum* sums, const Matrix& matrix, int64_t column, const Operand<Kind>& left,
                       int64_t row) {
    const __m512 bias = _mm512_loadu_ps(matrix.bias + column);
    if constexpr (!std::is_same_v<Kind, Int8>) {
        return _mm512_add_ps(_mm512_loadu_ps(sums), bias);
    } else {
        const __m512 whole = _mm512_cvtepi32_ps(_mm512_loadu_si512(sums));
        const __m512 scaled = _mm512_mul_ps(whole, _mm512_loadu_ps(matrix.steps + column));
        const __m512 low = _mm512_set1_ps(left.lows[row]), scale = _mm512_set1_ps(left.scales[row]);
        return _mm512_fmadd_ps(scaled, scale, _mm512_fmadd_ps(_mm512_loadu_ps(matrix.sums + column), low, bias));
    }
}

// Some rows of a product; `end(row, column, first, second)` takes 32 finished columns at a time.
template <class Kind, class End>
inline void multiply(const Operand<Kind>& left, int64_t first, int64_t rows, const Matrix& matrix,
                     typename Kind::Sum* sums, End end) {
    constexpr int64_t GROUP = Kind::GROUP;
    const int64_t lines = 2 * matrix.words, groups = (rows + GROUP - 1) / GROUP, share = (lines + groups - 1) / groups;
    for (int64_t panel = 0; panel < matrix.count; panel++)
        for (int64_t start = first, line = 0; start < first + rows; start += GROUP, line += share) {
            const int64_t count = first + rows - start < GROUP ? first + rows - start : GROUP;
            // The next panel is on its way to the first cache while this one is multiplied.
            const char* next = (const char*)(matrix.panels + (panel + 1) * matrix.words * PANEL);
            for (int64_t i = line; i < line + share && i < lines; i++) _mm_prefetch(next + i * 64, _MM_HINT_T0);
            word_product<Kind>(sums, PANEL, left.row(start), left.stride, matrix.panels + panel * matrix.words * PANEL,
                               PANEL, matrix.words, count);
            for (int64_t i = 0; i < count; i++) {
                const auto* own = sums + i * PANEL;
                end(start + i, panel * PANEL, finished<Kind>(own, matrix, panel * PANEL, left, start + i),
                    finished<Kind>(own + 16, matrix, panel * PANEL + 16, left, start + i));
            }
        }
}

#endif
