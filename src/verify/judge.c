#include "verify/judge.h"

#include "base/fail.h"
#include "base/grow.h"
#include "base/range.h"
#include "base/rng.h"
#include "base/type.h"
#include "nn/share.h"

#define AT_ONCE ZERO_JUDGE_AT_ONCE

/* ---- what this rank owns ---- */

typedef struct {
    int group;
    zero_range range;
    int64_t at; /* of its first element in j->gradient and j->part */
} piece;

/* Each element is owned by one rank, but for tensors that all ranks of a TP group have. */
typedef zero_status piece_fn(zero_judge *j, const piece *p, void *arg);

static zero_status for_own(zero_judge *j, piece_fn *fn, void *arg)
{
    const zero_schedule *s = &j->e->schedule;
    zero_status st = ZERO_OK;
    piece p = {.at = 0};
    for (; st == ZERO_OK && p.group < j->model->n_groups; p.group++) {
        const zero_range own =
            zero_partition_shard(&s->groups[p.group].partition, s->shard.rank);
        for (int64_t at = own.begin; st == ZERO_OK && at < own.end; at += AT_ONCE) {
            p.range = (zero_range){at, zero_min(at + AT_ONCE, own.end)};
            st = fn(j, &p, arg);
            p.at += zero_range_len(p.range);
        }
    }
    return zero_agree_after_files(j->e->runner.comm, st);
}

/* numbers[n] of all ranks, added up. */
static zero_status add_up(zero_judge *j, int n, double *numbers)
{
    zero_comm *comm = j->e->runner.comm;
    ZERO_FREED double *all = NULL;
    ZERO_TRY(zero_agree(comm, zero_new(&all, n * comm->size, "numbers of ranks")));
    ZERO_TRY(zero_comm_all_gather_doubles(comm, n, numbers, all));
    memset(numbers, 0, (size_t)n * sizeof *numbers);
    for (int i = 0; i < n * comm->size; i++) numbers[i % n] += all[i];
    return ZERO_OK;
}

/* What the ranks have found of each tensor, put together. */
static zero_status merge(zero_judge *j)
{
    zero_comm *comm = j->e->runner.comm;
    const int n = j->model->n_tensors, numbers = (int)(sizeof *j->found / sizeof(double));
    ZERO_FREED zero_found *all = NULL;
    ZERO_TRY(zero_agree(comm, zero_new(&all, n * comm->size, "numbers of tensors")));
    ZERO_TRY(zero_comm_all_gather_doubles(comm, n * numbers, (const double *)j->found,
                                          (double *)all));
    memcpy(j->found, all, (size_t)n * sizeof *all);
    for (int i = n; i < n * comm->size; i++) {
        zero_found *to = &j->found[i % n], was = *to;
        const zero_found *from = &all[i];
        if (from->ratio > was.ratio) *to = *from;
        to->different = was.different + from->different;
        to->deviation = fmax(was.deviation, from->deviation);
        to->wrong = was.wrong + from->wrong;
        to->first = was.wrong == 0.0     ? from->first
                    : from->wrong == 0.0 ? was.first
                                         : fmin(was.first, from->first);
        to->last = fmax(was.last, from->last);
    }
    return ZERO_OK;
}

/* ---- bits ---- */

static zero_status compare_block(void *arg, const zero_state_block *block)
{
    zero_judge *j = arg;
    const int64_t n = zero_range_len(block->range);
    for (int p = 0; p < ZERO_STATES; p++) {
        const zero_weights theirs =
            zero_step_weights(j->file, (zero_step_part)(ZERO_STEP_AFTER + p));
        zero_range part;
        ZERO_TRY(zero_weights_fill(&theirs, j->model, j->group, block->range, j->room));
        if (memcmp(j->room, block->part[p], (size_t)n * sizeof(float)) == 0) continue;
        for (int t = -1; zero_next_part(j->model, j->group, block->range, &t, &part);)
            for (int64_t i = part.begin; i < part.end; i++) {
                const int64_t k = i - block->range.begin;
                j->found[t].different +=
                    memcmp(&j->room[k], &block->part[p][k], sizeof(float)) != 0;
            }
    }
    return ZERO_OK;
}

static zero_status compare_piece(zero_judge *j, const piece *p, void *arg)
{
    (void)arg;
    j->group = p->group;
    return zero_states_visit(&j->e->runner, p->group, p->range, ZERO_VISIT_READ,
                             compare_block, j);
}

zero_status zero_judge_bits(zero_judge *j)
{
    ZERO_TRY(for_own(j, compare_piece, NULL));
    return merge(j);
}

/* ---- the gradient ---- */

static void choose(const void *arg, int64_t step, int64_t i, int64_t T, void *inputs,
                   void *targets)
{
    const zero_chosen *c = arg;
    const zero_step_file *f = c->file;
    const int64_t microbatch = i / f->batch % f->microbatches;
    const int64_t rank = i / f->batch / f->microbatches;
    int32_t *in = inputs, *out = targets;
    zero_step_sample(f, step, i, T, inputs, targets);
    const bool is_chosen = (c->rank < 0 || rank == c->rank) &&
                           (c->microbatch < 0 || microbatch == c->microbatch);
    for (int64_t k = 0; k < T; k++)
        if (!is_chosen)
            out[k] = -1;
        else if (c->leaks && out[k] < 0 && k + 1 < T)
            out[k] = in[k + 1];
}

struct adding {
    float *to;
    double factor;
    bool overwrites;
};

static zero_status take_gradient(zero_judge *j, const piece *p, void *arg)
{
    const struct adding *a = arg;
    const int64_t n = zero_range_len(p->range);
    float *to = a->to + p->at;
    ZERO_TRY(zero_engine_gradient(j->e, p->group, p->range, j->room));
    for (int64_t i = 0; i < n; i++)
        to[i] =
            (float)((a->overwrites ? 0.0 : (double)to[i]) + a->factor * (double)j->room[i]);
    return ZERO_OK;
}

zero_status zero_judge_compute(zero_judge *j, const zero_chosen *chosen, float *to,
                               double factor, bool overwrites, zero_run_output *out)
{
    const zero_source source = {
        .sample = choose, .arg = chosen, .counted = chosen->counted};
    const zero_step_input in = {.step = j->file->facts.step, .eps = 1.0};
    struct adding a = {to, factor, overwrites};
    ZERO_TRY(zero_engine_compute(j->e, &source, &in, out));
    return to ? for_own(j, take_gradient, &a) : ZERO_OK;
}

/* The dimension that sharding frameworks cut, in ranks' shares as torch.chunk() deals. */
static int64_t share_of(const zero_judge *j, const zero_tensor *t, int64_t whole)
{
    const int64_t rows = t->whole_rows > 1 ? t->whole_rows : t->whole_cols;
    const int64_t row = t->whole_rows > 1 ? whole / t->whole_cols : whole;
    return row / zero_divide_up(rows, j->file->ranks);
}

static bool counts(const zero_judge *j, const zero_tensor *t)
{
    return !zero_tensor_is_replicated(t) || j->model->share.rank == 0;
}

static zero_status multiply(zero_judge *j, const piece *p, void *arg)
{
    zero_range part;
    (void)arg;
    for (int t = -1; zero_next_part(j->model, p->group, p->range, &t, &part);) {
        const zero_tensor *of = &j->model->tensors[t];
        for (int64_t i = part.begin; counts(j, of) && i < part.end; i++) {
            const int64_t k = p->at + i - p->range.begin;
            const double g = (double)j->gradient[k], q = (double)j->part[k];
            const zero_run run = zero_share_run(of, i - of->offset, part.end - of->offset);
            j->products[0] += g * g;
            j->products[1] += g * q;
            j->products[2] += q * q;
            j->shares[share_of(j, of, run.whole)] += g * g;
        }
    }
    return ZERO_OK;
}

zero_status zero_judge_multiply(zero_judge *j)
{
    const int N = (int)j->file->ranks;
    memset(j->products, 0, sizeof j->products);
    memset(j->shares, 0, (size_t)N * sizeof *j->shares);
    ZERO_TRY(for_own(j, multiply, NULL));
    ZERO_TRY(add_up(j, 3, j->products));
    return add_up(j, N, j->shares);
}

double zero_judge_clip(const zero_judge *j, double norm)
{
    const double clip = j->file->facts.clip;
    return clip > 0.0 ? fmin(1.0, clip / (norm + 1e-6)) : 1.0;
}

/* ---- weights that are moved ---- */

struct moving {
    zero_step_file *file;
    const zero_model *model;
    double ulps; /* of a number, as a part of it */
    bool stale;
};

/* Adam, backwards: w = (1 - lr decay) w' - lr u, with the moments of that update. */
static zero_status step_back(const struct moving *m, int tensor, int64_t begin, int64_t n,
                             float *out)
{
    enum { SOME = 4096 };
    const zero_step_facts *f = &m->file->facts;
    const zero_weights first = zero_step_weights(m->file, ZERO_STEP_MOMENTUM_BEFORE),
                       second = zero_step_weights(m->file, ZERO_STEP_VARIANCE_BEFORE);
    const zero_tensor *t = &m->model->tensors[tensor];
    const double bias1 = 1.0 - pow(f->beta1, (double)f->updates);
    const double bias2 = 1.0 - pow(f->beta2, (double)f->updates);
    const double decay = t->decays ? f->weight_decay : 0.0;
    float m1[SOME], v1[SOME];
    for (int64_t at = 0, k; at < n; at += k) {
        k = zero_min(SOME, n - at);
        ZERO_TRY(first.fill(first.arg, tensor, begin + at, begin + at + k, m1));
        ZERO_TRY(second.fill(second.arg, tensor, begin + at, begin + at + k, v1));
        for (int64_t i = 0; f->updates > 0 && i < k; i++) {
            const double u = (double)m1[i] / bias1 / (sqrt((double)v1[i] / bias2) + f->eps);
            out[at + i] =
                (float)(((double)out[at + i] + f->lr * u) / (1.0 - f->lr * decay));
        }
    }
    return ZERO_OK;
}

static zero_status fill_moved(void *arg, int tensor, int64_t begin, int64_t end, float *out)
{
    const struct moving *m = arg;
    const zero_weights from = zero_step_weights(m->file, ZERO_STEP_BEFORE);
    const zero_rng signs = {.purpose = ZERO_RNG_TEST, .tensor = (uint64_t)tensor};
    uint64_t bits = 0;
    ZERO_TRY(from.fill(from.arg, tensor, begin, end, out));
    if (m->stale) ZERO_TRY(step_back(m, tensor, begin, end - begin, out));
    for (int64_t i = begin; m->ulps != 0.0 && i < end; i++) {
        float *x = &out[i - begin];
        if (i == begin || i % 64 == 0) bits = zero_rng_bits(&signs, (uint64_t)i / 64);
        const double by = bits >> (i % 64) & 1 ? m->ulps : -m->ulps;
        *x = (float)((double)*x * (1.0 + by));
    }
    return ZERO_OK;
}

/* The distance of neighbouring numbers is this part of them, or half of it. */
static double ulp_of(zero_type type)
{
    return type == ZERO_FP32 ? 0x1p-23 : type == ZERO_BF16 ? 0x1p-7 : 0x1p-10;
}

zero_status zero_judge_set_weights(zero_judge *j, int moved, bool stale)
{
    struct moving m = {j->file, j->model, moved * ulp_of(j->file->type), stale};
    return zero_engine_set_weights(j->e, &(zero_weights){fill_moved, &m});
}

static zero_status deviate(zero_judge *j, const piece *p, void *arg)
{
    zero_range part;
    (void)arg;
    ZERO_TRY(zero_engine_gradient(j->e, p->group, p->range, j->room));
    for (int t = -1; zero_next_part(j->model, p->group, p->range, &t, &part);)
        for (int64_t i = part.begin; i < part.end; i++) {
            const int64_t k = i - p->range.begin;
            const double by = fabs((double)j->room[k] - (double)j->gradient[p->at + k]);
            j->found[t].deviation = fmax(j->found[t].deviation, by);
        }
    return ZERO_OK;
}

zero_status zero_judge_measure(zero_judge *j)
{
    const zero_chosen all = {j->file, -1, -1, false, j->file->counted};
    zero_run_output out;
    struct adding a = {j->gradient, 1.0, true};
    ZERO_TRY(for_own(j, take_gradient, &a));
    for (int moved = -1; moved <= 1; moved += 2) {
        ZERO_TRY(zero_judge_set_weights(j, moved, false));
        ZERO_TRY(zero_judge_compute(j, &all, NULL, 1.0, true, &out));
        ZERO_TRY(for_own(j, deviate, NULL));
        j->loss_deviation = fmax(j->loss_deviation, fabs(out.loss - j->out.loss));
        j->norm_deviation = fmax(j->norm_deviation, fabs(out.grad_norm - j->out.grad_norm));
    }
    ZERO_TRY(merge(j));
    for (int t = 0; t < j->model->n_tensors; t++) j->deviation[t] = j->found[t].deviation;
    return zero_judge_multiply(j);
}

/* ---- a number of the file, by those before it ---- */

/* A theory, with what it makes of all numbers alike. */
typedef struct {
    const zero_theory *theory;
    double bias1, bias2, norm_error;
    zero_type masters; /* ZERO_ODD_MASTERS */
} law;

typedef struct {
    double before, m, v, after, m1, v1, gradient; /* the file's */
    double x, part;                               /* computed, before clipping */
    double clip, deviation;
    bool decays;
} number;

typedef struct {
    double error[ZERO_LINKS], limit[ZERO_LINKS];
} verdict;

static law make_law(const zero_judge *j, const zero_theory *theory)
{
    const zero_step_facts *f = &j->file->facts;
    const unsigned odd = theory->odd;
    const double t =
        (double)(f->updates + 1 - (odd & (ZERO_ODD_EARLIER | ZERO_ODD_STALE) ? 1 : 0) +
                 (odd & ZERO_ODD_LATER ? 1 : 0));
    law l = {.theory = theory,
             .bias1 = 1.0 - pow(f->beta1, t),
             .bias2 = 1.0 - pow(f->beta2, t),
             .norm_error = j->out.grad_norm > 0.0 && f->clip > 0.0
                               ? ZERO_JUDGE_FACTOR * j->norm_deviation / j->out.grad_norm
                               : 0.0};
    if (odd & ZERO_ODD_NO_BIAS) l.bias1 = l.bias2 = 1.0;
    return l;
}

static verdict judge(const zero_judge *j, const law *l, const number *n)
{
    const zero_step_facts *f = &j->file->facts;
    const zero_theory *th = l->theory;
    const unsigned odd = th->odd;
    const bool is_given = j->file->has[ZERO_STEP_GRADIENT];
    const double rough = j->file->type == ZERO_FP32 ? 0x1p-20 : ulp_of(j->file->type);
    const double b1 = f->beta1, b2 = f->beta2;
    const double decay =
        (n->decays || odd & ZERO_ODD_ALL_DECAY) && !(odd & ZERO_ODD_NONE_DECAYS)
            ? f->weight_decay
            : 0.0;
    const double l2 = odd & ZERO_ODD_L2 ? decay * n->before : 0.0;
    const double apart = odd & ZERO_ODD_L2 ? 0.0 : decay;
    const double halves = odd & ZERO_ODD_MASTERS ? 0x1p-6 : 0.0;
    verdict r;
    /* Gradient: from m' = b1 m + (1 - b1) x, with the roundings of m'. */
    const double x1 = is_given ? n->gradient : (n->m1 - b1 * n->m) / (1.0 - b1);
    const double lost =
        is_given ? 0.0
                 : (0x1p-22 + halves) * (fabs(n->m1) + fabs(n->m)) / (1.0 - b1) + 0x1p-90;
    const double x =
        n->clip * (th->whole * n->x + th->part * n->part) + (is_given ? 0.0 : l2);
    r.error[ZERO_LINK_GRADIENT] = fabs(x1 - x);
    r.limit[ZERO_LINK_GRADIENT] =
        n->clip * ZERO_JUDGE_FACTOR * n->deviation * (fabs(th->whole) + fabs(th->part)) +
        lost + (rough + l->norm_error) * fabs(x);
    /* Moments. */
    const double y = x1 + (is_given ? l2 : 0.0);
    const double rounded = 0x1p-22 * (fabs(x1) + fabs(l2)); /* of their sum */
    r.error[ZERO_LINK_MOMENTUM] = is_given ? fabs(n->m1 - b1 * n->m - (1.0 - b1) * y) : 0.0;
    r.limit[ZERO_LINK_MOMENTUM] =
        (0x1p-21 + halves) * (fabs(n->m) + fabs(n->m1) + fabs(y)) + rounded + 0x1p-90;
    const double square = (1.0 - b2) * y * y;
    r.error[ZERO_LINK_VARIANCE] = fabs(n->v1 - b2 * n->v - square);
    r.limit[ZERO_LINK_VARIANCE] =
        (0x1p-20 + halves) * (b2 * n->v + square) +
        (1.0 - b2) * (lost + rounded) * (2.0 * fabs(y) + lost + rounded) + 0x1p-124;
    /* AdamW. */
    const bool is_stale = odd & ZERO_ODD_STALE;
    const double m1 = (is_stale ? n->m : n->m1) / l->bias1;
    const double v1 = (is_stale ? n->v : n->v1) / l->bias2;
    const double root = odd & ZERO_ODD_EPS_INSIDE ? sqrt(v1 + f->eps) : sqrt(v1) + f->eps;
    const double moved = f->lr * (m1 / root + apart * n->before);
    r.error[ZERO_LINK_WEIGHT] = fabs(n->after - (n->before - moved));
    r.limit[ZERO_LINK_WEIGHT] =
        (0x1p-22 + halves) * fabs(n->before) + (0x1p-19 + halves) * fabs(moved);
    if (odd & ZERO_ODD_MASTERS) {
        const float after = (float)n->after;
        float back;
        uint16_t half;
        zero_convert(ZERO_FP32, l->masters, 1, &after, &half);
        zero_convert(l->masters, ZERO_FP32, 1, &half, &back);
        if (back != after) r.error[ZERO_LINK_WEIGHT] = INFINITY;
    }
    return r;
}

/* The link that is furthest out, or -1: all is within the tolerance. NaN is out. */
static int worst_of(const verdict *r, int only, double *ratio)
{
    int worst = -1;
    *ratio = 1.0;
    for (int k = 0; k < ZERO_LINKS; k++) {
        if (only >= 0 && k != only) continue;
        if (r->error[k] <= r->limit[k]) continue;
        const double by = r->limit[k] > 0.0 ? r->error[k] / r->limit[k] : 0x1p100;
        if (worst < 0 || by > *ratio) worst = k, *ratio = isnan(by) ? 0x1p100 : by;
    }
    return worst;
}

/* ---- passes ---- */

struct trial {
    law right, other; /* other.theory NULL: the file is judged by the right one */
};

/* Reads the file's numbers of a piece; with a shift a result is that of other rows. */
static zero_status read_piece(zero_judge *j, const piece *p, const zero_theory *th)
{
    for (int k = 0; k < ZERO_STEP_PARTS; k++) {
        float *to = j->room + k * AT_ONCE;
        const zero_weights from = zero_step_weights(j->file, (zero_step_part)k);
        const bool is_moved =
            th && th->shift != 0 &&
            (th->link == ZERO_LINK_WEIGHT
                 ? k == ZERO_STEP_AFTER
                 : k == ZERO_STEP_MOMENTUM_BEFORE || k == ZERO_STEP_MOMENTUM_AFTER ||
                       k == ZERO_STEP_GRADIENT);
        zero_range part;
        if (!is_moved) {
            ZERO_TRY(zero_weights_fill(&from, j->model, p->group, p->range, to));
            continue;
        }
        for (int t = -1; zero_next_part(j->model, p->group, p->range, &t, &part);) {
            const zero_tensor *of = &j->model->tensors[t];
            const int64_t all = of->rows * of->cols, wide = of->rows > 1 ? of->cols : 1;
            const int64_t share = zero_divide_up(all / wide, j->file->ranks);
            const int64_t by = th->shift * wide * (th->by_rows ? 1 : share);
            for (int64_t i = part.begin; i < part.end;) {
                const int64_t at = ((i - of->offset + by) % all + all) % all;
                const int64_t n = zero_min(part.end - i, all - at);
                ZERO_TRY(from.fill(from.arg, t, at, at + n, to + (i - p->range.begin)));
                i += n;
            }
        }
    }
    return ZERO_OK;
}

static number number_at(const zero_judge *j, const piece *p, int t, int64_t i)
{
    const int64_t k = i - p->range.begin;
    const float *room = j->room + k;
    return (number){.before = (double)room[ZERO_STEP_BEFORE * AT_ONCE],
                    .m = (double)room[ZERO_STEP_MOMENTUM_BEFORE * AT_ONCE],
                    .v = (double)room[ZERO_STEP_VARIANCE_BEFORE * AT_ONCE],
                    .after = (double)room[ZERO_STEP_AFTER * AT_ONCE],
                    .m1 = (double)room[ZERO_STEP_MOMENTUM_AFTER * AT_ONCE],
                    .v1 = (double)room[ZERO_STEP_VARIANCE_AFTER * AT_ONCE],
                    .gradient = (double)room[ZERO_STEP_GRADIENT * AT_ONCE],
                    .x = (double)j->gradient[p->at + k],
                    .part = (double)j->part[p->at + k],
                    .deviation = j->deviation[t],
                    .decays = j->model->tensors[t].decays};
}

static double clip_of(const zero_judge *j, const zero_theory *th, const zero_tensor *t,
                      int64_t whole)
{
    if (!(th->odd & ZERO_ODD_BY_SHARE)) return th->clip;
    return zero_judge_clip(j, sqrt(j->shares[share_of(j, t, whole)]));
}

static void note(zero_found *f, int64_t whole, int link, double ratio, const verdict *r)
{
    f->first = f->wrong == 0.0 ? (double)whole : fmin(f->first, (double)whole);
    f->last = fmax(f->last, (double)whole);
    f->wrong++;
    if (ratio <= f->ratio) return;
    f->ratio = ratio;
    f->link = link;
    f->at = (double)whole;
    f->error = r->error[link];
    f->limit = r->limit[link];
}

/* Elements [at, end) of a piece, in one row of a tensor, of which `whole` is the first. */
static void judge_row(zero_judge *j, const piece *p, const struct trial *trial, int t,
                      int64_t at, int64_t end, int64_t whole)
{
    const zero_tensor *of = &j->model->tensors[t];
    const zero_theory *other = trial->other.theory;
    const bool is_shifted = other && other->shift != 0;
    bool is_wrong = is_shifted;
    double ratio;
    for (int64_t i = at; !is_shifted && i < end; i++) {
        number n = number_at(j, p, t, i);
        n.clip = trial->right.theory->clip;
        const verdict r = judge(j, &trial->right, &n);
        const int link = worst_of(&r, -1, &ratio);
        if (link >= 0 && !other) note(&j->found[t], whole + i - at, link, ratio, &r);
        is_wrong |= link >= 0;
    }
    if (other && other->odd & ZERO_ODD_WORDS && t == ZERO_WTE &&
        j->is_read[whole / of->whole_cols])
        return;
    for (int64_t i = at; other && is_wrong && !j->misfits && i < end; i++) {
        number n = number_at(j, p, t, i);
        n.clip = clip_of(j, other, of, whole + i - at);
        if (other->odd & ZERO_ODD_NO_HEAD && t == ZERO_WTE) n.x = 0.0;
        const verdict r = judge(j, &trial->other, &n);
        j->misfits = worst_of(&r, is_shifted ? other->link : -1, &ratio) >= 0;
    }
}

static zero_status judge_piece(zero_judge *j, const piece *p, void *arg)
{
    const struct trial *trial = arg;
    const bool tries = trial->other.theory != NULL;
    bool is_concerned = !tries;
    zero_range part;
    for (int t = -1; zero_next_part(j->model, p->group, p->range, &t, &part);)
        is_concerned |= j->found[t].wrong > 0.0;
    if (!is_concerned || j->misfits) return ZERO_OK;
    ZERO_TRY(read_piece(j, p, trial->other.theory));
    for (int t = -1; zero_next_part(j->model, p->group, p->range, &t, &part);) {
        const zero_tensor *of = &j->model->tensors[t];
        if (!counts(j, of) || (tries && j->found[t].wrong == 0.0)) continue;
        for (int64_t at = part.begin; at < part.end;) {
            const zero_run run = zero_share_run(of, at - of->offset, part.end - of->offset);
            const int64_t left = of->whole_cols - run.whole % of->whole_cols;
            const int64_t n = zero_min(run.n, left);
            judge_row(j, p, trial, t, at, at + n, run.whole);
            at += n;
        }
    }
    return ZERO_OK;
}

static zero_theory right_theory(const zero_judge *j)
{
    return (zero_theory){.whole = 1.0, .clip = zero_judge_clip(j, j->out.grad_norm)};
}

zero_status zero_judge_all(zero_judge *j)
{
    const zero_theory right = right_theory(j);
    struct trial trial = {.right = make_law(j, &right)};
    for (int t = 0; t < j->model->n_tensors; t++)
        j->found[t] = (zero_found){.different = zero_comm_is_root(j->e->runner.comm)
                                                    ? j->found[t].different
                                                    : 0.0};
    ZERO_TRY(for_own(j, judge_piece, &trial));
    return merge(j);
}

zero_status zero_judge_try(zero_judge *j, const zero_theory *theory, bool *fits)
{
    const zero_theory right = right_theory(j);
    struct trial trial = {make_law(j, &right), make_law(j, theory)};
    trial.other.masters = j->file->type == ZERO_FP16 ? ZERO_FP16 : ZERO_BF16;
    j->misfits = false;
    ZERO_TRY(for_own(j, judge_piece, &trial));
    ZERO_TRY(zero_comm_any(j->e->runner.comm, j->misfits, fits));
    *fits = !*fits;
    return ZERO_OK;
}
