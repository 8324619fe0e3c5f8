/* model.h - a model, described: tensors in groups, read by units.
 *
 *     tensors   have a name and a shape: "h.3.mlp.c_fc.weight" [C, 4C]
 *     groups    tensors that live and travel together, end to end in one flat space
 *     units     steps of the forward pass; each reads at most two groups
 *
 *     unit 0 -- out --> unit 1 -- out --> ... --> the last unit: losses
 *            <- stream -      <- stream -         gradients of the same shapes
 *
 * Several units may read one group: the tied embedding is one group, read by the first unit
 * and the last. Describing a model takes no memory for its parameters, so 10^12 of them
 * take no longer than a few. Lengths count elements, unless they say bytes.
 *
 * A unit may touch its parameters only inside its calls: when they are in memory is the
 * trainer's decision (ZeRO, arXiv:1910.02054, section 5). Nothing here is collective. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zero/math.h"
#include "zero/status.h"
#include "zero/type.h"

ZERO_API_BEGIN

#define ZERO_UNIT_GROUPS 2 /* groups that one unit may read */

typedef enum { ZERO_INIT_ZEROS, ZERO_INIT_ONES, ZERO_INIT_NORMAL } zero_init_kind;

/* How tensor parallelism cuts a tensor: not at all, so that all ranks of a TP group have
 * it; into ranges of rows; or into ranges of columns of each of its parts. */
typedef enum { ZERO_CUT_NONE, ZERO_CUT_ROWS, ZERO_CUT_COLS } zero_cut;

typedef struct {
    char name[64];      /* Hugging Face's for GPT-2 */
    int64_t rows, cols; /* a vector has one row */
    int64_t offset;     /* in its group's flat space; set by zero_model_describe() */
    int group;
    bool decays; /* AdamW's weight decay acts on it: matrices, not gains and biases */
    zero_init_kind init;
    float init_std; /* of ZERO_INIT_NORMAL */

    zero_cut cut;
    int cut_parts; /* ZERO_CUT_COLS: equal parts side by side, as q|k|v; 0 counts as 1 */
    bool out_in;   /* a linear layer's, stored [out, in]; else [in, out] */
    /* The weights of a product between layers, neither a table of words nor the head: Muon
     * moves it as a whole. */
    bool is_hidden;
    /* The whole tensor's shape, and the first of its rows or columns (in each part) that is
     * here. zero_model_describe() sets them to rows, cols and 0; zero_model_share() makes a
     * rank's part. */
    int64_t whole_rows, whole_cols, first;
} zero_tensor;

/* The part of a model that one rank of a TP group has. Sums over a dimension that is cut
 * are trees over `slices` fixed slices, of which each rank has slices / ranks neighbours:
 * so they do not depend on the number of ranks. {1, 0, 1}: the whole model, each sum in one
 * piece. */
typedef struct {
    int ranks, rank, slices;
} zero_share;

/* zero_model_describe() sets all but the name. */
typedef struct {
    char name[32];
    int first_tensor, n_tensors;
    int64_t n_params;
} zero_group;

/* The microbatch that a call works on. Inputs and targets are as the source wrote them: T
 * positions of the first sample, then those of the next. */
typedef struct {
    int64_t B, T;
    const void *inputs, *targets; /* [B,T] of the model's; targets NULL when generating */
    /* Generating with a cache: sample b's positions past[b], past[b] + 1, ... are these T,
     * and those before are in the cache; room: the most positions of a text. NULL: they are
     * 0, 1, ... An array of the host, also on a device. */
    const int64_t *past;
    int64_t room;
    int64_t step, first_sample; /* sample b of the call is first_sample + b of the step */
    float loss_seed;            /* d(objective)/d(loss of one position) */
} zero_batch;

/* One forward or backward call. `in`, `out` and `stream` are arrays of unit->activations,
 * whatever their pointers say: of fp32, unless the unit heeds others. The caller owns all
 * memory, which has the sizes that the unit asked for, aligned to 64 bytes; NULL where it
 * asked for none. What may be touched when:
 *
 *               forward                       backward
 *     in        read                          read: the same numbers as in forward
 *     saved     written, in every program     read: as forward left it, also after
 *                                             --recompute
 *     out       written                       NULL
 *     stream    NULL                          read, then written in place
 *     grad      NULL                          set or added to
 *     work      contents are undefined at the start of each call
 *
 * While evaluating and generating (not `training`) no backward call follows, but `saved` is
 * there all the same and may serve as workspace. Nothing is cleared for a unit: in each
 * microbatch the unit that comes first in backward order sets a group's gradient
 * (accumulate false), and each further one adds (true): with a tied embedding the last unit
 * sets and the first one adds. A unit that sets by sums clears the gradient itself. */
typedef struct {
    const zero_backend *backend;
    const zero_math *math;
    const zero_batch *batch;
    bool training; /* dropout acts; a backward call will read `saved` */

    zero_type type;                      /* of the parameters; a gradient is fp32 */
    const void *param[ZERO_UNIT_GROUPS]; /* the unit's groups, whole */
    float *grad[ZERO_UNIT_GROUPS];       /* backward: their gradients */
    /* true: the call adds to grad[k]; false: it sets every element */
    bool accumulate[ZERO_UNIT_GROUPS];

    const float *in; /* the previous unit's output; NULL for the first */
    float *out;      /* forward; NULL: not wanted (recompute_without_out) */
    float *stream;   /* backward, in place: gradient of the output, then of the input */
    float *saved;    /* written by forward, read by backward */
    float *work;     /* its contents matter only inside the call */
    /* Generating with a cache: the unit's `cache` floats of each sample, one after the
     * other. A call keeps there what later positions need; with batch->past it reads what
     * earlier calls kept. */
    float *cache;
    /* last unit only: workspace, or [B,V] of the last position (generating): of all words,
     * also in a shared model, on all ranks */
    float *logits;
    float *row_loss; /* last unit only: [B,T] */

    /* ZERO_PART_ALL; or, of a model that is shared, the part of the pass that this call
     * computes. All parts of a pass have the same memory, whose contents stay. */
    int64_t part;
    float *joint;        /* written, if the part joins; else NULL */
    const float *joined; /* read, if the part waits; else NULL. May be joint */
} zero_call;

#define ZERO_PART_ALL (-1)

/* The ways through a unit. */
typedef enum {
    ZERO_PASS_FORWARD,   /* of a training step */
    ZERO_PASS_RECOMPUTE, /* the same without `out`, if the unit can leave it out */
    ZERO_PASS_BACKWARD,
    ZERO_PASS_EVALUATE,
    ZERO_PASS_GENERATE
} zero_pass;

/* A join turns a part's `joint` into `joined`, while the next part may compute: into its
 * sum over the ranks of the TP group, along the tree; or into the arrays of all ranks, in
 * their order. */
typedef enum { ZERO_JOIN_NONE, ZERO_JOIN_SUM, ZERO_JOIN_GATHER } zero_join;

/* One part of a unit's pass. At most one join is in flight: between a part that joins and
 * the next that waits no part joins. */
typedef struct {
    bool waits; /* the part reads `joined`, of the last part that joined */
    zero_join join;
    /* Floats of `joint`, the same on all ranks; those of a sum are a multiple of the ranks.
     * While a text shorter than planned is generated, the rest may have any values. */
    int64_t count;
    bool is_last;
} zero_unit_part;

/* Floats that a unit needs for B samples of T positions; `out`: elements. `row_loss` is B*T
 * for the last unit and 0 for all others. Of a shared model: what this rank needs for all
 * parts of a pass, without `joint` and `joined`. */
typedef struct {
    int64_t out, saved, forward_work, backward_work, logits, row_loss;
    /* While texts are generated: floats kept of one sample (B = 1) of at most T
     * positions. */
    int64_t cache;
    int64_t thread_work;    /* of `work`, for each thread of the rank but the first */
    double flops;           /* of its forward call, for plans; 0: not known */
    double recompute_flops; /* of a forward call without `out`; 0: the same */
} zero_unit_sizes;

/* The last unit of the library computes logits in chunks of `rows` rows. Rows are a
 * multiple of `step` floats apart. */
typedef struct {
    int64_t rows, step;
} zero_logits_chunk;

/* Units have no state: equal calls give equal bits. A forward pass may be repeated
 * (recompute). In every stage a unit meets the same numbers.
 *
 * The last unit computes the loss of each position; the objective is their mean over the
 * global batch. Its forward call fills row_loss if that is not NULL (evaluating). Its
 * backward call always fills it, and starts the stream: d(in) from batch->loss_seed * d(row
 * loss)/d(in). Other units turn stream from d(out) into d(in); that of the first unit is
 * not read. */
typedef struct zero_unit zero_unit;
struct zero_unit {
    char name[32];
    int index; /* among the units of its kind: the layer of a block */
    int n_groups, groups[ZERO_UNIT_GROUPS];
    /* the first tensor of each group; set by zero_model_describe() */
    const zero_tensor *tensors[ZERO_UNIT_GROUPS];
    const void *shape;            /* the model's own description; borrowed, may be NULL */
    bool backward_without_params; /* param[k] may be NULL in backward calls */
    /* `out` is NULL in the forward calls of --recompute: it is known from the first call,
     * so that only `saved` must be written, with the same bits. */
    bool recompute_without_out;
    /* All its arithmetic goes through layers.h, without zero_weight_floats(). Only such
     * units run on a device: a loop of the unit's own would be the host's, which cannot
     * touch a device's memory. */
    bool computes_by_layers;
    /* A forward call may continue texts whose earlier positions were those of other calls:
     * it heeds batch->past and call->cache. If all units do, each token is computed
     * once. */
    bool continues;
    zero_share share; /* set by zero_model_share(), and before by zero_model_describe() */
    /* The type of every array with one row for each position: of in, out and stream, of
     * what is saved but sums, of gradients of these; not of joint, joined, logits and
     * row_loss. Sums stay fp32 and are rounded once, when they are stored. fp32, unless
     * zero_model_activate() says otherwise. `out` of sizes() counts elements of this type;
     * other sizes are room in floats, zero_unit_room() for an array. */
    zero_type activations;
    bool heeds_activations; /* also of 16 bits */
    /* The chunk that suits the device. The library's last unit heeds it, also in
     * sizes(). */
    zero_logits_chunk logits;
    /* Part `index`, from 0, of a pass over B samples of T positions. All ranks of a TP
     * group get the same answer. NULL: the unit cannot be shared. */
    zero_unit_part (*part)(const zero_unit *unit, zero_pass pass, int64_t B, int64_t T,
                           int64_t index);

    zero_unit_sizes (*sizes)(const zero_unit *unit, int64_t B, int64_t T);
    /* The last unit computes the loss of each row from the targets. In training it may
     * leave that to the backward call that follows. */
    void (*forward)(const zero_unit *unit, const zero_call *call);
    void (*backward)(const zero_unit *unit, const zero_call *call);
};

typedef struct {
    zero_tensor *tensors; /* owned, like groups, units and shape */
    zero_group *groups;
    zero_unit *units;
    void *shape; /* of models that the library describes; else NULL */
    int n_tensors, n_groups, n_units;
    int64_t vocab;                    /* ids that the first unit accepts; 0: no tokens */
    int64_t seq;                      /* positions that the first unit accepts */
    size_t input_bytes, target_bytes; /* of one position of a batch */
    int64_t n_params; /* the paper's Psi, without padding; of a rank's part its own */
    zero_share share; /* {1, 0, 1}: the whole model */
} zero_model;

/* A program's description of its model; all borrowed for the call. */
typedef struct {
    int n_tensors, n_groups, n_units;
    const zero_tensor *tensors; /* those of group 0, then those of group 1, ... */
    const char *const *groups;  /* names */
    const zero_unit *units;     /* in the order of the forward pass */
    int64_t seq;
    size_t input_bytes, target_bytes;
} zero_model_tables;

/* A model from tables; release it with zero_model_destroy(). ZERO_ERR_INVALID names what is
 * wrong, unless there is a unit; every group has tensors and is read by a unit; sizes are
 * positive, with at most 2^62 parameters; names are unique among their kind, in UTF-8
 * without quotes, backslashes and control characters; units name existing groups and give
 * their functions; and a position has 1 to 2^20 bytes of inputs. ZERO_ERR_NOMEM. */
zero_status zero_model_describe(const zero_model_tables *tables, zero_model *model);
/* The floats of memory that n elements of unit->activations take: two 16-bit elements share
 * one. */
int64_t zero_unit_room(const zero_unit *unit, int64_t n);
/* Sets the type of all units' activations; the parts that zero_model_share() makes later
 * have it, too. ZERO_ERR_UNSUPPORTED, naming the unit, if it is not fp32 and a unit does
 * not heed it: the model stays as it was. ZERO_ERR_INVALID for what is not a zero_type, and
 * without a model. */
zero_status zero_model_activate(zero_model *model, zero_type activations);
/* Zeroes *model, which all functions then answer with ZERO_ERR_INVALID. Trainers of the
 * model are closed before; one that is not can only be closed. Accepts NULL and a zeroed
 * model. */
void zero_model_destroy(zero_model *model);

ZERO_API_END
