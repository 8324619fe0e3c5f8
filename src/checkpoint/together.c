#include "checkpoint/together.h"

#define SLOTS        2
#define AHEAD        4 /* batches or pieces that the disk reads before they are asked for */
#define READERS_MOST 8 /* of a node: more do not make a file system faster */

/* Consecutive pieces of one shard. */
typedef struct {
    int64_t begin, end; /* their numbers */
} batch;

typedef struct {
    zero_comm *comm;
    zero_checkpoint *c;
    const zero_range *mine; /* this rank's wishes: a row of `all` */
    const zero_range *all;  /* [n][n_groups] of the node's ranks */
    int n, local;
    const zero_checkpoint_receiver *to;
    zero_window wishes, slots;
    zero_piece *own, *shared; /* pieces that this rank alone wants, and several */
    batch *batches;
    int64_t n_own, own_room, n_shared, shared_room, n_batches, batch_room;
    int64_t most; /* floats of the longest batch */
} together;

static void destroy(together *t)
{
    zero_window_destroy(&t->wishes);
    zero_window_destroy(&t->slots);
    zero_free(t->own, t->shared, t->batches);
}

/* ---- who wants what ---- */

static int64_t floats_of(const zero_piece *piece)
{
    return piece->parts * zero_range_len(piece->range);
}

static zero_status keep(zero_piece **list, int64_t *n, int64_t *room, const zero_piece *p)
{
    ZERO_TRY(zero_allocated(zero_grow(*list, *n, room), "no memory for %" PRId64 " pieces",
                            *n + 1));
    (*list)[(*n)++] = *p;
    return ZERO_OK;
}

static zero_status sort_piece(void *arg, const zero_piece *piece)
{
    together *t = arg;
    int wanted = 0;
    for (int l = 0; l < t->n; l++)
        wanted += zero_piece_is_wished(piece, t->all + l * t->c->manifest.table.n_groups);
    if (wanted > 1) return keep(&t->shared, &t->n_shared, &t->shared_room, piece);
    return zero_piece_is_wished(piece, t->mine)
               ? keep(&t->own, &t->n_own, &t->own_room, piece)
               : ZERO_OK;
}

static zero_status sort(together *t)
{
    t->n_own = t->n_shared = t->n_batches = 0;
    ZERO_TRY(zero_checkpoint_visit_pieces(t->c, t->n, t->all,
                                          &(zero_piece_visitor){sort_piece, t}));
    const int64_t limit = ZERO_STATES * ZERO_EXTENT_MAX;
    for (int64_t i = 0, floats = 0; i < t->n_shared; i++) {
        bool goes_on = i > 0 && t->shared[i].rank == t->shared[i - 1].rank &&
                       floats + floats_of(&t->shared[i]) <= limit;
        if (!goes_on) {
            ZERO_TRY(zero_allocated(zero_grow(t->batches, t->n_batches, &t->batch_room),
                                    "no memory for %" PRId64 " batches", t->n_batches + 1));
            t->batches[t->n_batches++] = (batch){i, i};
            floats = 0;
        }
        t->batches[t->n_batches - 1].end = i + 1;
        floats += floats_of(&t->shared[i]);
        t->most = zero_max(t->most, floats);
    }
    return ZERO_OK;
}

/* The ranks of a node see each other's wishes. False: they cannot share memory. */
static zero_status exchange_wishes(together *t, bool *can_share)
{
    const int n_groups = t->c->manifest.table.n_groups;
    const size_t row = (size_t)n_groups * sizeof *t->mine;
    *can_share = false;
    zero_status st = zero_window_init(&t->wishes, t->comm, 1, &row);
    if (st == ZERO_ERR_ENV) return ZERO_OK; /* each reads alone */
    ZERO_TRY(st);
    zero_range *all = (zero_range *)(void *)zero_window_array(&t->wishes, 0);
    t->local = t->wishes.local_rank;
    memcpy(all + t->local * n_groups, t->mine, row);
    ZERO_TRY(zero_comm_barrier(t->comm));
    t->all = all;
    t->n = t->wishes.local_size;
    *can_share = true;
    return ZERO_OK;
}

/* ---- what several want ---- */

static int readers_of(const together *t)
{
    return (int)zero_min(zero_min(t->n, READERS_MOST), t->n_batches);
}

/* The batches of a reader. */
static batch share_of(const together *t, int reader)
{
    int n = readers_of(t);
    return (batch){t->n_batches * reader / n, t->n_batches * (reader + 1) / n};
}

static int64_t rounds_of(const together *t)
{
    int64_t rounds = 0;
    for (int r = 0; r < readers_of(t); r++)
        rounds = zero_max(rounds, share_of(t, r).end - share_of(t, r).begin);
    return rounds;
}

static float *slot_of(const together *t, int reader, int64_t round)
{
    float *slots = (float *)(void *)zero_window_array(&t->slots, 0);
    return slots + (reader * SLOTS + round % SLOTS) * t->most;
}

/* The disk begins with batches from `begin` on while others are taken. */
static zero_status expect(const together *t, batch batches)
{
    for (int64_t b = batches.begin; b < batches.end; b++)
        for (int64_t i = t->batches[b].begin; i < t->batches[b].end; i++)
            ZERO_TRY(zero_checkpoint_expect_piece(t->c, &t->shared[i]));
    return ZERO_OK;
}

static zero_status read_batch(const together *t, const batch *b, float *values)
{
    for (int64_t i = b->begin; i < b->end; i++) {
        ZERO_TRY(zero_checkpoint_read_piece(t->c, &t->shared[i], values));
        values += floats_of(&t->shared[i]);
    }
    return ZERO_OK;
}

static zero_status take_batch(const together *t, const batch *b, float *values)
{
    for (int64_t i = b->begin; i < b->end; i++) {
        ZERO_TRY(zero_checkpoint_hand_over(&t->shared[i], values, t->mine, t->to));
        values += floats_of(&t->shared[i]);
    }
    return ZERO_OK;
}

/* One agreement a round: a slot is written again two rounds later, when all ranks have
 * agreed on the round between, and so have taken what was there. */
static zero_status fetch_shared(together *t, int64_t rounds)
{
    zero_status st = ZERO_OK;
    const int n = readers_of(t);
    const batch own = t->local < n ? share_of(t, t->local) : (batch){0, 0};
    st = expect(t, (batch){own.begin, zero_min(own.end, own.begin + AHEAD)});
    for (int64_t j = 0; j < rounds; j++) {
        if (st == ZERO_OK && own.begin + j < own.end)
            st = read_batch(t, &t->batches[own.begin + j], slot_of(t, t->local, j));
        ZERO_TRY(zero_agree_after_files(t->comm, st));
        if (own.begin + j + AHEAD < own.end)
            st = expect(t, (batch){own.begin + j + AHEAD, own.begin + j + AHEAD + 1});
        for (int r = 0; r < n && st == ZERO_OK; r++) {
            batch theirs = share_of(t, r);
            if (theirs.begin + j < theirs.end)
                st = take_batch(t, &t->batches[theirs.begin + j], slot_of(t, r, j));
        }
    }
    return zero_agree_after_files(t->comm, st);
}

/* Memory for the slots, if any node needs it. False: this one has none. */
static zero_status make_slots(together *t, int64_t rounds, bool *can_share)
{
    if (rounds == 0) return ZERO_OK;
    size_t all = (size_t)readers_of(t) * SLOTS * (size_t)t->most * sizeof(float);
    size_t each = zero_round_up_size(all / (size_t)t->n + 1, 64);
    zero_status st = zero_window_init(&t->slots, t->comm, 1, &each);
    *can_share = st == ZERO_OK;
    return st == ZERO_ERR_ENV ? ZERO_OK : st;
}

/* ---- both ---- */

static zero_status fetch_own(const together *t)
{
    for (int64_t i = 0; i < zero_min(t->n_own, AHEAD); i++)
        ZERO_TRY(zero_checkpoint_expect_piece(t->c, &t->own[i]));
    for (int64_t i = 0; i < t->n_own; i++) {
        if (i + AHEAD < t->n_own)
            ZERO_TRY(zero_checkpoint_expect_piece(t->c, &t->own[i + AHEAD]));
        ZERO_TRY(zero_checkpoint_read_piece(t->c, &t->own[i], t->c->block));
        ZERO_TRY(zero_checkpoint_hand_over(&t->own[i], t->c->block, t->mine, t->to));
    }
    return ZERO_OK;
}

zero_status zero_checkpoint_fetch_together(zero_comm *comm, zero_status mine,
                                           zero_checkpoint *c, const zero_model *model,
                                           const zero_range *wishes,
                                           const zero_checkpoint_receiver *to)
{
    ZERO_AT_END(destroy)
    together t = {.comm = comm, .c = c, .mine = wishes, .all = wishes, .n = 1, .to = to};
    bool can_share = comm->layout.largest > 1 && zero_checkpoint_has_pieces(c, model);
    int64_t rounds = 0;
    ZERO_TRY(zero_agree_after_files(comm, mine));
    if (can_share) ZERO_TRY(exchange_wishes(&t, &can_share));
    if (!can_share)
        return zero_agree_after_files(comm, zero_checkpoint_fetch(c, model, wishes, to));
    ZERO_TRY(zero_agree(comm, sort(&t)));
    ZERO_TRY(zero_comm_most(comm, rounds_of(&t), &rounds));
    ZERO_TRY(make_slots(&t, rounds, &can_share));
    if (!can_share)
        return zero_agree_after_files(comm, zero_checkpoint_fetch(c, model, wishes, to));
    if (rounds > 0) ZERO_TRY(fetch_shared(&t, rounds));
    return zero_agree_after_files(comm, fetch_own(&t));
}
