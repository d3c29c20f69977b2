// Matrix products of 32 x 32 numbers in bf16, summed in fp32: by AMX where the processor has it, or by AVX-512's dot
// products of pairs. What is between two products then stays in the first cache.
#pragma once

#include "numbers.h"

#if defined(__AMX_BF16__) && defined(__AMX_TILE__)
#define TILES_BY_AMX 1
#elif defined(__AVX512BF16__) && defined(__AVX512BW__)
#define TILES_BY_AVX512 1
#endif

#if TILES_BY_AMX || TILES_BY_AVX512
#define HAS_TILES 1
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

inline __m256i narrowed(__m512 values) { return (__m256i)_mm512_cvtneps_pbh(values); }

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

#if TILES_BY_AMX
// Asks the system for the tiles' registers, once a process; false where it refuses.
bool tiles_are_allowed();

// A thread's tiles: set up, and given back at the end of the block, since others in the thread set up theirs.
struct TileScope {
    TileScope() {
        struct alignas(64) {
            uint8_t palette = 1, start_row = 0, reserved[14] = {};
            uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
            uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
        } config;
        _tile_loadconfig(&config);
    }
    ~TileScope() { _tile_release(); }
};
#else
inline bool tiles_are_allowed() { return true; }
struct TileScope {
    TileScope() {}
    ~TileScope() {}
};
#endif

// c = a b, or with ADDS c += a b: `a` has 32 rows of 32 * steps numbers, `b` 16 * steps rows of 32 pairs. Strides count
// elements of their own kind.
template <bool ADDS>
inline void tile_product(float* c, int64_t c_stride, const bf16* a, int64_t a_stride, const uint32_t* b,
                         int64_t b_stride, int64_t steps) {
#if TILES_BY_AMX
    const int64_t c_bytes = c_stride * sizeof(float), a_bytes = a_stride * sizeof(bf16), b_bytes = b_stride * 4;
    if (ADDS) {
        _tile_loadd(0, c, c_bytes);
        _tile_loadd(1, c + 16, c_bytes);
        _tile_loadd(2, c + 16 * c_stride, c_bytes);
        _tile_loadd(3, c + 16 * c_stride + 16, c_bytes);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t step = 0; step < steps; step++) {
        _tile_loadd(4, a + step * 32, a_bytes);
        _tile_loadd(6, b + step * 16 * b_stride, b_bytes);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, b + step * 16 * b_stride + 16, b_bytes);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, a + 16 * a_stride + step * 32, a_bytes);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, c, c_bytes);
    _tile_stored(1, c + 16, c_bytes);
    _tile_stored(2, c + 16 * c_stride, c_bytes);
    _tile_stored(3, c + 16 * c_stride + 16, c_bytes);
#else
    for (int64_t row = 0; row < 32; row += 8) {
        __m512 sums[8][2];
        for (int i = 0; i < 8; i++)
            for (int half = 0; half < 2; half++)
                sums[i][half] = ADDS ? _mm512_loadu_ps(c + (row + i) * c_stride + 16 * half) : _mm512_setzero_ps();
        for (int64_t pair = 0; pair < steps * 16; pair++) {
            const __m512bh left = (__m512bh)_mm512_loadu_si512(b + pair * b_stride);
            const __m512bh right = (__m512bh)_mm512_loadu_si512(b + pair * b_stride + 16);
            for (int i = 0; i < 8; i++) {
                uint32_t word;
                std::memcpy(&word, a + (row + i) * a_stride + pair * 2, 4);
                const __m512bh all = (__m512bh)_mm512_set1_epi32(int(word));
                sums[i][0] = _mm512_dpbf16_ps(sums[i][0], all, left);
                sums[i][1] = _mm512_dpbf16_ps(sums[i][1], all, right);
            }
        }
        for (int i = 0; i < 8; i++)
            for (int half = 0; half < 2; half++) _mm512_storeu_ps(c + (row + i) * c_stride + 16 * half, sums[i][half]);
    }
#endif
}

#endif
