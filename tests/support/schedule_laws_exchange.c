/* The specs of collectives, against the buffers that instructions name. */
#include "lists/algorithm.h"
#include "support/schedule_laws.h"

/* ---- form ---- */

static void check_same_form(const zero_schedule *s, int a, int b)
{
    const zero_buffer *x = &s->buffers[a], *y = &s->buffers[b];
    assert_true(x->space == y->space && x->type == y->type);
    assert_true(x->bytes == y->bytes && x->begin == y->begin);
}

static size_t aligned(size_t bytes)
{
    return (bytes + ZERO_BUFFER_ALIGN - 1) / ZERO_BUFFER_ALIGN * ZERO_BUFFER_ALIGN;
}

/* The staging of an instruction's collectives: of all, or of those in which this rank adds. */
static void check_staging(const zero_schedule *s, const zero_instruction *i)
{
    const zero_algorithm_table *algorithm = zero_algorithm_get(s->input.collectives);
    size_t need = 0;
    for (int k = 0; k < zero_exchange_collectives(s, i->op, i->group); k++) {
        zero_collective_spec spec = zero_exchange_collective(s, i->op, i->group, k);
        size_t bucket = (size_t)s->input.bucket * zero_type_size(spec.type);
        zero_collective_spec own = spec; /* the bucket does not bound mirrors */
        own.on_device = own.in_place = false;
        size_t bytes = zero_collective_staging(&spec, zero_schedule_layout(s));
        if (algorithm->bounds_staging)
            assert_true(zero_collective_staging(&own, zero_schedule_layout(s)) <= bucket);
        bool adds = spec.kind != ZERO_REDUCE || spec.root == s->input.rank;
        if (algorithm->stages_on_root_only && !adds && !s->input.device) continue;
        assert_true(zero_exchange_staging(s, i->op, i->group, k) >= need);
        need = zero_exchange_staging(s, i->op, i->group, k) + aligned(bytes);
    }
    if (need > 0) assert_true(i->staging != ZERO_NO_BUFFER);
    if (need > 0) assert_true(s->buffers[i->staging].bytes >= need);
}

static void check_instruction(const zero_schedule *s, const zero_instruction *i)
{
    const zero_group_state *state = &s->groups[i->group];
    const zero_exchange *x = i->op == ZERO_OP_REDUCE ? &state->reduce : &state->gather;
    if (i->op != ZERO_OP_REDUCE && i->op != ZERO_OP_GATHER) return;
    assert_true(x->is_used);
    check_same_form(s, x->in, i->in);
    check_same_form(s, x->out, i->buffer);
    check_staging(s, i);
}

static void check_instructions(const zero_schedule *s)
{
    for (int kind = 0; kind < ZERO_PROGRAMS; kind++)
        for (int at = 0; at < s->programs[kind].length; at++)
            check_instruction(s, &s->programs[kind].code[at]);
}

/* ---- what moves ---- */

static void check_piece(const schedule_job *job, int rank, zero_op op, int g, int k,
                        const zero_exchange *x)
{
    const zero_schedule *s = &job->s[rank];
    const zero_partition *p = &s->groups[g].partition;
    zero_collective_spec spec = zero_exchange_collective(s, op, g, k);
    bool slice = p->scheme == ZERO_PARTITION_SLICE, reduces = op == ZERO_OP_REDUCE;
    int owner = (int)zero_partition_owners(p).begin + k;
    assert_int_equal(spec.kind, slice     ? reduces ? ZERO_REDUCE_SCATTER : ZERO_ALL_GATHER
                                : reduces ? ZERO_REDUCE
                                          : ZERO_BROADCAST);
    assert_true(spec.type == s->buffers[x->in].type);
    assert_true(spec.result == s->buffers[x->out].type);
    assert_true(spec.count ==
                (slice ? p->shard_len : zero_range_len(zero_partition_piece(p, owner))));
    assert_true(spec.stride == spec.count);
    if (!slice) assert_int_equal(spec.root, owner);
    assert_int_equal(spec.on_device, s->input.device);
    assert_int_equal(spec.in_turn, slice);
    assert_ok(zero_collective_check(&spec, zero_schedule_layout(s)));
}

/* ---- where neighbours look ---- */

/* The distance of an element in a rank's buffer from the start of the node's window. */
static int64_t address(const schedule_job *job, int rank, int buffer, int64_t element)
{
    const zero_schedule *s = &job->s[rank];
    const zero_buffer *b = &s->buffers[buffer];
    size_t part = b->space == ZERO_SPACE_PART ? s->extent[ZERO_SPACE_PART] : 0;
    int local = zero_schedule_layout(s)->local_of[rank % job_shard_ranks(job)];
    return (int64_t)part * local + (int64_t)b->offset +
           (element - b->begin) * (int64_t)zero_type_size(b->type);
}

static int64_t begin_of(const schedule_job *job, int rank, int g)
{
    int own = rank % job_shard_ranks(job);
    return zero_partition_piece(&job->s[rank].groups[g].partition, own).begin;
}

static const zero_exchange *exchange_of(const schedule_job *job, int rank, zero_op op,
                                        int g)
{
    const zero_group_state *state = &job->s[rank].groups[g];
    return op == ZERO_OP_REDUCE ? &state->reduce : &state->gather;
}

/* The next rank's `in` is where the collective looks for it. */
static void check_in(const schedule_job *job, int rank, zero_op op, int g,
                     const zero_collective_spec *spec)
{
    int in = exchange_of(job, rank, op, g)->in;
    int next = exchange_of(job, rank + 1, op, g)->in;
    bool pieces = spec->kind == ZERO_ALL_GATHER;
    int64_t here = pieces ? begin_of(job, rank, g) : 0;
    int64_t there = pieces ? begin_of(job, rank + 1, g) : 0;
    assert_true(job->s[rank].buffers[in].space != ZERO_SPACE_OWN);
    assert_true((int64_t)spec->in_apart ==
                address(job, rank + 1, next, there) - address(job, rank, in, here));
}

static void check_out(const schedule_job *job, int rank, zero_op op, int g,
                      const zero_collective_spec *spec)
{
    int out = exchange_of(job, rank, op, g)->out;
    int next = exchange_of(job, rank + 1, op, g)->out;
    assert_true(job->s[rank].buffers[out].space != ZERO_SPACE_OWN);
    assert_true(spec->one_out == (job->s[rank].buffers[out].space == ZERO_SPACE_NODE));
    if (spec->one_out) return;
    assert_true((int64_t)spec->out_apart ==
                address(job, rank + 1, next, 0) - address(job, rank, out, 0));
}

/* Mirrors lie in staging, in each rank's part. */
static void check_mirrors(const schedule_job *job, int rank,
                          const zero_collective_spec *spec)
{
    size_t part = job->s[rank].extent[ZERO_SPACE_PART];
    assert_true(spec->in_apart == spec->out_apart && !spec->one_out);
    assert_true(spec->in_apart == (part > 0 ? part : ZERO_BUFFER_ALIGN));
}

static void check_neighbour(const schedule_job *job, int rank, zero_op op, int g, int k)
{
    const zero_layout *layout = &job->layout;
    zero_collective_spec spec = zero_exchange_collective(&job->s[rank], op, g, k);
    bool shares =
        zero_algorithm_needs_window(spec.algorithm, zero_schedule_layout(&job->s[rank]));
    bool has_next = (rank + 1) % job_shard_ranks(job) > 0 &&
                    layout->node_of[rank] == layout->node_of[rank + 1];
    if (!shares || !has_next || spec.count == 0) return;
    if (spec.on_device) {
        check_mirrors(job, rank, &spec);
        return;
    }
    bool hier = spec.algorithm == ZERO_ALGORITHM_HIER,
         gathers = spec.kind == ZERO_ALL_GATHER;
    if (spec.kind != ZERO_BROADCAST) check_in(job, rank, op, g, &spec);
    if (spec.kind == ZERO_BROADCAST || (hier && gathers))
        check_out(job, rank, op, g, &spec);
}

static void check_exchange(const schedule_job *job, zero_op op, int g)
{
    for (int r = 0; r < job->n_ranks; r++) {
        const zero_exchange *x = exchange_of(job, r, op, g);
        int n = x->is_used ? zero_exchange_collectives(&job->s[r], op, g) : 0;
        for (int k = 0; k < n; k++) {
            check_piece(job, r, op, g, k, x);
            check_neighbour(job, r, op, g, k);
        }
    }
}

/* ---- among replicas ---- */

/* Each replica adds as much of the piece, in fp32 by messages, with the bucket's staging. */
static void check_all_reduce(const zero_schedule *s, const zero_instruction *i, int K)
{
    const zero_exchange *x = &s->groups[i->group].all_reduce;
    int64_t shard = s->groups[i->group].partition.shard_len;
    assert_true(x->is_used && i->in == i->buffer);
    check_same_form(s, x->out, i->buffer);
    assert_true(s->buffers[i->buffer].type == ZERO_FP32);
    for (int k = 0; k < zero_exchange_collectives(s, i->op, i->group); k++) {
        zero_collective_spec spec = zero_exchange_collective(s, i->op, i->group, k);
        size_t bytes = zero_collective_staging(&spec, &s->replica_layout);
        assert_int_equal(spec.kind, k == 0 ? ZERO_REDUCE_SCATTER : ZERO_ALL_GATHER);
        assert_int_equal(spec.algorithm, s->input.collectives == ZERO_ALGORITHM_MPI
                                             ? ZERO_ALGORITHM_MPI
                                             : ZERO_ALGORITHM_P2P);
        assert_true(spec.type == ZERO_FP32 && spec.result == ZERO_FP32);
        assert_true(spec.count * K == shard && spec.count % ZERO_SHARD_GRANULE == 0);
        assert_true(spec.stride == spec.count);
        assert_ok(zero_collective_check(&spec, &s->replica_layout));
        if (spec.algorithm == ZERO_ALGORITHM_P2P)
            assert_true(bytes <= (size_t)s->input.bucket * sizeof(float));
        if (bytes > 0) assert_true(s->buffers[i->staging].bytes >= bytes);
    }
}

/* The replica groups of a job, by rank, are those of the definition. */
static void check_replicas(const schedule_job *job, int rank)
{
    const zero_schedule *s = &job->s[rank];
    const zero_layout *replicas = &s->replica_layout, *shard = zero_schedule_layout(s);
    int R = job_shard_ranks(job), K = job->n_ranks / R, k = rank / R, j = rank % R;
    assert_int_equal(shard->size, R);
    for (int a = 0; a < R; a++)
        for (int b = 0; b < R; b++)
            assert_int_equal(shard->node_of[a] == shard->node_of[b],
                             job->layout.node_of[k * R + a] ==
                                 job->layout.node_of[k * R + b]);
    assert_int_equal(replicas->size, K);
    for (int a = 0; a < K; a++)
        for (int b = 0; b < K; b++)
            assert_int_equal(replicas->node_of[a] == replicas->node_of[b],
                             job->layout.node_of[a * R + j] ==
                                 job->layout.node_of[b * R + j]);
    for (int kind = 0; kind < ZERO_PROGRAMS; kind++)
        for (int at = 0; at < s->programs[kind].length; at++)
            if (s->programs[kind].code[at].op == ZERO_OP_ALL_REDUCE)
                check_all_reduce(s, &s->programs[kind].code[at], K);
}

void laws_check_exchanges(const schedule_job *job)
{
    bool has_replicas = job_shard_ranks(job) < job->n_ranks;
    for (int r = 0; r < job->n_ranks && has_replicas; r++) check_replicas(job, r);
    for (int r = 0; r < job->n_ranks; r++) check_instructions(&job->s[r]);
    for (int g = 0; g < job->s[0].input.model->n_groups; g++) {
        check_exchange(job, ZERO_OP_REDUCE, g);
        check_exchange(job, ZERO_OP_GATHER, g);
    }
}
