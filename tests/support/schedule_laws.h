/* schedule_laws.h - laws that hold for every schedule of every stage: where memory lies, the
 * ledger of it, how collectives begin and end. (The results of programs are those of runs: engine/test_any_run.c.)
 * Each function fails the test if its law is broken. */
#pragma once

#include "support/schedule_job.h"

/* All laws below. */
void laws_check(const schedule_job *job);
/* For all ranks of this plan on `nodes` blocks of nodes. */
void laws_check_plan(zero_plan_input input, int nodes);

/* A buffer lives from the first instruction that names it to the last, and is used. */
void laws_check_lifetimes(const zero_schedule *s);
/* Buffers that are alive at once never overlap. Quadratic in their number. */
void laws_check_places(const zero_schedule *s);
/* live_bytes, the staircase by class, class_peak and peak are sums over the buffers alive. */
void laws_check_ledger(const zero_schedule *s);
/* zero_schedule_least() is a bound from below, and has all that lives for the whole run. */
void laws_check_least(const zero_schedule *s);
/* Ranks of a node find each other's buffers where collectives look for them. */
void laws_check_window(const schedule_job *job);
/* Until a collective or a transfer has ended nobody touches what it writes, or changes what it reads. */
void laws_check_flights(const zero_schedule *s);
/* Every collective that begins ends, one reduction at a time, at once or after a computation.
 * Stage 3 holds no more than the next `prefetch` uses read, and gathers nothing in vain. */
void laws_check_order(const zero_schedule *s);
/* Every transfer of a file begins and ends once, in order; updates stand, and may run ahead, where
 * their gradient is final and nothing reads their parameters; bytes follow a closed form. A plan
 * without a file has no such instructions. */
void laws_check_offload(const zero_schedule *s);
/* With a device nothing of the model lies in the window, and the host has its side of each copy. With
 * offload_host states lie there, gradients come once, and parameters return. */
void laws_check_device(const zero_schedule *s);
/* Of a shared model: a pass's parts stand in order and name the same buffers; a JOIN
 * follows the part that joins and ends before the part that waits, one at a time, with
 * memory and staging to suit. */
void laws_check_joins(const zero_schedule *s);
/* Outputs that wait for their backward pass are of one class. With partition_activations they wait
 * in pieces, each with one KEEP and one COLLECT, which disturb no other rank of the TP group. */
void laws_check_kept(const zero_schedule *s);
/* The n ranks of a TP group, in order, find each other's buffers where JOINs look for them,
 * and receive what the others send. */
void laws_check_tp_group(int n, const zero_schedule *s);
/* Collectives do what their instructions' buffers need; the bucket bounds their staging. */
void laws_check_exchanges(const schedule_job *job);

/* ---- for tests of their own ---- */

/* An instruction's operands, written down again without the code under test. */
int laws_named_buffers(const zero_instruction *i, int *list);
int64_t laws_padded(const zero_schedule *s); /* of all groups together */
enum { LAWS_ANY = -2 };                      /* any group */
int laws_count(const zero_schedule *s, zero_program_kind program, zero_op op, int group);
/* The first such instruction at or after `from`; the program's length: none. */
int laws_find(const zero_program *p, int from, zero_op op, int group);
bool laws_unit_has(const zero_schedule *s, int unit, int group);
bool laws_computes(zero_op op);
