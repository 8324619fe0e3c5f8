/* walker.h - all ranks walk their programs: what each does next, and when.
 *
 *     simulate.c    programs, network and ranks of a job; what comes out
 *     walkers.c     states of a rank, its walk; the events of all
 *     walker.c      what actions begin, and whether it is over
 *
 * Looks are events: stir() orders one, at once or at the rank's next poll. */
#pragma once

#include "simulation/agreements.h"
#include "simulation/groups.h"
#include "simulation/simulate.h"

typedef enum {
    ZERO_WALKER_ACTS,     /* now: executes actions until one takes time */
    ZERO_WALKER_COMPUTES, /* until a time; looks at its collectives at polls */
    ZERO_WALKER_WAITS,    /* looks as soon as it could go on */
    ZERO_WALKER_ENDED,    /* has done all steps; looks, since other ranks may need it */
} zero_walker_state;

/* A chain of two collectives in flight (engine/walk.h). */
typedef struct {
    const zero_action *action; /* NULL: none */
    int64_t call;              /* of the first */
    int begun;
} zero_chain;

typedef struct {
    zero_walker_state state;
    int step, at;   /* the present action */
    int ahead;      /* actions of the stream before this one are over */
    int agreed;     /* agreements of the present action that are over */
    bool agrees;    /* one is in flight */
    bool stirred;   /* since the last look */
    bool looks;     /* just now */
    double pace;    /* seconds of computing per second of an ordinary rank */
    double look_at; /* when a look is ordered; -1: none is */
    double from;    /* in this state: since when */
    double until;   /* COMPUTES: when it ends; arithmetic of looks makes it later */
    double due;     /* COMPUTES: time of the event that was ordered for its end */
    double busy;    /* arithmetic of the last look or begin ends */
    double sums;    /* arithmetic since `from` */
    double seconds; /* COMPUTES: without that arithmetic */
    double began;   /* the present action */
    double waited;  /* in the present action */
    double joined;  /* when the last rank began the first agreement of the present action */
    double step_began;
    zero_chain chains[2];      /* JOIN; ALL_REDUCE */
    zero_simulated_rank spent; /* in this step */
} zero_walker;

typedef struct zero_walkers {
    const zero_schedule *s;           /* borrowed: rank 0's */
    const zero_simulate_input *input; /* borrowed */
    zero_groups groups;
    int per_program; /* ranks that have one: all; of a pipeline stage; of a TP group */
    int n_programs;
    zero_actions *actions;    /* [n_programs] */
    zero_schedule *schedules; /* [n_programs]; owned. The first is empty: it is `s` */
    zero_layout *data;        /* [pipeline stages]: the nodes of their ZeRO groups; owned */
    zero_events events;
    zero_exchanges *exchanges;
    int ranks;
    zero_walker *list; /* [ranks] */
    /* Of a lane of groups: exchanges that a group begins in a step, at most, and [groups][2
     * steps][begins]: when the last member so far began one. */
    int begins[ZERO_LANES];
    double *joined[ZERO_LANES];
    zero_agreements *agreements;
    int files;             /* numbers of a rank's transfers */
    bool *moves;           /* [ranks][files]: in flight; NULL: no transfers take time */
    int ended;             /* ranks that have done all steps */
    bool is_reported;      /* a rank has begun the last step */
    double origin;         /* when the first rank did */
    double last_pass;      /* when the last one that computed in it has ended */
    bool has_ended;        /* all ranks have */
    zero_link_use busiest; /* then */
} zero_walkers;

/* To be called by exchanges: the rank could go on. */
void zero_walkers_stir(void *walkers, int rank);
/* The rank's agreement has ended. */
void zero_walkers_agreed(zero_walkers *w, int rank);

/* A message of an agreement has arrived, or a transfer has ended, whose cookie is odd. */
void zero_walkers_arrived(void *walkers, int64_t cookie);

/* Walks all ranks to the end. ZERO_ERR_NOMEM; ZERO_ERR_STALLED if ranks wait for ever,
 * which would be a mistake in this simulator or a program. */
zero_status zero_walkers_run(zero_walkers *w);

static inline const zero_actions *zero_walker_actions(const zero_walkers *w, int rank)
{
    return &w->actions[rank / w->per_program];
}

/* The action at which the rank is. */
static inline const zero_action *zero_walker_present(const zero_walkers *w, int rank)
{
    return &zero_walker_actions(w, rank)->list[w->list[rank].at];
}

/* ---- events ---- */

/* Orders an event of the rank. */
void zero_walker_order(zero_walkers *w, int rank, double time);
/* Orders the look that a stirred rank needs, unless it has one or its state ends before. */
void zero_walker_order_look(zero_walkers *w, int rank);
/* Tells of an action that has ended now, if its step is reported. */
void zero_walker_emit(const zero_walkers *w, int rank, const zero_action *a, double began,
                      double waited);

/* ---- exchanges ---- */

/* Begins the collectives of an action, of a chain the first. Returns seconds of
 * arithmetic. */
double zero_walker_begin_exchange(zero_walkers *w, int rank, const zero_action *a);
/* Begins the second collectives of chains whose first ones are over. Returns as above. */
double zero_walker_continue_chains(zero_walkers *w, int rank);

/* True if what the action waits for is over. A chain is ended then. */
bool zero_walker_exchange_is_over(zero_walkers *w, int rank, const zero_action *a);
/* When the last member of the group so far began what the action waits for. */
double zero_walker_joined(const zero_walkers *w, int rank, const zero_action *a);

/* For exchanges: tells of a collective that has ended on a rank, if it was in flight in the
 * step that is reported. */
void zero_walker_exchange_ended(void *walkers, const zero_exchange_end *end);

/* ---- transfers, and the stream of optimizer states, which runs ahead of the walk
 * (engine/run_offload.c) ---- */

void zero_walker_begin_transfer(zero_walkers *w, int rank, const zero_action *a);
bool zero_walker_transfer_is_over(const zero_walkers *w, int rank, const zero_action *a);

/* Executes actions of the stream before the walk comes to them, in their order, as far as
 * that needs no waiting. */
void zero_walker_run_ahead(zero_walkers *w, int rank);
