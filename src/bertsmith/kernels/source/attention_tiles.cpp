// Attention of packed tokens, matrix products included, a head of a sequence at a time: scores live in a core's caches,
// and the backward pass makes them again.
#include <cmath>

#include "reach.h"
#include "rotation.h"
#include "threads.h"
#include "tiles.h"

#if HAS_TILES

namespace {

constexpr int64_t GROUP = 128;  // queries whose gradients for keys and values are summed in one product

struct Attention {
    const bf16* tokens;  // [tokens, 3, heads, head_size]
    const int64_t *starts, *lengths;
    int64_t sequences, heads, size;
    Reach reach;
    float scale;
    Dropout dropout;
    const float *cosine, *sine;  // [tokens, head_size], or null
    float* logarithms;           // [tokens, heads]: of each query's sum of exponentials

    int64_t longest() const {
        int64_t most = 0;
        for (int64_t i = 0; i < sequences; i++) most = lengths[i] > most ? lengths[i] : most;
        return rounded_up(most, TILE);
    }
    // Whole tiles of keys that any of some queries sees.
    void range(int64_t first_query, int64_t queries, int64_t length, int64_t& first, int64_t& last) const {
        int64_t unused;
        const int64_t last_query = first_query + queries < length ? first_query + queries - 1 : length - 1;
        reach.seen(first_query, length, first, unused);
        reach.seen(last_query, length, unused, last);
        first = first / TILE * TILE;
        last = rounded_up(last, TILE);
    }
};

inline __m512i mixed(__m512i x) {
    x = _mm512_xor_si512(x, _mm512_srli_epi32(x, 16));
    x = _mm512_mullo_epi32(x, _mm512_set1_epi32(0x7feb352d));
    x = _mm512_xor_si512(x, _mm512_srli_epi32(x, 15));
    x = _mm512_mullo_epi32(x, _mm512_set1_epi32(int(0x846ca68bu)));
    return _mm512_xor_si512(x, _mm512_srli_epi32(x, 16));
}

// The factors that dropout has for 16 keys of a row: 0, or what the others are multiplied with.
inline __m512 kept(uint32_t key, int64_t column, const Dropout& dropout) {
    const __m512i steps = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i columns = _mm512_add_epi32(steps, _mm512_set1_epi32(int(column)));
    const __m512i place = _mm512_mullo_epi32(columns, _mm512_set1_epi32(int(0x9e3779b9u)));
    const __m512i drawn = mixed(_mm512_add_epi32(_mm512_set1_epi32(int(key)), place));
    const __mmask16 stays = _mm512_cmpge_epu32_mask(drawn, _mm512_set1_epi32(int(dropout.dropped_below)));
    return _mm512_maskz_mov_ps(stays, _mm512_set1_ps(dropout.scale));
}

// Which of 16 columns lie between two.
inline __mmask16 inside(int64_t column, int64_t first, int64_t last) {
    const int64_t from = first - column, to = last - column;
    const uint32_t below_last = to >= 16 ? 0xffffu : to <= 0 ? 0u : (1u << to) - 1u;
    const uint32_t below_first = from >= 16 ? 0xffffu : from <= 0 ? 0u : (1u << from) - 1u;
    return __mmask16(below_last & ~below_first);
}

// One of query, key and value of a head, its rows together and zeros behind the last.
void take(const Attention& all, int64_t sequence, int64_t head, int64_t part, bf16* rows) {
    const int64_t length = all.lengths[sequence], stride = 3 * all.heads * all.size;
    const bf16* from = all.tokens + all.starts[sequence] * stride + (part * all.heads + head) * all.size;
    for (int64_t row = 0; row < length; row++) {
        const int64_t place = (all.starts[sequence] + row) * all.size;
        if (all.cosine && part < 2)
            rotate(from + row * stride, rows + row * all.size, all.cosine + place, all.sine + place, 1.0f, all.size);
        else
            std::memcpy((void*)(rows + row * all.size), (const void*)(from + row * stride), all.size * sizeof(bf16));
    }
    const int64_t missing = rounded_up(length, TILE) - length;
    std::memset((void*)(rows + length * all.size), 0, missing * all.size * sizeof(bf16));
}

// Scores of 32 queries for the keys of a range.
void products(float* scores, const bf16* queries, const uint32_t* keys, int64_t padded, int64_t size, int64_t first,
              int64_t last) {
    for (int64_t key = first; key < last; key += TILE)
        tile_product<false>(scores + key, padded, queries, size, keys + key, padded, size / 32);
}

// --- forward ---

struct Forward {
    Buffer<bf16> query, key, value, weights;
    Buffer<uint32_t> keys, values;
    Buffer<float> scores, found;

    Forward(int64_t padded, int64_t size)
        : query(padded * size),
          key(padded * size),
          value(padded * size),
          weights(TILE * padded),
          keys(padded * size / 2),
          values(padded * size / 2),
          scores(TILE * padded),
          found(TILE * size) {}

    // A row's scores become weights, not yet divided by their sum; gives that sum.
    float weigh(const Attention& all, int64_t row, int64_t padded, uint32_t drop_key, int64_t first, int64_t last,
                int64_t first_key, int64_t last_key, float& highest) {
        const float* score = scores + row * padded;
        bf16* weight = weights + row * padded;
        const __m512 scale = _mm512_set1_ps(all.scale);
        __m512 most = _mm512_set1_ps(-INFINITY), sum = _mm512_setzero_ps();
        for (int64_t i = first_key; i < last_key; i += 16)
            most = _mm512_mask_max_ps(most, inside(i, first, last), most, _mm512_loadu_ps(score + i));
        highest = _mm512_reduce_max_ps(most) * all.scale;
        const __m512 below = _mm512_set1_ps(-highest);
        for (int64_t i = first_key; i < last_key; i += 16) {
            const __mmask16 seen = inside(i, first, last);
            __m512 value = exponential(_mm512_fmadd_ps(_mm512_loadu_ps(score + i), scale, below));
            value = _mm512_maskz_mov_ps(seen, value);
            sum = _mm512_add_ps(sum, value);
            if (all.dropout.is_on()) value = _mm512_mul_ps(value, kept(drop_key, i, all.dropout));
            _mm256_storeu_si256((__m256i*)(weight + i), narrowed(value));
        }
        return _mm512_reduce_add_ps(sum);
    }

    void run(const Attention& all, int64_t sequence, int64_t head, bf16* context) {
        const int64_t length = all.lengths[sequence], padded = rounded_up(length, TILE), size = all.size;
        take(all, sequence, head, 0, query);
        take(all, sequence, head, 1, key);
        take(all, sequence, head, 2, value);
        pair_columns(key, padded, size, keys);
        pair_rows(value, padded, size, values);
        for (int64_t start = 0; start < length; start += TILE) {
            int64_t first_key, last_key;
            all.range(start, TILE, length, first_key, last_key);
            products(scores, query + start * size, keys, padded, size, first_key, last_key);
            float shares[TILE];
            for (int64_t row = 0; row < TILE; row++) {
                const int64_t place = start + row, token = all.starts[sequence] + place;
                if (place >= length) {
                    std::memset((void*)(weights + row * padded), 0, padded * sizeof(bf16));
                    continue;
                }
                int64_t first, last;
                all.reach.seen(place, length, first, last);
                const uint32_t drop_key = row_key(all.dropout.seed, token * all.heads + head);
                float highest;
                const float sum = weigh(all, row, padded, drop_key, first, last, first_key, last_key, highest);
                shares[row] = 1.0f / sum;
                if (all.logarithms) all.logarithms[token * all.heads + head] = highest + std::log(sum);
            }
            for (int64_t column = 0; column < size; column += TILE)
                tile_product<false>(found + column, size, weights + first_key, padded,
                                    values + first_key / 2 * size + column, size, (last_key - first_key) / 32);
            for (int64_t row = 0; row < TILE && start + row < length; row++) {
                bf16* out = context + ((all.starts[sequence] + start + row) * all.heads + head) * size;
                const __m512 share = _mm512_set1_ps(shares[row]);
                for (int64_t i = 0; i < size; i += 16)
                    _mm256_storeu_si256((__m256i*)(out + i),
                                        narrowed(_mm512_mul_ps(_mm512_loadu_ps(found + row * size + i), share)));
            }
        }
    }
};

// --- backward ---

struct Backward {
    Buffer<bf16> query, key, value, wanted, grads;
    Buffer<uint32_t> keys, key_rows, values, pairs, turned_query, turned_wanted, weight_pairs, grad_pairs;
    Buffer<float> scores, grad_weights, grad_query, grad_key, grad_value, turned;

    Backward(int64_t padded, int64_t size)
        : query(padded * size),
          key(padded * size),
          value(padded * size),
          wanted(padded * size),
          grads(TILE * padded),
          keys(padded * size / 2),
          key_rows(padded * size / 2),
          values(padded * size / 2),
          pairs(padded * size / 2),
          turned_query(padded * size / 2),
          turned_wanted(padded * size / 2),
          weight_pairs(GROUP / 2 * padded),
          grad_pairs(GROUP / 2 * padded),
          scores(TILE * padded),
          grad_weights(TILE * padded),
          grad_query(padded * size),
          grad_key(padded * size),
          grad_value(padded * size),
          turned(padded * size) {}

    // Of a row: scores become the weights that were used, and the gradients of the weights those of the scores.
    void grade(const Attention& all, int64_t row, int64_t padded, int64_t token, int64_t head, int64_t first,
               int64_t last, int64_t first_key, int64_t last_key) {
        float *score = scores + row * padded, *grad = grad_weights + row * padded;
        const __m512 scale = _mm512_set1_ps(all.scale);
        const __m512 below = _mm512_set1_ps(-all.logarithms[token * all.heads + head]);
        const uint32_t drop_key = row_key(all.dropout.seed, token * all.heads + head);
        __m512 sum = _mm512_setzero_ps();
        for (int64_t i = first_key; i < last_key; i += 16) {
            __m512 weight = exponential(_mm512_fmadd_ps(_mm512_loadu_ps(score + i), scale, below));
            weight = _mm512_maskz_mov_ps(inside(i, first, last), weight);
            __m512 wanted = _mm512_loadu_ps(grad + i);
            if (all.dropout.is_on()) {
                wanted = _mm512_mul_ps(wanted, kept(drop_key, i, all.dropout));
                _mm512_storeu_ps(grad + i, wanted);
            }
            sum = _mm512_fmadd_ps(weight, wanted, sum);
            _mm512_storeu_ps(score + i, weight);
        }
        const __m512 mean = _mm512_set1_ps(_mm512_reduce_add_ps(sum));
        for (int64_t i = first_key; i < last_key; i += 16) {
            const __m512 weight = _mm512_loadu_ps(score + i);
            const __m512 wanted = _mm512_sub_ps(_mm512_loadu_ps(grad + i), mean);
            _mm512_storeu_ps(grad + i, _mm512_mul_ps(_mm512_mul_ps(weight, wanted), scale));
            if (all.dropout.is_on())
                _mm512_storeu_ps(score + i, _mm512_mul_ps(weight, kept(drop_key, i, all.dropout)));
        }
    }

    void run(const Attention& all, int64_t sequence, int64_t head, const bf16* grad_context, bf16* gradient) {
        const int64_t length = all.lengths[sequence], padded = rounded_up(length, TILE), size = all.size;
        take(all, sequence, head, 0, query);
        take(all, sequence, head, 1, key);
        take(all, sequence, head, 2, value);
        for (int64_t row = 0; row < length; row++)
            std::memcpy((void*)(wanted + row * size),
                        (const void*)(grad_context + ((all.starts[sequence] + row) * all.heads + head) * size),
                        size * sizeof(bf16));
        std::memset((void*)(wanted + length * size), 0, (padded - length) * size * sizeof(bf16));
        pair_columns(key, padded, size, keys);
        pair_columns(value, padded, size, values);
        pair_rows(key, padded, size, key_rows);
        pair_rows(query, padded, size, pairs);
        turn_over(pairs, padded / 2, size, turned_query);
        pair_rows(wanted, padded, size, pairs);
        turn_over(pairs, padded / 2, size, turned_wanted);
        std::memset(grad_key, 0, padded * size * sizeof(float));
        std::memset(grad_value, 0, padded * size * sizeof(float));
        for (int64_t group = 0; group < padded; group += GROUP) {
            const int64_t queries = padded - group < GROUP ? padded - group : GROUP;
            int64_t first_key, last_key;
            all.range(group, queries, length, first_key, last_key);
            for (int64_t start = group; start < group + queries; start += TILE)
                of_queries(all, sequence, head, start, start - group, first_key, last_key);
            // Transposed, since the pairs of queries are the right operand.
            for (int64_t column = 0; column < size; column += TILE)
                for (int64_t place = first_key; place < last_key; place += TILE) {
                    const int64_t to = column * padded + place, from = column * padded + group;
                    tile_product<true>(grad_key + to, padded, (const bf16*)turned_query.get() + from, padded,
                                       grad_pairs + place, padded, queries / 32);
                    tile_product<true>(grad_value + to, padded, (const bf16*)turned_wanted.get() + from, padded,
                                       weight_pairs + place, padded, queries / 32);
                }
        }
        put(all, sequence, head, 0, grad_query, gradient);
        turn_over((const uint32_t*)grad_key.get(), size, padded, (uint32_t*)turned.get());
        put(all, sequence, head, 1, turned, gradient);
        turn_over((const uint32_t*)grad_value.get(), size, padded, (uint32_t*)turned.get());
        put(all, sequence, head, 2, turned, gradient);
    }

    void of_queries(const Attention& all, int64_t sequence, int64_t head, int64_t start, int64_t in_group,
                    int64_t first_key, int64_t last_key) {
        const int64_t length = all.lengths[sequence], padded = rounded_up(length, TILE), size = all.size;
        products(scores, query + start * size, keys, padded, size, first_key, last_key);
        products(grad_weights, wanted + start * size, values, padded, size, first_key, last_key);
        for (int64_t row = 0; row < TILE; row++) {
            const int64_t place = start + row;
            if (place >= length) {
                std::memset(scores + row * padded, 0, padded * sizeof(float));
                std::memset(grad_weights + row * padded, 0, padded * sizeof(float));
                continue;
            }
            int64_t first, last;
            all.reach.seen(place, length, first, last);
            grade(all, row, padded, all.starts[sequence] + place, head, first, last, first_key, last_key);
        }
        for (int64_t row = 0; row < TILE; row += 2)
            for (int64_t i = first_key; i < last_key; i += 16) {
                const int64_t at = row * padded + i, pair = (in_group + row) / 2 * padded + i;
                const __m256i low = narrowed(_mm512_loadu_ps(grad_weights + at));
                const __m256i high = narrowed(_mm512_loadu_ps(grad_weights + at + padded));
                _mm256_storeu_si256((__m256i*)(grads + at), low);
                _mm256_storeu_si256((__m256i*)(grads + at + padded), high);
                _mm512_storeu_si512(grad_pairs + pair, paired(low, high));
                _mm512_storeu_si512(weight_pairs + pair, paired(narrowed(_mm512_loadu_ps(scores + at)),
                                                                narrowed(_mm512_loadu_ps(scores + at + padded))));
            }
        for (int64_t column = 0; column < size; column += TILE)
            tile_product<false>(grad_query + start * size + column, size, grads + first_key, padded,
                                key_rows + first_key / 2 * size + column, size, (last_key - first_key) / 32);
    }

    // Gradients of a part back to their tokens, turned back where the part was turned.
    static void put(const Attention& all, int64_t sequence, int64_t head, int64_t part, float* rows, bf16* gradient) {
        const int64_t stride = 3 * all.heads * all.size, size = all.size;
        for (int64_t row = 0; row < all.lengths[sequence]; row++) {
            const int64_t token = all.starts[sequence] + row;
            float* from = rows + row * size;
            bf16* to = gradient + token * stride + (part * all.heads + head) * size;
            if (all.cosine && part < 2)
                rotate(from, from, all.cosine + token * size, all.sine + token * size, -1.0f, size);
            for (int64_t i = 0; i < size; i += 16)
                _mm256_storeu_si256((__m256i*)(to + i), narrowed(_mm512_loadu_ps(from + i)));
        }
    }
};

template <class Work, class... Arguments>
void each_head(const Attention& all, Arguments... arguments) {
    const int64_t items = all.sequences * all.heads, padded = all.longest();
    // Heads are apart from each other, so that who takes which changes no bit.
#pragma omp parallel
    {
        const TileScope scope;
        Work work(padded, all.size);
#pragma omp for schedule(dynamic, 4)
        for (int64_t item = 0; item < items; item++) work.run(all, item / all.heads, item % all.heads, arguments...);
    }
}

}  // namespace

#endif

// What each token finds, `[tokens, heads, head_size]`; with `grad_context`, the gradient of `tokens` instead.
// `head_size` is a multiple of 32; `logarithms`, written forwards and read backwards, may be null forwards.
extern "C" void tiled_attention(const void* tokens, const void* grad_context, void* result, float* logarithms,
                                const int64_t* starts, const int64_t* lengths, int64_t sequences, int64_t heads,
                                int64_t head_size, int causal, int64_t half_window, float scale, float dropped,
                                uint64_t seed, const float* cosine, const float* sine) {
#if HAS_TILES
    const Attention all{(const bf16*)tokens, starts, lengths, sequences, heads, head_size, {causal, half_window},
                        scale, {dropped, seed}, cosine, sine, logarithms};
    if (grad_context)
        each_head<Backward>(all, (const bf16*)grad_context, (bf16*)result);
    else
        each_head<Forward>(all, (bf16*)result);
#endif
}
