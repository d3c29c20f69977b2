// Sums of squares, a part at a time, so that the parts can be added up in one order whatever the threads.
#include "numbers.h"

// `parts` has a sum for each `part` numbers begun.
extern "C" void sums_of_squares(const float* values, int64_t count, int64_t part, double* parts) {
#pragma omp parallel for schedule(static) if (count > 16384)
    for (int64_t start = 0; start < count; start += part) {
        const int64_t stop = start + part < count ? start + part : count;
        float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = start; i < stop; i++) sum += values[i] * values[i];
        parts[start / part] = sum;
    }
}
