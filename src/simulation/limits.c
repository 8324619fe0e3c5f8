#include "simulation/limits.h"

#include "base/fail.h"
#include "lists/algorithm.h"
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
    int64_t n[ZERO_PACKED_AWAIT + 1] = {0};
    for (int64_t i = 0; i < list.n; i++) n[list.steps[i].kind] += times;
    *size = (list_size){.sent = n[ZERO_PACKED_SEND],
                        .received = n[ZERO_PACKED_RECEIVE],
                        .read = n[ZERO_PACKED_READ] + n[ZERO_PACKED_LEND],
                        .bytes = times * list.n * (int64_t)sizeof *list.steps};
    zero_packed_list_destroy(&list);
    return ZERO_OK;
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
    int chain = spec->algorithm == ZERO_ALGORITHM_HIER ? layout->n_nodes : layout->size;
    if (spec->kind == ZERO_REDUCE) /* all messages end at the root */
        *messages = first.received;
    else if (spec->kind == ZERO_BROADCAST) /* a chain over ranks, or over nodes */
        *messages = first.sent * (spec->only > 0 ? 1 : chain - 1);
    else
        *messages = layout->size * zero_max(first.sent, second.sent);
    *messages += layout->size * zero_max(first.read, second.read);
    *bytes = has_root ? first.bytes + written * second.bytes
                      : written * zero_max(first.bytes, second.bytes);
    *bytes += layout->size * (int64_t)sizeof(int32_t);
    *bytes += WRITTEN_BYTES * zero_max(first.bytes, second.bytes); /* one being packed */
    return ZERO_OK;
}

/* ---- all ---- */

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
    int i = 0, n = (int)zero_min(e->n, KNOWN);
    while (i < n && memcmp(&e->known[i].spec, &same, sizeof same) != 0) i++;
    if (i == n) {
        i = e->n++ % KNOWN;
        ZERO_TRY(zero_exchange_estimate(spec, layout, &e->known[i].messages,
                                        &e->known[i].bytes));
        e->known[i].spec = same;
    }
    *messages = e->known[i].messages;
    *bytes = e->known[i].bytes;
    return ZERO_OK;
}

zero_status zero_simulation_cost_of(const zero_actions *stages, const zero_groups *g,
                                    int steps, zero_simulation_cost *cost)
{
    zero_simulation_cost sum = {.bytes = g->ranks * (int64_t)IN_FLIGHT};
    for (int at = 0; at < stages->n; at++) {
        const zero_action *i = &stages->list[at];
        int groups = i->gathers ? g->gathering : 1;
        sum.messages +=
            i->n_agreements * groups * zero_agreement_messages(g->ranks / groups);
    }
    for (int64_t l = 0; l < g->n_layouts; l++) {
        const zero_group_layout *of = &g->layouts[l];
        const zero_actions *a = &stages[of->stage];
        estimates known = {.n = 0};
        for (int64_t k = 0; k < a->n_specs; k++) {
            const zero_action_spec *s = &a->specs[k];
            int64_t messages, bytes;
            if (s->lane != of->lane) continue;
            ZERO_TRY(estimate(&known, &s->spec, &of->layout, &messages, &bytes));
            sum.messages =
                plus(sum.messages, times(messages, times(of->n_groups, s->begins)));
            sum.bytes = plus(sum.bytes, bytes);
        }
    }
    sum.messages = times(sum.messages, steps);
    *cost = sum;
    return ZERO_OK;
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
