/* rules.h - optimizers: how a step moves parameters, a row each.
 *
 * A row says what is kept for each parameter beside its fp32 master, and how an update
 * moves some of them. Memory, digests, checkpoints, plans, options and the library's
 * optimizer read it. A new optimizer is a loop and its row in rules.c. */
#pragma once

#include "math/backend.h"
#include "zero/model.h"

#define ZERO_MOST_STATES 2 /* fp32 numbers per parameter, beside the master */

/* Moves n parameters in the host's memory: grad[n] is scaled and clipped, state[k][n] are
 * the row's states. Element by element, so any cut gives the same bits. */
typedef void zero_rule_move(const zero_adamw *h, int64_t n, const float *grad,
                            float *weight, float *const *state);

typedef struct {
    const char *name;                         /* as in --optimizer NAME */
    const char *states[ZERO_MOST_STATES + 1]; /* their names; NULL past the last */
    double rate;                              /* its usual learning rate, in AdamW's */
    double beta1, beta2;                      /* what --beta1 and --beta2 are by default */
    zero_rule_move *move; /* NULL: the backend's adamw, on devices too */
    /* Matrices between layers move as a whole (muon.c) and keep the first state alone. */
    bool moves_matrices;
} zero_rule;

/* Number 0 is AdamW. */
const zero_rule *zero_rule_at(int optimizer);
const char *zero_rule_name_at(int optimizer); /* "adamw"; NULL past the last */
bool zero_rule_find(const char *name, int *optimizer);
/* The same of a library's argument: NULL is AdamW, and another name ZERO_ERR_INVALID. */
zero_status zero_rule_read(const char *name, int *optimizer);

/* True if an update needs the whole tensor at once. */
bool zero_rule_moves_whole(int optimizer, const zero_tensor *tensor);

/* The most states that are kept for a parameter, the least, and those of a tensor's: the
 * row's first ones. */
int zero_rule_most_states(int optimizer);
int zero_rule_least_states(int optimizer);
int zero_rule_states(int optimizer, const zero_tensor *tensor);
/* With the master. */
static inline int zero_rule_parts(int optimizer, const zero_tensor *tensor)
{
    return 1 + zero_rule_states(optimizer, tensor);
}
/* The states of a whole model: numbers. */
int64_t zero_rule_total(int optimizer, const zero_model *model);
/* "master", "momentum" */
const char *zero_rule_part_name(int optimizer, int part);
#define ZERO_RULE_TEXT 128
/* "master, momentum and variance" */
void zero_rule_list_parts(int optimizer, char text[ZERO_RULE_TEXT]);

/* One step, element by element. On a device only what has no `move`. */
void zero_rule_update(int optimizer, const zero_backend *backend, const zero_math *math,
                      const zero_adamw *h, const zero_adamw_arrays *a);

/* The same of parameters that move as a whole. room[zero_muon_room()] floats. */
typedef enum { ZERO_MUON_RMS, ZERO_MUON_ORIGINAL } zero_muon_scale;
const char *zero_muon_scale_name_at(int scale); /* "rms"; NULL past the last */
/* Of a library's argument, as zero_rule_read(). */
zero_status zero_muon_scale_read(const char *name, zero_muon_scale *scale);
typedef struct {
    zero_muon_scale scale;
    zero_type factors; /* of the iterations' products: fp32 or bf16 */
} zero_muon;
void zero_muon_update(const zero_backend *backend, const zero_math *math,
                      const zero_adamw *h, const zero_muon *how, const zero_tensor *of,
                      const zero_adamw_arrays *arrays, float *room);
int64_t zero_muon_room(const zero_tensor *of);
double zero_muon_flops(const zero_tensor *of);

/* Notes the first parameter that was not its master, rounded, if the call asks for it. */
void zero_rule_note_changes(const zero_adamw_arrays *a);
/* Numbers that would become denormal count as zero; see ZERO_ADAMW_LEAST_MOMENT. */
static inline float zero_rule_flush(float x)
{
    return fabsf(x) < ZERO_ADAMW_LEAST_MOMENT ? copysignf(0.0f, x) : x;
}
