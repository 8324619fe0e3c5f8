/* Microbatches are added along one tree, whichever rank computes them: the two ways in which
 * stages distribute them give the same bits at 1, 2, 4 and 8 ranks, with every algorithm that
 * adds along the tree. */
#include "support/collective_job.h"
#include "support/test_world.h"

#define MICROBATCHES 16
#define LEN          4096
#define TRIAL        5

static uint64_t hash(const void *data, size_t bytes)
{
    const unsigned char *p = data;
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < bytes; i++) h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

static uint64_t hash_of_the_tree(zero_type type)
{
    float sum[LEN];
    for (int64_t i = 0; i < LEN; i++)
        oracle_store(type, sum, i, oracle_sum(type, TRIAL, 0, MICROBATCHES, i));
    return hash(sum, LEN * zero_type_size(type));
}

/* ---- a binary counter of partial sums ---- */

typedef struct {
    int n; /* arrays so far; bit k: level[k] holds the sum of 2^k of them */
    int64_t len;
    float level[5][LEN];
} counter;

static void count(counter *c, const float *x)
{
    float carry[LEN];
    int k = 0;
    memcpy(carry, x, (size_t)c->len * sizeof *x);
    for (; c->n >> k & 1; k++)
        for (int64_t i = 0; i < c->len; i++) carry[i] += c->level[k][i];
    memcpy(c->level[k], carry, (size_t)c->len * sizeof *x);
    c->n++;
}

/* The sum of 2^k arrays. */
static const float *total(const counter *c)
{
    int k = 0;
    while (c->n >> k > 1) k++;
    return c->level[k];
}

/* ---- the two ways ---- */

typedef struct {
    field f;
    zero_algorithm algorithm;
    zero_type type; /* of a microbatch's gradient, and of the result */
} set_of_ranks;

static void run(set_of_ranks *s, zero_collective_kind kind, zero_type type,
                zero_type result, const void *in, void *out)
{
    int64_t shard = LEN / s->f.comm.size;
    zero_collective_spec spec = {.kind = kind,
                                 .algorithm = s->algorithm,
                                 .type = type,
                                 .result = result,
                                 .count = shard,
                                 .stride = shard,
                                 .max_chunk = 700,
                                 .unit = ZERO_NO_UNIT};
    job j = job_init(&s->f, spec, TRIAL, false, 0);
    memcpy(j.in, in, (size_t)job_in_len(&j) * zero_type_size(type));
    job_begin(&j);
    assert_ok(zero_collective_wait(&j.op));
    memcpy(out, j.out, (size_t)job_out_len(&j) * zero_type_size(result));
    job_destroy(&j);
}

static uint64_t hash_of_shards(set_of_ranks *s, const float *shard)
{
    float rounded[LEN], all[LEN];
    for (int64_t i = 0; i < LEN / s->f.comm.size; i++)
        oracle_store(s->type, rounded, i, shard[i]);
    run(s, ZERO_ALL_GATHER, s->type, s->type, rounded, all);
    return hash(all, LEN * zero_type_size(s->type));
}

/* Stages 0 and 1: a rank adds its neighbouring microbatches and reduces once. */
static uint64_t reduce_once(set_of_ranks *s)
{
    counter c = {.len = LEN};
    float x[LEN], shard[LEN];
    int each = MICROBATCHES / s->f.comm.size;
    for (int t = 0; t < each; t++) {
        for (int64_t i = 0; i < LEN; i++)
            x[i] = oracle_leaf(s->type, TRIAL, s->f.comm.rank * each + t, i);
        count(&c, x);
    }
    run(s, ZERO_REDUCE_SCATTER, ZERO_FP32, ZERO_FP32, total(&c), shard);
    return hash_of_shards(s, shard);
}

/* Stages 2 and 3: neighbouring ranks compute neighbouring microbatches, reduce each, and add up
 * shards of the sums. */
static uint64_t reduce_each(set_of_ranks *s)
{
    int p = s->f.comm.size;
    counter c = {.len = LEN / p};
    float x[LEN], shard[LEN];
    for (int t = 0; t < MICROBATCHES / p; t++) {
        for (int64_t i = 0; i < LEN; i++)
            oracle_store(s->type, x, i,
                         oracle_leaf(s->type, TRIAL, t * p + s->f.comm.rank, i));
        run(s, ZERO_REDUCE_SCATTER, s->type, ZERO_FP32, x, shard);
        count(&c, shard);
    }
    return hash_of_shards(s, total(&c));
}

/* ---- over world sizes and algorithms ---- */

/* The first p ranks, `local` on each node; a group of size 0 on all other ranks. */
static zero_comm first_ranks(int p, int local)
{
    int ids[8];
    zero_comm comm;
    assert_ok(zero_comm_split(&world, test_rank < p ? 0 : -1, 0, &comm));
    for (int r = 0; r < p; r++) ids[r] = r / local;
    if (test_rank < p) assert_ok(zero_comm_pretend_nodes(&comm, ids));
    return comm;
}

static bool agrees(zero_algorithm algorithm, int p, int local)
{
    bool right = true;
    set_of_ranks s = {.algorithm = algorithm};
    zero_comm comm = first_ranks(p, local);
    if (comm.size == 0) return true;
    s.f = field_open(comm, LEN * sizeof(float));
    for (int type = ZERO_FP32; type <= ZERO_FP16; type++) {
        s.type = (zero_type)type;
        uint64_t tree = hash_of_the_tree(s.type), once = reduce_once(&s);
        uint64_t each = reduce_each(&s);
        if (test_rank == 0)
            print_message("%s, %s, %d ranks, %d on a node: %016" PRIx64 " %016" PRIx64 "\n",
                          zero_algorithm_name(algorithm), zero_type_name(s.type), p, local,
                          once, each);
        right = right && once == tree && each == tree;
    }
    field_close(&s.f);
    return right;
}

TEST(both_ways_and_all_world_sizes_give_one_hash)
{
    for (int p = 1; p <= test_size; p *= 2) {
        assert_all(agrees(ZERO_ALGORITHM_P2P, p, 1));
        assert_all(agrees(ZERO_ALGORITHM_SHM, p, p));
        for (int local = 1; local <= p; local *= 2)
            assert_all(agrees(ZERO_ALGORITHM_HIER, p, local));
    }
}
