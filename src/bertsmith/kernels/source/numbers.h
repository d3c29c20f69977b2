// Numbers as the kernels see them: computed in fp32, kept in fp32 or bf16, with loops that compilers turn into vectors.
#pragma once

#include <cstdint>
#include <cstring>

struct bf16 {
    uint16_t bits;
};

inline float widened(float value) { return value; }

inline float widened(bf16 value) {
    const uint32_t bits = uint32_t(value.bits) << 16;
    float result;
    std::memcpy(&result, &bits, sizeof result);
    return result;
}

template <class T>
inline T narrowed(float value);

template <>
inline float narrowed<float>(float value) {
    return value;
}

// To the nearest, ties to even, as IEEE 754 and torch do it.
template <>
inline bf16 narrowed<bf16>(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    return bf16{uint16_t(is_nan ? 0x7fc0u : rounded)};
}

// e^x to 2 units in the last place: a power of two and a polynomial (Cephes). Beyond fp32's range the nearest number
// inside it.
inline float exponential(float x) {
    x = x < -87.33f ? -87.33f : x;
    x = x > 88.02f ? 88.02f : x;
    const float whole = __builtin_floorf(x * 1.44269504f + 0.5f);
    float rest = x - whole * 0.693359375f;
    rest = rest - whole * -2.12194440e-4f;
    float sum = 1.9875691500e-4f;
    sum = sum * rest + 1.3981999507e-3f;
    sum = sum * rest + 8.3334519073e-3f;
    sum = sum * rest + 4.1665795894e-2f;
    sum = sum * rest + 1.6666665459e-1f;
    sum = sum * rest + 5.0000001201e-1f;
    sum = sum * (rest * rest) + (rest + 1.0f);
    const uint32_t power = uint32_t(int32_t(whole) + 127) << 23;
    float scale;
    std::memcpy(&scale, &power, sizeof scale);
    return sum * scale;
}

inline float inverse(float x) { return 1.0f / x; }

// What dropout draws from: a hash of the place of a number, so that the backward pass draws the same again and nothing
// has to be kept. The mixer is Chris Wellons' "lowbias32".
inline uint32_t mixed(uint32_t x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

inline uint32_t row_key(uint64_t seed, uint64_t row) {
    const uint32_t low = mixed(uint32_t(seed) ^ mixed(uint32_t(row)));
    return mixed(low ^ uint32_t(seed >> 32) ^ mixed(uint32_t(row >> 32) + 0x9e3779b9u));
}

// Share of numbers that dropout sets to zero, and what the others are multiplied with. Held by value inside loops.
struct Dropout {
    uint64_t seed;
    uint32_t dropped_below;
    float scale;

    Dropout(float share, uint64_t seed)
        : seed(seed), dropped_below(uint32_t(double(share) * 4294967296.0)), scale(1.0f / (1.0f - share)) {}
    bool is_on() const { return dropped_below > 0; }
};

// The factor of one number of a row: 0 or `scale`.
inline float kept(uint32_t key, int64_t column, uint32_t dropped_below, float scale) {
    return mixed(key + uint32_t(column) * 0x9e3779b9u) >= dropped_below ? scale : 0.0f;
}
