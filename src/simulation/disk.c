#include "simulation/disk.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/grow.h"

#define IDLE (-2) /* `next` of a transfer that is not in flight */
#define LAST (-1)

/* A transfer is the first of its rank for as long as it is served. The clock of a node runs
 * at 1 / k while k ranks have one, so a transfer of s seconds that becomes first at `clock`
 * ends at clock + s. */
typedef struct {
    double clock;  /* at `since` */
    double since;  /* time of the last change */
    double due;    /* when the next transfer ends, unless something changes; -1: none */
    int n_serving; /* k */
} node_disk;

typedef struct {
    int first, last; /* transfers in flight, in order; LAST: none */
    double end;      /* of the first one, on the node's clock */
} rank_queue;

struct zero_disks {
    const zero_layout *layout;
    zero_events *events;
    zero_disk_ended *ended;
    void *arg;
    int files;
    node_disk *nodes;   /* [layout->n_nodes] */
    int *ranks;         /* [layout->size]: ranks by node, */
    int *first_of;      /* [n_nodes + 1]: those of a node from here on */
    rank_queue *queues; /* [layout->size] */
    int *next;          /* [layout->size][files] */
    double *seconds;    /* [layout->size][files] */
};

int64_t zero_disks_bytes(int ranks, int files)
{
    return (int64_t)ranks * files * (int64_t)(sizeof(int) + sizeof(double));
}

zero_status zero_disks_open(zero_disks **disks, const zero_layout *layout, int files,
                            zero_events *events, zero_disk_ended *ended, void *arg)
{
    static const char what[] = "disks of simulated ranks";
    size_t ranks = (size_t)layout->size, all = ranks * ((size_t)files + 1);
    ZERO_TRY(zero_new(disks, 1, what));
    zero_disks *d = *disks;
    *d = (zero_disks){
        .layout = layout, .events = events, .ended = ended, .arg = arg, .files = files + 1};
    ZERO_TRY(zero_new(&d->nodes, layout->n_nodes, what));
    ZERO_TRY(zero_new(&d->ranks, ranks, what));
    ZERO_TRY(zero_new(&d->first_of, layout->n_nodes + 1, what));
    ZERO_TRY(zero_new(&d->queues, ranks, what));
    ZERO_TRY(zero_new(&d->next, all, what));
    ZERO_TRY(zero_new(&d->seconds, all, what));
    /* Lists the ranks of each node, in order. */
    for (int r = 0; r < layout->size; r++) d->first_of[layout->node_of[r] + 1]++;
    for (int n = 0; n < layout->n_nodes; n++) {
        d->first_of[n + 1] += d->first_of[n];
        d->nodes[n].due = -1.0;
    }
    for (int r = 0; r < layout->size; r++) {
        d->ranks[d->first_of[layout->node_of[r]] + layout->local_of[r]] = r;
        d->queues[r] = (rank_queue){.first = LAST, .last = LAST};
    }
    for (size_t i = 0; i < all; i++) d->next[i] = IDLE;
    return ZERO_OK;
}

void zero_disks_close(zero_disks *d)
{
    if (!d) return;
    free(d->nodes);
    free(d->ranks);
    free(d->first_of);
    free(d->queues);
    free(d->next);
    free(d->seconds);
    free(d);
}

static int64_t at(const zero_disks *d, int rank, int file)
{
    assert(file >= 0 && file < d->files);
    return (int64_t)rank * d->files + file;
}

bool zero_disk_is_over(const zero_disks *d, int rank, int file)
{
    return d->next[at(d, rank, file)] == IDLE;
}

static void bring_clock(node_disk *n, double now)
{
    if (n->n_serving > 0) n->clock += (now - n->since) / n->n_serving;
    n->since = now;
}

/* The rank of the node whose transfer ends first; the lowest of several. */
static int first_to_end(const zero_disks *d, int node)
{
    int first = -1;
    for (int k = d->first_of[node]; k < d->first_of[node + 1]; k++) {
        int r = d->ranks[k];
        if (d->queues[r].first == LAST) continue;
        if (first < 0 || d->queues[r].end < d->queues[first].end) first = r;
    }
    return first;
}

/* After every change. An event that was announced before and is not due any more is
 * ignored. */
static void announce(zero_disks *d, int node)
{
    node_disk *n = &d->nodes[node];
    int rank = first_to_end(d, node);
    n->due = -1.0;
    if (rank < 0) return;
    double left = fmax(d->queues[rank].end - n->clock, 0.0) * n->n_serving;
    n->due = d->events->now + left;
    zero_events_add(d->events, n->due, ZERO_EVENT_DISK, node);
}

void zero_disk_begin(zero_disks *d, int rank, int file, double seconds)
{
    rank_queue *q = &d->queues[rank];
    node_disk *n = &d->nodes[d->layout->node_of[rank]];
    int64_t i = at(d, rank, file);
    assert(d->next[i] == IDLE);
    d->next[i] = LAST;
    d->seconds[i] = seconds;
    if (q->last != LAST) d->next[at(d, rank, q->last)] = file;
    q->last = file;
    if (q->first != LAST) return;
    bring_clock(n, d->events->now);
    q->first = file;
    q->end = n->clock + seconds;
    n->n_serving++;
    announce(d, d->layout->node_of[rank]);
}

void zero_disk_happens(zero_disks *d, const zero_event *event)
{
    node_disk *n = &d->nodes[event->which];
    if (event->time != n->due) return;
    int rank = first_to_end(d, event->which);
    bring_clock(n, event->time);
    rank_queue *q = &d->queues[rank];
    int64_t i = at(d, rank, q->first);
    n->clock = fmax(n->clock, q->end);
    q->first = d->next[i];
    d->next[i] = IDLE;
    if (q->first == LAST) {
        q->last = LAST;
        n->n_serving--;
    } else {
        q->end = n->clock + d->seconds[at(d, rank, q->first)];
    }
    announce(d, event->which);
    d->ended(d->arg, rank);
}
