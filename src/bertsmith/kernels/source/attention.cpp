// What attention does between its matrix products: tokens to heads and back, and the softmax with its derivative.
#include <cmath>
#include <vector>

#include "numbers.h"
#include "reach.h"
#include "rotation.h"
#include "threads.h"

namespace {

// Where the tokens of some sequences stand, and how long their block is.
struct Sequences {
    int64_t count;
    const int64_t *starts, *lengths;
    int64_t longest, heads, head_size;
};

// Rows of `tokens` hold `parts` times all heads; block p holds part p as [sequences, heads, longest, head_size]. The
// first two parts are rotated where there are tables.
template <class T>
void to_heads(const T* tokens, T* blocks, const Sequences& all, int64_t parts, const float* cosine,
              const float* sine) {
    const int64_t size = all.head_size, width = all.heads * size, block = all.count * width * all.longest;
#pragma omp parallel for collapse(2) schedule(static) if (block > 8192)
    for (int64_t sequence = 0; sequence < all.count; sequence++)
        for (int64_t place = 0; place < all.longest; place++) {
            const bool real = place < all.lengths[sequence];
            const int64_t token = all.starts[sequence] + place;
            for (int64_t part = 0; part < parts; part++)
                for (int64_t head = 0; head < all.heads; head++) {
                    T* to = blocks + part * block + ((sequence * all.heads + head) * all.longest + place) * size;
                    const T* from = tokens + token * parts * width + part * width + head * size;
                    if (!real)
                        std::memset((void*)to, 0, size * sizeof(T));
                    else if (cosine && part < 2)
                        rotate(from, to, cosine + token * size, sine + token * size, 1.0f, size);
                    else
                        std::memcpy((void*)to, (const void*)from, size * sizeof(T));
                }
        }
}

template <class T>
void from_heads(const T* blocks, T* tokens, const Sequences& all, int64_t parts, const float* cosine,
                const float* sine) {
    const int64_t size = all.head_size, width = all.heads * size, block = all.count * width * all.longest;
#pragma omp parallel for schedule(static) if (block > 8192)
    for (int64_t sequence = 0; sequence < all.count; sequence++)
        for (int64_t place = 0; place < all.lengths[sequence]; place++) {
            const int64_t token = all.starts[sequence] + place;
            for (int64_t part = 0; part < parts; part++)
                for (int64_t head = 0; head < all.heads; head++) {
                    const T* from = blocks + part * block + ((sequence * all.heads + head) * all.longest + place) * size;
                    T* to = tokens + token * parts * width + part * width + head * size;
                    if (cosine && part < 2)
                        rotate(from, to, cosine + token * size, sine + token * size, -1.0f, size);
                    else
                        std::memcpy((void*)to, (const void*)from, size * sizeof(T));
                }
        }
}

// A part of the queries and of the keys of some sequences.
struct Tile {
    int64_t sequences, heads, queries, keys, first_query, first_key;
    const int64_t* lengths;
    Reach reach;
    float scale;
    int64_t first_row;  // what dropout counts rows from

    // The keys that a query sees, as places in the tile; nothing for padding.
    void seen(int64_t sequence, int64_t query, int64_t& first, int64_t& last) const {
        const int64_t place = first_query + query, length = lengths[sequence];
        reach.seen(place, length, first, last);
        first = first > first_key ? first - first_key : 0;
        last = last - first_key < keys ? last - first_key : keys;
        if (place >= length || last <= first) first = last = 0;
    }
    int64_t rows() const { return sequences * heads * queries; }
};

template <class T>
void softmax(T* scores, float* logarithms, const Tile& tile, const Dropout& dropout) {
    const int64_t rows = tile.rows();
#pragma omp parallel if (rows * tile.keys > 8192)
    {
        std::vector<float> buffer(tile.keys);
        float* row_values = buffer.data();
#pragma omp for schedule(static)
        for (int64_t row = 0; row < rows; row++) {
            T* score = scores + row * tile.keys;
            int64_t first, last;
            tile.seen(row / tile.queries / tile.heads, row % tile.queries, first, last);
            float highest = -INFINITY, sum = 0.0f;
#pragma omp simd reduction(max : highest)
            for (int64_t i = first; i < last; i++) {
                const float value = widened(score[i]) * tile.scale;
                row_values[i] = value;
                highest = value > highest ? value : highest;
            }
#pragma omp simd reduction(+ : sum)
            for (int64_t i = first; i < last; i++) {
                const float value = exponential(row_values[i] - highest);
                row_values[i] = value;
                sum += value;
            }
            if (logarithms) logarithms[row] = first < last ? highest + std::log(sum) : 0.0f;
            const float share = first < last ? 1.0f / sum : 0.0f;
            std::memset((void*)score, 0, first * sizeof(T));
            std::memset((void*)(score + last), 0, (tile.keys - last) * sizeof(T));
            if (dropout.is_on()) {
                const uint32_t key = row_key(dropout.seed, tile.first_row + row);
                const uint32_t below = dropout.dropped_below;
                const float scale_kept = dropout.scale;
#pragma omp simd
                for (int64_t i = first; i < last; i++)
                    score[i] = narrowed<T>(row_values[i] * share * kept(key, i, below, scale_kept));
            } else {
#pragma omp simd
                for (int64_t i = first; i < last; i++) score[i] = narrowed<T>(row_values[i] * share);
            }
        }
    }
}

// Scores become the weights that were used, and the gradient of the weights becomes that of the scores.
template <class T>
void softmax_backward(T* scores, T* grads, const float* logarithms, const Tile& tile, const Dropout& dropout) {
    const int64_t rows = tile.rows();
#pragma omp parallel if (rows * tile.keys > 8192)
    {
        std::vector<float> buffer(2 * tile.keys);
        float *weights = buffer.data(), *wanted = weights + tile.keys;
#pragma omp for schedule(static)
        for (int64_t row = 0; row < rows; row++) {
            T *score = scores + row * tile.keys, *grad = grads + row * tile.keys;
            int64_t first, last;
            tile.seen(row / tile.queries / tile.heads, row % tile.queries, first, last);
            const float logarithm = logarithms[row];
            float mean = 0.0f;
            if (dropout.is_on()) {
                const uint32_t key = row_key(dropout.seed, tile.first_row + row);
                const uint32_t below = dropout.dropped_below;
                const float scale_kept = dropout.scale;
#pragma omp simd reduction(+ : mean)
                for (int64_t i = first; i < last; i++) {
                    const float factor = kept(key, i, below, scale_kept);
                    weights[i] = exponential(widened(score[i]) * tile.scale - logarithm);
                    wanted[i] = widened(grad[i]) * factor;
                    mean += weights[i] * wanted[i];
                    score[i] = narrowed<T>(weights[i] * factor);
                }
            } else {
#pragma omp simd reduction(+ : mean)
                for (int64_t i = first; i < last; i++) {
                    weights[i] = exponential(widened(score[i]) * tile.scale - logarithm);
                    wanted[i] = widened(grad[i]);
                    mean += weights[i] * wanted[i];
                    score[i] = narrowed<T>(weights[i]);
                }
            }
            std::memset((void*)score, 0, first * sizeof(T));
            std::memset((void*)(score + last), 0, (tile.keys - last) * sizeof(T));
            std::memset((void*)grad, 0, first * sizeof(T));
            std::memset((void*)(grad + last), 0, (tile.keys - last) * sizeof(T));
#pragma omp simd
            for (int64_t i = first; i < last; i++)
                grad[i] = narrowed<T>(weights[i] * (wanted[i] - mean) * tile.scale);
        }
    }
}

}  // namespace

// Between tokens `[tokens, parts, heads, head_size]` and blocks `[parts, sequences, heads, longest, head_size]`; padding
// rows of a block are 0. The tables `[tokens, head_size]` of the rotation may be null.
extern "C" void rearrange_heads(int narrow, int to_blocks, void* tokens, void* blocks, int64_t parts, int64_t sequences,
                                const int64_t* starts, const int64_t* lengths, int64_t longest, int64_t heads,
                                int64_t head_size, const float* cosine, const float* sine) {
    const Sequences all{sequences, starts, lengths, longest, heads, head_size};
    if (narrow && to_blocks)
        to_heads((const bf16*)tokens, (bf16*)blocks, all, parts, cosine, sine);
    else if (narrow)
        from_heads((const bf16*)blocks, (bf16*)tokens, all, parts, cosine, sine);
    else if (to_blocks)
        to_heads((const float*)tokens, (float*)blocks, all, parts, cosine, sine);
    else
        from_heads((const float*)blocks, (float*)tokens, all, parts, cosine, sine);
}

// Scores `[sequences, heads, queries, keys]` in place. With `grads`, of the same shape, the backward pass. `logarithms`
// `[sequences, heads, queries]`, of each row's sum of exponentials, may be null in the forward pass.
extern "C" void attention_softmax(int narrow, void* scores, void* grads, float* logarithms, int64_t sequences,
                                  int64_t heads, int64_t queries, int64_t keys, int64_t first_query, int64_t first_key,
                                  const int64_t* lengths, int causal, int64_t half_window, float scale, float dropped,
                                  uint64_t seed, int64_t first_row) {
    const Tile tile{sequences, heads,   queries, keys, first_query, first_key, lengths, {causal, half_window},
                    scale,     first_row};
    const Dropout dropout(dropped, seed);
    if (narrow)
        grads ? softmax_backward((bf16*)scores, (bf16*)grads, logarithms, tile, dropout)
              : softmax((bf16*)scores, logarithms, tile, dropout);
    else
        grads ? softmax_backward((float*)scores, (float*)grads, logarithms, tile, dropout)
              : softmax((float*)scores, logarithms, tile, dropout);
}
