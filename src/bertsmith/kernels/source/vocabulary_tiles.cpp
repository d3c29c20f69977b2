// The loss over the vocabulary, matrix products included: a score lives in the first cache from its product to its last
// use, and no block of scores is ever written to memory.
#include <vector>

#include "threads.h"
#include "tiles.h"

#if HAS_TILES

namespace {

constexpr int64_t BLOCK = 256;  // tokens of the vocabulary that a thread takes at a time
constexpr int64_t GROUP = 128;  // of which the first cache holds some, while all rows pass by

// Rows of the batch, as the products want them.
struct Rows {
    int64_t count, padded, width;
    Buffer<uint32_t> by_width;  // pairs of columns: [width / 2, padded]
    Buffer<uint32_t> by_row;    // pairs of rows: [padded / 2, width]; made for the backward pass

    Rows(const float* rows, int64_t count, int64_t width, bool backward)
        : count(count),
          padded(rounded_up(count, TILE)),
          width(width),
          by_width(padded * width / 2),
          by_row(backward ? padded * width / 2 : 0) {
        Buffer<bf16> narrow(padded * width);
        narrow_rows(rows, count, padded, width, narrow);
        pair_columns(narrow, padded, width, by_width);
        if (backward) pair_rows(narrow, padded, width, by_row);
    }
};

void forward(const float* projection, const Rows& rows, const float* weights, float* sums, int64_t vocabulary) {
    const int64_t width = rows.width, padded = rows.padded;
    const int threads = most_threads();
    std::vector<float> parts(size_t(threads) * padded, 0.0f);
#pragma omp parallel num_threads(threads)
    {
        const TileScope scope;
        float* part = parts.data() + this_thread() * padded;
        Buffer<bf16> block(GROUP * width);
        Buffer<float> scores(TILE * TILE);
        float token_weights[GROUP];
#pragma omp for schedule(static)
        for (int64_t first = 0; first < vocabulary; first += GROUP) {
            const int64_t tokens = vocabulary - first < GROUP ? vocabulary - first : GROUP;
            narrow_rows(projection + first * width, tokens, GROUP, width, block);
            for (int64_t i = 0; i < GROUP; i++) token_weights[i] = i < tokens ? weights[first + i] : 0.0f;
            for (int64_t row = 0; row < padded; row += TILE)
                for (int64_t token = 0; token < tokens; token += TILE) {
                    tile_product<false>(scores, TILE, block + token * width, width, rows.by_width + row, padded,
                                        width / 32);
                    for (int64_t i = 0; i < TILE; i += 16) {
                        __m512 sum = _mm512_loadu_ps(part + row + i);
                        for (int64_t j = 0; j < TILE; j++)
                            sum = _mm512_fmadd_ps(exponential(_mm512_loadu_ps(scores + j * TILE + i)),
                                                  _mm512_set1_ps(token_weights[token + j]), sum);
                        _mm512_storeu_ps(part + row + i, sum);
                    }
                }
        }
    }
    // In the order of the threads, so that the same number of threads gives the same sums.
    for (int64_t i = 0; i < rows.count; i++) sums[i] = 0.0f;
    for (int thread = 0; thread < threads; thread++)
        for (int64_t i = 0; i < rows.count; i++) sums[i] += parts[thread * padded + i];
}

// What a thread holds while it goes through its blocks.
struct Workspace {
    int64_t width, padded;
    Buffer<bf16> block;        // [BLOCK, width]
    Buffer<uint32_t> pairs;    // the same, pairs of tokens: [BLOCK / 2, width]
    Buffer<uint32_t> turned;   // the same turned over, a pair of tokens a word: [width, BLOCK / 2]
    Buffer<bf16> grads;        // of the scores: [BLOCK, padded]
    Buffer<uint32_t> grad_pairs;  // the same, pairs of tokens: [BLOCK / 2, padded]
    Buffer<float> scores;

    Workspace(int64_t width, int64_t padded)
        : width(width),
          padded(padded),
          block(BLOCK * width),
          pairs(BLOCK / 2 * width),
          turned(BLOCK / 2 * width),
          grads(BLOCK * padded),
          grad_pairs(BLOCK / 2 * padded),
          scores(TILE * TILE) {}

    void take(const float* projection, int64_t tokens) {
        narrow_rows(projection, tokens, BLOCK, width, block);
        pair_rows(block, BLOCK, width, pairs);
        turn_over(pairs, BLOCK / 2, width, turned);
    }

    // Gradients of 32 tokens' scores for 32 rows, from their scores. `totals` has 16 parts of each token's sum.
    void grade(int64_t token, int64_t row, const float* weights, const float* row_weights, float* totals) {
        for (int64_t i = 0; i < TILE; i += 16) {
            const __m512 of_rows = _mm512_loadu_ps(row_weights + i);
            for (int64_t j = 0; j < TILE; j += 2) {
                __m256i halves[2];
                for (int side = 0; side < 2; side++) {
                    const __m512 weight = _mm512_mul_ps(of_rows, _mm512_set1_ps(weights[j + side]));
                    const __m512 score = _mm512_loadu_ps(scores + (j + side) * TILE + i);
                    const __m512 value = _mm512_mul_ps(exponential(score), weight);
                    float* total = totals + (j + side) * 16;
                    _mm512_storeu_ps(total, _mm512_add_ps(_mm512_loadu_ps(total), value));
                    halves[side] = narrowed(value);
                    _mm256_storeu_si256((__m256i*)(grads + (token + j + side) * padded + row + i), halves[side]);
                }
                _mm512_storeu_si512(grad_pairs + (token + j) / 2 * padded + row + i, paired(halves[0], halves[1]));
            }
        }
    }
};

void backward(const float* projection, const Rows& rows, const float* weights, const float* row_weights,
              float* grad_projection, float* grad_bias, float* grad_rows, int64_t vocabulary) {
    const int64_t width = rows.width, padded = rows.padded;
    const int threads = most_threads();
    std::vector<float> parts(size_t(threads) * width * padded, 0.0f);
#pragma omp parallel num_threads(threads)
    {
        const TileScope scope;
        float* part = parts.data() + size_t(this_thread()) * width * padded;  // [width, padded]
        Workspace work(width, padded);
        float token_weights[BLOCK];
        Buffer<float> totals(BLOCK * 16);
#pragma omp for schedule(static)
        for (int64_t first = 0; first < vocabulary; first += BLOCK) {
            const int64_t tokens = vocabulary - first < BLOCK ? vocabulary - first : BLOCK;
            work.take(projection + first * width, tokens);
            for (int64_t i = 0; i < BLOCK; i++) token_weights[i] = i < tokens ? weights[first + i] : 0.0f;
            std::memset(totals, 0, BLOCK * 16 * sizeof(float));
            for (int64_t group = 0; group < BLOCK; group += GROUP)
                for (int64_t row = 0; row < padded; row += TILE)
                    for (int64_t token = group; token < group + GROUP; token += TILE) {
                        tile_product<false>(work.scores, TILE, work.block + token * width, width, rows.by_width + row,
                                            padded, width / 32);
                        work.grade(token, row, token_weights + token, row_weights + row, totals + token * 16);
                    }
            for (int64_t i = 0; i < tokens; i++)
                grad_bias[first + i] = _mm512_reduce_add_ps(_mm512_loadu_ps(totals + i * 16));
            for (int64_t token = 0; token < tokens; token += TILE)
                for (int64_t column = 0; column < width; column += TILE) {
                    float* target = grad_projection + (first + token) * width + column;
                    const bool whole = token + TILE <= tokens;
                    tile_product<false>(whole ? target : work.scores.get(), whole ? width : TILE,
                                        work.grads + token * padded, padded, rows.by_row + column, width, padded / 32);
                    for (int64_t left = token; !whole && left < tokens; left++)
                        std::memcpy(target + (left - token) * width, work.scores + (left - token) * TILE,
                                    TILE * sizeof(float));
                }
            for (int64_t column = 0; column < width; column += TILE)
                for (int64_t row = 0; row < padded; row += TILE)
                    tile_product<true>(part + column * padded + row, padded,
                                       (const bf16*)(work.turned + column * BLOCK / 2), BLOCK, work.grad_pairs + row,
                                       padded, BLOCK / 32);
        }
    }
    for (int64_t row = 0; row < rows.count; row++)
        for (int64_t i = 0; i < width; i++) {
            float sum = 0.0f;
            for (int thread = 0; thread < threads; thread++)
                sum += parts[(size_t(thread) * width + i) * padded + row];
            grad_rows[row * width + i] = sum;
        }
}

}  // namespace

#endif

// For each row of the batch `sum_j exp(projection_j . row) weight_j`; `width` is a multiple of 32.
extern "C" void vocabulary_sums(const float* projection, const float* rows, const float* weights, float* sums,
                                int64_t vocabulary, int64_t count, int64_t width) {
#if HAS_TILES
    forward(projection, Rows(rows, count, width, false), weights, sums, vocabulary);
#endif
}

// With `g_ji = exp(projection_j . row_i) weight_j row_weight_i`: the sums of g over rows, and its products with the rows
// and with the projection.
extern "C" void vocabulary_gradients(const float* projection, const float* rows, const float* weights,
                                     const float* row_weights, float* grad_projection, float* grad_bias,
                                     float* grad_rows, int64_t vocabulary, int64_t count, int64_t width) {
#if HAS_TILES
    const Rows packed(rows, count, width, true);
    Buffer<float> padded_weights(packed.padded);
    std::memset(padded_weights, 0, packed.padded * sizeof(float));
    std::memcpy(padded_weights, row_weights, count * sizeof(float));
    backward(projection, packed, weights, padded_weights, grad_projection, grad_bias, grad_rows, vocabulary);
#endif
}
