/* When collectives were in flight (comm/spans.h), clocks of nodes (comm/clock_offset.h) and bytes
 * that rank 0 takes of all (comm/deliver.h). */
#include "support/mpi_cmocka.h"

#include <math.h>

#include "base/clock.h"
#include "base/fail.h"
#include "comm/clock_offset.h"
#include "comm/collective.h"
#include "comm/comm.h"
#include "comm/deliver.h"
#include "comm/divide.h"
#include "comm/progress.h"
#include "comm/spans.h"

#define COUNT 4096 /* elements of a rank */

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
                                 .count = COUNT,
                                 .stride = COUNT,
                                 .max_chunk = 512,
                                 .unit = ZERO_NO_UNIT};
    g->in = calloc(COUNT, sizeof *g->in);
    g->out = calloc((size_t)comm->size * COUNT, sizeof *g->out);
    assert_true(g->in && g->out);
    assert_int_equal(zero_collective_init(&g->op, comm, &spec), ZERO_OK);
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
    assert_int_equal(zero_collective_begin(&g->op, g->in, g->out, NULL), ZERO_OK);
    assert_int_equal(zero_collective_wait(&g->op), ZERO_OK);
}

static int64_t bytes_of_one(const zero_comm *comm)
{
    return (comm->size - 1) * COUNT * (int64_t)sizeof(float);
}

static void the_ring_keeps_the_last_collectives(void **state)
{
    (void)state;
    enum { ROOM = 5, RUNS = 12 };
    zero_comm_spans spans;
    zero_comm_span copy[2 * ROOM];
    int64_t open, first = world.sequence;
    gather g;
    gather_open(&g, &world);
    assert_all(zero_comm_spans_init(&spans, ROOM) == ZERO_OK);
    zero_comm_spans_start(&world, &spans);
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
    zero_comm_spans_stop(&world);
    gather_close(&g);
    zero_comm_spans_destroy(&spans);
}

/* Its ring is off when it ends, and it is there, since it began while the ring was on. */
static void what_is_in_flight_ends_now(void **state)
{
    (void)state;
    zero_comm_spans spans;
    zero_comm_span copy[4];
    int64_t open;
    gather g;
    if (test_size == 1) return; /* it ends in its begin */
    gather_open(&g, &world);
    assert_all(zero_comm_spans_init(&spans, 2) == ZERO_OK);
    zero_comm_spans_start(&world, &spans);
    zero_comm_spans_switch(&world, true);
    assert_int_equal(zero_comm_barrier(&world), ZERO_OK);
    bool is_late = test_rank == 0;
    if (!is_late)
        assert_int_equal(zero_collective_begin(&g.op, g.in, g.out, NULL), ZERO_OK);
    double now = zero_clock_seconds();
    int64_t n = zero_comm_spans_copy(&world, now, 4, copy, &open);
    assert_all(n == !is_late && open == !is_late);
    assert_all(is_late || (copy[0].begun <= now && copy[0].ended == now));
    zero_comm_spans_switch(&world, is_late);
    if (is_late) assert_int_equal(zero_collective_begin(&g.op, g.in, g.out, NULL), ZERO_OK);
    assert_int_equal(zero_collective_wait(&g.op), ZERO_OK);
    n = zero_comm_spans_copy(&world, now, 4, copy, &open);
    assert_all(n == 1 && open == 0 && copy[0].ended >= copy[0].begun);
    zero_comm_spans_stop(&world);
    gather_close(&g);
    zero_comm_spans_destroy(&spans);
}

/* The thread moves the collectives and writes their spans. */
static void a_progress_thread_writes_the_same_spans(void **state)
{
    (void)state;
    enum { RUNS = 50 };
    zero_comm_spans spans;
    zero_comm_span copy[RUNS];
    int64_t open;
    gather g;
    gather_open(&g, &world);
    assert_all(zero_comm_spans_init(&spans, RUNS) == ZERO_OK);
    zero_comm_spans_start(&world, &spans);
    zero_comm_spans_switch(&world, true);
    assert_all(zero_progress_start(&world, 1e-4) == ZERO_OK);
    for (int k = 0; k < RUNS; k++) gather_run(&g, k);
    assert_all(zero_comm_stop_helpers(&world) == ZERO_OK);
    assert_all(zero_comm_spans_copy(&world, 0.0, RUNS, copy, &open) == RUNS);
    for (int k = 0; k < RUNS; k++)
        assert_all(copy[k].label == k && copy[k].sent == bytes_of_one(&world));
    zero_comm_spans_stop(&world);
    gather_close(&g);
    zero_comm_spans_destroy(&spans);
}

static void parts_of_a_family_write_to_one_ring(void **state)
{
    (void)state;
    zero_comm whole;
    zero_comm_spans spans;
    zero_comm_span copy[4];
    int64_t open;
    gather of_tp, of_data;
    if (test_size % 2 != 0) return;
    assert_all(zero_comm_from(MPI_COMM_WORLD, &whole) == ZERO_OK);
    assert_all(zero_comm_divide(&whole, 2, 0) == ZERO_OK);
    zero_comm *tp = zero_comm_tp(&whole), *data = zero_comm_data(&whole);
    gather_open(&of_tp, tp);
    gather_open(&of_data, data);
    assert_all(zero_comm_spans_init(&spans, 4) == ZERO_OK);
    zero_comm_spans_start(&whole, &spans);
    zero_comm_spans_switch(&whole, true);
    gather_run(&of_data, 7);
    gather_run(&of_tp, 8);
    assert_all(zero_comm_spans_copy(&whole, 0.0, 4, copy, &open) == 2);
    assert_all(copy[0].label == 7 && copy[0].part == ZERO_DATA_GROUP);
    assert_all(copy[1].label == 8 && copy[1].part == ZERO_TP_GROUP);
    assert_all(copy[0].sent == bytes_of_one(data) && copy[1].sent == bytes_of_one(tp));
    zero_comm_spans_stop(&whole);
    gather_close(&of_tp);
    gather_close(&of_data);
    zero_comm_spans_destroy(&spans);
    zero_comm_destroy(&whole);
}

/* ---- clocks ---- */

static void readings_are_joined_by_a_line(void **state)
{
    (void)state;
    zero_clock_reading a = {.at = 100.0, .offset = -3.0}, b = {.at = 200.0, .offset = -3.5};
    assert_true(zero_clock_offset_align(&a, &b, 100.0) == 97.0);
    assert_true(zero_clock_offset_align(&a, &b, 200.0) == 196.5);
    assert_true(fabs(zero_clock_offset_align(&a, &b, 150.0) - 146.75) < 1e-9);
    assert_true(zero_clock_offset_align(&a, &a, 150.0) == 147.0);
}

/* Pretended nodes have one clock: an offset is wrong by its uncertainty at most. */
static void the_offset_is_within_its_uncertainty(void **state)
{
    (void)state;
    zero_comm nodes;
    zero_clock_reading mine;
    double worst;
    assert_all(zero_comm_from(MPI_COMM_WORLD, &nodes) == ZERO_OK);
    assert_all(zero_comm_pretend_blocks(&nodes, (test_size + 1) / 2) == ZERO_OK);
    assert_all(zero_clock_offset_read(&nodes, &mine, &worst) == ZERO_OK);
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

static void rank_0_takes_the_bytes_of_all_in_order(void **state)
{
    (void)state;
    deliver(-1, ZERO_OK);
}

static void a_failure_while_taking_is_that_of_all(void **state)
{
    (void)state;
    deliver(test_size - 1, ZERO_ERR_IO);
    deliver(0, ZERO_ERR_IO);
    deliver(-1, ZERO_OK);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ring_keeps_the_last_collectives),
        cmocka_unit_test(what_is_in_flight_ends_now),
        cmocka_unit_test(a_progress_thread_writes_the_same_spans),
        cmocka_unit_test(parts_of_a_family_write_to_one_ring),
        cmocka_unit_test(readings_are_joined_by_a_line),
        cmocka_unit_test(the_offset_is_within_its_uncertainty),
        cmocka_unit_test(rank_0_takes_the_bytes_of_all_in_order),
        cmocka_unit_test(a_failure_while_taking_is_that_of_all)};
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    test_begin(&argc, &argv);
    if (zero_comm_world(&world) != ZERO_OK) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    zero_comm_destroy(&world);
    return test_end(failed);
}
