#include "comm/local.h"

/* The family of groups has one lock: a process has few ranks, and they copy little. */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t moves;
    int groups; /* that use it */
    bool is_abandoned;
} house;

struct zero_local {
    house *house;
    int size, users;
    struct zero_local_message *posted; /* oldest first; each waits for its partner */
    void **things;                     /* [size] of the meeting that goes on */
    int arrived;
    int64_t meetings; /* completed */
};

/* ---- groups ---- */

static void free_house(house *h)
{
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

static struct zero_local *make_group(house *h, int size)
{
    struct zero_local *group = calloc(1, sizeof *group);
    void **things = calloc((size_t)size, sizeof *things);
    if (!group || !things) {
        free(group);
        free(things);
        return NULL;
    }
    *group = (struct zero_local){.house = h, .size = size, .users = size, .things = things};
    h->groups++;
    return group;
}

/* Every rank on a node of its own. */
static zero_status describe(zero_comm *comm, struct zero_local *group, int rank)
{
    *comm = (zero_comm){.mpi = MPI_COMM_NULL,
                        .control = MPI_COMM_NULL,
                        .node = MPI_COMM_NULL,
                        .rank = rank,
                        .size = group->size,
                        .tag_limit = 32767,
                        .local = group};
    return zero_layout_init_blocks(&comm->layout, group->size, group->size);
}

zero_status zero_local_open(int size, zero_comm *ranks)
{
    house *h;
    ZERO_TRY(zero_new(&h, 1, "a group of threads"));
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->changed, NULL);
    struct zero_local *group = make_group(h, size);
    zero_status st = ZERO_OK;
    if (!group) {
        free_house(h);
        return zero_fail(ZERO_ERR_NOMEM, "no memory for a group of %d threads", size);
    }
    for (int r = 0; r < size; r++) {
        zero_status made = describe(&ranks[r], group, r);
        if (st == ZERO_OK) st = made;
    }
    for (int r = 0; st != ZERO_OK && r < size; r++) zero_local_leave(&ranks[r]);
    return st;
}

void zero_local_leave(zero_comm *comm)
{
    struct zero_local *group = comm->local;
    zero_layout_destroy(&comm->layout);
    if (--group->users == 0) {
        house *h = group->house;
        free(group->things);
        free(group);
        if (--h->groups == 0) free_house(h);
    }
    *comm = (zero_comm){0};
}

void zero_local_abandon(zero_comm *comm)
{
    house *h = comm->local->house;
    pthread_mutex_lock(&h->lock);
    h->is_abandoned = true;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

static zero_status tell_abandoned(void)
{
    return zero_fail(ZERO_ERR_STALLED, "another rank of this process has failed");
}

/* ---- meetings ---- */

/* A rank that has left an abandoned meeting still counts as arrived, and its thing is gone.
 * So no meeting may be completed after that. */
zero_status zero_local_meet(const zero_comm *comm, zero_local_combine *combine,
                            const void *arg, void *thing)
{
    struct zero_local *group = comm->local;
    house *h = group->house;
    pthread_mutex_lock(&h->lock);
    const int64_t meeting = group->meetings;
    if (!h->is_abandoned) {
        group->things[comm->rank] = thing;
        if (++group->arrived == group->size) {
            if (combine) combine(group->size, group->things, arg);
            group->arrived = 0;
            group->meetings++;
            pthread_cond_broadcast(&h->changed);
        }
        while (group->meetings == meeting && !h->is_abandoned)
            pthread_cond_wait(&h->changed, &h->lock);
    }
    const bool has_met = group->meetings != meeting;
    pthread_mutex_unlock(&h->lock);
    return has_met ? ZERO_OK : tell_abandoned();
}

/* ---- dividing ---- */

typedef struct {
    int color;
    zero_comm *out;
    zero_status status;
} wish;

/* The first rank of each color makes its group. */
static void divide(int size, void *const *things, const void *arg)
{
    const zero_comm *parent = arg;
    for (int r = 0; r < size; r++) {
        const int color = ((const wish *)things[r])->color;
        int before = 0, members = 0, rank = 0;
        for (int q = 0; q < size; q++) {
            bool is_one = ((const wish *)things[q])->color == color;
            members += is_one;
            before += is_one && q < r;
        }
        if (color < 0 || before > 0) continue;
        struct zero_local *group = make_group(parent->local->house, members);
        for (int q = r; q < size; q++) {
            wish *w = things[q];
            if (w->color != color) continue;
            w->status = group ? describe(w->out, group, rank++)
                              : zero_fail(ZERO_ERR_NOMEM,
                                          "no memory for a group of %d threads", members);
        }
    }
}

zero_status zero_local_split(const zero_comm *parent, int color, zero_comm *out)
{
    wish mine = {.color = color, .out = out};
    *out = (zero_comm){0};
    ZERO_TRY(zero_local_meet(parent, divide, parent, &mine));
    ZERO_FAIL_IF(mine.status != ZERO_OK, mine.status, "no memory for a group of threads");
    return ZERO_OK;
}

/* ---- messages ---- */

void zero_local_post(zero_collective *op, int slot, bool is_send, int peer, void *at,
                     size_t bytes)
{
    struct zero_local *group = op->comm->local;
    house *h = group->house;
    pthread_mutex_lock(&h->lock);
    op->messages[slot] = (struct zero_local_message){.is_used = true,
                                                     .is_send = is_send,
                                                     .rank = op->comm->rank,
                                                     .peer = peer,
                                                     .sequence = op->sequence,
                                                     .bytes = bytes,
                                                     .at = at};
    /* Messages between two ranks meet in the order in which they were posted, as MPI's
     * do. */
    struct zero_local_message *message = &op->messages[slot];
    struct zero_local_message **place = &group->posted, *partner;
    for (; (partner = *place) != NULL; place = &partner->next)
        if (partner->is_send != message->is_send && partner->rank == message->peer &&
            partner->peer == message->rank && partner->sequence == message->sequence)
            break;
    *place = partner ? partner->next : message;
    if (partner) {
        const struct zero_local_message *from = partner->is_send ? partner : message,
                                        *to = partner->is_send ? message : partner;
        assert(from->bytes == to->bytes);
        memcpy(to->at, from->at, from->bytes);
        partner->has_ended = message->has_ended = true;
    }
    h->moves++;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

void zero_local_drop(zero_collective *op)
{
    struct zero_local *group = op->comm->local;
    pthread_mutex_lock(&group->house->lock);
    for (struct zero_local_message **at = &group->posted; *at;)
        if (*at >= op->messages && *at < op->messages + ZERO_COLLECTIVE_REQUESTS)
            *at = (*at)->next;
        else
            at = &(*at)->next;
    pthread_mutex_unlock(&group->house->lock);
}

void zero_local_reap(zero_collective *op)
{
    house *h = op->comm->local->house;
    pthread_mutex_lock(&h->lock);
    for (int i = 0; i < ZERO_COLLECTIVE_REQUESTS; i++) {
        if (!op->messages[i].is_used || !op->messages[i].has_ended) continue;
        op->messages[i].is_used = false;
        op->in_flight--;
    }
    pthread_mutex_unlock(&h->lock);
}

int64_t zero_local_moves(const zero_comm *comm)
{
    house *h = comm->local->house;
    pthread_mutex_lock(&h->lock);
    int64_t moves = h->moves;
    pthread_mutex_unlock(&h->lock);
    return moves;
}

zero_status zero_local_rest(const zero_comm *comm, int64_t moves)
{
    house *h = comm->local->house;
    pthread_mutex_lock(&h->lock);
    while (h->moves == moves && !h->is_abandoned) pthread_cond_wait(&h->changed, &h->lock);
    bool is_abandoned = h->is_abandoned;
    pthread_mutex_unlock(&h->lock);
    return is_abandoned ? tell_abandoned() : ZERO_OK;
}
