// Matrix products of 32 x 32 numbers in bf16, summed in fp32: by AMX where the processor has it, or by AVX-512's dot
// products of pairs. What is between two products then stays in the first cache.
#pragma once

#include "vectors.h"

#if defined(__AMX_BF16__) && defined(__AMX_TILE__)
#define TILES_BY_AMX 1
#elif defined(__AVX512BF16__) && defined(__AVX512BW__)
#define TILES_BY_AVX512 1
#endif

#if TILES_BY_AMX || TILES_BY_AVX512
#define HAS_TILES 1

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
