/* Finds which row of causes.def makes a wrong step of the right one. */

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
    double whole, part; /* the right gradient times `whole`, plus `part` times j->part */
    clipping clip;
    unsigned odd;
    int link, shift; /* with a shift: see zero_theory */
    bool by_rows;
    const char *sentence; /* after "is the reference"; %: which rank or microbatch */
} cause;

#define CAUSE(name, of, whole, part, clip, odd, sentence) \
    {#name, of, whole, part, clip, odd, 0, 0, false, sentence},
#define SHIFT(name, link, shift, by_rows, sentence) \
    {#name, ONCE, 1, 0, BY_NORM, 0, link, shift, by_rows, sentence},

/* Row k of causes.def; false after the last one. */
static bool cause_at(const zero_judge *j, int k, cause *c)
{
    const double n = (double)j->file->ranks, m = (double)j->file->microbatches;
    const double scale = j->file->facts.loss_scale;
    const cause causes[] = {
#include "verify/causes.def"
    };
    if (k < ZERO_COUNT(causes)) *c = causes[k];
    return k < ZERO_COUNT(causes);
}

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
    zero_theory t = {.whole = c->whole,
                     .part = c->part,
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
    zero_print(one, "%s %d of %d", c->of == EACH_MICROBATCH ? "microbatch" : "rank", i + 1,
               times_of(j, c->of));
    if (c->of == EACH_PAIR) {
        pair_of(j->file, i, &read, &by);
        zero_print(one, "rank %d in place of those of rank %d", (int)read + 1, (int)by + 1);
    }
    zero_print(text, "%.*s%s%s", before, c->sentence, *after ? one : "",
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
            cause c;
            for (int k = 0; cause_at(j, k, &c); k++) {
                if (c.of != (scope)of) continue;
                const zero_theory t = theory_of(j, &c, i);
                bool fits;
                if (is_idle(j, &c, &t) || !says_so(j, &t, is_wrong)) continue;
                ZERO_TRY(zero_judge_try(j, &t, &fits));
                if (!fits) continue;
                *found = tell(j, &c, i);
                return zero_agree(j->e->runner.comm,
                                  zero_allocated(*found, "no memory for a cause"));
            }
        }
    return ZERO_OK;
}
