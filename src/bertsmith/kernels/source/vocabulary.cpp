// What the loss over the vocabulary does with a block of scores between its matrix products.
#include <vector>

#include "numbers.h"
#include "threads.h"

namespace {

template <class T>
void add_sums(const T* scores, const float* weights, float* sums, int64_t tokens, int64_t rows) {
    const int threads = rows * tokens > 16384 ? most_threads() : 1;
    std::vector<float> parts(size_t(threads) * rows, 0.0f);
#pragma omp parallel num_threads(threads)
    {
        float* part = parts.data() + size_t(this_thread()) * rows;
#pragma omp for schedule(static)
        for (int64_t token = 0; token < tokens; token++) {
            const T* score = scores + token * rows;
            const float weight = weights[token];
#pragma omp simd
            for (int64_t i = 0; i < rows; i++) part[i] += exponential(widened(score[i])) * weight;
        }
    }
    // In the order of the threads, so that the same number of threads gives the same sums.
    for (int thread = 0; thread < threads; thread++)
        for (int64_t i = 0; i < rows; i++) sums[i] += parts[size_t(thread) * rows + i];
}

template <class T>
void to_gradients(T* scores, const float* weights, const float* row_weights, float* totals, int64_t tokens,
                  int64_t rows) {
#pragma omp parallel for schedule(static) if (rows * tokens > 16384)
    for (int64_t token = 0; token < tokens; token++) {
        T* score = scores + token * rows;
        const float weight = weights[token];
        float total = 0.0f;
#pragma omp simd reduction(+ : total)
        for (int64_t i = 0; i < rows; i++) {
            const float value = exponential(widened(score[i])) * weight * row_weights[i];
            total += value;
            score[i] = narrowed<T>(value);
        }
        totals[token] = total;
    }
}

}  // namespace

// Scores are `[tokens of the vocabulary, rows of the batch]`. Adds `sum_j exp(score_ji) weight_j` to each row's sum.
extern "C" void exponential_sums(int narrow, const void* scores, const float* weights, float* sums, int64_t tokens,
                                 int64_t rows) {
    if (narrow)
        add_sums((const bf16*)scores, weights, sums, tokens, rows);
    else
        add_sums((const float*)scores, weights, sums, tokens, rows);
}

// Scores become `exp(score_ji) weight_j row_weight_i`, and the sums over each token's rows are given.
extern "C" void exponential_gradients(int narrow, void* scores, const float* weights, const float* row_weights,
                                      float* totals, int64_t tokens, int64_t rows) {
    if (narrow)
        to_gradients((bf16*)scores, weights, row_weights, totals, tokens, rows);
    else
        to_gradients((float*)scores, weights, row_weights, totals, tokens, rows);
}
