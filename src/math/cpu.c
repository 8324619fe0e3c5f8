/* cpu.c - the cpu backend's operations on rows. Rows are taken in pieces, with a poll after
 * each; one row of any type is in cpu_row.c, the arithmetic in cpu_kernels.c. */
#include "math/cpu.h"

#include <time.h>

#include "base/cpu_level.h"
#include "math/cpu_row.h"
#include "math/team.h"

static zero_status cpu_open(zero_math *math)
{
    ZERO_TRY(zero_cpu_level_check());
    const zero_panel_kernels *panels = zero_panels_at(0);
    const bool is_portable = math->bits == ZERO_BITS_PORTABLE;
    math->state[ZERO_CPU_KERNELS] = zero_cpu_kernels_at(0);
    math->state[ZERO_CPU_PANELS] = panels;
    math->state[ZERO_CPU_FP32_PRODUCTS] =
        math->bits == ZERO_BITS_FASTEST ? zero_packed_fp32() : &panels->packed;
    math->state[ZERO_CPU_BF16_PRODUCTS] = is_portable ? NULL : zero_packed_bf16();
    return ZERO_OK;
}

static zero_products products(const zero_math *math, zero_type factors)
{
    const zero_packed_kernels *kernels = zero_cpu_fp32_of(math);
    if (factors == ZERO_BF16 && zero_cpu_bf16_of(math)) kernels = zero_cpu_bf16_of(math);
    return (zero_products){
        kernels ? kernels->name : "BLAS",
        kernels == &zero_cpu_panels_of(math)->packed,
    };
}

static zero_status cpu_sync(ZERO_UNUSED const zero_math *math)
{
    return ZERO_OK; /* every call has finished when it returns */
}

/* Row r of `cols` elements is done. */
static inline void poll_after(const zero_math *math, int64_t r, int64_t cols)
{
    if ((r + 1) % zero_row_piece(cols) == 0) zero_math_poll(math);
}

static void add_bias_to(const zero_math *math, const void *arg, int64_t first, int64_t end)
{
    const zero_bias *a = arg;
    const int64_t cols = a->cols;
    const float *bias = zero_row_weights(math, a->type, cols, a->bias, 0);
    for (int64_t r = first; r < end; r++) {
        zero_row_add_bias(math, a->rows_type, cols, bias,
                          zero_type_to(a->rows_type, a->x, r * cols));
        poll_after(math, r, cols);
    }
}

static void add_bias(const zero_math *math, const zero_bias *b)
{
    zero_team_share(math, b->rows, 1, add_bias_to, b);
}

/* Sums over rows: threads have columns. */
static void sum_rows(const zero_math *math, const void *arg, int64_t first, int64_t end)
{
    const zero_bias_grad *a = arg;
    const int64_t n = end - first;
    for (int64_t r = 0; r < a->rows; r++) {
        zero_row_sum(math, a->rows_type, n,
                     zero_type_at(a->rows_type, a->dy, r * a->cols + first),
                     a->dbias + first);
        poll_after(math, r, n);
    }
}

static void begin_sums(const zero_bias_grad *b)
{
    if (!b->accumulate) zero_clear(b->dbias, b->cols);
}

static void bias_backward(const zero_math *math, const zero_bias_grad *b)
{
    begin_sums(b);
    zero_team_share(math, b->cols, ZERO_TEAM_LINE, sum_rows, b);
}

typedef struct {
    const zero_dropout *d;
    zero_type type;
    int64_t n;
    const void *x;
    void *y;
} drop_call;

/* Pieces of ZERO_CPU_PIECE elements, of which none has two samples. */
static void drop_pieces(const zero_math *math, const void *arg, int64_t first, int64_t end)
{
    const drop_call *a = arg;
    const int64_t pieces = zero_divide_up(a->n, ZERO_CPU_PIECE);
    for (int64_t i = first; i < end; i++) {
        const int64_t b = i / pieces, at = i % pieces * ZERO_CPU_PIECE;
        zero_row_mask mask = {a->d->stream, a->d->p, at};
        mask.stream.sample += (uint64_t)b;
        zero_row_drop(math, a->type, &mask, zero_min(a->n - at, ZERO_CPU_PIECE),
                      zero_type_at(a->type, a->x, b * a->n + at),
                      zero_type_to(a->type, a->y, b * a->n + at));
        zero_math_poll(math);
    }
}

static void dropout(const zero_math *math, const zero_dropout *d, zero_type rows_type,
                    int64_t B, int64_t n, const void *x, void *y)
{
    const drop_call a = {d, rows_type, n, x, y};
    zero_team_share(math, B * zero_divide_up(n, ZERO_CPU_PIECE), 1, drop_pieces, &a);
}

static void add_branch_rows(const zero_math *math, const void *arg, int64_t first,
                            int64_t end)
{
    const zero_branch *b = arg;
    const int64_t cols = b->cols;
    const float *bias = zero_row_weights(math, b->type, cols, b->bias, 0);
    for (int64_t r = first; r < end; r++) {
        zero_row_mask mask = {b->dropout.stream, b->dropout.p, r % b->T * cols};
        mask.stream.sample += (uint64_t)(r / b->T);
        zero_row_add_branch(math, b->rows_type, &mask, cols, bias,
                            zero_type_at(b->rows_type, b->residual, r * cols),
                            zero_type_at(b->rows_type, b->in, r * cols),
                            zero_type_to(b->rows_type, b->out, r * cols));
        poll_after(math, r, cols);
    }
}

static void add_branch(const zero_math *math, const zero_branch *b)
{
    zero_team_share(math, b->B * b->T, 1, add_branch_rows, b);
}

/* x += bias, y = gelu(x as it is stored); y must not be x. */
static void bias_gelu_rows(const zero_math *math, const void *arg, int64_t first,
                           int64_t end)
{
    const zero_bias *a = arg;
    const zero_cpu_kernels *kernels = zero_cpu_kernels_of(math);
    const int64_t cols = a->cols;
    const float *bias = zero_row_weights(math, a->type, cols, a->bias, 0);
    for (int64_t r = first; r < end; r++) {
        void *x = zero_type_to(a->rows_type, a->x, r * cols);
        void *y = zero_type_to(a->rows_type, a->y, r * cols);
        if (a->rows_type == ZERO_FP32)
            kernels->bias_gelu(a->is_exact, cols, bias, x, y);
        else
            kernels->half_bias_gelu(a->rows_type, a->is_exact, cols, bias, x, y);
        poll_after(math, r, cols);
    }
}

static void bias_gelu(const zero_math *math, const zero_bias *b)
{
    zero_team_share(math, b->rows, 1, bias_gelu_rows, b);
}

/* dx = dy * gelu'(x), dbias += dx as it is stored; as in sum_rows(), threads have
 * columns. */
static void bias_gelu_slopes(const zero_math *math, const void *arg, int64_t first,
                             int64_t end)
{
    const zero_bias_grad *a = arg;
    const zero_cpu_kernels *kernels = zero_cpu_kernels_of(math);
    const int64_t n = end - first;
    for (int64_t r = 0; r < a->rows; r++) {
        const int64_t at = r * a->cols + first;
        const void *x = zero_type_at(a->rows_type, a->x, at);
        const void *dy = zero_type_at(a->rows_type, a->dy, at);
        void *dx = zero_type_to(a->rows_type, a->dx, at);
        float *dbias = a->dbias + first;
        if (a->rows_type == ZERO_FP32)
            kernels->bias_gelu_backward(a->is_exact, n, x, dy, dx, dbias);
        else
            kernels->half_gelu_backward(a->rows_type, a->is_exact, n, x, dy, dx, dbias);
        poll_after(math, r, n);
    }
}

static void bias_gelu_backward(const zero_math *math, const zero_bias_grad *b)
{
    begin_sums(b);
    zero_team_share(math, b->cols, ZERO_TEAM_LINE, bias_gelu_slopes, b);
}

static void swiglu_rows(const zero_math *math, const void *arg, int64_t first, int64_t end)
{
    const zero_swiglu *s = arg;
    const zero_type type = s->rows_type;
    for (int64_t r = first; r < end; r++) {
        const void *z = zero_type_at(type, s->x, 2 * r * s->F);
        zero_row_swiglu(math, type, s->F, z, zero_type_at(type, z, s->F),
                        zero_type_to(type, s->y, r * s->F));
        poll_after(math, r, s->F);
    }
}

static void swiglu(const zero_math *math, const zero_swiglu *s)
{
    zero_team_share(math, s->rows, 1, swiglu_rows, s);
}

static void swiglu_slopes(const zero_math *math, const void *arg, int64_t first,
                          int64_t end)
{
    const zero_swiglu *s = arg;
    const zero_type type = s->rows_type;
    for (int64_t r = first; r < end; r++) {
        const void *z = zero_type_at(type, s->x, 2 * r * s->F);
        void *d = zero_type_to(type, s->d, 2 * r * s->F);
        zero_row_swiglu_backward(math, type, s->F, z, zero_type_at(type, z, s->F), d,
                                 zero_type_to(type, d, s->F));
        poll_after(math, r, s->F);
    }
}

static void swiglu_backward(const zero_math *math, const zero_swiglu *s)
{
    zero_team_share(math, s->rows, 1, swiglu_slopes, s);
}

/* The row of a token in a table of the words from `first` on, or -1: another rank has
 * it. */
static int64_t row_of(int32_t token, int64_t first, int64_t words)
{
    if (words == 0) return token;
    return first <= token && token < first + words ? token - first : -1;
}

static const float zeros[ZERO_VECTOR_TILE];

/* out[C] = row `word` + position t, if there are any; zeros are added if the words are
 * shared. */
static void embed(const zero_embedding *e, int64_t word, int64_t t, void *out)
{
    const int64_t step = e->words > 0 ? ZERO_VECTOR_TILE : e->C;
    for (int64_t c = 0; c < e->C; c += step) {
        zero_vector_sum pair = {.type = e->type,
                                .a = zero_type_at(e->type, e->wte, word * e->C + c)};
        if (e->wpe) pair.b = zero_type_at(e->type, e->wpe, t * e->C + c);
        if (e->words > 0) pair.pending[pair.depth++] = zeros;
        zero_vector_kernels_best()->sum(&pair, zero_min(e->C - c, step), e->rows_type,
                                        zero_type_to(e->rows_type, out, c), false);
    }
}

static void embed_rows(const zero_math *math, const void *arg, int64_t first, int64_t end)
{
    const zero_embedding *e = arg;
    const int64_t C = e->C;
    for (int64_t i = first; i < end; i++) {
        const int64_t word = row_of(e->tokens[i], e->first, e->words);
        void *out = zero_type_to(e->rows_type, e->out, i * C);
        if (word >= 0)
            embed(e, word, zero_embedding_position(e, i), out);
        else
            memset(out, 0, (size_t)C * zero_type_size(e->rows_type));
        poll_after(math, i, C);
    }
}

static void embedding(const zero_math *math, const zero_embedding *e)
{
    zero_team_share(math, e->B * e->T, 1, embed_rows, e);
}

/* A word may be at many positions, so threads have channels. */
static void embedding_slopes(const zero_math *math, const void *arg, int64_t first,
                             int64_t end)
{
    const zero_embedding_grad *e = arg;
    const int64_t C = e->C, n = end - first;
    for (int64_t i = 0; i < e->B * e->T; i++) {
        const int64_t row = row_of(e->tokens[i], e->first, e->words);
        const void *dout = zero_type_at(e->rows_type, e->dout, i * C + first);
        if (row >= 0) zero_row_sum(math, e->rows_type, n, dout, e->dwte + row * C + first);
        if (e->dwpe)
            zero_row_sum(math, e->rows_type, n, dout, e->dwpe + i % e->T * C + first);
        poll_after(math, i, n);
    }
}

static void embedding_backward(const zero_math *math, const zero_embedding_grad *e)
{
    zero_team_share(math, e->C, ZERO_TEAM_LINE, embedding_slopes, e);
}

/* ---- the contest of kernels for bf16 factors ---- */

enum { TRIAL_M = 96, TRIAL_N = 64, TRIAL_K = 256, TRIALS = 9 };

/* The processor time of this thread alone: other programs on its core must not change a
 * choice that decides bits. */
static int64_t own_nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int64_t measure(const zero_math *math, int i)
{
    static const uint16_t a[TRIAL_M * TRIAL_K], b[TRIAL_K * TRIAL_N]; /* zeros */
    float c[TRIAL_M * TRIAL_N];
    const zero_packed_kernels *kernels =
        i < ZERO_PACKED_BF16 ? zero_packed_bf16_at(i) : zero_cpu_fp32_of(math);
    const zero_gemm g = {.m = TRIAL_M,
                         .n = TRIAL_N,
                         .k = TRIAL_K,
                         .factors = ZERO_BF16,
                         .a_type = ZERO_BF16,
                         .b_type = ZERO_BF16,
                         .a = a,
                         .b = b,
                         .c = c,
                         .lda = TRIAL_K,
                         .ldb = TRIAL_N,
                         .ldc = TRIAL_N};
    const zero_math quiet = {.scratch = math->scratch};
    int64_t least = INT64_MAX;
    for (int t = 0; kernels && t < TRIALS; t++) {
        const int64_t begun = own_nanoseconds();
        zero_cpu_packed_gemm(&quiet, kernels, &g);
        least = zero_min(least, zero_max(own_nanoseconds() - begun, 1));
    }
    return least;
}

static void take(zero_math *math, int i)
{
    math->state[ZERO_CPU_BF16_PRODUCTS] =
        i < ZERO_PACKED_BF16 ? zero_packed_bf16_at(i) : NULL;
}

static const zero_contest contest = {ZERO_PACKED_BF16 + 1, measure, take};

const zero_backend zero_backend_cpu = {
    .name = "cpu",
    .about = "fast",
    .open = cpu_open,
    .sync = cpu_sync,
    .products = products,
    .contest = &contest,
    .clear = zero_cpu_clear,
    .gemm = zero_cpu_gemm,
    .add_bias = add_bias,
    .bias_backward = bias_backward,
    .add_branch = add_branch,
    .dropout = dropout,
    .bias_gelu = bias_gelu,
    .bias_gelu_backward = bias_gelu_backward,
    .layernorm = zero_cpu_layernorm,
    .layernorm_backward = zero_cpu_layernorm_backward,
    .swiglu = swiglu,
    .swiglu_backward = swiglu_backward,
    .turn = zero_cpu_turn,
    .turn_backward = zero_cpu_turn_backward,
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
