// Numbers 16 at a time, on processors with AVX-512: memory for them, exponentials, bf16, and matrices turned over.
#pragma once

#include "numbers.h"

#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define HAS_VECTORS 1
#include <immintrin.h>

#include <cstdlib>
#include <memory>

constexpr int64_t TILE = 32;

inline int64_t rounded_up(int64_t count, int64_t multiple) { return (count + multiple - 1) / multiple * multiple; }

// Memory whose rows begin where caches' lines do.
template <class T>
struct Buffer {
    struct Free {
        void operator()(T* memory) const { std::free(memory); }
    };
    std::unique_ptr<T, Free> memory;

    explicit Buffer(int64_t count) : memory((T*)std::aligned_alloc(64, rounded_up(count * sizeof(T) + 1, 64))) {}
    operator T*() const { return memory.get(); }
    T* get() const { return memory.get(); }
};

// The exponential of `numbers.h` for 16 numbers. Of two operands, one of them no number, the second is taken.
inline __m512 exponential(__m512 x) {
    x = _mm512_max_ps(_mm512_set1_ps(-87.33f), _mm512_min_ps(_mm512_set1_ps(88.02f), x));
    const __m512 whole = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), _MM_FROUND_TO_NEAREST_INT);
    __m512 rest = _mm512_fnmadd_ps(whole, _mm512_set1_ps(0.693359375f), x);
    rest = _mm512_fnmadd_ps(whole, _mm512_set1_ps(-2.12194440e-4f), rest);
    __m512 sum = _mm512_set1_ps(1.9875691500e-4f);
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(1.3981999507e-3f));
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(8.3334519073e-3f));
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(4.1665795894e-2f));
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(1.6666665459e-1f));
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(5.0000001201e-1f));
    sum = _mm512_fmadd_ps(sum, _mm512_mul_ps(rest, rest), _mm512_add_ps(rest, _mm512_set1_ps(1.0f)));
    return _mm512_scalef_ps(sum, whole);
}

// 1 / x to the last place or so; 0 where x is beyond all numbers.
inline __m512 inverse(__m512 x) {
    const __m512 first = _mm512_rcp14_ps(x);
    return first * (2.0f - x * first);
}

inline __m512 widened(__m256i values) { return (__m512)_mm512_slli_epi32(_mm512_cvtepu16_epi32(values), 16); }

inline __m512 widened_at(const bf16* values) { return widened(_mm256_loadu_si256((const __m256i*)values)); }

// To the nearest, ties to even.
inline __m256i narrowed(__m512 values) {
#if defined(__AVX512BF16__)
    return (__m256i)_mm512_cvtneps_pbh(values);
#else
    const __m512i bits = _mm512_castps_si512(values), one = _mm512_set1_epi32(1);
    const __m512i last = _mm512_and_si512(_mm512_srli_epi32(bits, 16), one);
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(last, _mm512_set1_epi32(0x7fff)));
    const __mmask16 numbers = _mm512_cmp_ps_mask(values, values, _CMP_ORD_Q);
    const __m512i kept = _mm512_mask_mov_epi32(_mm512_set1_epi32(0x7fc00000), numbers, rounded);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(kept, 16));
#endif
}

// Two rows of bf16, number by number side by side: the way in which products want their right operand.
inline __m512i paired(__m256i low, __m256i high) {
    return _mm512_or_si512(_mm512_cvtepu16_epi32(low), _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
}

// 16 x 16 words turned over.
inline void transpose_words(const uint32_t* from, int64_t from_stride, uint32_t* to, int64_t to_stride) {
    __m512i rows[16], mixed[16];
    for (int i = 0; i < 16; i++) rows[i] = _mm512_loadu_si512(from + i * from_stride);
    for (int i = 0; i < 16; i += 2) {
        mixed[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
        mixed[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        rows[i] = _mm512_unpacklo_epi64(mixed[i], mixed[i + 2]);
        rows[i + 1] = _mm512_unpackhi_epi64(mixed[i], mixed[i + 2]);
        rows[i + 2] = _mm512_unpacklo_epi64(mixed[i + 1], mixed[i + 3]);
        rows[i + 3] = _mm512_unpackhi_epi64(mixed[i + 1], mixed[i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        mixed[i] = _mm512_shuffle_i32x4(rows[i], rows[i + 4], 0x88);
        mixed[i + 4] = _mm512_shuffle_i32x4(rows[i], rows[i + 4], 0xdd);
        mixed[i + 8] = _mm512_shuffle_i32x4(rows[i + 8], rows[i + 12], 0x88);
        mixed[i + 12] = _mm512_shuffle_i32x4(rows[i + 8], rows[i + 12], 0xdd);
    }
    for (int i = 0; i < 8; i++) {
        _mm512_storeu_si512(to + i * to_stride, _mm512_shuffle_i32x4(mixed[i], mixed[i + 8], 0x88));
        _mm512_storeu_si512(to + (i + 8) * to_stride, _mm512_shuffle_i32x4(mixed[i], mixed[i + 8], 0xdd));
    }
}

// Words turned over: [rows, columns] to [columns, rows], both multiples of 16.
inline void turn_over(const uint32_t* words, int64_t rows, int64_t columns, uint32_t* turned) {
    for (int64_t row = 0; row < rows; row += 16)
        for (int64_t column = 0; column < columns; column += 16)
            transpose_words(words + row * columns + column, columns, turned + column * rows + row, rows);
}

// Rows in bf16, zeros behind the last.
inline void narrow_rows(const float* from, int64_t rows, int64_t padded, int64_t width, bf16* to) {
    for (int64_t i = 0; i < rows * width; i += 16)
        _mm256_storeu_si256((__m256i*)(to + i), narrowed(_mm512_loadu_ps(from + i)));
    std::memset((void*)(to + rows * width), 0, (padded - rows) * width * sizeof(bf16));
}

// Rows, two a word: [rows / 2, width].
inline void pair_rows(const bf16* rows, int64_t count, int64_t width, uint32_t* pairs) {
    for (int64_t row = 0; row < count; row += 2)
        for (int64_t i = 0; i < width; i += 16) {
            const __m256i low = _mm256_loadu_si256((const __m256i*)(rows + row * width + i));
            const __m256i high = _mm256_loadu_si256((const __m256i*)(rows + (row + 1) * width + i));
            _mm512_storeu_si512(pairs + row / 2 * width + i, paired(low, high));
        }
}

// Columns of rows, two a word: [width / 2, rows].
inline void pair_columns(const bf16* rows, int64_t count, int64_t width, uint32_t* pairs) {
    turn_over((const uint32_t*)rows, count, width / 2, pairs);
}

#endif
