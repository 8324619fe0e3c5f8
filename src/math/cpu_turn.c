/* cpu_turn.c - rotary positions: a head at a time, widened into the scratch, is normed if
 * there are gains, turned and stored. Backward does it from the end; the gradients of gains
 * are a pass of their own, in which threads have channels. */
#include "math/cpu.h"

#include "math/cpu_row.h"
#include "math/team.h"

#define LINE 16 /* floats: threads write to cache lines of their own */

/* A thread's scratch. */
typedef struct {
    const zero_turn *a;
    const zero_cpu_kernels *kernels;
    const float *gain_q, *gain_k;
    float *cosine, *sine, *x, *y, *dx;
} place;

static place take_place(const zero_math *math, const zero_turn *a)
{
    float *at = math->scratch + 2 * a->D;
    assert(2 * a->D + 2 * ZERO_TURN_PAIRS + 3 * a->D <= zero_math_scratch());
    assert(a->R % 2 == 0 && a->R <= zero_min(a->D, 2 * ZERO_TURN_PAIRS));
    place p = {.a = a, .kernels = zero_cpu_kernels_of(math)};
    p.gain_q = zero_row_weights(math, a->type, a->D, a->gain_q, 0);
    p.gain_k = zero_row_weights(math, a->type, a->D, a->gain_k, a->D);
    p.cosine = at, p.sine = at + ZERO_TURN_PAIRS;
    p.x = p.sine + ZERO_TURN_PAIRS, p.y = p.x + a->D, p.dx = p.y + a->D;
    return p;
}

/* The angles of row r; those of backward have the other sign. */
static void aim(const place *p, int64_t r, bool is_back)
{
    const zero_turn *a = p->a;
    const int64_t past = a->past ? a->past[r / a->T] : 0, pairs = a->R / 2;
    p->kernels->angles(pairs, (float)(past + r % a->T), a->frequency, p->cosine, p->sine);
    if (is_back) p->kernels->scale(pairs, -1.0f, p->sine, p->sine);
}

/* Head h of row r, counted through q and k. */
static void *head_of(const zero_turn *a, const zero_heads *q, const zero_heads *k,
                     int64_t r, int64_t h)
{
    const zero_heads *x = h < a->H ? q : k;
    return zero_type_to(a->rows_type, x->x, zero_heads_at(x, r, h < a->H ? h : h - a->H));
}

static void turn_rows(const zero_math *math, const void *arg, int64_t first, int64_t end)
{
    const zero_turn *a = arg;
    const place p = take_place(math, a);
    const int64_t heads = a->H + a->K, step = zero_row_piece(heads * a->D);
    for (int64_t r = first; r < end; r++) {
        aim(&p, r, false);
        for (int64_t h = 0; h < heads; h++) {
            zero_row_widen(a->rows_type, a->D, head_of(a, &a->q, &a->k, r, h), p.x);
            const zero_layernorm_args norm = {.rows = 1,
                                              .C = a->D,
                                              .eps = a->eps,
                                              .x = p.x,
                                              .gain = h < a->H ? p.gain_q : p.gain_k,
                                              .y = p.x,
                                              .rstd = a->rstd + r * heads + h};
            if (norm.gain) p.kernels->layernorm(&norm);
            p.kernels->turn(a->R / 2, p.cosine, p.sine, p.x);
            zero_row_round(a->rows_type, a->D, p.x, head_of(a, &a->to_q, &a->to_k, r, h));
        }
        if ((r + 1) % step == 0) zero_math_poll(math);
    }
}

void zero_cpu_turn(const zero_math *math, const zero_turn *t)
{
    zero_team_share(math, t->B * t->T, 1, turn_rows, t);
}

/* The gradient of head h before it was turned, in p->y; and, with gains, what there was
 * before the norm, in p->x. */
static zero_layernorm_grad_args turn_back(const place *p, int64_t r, int64_t h)
{
    const zero_turn *a = p->a;
    zero_row_widen(a->rows_type, a->D, head_of(a, &a->dq, &a->dk, r, h), p->y);
    p->kernels->turn(a->R / 2, p->cosine, p->sine, p->y);
    if (p->gain_q) zero_row_widen(a->rows_type, a->D, head_of(a, &a->q, &a->k, r, h), p->x);
    return (zero_layernorm_grad_args){.rows = 1,
                                      .C = a->D,
                                      .x = p->x,
                                      .gain = h < a->H ? p->gain_q : p->gain_k,
                                      .rstd = a->rstd + r * (a->H + a->K) + h,
                                      .dy = p->y};
}

/* Channels [first, end) of the gradients of gains. */
static void sum_gains(const zero_math *math, const void *arg, int64_t first, int64_t end)
{
    const zero_turn *a = arg;
    const place p = take_place(math, a);
    const int64_t heads = a->H + a->K, step = zero_row_piece(heads * a->D);
    for (int64_t i = 0; i < 2 * a->slices && !a->accumulate; i++)
        zero_clear(a->sums + i * a->D + first, end - first);
    for (int64_t r = 0; r < a->B * a->T; r++) {
        aim(&p, r, true);
        for (int64_t h = 0; h < heads; h++) {
            const bool is_key = h >= a->H;
            const int64_t slice =
                is_key ? (h - a->H) * a->slices / a->K : h * a->slices / a->H;
            zero_layernorm_grad_args norm = turn_back(&p, r, h);
            norm.dgain = a->sums + (2 * slice + is_key) * a->D;
            p.kernels->layernorm_sums(&norm, first, end);
        }
        if ((r + 1) % step == 0) zero_math_poll(math);
    }
}

static void turn_rows_back(const zero_math *math, const void *arg, int64_t first,
                           int64_t end)
{
    const zero_turn *a = arg;
    const place p = take_place(math, a);
    const int64_t heads = a->H + a->K, step = zero_row_piece(heads * a->D);
    for (int64_t r = first; r < end; r++) {
        aim(&p, r, true);
        for (int64_t h = 0; h < heads; h++) {
            zero_layernorm_grad_args norm = turn_back(&p, r, h);
            norm.dx = p.dx;
            zero_clear(p.dx, a->D);
            if (norm.gain) p.kernels->layernorm_backward(&norm);
            zero_row_round(a->rows_type, a->D, norm.gain ? p.dx : p.y,
                           head_of(a, &a->dq, &a->dk, r, h));
        }
        if ((r + 1) % step == 0) zero_math_poll(math);
    }
}

void zero_cpu_turn_backward(const zero_math *math, const zero_turn *t)
{
    if (t->gain_q) zero_team_share(math, t->D, LINE, sum_gains, t);
    zero_team_share(math, t->B * t->T, 1, turn_rows_back, t);
}
