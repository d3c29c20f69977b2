// How far a token sees in its sequence.
#pragma once

#include <cstdint>

struct Reach {
    int causal;
    int64_t half_window;  // below 0: all of the sequence

    // The keys that a query sees, the last one excluded.
    void seen(int64_t query, int64_t length, int64_t& first, int64_t& last) const {
        first = half_window >= 0 && query > half_window ? query - half_window : 0;
        last = length;
        if (causal && query + 1 < last) last = query + 1;
        if (half_window >= 0 && query + half_window + 1 < last) last = query + half_window + 1;
    }
};
