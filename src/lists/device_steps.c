/* The list of the algorithm is copied step by step, with the copies of the device in
 * between:
 *
 *     fetch    AHEAD parts before the part that the next step reads, so that data arrives
 *              while earlier parts travel. The first step that reads a part, or that lets
 *              neighbours read it, waits for it; later steps need not, as steps run in
 *                order.
 *     store    as soon as the list says that a part of `out` is there: after an add or a
 *              copy; after the first step that waits for the message that brings it; or, if
 *              no step does, BEHIND messages later, which may travel until then.
 *
 * Copies wait for slots and for earlier messages of this list only. So ranks cannot wait in
 * a circle if they could not without a device. */
#include "lists/device_steps.h"

#define AHEAD  6
#define BEHIND 8
#define CHUNKS 4 /* that a copy moves, if they are small */

/* Elements of one piece that a copy moves. */
typedef struct {
    int piece;
    int64_t first, len;
    int64_t step; /* of the algorithm's list: it reads the part first, or has written it */
    int64_t number; /* store: of the message that brings it; -1: it is there already */
} part;

typedef struct {
    zero_steps *s;                   /* the new list */
    const zero_collective_step *old; /* [n], the algorithm's */
    int64_t n;
    int64_t stride; /* of the device's arrays; the mirrors' is spec.count */
    int64_t grain;  /* elements of a copy, unless a step moves more */

    part *fetches;
    int64_t n_fetches, fetch_capacity, fetch; /* fetch: the next one to be added */
    int64_t needed;                           /* fetches that steps up to now wait for */
    int64_t *fetched_until;                   /* [pieces]: elements */
    int64_t *added_at;                        /* [fetches]: where the fetch stands */

    part *arriving; /* [n]: what messages write to `out`, in their order */
    int64_t first, last;
    int64_t messages;  /* that the steps up to now write to `out` */
    int64_t waited;    /* the steps whose messages some step of the algorithm waits for */
    part ready;        /* to be stored, perhaps with more; len 0: nothing */
    int64_t *moved_to; /* [n]: where the steps of the old list stand */
} writer;

/* ---- what steps read and write ---- */

static bool is_own(const writer *w, zero_spot spot, zero_place place)
{
    return spot.place == place && spot.rank == w->s->rank;
}

static bool reads_own_in(const writer *w, const zero_collective_step *step)
{
    switch (step->kind) {
    case ZERO_STEP_SEND:
    case ZERO_STEP_COPY:
    case ZERO_STEP_SIGNAL:
    case ZERO_STEP_MPI: return step->len > 0 && is_own(w, step->from, ZERO_IN);
    case ZERO_STEP_ADD: break;
    case ZERO_STEP_RECEIVE:
    case ZERO_STEP_AWAIT:
    case ZERO_STEP_FETCH:
    case ZERO_STEP_STORE:
    case ZERO_STEP_MARK: return false;
    }
    const zero_sum *sum = &w->s->sums[step->sum];
    for (int64_t t = 0; t < sum->n; t++)
        if (sum->terms[t].staged < 0 && sum->terms[t].first == w->s->rank) return true;
    return false;
}

/* In a broadcast MPI only reads what the root has. */
static bool writes_own_out(const writer *w, const zero_collective_step *step)
{
    const zero_collective_spec *spec = &w->s->spec;
    switch (step->kind) {
    case ZERO_STEP_RECEIVE:
    case ZERO_STEP_ADD:
    case ZERO_STEP_COPY: return is_own(w, step->to, ZERO_OUT);
    case ZERO_STEP_MPI:
        return is_own(w, step->to, ZERO_OUT) &&
               (spec->kind != ZERO_BROADCAST || w->s->rank != spec->root);
    case ZERO_STEP_SEND:
    case ZERO_STEP_SIGNAL:
    case ZERO_STEP_AWAIT:
    case ZERO_STEP_FETCH:
    case ZERO_STEP_STORE:
    case ZERO_STEP_MARK: break;
    }
    return false;
}

/* MPI's own collectives read or write a chunk of all pieces at once; these adjoin. */
static int64_t chunks_moved(const writer *w, const zero_collective_step *step, bool reads)
{
    zero_collective_kind whole = reads ? ZERO_REDUCE_SCATTER : ZERO_ALL_GATHER;
    bool all = step->kind == ZERO_STEP_MPI && w->s->spec.kind == whole;
    return all ? w->s->layout->size : 1;
}

static bool arrives(const zero_collective_step *step)
{
    return step->kind == ZERO_STEP_RECEIVE || step->kind == ZERO_STEP_MPI;
}

/* ---- fetches ---- */

static void plan_fetches(writer *w)
{
    int64_t count = w->s->spec.count;
    for (int64_t i = 0; i < w->n; i++) {
        const zero_collective_step *step = &w->old[i];
        if (!reads_own_in(w, step)) continue;
        bool signals = step->kind == ZERO_STEP_SIGNAL;
        int64_t n = signals
                        ? (w->s->spec.kind == ZERO_REDUCE_SCATTER ? w->s->layout->size : 1)
                        : chunks_moved(w, step, true);
        int64_t first = signals ? 0 : step->from.at / count;
        for (int64_t p = first; p < first + n; p++) {
            /* Step i needs the first `until` elements of the piece. */
            int piece = (int)p;
            int64_t until = step->from.at - first * count + step->len;
            int64_t *have = &w->fetched_until[piece];
            while (*have < until) {
                int64_t len = zero_min(w->s->spec.count - *have, w->grain);
                w->s->failed = !zero_grow(w->fetches, w->n_fetches, &w->fetch_capacity);
                if (w->s->failed) return;
                w->fetches[w->n_fetches++] = (part){piece, *have, len, i, -1};
                *have += len;
            }
        }
    }
}

/* Adds the fetches before step i; returns how many steps of the new list it waits for. */
static int64_t fetch_for(writer *w, int64_t i)
{
    int64_t before = w->needed;
    while (w->needed < w->n_fetches && w->fetches[w->needed].step <= i) w->needed++;
    while (w->fetch < zero_min(w->needed + AHEAD, w->n_fetches)) {
        const part *p = &w->fetches[w->fetch];
        int rank = w->s->rank;
        int64_t count = w->s->spec.count;
        w->added_at[w->fetch++] = w->s->n;
        zero_steps_add(w->s, (zero_collective_step){
                                 .kind = ZERO_STEP_FETCH,
                                 .type = w->s->spec.type,
                                 .len = p->len,
                                 .from = {ZERO_IN, rank, p->piece * w->stride + p->first},
                                 .to = {ZERO_IN, rank, p->piece * count + p->first}});
    }
    return w->needed > before ? w->added_at[w->needed - 1] + 1 : 0;
}

/* ---- stores ---- */

static void store_ready(writer *w)
{
    const part *p = &w->ready;
    int rank = w->s->rank;
    int64_t count = w->s->spec.count;
    if (p->len > 0)
        zero_steps_add(w->s, (zero_collective_step){
                                 .kind = ZERO_STEP_STORE,
                                 .type = w->s->spec.result,
                                 .len = p->len,
                                 .from = {ZERO_OUT, rank, p->piece * count + p->first},
                                 .to = {ZERO_OUT, rank, p->piece * w->stride + p->first},
                                 .received = p->number < 0 ? 0 : w->moved_to[p->step] + 1});
    w->ready.len = 0;
}

/* Small parts that adjoin are stored as one; the last of them is the last to be there. */
static void store(writer *w, part p)
{
    part *r = &w->ready;
    bool adjoins = r->len > 0 && r->piece == p.piece && r->first + r->len == p.first &&
                   r->len + p.len <= w->grain;
    if (!adjoins) store_ready(w);
    int64_t first = adjoins ? r->first : p.first;
    if (adjoins && p.number < 0) p.step = r->step, p.number = r->number;
    *r = (part){p.piece, first, p.first + p.len - first, p.step, p.number};
    if (r->len >= w->grain) store_ready(w);
}

/* Takes note of what step i writes to `out`. */
static void note_written(writer *w, int64_t i)
{
    const zero_collective_step *step = &w->old[i];
    int64_t count = w->s->spec.count;
    if (!writes_own_out(w, step)) return;
    int64_t first = step->to.at / count, n = chunks_moved(w, step, false);
    for (int64_t p = first; p < first + n; p++) {
        part here = {(int)p, step->to.at - first * count, step->len, i, -1};
        /* A piece that lies on the device already. */
        const zero_collective_spec *spec = &w->s->spec;
        int rank = w->s->rank;
        if (spec->in_place &&
            (zero_collective_has_root(spec->kind) ? rank == spec->root : p == rank))
            continue;
        if (arrives(step)) {
            here.number = w->messages;
            w->arriving[w->last++] = here;
        } else {
            store(w, here);
        }
    }
    w->messages += arrives(step);
}

/* Stores parts that step i has waited for, and old ones for which no step waits. */
static void store_arrived(writer *w, int64_t i)
{
    for (; w->first < w->last; w->first++) {
        part p = w->arriving[w->first];
        bool is_there = p.step < w->old[i].received;
        bool is_old = p.step >= w->waited && w->messages - p.number > BEHIND;
        if (!is_there && !is_old) return;
        store(w, p);
    }
}

/* ---- the list ---- */

/* Where the first `until` steps of the old list end in the new one. */
static int64_t moved(const writer *w, int64_t until)
{
    return until > 0 ? w->moved_to[until - 1] + 1 : 0;
}

/* Whole chunks: a copy of a few bytes takes as long as one of many. */
static int64_t grain(const zero_steps *s)
{
    int64_t most = (int64_t)(ZERO_STEP_CHUNK / zero_element_size(s->spec.type));
    return zero_max(zero_min(most / s->chunk, CHUNKS), 1) * s->chunk;
}

static bool allocate(writer *w)
{
    bool has_root = zero_collective_has_root(w->s->spec.kind);
    size_t pieces = has_root ? 1 : (size_t)w->s->layout->size, n = (size_t)w->n;
    w->fetched_until = calloc(pieces, sizeof *w->fetched_until);
    w->moved_to = calloc(n, sizeof *w->moved_to);
    w->arriving = calloc(n + pieces, sizeof *w->arriving);
    return w->fetched_until && w->moved_to && w->arriving;
}

void zero_steps_add_copies(zero_steps *s, int64_t stride)
{
    if (s->failed || s->n == 0 || s->spec.count == 0) return;
    zero_collective_step *old = s->list;
    writer w = {.s = s, .old = old, .n = s->n, .stride = stride, .grain = grain(s)};
    for (int64_t i = 0; i < s->n; i++) w.waited = zero_max(w.waited, old[i].received);
    s->list = NULL;
    s->n = s->capacity = 0;
    s->failed = !allocate(&w);
    if (!s->failed) plan_fetches(&w);
    w.added_at = calloc((size_t)w.n_fetches + 1, sizeof *w.added_at);
    s->failed = s->failed || !w.added_at;
    if (!s->failed) {
        for (int64_t i = 0; i < w.n && !w.s->failed; i++) {
            zero_collective_step step = w.old[i];
            step.fetched = fetch_for(&w, i);
            w.moved_to[i] = w.s->n; /* a step may name all up to itself */
            step.received = moved(&w, step.received);
            step.sent = moved(&w, step.sent);
            zero_steps_add(w.s, step);
            note_written(&w, i);
            store_arrived(&w, i);
        }
        while (w.first < w.last) store(&w, w.arriving[w.first++]);
        store_ready(&w);
    }
    zero_free(w.added_at, w.arriving, w.moved_to, w.fetched_until, w.fetches, old);
}

void zero_steps_mark(zero_steps *steps)
{
    zero_steps_add(steps, (zero_collective_step){.kind = ZERO_STEP_MARK});
}

void zero_steps_message_late(zero_steps *steps)
{
    for (int64_t i = 0; i < steps->n; i++) {
        zero_collective_step *step = &steps->list[i];
        bool receives = step->kind == ZERO_STEP_RECEIVE;
        if (receives || step->kind == ZERO_STEP_SEND)
            step->stored = receives && step->to.place == ZERO_STAGING ? i : 1;
    }
}

void zero_steps_signal_late(zero_steps *steps)
{
    for (int64_t i = 0; i < steps->n; i++)
        if (steps->list[i].kind == ZERO_STEP_SIGNAL) steps->list[i].stored = i;
}
