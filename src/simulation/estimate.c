#include "base/fail.h"
#include "lists/algorithm.h"
#include "simulation/exchange.h"
#include "simulation/step_lists.h"

#define MOST_STEPS    100000 /* of a list that is written to be measured */
#define WRITTEN_BYTES 5      /* of a list as lists/step.h writes it, for each byte packed */

typedef struct {
    int64_t sent, received, read, bytes; /* bytes: of the list */
} list_size;

static list_size size_of(const zero_packed_list *list, int64_t chunks)
{
    int64_t n[ZERO_PACKED_AWAIT + 1] = {0};
    for (int64_t i = 0; i < list->n; i++) n[list->steps[i].kind] += chunks;
    return (list_size){.sent = n[ZERO_PACKED_SEND],
                       .received = n[ZERO_PACKED_RECEIVE],
                       .read = n[ZERO_PACKED_READ] + n[ZERO_PACKED_LEND],
                       .bytes = chunks * list->n * (int64_t)sizeof *list->steps};
}

/* The list of this many chunks. */
static zero_status pack_chunks(const zero_collective_spec *spec, const zero_layout *layout,
                               int member, int64_t chunk, int64_t chunks,
                               zero_packed_list *list)
{
    zero_peers peers = zero_peers_of(spec, layout);
    zero_collective_spec some = *spec;
    some.count = zero_min(spec->count, chunk * chunks);
    some.max_chunk = zero_min(spec->count, chunk);
    return zero_pack(list, &some, &peers, member);
}

/* A short list is written. A list with one chunk says what each chunk of a long one takes. */
static zero_status measure(const zero_collective_spec *spec, const zero_layout *layout,
                           int member, list_size *size)
{
    int64_t chunk = zero_algorithm_get(spec->algorithm)->chunk(spec, layout);
    int64_t chunks = zero_divide_up(spec->count, chunk), times = chunks;
    zero_packed_list list;
    ZERO_TRY(pack_chunks(spec, layout, member, chunk, 1, &list));
    if (list.n * chunks < MOST_STEPS) {
        times = 1;
        zero_packed_list_destroy(&list);
        ZERO_TRY(pack_chunks(spec, layout, member, chunk, chunks, &list));
    }
    *size = size_of(&list, times);
    zero_packed_list_destroy(&list);
    return ZERO_OK;
}

/* A broadcast is a chain over ranks, or over nodes; all messages of a reduce end at the root. */
static int64_t messages_of(const zero_collective_spec *spec, const zero_layout *layout,
                           const list_size *first, const list_size *second)
{
    bool is_hier = spec->algorithm == ZERO_ALGORITHM_HIER;
    switch (spec->kind) {
    case ZERO_REDUCE: return first->received;
    case ZERO_BROADCAST:
        return first->sent * ((is_hier ? layout->n_nodes : layout->size) - 1);
    case ZERO_REDUCE_SCATTER:
    case ZERO_ALL_GATHER: break;
    }
    return layout->size * zero_max(first->sent, second->sent);
}

/* From the lists of the root, or the first member, and of another one. */
zero_status zero_exchange_estimate(const zero_collective_spec *spec,
                                   const zero_layout *layout, int64_t *messages,
                                   int64_t *bytes)
{
    list_size first = {0}, second = {0};
    bool has_root = zero_collective_has_root(spec->kind);
    int root = has_root ? spec->root : 0;
    ZERO_TRY(zero_collective_check(spec, layout));
    ZERO_TRY(measure(spec, layout, root, &first));
    ZERO_TRY(measure(spec, layout, (root + layout->size - 1) % layout->size, &second));
    int64_t written = zero_step_lists_distinct(spec, layout);
    *messages = messages_of(spec, layout, &first, &second) +
                layout->size * zero_max(first.read, second.read);
    *bytes = has_root ? first.bytes + written * second.bytes
                      : written * zero_max(first.bytes, second.bytes);
    *bytes += layout->size * (int64_t)sizeof(int32_t);
    *bytes += WRITTEN_BYTES * zero_max(first.bytes, second.bytes); /* one being packed */
    return ZERO_OK;
}
