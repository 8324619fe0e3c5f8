/* When collectives were in flight (comm/spans.h), clocks of nodes (comm/clock_offset.h) and bytes
 * that rank 0 takes of all (comm/deliver.h). */
#define TEST_HAS_MAIN
#include "support/mpi_cmocka.h"

#include "base/clock.h"
#include "base/fail.h"
#include "comm/clock_offset.h"
#include "comm/collective.h"
#include "comm/comm.h"
#include "comm/deliver.h"
#include "comm/divide.h"
#include "comm/spans.h"
#include "comm/thread.h"

#define ELEMENTS 4096 /* elements of a rank */

static zero_comm world;

/* ---- spans ---- */

typedef struct {
    zero_collective op;
    float *in, *out;
} gather;

static void gather_open(gather *g, zero_comm *comm)
{
    zero_collective_spec spec = {.kind = ZERO_ALL_GATHER,
                                 .algorithm = ZERO_ALGORITHM_P2P,
                                 .count = ELEMENTS,
                                 .stride = ELEMENTS,
                                 .max_chunk = 512,
                                 .unit = ZERO_NO_UNIT};
    g->in = calloc(ELEMENTS, sizeof *g->in);
    g->out = calloc((size_t)comm->size * ELEMENTS, sizeof *g->out);
    assert_true(g->in && g->out);
    assert_ok(zero_collective_init(&g->op, comm, &spec));
}

static void gather_close(gather *g)
{
    zero_collective_destroy(&g->op);
    free(g->in);
    free(g->out);
}

static void gather_run(gather *g, int64_t label)
{
    g->op.label = label;
    assert_ok(zero_collective_begin(&g->op, g->in, g->out, NULL));
    assert_ok(zero_collective_wait(&g->op));
}

static int64_t bytes_of_one(const zero_comm *comm)
{
    return (comm->size - 1) * ELEMENTS * (int64_t)sizeof(float);
}

TEST(the_ring_keeps_the_last_collectives)
{
    enum { ROOM = 5, RUNS = 12 };
    zero_comm_spans spans;
    zero_comm_span copy[2 * ROOM];
    int64_t open, first = world.sequence;
    gather g;
    gather_open(&g, &world);
    all_ok(zero_comm_spans_init(&spans, ROOM));
    zero_comm_spans_attach(&world, &spans);
    gather_run(&g, 100); /* not recorded: the ring is off */
    zero_comm_spans_switch(&world, true);
    for (int k = 0; k < RUNS; k++) gather_run(&g, k);
    zero_comm_spans_switch(&world, false);
    gather_run(&g, 101);
    int64_t n = zero_comm_spans_copy(&world, 0.0, 2 * ROOM, copy, &open);
    assert_all(n == ROOM && open == 0);
    for (int k = 0; k < ROOM; k++) {
        const zero_comm_span *s = &copy[k];
        assert_all(s->label == RUNS - ROOM + k);
        assert_all(s->sequence == first + 1 + RUNS - ROOM + k);
        assert_all(s->sent == bytes_of_one(&world));
        assert_all(s->kind == ZERO_ALL_GATHER && s->part == ZERO_WHOLE);
        assert_all(s->begun <= s->ended && (k == 0 || copy[k - 1].ended <= s->begun));
    }
    zero_comm_spans_attach(&world, NULL);
    gather_close(&g);
    zero_comm_spans_destroy(&spans);
}

/* Its ring is off when it ends, and it is there, since it began while the ring was on. */
TEST(what_is_in_flight_ends_now)
{
    zero_comm_spans spans;
    zero_comm_span copy[4];
    int64_t open;
    gather g;
    if (test_size == 1) return; /* it ends in its begin */
    gather_open(&g, &world);
    all_ok(zero_comm_spans_init(&spans, 2));
    zero_comm_spans_attach(&world, &spans);
    zero_comm_spans_switch(&world, true);
    assert_ok(zero_comm_barrier(&world));
    bool is_late = test_rank == 0;
    if (!is_late) assert_ok(zero_collective_begin(&g.op, g.in, g.out, NULL));
    double now = zero_clock_seconds();
    int64_t n = zero_comm_spans_copy(&world, now, 4, copy, &open);
    assert_all(n == !is_late && open == !is_late);
    assert_all(is_late || (copy[0].begun <= now && copy[0].ended == now));
    zero_comm_spans_switch(&world, is_late);
    if (is_late) assert_ok(zero_collective_begin(&g.op, g.in, g.out, NULL));
    assert_ok(zero_collective_wait(&g.op));
    n = zero_comm_spans_copy(&world, now, 4, copy, &open);
    assert_all(n == 1 && open == 0 && copy[0].ended >= copy[0].begun);
    zero_comm_spans_attach(&world, NULL);
    gather_close(&g);
    zero_comm_spans_destroy(&spans);
}

/* The thread moves the collectives and writes their spans. */
TEST(a_progress_thread_writes_the_same_spans)
{
    enum { RUNS = 50 };
    zero_comm_spans spans;
    zero_comm_span copy[RUNS];
    int64_t open;
    gather g;
    gather_open(&g, &world);
    all_ok(zero_comm_spans_init(&spans, RUNS));
    zero_comm_spans_attach(&world, &spans);
    zero_comm_spans_switch(&world, true);
    all_ok(zero_progress_start(&world, 1e-4));
    for (int k = 0; k < RUNS; k++) gather_run(&g, k);
    all_ok(zero_comm_stop_helpers(&world));
    assert_all(zero_comm_spans_copy(&world, 0.0, RUNS, copy, &open) == RUNS);
    for (int k = 0; k < RUNS; k++)
        assert_all(copy[k].label == k && copy[k].sent == bytes_of_one(&world));
    zero_comm_spans_attach(&world, NULL);
    gather_close(&g);
    zero_comm_spans_destroy(&spans);
}

TEST(parts_of_a_family_write_to_one_ring)
{
    zero_comm whole;
    zero_comm_spans spans;
    zero_comm_span copy[4];
    int64_t open;
    gather of_tp, of_data;
    if (test_size % 2 != 0) return;
    all_ok(zero_comm_from(MPI_COMM_WORLD, &whole));
    all_ok(zero_comm_divide(&whole, 2, 0, 1));
    zero_comm *tp = zero_comm_tp(&whole), *data = zero_comm_data(&whole);
    gather_open(&of_tp, tp);
    gather_open(&of_data, data);
    all_ok(zero_comm_spans_init(&spans, 4));
    zero_comm_spans_attach(&whole, &spans);
    zero_comm_spans_switch(&whole, true);
    gather_run(&of_data, 7);
    gather_run(&of_tp, 8);
    assert_all(zero_comm_spans_copy(&whole, 0.0, 4, copy, &open) == 2);
    assert_all(copy[0].label == 7 && copy[0].part == ZERO_DATA_GROUP);
    assert_all(copy[1].label == 8 && copy[1].part == ZERO_TP_GROUP);
    assert_all(copy[0].sent == bytes_of_one(data) && copy[1].sent == bytes_of_one(tp));
    zero_comm_spans_attach(&whole, NULL);
    gather_close(&of_tp);
    gather_close(&of_data);
    zero_comm_spans_destroy(&spans);
    zero_comm_destroy(&whole);
}

/* ---- clocks ---- */

TEST(readings_are_joined_by_a_line)
{
    zero_clock_reading a = {.at = 100.0, .offset = -3.0}, b = {.at = 200.0, .offset = -3.5};
    assert_true(zero_clock_offset_align(&a, &b, 100.0) == 97.0);
    assert_true(zero_clock_offset_align(&a, &b, 200.0) == 196.5);
    assert_true(fabs(zero_clock_offset_align(&a, &b, 150.0) - 146.75) < 1e-9);
    assert_true(zero_clock_offset_align(&a, &a, 150.0) == 147.0);
}

/* Pretended nodes have one clock: an offset is wrong by its uncertainty at most. */
TEST(the_offset_is_within_its_uncertainty)
{
    zero_comm nodes;
    zero_clock_reading mine;
    double worst;
    all_ok(zero_comm_from(MPI_COMM_WORLD, &nodes));
    all_ok(zero_comm_pretend_blocks(&nodes, (test_size + 1) / 2));
    all_ok(zero_clock_offset_read(&nodes, &mine, &worst));
    bool is_first = nodes.layout.node_of[test_rank] == 0;
    assert_all(fabs(mine.offset) <= mine.uncertainty + 1e-9);
    assert_all((mine.uncertainty > 0.0) != is_first && mine.uncertainty <= worst);
    assert_all((worst > 0.0) == (nodes.layout.n_nodes > 1));
    zero_comm_destroy(&nodes);
}

/* ---- parcels ---- */

#define LARGE (3 * ZERO_DELIVERED + 12345)

/* Rank 1 has nothing to send. */
static size_t size_of(int rank)
{
    return rank == 1 ? 0 : LARGE + (size_t)rank;
}

static unsigned char byte_of(int rank, size_t i)
{
    return (unsigned char)(i * 7 + (size_t)rank * 31 + i / 1000);
}

typedef struct {
    int next, fails_at;
} taken;

static zero_status take(void *arg, int rank, const void *data, size_t bytes)
{
    taken *t = arg;
    const unsigned char *found = data;
    assert_int_equal(rank, t->next++);
    assert_int_equal(bytes, size_of(rank));
    for (size_t i = 0; i < bytes; i++)
        if (found[i] != byte_of(rank, i)) fail_msg("byte %zu of rank %d", i, rank);
    if (rank == t->fails_at) return zero_fail(ZERO_ERR_IO, "rank %d is refused", rank);
    return ZERO_OK;
}

static void deliver(int fails_at, zero_status expected)
{
    taken t = {0, fails_at};
    size_t bytes = size_of(test_rank);
    unsigned char *data = malloc(bytes + 1);
    assert_non_null(data);
    for (size_t i = 0; i < bytes; i++) data[i] = byte_of(test_rank, i);
    assert_all(zero_comm_deliver(&world, data, bytes, take, &t) == expected);
    int most = fails_at >= 0 ? fails_at + 1 : test_size;
    assert_all(t.next == (test_rank == 0 ? most : 0));
    free(data);
}

TEST(rank_0_takes_the_bytes_of_all_in_order)
{
    deliver(-1, ZERO_OK);
}

TEST(a_failure_while_taking_is_that_of_all)
{
    deliver(test_size - 1, ZERO_ERR_IO);
    deliver(0, ZERO_ERR_IO);
    deliver(-1, ZERO_OK);
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    test_begin(&argc, &argv);
    if (zero_comm_world(&world) != ZERO_OK) return 1;
    int failed = run_here(NULL, NULL);
    zero_comm_destroy(&world);
    return test_end(failed);
}
