#include "checkpoint/pieces.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/number.h"

enum { PER_RANK = 2, MOST_OPEN = 64 };

static int tp_of(const zero_pieces *c)
{
    return c->manifest->table.layout.tp;
}

/* ---- what is kept ---- */

static zero_status allocate(zero_pieces *c)
{
    if (c->locals) return ZERO_OK;
    c->n_shards = (int)zero_min(2 * (int64_t)tp_of(c), MOST_OPEN);
    c->n_extents = PER_RANK * ZERO_STATES * tp_of(c);
    c->shards = calloc((size_t)c->n_shards, sizeof *c->shards);
    c->extents = calloc((size_t)c->n_extents, sizeof *c->extents);
    c->locals = calloc((size_t)tp_of(c), sizeof *c->locals);
    if (c->shards && c->extents && c->locals) return ZERO_OK;
    zero_pieces_close(c);
    return zero_fail(ZERO_ERR_NOMEM, "no memory to read %s", c->dir->path);
}

void zero_pieces_close(zero_pieces *c)
{
    for (int i = 0; c->shards && i < c->n_shards; i++) zero_shard_close(&c->shards[i]);
    for (int i = 0; c->extents && i < c->n_extents; i++) free(c->extents[i].values);
    for (int p = 0; c->locals && p < tp_of(c); p++) zero_state_local_destroy(&c->locals[p]);
    free(c->shards);
    free(c->extents);
    free(c->locals);
    *c = (zero_pieces){.dir = c->dir, .manifest = c->manifest};
}

zero_status zero_pieces_local(zero_pieces *c, int p, const zero_state_local **local)
{
    ZERO_TRY(allocate(c));
    if (!c->locals[p].tensors)
        ZERO_TRY(zero_state_local_init(&c->locals[p], &c->manifest->table, p));
    *local = &c->locals[p];
    return ZERO_OK;
}

/* The place of the shard that was used least recently, or never. */
static zero_shard_reader *oldest_shard(const zero_pieces *c)
{
    zero_shard_reader *oldest = &c->shards[0];
    for (int i = 1; i < c->n_shards; i++)
        if (c->shards[i].used < oldest->used) oldest = &c->shards[i];
    return oldest;
}

zero_status zero_pieces_shard(zero_pieces *c, int rank, const zero_shard_reader **shard)
{
    const zero_state_local *local;
    ZERO_TRY(zero_pieces_local(c, rank % tp_of(c), &local));
    zero_shard_reader *found = NULL;
    for (int i = 0; i < c->n_shards && !found; i++)
        if (c->shards[i].file.is_open && c->shards[i].rank == rank) found = &c->shards[i];
    if (!found) {
        found = oldest_shard(c);
        zero_shard_close(found);
        ZERO_TRY(zero_shard_open(c->dir, c->manifest, local, rank, found));
    }
    found->used = ++c->clock;
    *shard = found;
    return ZERO_OK;
}

/* ---- extents ---- */

static bool holds(const zero_kept_extent *kept, int rank, const zero_extent *x)
{
    return kept->used > 0 && kept->rank == rank && kept->extent.tensor == x->tensor &&
           kept->extent.part == x->part && kept->extent.begin <= x->begin &&
           x->begin < kept->extent.end;
}

/* The places of a part of the state in the shards of one p. */
static zero_kept_extent *places_of(const zero_pieces *c, int rank, zero_state_part part)
{
    return &c->extents[(rank % tp_of(c) * ZERO_STATES + (int)part) * PER_RANK];
}

/* Reads the extent with the first element of x into the place of the older one. */
static zero_status read_extent(zero_pieces *c, int rank, const zero_extent *x,
                               zero_kept_extent **kept)
{
    const zero_shard_reader *shard;
    zero_kept_extent *to = places_of(c, rank, x->part);
    if (to[1].used < to[0].used) to++;
    size_t most = (size_t)zero_extent_most(&c->manifest->table);
    if (!to->values) to->values = malloc(most * sizeof *to->values);
    if (!to->values) return zero_fail(ZERO_ERR_NOMEM, "no memory to read %s", c->dir->path);
    to->used = 0;
    ZERO_TRY(zero_pieces_shard(c, rank, &shard));
    int i = zero_shard_find(shard, x->tensor, x->part, x->begin);
    ZERO_TRY(zero_shard_read(shard, i, to->values));
    to->rank = rank;
    to->extent = shard->extents[i];
    *kept = to;
    return ZERO_OK;
}

static zero_status get_extent(zero_pieces *c, int rank, const zero_extent *x,
                              zero_kept_extent **kept)
{
    zero_kept_extent *places = places_of(c, rank, x->part);
    *kept = NULL;
    for (int i = 0; i < PER_RANK && !*kept; i++)
        if (holds(&places[i], rank, x)) *kept = &places[i];
    if (!*kept) ZERO_TRY(read_extent(c, rank, x, kept));
    (*kept)->used = ++c->clock;
    return ZERO_OK;
}

zero_status zero_pieces_read(zero_pieces *c, int tensor, zero_state_part part,
                             int64_t begin, int64_t end, float *values)
{
    const zero_state_table *table = &c->manifest->table;
    for (int64_t at = begin; at < end;) {
        const zero_state_local *local;
        zero_kept_extent *kept;
        ZERO_TRY(zero_pieces_local(c, zero_state_holder(table, tensor, at), &local));
        zero_state_place place = zero_state_find(local, tensor, at, end);
        zero_extent x = {tensor, part, place.run.local, place.run.local + place.run.n};
        ZERO_TRY(get_extent(c, place.d * table->layout.tp + local->p, &x, &kept));
        int64_t n = zero_min(x.end, kept->extent.end) - x.begin;
        memcpy(values + (at - begin), kept->values + (x.begin - kept->extent.begin),
               (size_t)n * sizeof *values);
        at += n;
    }
    return ZERO_OK;
}
