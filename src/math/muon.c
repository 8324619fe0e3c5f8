/* muon.c - Muon: whole matrices move along the nearest orthogonal one to their momentum.
 *
 *     m = beta1 m + (1 - beta1) g                       momentum
 *     u = beta1 m + (1 - beta1) g                       Nesterov's look ahead
 *     X = u / |u|, then five times X = a X + (b A + c A A) X,  A = X X'   (Newton-Schulz)
 *     w = w - lr decay w - lr scale X
 *
 * The iterations take singular values near 1, in products of fp32, or of bf16 factors whose
 * sums are fp32. Where a matrix has more rows than columns A is X' X, so A is the smaller
 * of the two. Source: Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural
 * networks"; the scale of an update like AdamW's: Liu et al. 2025, arXiv:2502.16982,
 * section 2.2. */
#include "math/rules.h"

#include "math/team.h"

enum { ITERATIONS = 5, GRANULE = 4096 };
static const float a = 3.4445f, b = -4.7750f, c = 2.0315f;

/* ---- element by element ---- */

/* y[n] = p x[n] + q y[n] */
typedef struct {
    float p, q;
    const float *x;
    float *y;
} sum_call;

static void sum_part(const zero_math *math, const void *arg, int64_t first, int64_t end)
{
    const sum_call *s = arg;
    for (int64_t i = first; i < end; i++) s->y[i] = s->p * s->x[i] + s->q * s->y[i];
    zero_math_poll(math);
}

static void sum(const zero_math *math, int64_t n, float p, const float *x, float q,
                float *y)
{
    zero_team_share(math, n, GRANULE, sum_part, &(sum_call){p, q, x, y});
}

typedef struct {
    const zero_adamw *h;
    const zero_adamw_arrays *a;
    float *x;
} momentum_call;

/* x[n] = u */
static void momentum_part(const zero_math *math, const void *arg, int64_t first,
                          int64_t end)
{
    const momentum_call *s = arg;
    const zero_adamw *h = s->h;
    const float rest = 1.0f - h->beta1;
    zero_convert(s->a->type, ZERO_FP32, end - first,
                 zero_type_at(s->a->type, s->a->grad, first), s->x + first);
    for (int64_t i = first; i < end; i++) {
        const float g = s->x[i] * h->grad_scale;
        const float old = zero_rule_flush(s->a->m[i]);
        const float m = h->beta1 * old + rest * g;
        s->a->m[i] = m;
        s->x[i] = h->beta1 * m + rest * g;
    }
    zero_math_poll(math);
}

/* ---- Newton and Schulz ---- */

static int64_t least_side(const zero_tensor *of)
{
    return zero_min(of->rows, of->cols);
}

int64_t zero_muon_room(const zero_tensor *of)
{
    const int64_t m = least_side(of);
    return 2 * of->rows * of->cols + 2 * m * m;
}

double zero_muon_flops(const zero_tensor *of)
{
    const double m = (double)least_side(of), n = (double)(of->rows * of->cols);
    return ITERATIONS * (4.0 * m * n + 2.0 * m * m * m);
}

static void multiply(const zero_backend *backend, const zero_math *math, zero_type factors,
                     zero_gemm g)
{
    g.slices = 1;
    g.factors = factors;
    g.a_type = g.b_type = g.c_type = ZERO_FP32;
    backend->gemm(math, &g);
}

/* x becomes orthogonal; room[zero_muon_room() less its elements]. */
static void orthogonalize(const zero_backend *backend, const zero_math *math,
                          zero_type factors, const zero_tensor *of, float *x, float *room)
{
    const int64_t rows = of->rows, cols = of->cols, n = rows * cols, m = least_side(of);
    const bool is_tall = rows > cols;
    float *A = room, *B = A + m * m, *y = B + m * m;
    double squares;
    backend->sum_squares(math, ZERO_FP32, n, x, &squares);
    const float norm = fmaxf((float)sqrt(squares), 1e-7f);
    sum(math, n, 0.0f, x, 1.0f / norm, x);
    for (int k = 0; k < ITERATIONS; k++) {
        multiply(backend, math, factors,
                 (zero_gemm){.transpose_a = is_tall,
                             .transpose_b = !is_tall,
                             .m = m,
                             .n = m,
                             .k = is_tall ? rows : cols,
                             .a = x,
                             .b = x,
                             .c = A});
        multiply(backend, math, factors,
                 (zero_gemm){.m = m, .n = m, .k = m, .a = A, .b = A, .c = B});
        sum(math, m * m, b, A, c, B);
        multiply(backend, math, factors,
                 (zero_gemm){.m = rows,
                             .n = cols,
                             .k = m,
                             .a = is_tall ? x : B,
                             .b = is_tall ? B : x,
                             .c = y});
        sum(math, n, 1.0f, y, a, x);
    }
}

/* An update of all elements has the root mean square of AdamW's, about 0.2; or as in the
 * first source. */
static float scale_of(zero_muon_scale scale, const zero_tensor *of)
{
    if (scale == ZERO_MUON_RMS) return 0.2f * sqrtf((float)zero_max(of->rows, of->cols));
    const int64_t outputs = of->out_in ? of->rows : of->cols;
    const int64_t inputs = of->out_in ? of->cols : of->rows;
    return sqrtf(fmaxf(1.0f, (float)outputs / (float)inputs));
}

const char *zero_muon_scale_name_at(int scale)
{
    static const char *const names[] = {"rms", "original"};
    return scale < ZERO_COUNT(names) ? names[scale] : NULL;
}

zero_status zero_muon_scale_read(const char *name, zero_muon_scale *scale)
{
    *scale = ZERO_MUON_RMS;
    if (!name || zero_same_text(name, zero_muon_scale_name_at(ZERO_MUON_RMS)))
        return ZERO_OK;
    *scale = ZERO_MUON_ORIGINAL;
    ZERO_INVALID_IF(!zero_same_text(name, zero_muon_scale_name_at(ZERO_MUON_ORIGINAL)),
                    "muon_scale '%s': expected rms or original", name);
    return ZERO_OK;
}

void zero_muon_update(const zero_backend *backend, const zero_math *math,
                      const zero_adamw *h, const zero_muon *how, const zero_tensor *of,
                      const zero_adamw_arrays *arrays, float *room)
{
    float *x = room;
    zero_rule_note_changes(arrays);
    zero_team_share(math, arrays->n, GRANULE, momentum_part,
                    &(momentum_call){h, arrays, x});
    orthogonalize(backend, math, how->factors, of, x, room + arrays->n);
    sum(math, arrays->n, -h->lr * scale_of(how->scale, of), x,
        1.0f - h->lr * h->weight_decay, arrays->master);
    if (arrays->param)
        backend->round(math, arrays->type, arrays->n, arrays->master, arrays->param);
}
