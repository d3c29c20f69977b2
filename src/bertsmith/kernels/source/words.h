// Matrix products word by word, for inference: a word holds one number in fp32, two in bf16 or four of 8 bits, and all
// kinds are multiplied alike: by AVX-512, or by AMX, which has no fp32. A right operand is a panel of 32 columns,
// [words][32]; a left one has rows of words, filled up to 16.
#pragma once

#include "tiles.h"

#if HAS_VECTORS

// Columns of a panel.
constexpr int64_t PANEL = 32;
// Words that one step of AMX multiplies, of which rows are multiples.
constexpr int64_t STEP = 16;

// How a kind is multiplied, and the rows that are multiplied at once: their sums fill the registers. Of a kind, SUMMED
// is how many words go into a sum before it is added to what is there, since rounding errors grow with a sum's length.
struct ByVectors {
    static constexpr bool BY_TILES = false;
    static constexpr int64_t GROUP = 12;
    struct Scope {
        Scope() {}
        ~Scope() {}
    };
};
#if TILES_BY_AMX
struct ByTiles {
    static constexpr bool BY_TILES = true;
    static constexpr int64_t GROUP = 32;
    using Scope = TileScope;
};
#else
using ByTiles = ByVectors;
#endif

struct SumsInFp32 {
    using Sum = float;
    using Vector = __m512;
    static Vector zero() { return _mm512_setzero_ps(); }
    static void store(void* to, Vector sums) { _mm512_storeu_ps(to, sums); }
    static void add(float* to, Vector sums) { store(to, _mm512_add_ps(_mm512_loadu_ps(to), sums)); }
};

struct Fp32 : ByVectors, SumsInFp32 {
    static constexpr int64_t SUMMED = 256;
    using Number = float;
    using InAttention = Fp32;
    static Vector plus_products(Vector sums, __m512i left, __m512i right) {
        return _mm512_fmadd_ps((__m512)left, (__m512)right, sums);
    }
};

struct Bf16 : ByTiles, SumsInFp32 {
    static constexpr int64_t SUMMED = INT64_MAX;
    static constexpr bool WHOLE = false;
    using Number = bf16;
    using InAttention = Bf16;
    static Vector plus_products(Vector sums, __m512i left, __m512i right) {
#if defined(__AVX512BF16__)
        return _mm512_dpbf16_ps(sums, (__m512bh)left, (__m512bh)right);
#else
        const __m512i high = _mm512_set1_epi32(int(0xffff0000u));
        sums = _mm512_fmadd_ps((__m512)_mm512_slli_epi32(left, 16), (__m512)_mm512_slli_epi32(right, 16), sums);
        return _mm512_fmadd_ps((__m512)_mm512_and_si512(left, high), (__m512)_mm512_and_si512(right, high), sums);
#endif
    }
};

// Left numbers have no sign, right ones have.
struct Int8 : ByTiles {
    static constexpr int64_t SUMMED = INT64_MAX;
    static constexpr bool WHOLE = true;
    using Number = uint8_t;
    using Sum = int32_t;
    using InAttention = Bf16;
    using Vector = __m512i;
    static Vector zero() { return _mm512_setzero_si512(); }
    static void store(void* to, Vector sums) { _mm512_storeu_si512(to, sums); }
    static Vector plus_products(Vector sums, __m512i left, __m512i right) {
#if defined(__AVX512VNNI__)
        return _mm512_dpbusd_epi32(sums, left, right);
#else
        return sums;
#endif
    }
};

#if TILES_BY_AMX
template <class Kind>
inline void product_of_tiles(typename Kind::Sum* c, int64_t c_stride, const char* left, int64_t a_bytes,
                             const uint32_t* b, int64_t b_stride, int64_t words, int64_t rows) {
    const int64_t c_bytes = c_stride * 4, b_bytes = b_stride * 4;
    const bool both = rows > 16;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t word = 0; word < words; word += STEP) {
        _tile_loadd(4, left + word * 4, a_bytes);
        _tile_loadd(6, b + word * b_stride, b_bytes);
        _tile_loadd(7, b + word * b_stride + 16, b_bytes);
        if (both) _tile_loadd(5, left + 16 * a_bytes + word * 4, a_bytes);
        if constexpr (Kind::WHOLE) {
            _tile_dpbusd(0, 4, 6);
            _tile_dpbusd(1, 4, 7);
            if (!both) continue;
            _tile_dpbusd(2, 5, 6);
            _tile_dpbusd(3, 5, 7);
        } else {
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
            if (!both) continue;
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, c, c_bytes);
    _tile_stored(1, c + 16, c_bytes);
    if (!both) return;
    _tile_stored(2, c + 16 * c_stride, c_bytes);
    _tile_stored(3, c + 16 * c_stride + 16, c_bytes);
}
#endif

// Apart from its callers, so that all registers are its own. With ADDS, `c` is added to.
template <class Kind, int ROWS, bool ADDS>
__attribute__((noinline)) void product_of_rows(typename Kind::Sum* c, int64_t c_stride, const char* a, int64_t a_bytes,
                                               const uint32_t* b, int64_t b_stride, int64_t words) {
    typename Kind::Vector sums[ROWS][2];
#pragma GCC unroll 12
    for (int i = 0; i < ROWS; i++) sums[i][0] = sums[i][1] = Kind::zero();
    for (int64_t word = 0; word < words; word++) {
        const __m512i low = _mm512_loadu_si512(b), high = _mm512_loadu_si512(b + 16);
#pragma GCC unroll 12
        for (int i = 0; i < ROWS; i++) {
            int32_t one;
            std::memcpy(&one, a + i * a_bytes, 4);
            const __m512i all = _mm512_set1_epi32(one);
            sums[i][0] = Kind::plus_products(sums[i][0], all, low);
            sums[i][1] = Kind::plus_products(sums[i][1], all, high);
        }
        a += 4;
        b += b_stride;
    }
#pragma GCC unroll 12
    for (int i = 0; i < ROWS; i++) {
        if constexpr (ADDS) {
            Kind::add(c + i * c_stride, sums[i][0]);
            Kind::add(c + i * c_stride + 16, sums[i][1]);
        } else {
            Kind::store(c + i * c_stride, sums[i][0]);
            Kind::store(c + i * c_stride + 16, sums[i][1]);
        }
    }
}

template <class Kind, bool ADDS>
inline void product_of_vectors(typename Kind::Sum* c, int64_t c_stride, const char* left, int64_t a_bytes,
                               const uint32_t* b, int64_t b_stride, int64_t words, int64_t rows) {
    if (rows > 8)
        product_of_rows<Kind, 12, ADDS>(c, c_stride, left, a_bytes, b, b_stride, words);
    else if (rows > 4)
        product_of_rows<Kind, 8, ADDS>(c, c_stride, left, a_bytes, b, b_stride, words);
    else
        product_of_rows<Kind, 4, ADDS>(c, c_stride, left, a_bytes, b, b_stride, words);
}

// `c` [rows, 32] = `a` [rows, words] `b` [words][32]. Strides of `a` count bytes, others elements. What stands behind
// the rows up to GROUP is read and written too.
template <class Kind>
inline void word_product(typename Kind::Sum* c, int64_t c_stride, const void* a, int64_t a_bytes, const uint32_t* b,
                         int64_t b_stride, int64_t words, int64_t rows) {
    const char* left = (const char*)a;
#if TILES_BY_AMX
    if constexpr (Kind::BY_TILES) {
        product_of_tiles<Kind>(c, c_stride, left, a_bytes, b, b_stride, words, rows);
        return;
    }
#endif
    const int64_t first = words < Kind::SUMMED ? words : Kind::SUMMED;
    product_of_vectors<Kind, false>(c, c_stride, left, a_bytes, b, b_stride, first, rows);
    if constexpr (Kind::SUMMED < INT64_MAX)
        for (int64_t done = first; done < words; done += Kind::SUMMED) {
            const int64_t count = words - done < Kind::SUMMED ? words - done : Kind::SUMMED;
            product_of_vectors<Kind, true>(c, c_stride, left + done * 4, a_bytes, b + done * b_stride, b_stride, count,
                                           rows);
        }
}

#endif
