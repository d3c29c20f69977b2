// The sum of the embeddings that a token has, and the norm of it, for inference: each token in one pass over memory.
#include "rows.h"
#include "threads.h"

#if HAS_VECTORS

namespace {

struct Table {
    const int64_t* rows;  // of each token; null: row 0 for all
    const float* values;  // null: no table

    const float* of(int64_t token, int64_t width) const { return values + (rows ? rows[token] * width : 0); }
};

// `row` is `padded` wide, a multiple of 16, and so are the norm's vectors.
void embed(const Table* tables, int64_t token, const Norm& norm, float eps, float* row, int64_t width, int64_t padded) {
    for (int64_t i = 0; i < padded; i += 16) {
        const __mmask16 real = lanes(i, width);
        __m512 sum = _mm512_maskz_loadu_ps(real, tables[0].of(token, width) + i);
        for (int j = 1; j < 3; j++)
            if (tables[j].values) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(real, tables[j].of(token, width) + i));
        _mm512_storeu_ps(row + i, sum);
    }
    normalise(row, row, norm, eps, width, padded);
}

}  // namespace

#endif

// `[tokens, width]`: the norm of the sum of a token's rows in up to three tables, of which the second and the third may
// be null. Each id must be a row of its table; without ids all tokens have the first. The norm's vectors are filled up
// to a multiple of 16, and its bias may be null.
extern "C" void embed_tokens(const int64_t* first_ids, const float* first, const int64_t* second_ids,
                             const float* second, const int64_t* third_ids, const float* third, const float* weight,
                             const float* bias, float eps, float* out, int64_t tokens, int64_t width) {
#if HAS_VECTORS
    const Table tables[3] = {{first_ids, first}, {second_ids, second}, {third_ids, third}};
    const int64_t padded = rounded_up(width, 16);
#pragma omp parallel
    {
        Buffer<float> row(padded);
#pragma omp for schedule(static)
        for (int64_t token = 0; token < tokens; token++) {
            embed(tables, token, {weight, bias}, eps, row, width, padded);
            std::memcpy(out + token * width, row, width * sizeof(float));
        }
    }
#endif
}
