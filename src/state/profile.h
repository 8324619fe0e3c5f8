/* profile.h - where a rank's time goes: seconds by class of instructions.
 *
 * A class is a kind of instruction. Instructions that name a unit are divided by kinds of
 * units as well; units are of one kind if their names differ only in a number at the end.
 *
 *                all units  embedding  block  head
 *     FORWARD        x          x        x      x       of each of the schedule's programs
 *     BACKWARD       x          x        x      x
 *     UPDATE         x
 *
 * The clock is read once between two instructions, so the classes of a program add up to
 * the time of its walks, but for waiting for a save. On a device that has a stopwatch
 * times are its own (device_times.h). There an instruction that waits for messages or
 * copies has the time in which the device had nothing to do: what is exposed. */
#pragma once

#include "comm/comm.h"
#include "sharding/schedule.h"

#define ZERO_ALL_UNITS 0 /* the first column; kinds follow */
#define ZERO_UNIT_NAME sizeof((zero_unit *)0)->name

typedef struct {
    int64_t count;   /* instructions */
    double seconds;  /* of this rank */
    double exchange; /* of these seconds, in polls of collectives in flight */
} zero_profile_entry;

typedef struct {
    int n_columns;           /* 1 + kinds of units */
    const char **kinds;      /* [n_columns]: a unit of the kind; borrowed from the model */
    int *column_of;          /* [n_units]; owned, as are the tables */
    zero_profile_entry *all; /* [ZERO_PROGRAMS][ZERO_OP_KINDS][n_columns] */
    bool is_of_device;       /* times are a device's own */
    double held; /* seconds, in no class: UPDATE waited for a save (zero_states_reader) */
} zero_profile;

/* ZERO_ERR_NOMEM. The model is borrowed; release with _destroy. */
zero_status zero_profile_init(zero_profile *p, const zero_model *model);
void zero_profile_destroy(zero_profile *p); /* accepts a zeroed one */

/* Adds to the class of an instruction that was executed. */
void zero_profile_add(zero_profile *p, zero_program_kind program, const zero_instruction *i,
                      zero_profile_entry more);
/* The column of the instruction's unit, or ZERO_ALL_UNITS. */
int zero_profile_column(const zero_profile *p, const zero_instruction *i);

const zero_profile_entry *zero_profile_at(const zero_profile *p, zero_program_kind program,
                                          zero_op op, int column);
/* Whether the seconds of an instruction are those in which this rank waited for
 * collectives, or its device for them and for copies. */
bool zero_profile_is_exposed(const zero_profile *p, zero_op op);
/* The sum of these, so far. */
double zero_profile_exposed(const zero_profile *p, zero_program_kind program);
/* Seconds of its passes through units, so far, without the polls of collectives in them. */
double zero_profile_computing(const zero_profile *p, zero_program_kind program);
/* The name of a column's kind: "block". */
void zero_profile_kind(const zero_profile *p, int column, char name[ZERO_UNIT_NAME]);

/* ---- over ranks ---- */

typedef struct {
    zero_profile_entry own; /* this rank's */
    double least, most;     /* seconds, over all ranks */
} zero_profile_row;

typedef struct {
    const zero_profile *profile; /* borrowed */
    zero_profile_row *rows;      /* [ZERO_OP_KINDS][n_columns] of one program; owned */
} zero_profile_ranks;

/* Collective over the ranks that run the schedule. ZERO_ERR_NOMEM on all ranks; release
 * with _destroy. */
zero_status zero_profile_gather(const zero_profile *p, zero_program_kind program,
                                zero_comm *comm, zero_profile_ranks *ranks);
void zero_profile_ranks_destroy(zero_profile_ranks *ranks); /* accepts a zeroed one */

const zero_profile_row *zero_profile_row_at(const zero_profile_ranks *ranks, zero_op op,
                                            int column);
