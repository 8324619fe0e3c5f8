#include "sharding/schedule_exchange.h"

#include <inttypes.h>

#include "base/exact.h"
#include "base/fail.h"
#include "base/number.h"
#include "base/tree.h"
#include "lists/small.h"
#include "nn/share.h"
#include "sharding/schedule_device.h"

const zero_collective_kind zero_reduce_kinds[ZERO_PARTITION_SCHEMES] = {
    [ZERO_PARTITION_SLICE] = ZERO_REDUCE_SCATTER,
    [ZERO_PARTITION_OWNER] = ZERO_REDUCE,
};
const zero_collective_kind zero_gather_kinds[ZERO_PARTITION_SCHEMES] = {
    [ZERO_PARTITION_SLICE] = ZERO_ALL_GATHER,
    [ZERO_PARTITION_OWNER] = ZERO_BROADCAST,
};

bool zero_schedule_shares(const zero_schedule *s)
{
    return !s->input.device &&
           zero_algorithm_needs_window(s->input.collectives, zero_schedule_layout(s));
}

zero_algorithm zero_schedule_algorithm(const zero_schedule *s)
{
    bool is_one_node = zero_schedule_layout(s)->n_nodes == 1;
    bool is_hier = s->input.collectives == ZERO_ALGORITHM_HIER;
    return s->shard.replicas > 1 && is_hier && is_one_node ? ZERO_ALGORITHM_SHM
                                                           : s->input.collectives;
}

/* Bytes from a rank's part of the window to its neighbour's. Before memory is laid out, any
 * distance other than 0 will do. */
static size_t between_parts(const zero_schedule *s)
{
    size_t parts = s->extent[ZERO_SPACE_PART];
    return parts > 0 ? parts : ZERO_BUFFER_ALIGN;
}

static size_t bytes_of(const zero_schedule *s, int buffer, int64_t n)
{
    return (size_t)n * zero_type_size(s->buffers[buffer].type);
}

/* Bytes from this rank's piece in x->in to its neighbour's. A piece that is gathered in place lies
 * in a whole group; any other lies by itself. (Bytes do not tell them apart: a piece that comes from
 * a file is padded, and may be as long as its group.) */
static size_t between_pieces(const zero_schedule *s, const zero_partition *p,
                             const zero_exchange *x)
{
    bool is_in_whole = x->in == x->out;
    size_t piece = is_in_whole ? bytes_of(s, x->in, p->shard_len) : 0;
    switch (s->buffers[x->in].space) {
    case ZERO_SPACE_PART: return between_parts(s) + piece;
    case ZERO_SPACE_NODE: return piece;
    default: return 0;
    }
}

static size_t between_wholes(const zero_schedule *s, int buffer)
{
    return s->buffers[buffer].space == ZERO_SPACE_PART ? between_parts(s) : 0;
}

/* Equal shards: one collective. */
static zero_collective_spec sliced(const zero_schedule *s, zero_op op, int g,
                                   const zero_exchange *x)
{
    const zero_partition *p = &s->groups[g].partition;
    zero_collective_spec spec = {.kind = zero_reduce_kinds[p->scheme],
                                 .algorithm = zero_schedule_algorithm(s),
                                 .message = s->input.message,
                                 .type = s->buffers[x->in].type,
                                 .result = s->buffers[x->out].type,
                                 .count = p->shard_len,
                                 .stride = p->shard_len,
                                 .in_apart = between_wholes(s, x->in),
                                 .in_turn = true,
                                 .unit = g};
    if (op == ZERO_OP_REDUCE) return spec;
    spec.kind = zero_gather_kinds[p->scheme];
    spec.in_apart = between_pieces(s, p, x);
    spec.out_apart = between_wholes(s, x->out);
    spec.one_out = s->buffers[x->out].space == ZERO_SPACE_NODE;
    return spec;
}

/* The k-th owner's piece: reduced to it, broadcast from it. */
static zero_collective_spec owned(const zero_schedule *s, zero_op op, int g, int k,
                                  const zero_exchange *x)
{
    const zero_partition *p = &s->groups[g].partition;
    int root = (int)zero_partition_owners(p).begin + k;
    int64_t count = zero_range_len(zero_partition_piece(p, root));
    return (zero_collective_spec){.kind = op == ZERO_OP_REDUCE
                                              ? zero_reduce_kinds[p->scheme]
                                              : zero_gather_kinds[p->scheme],
                                  .algorithm = zero_schedule_algorithm(s),
                                  .message = s->input.message,
                                  .type = s->buffers[x->in].type,
                                  .result = s->buffers[x->out].type,
                                  .count = count,
                                  .stride = count,
                                  .root = root,
                                  .in_apart = between_wholes(s, x->in),
                                  .out_apart = between_wholes(s, x->out),
                                  .unit = g};
}

/* With a device neighbours find the mirrors of `in` and of `out` in each other's staging, or reach the
 * arrays themselves: then the distance only says that they can be read. Messages may reach them, too. */
static void put_on_device(const zero_schedule *s, const zero_exchange *x,
                          zero_collective_spec *spec)
{
    bool is_near = zero_schedule_space(s, ZERO_CLASS_BUCKETS) == ZERO_SPACE_PART;
    spec->on_device = true;
    spec->direct = s->input.ipc || s->input.device_messages;
    bool sums = zero_collective_sums(spec->kind), is_alone = s->shard.size == 1;
    spec->in_place = x->in == x->out && (is_alone || !sums);
    spec->in_apart = spec->out_apart = is_near ? between_parts(s) : 0;
}

/* Bytes that the algorithm itself stages, without the mirrors of a device's data: the bucket bounds
 * these alone. A direct collective has no mirrors. */
static size_t own_staging(zero_collective_spec spec, const zero_layout *layout)
{
    if (!spec.direct) spec.on_device = spec.in_place = false;
    return zero_collective_staging(&spec, layout);
}

int64_t zero_exchange_least_staging(const zero_collective_spec *spec,
                                    const zero_layout *layout)
{
    zero_collective_spec smallest = *spec;
    if (!zero_algorithm_get(spec->algorithm)->bounds_staging) return 0;
    smallest.max_chunk = ZERO_SHARD_GRANULE;
    return (int64_t)(own_staging(smallest, layout) / zero_type_size(spec->type));
}

/* Staging grows with the chunk: bucket / least smallest chunks fill the bucket. */
void zero_exchange_bound(zero_collective_spec *spec, const zero_layout *layout,
                         int64_t bucket)
{
    if (!zero_algorithm_get(spec->algorithm)->bounds_staging) return;
    size_t staging = own_staging(*spec, layout);
    int64_t least = staging > 0 ? zero_exchange_least_staging(spec, layout) : 0;
    int64_t most = zero_max(bucket, least);
    if (staging > (size_t)most * zero_type_size(spec->type))
        spec->max_chunk = most / least * ZERO_SHARD_GRANULE;
}

int zero_schedule_collectives(const zero_schedule *s, int g)
{
    const zero_partition *p = &s->groups[g].partition;
    if (p->scheme == ZERO_PARTITION_SLICE) return 1;
    return (int)zero_range_len(zero_partition_owners(p));
}

/* True if a group's concurrent collectives share their staging: then a rank stages only for the
 * piece that it owns. Mirrors of a device's data are needed at the same time. */
static bool is_staging_shared(const zero_schedule *s)
{
    return (!s->input.device || s->input.device_messages) &&
           zero_algorithm_get(zero_schedule_algorithm(s))->stages_on_root_only;
}

/* Elements that one of the group's collectives may stage. */
static int64_t share_of_bucket(const zero_schedule *s, int g)
{
    return s->input.bucket / (is_staging_shared(s) ? 1 : zero_schedule_collectives(s, g));
}

zero_collective_spec zero_schedule_collective(const zero_schedule *s, zero_op op, int g,
                                              int k)
{
    const zero_group_state *state = &s->groups[g];
    const zero_exchange *x = op == ZERO_OP_REDUCE ? &state->reduce : &state->gather;
    zero_collective_spec spec = state->partition.scheme == ZERO_PARTITION_SLICE
                                    ? sliced(s, op, g, x)
                                    : owned(s, op, g, k, x);
    if (s->input.device) put_on_device(s, x, &spec);
    zero_exchange_bound(&spec, zero_schedule_layout(s), share_of_bucket(s, g));
    return spec;
}

size_t zero_schedule_staging(const zero_schedule *s, zero_op op, int g, int k)
{
    int n = zero_schedule_collectives(s, g);
    bool shared = is_staging_shared(s);
    size_t sum = 0, most = 0;
    for (int i = 0; i < (shared ? n : k); i++) {
        zero_collective_spec spec = zero_schedule_collective(s, op, g, i);
        size_t bytes = zero_collective_staging(&spec, zero_schedule_layout(s));
        bytes = zero_round_up_size(bytes, ZERO_BUFFER_ALIGN);
        sum += bytes;
        most = zero_max_size(most, bytes);
    }
    if (shared) return k < n ? 0 : most;
    return sum;
}

/* The smallest exchange needs the same staging for shards of any length and type. */
static zero_status least_of_group(const zero_schedule *s, int g, int64_t *least)
{
    int64_t count = s->groups[g].partition.shard_len;
    zero_collective_spec spec = {.kind = ZERO_REDUCE_SCATTER,
                                 .algorithm = zero_schedule_algorithm(s),
                                 .message = s->input.message,
                                 .type = s->input.type,
                                 .result = s->input.type,
                                 .count = count,
                                 .stride = count,
                                 .in_apart = ZERO_BUFFER_ALIGN,
                                 .on_device = s->input.ipc,
                                 .direct = s->input.ipc,
                                 .unit = g};
    ZERO_TRY(zero_collective_check(&spec, zero_schedule_layout(s)));
    *least = zero_exchange_least_staging(&spec, zero_schedule_layout(s));
    return ZERO_OK;
}

zero_status zero_schedule_find_least_bucket(const zero_schedule *s, int64_t *least)
{
    int64_t most = 0;
    for (int g = 0; g < s->input.model->n_groups; g++) {
        int64_t of_group;
        ZERO_TRY(least_of_group(s, g, &of_group));
        most = zero_max(most, of_group);
        for (int k = 0; s->shard.replicas > 1 && k < ZERO_ALL_REDUCE_COLLECTIVES; k++)
            most = zero_max(most, zero_schedule_least_all_reduce(s, g, k));
    }
    *least = most;
    return ZERO_OK;
}

zero_status zero_schedule_check_exchange(const zero_schedule *s)
{
    for (int g = 0; g < s->input.model->n_groups; g++) {
        int64_t least;
        ZERO_TRY(least_of_group(s, g, &least));
        if (s->input.bucket < least)
            return zero_fail(ZERO_ERR_INVALID,
                             "--bucket %" PRId64 " is below the %" PRId64
                             " elements that an exchange among %d ranks needs: give "
                             "--bucket %" PRId64 " or more",
                             s->input.bucket, least, s->shard.size, least);
    }
    return zero_schedule_check_all_reduce(s);
}

/* ---- traffic ---- */

static zero_status count_of(const zero_schedule *s, zero_op op, int g,
                            zero_traffic_memo *memo, zero_traffic *traffic)
{
    *traffic = (zero_traffic){0};
    for (int k = 0; k < zero_schedule_collectives(s, g); k++) {
        zero_collective_spec spec = zero_schedule_collective(s, op, g, k);
        zero_traffic one;
        ZERO_TRY(zero_collective_traffic_again(memo, &spec, zero_schedule_layout(s),
                                               s->shard.rank, &one));
        zero_traffic_add(traffic, 1, &one);
    }
    return ZERO_OK;
}

zero_status zero_schedule_count_traffic(zero_schedule *s)
{
    zero_traffic_memo reduced = {0}, gathered = {0};
    for (int g = 0; g < s->input.model->n_groups; g++) {
        zero_group_state *state = &s->groups[g];
        if (state->reduce.is_used)
            ZERO_TRY(count_of(s, ZERO_OP_REDUCE, g, &reduced, &state->reduce.traffic));
        if (state->gather.is_used)
            ZERO_TRY(count_of(s, ZERO_OP_GATHER, g, &gathered, &state->gather.traffic));
    }
    ZERO_TRY(zero_schedule_count_all_reduces(s));
    return zero_schedule_count_joins(s);
}

zero_traffic zero_instruction_traffic(const zero_schedule *s, const zero_instruction *i)
{
    if (i->op == ZERO_OP_REDUCE) return s->groups[i->group].reduce.traffic;
    if (i->op == ZERO_OP_ALL_REDUCE) return s->groups[i->group].all_reduce.traffic;
    if (i->op == ZERO_OP_GATHER) return s->groups[i->group].gather.traffic;
    if (i->op == ZERO_OP_JOIN || i->op == ZERO_OP_COLLECT) return s->joins[i->join].traffic;
    return (zero_traffic){0};
}

zero_traffic zero_schedule_traffic(const zero_schedule *s, zero_program_kind program,
                                   zero_op op)
{
    const zero_program *p = &s->programs[program];
    zero_traffic sum = {0};
    for (int at = 0; at < p->length; at++) {
        zero_traffic one = zero_instruction_traffic(s, &p->code[at]);
        if (p->code[at].op == op) zero_traffic_add(&sum, 1, &one);
    }
    return sum;
}

/* ---- small messages ---- */

/* The squares of all ranks: a sum of whole numbers, or the spans of all groups. */
static void add_squares(const zero_schedule *s, zero_traffic *t)
{
    const zero_model *model = s->input.model;
    const zero_layout *world = zero_schedule_world_layout(s);
    int rank = zero_schedule_world_rank(s);
    if (zero_share_has_parts(&model->share))
        zero_small_add_reduced(t, world, rank, ZERO_EXACT_WORDS, sizeof(int64_t));
    else
        zero_small_add_merged(t, world, rank, model->n_groups, sizeof(zero_tree_span));
    zero_small_add_reduced(t, world, rank, ZERO_VOTE_WORDS, sizeof(int64_t));
}

/* Sent by engine/run_update.c. LOSS gathers a loss per microbatch in the
 * ZeRO group, as the ranks of a TP group have the same. All ranks of the world add the
 * squares, vote in OVERFLOW, and tell two words each in VERIFY. COMPARE is not part of
 * every step: zero_schedule_compare_traffic(). */
static void add_control(const zero_schedule *s, const zero_instruction *i, zero_traffic *t)
{
    const zero_layout *world = zero_schedule_world_layout(s);
    if (i->op == ZERO_OP_LOSS)
        zero_small_add_exchange(t, zero_schedule_data_layout(s), s->input.rank,
                                (i->microbatch + 1) * (int64_t)sizeof(double));
    if (i->op == ZERO_OP_VERIFY)
        zero_small_add_reduced(t, world, zero_schedule_world_rank(s),
                               2 * (int64_t)world->size, sizeof(uint64_t));
    if (i->op == ZERO_OP_OVERFLOW) add_squares(s, t);
}

zero_traffic zero_schedule_control_traffic(const zero_schedule *s,
                                           zero_program_kind program)
{
    const zero_program *p = &s->programs[program];
    zero_traffic sum = {0};
    for (int at = 0; at < p->length; at++) add_control(s, &p->code[at], &sum);
    return sum;
}
