/* offload.h - a slower tier: what lies in a scratch file, and its places in memory.
 *
 * The optimizer states of a group that this rank holds are cut into blocks. UPDATE works on
 * one block at a time, which lies in a slot of memory then.
 *
 *     states       master | the optimizer's, one after the other | padding to
 *                  ZERO_SCRATCH_ALIGN (fp32: no master: that is the parameter, and lies
 *                  in the host's memory beside a device)
 *     parameters   with offload_parameters, as the forward pass reads them | padding
 *     file         blocks of group 0, blocks of group 1, ...
 *     slots        `offload_depth` blocks in memory, for the whole run: states | parameters
 *
 *     slot 0       | FETCH 0 | UPDATE 0 |    STORE 0    | FETCH 4 | ...
 *     slot 1            | FETCH 1 | ... | UPDATE 1 |    STORE 1    | ...
 *
 * So with AdamW a rank reads and writes 12 (fp32: 8) bytes for each element that it
 * updates, and page padding, whatever the depth. Slots take as much memory for any model.
 * With offload_parameters STORE writes them, too; FETCH_PARAM reads a group's piece, all its
 * blocks, before each GATHER; in fp32 FETCH also reads them. Source: Rajbhandari et al.,
 * ZeRO-Infinity, arXiv:2104.07857, section 5. */
#pragma once

#include "io/scratch.h"
#include "sharding/schedule.h"

/* Elements of a block. The blocks of the digest divide it, and it divides the extents of
 * checkpoints. */
#define ZERO_OFFLOAD_BLOCK     (INT64_C(1) << 18)
#define ZERO_OFFLOAD_MAX_DEPTH 64
/* Blocks of states of one rank: 275 G parameters, whose gradients alone take 512 GiB of its
 * memory. Each block is a few instructions and a buffer, in memory too. */
#define ZERO_OFFLOAD_MAX_BLOCKS (1 << 20)

/* The bytes of a transfer for this many bytes of content. */
size_t zero_offload_padded(size_t bytes);

/* Blocks in the file for the optimizer states of group g that `optimizer_held` names; and
 * for this rank's piece of the parameters, if they lie there, too. */
void zero_offload_hold(zero_schedule *s, int g);
/* The slots, once all groups are held. */
void zero_offload_hold_slots(zero_schedule *s);

/* A buffer in the file for `bytes` bytes. */
int zero_offload_add_block(zero_schedule *s, zero_class cls, size_t bytes);

/* True if this rank's piece of group g's parameters lies in the file. */
bool zero_offload_has_parameters(const zero_schedule *s, int g);

/* The elements of block k of group g, padding included. */
zero_range zero_offload_range(const zero_schedule *s, int g, int k);

/* Block k of group g in a slot. What lies elsewhere is NULL. */
typedef struct {
    float *master, *state[ZERO_MOST_STATES];
    void *param;
} zero_slot_view;
zero_slot_view zero_offload_view(const zero_schedule *s, int g, int k, void *slot);
/* The parameters of the slot's block, where their transfers begin. */
void *zero_offload_params_in(const zero_schedule *s, int g, int k, void *slot);

/* True for the stream of optimizer states: transfers of their blocks, and UPDATE between
 * them. Beside a device STORE_PARAM is of the stream, too, and so is UPDATE of states in
 * the host's memory. The stream may run ahead of the rest of the program
 * (engine/run_offload.c). */
bool zero_offload_is_of_stream(const zero_instruction *i);

/* ---- sums ---- */

/* Bytes in the file, by class. */
size_t zero_offload_bytes(const zero_schedule *s, zero_class cls);
/* The bytes among all of these that only fill pages. */
size_t zero_offload_padding(const zero_schedule *s);

typedef zero_scratch_traffic zero_file_traffic;
/* *sum += times * *t */
void zero_file_traffic_add(zero_file_traffic *sum, uint64_t times,
                           const zero_file_traffic *t);

/* Transfers of one walk through a program. Those of updates happen only if there is one. */
typedef union {
    zero_file_traffic of[ZERO_MOVES_KINDS];
    struct {
        zero_file_traffic nothing, states, parameters, activations, visits;
    };
} zero_offload_traffic;
zero_offload_traffic zero_offload_count(const zero_schedule *s, zero_program_kind program);
zero_file_traffic zero_offload_total(const zero_offload_traffic *t); /* of all of them */
/* By one instruction. */
zero_file_traffic zero_offload_moved(const zero_schedule *s, const zero_instruction *i);

/* Part k of what a transfer, or its wait, moves: a buffer in the file, and the byte of the
 * instruction's `buffer` at which it begins. False if it has fewer parts. */
typedef struct {
    int file;
    size_t at;
} zero_file_part;
bool zero_offload_part(const zero_schedule *s, const zero_instruction *i, int k,
                       zero_file_part *part);

/* The most transfers that are in flight at once in any program. */
int zero_offload_in_flight(const zero_schedule *s);
