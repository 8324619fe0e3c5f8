/* checks.h - the memory that a run can check for flipped bits, and the buffers that this
 * takes.
 *
 *     UPDATE           this rank's 16-bit parameters: they are its masters, rounded
 *     COMPARE          what is held more than once: the copies have equal bits
 *     RECORD, VERIFY   optimizer states: nothing has changed between two updates
 *
 *     is held                     stage 0      stages 1, 2       stage 3
 *     masters, states             by ranks     once              once
 *     parameters, fp32            by ranks     by ranks, nodes   once
 *     parameters, 16 bits         as masters   by ranks, nodes   once
 *     of these, this rank's       their masters, rounded, are a second copy in all stages
 *
 * Those are copies of the N_d ranks of a ZeRO group. With hybrid sharding each shard group
 * has a window of its own, so each replica has its own copy of parameters that nodes hold.
 * And pieces that are held once above are held K times, by the ranks with the same number
 * in their shard groups. Of a shared model each rank of a TP group also has its own
 * replicated tensors (nn/share.h): gradients, parameters and masters are compared.
 *
 * In a pipeline the ranks are those of a stage. The first one's copy of tied words is
 * compared among them, and not with the last stage.
 *
 * Parameters are held by nodes where they lie in the nodes' windows. Groups that `persist`
 * keeps whole at stage 3 are held as in stages 1 and 2. Stages do not know this table: it
 * follows from the buffers that they hold. */
#pragma once

#include "sharding/schedule.h"

/* The arrays of a group's model states. In fp32 the parameters are the masters; with
 * updates beside a device they are a copy. The buffer of an array is
 * group->buffers[array]. */
typedef enum {
    ZERO_ARRAY_PARAMETERS,
    ZERO_ARRAY_MASTERS,
    ZERO_ARRAY_STATES, /* the first of the optimizer's (math/rules.h) */
    ZERO_ARRAYS = ZERO_ARRAY_STATES + ZERO_MOST_STATES,
    ZERO_ARRAY_GRADIENTS = ZERO_ARRAYS /* no state: what NORM reads */
} zero_array;

typedef enum {
    ZERO_COPIES_NONE,
    ZERO_COPIES_OF_RANKS,    /* each of N_d ranks has one */
    ZERO_COPIES_OF_NODES,    /* each node of each shard group has one, in its window */
    ZERO_COPIES_OF_REPLICAS, /* each replica has one: zero_states_held(), for parameters too */
    ZERO_COPIES_KINDS
} zero_copies;

const char *zero_array_name(const zero_schedule *s, zero_array array); /* "momentum" */
/* The buffer of group g's masters: in fp32 the parameters, unless these are a device's copy
 * of them. */
int zero_master_buffer(const zero_schedule *s, int g);

/* The copies of an array of group g that must have equal bits. */
zero_copies zero_copies_of(const zero_schedule *s, int g, zero_array array);
/* True if any array has copies of this kind; always in a pipeline of several ranks in each
 * stage: their nodes may have them, and all ranks look together. */
bool zero_has_copies(const zero_schedule *s, zero_copies kind);
/* True if parameters are masters, rounded to their type, in a place of their own. */
bool zero_has_rounded(const zero_schedule *s);

/* True if the ranks of a TP group have tensors that are not cut: each computes them for
 * itself. */
bool zero_has_replicated(const zero_schedule *s);

/* True if the schedule has COMPARE: the input asks for it, and something is held twice. */
bool zero_is_checked(const zero_schedule *s);
/* True if it does something in each step, for what UPDATE does not see. Else only in a step
 * that overflows, which has no UPDATE. */
bool zero_is_compared(const zero_schedule *s);

/* UPDATE compares each of this rank's 16-bit parameters with its master once in this many
 * steps; 0: it does not. A file checks parameters itself, and a delayed update overwrites
 * others than those in use. On a device groups have turns, as an update does nothing there
 * but wait for memory. */
int zero_update_period(const zero_schedule *s);

/* COMPARE takes some blocks in each step, and each block once in this many steps; copies of
 * this kind of parameters, or of states. A copy of parameters lives for one step. So with
 * many tokens in a step, which then takes long, more of them are compared. */
int zero_compare_period(const zero_schedule *s, zero_copies kind, bool are_parameters);

/* In how many steps all copies of an array of any group are compared; 0: it has none. */
int zero_compared_in(const zero_schedule *s, zero_array array);

/* Sums over what this rank holds, times this, add up to zero over all ranks if the copies
 * of this kind are equal: it is 1 for each copy but the first, and 1 less their number for
 * that. */
int64_t zero_copy_weight(const zero_schedule *s, zero_copies kind);

/* Adds the buffers of the checks that the input asks for, once states are held. */
void zero_hold_checks(zero_schedule *s);

/* The elements of group g whose optimizer states this rank holds, without padding. */
zero_range zero_states_held(const zero_schedule *s, int g);

/* The place of an element in the array of state k: elements before it whose tensors keep
 * that state. */
int64_t zero_state_index(const zero_schedule *s, int g, int k, int64_t element);

/* The bytes under one hash of what a pass computed: with check_compute a unit's pass runs
 * twice, and the hashes of its results are equal. */
#define ZERO_TWICE_PIECE ((size_t)1 << 16)

/* Elements under one record. Records never span tensors, so an error can name the
 * tensor. */
#define ZERO_RECORD_BLOCK 4096
/* The arrays of group g's states that lie in memory: masters and the optimizer's, or with
 * offload the masters alone in fp32. A scratch file checks what it holds itself. */
int zero_recorded_arrays(const zero_schedule *s, int g);
/* The records of one array of group g on this rank. */
int64_t zero_records_of(const zero_schedule *s, int g);

/* The workspace of checks: two words for each rank, an int for each rank, and a block of
 * parameters. Ranks are all N_d * T of the world: room for a group's as well. */
typedef struct {
    uint64_t *words; /* [N_d * T][2] */
    int *class_of;   /* [N_d * T] */
    void *block;     /* [ZERO_CHECK_BLOCK] of the parameters' type */
} zero_check_space;
#define ZERO_CHECK_BLOCK 4096
zero_check_space zero_check_space_at(const zero_schedule *s, void *buffer);

#define ZERO_COMPARE_WORDS 2 /* that ranks add up in COMPARE */
/* The small messages of one COMPARE that does something, and finds no difference. */
zero_traffic zero_schedule_compare_traffic(const zero_schedule *s);
