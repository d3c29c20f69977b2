// All layers of an encoder for inference. A thread takes some sequences through every layer while they stay in its
// second cache, and weights pass by in the third; where there are too few sequences for that, the threads share the
// parts of each layer. A number depends on its own sequence alone, to the bit.
#include <vector>

#include "rotation.h"
#include "seen.h"
#include "threads.h"

#if HAS_VECTORS

namespace {

// Tokens that a thread takes through all layers.
constexpr int64_t BLOCK_TOKENS = 128;
// Numbers between the two products of a feed-forward that wait in the second cache.
constexpr int64_t BETWEEN_NUMBERS = 1 << 17;

struct Shape {
    int64_t width, heads, size;
    int activation, gated, norm_first, causal;
    float eps;

    int64_t padded_width() const { return rounded_up(width, PANEL); }
    int64_t padded_size() const { return rounded_up(size, PANEL); }
};

// As `kernels/encoding.py` writes it: each field is a word of 8 bytes.
struct Layer {
    Matrix query_key_value, output, up, down;
    Norm attention_norm, feed_forward_norm;
    int64_t half_window;
    const float *cosine, *sine;  // [tokens, size], or null
};

// Sequences that stand one after the other, `first` being their first token.
struct Sequences {
    const int64_t* starts;
    int64_t count, first, tokens;

    int64_t start(int64_t number) const { return starts[number] - first; }
    int64_t length(int64_t number) const { return starts[number + 1] - starts[number]; }
    int64_t longest() const {
        int64_t most = 0;
        for (int64_t i = 0; i < count; i++) most = length(i) > most ? length(i) : most;
        return most;
    }
};

// How the parts of a layer are shared: a thread does them all, or all threads do some and wait for each other.
struct Alone {
    static int64_t threads() { return 1; }
    template <class Each>
    void each(int64_t count, Each each) const {
        for (int64_t i = 0; i < count; i++) each(i);
    }
};
struct Together {
    static int64_t threads() { return omp_get_num_threads(); }
    template <class Each>
    void each(int64_t count, Each each) const {
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < count; i++) each(i);
    }
};

// What some sequences are between two parts of a layer.
template <class Kind>
struct Block {
    Buffer<float> stream;  // the residual stream
    Operand<Kind> input;
    MadeOperand<Kind> context;  // what attention finds
    Buffer<typename Kind::InAttention::Number> query_key_value;

    Block(int64_t tokens, const Shape& shape, const Layer& layer)
        : stream((tokens + Kind::GROUP) * shape.padded_width()),
          input(tokens, layer.query_key_value.words),
          context(tokens, shape.heads * shape.padded_size(), layer.output.words),
          query_key_value((tokens + PANEL) * 3 * shape.heads * shape.padded_size()) {}
};

// A thread's own place.
template <class Kind>
struct Desk {
    int64_t rows;  // of a feed-forward at a time
    MadeOperand<Kind> between;
    Buffer<float> row;
    Buffer<typename Kind::Sum> sums;
    HeadDesk<typename Kind::InAttention> head;

    Desk(int64_t longest, const Shape& shape, const Layer& layer)
        : rows(rounded_up(BETWEEN_NUMBERS / columns(shape, layer), Kind::GROUP)),
          between(rows, columns(shape, layer), layer.down.words),
          row(shape.padded_width()),
          sums(Kind::GROUP * PANEL),
          head(longest, shape.padded_size()) {}

    static int64_t columns(const Shape& shape, const Layer& layer) {
        return layer.up.count * (shape.gated ? PANEL / 2 : PANEL);
    }
};

template <class Kind, class Team>
struct Encoding {
    const Shape& shape;
    const Sequences& sequences;
    const Block<Kind>& block;
    const Desk<Kind>& desk;
    Team team;

    // Goes through the tokens a part at a time.
    template <class Each>
    void each_part(int64_t most, Each each) const {
        const int64_t own = rounded_up((sequences.tokens + team.threads() - 1) / team.threads(), Kind::GROUP);
        const int64_t size = own < most ? own : most;
        team.each((sequences.tokens + size - 1) / size, [&](int64_t part) {
            const int64_t first = part * size, left = sequences.tokens - first;
            each(first, left < size ? left : size);
        });
    }

    float* stream(int64_t row) const { return block.stream + row * shape.padded_width(); }

    void run(const Layer* layers, int64_t count, const float* hidden, float* out) const {
        const int64_t bytes = shape.width * sizeof(float), rest = shape.padded_width() * sizeof(float) - bytes;
        each_part(BLOCK_TOKENS, [&](int64_t first, int64_t rows) {
            for (int64_t row = first; row < first + rows; row++) {
                std::memcpy(stream(row), hidden + row * shape.width, bytes);
                std::memset(stream(row) + shape.width, 0, rest);
            }
        });
        for (int64_t i = 0; i < count; i++) layer(layers[i]);
        each_part(BLOCK_TOKENS, [&](int64_t first, int64_t rows) {
            for (int64_t row = first; row < first + rows; row++)
                std::memcpy(out + row * shape.width, stream(row), bytes);
        });
    }

    void layer(const Layer& layer) const {
        const Norm none{nullptr, nullptr};
        each_part(BLOCK_TOKENS, [&](int64_t first, int64_t rows) {
            read(first, rows, shape.norm_first ? layer.attention_norm : none);
            project(layer, first, rows);
        });
        const Heads<typename Kind::InAttention> heads{block.query_key_value, block.context.row(0), shape.heads,
                                                      shape.size, shape.padded_size(),
                                                      {shape.causal, layer.half_window}};
        team.each(sequences.count * shape.heads, [&](int64_t item) {
            const int64_t sequence = item / shape.heads;
            desk.head.attend(heads, sequences.start(sequence), sequences.length(sequence), item % shape.heads);
        });
        each_part(desk.rows, [&](int64_t first, int64_t rows) {
            block.context.narrow(first, rows);
            add(block.context.operand, first, rows, layer.output, first);
            if (!shape.norm_first) settle(first, rows, layer.attention_norm);
            read(first, rows, shape.norm_first ? layer.feed_forward_norm : none);
            feed_forward(layer, first, rows);
            if (!shape.norm_first) settle(first, rows, layer.feed_forward_norm);
        });
    }

    // The residual stream, or its norm, as the next product reads it.
    void read(int64_t first, int64_t rows, const Norm& norm) const {
        for (int64_t row = first; row < first + rows; row++) {
            if (norm.weight) normalise(stream(row), desk.row, norm, shape.eps, shape.width, shape.padded_width());
            block.input.narrow(row, norm.weight ? desk.row.get() : stream(row), shape.padded_width());
        }
    }

    // The residual stream becomes its norm.
    void settle(int64_t first, int64_t rows, const Norm& norm) const {
        for (int64_t row = first; row < first + rows; row++)
            normalise(stream(row), stream(row), norm, shape.eps, shape.width, shape.padded_width());
    }

    void project(const Layer& layer, int64_t first, int64_t rows) const {
        const int64_t size = shape.padded_size(), stride = 3 * shape.heads * size;
        auto* out = block.query_key_value.get();
        multiply(block.input, first, rows, layer.query_key_value, desk.sums.get(),
                 [&](int64_t row, int64_t column, __m512 low, __m512 high) {
                     put(out + row * stride + column, low);
                     put(out + row * stride + column + 16, high);
                 });
        for (int64_t row = first; layer.cosine && row < first + rows; row++) {
            const int64_t place = (sequences.first + row) * shape.size;
            for (int64_t head = 0; head < 2 * shape.heads; head++) {
                auto* turned = out + row * stride + head * size;
                rotate(turned, turned, layer.cosine + place, layer.sine + place, 1.0f, shape.size);
            }
        }
    }

    // The residual stream and a product, whose rows begin at `from` in its left operand.
    void add(const Operand<Kind>& left, int64_t from, int64_t rows, const Matrix& matrix, int64_t first) const {
        multiply(left, from, rows, matrix, desk.sums.get(), [&](int64_t row, int64_t column, __m512 low, __m512 high) {
            float* to = stream(first + row - from) + column;
            _mm512_storeu_ps(to, _mm512_add_ps(_mm512_loadu_ps(to), low));
            _mm512_storeu_ps(to + 16, _mm512_add_ps(_mm512_loadu_ps(to + 16), high));
        });
    }

    void feed_forward(const Layer& layer, int64_t first, int64_t rows) const {
        activate(layer, first, rows);
        desk.between.narrow(0, rows);
        add(desk.between.operand, 0, rows, layer.down, first);
    }

    // Of a gated feed-forward, a panel holds 16 columns that are activated and the 16 that they are multiplied with.
    void activate(const Layer& layer, int64_t first, int64_t rows) const {
        multiply(block.input, first, rows, layer.up, desk.sums.get(),
                 [&](int64_t row, int64_t column, __m512 low, __m512 high) {
                     float* to = desk.between.row(row - first);
                     if (shape.gated) {
                         _mm512_storeu_ps(to + column / 2, _mm512_mul_ps(activated<Kind>(shape.activation, low), high));
                     } else {
                         _mm512_storeu_ps(to + column, activated<Kind>(shape.activation, low));
                         _mm512_storeu_ps(to + column + 16, activated<Kind>(shape.activation, high));
                     }
                 });
    }
};

template <class Kind>
void encode(const Shape& shape, const Layer* layers, int64_t count, const float* hidden, float* out,
            const int64_t* starts, int64_t sequences) {
    // The first sequence of each block.
    std::vector<int64_t> firsts{0};
    for (int64_t i = 1; i < sequences; i++)
        if (starts[i + 1] - starts[firsts.back()] > BLOCK_TOKENS) firsts.push_back(i);
    const int64_t blocks = firsts.size();
    firsts.push_back(sequences);
    if (blocks < 2 * most_threads() && most_threads() > 1) {
        const Sequences all{starts, sequences, starts[0], starts[sequences] - starts[0]};
        const Block<Kind> block(all.tokens, shape, layers[0]);
#pragma omp parallel
        {
            const typename Kind::Scope scope;
            const Desk<Kind> desk(all.longest(), shape, layers[0]);
            Encoding<Kind, Together>{shape, all, block, desk, {}}.run(layers, count, hidden, out);
        }
        return;
    }
    int64_t tokens = 0;
    for (int64_t i = 0; i < blocks; i++) {
        const int64_t own = starts[firsts[i + 1]] - starts[firsts[i]];
        tokens = own > tokens ? own : tokens;
    }
    const int64_t longest = Sequences{starts, sequences, 0, 0}.longest();
#pragma omp parallel
    {
        const typename Kind::Scope scope;
        const Block<Kind> block(tokens, shape, layers[0]);
        const Desk<Kind> desk(longest, shape, layers[0]);
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = blocks - 1; i >= 0; i--) {
            const int64_t first = starts[firsts[i]];
            const Sequences own{starts + firsts[i], firsts[i + 1] - firsts[i], first, starts[firsts[i + 1]] - first};
            const int64_t at = first * shape.width;
            Encoding<Kind, Alone>{shape, own, block, desk, {}}.run(layers, count, hidden + at, out + at);
        }
    }
}

}  // namespace

#endif

// Kinds of numbers, as `kernels/encoding.py` names them.
enum { FP32, BF16, INT8 };

// Whether `encode_tokens` is there, with numbers of a kind.
extern "C" int encodes(int numbers) {
#if HAS_VECTORS
    if (numbers == FP32) return 1;
#if HAS_TILES
    if (numbers == BF16) return tiles_are_allowed();
#endif
#if TILES_BY_AMX && defined(__AMX_INT8__)
    if (numbers == INT8) return tiles_are_allowed();
#elif !TILES_BY_AMX && defined(__AVX512VNNI__)
    if (numbers == INT8) return 1;
#endif
#endif
    return 0;
}

// The residual stream `[tokens, width]` after some layers; `out` may be `hidden`. Sequences lie between `starts`, one
// after the other. `activation` is the kind of `activate`.
extern "C" void encode_tokens(int numbers, const void* layers, int64_t count, const float* hidden, float* out,
                              const int64_t* starts, int64_t sequences, int64_t width, int64_t heads,
                              int64_t head_size, int activation, int gated, int norm_first, int causal, float eps) {
#if HAS_VECTORS
    const Shape shape{width, heads, head_size, activation, gated, norm_first, causal, eps};
    const auto encode_all = numbers == FP32 ? encode<Fp32> : numbers == BF16 ? encode<Bf16> : encode<Int8>;
    if (sequences) encode_all(shape, (const Layer*)layers, count, hidden, out, starts, sequences);
#endif
}
