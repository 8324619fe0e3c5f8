/* trainer.h - the inside of zero/train.h: an engine that gets its model, samples and
 * checkpoints from the program, and does not trust it.
 *
 * A call with wrong arguments on one rank must not leave the others waiting: the rank takes
 * part in the call's vote all the same, and all ranks get its status. Only what says
 * nothing about the group (no trainer, no MPI) is answered by the rank alone. */
#pragma once

#include "engine/engine.h"

struct zero_trainer {
    zero_engine engine;
    zero_comm *comm;     /* kept from ending */
    zero_volume at_open; /* what the group had moved before */
    zero_unit *units;    /* the model's, to notice that it was destroyed */
    bool is_written;     /* masters were set, and the parameters not yet made from them */
};

/* ---- trainer_spec.c ---- */

/* The engine's spec, or ZERO_ERR_INVALID with what is wrong. Local. */
zero_status zero_trainer_read_spec(const zero_trainer_spec *spec, zero_comm *comm,
                                   zero_engine_spec *e);
/* Where it computes, as the spec or the default says. */
const char *zero_trainer_device(const zero_trainer_spec *spec);
/* ZERO_ERR_INVALID, naming the field, if ranks were given different specs or models: they
 * would wait for each other, or silently train different models. Collective, one
 * verdict. */
zero_status zero_trainer_compare(const zero_engine_spec *e, zero_comm *comm);

/* ---- trainer.c ---- */

/* ZERO_ERR_INVALID unless the trainer is open, its model and its group are still there, and
 * MPI is up. Local. */
zero_status zero_trainer_check(const zero_trainer *t);
/* The largest number of a step, and ZERO_ERR_INVALID beyond it. Local. */
zero_status zero_trainer_check_step(const zero_trainer *t, int64_t step);
/* Gradients and parameters that the group has moved, without votes and comparisons.
 * Local. */
zero_volume zero_trainer_moved(const zero_comm *comm);
/* Makes the parameters from masters that were written. Collective. */
zero_status zero_trainer_publish(zero_trainer *t);
/* Samples of all ranks in a step. Local. */
int64_t zero_trainer_samples(const zero_trainer *t);
