/* cpu.c - the cpu backend's operations on rows. Rows are taken in pieces, with a poll after
 * each; the arithmetic is in cpu_kernels.c. */
#include <assert.h>
#include <string.h>

#include "base/type.h"
#include "base/vector.h"
#include "math/cpu_attention.h"
#include "math/cpu_cached.h"
#include "math/cpu_flat.h"
#include "math/cpu_gemm.h"
#include "math/cpu_loss.h"
#include "math/cpu_state.h"
#include "math/team.h"

static zero_status cpu_open(zero_math *math)
{
    math->state[ZERO_CPU_KERNELS] = zero_cpu_kernels_at(0);
    math->state[ZERO_CPU_FP32_PRODUCTS] = zero_packed_fp32();
    math->state[ZERO_CPU_BF16_PRODUCTS] = zero_packed_bf16();
    math->state[ZERO_CPU_PANELS] = zero_panels_at(0);
    return ZERO_OK;
}

static zero_status cpu_sync(const zero_math *math)
{
    (void)math; /* every call has finished when it returns */
    return ZERO_OK;
}

static int64_t rows_per_piece(int64_t cols)
{
    return cols < ZERO_CPU_PIECE ? ZERO_CPU_PIECE / cols : 1;
}

/* A whole bias or gain as floats: in place, or in the scratch from `at` on. */
static const float *widened(const zero_math *math, zero_type type, int64_t n, const void *x,
                            int64_t at)
{
    if (type == ZERO_FP32) return x;
    assert(at + n <= zero_math_scratch());
    zero_convert(type, ZERO_FP32, n, x, math->scratch + at);
    return math->scratch + at;
}

static void add_bias_to(const zero_math *math, const void *arg, int64_t first, int64_t end)
{
    const zero_bias *a = arg;
    const int64_t cols = a->cols;
    const zero_cpu_kernels *kernels = zero_cpu_kernels_of(math);
    const float *b = widened(math, a->type, cols, a->bias, 0);
    float *x = a->x;
    for (int64_t r = first; r < end; r++) {
        kernels->add(cols, x + r * cols, b, x + r * cols);
        if ((r + 1) % rows_per_piece(cols) == 0) zero_math_poll(math);
    }
}

static void add_bias(const zero_math *math, const zero_bias *b)
{
    assert(b->rows_type == ZERO_FP32);
    zero_team_share(math, b->rows, 1, add_bias_to, b);
}

/* Sums over rows: threads have columns. */
static void sum_rows(const zero_math *math, const void *arg, int64_t first, int64_t end)
{
    const zero_bias_grad *a = arg;
    const zero_cpu_kernels *kernels = zero_cpu_kernels_of(math);
    const int64_t n = end - first;
    const float *dy = a->dy;
    float *sum = a->dbias + first;
    for (int64_t r = 0; r < a->rows; r++) {
        kernels->add(n, sum, dy + r * a->cols + first, sum);
        if ((r + 1) % rows_per_piece(n) == 0) zero_math_poll(math);
    }
}

static void begin_sums(const zero_bias_grad *b)
{
    if (!b->accumulate) memset(b->dbias, 0, (size_t)b->cols * sizeof *b->dbias);
}

static void bias_backward(const zero_math *math, const zero_bias_grad *b)
{
    assert(b->rows_type == ZERO_FP32);
    begin_sums(b);
    zero_team_share(math, b->cols, ZERO_TEAM_LINE, sum_rows, b);
}

/* y[i] = x[i] * mask element first + i, i < n; y may be x. */
static void drop(const zero_math *math, const zero_rng *stream, float p, int64_t first,
                 int64_t n, const float *x, float *y)
{
    float mask[1024];
    const int64_t most = sizeof mask / sizeof mask[0];
    for (int64_t at = 0; at < n; at += most) {
        int64_t len = zero_min(n - at, most);
        zero_rng_dropout(stream, p, (uint64_t)(first + at), len, mask);
        zero_cpu_kernels_of(math)->multiply(len, x + at, mask, y + at);
    }
}

typedef struct {
    const zero_dropout *d;
    int64_t n;
    const float *x;
    float *y;
} drop_call;

/* Pieces of ZERO_CPU_PIECE elements, of which none has two samples. */
static void drop_pieces(const zero_math *math, const void *arg, int64_t first, int64_t end)
{
    const drop_call *a = arg;
    const int64_t pieces = zero_divide_up(a->n, ZERO_CPU_PIECE);
    for (int64_t i = first; i < end; i++) {
        const int64_t b = i / pieces, at = i % pieces * ZERO_CPU_PIECE;
        const int64_t len = zero_min(a->n - at, ZERO_CPU_PIECE);
        const float *x = a->x + b * a->n + at;
        float *y = a->y + b * a->n + at;
        zero_rng stream = a->d->stream;
        stream.sample += (uint64_t)b;
        if (a->d->p > 0.0f)
            drop(math, &stream, a->d->p, at, len, x, y);
        else
            memmove(y, x, (size_t)len * sizeof *y);
        zero_math_poll(math);
    }
}

static void dropout(const zero_math *math, const zero_dropout *d, zero_type rows_type,
                    int64_t B, int64_t n, const void *x, void *y)
{
    const drop_call a = {d, n, x, y};
    assert(rows_type == ZERO_FP32);
    (void)rows_type;
    zero_team_share(math, B * zero_divide_up(n, ZERO_CPU_PIECE), 1, drop_pieces, &a);
}

/* Row r: bias, mask and residual while it is in L1. */
static void add_masked_branch(const zero_math *math, const zero_branch *b,
                              const float *bias, int64_t r)
{
    const zero_cpu_kernels *kernels = zero_cpu_kernels_of(math);
    const int64_t cols = b->cols;
    const float *in = (const float *)b->in + r * cols;
    const float *residual = (const float *)b->residual + r * cols;
    float *out = (float *)b->out + r * cols;
    zero_rng stream = b->dropout.stream;
    stream.sample += (uint64_t)(r / b->T);
    kernels->add(cols, in, bias, out);
    drop(math, &stream, b->dropout.p, r % b->T * cols, cols, out, out);
    kernels->add(cols, residual, out, out);
}

static void add_branch_rows(const zero_math *math, const void *arg, int64_t first,
                            int64_t end)
{
    const zero_branch *b = arg;
    const int64_t cols = b->cols;
    const float *bias = widened(math, b->type, cols, b->bias, 0);
    const float *residual = b->residual, *in = b->in;
    float *out = b->out;
    for (int64_t r = first; r < end; r++) {
        if (b->dropout.p > 0.0f)
            add_masked_branch(math, b, bias, r);
        else
            zero_cpu_kernels_of(math)->add_branch(cols, bias, residual + r * cols,
                                                  in + r * cols, out + r * cols);
        if ((r + 1) % rows_per_piece(cols) == 0) zero_math_poll(math);
    }
}

static void add_branch(const zero_math *math, const zero_branch *b)
{
    assert(b->rows_type == ZERO_FP32);
    zero_team_share(math, b->B * b->T, 1, add_branch_rows, b);
}

static void bias_gelu_rows(const zero_math *math, const void *arg, int64_t first,
                           int64_t end)
{
    const zero_bias *a = arg;
    const int64_t cols = a->cols;
    const float *wide = widened(math, a->type, cols, a->bias, 0);
    float *x = a->x, *y = a->y;
    for (int64_t r = first; r < end; r++) {
        zero_cpu_kernels_of(math)->bias_gelu(cols, wide, x + r * cols, y + r * cols);
        if ((r + 1) % rows_per_piece(cols) == 0) zero_math_poll(math);
    }
}

static void bias_gelu(const zero_math *math, const zero_bias *b)
{
    assert(b->rows_type == ZERO_FP32);
    zero_team_share(math, b->rows, 1, bias_gelu_rows, b);
}

/* As in sum_rows(), threads have columns. */
static void bias_gelu_slopes(const zero_math *math, const void *arg, int64_t first,
                             int64_t end)
{
    const zero_bias_grad *a = arg;
    const int64_t n = end - first;
    const float *x = a->x, *dy = a->dy;
    float *dx = a->dx;
    for (int64_t r = 0; r < a->rows; r++) {
        const int64_t at = r * a->cols + first;
        zero_cpu_kernels_of(math)->bias_gelu_backward(n, x + at, dy + at, dx + at,
                                                      a->dbias + first);
        if ((r + 1) % rows_per_piece(n) == 0) zero_math_poll(math);
    }
}

static void bias_gelu_backward(const zero_math *math, const zero_bias_grad *b)
{
    assert(b->rows_type == ZERO_FP32);
    begin_sums(b);
    zero_team_share(math, b->cols, ZERO_TEAM_LINE, bias_gelu_slopes, b);
}

static void layernorm_rows(const zero_math *math, const void *arg, int64_t first,
                           int64_t end)
{
    const zero_layernorm_args *n = arg;
    const int64_t C = n->C, step = rows_per_piece(C);
    zero_layernorm_args piece = *n;
    piece.type = ZERO_FP32;
    piece.gain = widened(math, n->type, C, n->gain, 0);
    piece.bias = widened(math, n->type, C, n->bias, C);
    for (int64_t r = first; r < end; r += step) {
        piece.rows = zero_min(end - r, step);
        piece.x = zero_type_at(n->rows_type, n->x, r * C);
        piece.y = zero_type_to(n->rows_type, n->y, r * C);
        piece.mean = n->mean + r;
        piece.rstd = n->rstd + r;
        zero_cpu_kernels_of(math)->layernorm(&piece);
        zero_math_poll(math);
    }
}

static void layernorm(const zero_math *math, const zero_layernorm_args *n)
{
    assert(n->rows_type == ZERO_FP32);
    zero_team_share(math, n->rows, 1, layernorm_rows, n);
}

/* dgain and dbias, too, unless they are NULL. */
static void layernorm_slopes(const zero_math *math, const void *arg, int64_t first,
                             int64_t end)
{
    const zero_layernorm_grad_args *n = arg;
    const int64_t C = n->C, step = rows_per_piece(C);
    zero_layernorm_grad_args piece = *n;
    piece.type = ZERO_FP32;
    piece.gain = widened(math, n->type, C, n->gain, 0);
    for (int64_t r = first; r < end; r += step) {
        piece.rows = zero_min(end - r, step);
        piece.x = zero_type_at(n->rows_type, n->x, r * C);
        piece.mean = n->mean + r;
        piece.rstd = n->rstd + r;
        piece.dy = zero_type_at(n->rows_type, n->dy, r * C);
        piece.dx = zero_type_to(n->rows_type, n->dx, r * C);
        zero_cpu_kernels_of(math)->layernorm_backward(&piece);
        zero_math_poll(math);
    }
}

static void layernorm_sums(const zero_math *math, const void *arg, int64_t first,
                           int64_t end)
{
    const zero_layernorm_grad_args *n = arg;
    const int64_t step = rows_per_piece(end - first);
    zero_layernorm_grad_args piece = *n;
    for (int64_t r = 0; r < n->rows; r += step) {
        piece.rows = zero_min(n->rows - r, step);
        piece.x = zero_type_at(n->rows_type, n->x, r * n->C);
        piece.mean = n->mean + r;
        piece.rstd = n->rstd + r;
        piece.dy = zero_type_at(n->rows_type, n->dy, r * n->C);
        zero_cpu_kernels_of(math)->layernorm_sums(&piece, first, end);
        zero_math_poll(math);
    }
}

/* dx is a row's, dgain and dbias are sums over rows: several threads read x and dy twice. */
static void layernorm_backward(const zero_math *math, const zero_layernorm_grad_args *n)
{
    assert(n->rows_type == ZERO_FP32);
    const bool is_shared = math->threads > 1;
    zero_layernorm_grad_args all = *n, rows = *n;
    all.accumulate = rows.accumulate = true;
    if (is_shared) rows.dgain = rows.dbias = NULL;
    if (!n->accumulate) {
        memset(n->dgain, 0, (size_t)n->C * sizeof *n->dgain);
        memset(n->dbias, 0, (size_t)n->C * sizeof *n->dbias);
    }
    zero_team_share(math, n->rows, 1, layernorm_slopes, &rows);
    if (is_shared) zero_team_share(math, n->C, ZERO_TEAM_LINE, layernorm_sums, &all);
}

/* The row of a token in a table of the words from `first` on, or -1: another rank has it. */
static int64_t row_of(int32_t token, int64_t first, int64_t words)
{
    if (words == 0) return token;
    return first <= token && token < first + words ? token - first : -1;
}

static const float zeros[ZERO_VECTOR_TILE];

/* out[C] = row `word` + position t; zeros are added if the words are shared. */
static void embed(const zero_embedding *e, int64_t word, int64_t t, float *out)
{
    const int64_t step = e->words > 0 ? ZERO_VECTOR_TILE : e->C;
    for (int64_t c = 0; c < e->C; c += step) {
        zero_vector_sum pair = {.type = e->type,
                                .a = zero_type_at(e->type, e->wte, word * e->C + c),
                                .b = zero_type_at(e->type, e->wpe, t * e->C + c)};
        if (e->words > 0) pair.pending[pair.depth++] = zeros;
        zero_vector_kernels_best()->sum(&pair, zero_min(e->C - c, step), ZERO_FP32, out + c,
                                        false);
    }
}

static void embed_rows(const zero_math *math, const void *arg, int64_t first, int64_t end)
{
    const zero_embedding *e = arg;
    const int64_t C = e->C;
    float *out = e->out;
    for (int64_t i = first; i < end; i++) {
        const int64_t word = row_of(e->tokens[i], e->first, e->words);
        if (word >= 0)
            embed(e, word, zero_embedding_position(e, i), out + i * C);
        else
            memset(out + i * C, 0, (size_t)C * sizeof *out);
        if ((i + 1) % rows_per_piece(C) == 0) zero_math_poll(math);
    }
}

static void embedding(const zero_math *math, const zero_embedding *e)
{
    assert(e->rows_type == ZERO_FP32);
    zero_team_share(math, e->B * e->T, 1, embed_rows, e);
}

/* A word may be at many positions, so threads have channels. */
static void embedding_slopes(const zero_math *math, const void *arg, int64_t first,
                             int64_t end)
{
    const zero_embedding_grad *e = arg;
    const zero_cpu_kernels *kernels = zero_cpu_kernels_of(math);
    const int64_t C = e->C, n = end - first;
    for (int64_t i = 0; i < e->B * e->T; i++) {
        const int64_t row = row_of(e->tokens[i], e->first, e->words);
        const float *dout = (const float *)e->dout + i * C + first;
        float *place = e->dwpe + i % e->T * C + first;
        float *word = row >= 0 ? e->dwte + row * C + first : NULL;
        if (word) kernels->add(n, word, dout, word);
        kernels->add(n, place, dout, place);
        if ((i + 1) % rows_per_piece(n) == 0) zero_math_poll(math);
    }
}

static void embedding_backward(const zero_math *math, const zero_embedding_grad *e)
{
    assert(e->rows_type == ZERO_FP32);
    zero_team_share(math, e->C, ZERO_TEAM_LINE, embedding_slopes, e);
}

const zero_backend zero_backend_cpu = {
    .name = "cpu",
    .about = "fast",
    .open = cpu_open,
    .sync = cpu_sync,
    .clear = zero_cpu_clear,
    .gemm = zero_cpu_gemm,
    .add_bias = add_bias,
    .bias_backward = bias_backward,
    .add_branch = add_branch,
    .dropout = dropout,
    .bias_gelu = bias_gelu,
    .bias_gelu_backward = bias_gelu_backward,
    .layernorm = layernorm,
    .layernorm_backward = layernorm_backward,
    .attention_workspace = zero_cpu_attention_workspace,
    .attention = zero_cpu_attention,
    .attention_backward = zero_cpu_attention_backward,
    .remember = zero_cpu_remember,
    .recall = zero_cpu_recall,
    .embedding = embedding,
    .embedding_backward = embedding_backward,
    .cross_entropy = zero_cpu_cross_entropy,
    .softmax_slices = zero_cpu_softmax_slices,
    .softmax_loss = zero_cpu_softmax_loss,
    .adamw = zero_cpu_adamw,
    .sum_squares = zero_cpu_sum_squares,
    .exact_squares = zero_cpu_exact_squares,
    .round = zero_cpu_round,
    .accumulate = zero_cpu_accumulate,
};
