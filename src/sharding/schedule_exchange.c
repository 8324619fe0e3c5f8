#include "sharding/schedule_exchange.h"

#include "lists/small.h"
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

size_t zero_schedule_apart(const zero_schedule *s, zero_space space)
{
    return s->extent[space] > 0 ? s->extent[space] : ZERO_BUFFER_ALIGN;
}

static size_t between_parts(const zero_schedule *s)
{
    return zero_schedule_apart(s, ZERO_SPACE_PART);
}

zero_collective_spec zero_exchange_spec(const zero_schedule *s, zero_collective_kind kind,
                                        zero_algorithm algorithm, zero_type type,
                                        int64_t count, int unit)
{
    return (zero_collective_spec){.kind = kind,
                                  .algorithm = algorithm,
                                  .message = s->input.message,
                                  .type = type,
                                  .result = type,
                                  .count = count,
                                  .stride = count,
                                  .unit = unit};
}

/* Bytes from this rank's piece in x->in to its neighbour's. A piece that is gathered in
 * place lies in a whole group; any other lies by itself. (Bytes do not tell them apart: a
 * piece that comes from a file is padded, and may be as long as its group.) */
static size_t between_pieces(const zero_schedule *s, const zero_partition *p,
                             const zero_exchange *x)
{
    bool is_in_whole = x->in == x->out;
    size_t piece =
        is_in_whole ? (size_t)p->shard_len * zero_type_size(s->buffers[x->in].type) : 0;
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

/* Equal shards: one collective. Or the k-th owner's piece: reduced to it, broadcast from
 * it. */
static zero_collective_spec of_group(const zero_schedule *s, zero_op op, int g, int k,
                                     const zero_exchange *x)
{
    const zero_partition *p = &s->groups[g].partition;
    bool is_slice = p->scheme == ZERO_PARTITION_SLICE, reduces = op == ZERO_OP_REDUCE;
    int root = is_slice ? 0 : (int)zero_partition_owners(p).begin + k;
    int64_t count = zero_range_len(zero_partition_piece(p, root));
    zero_collective_spec spec =
        zero_exchange_spec(s, (reduces ? zero_reduce_kinds : zero_gather_kinds)[p->scheme],
                           zero_schedule_algorithm(s), s->buffers[x->in].type, count, g);
    spec.result = s->buffers[x->out].type;
    spec.root = root;
    spec.in_apart = between_wholes(s, x->in);
    spec.in_turn = is_slice;
    if (!is_slice || !reduces) spec.out_apart = between_wholes(s, x->out);
    if (!is_slice || reduces) return spec;
    spec.in_apart = between_pieces(s, p, x);
    spec.one_out = s->buffers[x->out].space == ZERO_SPACE_NODE;
    return spec;
}

/* Bytes that the algorithm itself stages, without the mirrors of a device's data: the
 * bucket bounds these alone. A direct collective has no mirrors. */
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

/* ---- ALL_REDUCE ----
 *
 * The ranks of a replica group hold the same pieces.
 *
 *     piece of group g      | part 0 | part 1 | ...    shard_len / K floats each
 *     reduce-scatter        replica r adds all replicas' part r
 *     all-gather            all replicas have all parts
 *
 * They follow the tree over replicas. A shard group's sum is a complete subtree of the tree
 * over N_d ranks, and replicas are its subtrees in order: so the bits are those of one
 * reduction among all.
 *
 * Replicas use messages even on one node: ranks of another shard group cannot read where
 * `buffer` lies. It may lie in this rank's part of the shard group's window. Neighbours
 * have read it when REDUCE_WAIT ends. They read this piece again, if at all, in a GATHER of
 * the same group, which begins after ALL_REDUCE_WAIT. */
static zero_collective_spec added_by_replicas(const zero_schedule *s, int g, int k)
{
    int64_t count = s->groups[g].partition.shard_len / s->shard.replicas;
    bool is_mpi = s->input.collectives == ZERO_ALGORITHM_MPI;
    return zero_exchange_spec(s, k == 0 ? ZERO_REDUCE_SCATTER : ZERO_ALL_GATHER,
                              is_mpi ? ZERO_ALGORITHM_MPI : ZERO_ALGORITHM_P2P, ZERO_FP32,
                              count, g);
}

/* ---- SEND, RECEIVE ----
 *
 * Both ranks have the same collective of the pipeline group, in which the others do
 * nothing. It is made of messages also on one node: stages share no window. */
static zero_collective_spec of_message(const zero_schedule *s, int number)
{
    const zero_pipe_message *m = &s->messages[number];
    zero_collective_spec spec = zero_exchange_spec(s, ZERO_BROADCAST, ZERO_ALGORITHM_P2P,
                                                   m->type, m->count, (int)m->content);
    spec.root = m->from;
    spec.only = m->to + 1;
    spec.on_device = s->input.device;
    spec.direct = s->input.device_messages;
    return spec;
}

/* ---- any exchange ---- */

const zero_layout *zero_exchange_layout(const zero_schedule *s, zero_op op)
{
    switch (zero_ops[op].among) {
    case ZERO_TP_GROUP: return zero_schedule_tp_layout(s);
    case ZERO_PIPE_GROUP: return zero_schedule_pp_layout(s);
    case ZERO_REPLICA_GROUP: return &s->replica_layout;
    default: return zero_schedule_layout(s);
    }
}

int zero_exchange_rank(const zero_schedule *s, zero_op op)
{
    switch (zero_ops[op].among) {
    case ZERO_TP_GROUP: return s->model->share.rank;
    case ZERO_PIPE_GROUP: return s->pipe.stage;
    case ZERO_REPLICA_GROUP: return s->shard.replica;
    default: return s->shard.rank;
    }
}

int zero_exchange_collectives(const zero_schedule *s, zero_op op, int number)
{
    switch (zero_ops[op].among) {
    case ZERO_TP_GROUP: return s->joins[number].kind == ZERO_JOIN_SUM ? 2 : 1;
    case ZERO_REPLICA_GROUP: return 2;
    case ZERO_PIPE_GROUP: return 1;
    default: break;
    }
    const zero_partition *p = &s->groups[number].partition;
    return p->scheme == ZERO_PARTITION_SLICE
               ? 1
               : (int)zero_range_len(zero_partition_owners(p));
}

/* True if the collectives of an exchange share their staging: those of a chain, and with
 * some algorithms a group's concurrent ones, when a rank stages only for the piece that it
 * owns. Mirrors of a device's data are needed at the same time. */
static bool is_staging_shared(const zero_schedule *s, zero_op op)
{
    return zero_ops[op].among != ZERO_SHARD_GROUP ||
           ((!s->input.device || s->input.device_messages) &&
            zero_algorithm_get(zero_schedule_algorithm(s))->stages_on_root_only);
}

zero_collective_spec zero_exchange_collective(const zero_schedule *s, zero_op op,
                                              int number, int k)
{
    const zero_family_part among = zero_ops[op].among;
    int at_once = is_staging_shared(s, op) ? 1 : zero_exchange_collectives(s, op, number);
    const zero_group_state *g = among == ZERO_SHARD_GROUP ? &s->groups[number] : NULL;
    const zero_exchange *x = !g ? NULL : op == ZERO_OP_REDUCE ? &g->reduce : &g->gather;
    zero_collective_spec spec = among == ZERO_TP_GROUP ? zero_join_collective(s, number, k)
                                : among == ZERO_PIPE_GROUP ? of_message(s, number)
                                : g                        ? of_group(s, op, number, k, x)
                                    : added_by_replicas(s, number, k);
    if (g && s->input.device) {
        /* With a device neighbours find the mirrors of `in` and of `out` in each other's
         * staging, or reach the arrays themselves: then the distance only says that they
         * can be read. Messages may reach them, too. */
        bool is_near = zero_schedule_space(s, ZERO_CLASS_BUCKETS) == ZERO_SPACE_PART;
        spec.on_device = true;
        spec.direct = s->input.ipc || s->input.device_messages;
        bool sums = zero_collective_sums(spec.kind), is_alone = s->shard.size == 1;
        spec.in_place = x->in == x->out && (is_alone || !sums);
        spec.in_apart = spec.out_apart = is_near ? between_parts(s) : 0;
    }
    zero_exchange_bound(&spec, zero_exchange_layout(s, op), s->input.bucket / at_once);
    return spec;
}

size_t zero_exchange_staging(const zero_schedule *s, zero_op op, int number, int k)
{
    int n = zero_exchange_collectives(s, op, number);
    bool shared = is_staging_shared(s, op);
    size_t sum = 0, most = 0;
    for (int i = 0; i < (shared ? n : k); i++) {
        zero_collective_spec spec = zero_exchange_collective(s, op, number, i);
        size_t bytes = zero_collective_staging(&spec, zero_exchange_layout(s, op));
        bytes = zero_round_up_size(bytes, ZERO_BUFFER_ALIGN);
        sum += bytes;
        most = zero_max_size(most, bytes);
    }
    if (shared) return k < n ? 0 : most;
    return sum;
}

/* ---- the least bucket ---- */

/* The smallest exchange needs the same staging for shards of any length and type. */
static zero_status least_of_group(const zero_schedule *s, int g, int64_t *least)
{
    zero_collective_spec spec =
        zero_exchange_spec(s, ZERO_REDUCE_SCATTER, zero_schedule_algorithm(s),
                           s->input.type, s->groups[g].partition.shard_len, g);
    spec.in_apart = ZERO_BUFFER_ALIGN;
    spec.on_device = spec.direct = s->input.ipc;
    ZERO_TRY(zero_collective_check(&spec, zero_schedule_layout(s)));
    *least = zero_exchange_least_staging(&spec, zero_schedule_layout(s));
    return ZERO_OK;
}

static int64_t least_of_replicas(const zero_schedule *s, int g)
{
    int64_t most = 0;
    for (int k = 0; s->shard.replicas > 1 && k < 2; k++) {
        zero_collective_spec spec = added_by_replicas(s, g, k);
        most = zero_max(most, zero_exchange_least_staging(&spec, &s->replica_layout));
    }
    return most;
}

zero_status zero_schedule_find_least_bucket(const zero_schedule *s, int64_t *least)
{
    int64_t most = 0;
    for (int g = 0; g < s->model->n_groups; g++) {
        int64_t of_group;
        ZERO_TRY(least_of_group(s, g, &of_group));
        most = zero_max(most, zero_max(of_group, least_of_replicas(s, g)));
    }
    *least = most;
    return ZERO_OK;
}

static zero_status check_bucket(const zero_schedule *s, int64_t least, const char *among,
                                int n, const char *whom, const char *else_)
{
    ZERO_FAIL_IF(!(s->input.bucket >= least), ZERO_ERR_INVALID,
                 "--bucket %" PRId64 " is below the %" PRId64
                 " elements that %s %d %s needs: give --bucket %" PRId64 " or more%s",
                 s->input.bucket, least, among, n, whom, least, else_);
    return ZERO_OK;
}

zero_status zero_schedule_check_exchange(const zero_schedule *s)
{
    int n_groups = s->model->n_groups;
    for (int g = 0; g < n_groups; g++) {
        int64_t least;
        ZERO_TRY(least_of_group(s, g, &least));
        ZERO_TRY(check_bucket(s, least, "an exchange among", s->shard.size, "ranks", ""));
    }
    for (int g = 0; s->shard.replicas > 1 && g < n_groups; g++) {
        zero_collective_spec spec = added_by_replicas(s, g, 0);
        ZERO_TRY(zero_collective_check(&spec, &s->replica_layout));
        ZERO_TRY(check_bucket(s, least_of_replicas(s, g), "a sum among", s->shard.replicas,
                              "replicas", ", or more --shard-ranks"));
    }
    return ZERO_OK;
}

zero_status zero_schedule_check_joins(const zero_schedule *s)
{
    for (int join = 0; join < s->n_joins; join++)
        for (int k = 0; k < zero_exchange_collectives(s, ZERO_OP_JOIN, join); k++) {
            zero_collective_spec spec = zero_join_collective(s, join, k);
            ZERO_TRY(zero_collective_check(&spec, zero_schedule_tp_layout(s)));
            int64_t least = zero_exchange_least_staging(&spec, zero_schedule_tp_layout(s));
            ZERO_TRY(check_bucket(s, least, "a JOIN of the", s->model->share.ranks,
                                  "ranks of a TP group", ""));
        }
    return ZERO_OK;
}
