/* judge.h - a computed step beside the file's: each number of the file is judged by those
 * before it, so that a fault is found where it is.
 *
 *     weights, tokens   computed   gradient x      |file - x| <= tolerance of its tensor
 *     m, x of the file             moment m'       m' = b1 m + (1 - b1) x
 *     v, x of the file             moment v'       v' = b2 v + (1 - b2) x^2
 *     w, m', v' of the file        weight w'       AdamW
 *
 * The file's x is gradient/NAME, or follows from m and m'. The last three have the
 * tolerance of a few roundings. That of x is measured: the gradient is computed twice more,
 * from weights that are moved by one ulp of the step's type, up or down at random, and once
 * the other way. ZERO_JUDGE_FACTOR times the largest deviation in a tensor is its
 * tolerance. */
#pragma once

#include "verify/states.h"

#define ZERO_JUDGE_FACTOR  8.0
#define ZERO_JUDGE_AT_ONCE ((int64_t)1 << 16) /* elements that are compared at one time */

typedef enum {
    ZERO_LINK_GRADIENT,
    ZERO_LINK_MOMENTUM,
    ZERO_LINK_VARIANCE,
    ZERO_LINK_WEIGHT,
    ZERO_LINKS
} zero_link_kind;

/* What was found of a tensor: numbers, which ranks send each other. */
typedef struct {
    double different;          /* numbers of weights and moments with other bits */
    double wrong, first, last; /* elements outside the tolerance */
    double ratio;              /* the largest error, in tolerances; and what it was: */
    double link, error, limit, at;
    double deviation; /* the largest of the gradient's, when weights move */
} zero_found;

/* How a step may be wrong. */
enum {
    ZERO_ODD_NO_BIAS = 1,    /* no bias correction */
    ZERO_ODD_EPS_INSIDE = 2, /* eps is added below the root */
    ZERO_ODD_EARLIER = 4,    /* Adam's count is one less */
    ZERO_ODD_LATER = 8,
    ZERO_ODD_L2 = 16,        /* the decay is part of the gradient */
    ZERO_ODD_ALL_DECAY = 32, /* gains and biases, too */
    ZERO_ODD_NONE_DECAYS = 64,
    ZERO_ODD_MASTERS = 128,  /* weights have 16 bits */
    ZERO_ODD_STALE = 256,    /* the update is made with the moments before it */
    ZERO_ODD_BY_SHARE = 512, /* each rank's rows are clipped by their own norm */
    ZERO_ODD_NO_HEAD = 2048, /* the gradient of words lacks what the head adds */
    ZERO_ODD_WORDS = 1024,   /* nothing is said of the rows of words that the step reads */
};
typedef struct {
    double whole,
        part;    /* the gradient is `whole` times the right one + `part` times j->part */
    double clip; /* its factor; of the right one: of its norm */
    double norm, clips_by; /* of the gradient, and that which it is clipped by */
    unsigned odd;
    int link;      /* with a shift: this result alone, ... */
    int64_t shift; /* in shares of rows, or rows: */
    bool by_rows;  /* ... is that of other rows */
} zero_theory;

typedef struct {
    zero_step_file *file;
    zero_engine *e;
    const zero_model *model; /* this rank's part */
    zero_run_output out;     /* of the step */
    double loss_deviation, norm_deviation;
    /* [what this rank owns] the gradient, and that of some of the tokens. */
    float *gradient, *part;
    double products[3]; /* of the two: gradient^2, gradient part, part^2 */
    double *shares;     /* [file->ranks] squares of the gradient in each rank's rows */
    double *deviation;  /* [n_tensors] */
    zero_found *found;  /* [n_tensors] */
    bool *is_read;      /* [vocab] words that the step reads */
    int threads;
    zero_found *noted;   /* [threads][n_tensors], of the present piece */
    float *room;         /* [ZERO_STEP_PARTS][ZERO_JUDGE_AT_ONCE] */
    int group;           /* of the piece that is compared */
    atomic_bool misfits; /* the theory does not explain a wrong row */
} zero_judge;

/* The factor that clips a gradient of this norm. */
double zero_judge_clip(const zero_judge *j, double norm);

/* Judges all numbers of the file by the right theory: sets j->found. Collective. */
zero_status zero_judge_all(zero_judge *j);
/* How far rounding may move a loss or a norm, as a share of it. */
static inline double zero_judge_roughness(const zero_step_file *f)
{
    return f->type == ZERO_FP32 ? 0x1p-20 : 0x1p-7;
}
/* *fits: every row that is wrong is right by this theory. Collective. */
zero_status zero_judge_try(zero_judge *j, const zero_theory *theory, bool *fits);

/* pairs[ZERO_STEP_PARTS][n_tensors]: j's file and the other one's, number by number: bits
 * and inputs, and with `judges`, for which both are measured, results.
 * Collective. */
zero_status zero_judge_pair(zero_judge *j, zero_judge *beside, bool judges,
                            zero_found *pairs);

/* Positions whose targets do not count, and count all the same. */
typedef enum {
    ZERO_LEAKS_NONE,
    ZERO_LEAKS_INNER, /* but the last one of each sequence, which has no next token */
    ZERO_LEAKS_ALL
} zero_leaks;
static inline bool zero_leaks_at(zero_leaks leaks, bool is_last)
{
    return leaks == ZERO_LEAKS_ALL || (leaks == ZERO_LEAKS_INNER && !is_last);
}

/* Some of the step's tokens. */
typedef struct {
    const zero_step_file *file;
    int64_t rank, microbatch; /* -1: of all */
    zero_leaks leaks;
    int64_t counted; /* that the mean is taken over */
} zero_chosen;
/* The gradient of these tokens with the engine's weights, times `factor`, is added to
 * to[], or overwrites it; NULL: it stays in the engine. Collective. */
zero_status zero_judge_compute(zero_judge *j, const zero_chosen *chosen, float *to,
                               double factor, bool overwrites, zero_run_output *out);
/* Sets the engine's weights: those before the step, each moved by `moved` ulps of the
 * step's type, up or down; or, with `stale`, those one step earlier. Collective. */
zero_status zero_judge_set_weights(zero_judge *j, int moved, bool stale);
/* Compares the engine's states with the file's results: sets found[].different, alone.
 * Collective. */
zero_status zero_judge_bits(zero_judge *j);
/* The products and shares of j->gradient and j->part. Collective. */
zero_status zero_judge_multiply(zero_judge *j);
/* Takes the engine's gradient, and measures deviations. Collective. */
zero_status zero_judge_measure(zero_judge *j);

/* ---- for the files of this folder ---- */

typedef struct {
    int group;
    zero_range range;
    int64_t at; /* of its first element in j->gradient and j->part */
} zero_judge_piece;
/* Of what this rank owns. Each element is owned by one rank, but for tensors that all ranks
 * of a TP group have: of those zero_judge_counts() is true on one. */
typedef zero_status zero_judge_work(zero_judge *j, const zero_judge_piece *p, void *arg);
zero_status zero_judge_own(zero_judge *j, zero_judge_work *fn, void *arg);
bool zero_judge_counts(const zero_judge *j, const zero_tensor *t);
/* Puts together what the ranks have found, found[n]. Collective. */
zero_status zero_judge_merge(zero_judge *j, int n, zero_found *found);
/* Elements of a rank's share: of the dimension that frameworks cut, as torch.chunk()
 * deals. */
int64_t zero_judge_share(const zero_judge *j, const zero_tensor *t);

/* The distance of neighbouring numbers is this part of them, or half of it. */
double zero_judge_ulp(zero_type type);

/* causes.c: names the theory that explains what is wrong, as a JSON object with "name" and
 * "sentence", or null: the caller's. Collective. */
zero_status zero_judge_explain(zero_judge *j, json_t **cause);
