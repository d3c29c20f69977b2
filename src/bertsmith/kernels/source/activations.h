// Activations and their derivatives, for a number or for a vector of numbers at a time.
#pragma once

#include "numbers.h"

// Beyond it, GELU leaves all of a number or nothing, to the last place.
constexpr float FAR = 12.0f;

// x times the normal distribution's share below x, after Abramowitz and Stegun 7.1.26 (error below 1.5e-7).
struct Gelu {
    template <class V>
    static V bell(V x) {
        return exponential(x * x * -0.5f);
    }
    template <class V>
    static V below(V x, V bell) {
        const V t = inverse((x < 0.0f ? -x : x) * 0.23164190f + 1.0f);
        V sum = t * 0.530702714f - 0.726576013f;
        sum = t * sum + 0.710706870f;
        sum = t * sum - 0.142248368f;
        sum = t * sum + 0.127414796f;
        const V tail = sum * t * bell;
        return x < 0.0f ? tail : 1.0f - tail;
    }
    template <class V>
    static V value(V x) {
        return x * below(x, bell(x));
    }
    template <class V>
    static V slope(V x) {
        x = x < -FAR ? V{} - FAR : x;
        x = x > FAR ? V{} + FAR : x;
        const V height = bell(x);
        return below(x, height) + x * height * 0.39894228f;
    }
};

struct GeluTanh {
    template <class V>
    static V share(V x) {
        return inverse(exponential(x * (x * x * 0.044715f + 1.0f) * -1.5957691216f) + 1.0f);
    }
    template <class V>
    static V value(V x) {
        return x < -FAR ? V{} : x * share(x);
    }
    template <class V>
    static V slope(V x) {
        x = x < -FAR ? V{} - FAR : x;
        x = x > FAR ? V{} + FAR : x;
        const V below = share(x);
        return below + x * below * (1.0f - below) * (x * x * 0.134145f + 1.0f) * 1.5957691216f;
    }
};

struct Relu {
    template <class V>
    static V value(V x) {
        return x < 0.0f ? V{} : x;
    }
    template <class V>
    static V slope(V x) {
        return x > 0.0f ? V{} + 1.0f : V{};
    }
};
