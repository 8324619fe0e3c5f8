/* device.h - the state of a fake device (fake.h): its memory, its three queues, and what has
 * failed. */
#pragma once

#include <stdbool.h>

#include "base/fail.h"
#include "fake/fake.h"

enum { ZERO_FAKE_BLOCKS = 64, ZERO_FAKE_CALLS = 4096, ZERO_FAKE_COPIES = 1024 };

typedef enum {
    ZERO_FAKE_COMPUTE,
    ZERO_FAKE_DOWN,
    ZERO_FAKE_UP,
    ZERO_FAKE_QUEUES
} zero_fake_queue;

/* Memory that was taken: as callers see it, and where it can be read. Pinned memory has no own. */
typedef struct {
    char *seen, *own;
    size_t bytes;
} zero_fake_block;

/* The arguments of a call, with pointers that can be read. Calls on ranges share
 * `flat`. */
typedef union {
    zero_gemm gemm;
    zero_layernorm_args layernorm;
    zero_layernorm_grad_args layernorm_backward;
    zero_swiglu swiglu;
    zero_turn turn;
    zero_attention attention;
    zero_cached cached;
    struct {
        zero_embedding of;
        int64_t limit; /* of tokens */
    } embedding;
    struct {
        zero_embedding_grad of;
        int64_t limit;
    } embedding_backward;
    zero_cross_entropy cross_entropy;
    struct {
        zero_adamw recipe;
        zero_adamw_arrays arrays;
    } adamw;
    zero_bias bias;
    zero_bias_grad bias_backward;
    zero_branch branch;
    struct {
        zero_dropout dropout;
        zero_type rows_type;
        int64_t B, n;
        const void *in;
        void *out;
    } masked;
    struct {
        int64_t n;
        zero_type type;
        const void *in;
        const float *leaf;
        void *out;
    } flat;
} zero_fake_args;

typedef struct zero_fake zero_fake;

/* A recorded call. Without `execute` it is an after(): later calls wait for the ticket. */
typedef struct {
    const char *name;
    void (*execute)(zero_fake *f, zero_fake_args *a);
    int64_t number; /* from 1, copies included */
    zero_ticket ticket;
    float *scratch;
    int64_t past[ZERO_CACHED_TEXTS]; /* of the texts that args go on with */
    zero_fake_args args;
} zero_fake_call;

typedef struct {
    void *to;
    const void *from;
    size_t bytes;
    int64_t number;
    uint64_t calls_before; /* that it waits for */
    int64_t patience;      /* times that ended() may still say no */
} zero_fake_copy;

struct zero_fake {
    zero_math math; /* of the cpu backend */
    uint64_t order; /* 0: everything at once */
    uint64_t draws, moments;
    zero_call_place since;   /* of the copies that are recorded */
    int64_t number, failing; /* calls and copies so far; the one that fails, or 0 */
    int64_t stopping;        /* the one after which no copy ends, or 0 */
    zero_failure failure;
    zero_fake_counts counts;
    zero_fake_block taken[ZERO_FAKE_BLOCKS], pinned[ZERO_FAKE_BLOCKS];
    int n_taken, n_pinned;
    /* Rings: entry i is at [i % size]. Those from `ended` to `recorded` wait. */
    uint64_t recorded[ZERO_FAKE_QUEUES], ended[ZERO_FAKE_QUEUES];
    zero_fake_call calls[ZERO_FAKE_CALLS];
    zero_fake_copy copies[ZERO_FAKE_QUEUES - 1][ZERO_FAKE_COPIES];
};

static inline zero_fake *zero_fake_of(const zero_math *math)
{
    return (zero_fake *)math->state[0];
}

/* ---- failures ---- */

/* Keeps the failure if it is the first one. */
void zero_fake_fail(zero_fake *f, zero_status status);

/* The first failure, or ZERO_OK. */
zero_status zero_fake_verdict(const zero_fake *f);

/* ---- backend.c ---- */

zero_status zero_fake_open(zero_math *math);
void zero_fake_close(zero_math *math);
extern const zero_memory zero_fake_memory;

/* ---- memory.c ---- */

zero_status zero_fake_take(zero_math *math, size_t bytes, void **memory);
void zero_fake_give_back(zero_math *math, void *memory);
zero_status zero_fake_pin(zero_math *math, void *host, size_t bytes);
void zero_fake_unpin(zero_math *math, void *host);
void zero_fake_release(zero_fake *f); /* all that was taken */

/* The block that holds all bytes, else NULL. */
const zero_fake_block *zero_fake_block_of(const zero_fake *f, const void *memory,
                                          size_t bytes);
bool zero_fake_is_pinned(const zero_fake *f, const void *host, size_t bytes);

/* Where the bytes can be read. A failure that names the call, and NULL, if they are not in one
 * block. Without bytes the pointer is returned as it is. */
void *zero_fake_at(zero_fake *f, const char *call, const void *memory, size_t bytes);

/* ---- queue.c ---- */

/* The next entry of the compute queue, to be filled in; zero_fake_commit() records it. */
zero_fake_call *zero_fake_begin(zero_fake *f, const char *name,
                                void (*execute)(zero_fake *f, zero_fake_args *a));
void zero_fake_commit(const zero_math *math);

zero_status zero_fake_fetch(const zero_math *math, void *host, const void *memory,
                            size_t bytes, zero_ticket *ticket);
zero_status zero_fake_store(const zero_math *math, void *memory, const void *host,
                            size_t bytes, zero_ticket *ticket);
zero_status zero_fake_ended(const zero_math *math, zero_ticket ticket, bool *ended);
zero_status zero_fake_after(const zero_math *math, zero_ticket ticket);
zero_status zero_fake_place(const zero_math *math, zero_call_place *place);
void zero_fake_since(const zero_math *math, zero_call_place place);
zero_status zero_fake_sync(const zero_math *math);

/* Executes all that is queued, copies included. */
void zero_fake_drain(zero_fake *f);
