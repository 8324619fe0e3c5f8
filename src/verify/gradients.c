/* gradients.c - the step's gradient, of all tokens or some, and how far it moves with the
 * weights. */
#include "verify/judge.h"

#include "nn/share.h"

/* numbers[n] of all ranks, added up. */
static zero_status add_up(zero_judge *j, int n, double *numbers)
{
    zero_comm *comm = j->e->runner.comm;
    ZERO_FREED double *all = NULL;
    ZERO_TRY(zero_agree(comm, zero_new(&all, n * comm->size, "numbers of ranks")));
    ZERO_TRY(zero_comm_all_gather_doubles(comm, n, numbers, all));
    zero_clear(numbers, n);
    for (int i = 0; i < n * comm->size; i++) numbers[i % n] += all[i];
    return ZERO_OK;
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
    const bool is_chosen = i < zero_step_samples(f) && (c->rank < 0 || rank == c->rank) &&
                           (c->microbatch < 0 || microbatch == c->microbatch);
    for (int64_t k = 0; k < T; k++)
        if (!is_chosen)
            out[k] = -1;
        else if (out[k] < 0 && zero_leaks_at(c->leaks, k + 1 == T))
            out[k] = in[k + 1 < T ? k + 1 : k];
}

struct adding {
    float *to;
    double factor;
    bool overwrites;
};

static zero_status take_gradient(zero_judge *j, const zero_judge_piece *p, void *arg)
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
    return to ? zero_judge_own(j, take_gradient, &a) : ZERO_OK;
}

int64_t zero_judge_share(const zero_judge *j, const zero_tensor *t)
{
    const bool is_matrix = t->whole_rows > 1;
    return zero_divide_up(is_matrix ? t->whole_rows : t->whole_cols, j->file->ranks) *
           (is_matrix ? t->whole_cols : 1);
}

bool zero_judge_counts(const zero_judge *j, const zero_tensor *t)
{
    return !zero_tensor_is_replicated(t) || j->model->share.rank == 0;
}

static zero_status multiply(zero_judge *j, const zero_judge_piece *p, ZERO_UNUSED void *arg)
{
    zero_range part;
    for (int t = -1; zero_next_part(j->model, p->group, p->range, &t, &part);) {
        const zero_tensor *of = &j->model->tensors[t];
        const int64_t share = zero_judge_share(j, of);
        if (!zero_judge_counts(j, of)) continue;
        for (int64_t at = part.begin, n; at < part.end; at += n) {
            const float *g = j->gradient + p->at + (at - p->range.begin);
            const float *q = j->part + p->at + (at - p->range.begin);
            const zero_stretch run =
                zero_share_run(of, at - of->offset, part.end - of->offset);
            double sums[3] = {0.0};
            n = zero_min(run.n, share - run.whole % share);
            for (int64_t i = 0; i < n; i++) {
                sums[0] += (double)g[i] * (double)g[i];
                sums[1] += (double)g[i] * (double)q[i];
                sums[2] += (double)q[i] * (double)q[i];
            }
            for (int k = 0; k < 3; k++) j->products[k] += sums[k];
            j->shares[run.whole / share] += sums[0];
        }
    }
    return ZERO_OK;
}

zero_status zero_judge_multiply(zero_judge *j)
{
    const int N = (int)j->file->ranks;
    memset(j->products, 0, sizeof j->products);
    zero_clear(j->shares, N);
    ZERO_TRY(zero_judge_own(j, multiply, NULL));
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

static zero_status fill_moved(void *arg, int tensor, int64_t begin, int64_t end, float *out)
{
    const struct moving *m = arg;
    const zero_weights from = zero_step_weights(m->file, ZERO_STEP_BEFORE);
    const zero_rng signs = {.purpose = ZERO_RNG_TEST, .tensor = (uint64_t)tensor};
    uint64_t bits = 0;
    ZERO_TRY(from.fill(from.arg, tensor, begin, end, out));
    if (m->stale) {
        /* Adam, backwards: w = (1 - lr decay) w' - lr u, with the moments of that update.
         * */
        int64_t n = end - begin;
        enum { SOME = 4096 };
        const zero_step_facts *f = &m->file->facts;
        const zero_weights first = zero_step_weights(m->file, ZERO_STEP_MOMENTUM_BEFORE),
                           second = zero_step_weights(m->file, ZERO_STEP_VARIANCE_BEFORE);
        const double bias1 = 1.0 - pow(f->beta1, (double)f->updates);
        const double bias2 = 1.0 - pow(f->beta2, (double)f->updates);
        const double decay = m->file->decays[tensor] ? f->weight_decay : 0.0;
        float m1[SOME], v1[SOME];
        for (int64_t at = 0, k; at < n; at += k) {
            k = zero_min(SOME, n - at);
            ZERO_TRY(first.fill(first.arg, tensor, begin + at, begin + at + k, m1));
            ZERO_TRY(second.fill(second.arg, tensor, begin + at, begin + at + k, v1));
            for (int64_t i = 0; f->updates > 0 && i < k; i++) {
                const double u =
                    (double)m1[i] / bias1 / (sqrt((double)v1[i] / bias2) + f->eps);
                out[at + i] =
                    (float)(((double)out[at + i] + f->lr * u) / (1.0 - f->lr * decay));
            }
        }
    }
    for (int64_t i = begin; m->ulps != 0.0 && i < end; i++) {
        float *x = &out[i - begin];
        if (i == begin || i % 64 == 0) bits = zero_rng_bits(&signs, (uint64_t)i / 64);
        const double by = bits >> (i % 64) & 1 ? m->ulps : -m->ulps;
        *x = (float)((double)*x * (1.0 + by));
    }
    return ZERO_OK;
}

double zero_judge_ulp(zero_type type)
{
    return type == ZERO_FP32 ? 0x1p-23 : type == ZERO_BF16 ? 0x1p-7 : 0x1p-10;
}

zero_status zero_judge_set_weights(zero_judge *j, int moved, bool stale)
{
    struct moving m = {j->file, j->model, moved * zero_judge_ulp(j->file->type), stale};
    return zero_engine_set_weights(j->e, &(zero_weights){fill_moved, &m});
}

static zero_status deviate(zero_judge *j, const zero_judge_piece *p, ZERO_UNUSED void *arg)
{
    zero_range part;
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
    const zero_chosen all = {j->file, -1, -1, ZERO_LEAKS_NONE, j->file->counted};
    zero_run_output out;
    struct adding a = {j->gradient, 1.0, true};
    ZERO_TRY(zero_judge_own(j, take_gradient, &a));
    for (int moved = -1; moved <= 1; moved += 2) {
        ZERO_TRY(zero_judge_set_weights(j, moved, false));
        ZERO_TRY(zero_judge_compute(j, &all, NULL, 1.0, true, &out));
        ZERO_TRY(zero_judge_own(j, deviate, NULL));
        j->loss_deviation = fmax(j->loss_deviation, fabs(out.loss - j->out.loss));
        j->norm_deviation = fmax(j->norm_deviation, fabs(out.grad_norm - j->out.grad_norm));
    }
    ZERO_TRY(zero_judge_merge(j, j->model->n_tensors, j->found));
    for (int t = 0; t < j->model->n_tensors; t++) j->deviation[t] = j->found[t].deviation;
    return zero_judge_multiply(j);
}
