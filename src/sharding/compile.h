/* compile.h - from a plan's input to its schedule.
 *
 *     zero_plan_input -> checks -> groups cut -> the stage writes programs and buffers
 *                     -> memory laid out -> traffic counted -> zero_schedule */
#pragma once

#include "sharding/schedule.h"

/* Compiles input->model for input->stage. ZERO_ERR_INVALID unless all numbers are in range,
 * the model has at most 2^56 parameters and takes the sequences, a microbatch has at most
 * 2^24 tokens, a step at most 2^17 microbatches per rank, the bucket holds the smallest
 * pieces that N_d ranks can exchange, and for `reproducible` N_d and M are powers of two;
 * ZERO_ERR_NOMEM. Not collective; release with zero_schedule_destroy(). */
zero_status zero_schedule_compile(zero_schedule *s, const zero_plan_input *input);

/* Refuses plans that cannot be: numbers out of range, and options that exclude each other;
 * all that the input alone decides, before nodes are known. ZERO_ERR_INVALID says what was
 * found, what was expected and the remedy. Not collective: all ranks come to the same
 * verdict. compile_checks.c */
zero_status zero_check_plan_input(const zero_plan_input *in);

/* The least bucket with which the input compiles, as far as groups and replicas exchange; 0
 * if it does not compile with any. The input's own bucket does not matter. */
int64_t zero_schedule_least_bucket(const zero_plan_input *input);

/* Bounds from below of a schedule: quick to find for any model. */
typedef struct {
    size_t bytes;         /* of arena and window; with a device: of the device's memory */
    size_t host_bytes;    /* with a device: of arena and window beside it */
    int64_t instructions; /* of all programs */
} zero_schedule_bound;

/* The least that zero_schedule_compile() could find, from the buffers that live for the
 * whole run and the outputs of units: it takes milliseconds where a step has millions of
 * instructions. Fails as zero_schedule_compile() does, apart from what it says of
 * buckets. */
zero_status zero_schedule_least(const zero_plan_input *input, zero_schedule_bound *least);
