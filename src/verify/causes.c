/* Wrong steps, one per row: what each makes of the right one, and how it is said. */

#include "verify/judge.h"

#define PAIRED 8 /* ranks of which all pairs are tried, at most */

/* What j->part is the gradient of; a row is tried for each rank or microbatch. */
typedef enum {
    EACH_SHARE = -1, /* nothing: a row concerns the rows of one rank */
    ONCE,            /* nothing: there is no part */
    EACH_RANK,       /* one rank's tokens */
    EACH_MICROBATCH, /* one microbatch of each rank */
    EACH_PAIR,       /* one rank's tokens less those of another */
    LEAKED,          /* all tokens, and those that do not count */
    LEAKED_LAST,     /* the same with the last position, whose target is its own token */
    MEANS,           /* each rank's mean, averaged */
    PARTS_MEANS,     /* that of each microbatch of each rank */
    STALE,           /* all tokens, with the weights of the step before */
    SCOPES
} scope;

/* Factors of gradients. */
typedef enum {
    ONE,
    NONE,
    N,     /* ranks */
    M,     /* microbatches */
    NM,    /* both */
    REST,  /* N / (N - 1) */
    SCALE, /* the loss scale */
    MINUS_ONE,
    MINUS_REST
} factor;

static double value_of(const zero_judge *j, factor of)
{
    const double n = (double)j->file->ranks, m = (double)j->file->microbatches;
    switch (of) {
    case NONE: return 0.0;
    case ONE: return 1.0;
    case N: return n;
    case M: return m;
    case NM: return n * m;
    case REST: return n / (n - 1.0);
    case SCALE: return j->file->facts.loss_scale;
    case MINUS_ONE: return -1.0;
    case MINUS_REST: return -n / (n - 1.0);
    default: return 1.0;
    }
}

/* Clipping. */
typedef enum {
    BY_NORM, /* as it should be, of the gradient that this row makes */
    NOT,
    SCALED, /* by the norm with the loss scale */
    TWICE,
    SHORT,   /* by the norm without one rank's rows */
    AS_FILE, /* by the norm that the file says */
} clipping;

typedef struct {
    const char *name;
    scope of;
    factor whole, over; /* the right gradient, times `whole` / `over` */
    factor part;        /* plus the part, times this */
    clipping clip;
    unsigned odd;
    const char *sentence; /* after "is the reference"; %: which rank or microbatch */
    int link;             /* with a shift */
    int shift;
    bool by_rows;
} cause;

static const cause causes[] = {
    {.name = "last_microbatch",
     .of = EACH_MICROBATCH,
     .whole = NONE,
     .part = M,
     .sentence = "with % alone in place of the mean of all"},
    {.name = "one_microbatch",
     .of = EACH_MICROBATCH,
     .whole = NONE,
     .sentence = "with % alone"},
    {.name = "rank_missing", .of = EACH_RANK, .part = MINUS_ONE, .sentence = "without %"},
    {.name = "rank_left_out",
     .of = EACH_RANK,
     .whole = REST,
     .part = MINUS_REST,
     .sentence = "without %, as the mean of the others"},
    {.name = "rank_twice", .of = EACH_RANK, .sentence = "with % counted twice"},
    {.name = "microbatch_missing",
     .of = EACH_MICROBATCH,
     .part = MINUS_ONE,
     .sentence = "without %"},
    {.name = "microbatch_twice", .of = EACH_MICROBATCH, .sentence = "with % counted twice"},
    {.name = "own_rank",
     .of = EACH_RANK,
     .whole = NONE,
     .part = N,
     .sentence = "with the gradient of % alone: it was not reduced"},
    {.name = "means_of_ranks",
     .of = MEANS,
     .whole = NONE,
     .sentence =
         "with the mean of the ranks' means, though they have unequal numbers of tokens"},
    {.name = "means_of_parts",
     .of = PARTS_MEANS,
     .whole = NONE,
     .sentence = "with the mean of the microbatches' means, though they have unequal "
                 "numbers of tokens"},
    {.name = "padding",
     .of = LEAKED,
     .whole = NONE,
     .sentence = "with the positions that should not count: padding leaks into the loss"},
    {.name = "stale",
     .of = STALE,
     .whole = NONE,
     .sentence =
         "with the gradient at the weights of the step before: they are one step old"},
    {.name = "unscaled", .whole = SCALE, .sentence = "with gradients times the loss scale"},
    {.name = "sum", .whole = N, .sentence = "with the sum over ranks in place of the mean"},
    {.name = "accumulation",
     .whole = M,
     .sentence = "with the sum over microbatches in place of the mean"},
    {.name = "sum_of_all",
     .whole = NM,
     .sentence = "with the sum over ranks and microbatches in place of the mean"},
    {.name = "mean_twice",
     .over = N,
     .sentence = "divided by the number of ranks once more"},
    {.name = "accumulation_twice",
     .over = M,
     .sentence = "divided by the number of microbatches once more"},
    {.name = "other_samples", .of = EACH_PAIR, .sentence = "with the samples of %"},
    {.name = "padding",
     .of = LEAKED_LAST,
     .whole = NONE,
     .sentence = "with the positions that should not count: padding leaks into the loss"},
    {.name = "not_clipped", .clip = NOT, .sentence = "without clipping"},
    {.name = "clip_scaled",
     .clip = SCALED,
     .sentence = "clipped by the norm before the loss scale was taken out"},
    {.name = "clip_twice", .clip = TWICE, .sentence = "clipped twice"},
    {.name = "clip_by_share",
     .odd = ZERO_ODD_BY_SHARE,
     .sentence = "clipped on each rank by the norm of its own shard"},
    {.name = "norm_short",
     .of = EACH_SHARE,
     .clip = SHORT,
     .sentence = "clipped by a norm without the shard of %"},
    {.name = "other_norm",
     .clip = AS_FILE,
     .sentence = "clipped by the norm in the file, which is not that of the gradient"},
    {.name = "tied_head",
     .clip = AS_FILE,
     .odd = ZERO_ODD_WORDS,
     .sentence =
         "without what reading words adds to their gradient: tied weights count once"},
    {.name = "tied_embedding",
     .clip = AS_FILE,
     .odd = ZERO_ODD_WORDS | ZERO_ODD_NO_HEAD,
     .sentence =
         "without what the head adds to the gradient of words: tied weights count once"},
    {.name = "eps_inside",
     .odd = ZERO_ODD_EPS_INSIDE,
     .sentence = "with Adam's eps below the root"},
    {.name = "no_bias_correction",
     .odd = ZERO_ODD_NO_BIAS,
     .sentence = "without Adam's bias correction"},
    {.name = "count_early",
     .odd = ZERO_ODD_EARLIER,
     .sentence = "with Adam's step count one too low"},
    {.name = "count_late",
     .odd = ZERO_ODD_LATER,
     .sentence = "with Adam's step count one too high"},
    {.name = "l2",
     .odd = ZERO_ODD_L2,
     .sentence = "with weight decay in the gradient (L2) in place of decoupled decay"},
    {.name = "all_decay",
     .odd = ZERO_ODD_ALL_DECAY,
     .sentence = "with weight decay on gains and biases, too"},
    {.name = "no_decay", .odd = ZERO_ODD_NONE_DECAYS, .sentence = "without weight decay"},
    {.name = "old_update",
     .odd = ZERO_ODD_STALE,
     .sentence = "with the update of the step before"},
    {.name = "masters",
     .odd = ZERO_ODD_MASTERS,
     .sentence = "with weights kept in 16 bits: there are no fp32 masters"},
    {.name = "shards_back",
     .link = ZERO_LINK_WEIGHT,
     .shift = -1,
     .sentence = "with the rows of each rank where those of the rank before belong"},
    {.name = "shards_forth",
     .link = ZERO_LINK_WEIGHT,
     .shift = 1,
     .sentence = "with the rows of each rank where those of the next rank belong"},
    {.name = "rows_back",
     .link = ZERO_LINK_WEIGHT,
     .shift = -1,
     .by_rows = true,
     .sentence = "with its rows shifted up by one"},
    {.name = "rows_forth",
     .link = ZERO_LINK_WEIGHT,
     .shift = 1,
     .by_rows = true,
     .sentence = "with its rows shifted down by one"},
    {.name = "gradient_back",
     .link = ZERO_LINK_GRADIENT,
     .shift = -1,
     .sentence =
         "with the gradient's rows of each rank where those of the rank before belong"},
    {.name = "gradient_forth",
     .link = ZERO_LINK_GRADIENT,
     .shift = 1,
     .sentence =
         "with the gradient's rows of each rank where those of the next rank belong"},
    {.name = "gradient_up",
     .link = ZERO_LINK_GRADIENT,
     .shift = -1,
     .by_rows = true,
     .sentence = "with the gradient's rows shifted up by one"},
    {.name = "gradient_down",
     .link = ZERO_LINK_GRADIENT,
     .shift = 1,
     .by_rows = true,
     .sentence = "with the gradient's rows shifted down by one"},
};

/* ---- the part of a row ---- */

static int times_of(const zero_judge *j, scope of)
{
    const zero_step_file *f = j->file;
    switch (of) {
    case EACH_SHARE:
    case EACH_RANK: return f->ranks > 1 ? (int)f->ranks : 0;
    case EACH_PAIR: return f->ranks <= PAIRED ? (int)(f->ranks * (f->ranks - 1)) : 0;
    case EACH_MICROBATCH: return f->microbatches > 1 ? (int)f->microbatches : 0;
    case LEAKED:
    case LEAKED_LAST: return f->counted < zero_step_samples(f) * f->seq;
    case MEANS: return f->ranks > 1 && f->counted < zero_step_samples(f) * f->seq;
    case PARTS_MEANS:
        return f->microbatches > 1 && f->counted < zero_step_samples(f) * f->seq;
    case STALE: return f->facts.updates > 0;
    default: return 1;
    }
}

static int64_t count(const zero_step_file *f, int64_t rank, int64_t microbatch,
                     zero_leaks leaks)
{
    const int64_t n = f->batch * f->seq;
    int64_t counted = 0;
    for (int64_t i = 0; i < zero_step_samples(f) * f->seq; i++)
        counted += (rank < 0 || i / n / f->microbatches == rank) &&
                   (microbatch < 0 || i / n % f->microbatches == microbatch) &&
                   (f->targets[i] >= 0 || zero_leaks_at(leaks, (i + 1) % f->seq == 0));
    return counted;
}

/* The means of ranks, or of their microbatches, averaged. */
static zero_status add_means(zero_judge *j, bool of_parts)
{
    const zero_step_file *f = j->file;
    const int64_t parts = of_parts ? f->microbatches : 1;
    zero_run_output out;
    bool is_first = true;
    for (int64_t r = 0; r < f->ranks; r++)
        for (int64_t m = 0; m < parts; m++) {
            zero_chosen c = {.file = f, .rank = r, .microbatch = of_parts ? m : -1};
            c.counted = count(f, c.rank, c.microbatch, ZERO_LEAKS_NONE);
            if (c.counted == 0) continue;
            ZERO_TRY(zero_judge_compute(j, &c, j->part, 1.0 / (double)(f->ranks * parts),
                                        is_first, &out));
            is_first = false;
        }
    return ZERO_OK;
}

/* Pair i: the rank whose samples are read, and the one that should read others. */
static void pair_of(const zero_step_file *f, int i, int64_t *read, int64_t *by)
{
    *by = i / (f->ranks - 1);
    *read = i % (f->ranks - 1);
    *read += *read >= *by;
}

/* Computes j->part for the i-th time. */
static zero_status make_part(zero_judge *j, scope of, int i)
{
    const zero_step_file *f = j->file;
    zero_chosen c = {.file = f, .rank = -1, .microbatch = -1, .counted = f->counted};
    zero_run_output out;
    ZERO_TRY(zero_judge_set_weights(j, 0, of == STALE));
    switch (of) {
    case MEANS:
    case PARTS_MEANS: return add_means(j, of == PARTS_MEANS);
    case EACH_RANK: c.rank = i; break;
    case EACH_MICROBATCH: c.microbatch = i; break;
    case EACH_PAIR: {
        int64_t read;
        pair_of(f, i, &read, &c.rank);
        ZERO_TRY(zero_judge_compute(j, &c, j->part, -1.0, true, &out));
        c.rank = read;
        return zero_judge_compute(j, &c, j->part, 1.0, false, &out);
    }
    case LEAKED:
    case LEAKED_LAST:
        c.leaks = of == LEAKED ? ZERO_LEAKS_INNER : ZERO_LEAKS_ALL;
        c.counted = count(f, -1, -1, c.leaks);
        break;
    default: break;
    }
    return zero_judge_compute(j, &c, j->part, 1.0, true, &out);
}

/* ---- trying ---- */

static zero_theory theory_of(const zero_judge *j, const cause *c, int i)
{
    zero_theory t = {.whole = value_of(j, c->whole) / value_of(j, c->over),
                     .part = c->of <= ONCE ? 0.0 : value_of(j, c->part),
                     .odd = c->odd,
                     .link = c->link,
                     .shift = c->shift,
                     .by_rows = c->by_rows};
    const double *p = j->products;
    double square =
        t.whole * t.whole * p[0] + 2.0 * t.whole * t.part * p[1] + t.part * t.part * p[2];
    t.norm = sqrt(square);
    if (c->clip == SHORT) square -= j->shares[i];
    double norm = sqrt(fmax(square, 0.0));
    if (c->clip == SCALED) norm *= j->file->facts.loss_scale;
    if (c->clip == AS_FILE && !isnan(j->file->norm)) norm = j->file->norm;
    t.clips_by = norm;
    t.clip = c->clip == NOT ? 1.0 : zero_judge_clip(j, norm);
    if (c->clip == TWICE) t.clip *= t.clip;
    return t;
}

/* A row that says nothing else than the right step. */
static bool is_idle(const zero_judge *j, const cause *c, const zero_theory *t)
{
    const zero_shape s = zero_shape_complete(&j->file->shape);
    if (c->odd & ZERO_ODD_WORDS) return !s.tied;
    if (c->odd & ZERO_ODD_BY_SHARE)
        return j->file->ranks == 1 || j->file->facts.clip == 0.0;
    if (c->shift != 0)
        return (!c->by_rows && j->file->ranks == 1) || j->model->share.ranks > 1;
    return c->odd == 0 && t->whole == 1.0 && t->part == 0.0 &&
           t->clip == zero_judge_clip(j, j->out.grad_norm) && t->clips_by == t->norm;
}

/* True if the file's norm is the theory's, of the gradient or as it clips by; tied weights
 * and shares have others. If no tensor is wrong this alone decides, for a theory that
 * clipping hides. */
static bool says_so(const zero_judge *j, const zero_theory *t, bool is_wrong)
{
    const double said = j->file->norm, right = j->out.grad_norm;
    const double limit = ZERO_JUDGE_FACTOR * j->norm_deviation / fmax(right, 0x1p-100) +
                         zero_judge_roughness(j->file);
    const bool is_hidden =
        t->odd == 0 && t->shift == 0 && t->part == 0.0 &&
        fabs(t->whole * t->clip / zero_judge_clip(j, right) - 1.0) <= limit + 0x1p-15;
    if (!is_wrong && (!is_hidden || isnan(said))) return false;
    return isnan(said) || t->odd & (ZERO_ODD_WORDS | ZERO_ODD_BY_SHARE) ||
           fabs(said - t->norm) <= limit * t->norm ||
           fabs(said - t->clips_by) <= limit * t->clips_by;
}

static json_t *tell(const zero_judge *j, const cause *c, int i)
{
    char one[64], text[256];
    const int before = (int)strcspn(c->sentence, "%");
    const char *after = c->sentence + before;
    int64_t read, by;
    snprintf(one, sizeof one, "%s %d of %d",
             c->of == EACH_MICROBATCH ? "microbatch" : "rank", i + 1, times_of(j, c->of));
    if (c->of == EACH_PAIR) {
        pair_of(j->file, i, &read, &by);
        snprintf(one, sizeof one, "rank %d in place of those of rank %d", (int)read + 1,
                 (int)by + 1);
    }
    snprintf(text, sizeof text, "%.*s%s%s", before, c->sentence, *after ? one : "",
             *after ? after + 1 : "");
    return json_pack("{s:s, s:s}", "name", c->name, "sentence", text);
}

zero_status zero_judge_explain(zero_judge *j, json_t **found)
{
    bool is_wrong = false;
    *found = NULL;
    for (int t = 0; t < j->model->n_tensors; t++) is_wrong |= j->found[t].wrong > 0.0;
    for (int of = EACH_SHARE; of < SCOPES; of++)
        for (int i = 0; i < times_of(j, (scope)of); i++) {
            if (of > ONCE) {
                ZERO_TRY(make_part(j, (scope)of, i));
                ZERO_TRY(zero_judge_multiply(j));
            }
            for (int k = 0; k < ZERO_COUNT(causes); k++) {
                const cause *c = &causes[k];
                if (c->of != (scope)of) continue;
                const zero_theory t = theory_of(j, c, i);
                bool fits;
                if (is_idle(j, c, &t) || !says_so(j, &t, is_wrong)) continue;
                ZERO_TRY(zero_judge_try(j, &t, &fits));
                if (!fits) continue;
                *found = tell(j, c, i);
                return zero_agree(j->e->runner.comm,
                                  zero_allocated(*found, "no memory for a cause"));
            }
        }
    return ZERO_OK;
}
