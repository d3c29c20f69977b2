// Positions as rotations of a head's columns.
#pragma once

#include "numbers.h"

// Column i goes with column i + size / 2, and `sine` is negative in its first half. A direction of -1 turns back. `from`
// may be `to`.
template <class From, class To>
void rotate(const From* from, To* to, const float* cosine, const float* sine, float direction, int64_t size) {
    const int64_t half = size / 2;
#pragma omp simd
    for (int64_t i = 0; i < half; i++) {
        const float low = widened(from[i]), high = widened(from[i + half]);
        to[i] = narrowed<To>(low * cosine[i] + high * sine[i] * direction);
        to[i + half] = narrowed<To>(high * cosine[i + half] + low * sine[i + half] * direction);
    }
}
