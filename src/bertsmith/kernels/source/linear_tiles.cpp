// Linear layers by tiles, with what stands at their ends done while numbers are in the first cache: bias, activation, and
// the activation's slope in the backward pass. Every number is summed by one thread in one order, so that the number of
// threads changes no bit.
#include "threads.h"
#include "tiles.h"

#if HAS_TILES
#include "activations.h"

namespace {

// A right operand that is no larger than this stays in the second cache, and rows pass by it once.
constexpr int64_t RIGHT_BYTES = 5 << 18;
// Of a left operand, at most this much is gone through with one panel of a larger right one.
constexpr int64_t LEFT_BYTES = 1 << 20;

// Gradients larger than this are written past the caches.
constexpr int64_t STREAMED_BYTES = 1 << 22;
// Rows wider than this are multiplied a part at a time.
constexpr int64_t WIDE = 2048;

// Where a product goes, and what is done to it on the way.
struct End {
    const float* bias;  // of the output's columns, or null
    bf16* before;       // written: what is activated; or null
    const bf16* slopes_at;  // read: where the activation's slope is taken, for a gradient; or null
    bf16* out;
    int kind;  // of activation; below 0: none
};

inline __m512 value_of(int kind, __m512 x) {
    return kind == 0 ? Gelu::value(x) : kind == 1 ? GeluTanh::value(x) : Relu::value(x);
}

inline __m512 slope_of(int kind, __m512 x) {
    return kind == 0 ? Gelu::slope(x) : kind == 1 ? GeluTanh::slope(x) : Relu::slope(x);
}

void finish(const float* product, const End& end, int64_t row, int64_t rows, int64_t column, int64_t columns) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < TILE; j += 16) {
            const int64_t at = (row + i) * columns + column + j;
            __m512 values = _mm512_loadu_ps(product + i * TILE + j);
            if (end.bias) values = values + _mm512_loadu_ps(end.bias + column + j);
            if (end.slopes_at) {
                values = values * slope_of(end.kind, widened_at(end.slopes_at + at));
            } else if (end.kind >= 0) {
                // The backward pass sees what is written here, so the activation is taken of the same.
                const __m256i before = narrowed(values);
                _mm256_storeu_si256((__m256i*)(end.before + at), before);
                values = value_of(end.kind, widened(before));
            }
            _mm256_storeu_si256((__m256i*)(end.out + at), narrowed(values));
        }
}

// Has on its way what `finish` reads and writes of a tile: its rows are far apart, and waiting for each would cost more
// than the product.
inline void fetch(const End& end, int64_t row, int64_t rows, int64_t column, int64_t columns) {
    for (int64_t i = 0; i < rows; i++) {
        const int64_t at = (row + i) * columns + column;
        if (end.slopes_at) __builtin_prefetch(end.slopes_at + at, 0);
        if (end.before) __builtin_prefetch(end.before + at, 1);
        __builtin_prefetch(end.out + at, 1);
    }
}

// Goes through left [rows, inner] times panels [columns / 32][inner / 2][32 pairs], a tile of the product at a time, in
// the order in which caches like it; the threads of a team share the tiles.
template <class Each>
void each_tile(int64_t rows, int64_t columns, int64_t inner, Each each) {
    if (columns * inner * int64_t(sizeof(bf16)) <= RIGHT_BYTES) {
#pragma omp for schedule(static) nowait
        for (int64_t row = 0; row < rows; row += TILE)
            for (int64_t panel = 0; panel < columns / TILE; panel++) each(row, panel);
        return;
    }
    const int64_t chunk = LEFT_BYTES / (inner * int64_t(sizeof(bf16))) / TILE * TILE;
    const int64_t step = chunk < TILE ? TILE : chunk;
    for (int64_t start = 0; start < rows; start += step) {
        const int64_t stop = start + step < rows ? start + step : rows;
#pragma omp for schedule(static) nowait
        for (int64_t panel = 0; panel < columns / TILE; panel++)
            for (int64_t row = start; row < stop; row += TILE) each(row, panel);
    }
}

// A product's left operand, whose last rows are filled up with zeros.
struct Left {
    const bf16* values;
    int64_t rows, inner;
    Buffer<bf16> last;

    Left(const bf16* values, int64_t rows, int64_t inner)
        : values(values), rows(rows), inner(inner), last(rows % TILE ? TILE * inner : 0) {
        const int64_t count = rows % TILE;
        if (!count) return;
        std::memcpy((void*)last.get(), (const void*)(values + (rows - count) * inner), count * inner * sizeof(bf16));
        std::memset((void*)(last + count * inner), 0, (TILE - count) * inner * sizeof(bf16));
    }
    const bf16* block(int64_t row) const { return row + TILE > rows ? last.get() : values + row * inner; }
    int64_t count(int64_t row) const { return row + TILE > rows ? rows - row : TILE; }
};

// The product of a wide left operand with a right one that no cache holds: a part of the inner width at a time, for some
// rows and columns whose sums wait in the second cache.
void multiply_in_parts(const Left& left, const uint32_t* panels, const End& end, int64_t columns) {
    constexpr int64_t PANELS = 4, ROWS = 256, INNER = 1024;
    const int64_t rows = left.rows, inner = left.inner, all = columns / TILE;
#pragma omp parallel
    {
        const TileScope scope;
        Buffer<float> sums(PANELS * ROWS * TILE);
#pragma omp for schedule(static)
        for (int64_t first = 0; first < all; first += PANELS)
            for (int64_t start = 0; start < rows; start += ROWS) {
                const int64_t stop = start + ROWS < rows ? start + ROWS : rows;
                const int64_t after = first + PANELS < all ? first + PANELS : all;
                for (int64_t part = 0; part < inner; part += INNER) {
                    const int64_t steps = (inner - part < INNER ? inner - part : INNER) / 32;
                    for (int64_t panel = first; panel < after; panel++) {
                        const uint32_t* right = panels + (panel * inner + part) / 2 * TILE;
                        for (int64_t row = start; row < stop; row += TILE) {
                            float* sum = sums + ((panel - first) * ROWS + row - start) * TILE;
                            if (part)
                                tile_product<true>(sum, TILE, left.block(row) + part, inner, right, TILE, steps);
                            else
                                tile_product<false>(sum, TILE, left.block(row), inner, right, TILE, steps);
                        }
                    }
                }
                for (int64_t panel = first; panel < after; panel++)
                    for (int64_t row = start; row < stop; row += TILE)
                        finish(sums + ((panel - first) * ROWS + row - start) * TILE, end, row, left.count(row),
                               panel * TILE, columns);
            }
    }
}

void multiply(const bf16* values, const uint32_t* panels, const End& end, int64_t rows, int64_t columns,
              int64_t inner) {
    const Left left(values, rows, inner);
    if (inner > WIDE && columns * inner * int64_t(sizeof(bf16)) > RIGHT_BYTES)
        return multiply_in_parts(left, panels, end, columns);
#pragma omp parallel
    {
        const TileScope scope;
        Buffer<float> product(TILE * TILE);
        each_tile(rows, columns, inner, [&](int64_t row, int64_t panel) {
            fetch(end, row, left.count(row), panel * TILE, columns);
            tile_product<false>(product, TILE, left.block(row), inner, panels + panel * inner / 2 * TILE, TILE,
                                inner / 32);
            finish(product, end, row, left.count(row), panel * TILE, columns);
        });
    }
}

// A weight [out, in] as the right operand of the forward and of the backward product.
void pack(const float* weight, uint32_t* by_in, uint32_t* by_out, int64_t out, int64_t in) {
#pragma omp parallel
    {
        Buffer<bf16> rows(TILE * in);
#pragma omp for schedule(static)
        for (int64_t first = 0; first < out; first += TILE) {
            narrow_rows(weight + first * in, TILE, TILE, in, rows);
            pair_columns(rows, TILE, in, by_in + first / TILE * (in / 2) * TILE);
            if (!by_out) continue;
            for (int64_t row = 0; row < TILE; row += 2)
                for (int64_t column = 0; column < in; column += 16) {
                    const __m256i low = _mm256_loadu_si256((const __m256i*)(rows + row * in + column));
                    const __m256i high = _mm256_loadu_si256((const __m256i*)(rows + (row + 1) * in + column));
                    uint32_t* to = by_out + column / TILE * (out / 2) * TILE + (first + row) / 2 * TILE + column % TILE;
                    _mm512_storeu_si512(to, paired(low, high));
                }
        }
    }
}

// 16 columns of two rows as pairs, activated first where `kind` says so; zeros for a row that is not there.
inline __m512i row_pair(const bf16* values, int64_t row, int64_t rows, int64_t width, int kind) {
    __m256i halves[2];
    for (int side = 0; side < 2; side++) {
        halves[side] = _mm256_setzero_si256();
        if (row + side >= rows) continue;
        const bf16* from = values + (row + side) * width;
        halves[side] = _mm256_loadu_si256((const __m256i*)from);
        if (kind >= 0) halves[side] = narrowed(value_of(kind, widened(halves[side])));
    }
    return paired(halves[0], halves[1]);
}

inline __m512 sum_of(__m512i pairs) {
    return (__m512)_mm512_slli_epi32(pairs, 16) + (__m512)_mm512_and_si512(pairs, _mm512_set1_epi32(int(0xffff0000u)));
}

// grad_out^T in: [out, in] in fp32, and the sums of grad_out's columns; with `adds`, added to what stands there.
void gradient(const bf16* grad_out, const bf16* in, int kind, float* grad_weight, float* grad_bias, int64_t rows,
              int64_t out_width, int64_t in_width, bool adds) {
    const int64_t padded = rounded_up(rows, TILE), pairs = padded / 2;
    Buffer<uint32_t> left(out_width * pairs);  // [out, rows / 2]: a pair of rows a word
    Buffer<uint32_t> right(in_width * pairs);  // panels [in / 32][rows / 2][32]
    Buffer<float> sums(pairs / 16 * out_width);  // of grad_out's columns, 32 rows at a time
    // What no cache holds is written past the caches, without reading what stood there.
    const bool streams = !adds && out_width * in_width * int64_t(sizeof(float)) > STREAMED_BYTES;
    const bool aside = adds || streams;
#pragma omp parallel
    {
        const TileScope scope;
        Buffer<uint32_t> block(2 * 16 * 16);
#pragma omp for schedule(static) nowait
        for (int64_t pair = 0; pair < pairs; pair += 16)
            for (int64_t column = 0; column < out_width; column += TILE) {
                __m512 sum[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
                for (int64_t i = 0; i < 16; i++)
                    for (int half = 0; half < 2; half++) {
                        const __m512i both =
                            row_pair(grad_out + column + 16 * half, 2 * (pair + i), rows, out_width, -1);
                        sum[half] = sum[half] + sum_of(both);
                        _mm512_storeu_si512(block + (half * 16 + i) * 16, both);
                    }
                for (int half = 0; half < 2; half++) {
                    transpose_words(block + half * 16 * 16, 16, left + (column + 16 * half) * pairs + pair, pairs);
                    _mm512_storeu_ps(sums + pair / 16 * out_width + column + 16 * half, sum[half]);
                }
            }
#pragma omp for schedule(static)
        for (int64_t pair = 0; pair < pairs; pair++)
            for (int64_t column = 0; column < in_width; column += 16)
                _mm512_storeu_si512(right + column / TILE * TILE * pairs + pair * TILE + column % TILE,
                                    row_pair(in + column, 2 * pair, rows, in_width, kind));
#pragma omp for schedule(static) nowait
        for (int64_t column = 0; column < (grad_bias ? out_width : 0); column += 16) {
            __m512 sum = _mm512_setzero_ps();
            for (int64_t i = 0; i < pairs / 16; i++) sum = sum + _mm512_loadu_ps(sums + i * out_width + column);
            if (adds) sum = _mm512_loadu_ps(grad_bias + column) + sum;
            _mm512_storeu_ps(grad_bias + column, sum);
        }
        Buffer<float> product(TILE * TILE);
        each_tile(out_width, in_width, padded, [&](int64_t row, int64_t panel) {
            float* to = grad_weight + row * in_width + panel * TILE;
            tile_product<false>(aside ? product.get() : to, aside ? TILE : in_width,
                                (const bf16*)(left + row * pairs), padded, right + panel * pairs * TILE, TILE,
                                padded / 32);
            for (int64_t i = 0; i < (aside ? TILE : 0); i++)
                for (int64_t j = 0; j < TILE; j += 16) {
                    float* place = to + i * in_width + j;
                    const __m512 found = _mm512_loadu_ps(product + i * TILE + j);
                    if (adds)
                        _mm512_storeu_ps(place, _mm512_loadu_ps(place) + found);
                    else
                        _mm512_stream_ps(place, found);
                }
        });
        _mm_sfence();
    }
}

}  // namespace

#endif

// A weight `[out, in]` in fp32, both multiples of 32, in bf16 as the products want it: `by_in` for the forward product,
// `by_out`, which may be null, for the gradient of what goes in. Each has out * in / 2 words.
extern "C" void tiled_pack(const float* weight, void* by_in, void* by_out, int64_t out, int64_t in) {
#if HAS_TILES
    pack(weight, (uint32_t*)by_in, (uint32_t*)by_out, out, in);
#endif
}

// out = activation(left right + bias), `left` `[rows, inner]` and `right` packed. `kind` is that of `activate`, or -1 for
// none; `before` is written: what was activated. With `slopes_at`, out = left right * slope(slopes_at).
extern "C" void tiled_linear(const void* left, const void* right, const float* bias, int kind, void* before,
                             const void* slopes_at, void* out, int64_t rows, int64_t columns, int64_t inner) {
#if HAS_TILES
    const End end{bias, (bf16*)before, (const bf16*)slopes_at, (bf16*)out, kind};
    multiply((const bf16*)left, (const uint32_t*)right, end, rows, columns, inner);
#endif
}

// Gradients of a weight and its bias (or null) from those of what came out and from what went in, activated first where
// `kind` is not -1. With `adds` they are added to what stands there.
extern "C" void tiled_gradient(const void* grad_out, const void* in, int kind, float* grad_weight, float* grad_bias,
                               int64_t rows, int64_t out_width, int64_t in_width, int adds) {
#if HAS_TILES
    gradient((const bf16*)grad_out, (const bf16*)in, kind, grad_weight, grad_bias, rows, out_width, in_width, adds);
#endif
}
