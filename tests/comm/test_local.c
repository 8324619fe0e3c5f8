/* Ranks that are threads of one process: collectives along the tree, small messages, families, and
 * the end of a rank that fails. */

#include <pthread.h>

#include "support/test.h"

#include "base/fail.h"
#include "comm/collective.h"
#include "comm/comm.h"
#include "comm/divide.h"
#include "comm/local.h"
#include "support/tree_oracle.h"

enum { MOST = 8, COUNT = 200, STRIDE = 256 };

typedef struct rank rank;
typedef bool work(rank *r);

/* Asserts of CMocka work on the main thread alone, so each rank says whether all was right. */
struct rank {
    zero_comm comm;
    work *does;
    bool was_right;
    pthread_t thread;
    zero_collective_spec spec;
    char text[256];
};

static void *live(void *arg)
{
    rank *r = arg;
    r->was_right = r->does(r);
    return NULL;
}

static void on_ranks(int n, const zero_collective_spec *spec, work *does)
{
    rank ranks[MOST] = {0};
    zero_comm comms[MOST];
    assert_ok(zero_local_open(n, comms));
    for (int k = 0; k < n; k++) {
        ranks[k] = (rank){.comm = comms[k], .does = does};
        if (spec) ranks[k].spec = *spec;
        assert_int_equal(pthread_create(&ranks[k].thread, NULL, live, &ranks[k]), 0);
    }
    for (int k = 0; k < n; k++) pthread_join(ranks[k].thread, NULL);
    for (int k = 0; k < n; k++) zero_comm_destroy(&ranks[k].comm);
    for (int k = 0; k < n; k++)
        if (!ranks[k].was_right) fail_msg("rank %d of %d: %s", k, n, ranks[k].text);
}

/* ---- collectives ---- */

static bool run(zero_comm *comm, const zero_collective_spec *spec, const float *in,
                float *out)
{
    zero_collective op;
    if (zero_collective_init(&op, comm, spec) != ZERO_OK) return false;
    size_t bytes = zero_collective_staging(spec, &comm->layout);
    char *staging = aligned_alloc(64, bytes + 64 - bytes % 64);
    bool ok = zero_collective_begin(&op, in, out, staging) == ZERO_OK &&
              zero_collective_wait(&op) == ZERO_OK;
    zero_collective_destroy(&op);
    free(staging);
    return ok;
}

static void fill(int r, int64_t n, float *in)
{
    for (int64_t i = 0; i < n; i++) in[i] = oracle_leaf(ZERO_FP32, 1, r, i);
}

/* Element i of `out`, as the kind defines it. */
static float expected(const rank *r, int64_t i)
{
    int n = r->comm.size;
    switch (r->spec.kind) {
    case ZERO_REDUCE_SCATTER:
        return oracle_sum(ZERO_FP32, 1, 0, n, (int64_t)r->comm.rank * STRIDE + i);
    case ZERO_REDUCE: return oracle_sum(ZERO_FP32, 1, 0, n, i);
    case ZERO_ALL_GATHER: return oracle_leaf(ZERO_FP32, 1, (int)(i / STRIDE), i % STRIDE);
    default: return oracle_leaf(ZERO_FP32, 1, r->spec.root, i);
    }
}

static bool collects(rank *r)
{
    static const float nothing = -7.0f;
    int n = r->comm.size;
    float *in = malloc(sizeof *in * (size_t)n * STRIDE);
    float *out = malloc(sizeof *out * (size_t)n * STRIDE);
    fill(r->comm.rank, (int64_t)n * STRIDE, in);
    for (int i = 0; i < n * STRIDE; i++) out[i] = nothing;
    bool ok = run(&r->comm, &r->spec, in, out);
    bool is_given = r->spec.kind != ZERO_REDUCE || r->comm.rank == r->spec.root;
    int pieces = r->spec.kind == ZERO_ALL_GATHER ? n : 1;
    for (int i = 0; ok && i < n * STRIDE; i++) {
        bool is_part = is_given && i < pieces * STRIDE && i % STRIDE < COUNT;
        float x = is_part ? expected(r, i) : nothing;
        ok = memcmp(&out[i], &x, sizeof x) == 0;
    }
    free(in);
    free(out);
    return ok;
}

TEST(collectives_add_along_the_tree)
{
    for (int n = 1; n <= MOST; n++)
        for (int kind = 0; kind < ZERO_ALL_REDUCE; kind++) {
            zero_collective_spec spec = {.kind = (zero_collective_kind)kind,
                                         .algorithm = ZERO_ALGORITHM_P2P,
                                         .count = COUNT,
                                         .stride = STRIDE,
                                         .root = n - 1,
                                         .max_chunk = 64,
                                         .unit = ZERO_NO_UNIT};
            on_ranks(n, &spec, collects);
        }
}

static bool is_refused(rank *r)
{
    zero_collective op;
    zero_collective_spec spec = {.kind = ZERO_ALL_GATHER,
                                 .algorithm = ZERO_ALGORITHM_MPI,
                                 .count = 64,
                                 .stride = 64,
                                 .unit = ZERO_NO_UNIT};
    return zero_collective_init(&op, &r->comm, &spec) == ZERO_ERR_UNSUPPORTED &&
           strstr(zero_last_error(), "p2p") != NULL;
}

TEST(other_algorithms_are_refused)
{
    on_ranks(3, NULL, is_refused);
}

/* ---- small messages ---- */

static bool exchanges(rank *r)
{
    zero_comm *c = &r->comm;
    int64_t most, word = c->rank + 1, n = c->size;
    bool same, any;
    double mine = 0.5 * c->rank, all[MOST];
    char text[8] = "none";
    bool ok =
        zero_comm_vote(c, c->rank, 5, &most, &same) == ZERO_OK && most == n - 1 && same;
    ok = ok && zero_comm_vote(c, 0, c->rank, &most, &same) == ZERO_OK && same == (n == 1);
    ok = ok && zero_comm_sum(c, 1, &word) == ZERO_OK && word == n * (n + 1) / 2;
    ok = ok && zero_comm_any(c, c->rank == n - 1, &any) == ZERO_OK && any;
    ok = ok && zero_comm_all_gather_doubles(c, 1, &mine, all) == ZERO_OK;
    for (int k = 0; ok && k < n; k++) ok = all[k] == 0.5 * k;
    if (c->rank == n - 1) strcpy(text, "last");
    ok = ok && zero_comm_broadcast(c, (int)n - 1, text, sizeof text) == ZERO_OK;
    return ok && strcmp(text, "last") == 0 && zero_comm_barrier(c) == ZERO_OK;
}

static bool merges(rank *r)
{
    zero_comm *c = &r->comm;
    zero_tree_span span = {.blocks = c->size, .first = c->rank};
    zero_tree_span_append(&span, 1, 1.0 + c->rank);
    if (zero_comm_merge_spans(c, 1, &span) != ZERO_OK) return false;
    return zero_tree_span_is_whole(&span) &&
           zero_tree_span_sum(&span) == 0.5 * c->size * (c->size + 1);
}

/* The message names the rank that failed, on all of them. */
static bool agrees(rank *r)
{
    zero_status mine = ZERO_OK;
    if (r->comm.rank == r->comm.size - 1) mine = zero_fail(ZERO_ERR_IO, "no disk");
    if (zero_agree(&r->comm, mine) != ZERO_ERR_IO) return false;
    snprintf(r->text, sizeof r->text, "%s", zero_last_error());
    return strstr(r->text, "no disk") && (r->comm.size == 1 || strstr(r->text, "rank "));
}

TEST(small_messages_reach_all_ranks)
{
    for (int n = 1; n <= MOST; n++) {
        on_ranks(n, NULL, exchanges);
        on_ranks(n, NULL, merges);
        on_ranks(n, NULL, agrees);
    }
}

/* ---- families ---- */

static bool divides(rank *r)
{
    if (zero_comm_divide(&r->comm, 2, 0, 1) != ZERO_OK) return false;
    zero_comm *data = zero_comm_data(&r->comm), *tp = zero_comm_tp(&r->comm);
    int64_t in_data = r->comm.rank, in_tp = r->comm.rank;
    bool ok = data->size == r->comm.size / 2 && data->rank == r->comm.rank / 2;
    ok = ok && tp->size == 2 && tp->rank == r->comm.rank % 2;
    ok = ok && zero_comm_sum(data, 1, &in_data) == ZERO_OK;
    ok = ok && zero_comm_sum(tp, 1, &in_tp) == ZERO_OK;
    int n = data->size;
    return ok && in_data == (int64_t)n * (n - 1) + n * (r->comm.rank % 2) &&
           in_tp == 2 * (r->comm.rank - r->comm.rank % 2) + 1;
}

TEST(groups_are_divided)
{
    for (int n = 2; n <= MOST; n += 2) on_ranks(n, NULL, divides);
}

/* ---- failures ---- */

static bool abandons_a_meeting(rank *r)
{
    if (r->comm.rank != 0) return zero_comm_barrier(&r->comm) == ZERO_ERR_STALLED;
    zero_local_abandon(&r->comm);
    return true;
}

static bool abandons_a_collective(rank *r)
{
    float in[64] = {0}, out[MOST * 64];
    zero_collective_spec spec = {
        .kind = ZERO_ALL_GATHER, .count = 64, .stride = 64, .unit = ZERO_NO_UNIT};
    if (r->comm.rank == 0) {
        zero_local_abandon(&r->comm);
        return true;
    }
    return !run(&r->comm, &spec, in, out);
}

/* Ranks that come again after a failure could complete a meeting with numbers that are gone. */
static bool meets_after_an_end(rank *r)
{
    for (int k = 0; k < MOST; k++) {
        int64_t number = 1;
        if (r->comm.rank == 0) zero_local_abandon(&r->comm);
        if (zero_comm_sum(&r->comm, 1, &number) != ZERO_ERR_STALLED) return false;
    }
    return true;
}

TEST(no_rank_waits_for_one_that_has_failed)
{
    for (int n = 2; n <= MOST; n++) {
        on_ranks(n, NULL, abandons_a_meeting);
        on_ranks(n, NULL, abandons_a_collective);
        on_ranks(n, NULL, meets_after_an_end);
    }
}
