#include "simulation/limits.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "lists/algorithm.h"
#include "sharding/schedule_exchange.h"
#include "simulation/agreements.h"
#include "simulation/step_lists.h"

/* Bytes of a rank's links, messages and steps in flight: 12 to 15 KiB have been measured
 * with 1024 and 4096 ranks. */
#define IN_FLIGHT 16384

/* ---- one collective ---- */

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

/* A short list is written. A list with one chunk says what each chunk of a long one
 * takes. */
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

/* A broadcast is a chain over ranks, or over nodes; all messages of a reduce end at the
 * root. */
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

/* Messages and reads of one collective over all members, and bytes of its packed lists:
 * counted from the lists of the root, or the first member, and of another one. */
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

/* ---- all ---- */

/* How many groups have a layout, and how often a step begins each collective. */
typedef struct {
    int64_t *groups; /* [n_layouts] */
    int64_t *begins; /* [n_specs] */
} uses;

/* Products and sums of counts, of which the largest stands for all that are larger: a
 * million ranks in a thousand steps send more messages than an int64_t can count. */
static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* The last few collectives that were estimated on a layout. Layers are equal, and with
 * --partition owner only roots differ, so most collectives are found here: to write the
 * lists of 64000 ranks for each of 64000 roots would take minutes. */
#define KNOWN 4

typedef struct {
    struct {
        zero_collective_spec spec;
        int64_t messages, bytes;
    } known[KNOWN];
    int n; /* so far; number i is at i % KNOWN */
} estimates;

static zero_status estimate(estimates *e, const zero_collective_spec *spec,
                            const zero_layout *layout, int64_t *messages, int64_t *bytes)
{
    zero_collective_spec same = *spec;
    same.root = 0;
    same.unit = ZERO_NO_UNIT;
    for (int i = 0; i < e->n && i < KNOWN; i++) {
        if (memcmp(&e->known[i].spec, &same, sizeof same) != 0) continue;
        *messages = e->known[i].messages;
        *bytes = e->known[i].bytes;
        return ZERO_OK;
    }
    ZERO_TRY(zero_exchange_estimate(spec, layout, messages, bytes));
    int at = e->n++ % KNOWN;
    e->known[at].spec = same;
    e->known[at].messages = *messages;
    e->known[at].bytes = *bytes;
    return ZERO_OK;
}

static zero_status add_up(const zero_actions *a, const zero_groups *g, const uses *u,
                          zero_simulation_cost *cost)
{
    for (int l = 0; l < g->n_layouts; l++) {
        estimates known = {.n = 0};
        for (int k = 0; k < a->n_specs; k++) {
            int64_t messages, bytes;
            if (a->part_of[k] != g->part_of[l]) continue;
            ZERO_TRY(estimate(&known, &a->specs[k], g->layouts[l], &messages, &bytes));
            int64_t begins = times(u->groups[l], u->begins[k]);
            cost->messages = plus(cost->messages, times(messages, begins));
            cost->bytes = plus(cost->bytes, bytes);
        }
    }
    return ZERO_OK;
}

static int64_t agreements_of(const zero_actions *a, const zero_groups *g)
{
    int tp = g->seats[ZERO_TP_GROUP] ? g->size[ZERO_TP_GROUP] : 1;
    int64_t sum = 0;
    for (int at = 0; at < a->n; at++) {
        const zero_action *i = &a->list[at];
        int ranks = i->gathers ? g->ranks / tp : g->ranks;
        sum += i->n_agreements * zero_agreement_messages(ranks) * (i->gathers ? tp : 1);
    }
    return sum;
}

zero_status zero_simulation_cost_of(const zero_actions *a, const zero_groups *g, int steps,
                                    zero_simulation_cost *cost)
{
    uses u = {.groups = calloc((size_t)g->n_layouts + 1, sizeof *u.groups),
              .begins = calloc((size_t)a->n_specs + 1, sizeof *u.begins)};
    *cost = (zero_simulation_cost){.messages = agreements_of(a, g),
                                   .bytes = g->ranks * (int64_t)IN_FLIGHT};
    zero_status st =
        u.groups && u.begins
            ? ZERO_OK
            : zero_fail(ZERO_ERR_NOMEM, "no memory to count %d collectives", a->n_specs);
    if (st == ZERO_OK) {
        for (int part = 0; part < ZERO_FAMILY_PARTS; part++)
            for (int r = 0; g->seats[part] && r < g->ranks; r++)
                u.groups[g->seats[part][r].layout] += g->seats[part][r].member == 0;
        for (int at = 0; at < a->n; at++)
            for (int k = 0;
                 a->list[at].kind == ZERO_WORK_EXCHANGE && k < a->list[at].n_calls; k++)
                u.begins[a->list[at].first_spec + k]++;
        st = add_up(a, g, &u, cost);
    }
    cost->messages = times(cost->messages, steps);
    free(u.groups);
    free(u.begins);
    return st;
}

zero_status zero_simulation_check_cost(const zero_schedule *s,
                                       const zero_simulate_input *input,
                                       const zero_simulation_cost *cost)
{
    int ranks = zero_schedule_world_layout(s)->size;
    const char *remedy = /* pairwise exchanges take messages of all ranks to all others */
        s->input.collectives == ZERO_ALGORITHM_P2P
            ? "simulate --collectives hier on nodes of several ranks, fewer layers or "
              "fewer ranks"
            : "simulate fewer layers or fewer ranks";
    if (cost->messages > input->most_messages)
        return zero_fail(ZERO_ERR_INVALID,
                         "%d steps of %d ranks are %" PRId64
                         " messages, more than --most-messages %" PRId64 ": %s",
                         input->steps, ranks, cost->messages, input->most_messages, remedy);
    if (cost->bytes > input->memory_limit)
        return zero_fail(ZERO_ERR_INVALID,
                         "simulating %d ranks needs %" PRId64
                         " bytes, more than --memory-limit %" PRId64 ": %s",
                         ranks, cost->bytes, input->memory_limit, remedy);
    return ZERO_OK;
}

/* ---- the input ---- */

zero_status zero_simulation_check(const zero_schedule *s, const zero_simulate_input *input)
{
    if (s->input.forward_only)
        return zero_fail(ZERO_ERR_INVALID, "a plan without steps has nothing to simulate");
    if (s->input.collectives == ZERO_ALGORITHM_MPI)
        return zero_fail(ZERO_ERR_UNSUPPORTED,
                         "--collectives mpi cannot be simulated: MPI chooses its own "
                         "messages; give p2p, shm or hier");
    if (s->input.device)
        return zero_fail(ZERO_ERR_UNSUPPORTED,
                         "--device cannot be simulated: the simulator has no link between "
                         "a device and its host; simulate without it");
    if (input->steps < 2)
        return zero_fail(ZERO_ERR_INVALID,
                         "%d steps: expected 2 or more, since the first is like no other",
                         input->steps);
    int ranks = zero_schedule_world_layout(s)->size;
    for (int k = 0; k < input->n_slow; k++) {
        const zero_slow_rank *slow = &input->slow[k];
        if (slow->rank < 0 || slow->rank >= ranks)
            return zero_fail(ZERO_ERR_INVALID, "slow rank %d of %d ranks: expected 0 to %d",
                             slow->rank, ranks, ranks - 1);
        if (!(slow->factor > 0.0) || isinf(slow->factor))
            return zero_fail(
                ZERO_ERR_INVALID,
                "slow rank %d at %g times the usual rate: expected more than 0", slow->rank,
                slow->factor);
    }
    return ZERO_OK;
}
