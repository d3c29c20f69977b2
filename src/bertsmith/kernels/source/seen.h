// Attention of inference: what a head of a sequence finds, from queries, keys and values in fp32 or bf16. Nothing is
// kept for a backward pass, and a group of queries has its scores in the first cache.
#pragma once

#include "reach.h"
#include "rows.h"

#if HAS_VECTORS

// Heads of some sequences that stand one after the other. A head's columns are filled up with zeros to whole panels.
template <class Kind>
struct Heads {
    using Number = typename Kind::Number;
    const Number* rows;  // [tokens, 3, heads, padded]; a few more can be read behind the last
    float* found;        // [tokens, heads, padded]
    int64_t heads, size, padded;
    Reach reach;

    int64_t stride() const { return 3 * heads * padded; }
    const Number* part(int64_t token, int64_t which, int64_t head) const {
        return rows + token * stride() + (which * heads + head) * padded;
    }
};

// A thread's place for one head of a sequence.
template <class Kind>
struct HeadDesk {
    using Number = typename Kind::Number;
    static constexpr int64_t GROUP = Kind::GROUP, IN_WORD = 4 / sizeof(Number);
    Buffer<uint32_t> keys, values;
    Buffer<float> scores, found;
    Buffer<Number> weights;

    HeadDesk(int64_t longest, int64_t padded)
        : keys(rounded_up(longest, PANEL) * padded / IN_WORD),
          values(rounded_up(longest, PANEL) * padded / IN_WORD),
          scores(GROUP * rounded_up(longest, PANEL)),
          found(GROUP * padded),
          weights(GROUP * rounded_up(longest, PANEL)) {}

    void attend(const Heads<Kind>& all, int64_t start, int64_t length, int64_t head) const {
        const int64_t places = rounded_up(length, PANEL);
        const float scale = 1.0f / std::sqrt(float(all.size));
        lay_out(all, start, length, head, places);
        for (int64_t query = 0; query < length; query += GROUP) {
            const int64_t count = length - query < GROUP ? length - query : GROUP;
            int64_t first, last, unused;
            all.reach.seen(query, length, first, unused);
            all.reach.seen(query + count - 1, length, unused, last);
            first = first / PANEL * PANEL;
            last = rounded_up(last, PANEL);
            for (int64_t key = first; key < last; key += PANEL)
                word_product<Kind>(scores + key, places, all.part(start + query, 0, head),
                                   sizeof(Number) * all.stride(), keys + key, places, all.padded / IN_WORD, count);
            float shares[GROUP];
            for (int64_t i = 0; i < count; i++) {
                int64_t from, to;
                all.reach.seen(query + i, length, from, to);
                shares[i] = 1.0f / weigh(scores + i * places, weights + i * places, scale, first, from, to, last);
            }
            for (int64_t column = 0; column < all.padded; column += PANEL)
                word_product<Kind>(found + column, all.padded, weights + first, sizeof(Number) * places,
                                   values + first / IN_WORD * all.padded + column, all.padded,
                                   (last - first) / IN_WORD, count);
            for (int64_t i = 0; i < count; i++) {
                float* to = all.found + ((start + query + i) * all.heads + head) * all.padded;
                const __m512 share = _mm512_set1_ps(shares[i]);
                for (int64_t j = 0; j < all.padded; j += 16)
                    _mm512_storeu_ps(to + j, _mm512_mul_ps(_mm512_loadu_ps(found + i * all.padded + j), share));
            }
        }
    }

private:
    // Keys and values as right operands. Keys behind the last are hidden by their scores, whatever they are; values
    // there are zero.
    void lay_out(const Heads<Kind>& all, int64_t start, int64_t length, int64_t head, int64_t places) const {
        for (int64_t key = 0; key < places; key += 16)
            for (int64_t word = 0; word < all.padded / IN_WORD; word += 16)
                transpose_words((const uint32_t*)all.part(start + key, 1, head) + word, all.stride() / IN_WORD,
                                keys + word * places + key, places);
        for (int64_t key = 0; key < places; key += IN_WORD)
            for (int64_t i = 0; i < all.padded; i += 16)
                _mm512_storeu_si512(values + key / IN_WORD * all.padded + i,
                                    value_words(all.part(start + key, 2, head) + i, all.stride(), length - key));
    }

    // 16 columns of as many rows as a word has numbers, of which `left` are there.
    static __m512i value_words(const Number* rows, int64_t stride, int64_t left) {
        if constexpr (IN_WORD == 1) {
            return left > 0 ? _mm512_loadu_si512(rows) : _mm512_setzero_si512();
        } else {
            const __m256i none = _mm256_setzero_si256();
            const __m256i first = left > 0 ? _mm256_loadu_si256((const __m256i*)rows) : none;
            const __m256i second = left > 1 ? _mm256_loadu_si256((const __m256i*)(rows + stride)) : none;
            return paired(first, second);
        }
    }

    // Scores between `first` and `last` become weights, not yet divided by their sum; gives that sum. Those outside
    // `from` and `to` are hidden.
    static float weigh(float* scores, Number* weights, float scale, int64_t first, int64_t from, int64_t to,
                       int64_t last) {
        for (int64_t i = first; i < from; i++) scores[i] = -INFINITY;
        for (int64_t i = to; i < last; i++) scores[i] = -INFINITY;
        __m512 most = _mm512_set1_ps(-INFINITY), sum = _mm512_setzero_ps();
        for (int64_t i = first; i < last; i += 16) most = _mm512_max_ps(most, _mm512_loadu_ps(scores + i));
        const float highest = _mm512_reduce_max_ps(most);
        for (int64_t i = first; i < last; i += 16) {
            const __m512 weight = weight_of<Kind>(_mm512_loadu_ps(scores + i), highest, scale);
            sum = _mm512_add_ps(sum, weight);
            put(weights + i, weight);
        }
        return _mm512_reduce_add_ps(sum);
    }
};

#endif
