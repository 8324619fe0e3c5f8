#include "verify/judge.h"

#include "math/team.h"
#include "nn/share.h"

#define AT_ONCE ZERO_JUDGE_AT_ONCE

/* ---- what this rank owns ---- */

zero_status zero_judge_own(zero_judge *j, zero_judge_work *fn, void *arg)
{
    const zero_schedule *s = &j->e->schedule;
    zero_status st = ZERO_OK;
    zero_judge_piece p = {.at = 0};
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

/* Adds what another rank or thread has found of the same tensor. */
static void combine(zero_found *to, const zero_found *from)
{
    const zero_found was = *to;
    if (from->ratio > was.ratio) *to = *from;
    to->different = was.different + from->different;
    to->deviation = fmax(was.deviation, from->deviation);
    to->wrong = was.wrong + from->wrong;
    to->first = was.wrong == 0.0     ? from->first
                : from->wrong == 0.0 ? was.first
                                     : fmin(was.first, from->first);
    to->last = fmax(was.last, from->last);
}

zero_status zero_judge_merge(zero_judge *j, int n, zero_found *found)
{
    zero_comm *comm = j->e->runner.comm;
    const int numbers = (int)(sizeof *found / sizeof(double));
    ZERO_FREED zero_found *all = NULL;
    ZERO_TRY(zero_agree(comm, zero_new(&all, n * comm->size, "numbers of tensors")));
    ZERO_TRY(zero_comm_all_gather_doubles(comm, n * numbers, (const double *)found,
                                          (double *)all));
    memcpy(found, all, (size_t)n * sizeof *all);
    for (int i = n; i < n * comm->size; i++) combine(&found[i % n], &all[i]);
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

static zero_status compare_piece(zero_judge *j, const zero_judge_piece *p,
                                 ZERO_UNUSED void *arg)
{
    j->group = p->group;
    return zero_states_visit(&j->e->runner, p->group, p->range, ZERO_VISIT_READ,
                             compare_block, j);
}

zero_status zero_judge_bits(zero_judge *j)
{
    ZERO_TRY(zero_judge_own(j, compare_piece, NULL));
    return zero_judge_merge(j, j->model->n_tensors, j->found);
}

/* ---- a number of the file, by those before it ---- */

/* A theory, with what it makes of all numbers alike. */
typedef struct {
    const zero_theory *theory;
    const zero_step_file *file;
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
    double error[ZERO_LINKS]; /* with its sign */
    double limit[ZERO_LINKS];
} verdict;

static law make_law(const zero_judge *j, const zero_theory *theory)
{
    const zero_step_facts *f = &j->file->facts;
    const unsigned odd = theory->odd;
    const double t =
        (double)(f->updates + 1 - (odd & (ZERO_ODD_EARLIER | ZERO_ODD_STALE) ? 1 : 0) +
                 (odd & ZERO_ODD_LATER ? 1 : 0));
    law l = {.theory = theory,
             .file = j->file,
             .bias1 = 1.0 - pow(f->beta1, t),
             .bias2 = 1.0 - pow(f->beta2, t),
             .norm_error = j->out.grad_norm > 0.0 && f->clip > 0.0
                               ? ZERO_JUDGE_FACTOR * j->norm_deviation / j->out.grad_norm
                               : 0.0};
    if (odd & ZERO_ODD_NO_BIAS) l.bias1 = l.bias2 = 1.0;
    return l;
}

static verdict judge(const law *l, const number *n)
{
    const zero_step_facts *f = &l->file->facts;
    const zero_theory *th = l->theory;
    const unsigned odd = th->odd;
    const bool is_given = l->file->has[ZERO_STEP_GRADIENT];
    const double rough =
        l->file->type == ZERO_FP32 ? 0x1p-20 : zero_judge_ulp(l->file->type);
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
    r.error[ZERO_LINK_GRADIENT] = x1 - x;
    r.limit[ZERO_LINK_GRADIENT] =
        n->clip * ZERO_JUDGE_FACTOR * n->deviation * (fabs(th->whole) + fabs(th->part)) +
        lost + (rough + l->norm_error) * fabs(x);
    /* Moments. */
    const double y = x1 + (is_given ? l2 : 0.0);
    const double rounded = 0x1p-22 * (fabs(x1) + fabs(l2)); /* of their sum */
    r.error[ZERO_LINK_MOMENTUM] = is_given ? n->m1 - b1 * n->m - (1.0 - b1) * y : 0.0;
    r.limit[ZERO_LINK_MOMENTUM] =
        (0x1p-21 + halves) * (fabs(n->m) + fabs(n->m1) + fabs(y)) + rounded + 0x1p-90;
    const double square = (1.0 - b2) * y * y;
    r.error[ZERO_LINK_VARIANCE] = n->v1 - b2 * n->v - square;
    r.limit[ZERO_LINK_VARIANCE] =
        (0x1p-20 + halves) * (b2 * n->v + square) +
        (1.0 - b2) * (lost + rounded) * (2.0 * fabs(y) + lost + rounded) + 0x1p-124;
    /* AdamW. */
    const bool is_stale = odd & ZERO_ODD_STALE;
    const double m1 = (is_stale ? n->m : n->m1) / l->bias1;
    const double v1 = (is_stale ? n->v : n->v1) / l->bias2;
    const double root = odd & ZERO_ODD_EPS_INSIDE ? sqrt(v1 + f->eps) : sqrt(v1) + f->eps;
    const double moved = f->lr * (m1 / root + apart * n->before);
    r.error[ZERO_LINK_WEIGHT] = n->after - (n->before - moved);
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
        const double error = fabs(r->error[k]);
        if (error <= r->limit[k]) continue;
        const double by = r->limit[k] > 0.0 ? error / r->limit[k] : 0x1p100;
        if (worst < 0 || by > *ratio) worst = k, *ratio = isnan(by) ? 0x1p100 : by;
    }
    return worst;
}

/* ---- passes ---- */

struct trial {
    law right, other; /* other.theory NULL: the file is judged by the right one */
    /* Or beside another file, whose law is `other`: */
    zero_judge *beside;
    bool judges;
    zero_found *found; /* [n_found], by tensor, or part and tensor; NULL: j->misfits */
    int n_found;
};

/* Reads the file's numbers of a piece; with a shift a result is that of other rows. */
static zero_status read_piece(zero_judge *j, const zero_judge_piece *p,
                              const zero_theory *th)
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

static number number_at(const zero_judge *j, const zero_judge_piece *p, int t, int64_t i)
{
    const int64_t k = i - p->range.begin;
    const float *room = j->room + k;
    return (number){.before = room[ZERO_STEP_BEFORE * AT_ONCE],
                    .m = room[ZERO_STEP_MOMENTUM_BEFORE * AT_ONCE],
                    .v = room[ZERO_STEP_VARIANCE_BEFORE * AT_ONCE],
                    .after = room[ZERO_STEP_AFTER * AT_ONCE],
                    .m1 = room[ZERO_STEP_MOMENTUM_AFTER * AT_ONCE],
                    .v1 = room[ZERO_STEP_VARIANCE_AFTER * AT_ONCE],
                    .gradient = room[ZERO_STEP_GRADIENT * AT_ONCE],
                    .x = j->gradient[p->at + k],
                    .part = j->part[p->at + k],
                    .deviation = j->deviation[t],
                    .decays = j->file->decays[t]};
}

static double clip_of(const zero_judge *j, const zero_theory *th, const zero_tensor *t,
                      int64_t whole)
{
    if (!(th->odd & ZERO_ODD_BY_SHARE)) return th->clip;
    return zero_judge_clip(j, sqrt(j->shares[whole / zero_judge_share(j, t)]));
}

static void note(zero_found *f, int64_t whole, int link, double ratio, double error,
                 double limit)
{
    f->first = f->wrong == 0.0 ? (double)whole : fmin(f->first, (double)whole);
    f->last = fmax(f->last, (double)whole);
    f->wrong++;
    if (ratio <= f->ratio) return;
    f->ratio = ratio;
    f->link = link;
    f->at = (double)whole;
    f->error = fabs(error);
    f->limit = limit;
}

/* Two files: the bits of each number, inputs as they are, and results by their distances
 * from what each file's numbers before them say: a difference is found where it begins. */
static void pair_row(zero_judge *j, const zero_judge_piece *p, const struct trial *trial,
                     zero_found *pairs, int t, int64_t at, int64_t end, int64_t whole)
{
    static const int part_of[ZERO_LINKS] = {ZERO_STEP_GRADIENT, ZERO_STEP_MOMENTUM_AFTER,
                                            ZERO_STEP_VARIANCE_AFTER, ZERO_STEP_AFTER};
    const law *mine = &trial->right, *theirs = &trial->other;
    const zero_judge *b = trial->beside;
    const int n = j->model->n_tensors;
    const bool have_gradients =
        mine->file->has[ZERO_STEP_GRADIENT] && theirs->file->has[ZERO_STEP_GRADIENT];
    const int parts = have_gradients ? ZERO_STEP_PARTS : ZERO_STEP_GRADIENT;
    for (int64_t i = at; i < end; i++) {
        const int64_t k = i - p->range.begin, place = whole + i - at;
        for (int part = 0; part < parts; part++) {
            zero_found *f = &pairs[part * n + t];
            const float *x = &j->room[part * AT_ONCE + k],
                        *y = &b->room[part * AT_ONCE + k];
            const double by = fabs((double)*x - (double)*y);
            f->different += memcmp(x, y, sizeof *x) != 0;
            if (part < ZERO_STEP_AFTER && by != 0.0) note(f, place, part, by, by, 0.0);
        }
        if (!trial->judges) continue;
        number x = number_at(j, p, t, i), y = number_at(b, p, t, i);
        x.clip = mine->theory->clip, y.clip = theirs->theory->clip;
        const verdict r = judge(mine, &x), q = judge(theirs, &y);
        for (int link = 0; link < ZERO_LINKS; link++) {
            const double error = fabs(r.error[link] - q.error[link]);
            const double limit = r.limit[link] + q.limit[link];
            if (!(error <= limit))
                note(&pairs[part_of[link] * n + t], place, link, error / limit, error,
                     limit);
        }
    }
}

/* Elements [at, end) of a piece, in one row of a tensor, of which `whole` is the first. */
static void judge_row(zero_judge *j, const zero_judge_piece *p, const struct trial *trial,
                      zero_found *found, int t, int64_t at, int64_t end, int64_t whole)
{
    const zero_tensor *of = &j->model->tensors[t];
    const zero_theory *other = trial->other.theory;
    const bool is_shifted = other && other->shift != 0;
    bool is_wrong = is_shifted;
    double ratio;
    for (int64_t i = at; !(other && is_wrong) && i < end; i++) {
        number n = number_at(j, p, t, i);
        n.clip = trial->right.theory->clip;
        const verdict r = judge(&trial->right, &n);
        const int link = worst_of(&r, -1, &ratio);
        if (link >= 0 && !other)
            note(&found[t], whole + i - at, link, ratio, r.error[link], r.limit[link]);
        is_wrong |= link >= 0;
    }
    if (other && other->odd & ZERO_ODD_WORDS && t == ZERO_WTE &&
        j->is_read[whole / of->whole_cols])
        return;
    for (int64_t i = at; other && is_wrong && !j->misfits && i < end; i++) {
        number n = number_at(j, p, t, i);
        n.clip = clip_of(j, other, of, whole + i - at);
        if (other->odd & ZERO_ODD_NO_HEAD && t == ZERO_WTE) n.x = 0.0;
        const verdict r = judge(&trial->other, &n);
        if (worst_of(&r, is_shifted ? other->link : -1, &ratio) >= 0) j->misfits = true;
    }
}

struct rows {
    zero_judge *j;
    const zero_judge_piece *p;
    const struct trial *trial;
};

/* Rows are dealt to the threads one by one. */
static void judge_rows(const zero_thread *thread, void *arg)
{
    const struct rows *r = arg;
    const zero_judge *j = r->j;
    const struct trial *trial = r->trial;
    zero_found *found = j->noted + (int64_t)thread->index * trial->n_found;
    const bool tries = !trial->found;
    int64_t row = 0;
    zero_range part;
    for (int t = -1; zero_next_part(j->model, r->p->group, r->p->range, &t, &part);) {
        const zero_tensor *of = &j->model->tensors[t];
        if (!zero_judge_counts(j, of) || (tries && j->found[t].wrong == 0.0)) continue;
        for (int64_t at = part.begin, n; at < part.end; at += n) {
            const zero_stretch run =
                zero_share_run(of, at - of->offset, part.end - of->offset);
            n = zero_min(run.n, of->whole_cols - run.whole % of->whole_cols);
            if (row++ % thread->size == thread->index)
                (trial->beside ? pair_row : judge_row)(r->j, r->p, trial, found, t, at,
                                                       at + n, run.whole);
        }
    }
}

static zero_status judge_piece(zero_judge *j, const zero_judge_piece *p, void *arg)
{
    const struct trial *trial = arg;
    bool is_concerned = trial->found != NULL;
    zero_range part;
    for (int t = -1; zero_next_part(j->model, p->group, p->range, &t, &part);)
        is_concerned |= j->found[t].wrong > 0.0;
    if (!is_concerned || j->misfits) return ZERO_OK;
    ZERO_TRY(read_piece(j, p, trial->found ? NULL : trial->other.theory));
    if (trial->beside) ZERO_TRY(read_piece(trial->beside, p, NULL));
    const int n_noted = j->threads * trial->n_found;
    zero_clear(j->noted, n_noted);
    zero_team_run(&j->e->runner.math, judge_rows, &(struct rows){j, p, trial});
    for (int i = 0; i < n_noted; i++)
        combine(&trial->found[i % trial->n_found], &j->noted[i]);
    return ZERO_OK;
}

static zero_theory right_theory(const zero_judge *j)
{
    return (zero_theory){.whole = 1.0, .clip = zero_judge_clip(j, j->out.grad_norm)};
}

zero_status zero_judge_all(zero_judge *j)
{
    const zero_theory right = right_theory(j);
    struct trial trial = {
        .right = make_law(j, &right), .found = j->found, .n_found = j->model->n_tensors};
    for (int t = 0; t < j->model->n_tensors; t++)
        j->found[t] = (zero_found){.different = zero_comm_is_root(j->e->runner.comm)
                                                    ? j->found[t].different
                                                    : 0.0};
    ZERO_TRY(zero_judge_own(j, judge_piece, &trial));
    return zero_judge_merge(j, j->model->n_tensors, j->found);
}

zero_status zero_judge_pair(zero_judge *j, zero_judge *beside, bool judges,
                            zero_found *pairs)
{
    const zero_theory right = right_theory(j), other = right_theory(beside);
    const int n = ZERO_STEP_PARTS * j->model->n_tensors;
    struct trial trial = {.right = make_law(j, &right),
                          .other = make_law(beside, &other),
                          .beside = beside,
                          .judges = judges,
                          .found = pairs,
                          .n_found = n};
    j->misfits = false;
    zero_clear(pairs, n);
    ZERO_TRY(zero_judge_own(j, judge_piece, &trial));
    return zero_judge_merge(j, n, pairs);
}

zero_status zero_judge_try(zero_judge *j, const zero_theory *theory, bool *fits)
{
    const zero_theory right = right_theory(j);
    struct trial trial = {.right = make_law(j, &right), .other = make_law(j, theory)};
    trial.other.masters = j->file->type == ZERO_FP16 ? ZERO_FP16 : ZERO_BF16;
    j->misfits = false;
    ZERO_TRY(zero_judge_own(j, judge_piece, &trial));
    ZERO_TRY(zero_comm_any(j->e->runner.comm, j->misfits, fits));
    *fits = !*fits;
    return ZERO_OK;
}
