/* simulate.h - a training step of all ranks, simulated: no MPI, no payload.
 *
 * Each rank walks its program, the same array that a run executes. It computes for the time
 * that plan_time.h gives a unit, and communicates through the step lists of its collectives
 * (exchange.h), over links that ranks share. So it shows what the alpha-beta model cannot:
 * ranks that wait for a slow one, links that several groups use, polls that come late.
 *
 * Deterministic: the same input gives the same numbers, to the last bit. */
#pragma once

#include "lists/member.h"
#include "lists/spec.h"
#include "plan/plan_time.h"
#include "simulation/network.h"

#define ZERO_SLOW_RANKS 16 /* --slow, at most */

typedef struct {
    int rank;      /* of the world */
    double factor; /* of the rate at which it computes, > 0: 0.8 is 20 % slower */
} zero_slow_rank;

/* One instruction of one rank, number `at` of its step from 0 on: from `begin` to `end`,
 * seconds from the start of the step that is reported; `waited` seconds of it for
 * others. */
typedef struct {
    int rank; /* of the world */
    int at;
    const zero_instruction *instruction;
    double begin, end, waited;
} zero_simulated_span;

/* One collective on one rank, from when the rank begins it to when its own part is over:
 * member `member` of the layout's group. Times are those of spans; `begin` is negative if
 * the rank has begun it before the step that is reported. */
typedef struct {
    int rank;                            /* of the world */
    const zero_instruction *instruction; /* that began it */
    const zero_collective_spec *spec;
    const zero_layout *layout;
    int member;
    int step;              /* in which it was begun, from 0 */
    zero_family_part part; /* of its group */
    int64_t call;          /* its number in the group and step, equal on all that do it */
    double begin, end;
} zero_simulated_flight;

typedef struct {
    /* Rates, as in plan_time.h. On a single node `machine.bandwidth` is that of its ranks.
     * On several without node_bandwidth, data within a node takes no time, unless a group
     * of ranks lies on one node: then it has the network's rate there. */
    zero_plan_machine machine;
    double adapter;   /* network.h; INFINITY without --adapter */
    int switch_nodes; /* network.h; 0 without --switch */
    double switch_ratio;
    double memory_bandwidth; /* exchange.h; INFINITY */
    double poll; /* seconds between two looks while a rank computes; 0: at once */
    int steps;   /* >= 2: the last one is reported, since the first is like no other */
    int n_slow;
    zero_slow_rank slow[ZERO_SLOW_RANKS];
    int64_t memory_limit;  /* bytes that the simulation may take; more is refused */
    int64_t most_messages; /* more, in all steps, are refused */
    /* Called for each instruction of the reported step, in the order of their ends; NULL:
     * not. */
    void (*span)(void *arg, const zero_simulated_span *span);
    /* Called for each collective that was in flight on a rank in its reported step, when it
     * has ended; NULL: not. */
    void (*flight)(void *arg, const zero_simulated_flight *flight);
    void *arg;
} zero_simulate_input;

/* One rank in the reported step. */
typedef struct {
    double step;    /* from when it began its step to when it began the next one */
    double compute; /* flops */
    double sums;    /* arithmetic of collectives */
    double exposed; /* waiting while its own data was still on links */
    double waiting; /* waiting for another rank that had not come so far */
    double disk;    /* waiting for the disk */
} zero_simulated_rank;

typedef struct {
    double step; /* of the slowest rank; all ranks keep pace */
    int slowest; /* the rank that the others wait for longest: with the least exposed + waiting */
    int as_slow; /* ranks that wait as little, to a thousandth of the step; with `slowest` */
    zero_simulated_rank of_slowest, mean;
    double idle; /* of the time until the last pass has ended: the share without computing,
                    averaged over the ranks; in a pipeline the bubble, and waits */
    zero_link_use busiest;
    /* In all steps. Reads in neighbours' memory count, unless links inside nodes are
     * infinitely fast. */
    int64_t messages, bytes;
    int64_t events;
    zero_plan_time plan; /* the same step by alpha-beta, without slow ranks */
} zero_simulated;

/* Simulates the job of which `s` is the schedule of rank 0: s->input.n_ranks times the
 * ranks of a TP group times the stages of a pipeline. ZERO_ERR_NOMEM; ZERO_ERR_INVALID if
 * it would take more messages or memory than allowed, with both numbers and a remedy;
 * ZERO_ERR_UNSUPPORTED for what cannot be simulated. */
zero_status zero_simulate(const zero_schedule *s, const zero_simulate_input *input,
                          zero_simulated *result);
