#include "math/cpu_head.h"

#include "math/team.h"

#define LOG2_E 1.4426950408889634

/* Takes memory for `left` from *work. */
static zero_head zero_head_at(const zero_math *math, const zero_attention *a, int64_t b,
                              int64_t h, float **work)
{
    assert(a->H % a->K == 0);
    zero_head head = {.math = math, .a = a, .b = b, .h = h, .k = h * a->K / a->H};
    head.kernels = zero_cpu_kernels_of(math);
    /* In bf16 a block is two panels: sums over fewer queries are too short for AMX
     * tiles. In fp32 it is 48 queries, which for T 2048 is 3 % faster than 96 and 10 %
     * than 192. */
    const zero_packed_kernels *bf16 = zero_cpu_bf16_of(head.math);
    const bool in_bf16 = head.a->factors == ZERO_BF16 && bf16 && bf16->multiply_part;
    assert(!in_bf16 || head.a->rows_type != ZERO_FP16);
    head.panels = in_bf16 ? NULL : zero_cpu_panels_of(head.math);
    head.packed = in_bf16 ? bf16 : &head.panels->packed;
    head.rows = head.packed->rows;
    head.block = in_bf16 ? 2 * head.rows : 48;
    assert(head.rows <= ZERO_SCORE_ROWS && head.block <= ZERO_HEAD_BLOCK);
    assert(head.block % head.rows == 0);
    head.size = a->D;
    head.width = zero_round_up(head.size, head.packed->cols);
    head.stride = zero_head_stride(a->T);
    head.scale = (float)(1.0 / sqrt((double)head.size));
    head.scale_base2 = (float)(LOG2_E / sqrt((double)head.size));
    head.left = zero_head_take(work, ZERO_SCORE_ROWS / 2 * (head.stride + head.width));
    return head;
}

static int64_t in_out(const zero_head *head, int64_t t)
{
    return ((head->b * head->a->T + t) * head->a->H + head->h) * head->size;
}

void *zero_head_row(const zero_head *head, const zero_heads *x, int64_t h, int64_t t)
{
    const int64_t row = head->b * head->a->T + t;
    return zero_type_to(head->a->rows_type, x->x, zero_heads_at(x, row, h));
}

void *zero_head_out(const zero_head *head, int64_t t)
{
    return zero_type_to(head->a->rows_type, head->a->out, in_out(head, t));
}

const void *zero_head_dout(const zero_head *head, int64_t t)
{
    return zero_type_at(head->a->rows_type, head->a->dout, in_out(head, t));
}

int64_t zero_head_in_lse(const zero_head *head, int64_t t)
{
    return (head->b * head->a->H + head->h) * head->a->T + t;
}

float *zero_head_take(float **work, int64_t n)
{
    const uintptr_t bytes = ZERO_HEAD_LINE * sizeof(float), at = (uintptr_t)*work;
    float *taken = *work + (bytes - at % bytes) % bytes / sizeof(float);
    *work = taken + n;
    return taken;
}

void zero_head_pack_rows(const zero_head *head, const void *x, int64_t stride, int64_t n,
                         void *out)
{
    zero_operand rows = {
        .data = x, .type = head->a->rows_type, .stride = stride, .along_k = true};
    head->packed->pack_b(&rows, n, head->size, out);
}

void zero_head_pack_channels(const zero_head *head, const void *x, int64_t stride,
                             int64_t n, void *out)
{
    zero_operand channels = {.data = x, .type = head->a->rows_type, .stride = stride};
    head->packed->pack_b(&channels, head->size, n, out);
}

void zero_head_copy(const zero_head *head, const void *x, int64_t stride, int64_t t,
                    int64_t n, float factor, float *out)
{
    const zero_cpu_pieces rows = {.rows = n,
                                  .n = head->size,
                                  .x = x,
                                  .x_type = head->a->rows_type,
                                  .x_stride = stride,
                                  .x_rows = head->a->T - t,
                                  .out = out,
                                  .out_stride = head->size,
                                  .factor = factor};
    head->kernels->move(&rows);
    zero_clear(out + n * head->size, (head->rows - n) * head->size);
}

void zero_head_store(const zero_head *head, const float *x, int64_t t, int64_t n,
                     float factor, const float *factors, void *out, int64_t stride)
{
    const zero_cpu_pieces rows = {.rows = n,
                                  .n = head->size,
                                  .x = x,
                                  .x_stride = head->width,
                                  .out = out,
                                  .out_type = head->a->rows_type,
                                  .out_stride = stride,
                                  .out_rows = head->a->T - t,
                                  .factor = factor,
                                  .factors = factors};
    head->kernels->move(&rows);
}

/* Few rows, some at a time: a T of 64 or 256 leaves 4 of 12 for the last panel. */
static void multiply_few(const zero_head *head, const zero_left *a, const float *b,
                         bool add, float *c, int64_t ldc)
{
    const zero_panel_kernels *panels = head->panels;
    for (int64_t i = 0; i < a->rows; i += panels->few)
        panels->multiply_few(a->k, a->x + i * a->row, a->row, a->along, b, add, c + i * ldc,
                             ldc);
}

/* Reads a in place. The last panel may be needed by its left half only. */
static void multiply_fp32(const zero_head *head, const zero_left *a, int64_t n,
                          const float *b, int64_t b_k, bool add, float *c, int64_t ldc)
{
    const zero_panel_kernels *panels = head->panels;
    const int64_t cols = head->packed->cols;
    for (int64_t j = 0; j < n; j += cols) {
        const float *panel = b + j * b_k;
        if (a->rows <= 2 * panels->few)
            multiply_few(head, a, panel, add, c + j, ldc);
        else if (2 * (n - j) <= cols)
            panels->multiply_left(a->k, a->x, a->row, a->along, panel, add, c + j, ldc);
        else
            panels->multiply(a->k, a->x, a->row, a->along, panel, add, c + j, ldc);
    }
}

static void multiply_bf16(const zero_head *head, const zero_left *a, int64_t n,
                          const uint16_t *b, int64_t b_from, int64_t b_k, bool add,
                          float *c, int64_t ldc)
{
    const zero_packed_kernels *packed = head->packed;
    const int64_t depth = zero_round_up(b_k, packed->depth);
    zero_operand left = {.data = a->x, .along_k = a->along == 1};
    left.stride = left.along_k ? a->row : a->along;
    packed->pack_a(&left, head->rows, a->k, head->left);
    for (int64_t j = 0; j < n; j += packed->cols)
        packed->multiply_part(zero_round_up(a->k, packed->depth), head->left, b + j * depth,
                              b_from, depth, add, c + j, ldc);
}

void zero_head_multiply(const zero_head *head, const zero_left *a, int64_t n, const void *b,
                        int64_t b_from, int64_t b_k, bool add, float *c, int64_t ldc)
{
    if (head->panels)
        multiply_fp32(head, a, n, (const float *)b + b_from * head->packed->cols, b_k, add,
                      c, ldc);
    else
        multiply_bf16(head, a, n, b, b_from, b_k, add, c, ldc);
}

void zero_head_scores(const zero_head *head, const float *x, int64_t rows, const void *y,
                      int64_t n, float *score)
{
    const zero_left left = {x, rows, head->size, 1, head->size};
    zero_head_multiply(head, &left, n, y, 0, head->size, false, score, head->stride);
}

void zero_head_mix(const zero_head *head, const float *weight, int64_t rows, const void *y,
                   int64_t n, float *out)
{
    const zero_left left = {weight, rows, head->stride, 1, n};
    zero_head_multiply(head, &left, head->size, y, 0, head->a->T, false, out, head->width);
}

/* Row i of the mask is elements (h T + i) T ... of the sample's stream, h among all ranks'
 * heads. */
void zero_head_mask(const zero_head *head, int64_t i, float *mask)
{
    const zero_dropout *d = &head->a->dropout;
    zero_rng stream = d->stream;
    stream.sample += (uint64_t)head->b;
    const int64_t h = head->a->first_head + head->h;
    uint64_t first = (uint64_t)((h * head->a->T + i) * head->a->T);
    zero_rng_dropout(&stream, d->p, first, i + 1, mask);
}

typedef struct {
    const zero_attention *a;
    zero_head_work *work;
    int64_t floats; /* of a thread's workspace */
    zero_turns next;
} heads;

static void compute_heads(const zero_thread *me, void *arg)
{
    heads *x = arg;
    const zero_attention *a = x->a;
    for (int64_t i; (i = zero_turns_take(&x->next)) < a->B * a->K;) {
        float *rest = a->work + me->index * x->floats;
        zero_head head =
            zero_head_at(&me->math, a, i / a->K, i % a->K * (a->H / a->K), &rest);
        x->work(&head, rest);
    }
}

void zero_heads_run(const zero_math *math, const zero_attention *a, int64_t floats,
                    zero_head_work *work)
{
    heads x = {.a = a, .work = work, .floats = floats};
    zero_team_run(math, compute_heads, &x);
}
