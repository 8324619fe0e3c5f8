#include "cli/dataset.h"

#include "base/memory_limit.h"
#include "data/corpus_share.h"

static bool is_first(const zero_comm *world)
{
    return world->layout.local_of[world->rank] == 0;
}

/* If one rank opens the data for all, its message is the one that each rank would have. */
static zero_status name_no_rank(const zero_comm *world, zero_status st)
{
    if (st == ZERO_OK || world->layout.n_nodes > 1) return st;
    zero_failure failure = zero_failure_keep(st);
    failure.is_agreed = true;
    return zero_failure_restore(&failure);
}

/* `from` with the room that each of `readers` ranks on this machine has; 0 readers: any. A
 * sixteenth is for what is not counted, such as tables of a tokenizer that learns. */
static zero_corpus_source with_room(const zero_corpus_source *from, int readers)
{
    zero_corpus_source limited = *from;
    const size_t available = zero_memory_available();
    limited.room = readers > 0 ? (available - available / 16) / (size_t)readers : 0;
    return limited;
}

static zero_status open_on(bool opens, zero_dataset *d, zero_comm *world,
                           const zero_corpus_source *from)
{
    zero_status st = opens ? zero_corpus_open(from, &d->corpus) : ZERO_OK;
    return zero_agree_after_files(world, name_no_rank(world, st));
}

static zero_status pack_and_share(zero_dataset *d, zero_comm *world,
                                  const zero_corpus_source *from)
{
    ZERO_AT_END(zero_bytes_destroy) zero_bytes packed = {0};
    zero_status st = ZERO_OK;
    /* The tokens of a text are known only now. */
    const double needed =
        is_first(world) ? (double)zero_corpus_token_bytes(&d->corpus) : 0.0;
    if (from->room > 0 && needed > (double)from->room)
        st = zero_fail(ZERO_ERR_NOMEM,
                       "--data %.200s: its %.1f MiB of tokens are copied once for all "
                       "ranks of the node, and %.1f MiB of memory are available; give less "
                       "data, or start on nodes with more memory",
                       from->data, needed / 0x1p20, (double)from->room / 0x1p20);
    else if (is_first(world))
        st = zero_corpus_pack(&d->corpus, &packed);
    ZERO_TRY(zero_agree(world, name_no_rank(world, st)));
    /* Copies the tokens into a window of the node, from which all its ranks read. */
    /* A window is as long as the longest corpus: that nodes have the same one is found
     * later. */
    int64_t most, mine = 0;
    size_t ranks = (size_t)zero_layout_local_size(&world->layout, world->rank);
    if (is_first(world)) mine = (int64_t)(packed.len + zero_corpus_token_bytes(&d->corpus));
    ZERO_TRY(zero_comm_most(world, mine, &most));
    size_t part = ((size_t)most + ranks - 1) / ranks;
    ZERO_TRY(zero_window_init(&d->window, world, 1, &part));
    char *shared = zero_window_array(&d->window, 0);
    if (is_first(world)) zero_corpus_move(&d->corpus, &packed, shared);
    ZERO_TRY(zero_comm_barrier(world));
    return zero_agree(world,
                      is_first(world) ? ZERO_OK : zero_corpus_unpack(shared, &d->corpus));
}

zero_status zero_dataset_open(zero_dataset *d, zero_comm *world,
                              const zero_corpus_source *from, int machine_ranks)
{
    const int each = zero_layout_local_size(&world->layout, world->rank);
    const int readers = (machine_ranks + each - 1) / each; /* several nodes may be fake */
    *d = (zero_dataset){.why_own = ""};
    zero_corpus_source mine = with_room(from, readers);
    mine.shares = world->layout.n_nodes < world->size;
    ZERO_TRY(open_on(is_first(world), d, world, &mine));
    if (!mine.shares) return ZERO_OK;
    mine = with_room(from, readers);
    zero_status st = pack_and_share(d, world, &mine);
    if (st != ZERO_ERR_ENV) return st;
    zero_print(d->why_own, "%s", zero_last_error());
    mine = with_room(from, machine_ranks - readers);
    return open_on(!is_first(world), d, world, &mine);
}

void zero_dataset_close(zero_dataset *d)
{
    zero_corpus_close(&d->corpus);
    zero_window_destroy(&d->window);
    *d = (zero_dataset){.why_own = ""};
}
