#include "comm/heap.h"

#include "comm/comm.h"
#include "comm/signal.h"
#include "comm/thread.h"
#include "comm/window.h"
#include "comm/works.h"

#define PAGE  ((size_t)4096)
#define GRAIN 8 /* bytes: data that begin between two are read by messages */

/* A part of this rank's heap: all parts adjoin, in order. */
typedef struct part {
    size_t at, bytes;
    bool is_used;
    struct part *next;
} part;

/* An operation's hash; then its number in the upper bits, where its data begin in the
 * lower. */
typedef struct {
    uint64_t hash;
    _Atomic uint64_t where;
} place;
#define PLACE_BITS 40
#define NOWHERE    (((uint64_t)1 << PLACE_BITS) - 1)

struct zero_heap {
    zero_window window; /* owned; the heaps, the places */
    size_t bytes;       /* of each rank's heap */
    part *parts;        /* owned */
};

void zero_heap_free(struct zero_heap *heap)
{
    if (!heap) return;
    zero_window_destroy(&heap->window);
    for (part *p = heap->parts, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    free(heap);
}

/* ---- parts ---- */

static zero_status make(zero_comm *comm, size_t bytes, struct zero_heap **out)
{
    struct zero_heap *h;
    const size_t places = ZERO_SIGNALS * sizeof(place);
    zero_status st = zero_new(&h, 1, "shared memory");
    if (st == ZERO_OK) st = zero_new(&h->parts, 1, "shared memory");
    st = zero_agree(comm, st);
    if (st == ZERO_OK) {
        h->bytes = zero_round_up_size(bytes, PAGE);
        h->parts->bytes = h->bytes;
        st = zero_window_init(&h->window, comm, 2, (const size_t[]){h->bytes, places});
    }
    if (st == ZERO_OK)
        *out = h;
    else
        zero_heap_free(h);
    return st;
}

zero_status zero_comm_share(zero_comm *comm, size_t bytes)
{
    ZERO_TRY(zero_works_start(comm));
    ZERO_FAIL_IF(comm->heap || comm->layout.n_nodes > 1,
                 comm->heap ? ZERO_ERR_INVALID : ZERO_ERR_UNSUPPORTED,
                 "group '%s' of %d nodes %s: memory is shared once, by ranks of one node",
                 comm->name, comm->layout.n_nodes,
                 comm->heap ? "shares memory already" : "cannot share memory");
    zero_thread_lock(comm);
    zero_status st = zero_works_drain(comm);
    if (st == ZERO_OK) st = make(comm, bytes, &comm->heap);
    zero_thread_unlock(comm);
    return st;
}

static char *own_heap(const struct zero_heap *h)
{
    return zero_window_array(&h->window, 0) + (size_t)h->window.local_rank * h->bytes;
}

/* The first free part that is large enough, cut. */
static void *take(struct zero_heap *h, size_t bytes)
{
    part *p = h->parts;
    const size_t needed = zero_round_up_size(zero_max_size(bytes, 1), PAGE);
    while (p && (p->is_used || p->bytes < needed)) p = p->next;
    if (!p) return NULL;
    if (p->bytes > needed) {
        part *rest = malloc(sizeof *rest);
        if (!rest) return NULL;
        *rest = (part){p->at + needed, p->bytes - needed, false, p->next};
        p->bytes = needed;
        p->next = rest;
    }
    p->is_used = true;
    return own_heap(h) + p->at;
}

static void join_next(part *p)
{
    part *next = p->next;
    if (p->is_used || !next || next->is_used) return;
    p->bytes += next->bytes;
    p->next = next->next;
    free(next);
}

void *zero_comm_allocate(zero_comm *comm, size_t bytes)
{
    if (!comm || !comm->heap) return NULL;
    zero_thread_lock(comm);
    void *memory = take(comm->heap, bytes);
    zero_thread_unlock(comm);
    return memory;
}

void zero_comm_free(zero_comm *comm, void *memory)
{
    if (!comm || !comm->heap || !memory) return;
    zero_thread_lock(comm);
    size_t at = (size_t)((char *)memory - own_heap(comm->heap));
    part *before = NULL, *p = comm->heap->parts;
    while (p && p->at != at) {
        before = p;
        p = p->next;
    }
    if (p) {
        p->is_used = false;
        join_next(p);
        if (before) join_next(before);
    }
    zero_thread_unlock(comm);
}

/* ---- places ---- */

static place *find_place(const struct zero_heap *h, int local, int64_t sequence)
{
    place *rows = (place *)(void *)zero_window_array(&h->window, 1);
    return rows + (int64_t)local * ZERO_SIGNALS + sequence % ZERO_SIGNALS;
}

static uint64_t number(int64_t sequence)
{
    return (uint64_t)(sequence + 1) << PLACE_BITS;
}

void zero_heap_publish(zero_comm *comm, int64_t sequence, uint64_t hash, const void *data,
                       size_t bytes)
{
    const struct zero_heap *h = comm->heap;
    uintptr_t at = (uintptr_t)data - (uintptr_t)own_heap(h);
    bool is_here = at < h->bytes && bytes <= h->bytes - at && at % GRAIN == 0;
    uint64_t where = is_here ? at / GRAIN : NOWHERE;
    place *mine = find_place(h, h->window.local_rank, sequence);
    mine->hash = hash;
    atomic_store_explicit(&mine->where, number(sequence) | where, memory_order_release);
}

zero_places zero_heap_find(const zero_comm *comm, int64_t sequence, uint64_t hash,
                           const char **given)
{
    const struct zero_heap *h = comm->heap;
    zero_places found = ZERO_PLACES_SHARED;
    for (int r = 0; r < comm->size; r++) {
        const int local = comm->layout.local_of[r];
        const place *p = find_place(h, local, sequence);
        uint64_t where = atomic_load_explicit(&p->where, memory_order_acquire);
        if (where >> PLACE_BITS != number(sequence) >> PLACE_BITS || p->hash != hash)
            return ZERO_PLACES_UNKNOWN;
        if ((where & NOWHERE) == NOWHERE) found = ZERO_PLACES_ELSEWHERE;
        given[r] = zero_window_array(&h->window, 0) + (size_t)local * h->bytes +
                   (where & NOWHERE) * GRAIN;
    }
    return found;
}
