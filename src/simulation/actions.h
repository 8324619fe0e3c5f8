/* actions.h - a rank's step program, packed for the simulator.
 *
 * An action is an instruction with what the simulator needs of it: seconds, or the
 * collectives that it begins or waits for. All ranks have the same actions, since they wait
 * for each other in the same order. Two jobs differ: each stage of a pipeline has actions of
 * its own, and so has each rank where --partition owner deals blocks of a file unevenly.
 *
 * Collectives are counted by lane, in the order of their begins, from 0 on in each step. A
 * part of the family is a lane; so is what a rank sends of a content to another stage, and
 * what it receives of it:
 *
 *     GATHER 0, GATHER 1, ..., REDUCE 1, REDUCE 0     calls 0, 1, ..., n-2, n-1 of a step
 *
 * A JOIN or ALL_REDUCE that sums is a chain of two, of which the second begins when the
 * first has ended. No other collective of its group begins in between. */
#pragma once

#include "lists/spec.h"
#include "plan/plan_time.h"

#define ZERO_LANES (ZERO_FAMILY_PARTS + 2 * ZERO_PIPE_CONTENTS)

static inline int zero_lane_of_message(zero_pipe_content content, bool receives)
{
    return ZERO_FAMILY_PARTS + 2 * (int)content + receives;
}
/* The lane in which groups are counted: a message's sender and receiver meet in one. */
static inline int zero_lane_of_groups(int lane)
{
    return lane < ZERO_FAMILY_PARTS ? lane : lane & ~1;
}

typedef struct {
    const zero_instruction *instruction;
    zero_work_kind kind;
    int lane; /* of an exchange and its wait */
    bool is_chain;
    bool is_of_stream; /* of optimizer states: may run ahead of the walk */
    int steps_ago;     /* of a wait: when it was begun, 1: in the step before; -1: never */
    int nth; /* exchange and its wait: number of the begin in its lane, in a step */
    int call, n_calls; /* the collectives */
    int first_spec;    /* exchange: of n_calls, in zero_actions.specs */
    int file;          /* transfer and its wait: its number */
    int after;         /* of the stream: it may run once this action is over; -1: at once */
    int n_agreements;  /* of OVERFLOW 2: the squares and the vote; of other agreements 1 */
    int64_t bytes[2];  /* of this rank's message in each */
    bool gathers;      /* LOSS: in the ZeRO group, and messages grow from round to round */
    double seconds;    /* compute; transfer: alone on the disk */
} zero_action;

/* A collective of a step. */
typedef struct {
    zero_collective_spec spec;
    int lane;       /* of the groups that do it */
    int64_t begins; /* in a step */
} zero_action_spec;

typedef struct {
    zero_action *list; /* [n], owned */
    int n;
    int n_files;
    int n_calls[ZERO_LANES], n_begins[ZERO_LANES]; /* of a step */
    zero_action_spec *specs; /* [n_specs], owned; of actions in order */
    int64_t n_specs, spec_capacity;
} zero_actions;

/* The actions of the schedule's rank; borrows its instructions. ZERO_ERR_NOMEM. */
zero_status zero_actions_init(zero_actions *a, const zero_schedule *s,
                              const zero_plan_machine *machine);
void zero_actions_destroy(zero_actions *a); /* accepts a zeroed one */
