#include "comm/collective.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <unistd.h>

#include "base/rng.h"
#include "mpi_cmocka.h"

static zero_comm world;

static int set_up(void **state)
{
    (void)state;
    return zero_comm_world(&world) != ZERO_OK;
}

static int tear_down(void **state)
{
    (void)state;
    zero_comm_destroy(&world);
    return 0;
}

static void *allocate(int64_t n)
{
    float *x = malloc((size_t)(n > 0 ? n : 1) * sizeof *x);
    if (!x) abort();
    return x;
}

/* Element i of rank `rank` in trial `trial`: magnitudes from 2^-30 to 2^29, so that another
 * order of summation gives other bits; from trial 1000 on also a few NaN and infinities. */
static float value(uint64_t trial, int rank, int64_t i)
{
    zero_rng rng = {.purpose = ZERO_RNG_TEST, .step = trial, .sample = (uint64_t)rank};
    uint64_t bits = zero_rng_bits(&rng, (uint64_t)i);
    if (trial >= 1000 && bits % 31 == 0) return bits % 2 ? NAN : INFINITY;
    if (trial >= 1000 && bits % 37 == 0) return -INFINITY;
    int exponent = (int)(bits >> 8 & 0xff) % 60 - 30;
    return ldexpf((float)(bits >> 40) * 0x1p-23f - 1.0f, exponent);
}

static float *fill(uint64_t trial, int64_t n)
{
    float *x = allocate(n);
    for (int64_t i = 0; i < n; i++) x[i] = value(trial, test_rank, i);
    return x;
}

/* The sum over ranks first .. first+n-1, written down again without any of our code. */
static float tree(uint64_t trial, int first, int n, int64_t i)
{
    if (n == 1) return value(trial, first, i);
    int left = 1;
    while (2 * left < n) left *= 2;
    return tree(trial, first, left, i) + tree(trial, first + left, n - left, i);
}

static bool same(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

/* One reduce-scatter or all-gather with its buffers; in place, or not. */
typedef struct {
    zero_collective op;
    zero_collective_spec spec;
    uint64_t trial;
    bool in_place;
    float *in, *out, *staging;
} job;

static job start(zero_collective_kind kind, int64_t count, int64_t stride,
                 int64_t max_chunk, uint64_t trial)
{
    job j = {
        .spec = {kind, count, stride, max_chunk}, .trial = trial, .in_place = trial % 2};
    bool reduces = kind == ZERO_REDUCE_SCATTER;
    float *array = fill(trial, stride * world.size), *own = array + world.rank * stride;
    float *piece = fill(trial, stride);
    memcpy(piece, own, (size_t)stride * sizeof *own);
    j.in = reduces ? array : piece;
    j.out = reduces ? piece : array;
    j.staging = allocate(zero_collective_staging(&j.spec, world.size));
    assert_int_equal(zero_collective_init(&j.op, &world, &j.spec), ZERO_OK);
    return j;
}

static void begin(job *j)
{
    bool reduces = j->spec.kind == ZERO_REDUCE_SCATTER;
    float *array = reduces ? j->in : j->out, *own = array + world.rank * j->spec.stride;
    const float *in = j->in_place && !reduces ? own : j->in;
    float *out = j->in_place && reduces ? own : j->out;
    assert_int_equal(zero_collective_begin(&j->op, in, out, j->staging), ZERO_OK);
}

/* The sum in the window, and everything else as it was. */
static int64_t count_wrong_sums(const job *j)
{
    int64_t stride = j->spec.stride, own = world.rank * stride, wrong = 0;
    const float *sum = j->in_place ? j->in + own : j->out;
    for (int64_t i = 0; i < j->spec.count; i++)
        wrong += !same(sum[i], tree(j->trial, 0, world.size, own + i));
    for (int64_t i = 0; i < stride * world.size; i++) {
        bool is_sum = j->in_place && i >= own && i < own + j->spec.count;
        wrong += !is_sum && !same(j->in[i], value(j->trial, world.rank, i));
    }
    for (int64_t i = j->in_place ? 0 : j->spec.count; i < stride; i++)
        wrong += !same(j->out[i], value(j->trial, world.rank, own + i));
    return wrong;
}

static int64_t count_wrong_copies(const job *j)
{
    int64_t stride = j->spec.stride, wrong = 0;
    for (int64_t i = 0; i < stride * world.size; i++) {
        int owner = i % stride < j->spec.count ? (int)(i / stride) : world.rank;
        wrong += !same(j->out[i], value(j->trial, owner, i));
    }
    return wrong;
}

static void check_and_free(job *j)
{
    int64_t wrong =
        j->spec.kind == ZERO_REDUCE_SCATTER ? count_wrong_sums(j) : count_wrong_copies(j);
    if (wrong)
        print_error("rank %d, trial %" PRIu64 ": kind %d, count %" PRId64
                    ", stride %" PRId64 ", max_chunk %" PRId64 ": %" PRId64 " wrong\n",
                    test_rank, j->trial, (int)j->spec.kind, j->spec.count, j->spec.stride,
                    j->spec.max_chunk, wrong);
    assert_all(wrong == 0);
    zero_collective_destroy(&j->op);
    free(j->in);
    free(j->out);
    free(j->staging);
}

static void run(zero_collective_kind kind, int64_t count, int64_t stride, int64_t max_chunk,
                uint64_t trial)
{
    job j = start(kind, count, stride, max_chunk, trial);
    begin(&j);
    assert_int_equal(zero_collective_wait(&j.op), ZERO_OK);
    check_and_free(&j);
}

static const int64_t counts[] = {0, 1, 63, 64, 65, 997, 2500};
static const int64_t gaps[] = {0, 1, 64, 331};
static const int64_t chunks[] = {0, 1, 7, 64, 100};
#define LENGTH(array) (sizeof(array) / sizeof *(array))

static void run_all_shapes(zero_collective_kind kind)
{
    uint64_t trial = 0;
    for (size_t c = 0; c < LENGTH(counts); c++)
        for (size_t g = 0; g < LENGTH(gaps); g++)
            for (size_t m = 0; m < LENGTH(chunks); m++) {
                if (chunks[m] == 1 && counts[c] > 100) continue; /* shows nothing new */
                run(kind, counts[c], counts[c] + gaps[g], chunks[m], trial++);
            }
}

static void owners_receive_the_tree_sum_of_every_shape(void **state)
{
    (void)state;
    run_all_shapes(ZERO_REDUCE_SCATTER);
}

static void all_ranks_receive_every_piece_of_every_shape(void **state)
{
    (void)state;
    run_all_shapes(ZERO_ALL_GATHER);
}

static void pieces_of_many_full_chunks_arrive(void **state)
{
    (void)state;
    int64_t count = 3 * ZERO_COLLECTIVE_CHUNK / world.size + 77;
    for (uint64_t trial = 0; trial < 2; trial++) {
        run(ZERO_REDUCE_SCATTER, count, count + 19, 0, trial);
        run(ZERO_ALL_GATHER, count, count + 19, 0, trial);
    }
}

static void nan_and_infinity_pass_through_a_sum(void **state)
{
    (void)state;
    run(ZERO_REDUCE_SCATTER, 2000, 2000, 64, 1000);
    run(ZERO_REDUCE_SCATTER, 2000, 2011, 0, 1001);
    run(ZERO_ALL_GATHER, 2000, 2011, 64, 1002);
}

/* Ranks begin in the same order, poll and sleep as they like, and wait in their own order.
 */
static void several_are_in_flight_and_ranks_are_late(void **state)
{
    (void)state;
    enum { JOBS = 5 };
    for (uint64_t trial = 0; trial < 10; trial++) {
        job jobs[JOBS];
        zero_rng rng = {.purpose = ZERO_RNG_TEST, .step = trial, .sample = 99};
        rng.tensor = (uint64_t)test_rank + 1;
        for (int i = 0; i < JOBS; i++) {
            zero_collective_kind kind = i % 3 == 1 ? ZERO_ALL_GATHER : ZERO_REDUCE_SCATTER;
            jobs[i] = start(kind, 700 + 31 * i, 1000, 16 + 9 * i, 10 * trial + (uint64_t)i);
        }
        for (int i = 0; i < JOBS; i++) {
            usleep((useconds_t)(zero_rng_bits(&rng, (uint64_t)i) % 300));
            begin(&jobs[i]);
        }
        for (int i = 0; i < 40; i++) {
            bool done;
            zero_collective *op = &jobs[zero_rng_bits(&rng, 50 + (uint64_t)i) % JOBS].op;
            assert_int_equal(zero_collective_progress(op, &done), ZERO_OK);
            usleep((useconds_t)(zero_rng_bits(&rng, 100 + (uint64_t)i) % 100));
        }
        for (int i = 0; i < JOBS; i++)
            assert_int_equal(zero_collective_wait(&jobs[(i + test_rank) % JOBS].op),
                             ZERO_OK);
        assert_all(world.active == NULL);
        for (int i = 0; i < JOBS; i++) check_and_free(&jobs[i]);
    }
}

static void a_program_runs_again_and_again_through_few_tags(void **state)
{
    (void)state;
    int limit = world.tag_limit;
    world.tag_limit = 3;
    world.next_tag = 0;
    job j = start(ZERO_REDUCE_SCATTER, 500, 512, 64, 4);
    for (int i = 0; i < 10; i++) {
        begin(&j);
        assert_int_equal(zero_collective_wait(&j.op), ZERO_OK);
        bool done = false;
        assert_int_equal(zero_collective_progress(&j.op, &done), ZERO_OK);
        assert_true(done);
    }
    assert_all(world.next_tag == 1);
    world.tag_limit = limit;
    check_and_free(&j);
}

/* Each rank sends every piece but its own, and receives its own from all others: (N-1)/N of
 * the array each way, for both kinds. */
static void traffic_is_the_formula(void **state)
{
    (void)state;
    static const zero_traffic_kind kinds[] = {ZERO_TRAFFIC_REDUCE_SCATTER,
                                              ZERO_TRAFFIC_ALL_GATHER};
    int64_t count = 1000, others = test_size - 1,
            messages = others * 16; /* 1000 = 15*64 + 40 */
    for (int k = 0; k < 2; k++) {
        zero_traffic before = world.traffic[kinds[k]], *after = &world.traffic[kinds[k]];
        run(k == 0 ? ZERO_REDUCE_SCATTER : ZERO_ALL_GATHER, count, 1024, 64, 7);
        assert_all(after->bytes_sent - before.bytes_sent == 4 * count * others);
        assert_all(after->bytes_received - before.bytes_received == 4 * count * others);
        assert_all(after->messages_sent - before.messages_sent == messages);
        assert_all(after->messages_received - before.messages_received == messages);
    }
}

static void an_all_reduce_gives_all_ranks_the_sum(void **state)
{
    (void)state;
    int64_t count = 1234, stride = 1300, n = stride * world.size;
    zero_collective_spec spec = {ZERO_REDUCE_SCATTER, count, stride, 0};
    float *data = fill(1, n),
          *staging = allocate(zero_collective_staging(&spec, world.size));
    assert_all(zero_all_reduce(&world, count, stride, data, staging) == ZERO_OK);
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; i++)
        wrong += !same(data[i], i % stride < count ? tree(1, 0, world.size, i)
                                                   : value(1, world.rank, i));
    assert_all(wrong == 0);
    free(data);
    free(staging);
}

/* The program of any rank of any group; without messages. */
static zero_collective build(zero_collective_kind kind, zero_comm *comm, int64_t count,
                             int64_t max_chunk)
{
    zero_collective op;
    zero_collective_spec spec = {kind, count, count + 5, max_chunk};
    assert_int_equal(zero_collective_init(&op, comm, &spec), ZERO_OK);
    return op;
}

/* What rank r sends to s, s receives from r: in the same order, and the place in the list
 * differs by the one step between a receive and the send of its round. */
static void every_send_meets_its_receive(void **state)
{
    (void)state;
    for (int size = 2; size <= 11; size++)
        for (int pair = 0; pair < size * size; pair++) {
            int r = pair / size, s = pair % size;
            zero_collective_kind kind = pair % 2 ? ZERO_ALL_GATHER : ZERO_REDUCE_SCATTER;
            zero_comm at_r = {.rank = r, .size = size}, at_s = {.rank = s, .size = size};
            zero_collective from = build(kind, &at_r, 200, 64);
            zero_collective to = build(kind, &at_s, 200, 64);
            assert_int_equal(from.n_steps, to.n_steps);
            for (int64_t i = 0; i < from.n_steps; i++) {
                const zero_step *send = &from.steps[i];
                if (send->kind != ZERO_STEP_SEND || send->peer != s) continue;
                assert_true(i > 0 && to.steps[i - 1].kind == ZERO_STEP_RECEIVE);
                assert_int_equal(to.steps[i - 1].peer, r);
                assert_int_equal(to.steps[i - 1].len, send->len);
            }
            zero_collective_destroy(&from);
            zero_collective_destroy(&to);
        }
}

/* Walks a reduce-scatter: nothing is received onto a term that no add has read. */
static void staging_is_read_before_it_is_written_again(void **state)
{
    (void)state;
    for (int size = 2; size <= 20; size++) {
        zero_comm comm = {.rank = size / 2, .size = size};
        zero_collective op = build(ZERO_REDUCE_SCATTER, &comm, 1500, 64);
        int64_t n = zero_collective_staging(&op.spec, size), added = 0;
        char *unread = calloc((size_t)n, 1);
        for (int64_t i = 0; i < op.n_steps; i++) {
            const zero_step *step = &op.steps[i];
            if (step->kind == ZERO_STEP_RECEIVE) {
                assert_true(step->to + step->len <= n);
                for (int64_t k = 0; k < step->len; k++)
                    assert_false(unread[step->to + k]++);
            } else if (step->kind == ZERO_STEP_ADD) {
                assert_int_equal(op.steps[step->after].kind, ZERO_STEP_RECEIVE);
                assert_int_equal(step->to, added);
                added += step->len;
                for (int t = 0; t < size - 1; t++)
                    for (int64_t k = 0; k < step->len; k++)
                        assert_true(unread[step->staged + t * op.chunk + k]--);
                assert_int_equal(op.steps[step->after].to,
                                 step->staged + (size - 2) * op.chunk);
            }
        }
        assert_int_equal(added, 1500);
        free(unread);
        zero_collective_destroy(&op);
    }
}

static void staging_is_bounded_and_never_shrinks_with_the_count(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 3, 4, 5, 8, 9, 10, 100, 1024, 8192};
    for (size_t s = 0; s < LENGTH(sizes); s++) {
        int64_t last = 0;
        for (int64_t count = 0; count < 1 << 22; count += 1 + count / 7) {
            zero_collective_spec spec = {ZERO_REDUCE_SCATTER, count, count, 0};
            int64_t staging = zero_collective_staging(&spec, sizes[s]);
            assert_true(staging >= last && staging <= ZERO_COLLECTIVE_STAGING);
            last = staging;
        }
    }
}

static void nonsense_is_refused_with_numbers(void **state)
{
    (void)state;
    static const zero_collective_spec nonsense[] = {
        {ZERO_REDUCE_SCATTER, -1, 10, 0},
        {ZERO_REDUCE_SCATTER, 11, 10, 0},
        {ZERO_ALL_GATHER, 1, INT64_MAX, 0},
        {ZERO_ALL_GATHER, 10, 10, -1},
        {ZERO_ALL_GATHER, 10, 10, INT64_C(1) << 29},
    };
    for (size_t i = 0; i < LENGTH(nonsense); i++) {
        zero_collective op = {.tag = 42};
        assert_int_equal(zero_collective_init(&op, &world, &nonsense[i]), ZERO_ERR_INVALID);
        assert_non_null(strpbrk(zero_last_error(), "0123456789"));
        assert_int_equal(op.tag, 42);
    }
}

static void a_program_is_printed_line_by_line(void **state)
{
    (void)state;
    zero_comm comm = {.rank = 1, .size = 3};
    zero_collective op = build(ZERO_REDUCE_SCATTER, &comm, 100, 64);
    FILE *file = tmpfile();
    assert_non_null(file);
    zero_collective_print(&op, file);
    rewind(file);
    int lines = 0;
    for (int c; (c = getc(file)) != EOF;) lines += c == '\n';
    assert_int_equal(lines, 1 + op.n_steps);
    assert_int_equal(op.n_steps, 2 * (2 * 2 + 1));
    fclose(file);
    zero_collective_destroy(&op);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owners_receive_the_tree_sum_of_every_shape),
        cmocka_unit_test(all_ranks_receive_every_piece_of_every_shape),
        cmocka_unit_test(pieces_of_many_full_chunks_arrive),
        cmocka_unit_test(nan_and_infinity_pass_through_a_sum),
        cmocka_unit_test(several_are_in_flight_and_ranks_are_late),
        cmocka_unit_test(a_program_runs_again_and_again_through_few_tags),
        cmocka_unit_test(traffic_is_the_formula),
        cmocka_unit_test(an_all_reduce_gives_all_ranks_the_sum),
        cmocka_unit_test(every_send_meets_its_receive),
        cmocka_unit_test(staging_is_read_before_it_is_written_again),
        cmocka_unit_test(staging_is_bounded_and_never_shrinks_with_the_count),
        cmocka_unit_test(nonsense_is_refused_with_numbers),
        cmocka_unit_test(a_program_is_printed_line_by_line),
    };
    test_begin(&argc, &argv);
    return test_end(cmocka_run_group_tests(tests, set_up, tear_down));
}
