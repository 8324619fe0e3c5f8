/* zero/collective.h on every kind, type and reduction: values, bits, bytes, orders, threads. The
 * library is libzero_collective.so, as others load it. */
#define TEST_HAS_MAIN
#include "support/mpi_cmocka.h"

#include <pthread.h>
#include <unistd.h>

#include "zero/collective.h"
#include "zero/version.h"

static zero_comm *world;

/* ---- numbers ---- */

#define NUMBERS (ZERO_NUMBER_INT64 + 1)

static bool is_float(zero_number number)
{
    return number <= ZERO_NUMBER_FP64;
}

static void put(zero_number number, void *data, int64_t i, double x)
{
    float narrow = (float)x;
    char *at = (char *)data + (size_t)i * zero_number_size(number);
    switch (number) {
    case ZERO_NUMBER_FP64: memcpy(at, &x, 8); break;
    case ZERO_NUMBER_INT8: *(int8_t *)at = (int8_t)x; break;
    case ZERO_NUMBER_UINT8: *(uint8_t *)at = (uint8_t)x; break;
    case ZERO_NUMBER_INT16: *(int16_t *)at = (int16_t)x; break;
    case ZERO_NUMBER_INT32: *(int32_t *)at = (int32_t)x; break;
    case ZERO_NUMBER_INT64: *(int64_t *)at = (int64_t)x; break;
    default: zero_convert(ZERO_FP32, (zero_type)number, 1, &narrow, at);
    }
}

/* What rank r has at element i: exact in all types, and so are all reductions but means, whose
 * sums are not exact in 16 bits. */
static double value(zero_reduction reduction, int rank, int64_t i)
{
    if (reduction == ZERO_PRODUCT) return (double)((rank + i) % 2 + 1);
    if (reduction == ZERO_MEAN) return (double)((rank * 37 + i * 3 + i / 11) % 251);
    return (double)((rank * 7 + i * 3 + i / 11) % 9);
}

static double expected(zero_reduction reduction, zero_number number, int n, int64_t i)
{
    double all = value(reduction, 0, i);
    for (int r = 1; r < n; r++) {
        double x = value(reduction, r, i);
        switch (reduction) {
        case ZERO_SUM:
        case ZERO_MEAN: all += x; break;
        case ZERO_PRODUCT: all *= x; break;
        case ZERO_LEAST: all = fmin(all, x); break;
        case ZERO_GREATEST: all = fmax(all, x); break;
        case ZERO_AND: all = (double)((int)all & (int)x); break;
        case ZERO_OR: all = (double)((int)all | (int)x); break;
        case ZERO_XOR: all = (double)((int)all ^ (int)x); break;
        }
    }
    if (reduction != ZERO_MEAN) return all;
    return number == ZERO_NUMBER_FP64 ? all / n : (double)((float)all / (float)n);
}

/* The number of wrong elements of data[count], which is a reduction from element `first` on. */
static int64_t wrong(zero_reduction reduction, zero_number number, int n, int64_t first,
                     int64_t count, const void *data)
{
    const size_t size = zero_number_size(number);
    int64_t bad = 0;
    for (int64_t i = 0; i < count; i++) {
        char want[8];
        put(number, want, 0, expected(reduction, number, n, first + i));
        bad += memcmp(want, (const char *)data + (size_t)i * size, size) != 0;
    }
    return bad;
}

static void *filled(zero_reduction reduction, zero_number number, int rank, int64_t count)
{
    char *data = malloc((size_t)count * zero_number_size(number) + 8);
    assert_non_null(data);
    for (int64_t i = 0; i < count; i++) put(number, data, i, value(reduction, rank, i));
    memset(data + (size_t)count * zero_number_size(number), 0x5a, 8);
    return data;
}

/* True if nothing was written after data[count]. */
static bool ends_well(zero_number number, int64_t count, const void *data)
{
    static const char guard[] = "ZZZZZZZZ";
    return memcmp((const char *)data + (size_t)count * zero_number_size(number), guard,
                  8) == 0;
}

static void end(zero_work *work)
{
    bool done = false;
    assert_ok(zero_work_wait(work, 0.0, &done));
    assert_true(done);
    zero_work_close(&work);
}

static bool goes(zero_reduction reduction, zero_number number)
{
    return is_float(number) ? reduction < ZERO_AND : reduction != ZERO_MEAN;
}

/* Counts around the number of ranks, and of chunks. */
static int n_counts(zero_number number)
{
    return number <= ZERO_NUMBER_BF16 ? 7 : 6;
}
static int64_t count_at(int k, int n)
{
    const int64_t counts[] = {0, 1, n - 1, n, n + 1, 1000, (1 << 20) + 1};
    return counts[k];
}

/* ---- reductions ---- */

static int64_t reduce_all(zero_reduction r, zero_number t, int64_t count)
{
    const int n = test_size, root = (int)(count % n);
    zero_work *work;
    int64_t bad = 0;
    char *data = filled(r, t, test_rank, count);
    assert_ok(zero_all_reduce_begin(world, r, t, count, data, &work));
    end(work);
    bad += wrong(r, t, n, 0, count, data) + !ends_well(t, count, data);
    free(data);

    data = filled(r, t, test_rank, count);
    assert_ok(zero_reduce_begin(world, r, t, count, root, data, &work));
    end(work);
    bad += wrong(r, t, test_rank == root ? n : 1, 0, test_rank == root ? count : 0, data);
    if (test_rank != root) {
        char *same = filled(r, t, test_rank, count);
        bad += memcmp(same, data, (size_t)count * zero_number_size(t)) != 0;
        free(same);
    }
    free(data);
    return bad;
}

static int64_t scatter_all(zero_reduction r, zero_number t, int64_t count, bool in_place)
{
    const int n = test_size;
    const size_t size = zero_number_size(t);
    zero_work *work;
    char *in = filled(r, t, test_rank, n * count);
    char *out = in_place ? in + (size_t)(test_rank * count) * size
                         : malloc((size_t)count * size + 8);
    assert_non_null(out);
    assert_ok(zero_reduce_scatter_begin(world, r, t, count, in, out, &work));
    end(work);
    int64_t bad =
        wrong(r, t, n, test_rank * count, count, out) + !ends_well(t, n * count, in);
    if (!in_place) free(out);
    free(in);
    return bad;
}

static void every_reduction_of(zero_number t)
{
    for (int r = 0; r <= ZERO_XOR; r++)
        for (int k = 0; k < n_counts(t); k++) {
            zero_reduction reduction = (zero_reduction)r;
            int64_t count = count_at(k, test_size);
            if (!goes(reduction, t) || (count > 1000 && r > ZERO_MEAN)) continue;
            assert_all(reduce_all(reduction, t, count) == 0);
            assert_all(scatter_all(reduction, t, count, false) == 0);
            assert_all(scatter_all(reduction, t, count, true) == 0);
        }
}

TEST(reductions_of_fp32)
{
    every_reduction_of(ZERO_NUMBER_FP32);
}
TEST(reductions_of_bf16)
{
    every_reduction_of(ZERO_NUMBER_BF16);
}
TEST(reductions_of_fp16)
{
    every_reduction_of(ZERO_NUMBER_FP16);
}
TEST(reductions_of_fp64)
{
    every_reduction_of(ZERO_NUMBER_FP64);
}
TEST(reductions_of_integers)
{
    for (int t = ZERO_NUMBER_INT8; t < NUMBERS; t++) every_reduction_of((zero_number)t);
}

/* ---- data that travel ---- */

static void fill_bytes(char *data, size_t n, int rank)
{
    for (size_t i = 0; i < n; i++) data[i] = (char)(rank * 31 + (int)(i * 7));
}

static bool are_bytes_of(const char *data, size_t n, int rank)
{
    for (size_t i = 0; i < n; i++)
        if (data[i] != (char)(rank * 31 + (int)(i * 7))) return false;
    return true;
}

static bool gather(zero_comm *comm, size_t bytes, bool in_place)
{
    const int n = zero_comm_size(comm), me = zero_comm_rank(comm);
    zero_work *work;
    char *out = calloc((size_t)n, bytes + 1), *own = malloc(bytes + 1);
    assert_true(out && own);
    char *in = in_place ? out + (size_t)me * bytes : own;
    fill_bytes(in, bytes, me);
    assert_ok(zero_all_gather_begin(comm, bytes, in, out, &work));
    end(work);
    bool ok = true;
    for (int r = 0; r < n; r++) ok = ok && are_bytes_of(out + (size_t)r * bytes, bytes, r);
    free(out);
    free(own);
    return ok;
}

static bool spread(zero_comm *comm, size_t bytes, int root)
{
    zero_work *work;
    char *data = calloc(1, bytes + 1);
    assert_non_null(data);
    if (zero_comm_rank(comm) == root) fill_bytes(data, bytes, root);
    assert_ok(zero_broadcast_begin(comm, bytes, root, data, &work));
    end(work);
    bool ok = are_bytes_of(data, bytes, root) && data[bytes] == 0;
    free(data);
    return ok;
}

TEST(any_number_of_bytes_travels)
{
    const size_t sizes[] = {
        0, 1, 3, (size_t)test_size + 1, 1000, 4099, ((size_t)1 << 20) + 1};
    for (size_t k = 0; k < COUNT(sizes); k++) {
        assert_all(gather(world, sizes[k], false));
        assert_all(gather(world, sizes[k], true));
        for (int root = 0; root < test_size; root++)
            assert_all(spread(world, sizes[k], root));
    }
}

/* Rank r sends s + 2 r + 1 bytes to rank s. */
TEST(an_exchange_is_an_all_to_all_of_any_sizes)
{
    enum { ROOM = 64 };
    char in[16][ROOM] = {0}, out[16][ROOM] = {0};
    zero_message messages[32];
    zero_work *work;
    for (int run = 0; run < 3; run++) {
        for (int r = 0; r < test_size; r++) {
            size_t to = (size_t)(r + 2 * test_rank + 1),
                   from = (size_t)(test_rank + 2 * r + 1);
            fill_bytes(out[r], to, test_rank);
            messages[2 * r] = (zero_message){r, false, -1, out[r], to};
            messages[2 * r + 1] = (zero_message){r, true, -1, in[r], from};
        }
        assert_ok(zero_exchange_begin(world, 2 * test_size, messages, &work));
        end(work);
        for (int r = 0; r < test_size; r++)
            assert_all(are_bytes_of(in[r], (size_t)(test_rank + 2 * r + 1), r));
    }
}

/* Tags keep messages apart, whatever the order. */
TEST(messages_meet_by_tag)
{
    int got[3] = {-1, -1, -1}, sent[3] = {10, 11, 12};
    zero_work *works[6];
    const int next = (test_rank + 1) % test_size,
              last = (test_rank + test_size - 1) % test_size;
    for (int i = 0; i < 3; i++) {
        zero_message send = {next, false, i, &sent[i], sizeof sent[i]};
        zero_message receive = {last, true, 2 - i, &got[2 - i], sizeof got[i]};
        assert_ok(zero_exchange_begin(world, 1, &send, &works[2 * i]));
        assert_ok(zero_exchange_begin(world, 1, &receive, &works[2 * i + 1]));
    }
    for (int i = 5; i >= 0; i--) end(works[i]);
    for (int i = 0; i < 3; i++) assert_all(got[i] == 10 + i);
}

TEST(a_barrier_waits_for_all)
{
    zero_work *work;
    bool done = true;
    if (test_rank == test_size - 1) {
        usleep(100000);
    } else {
        assert_ok(zero_barrier_begin(world, &work));
        for (int i = 0; i < 100; i++) assert_ok(zero_work_test(work, &done));
        assert_false(done);
        assert_ok(zero_work_wait(work, 1e-3, &done));
        assert_false(done);
        end(work);
    }
    if (test_rank == test_size - 1) {
        assert_ok(zero_barrier_begin(world, &work));
        end(work);
    }
}

/* ---- bits and bytes ---- */

static float tree(int first, int n, const float *x)
{
    int left = 1;
    if (n == 1) return x[first];
    while (2 * left < n) left *= 2;
    return tree(first, left, x) + tree(first + left, n - left, x);
}

static float noise(int rank, int64_t i)
{
    uint32_t x = (uint32_t)(rank * 7919 + i) * 2654435761u;
    return (float)(int32_t)(x ^ x >> 15) * 1e-6f;
}

TEST(all_reductions_have_the_bits_of_the_tree)
{
    enum { COUNT_ = 3001 };
    const int n = test_size;
    float *in = malloc((size_t)n * COUNT_ * sizeof *in),
          *all = malloc((size_t)n * COUNT_ * sizeof *in);
    float *one = malloc((size_t)n * COUNT_ * sizeof *in), piece[COUNT_];
    zero_work *work[3];
    assert_true(in && all && one);
    for (int mean = 0; mean < 2; mean++) {
        const zero_reduction r = mean ? ZERO_MEAN : ZERO_SUM;
        for (int64_t i = 0; i < n * COUNT_; i++)
            in[i] = all[i] = one[i] = noise(test_rank, i);
        assert_ok(zero_reduce_scatter_begin(world, r, ZERO_NUMBER_FP32, COUNT_, in, piece,
                                            &work[0]));
        assert_ok(
            zero_all_reduce_begin(world, r, ZERO_NUMBER_FP32, n * COUNT_, all, &work[1]));
        assert_ok(zero_reduce_begin(world, r, ZERO_NUMBER_FP32, n * COUNT_, n - 1, one,
                                    &work[2]));
        for (int k = 2; k >= 0; k--) end(work[k]);
        bool same = true, scattered = true, rooted = true;
        for (int64_t i = 0; i < n * COUNT_; i++) {
            float terms[16];
            for (int k = 0; k < n; k++) terms[k] = noise(k, i);
            float want = tree(0, n, terms);
            if (mean) want /= (float)n;
            same = same && memcmp(&want, &all[i], 4) == 0;
            if (i / COUNT_ == test_rank)
                scattered = scattered && memcmp(&want, &piece[i % COUNT_], 4) == 0;
            if (test_rank == n - 1) rooted = rooted && memcmp(&want, &one[i], 4) == 0;
        }
        assert_all(same);
        assert_all(scattered);
        assert_all(rooted);
    }
    free(in);
    free(all);
    free(one);
}

TEST(bytes_are_the_closed_forms)
{
    enum { COUNT_ = 1200 };
    const int64_t n = test_size, bytes = 4 * n * COUNT_;
    zero_comm_bytes before, after;
    float *a = calloc((size_t)n * COUNT_ + 16, 4), *b = calloc((size_t)n * COUNT_, 4);
    zero_work *w[4];
    zero_comm_traffic(world, &before);
    assert_ok(zero_reduce_scatter_begin(world, ZERO_SUM, ZERO_NUMBER_FP32, COUNT_, a,
                                        a + COUNT_ * test_rank, &w[0]));
    end(w[0]);
    assert_ok(zero_all_gather_begin(world, 4 * COUNT_, a, b, &w[1]));
    assert_ok(zero_all_reduce_begin(world, ZERO_MEAN, ZERO_NUMBER_FP32, n * COUNT_ + n - 1,
                                    a, &w[2]));
    for (int k = 1; k < 3; k++) end(w[k]);
    zero_comm_traffic(world, &after);
    assert_all(after.reduce_scatter.bytes_sent - before.reduce_scatter.bytes_sent ==
               bytes * (n - 1) / n);
    assert_all(after.reduce_scatter.bytes_received - before.reduce_scatter.bytes_received ==
               bytes * (n - 1) / n);
    assert_all(after.all_gather.bytes_sent - before.all_gather.bytes_sent ==
               bytes * (n - 1) / n);
    assert_all(after.all_reduce.bytes_sent - before.all_reduce.bytes_sent ==
               2 * bytes * (n - 1) / n + (n - 1) * 4 * (n - 1));
    free(a);
    free(b);
}

/* ---- orders, groups, threads ---- */

TEST(thirty_in_flight_are_waited_for_in_reverse)
{
    enum { N = 30 };
    zero_work *work[N];
    int64_t *data[N];
    for (int i = 0; i < N; i++) {
        data[i] = filled(ZERO_SUM, ZERO_NUMBER_INT64, test_rank, 100 + i);
        assert_ok(zero_all_reduce_begin(world, ZERO_SUM, ZERO_NUMBER_INT64, 100 + i % 3,
                                        data[i], &work[i]));
    }
    for (int i = N - 1; i >= 0; i--) {
        end(work[i]);
        assert_all(wrong(ZERO_SUM, ZERO_NUMBER_INT64, test_size, 0, 100 + i % 3, data[i]) ==
                   0);
        free(data[i]);
    }
}

/* More shapes than are kept. */
TEST(two_hundred_shapes)
{
    for (int i = 0; i < 200; i++)
        assert_all(reduce_all(ZERO_SUM, ZERO_NUMBER_INT32, 10 + i) == 0);
}

/* Neighbours and their neighbours, begun in different orders. */
TEST(groups_overlap)
{
    zero_comm *low = NULL, *high = NULL;
    int ranks[16], n = test_size;
    for (int r = 0; r < n; r++) ranks[r] = r;
    if (n < 3) return;
    if (test_rank < n - 1)
        assert_ok(zero_comm_open_ranks(world, n - 1, ranks, "low", &low));
    if (test_rank > 0)
        assert_ok(zero_comm_open_ranks(world, n - 1, ranks + 1, "high", &high));
    for (int run = 0; run < 20; run++) {
        int32_t a = test_rank, b = test_rank;
        zero_work *first = NULL, *second = NULL;
        if (test_rank % 2 == 0 && high)
            assert_ok(
                zero_all_reduce_begin(high, ZERO_SUM, ZERO_NUMBER_INT32, 1, &b, &second));
        if (low)
            assert_ok(
                zero_all_reduce_begin(low, ZERO_SUM, ZERO_NUMBER_INT32, 1, &a, &first));
        if (test_rank % 2 == 1 && high)
            assert_ok(
                zero_all_reduce_begin(high, ZERO_SUM, ZERO_NUMBER_INT32, 1, &b, &second));
        if (first) end(first);
        if (second) end(second);
        assert_all(!low || a == (n - 1) * (n - 2) / 2);
        assert_all(!high || b == n * (n - 1) / 2);
    }
    zero_comm_close(&high);
    zero_comm_close(&low);
    assert_all(low == NULL && high == NULL);
}

static void *run_many(void *arg)
{
    zero_comm *comm = arg;
    int64_t bad = 0;
    for (int i = 0; i < 100; i++) {
        int64_t data[2] = {test_rank, i};
        zero_work *work;
        bool done;
        if (zero_all_reduce_begin(comm, ZERO_SUM, ZERO_NUMBER_INT64, 2, data, &work) !=
                ZERO_OK ||
            (i % 2 ? zero_work_wait(work, 0.0, &done)
                   : zero_work_wait_beside(work, 0.0, &done)) != ZERO_OK)
            bad++;
        zero_work_close(&work);
        bad += data[0] != test_size * (test_size - 1) / 2 || data[1] != i * test_size;
    }
    return bad == 0 ? comm : NULL;
}

TEST(two_threads_begin_and_wait)
{
    int ranks[16];
    zero_comm *other;
    pthread_t thread;
    void *here, *there;
    for (int r = 0; r < test_size; r++) ranks[r] = r;
    assert_ok(zero_comm_open_ranks(world, test_size, ranks, "other", &other));
    assert_int_equal(pthread_create(&thread, NULL, run_many, other), 0);
    here = run_many(world);
    pthread_join(thread, &there);
    assert_all(here && there);
    zero_comm_close(&other);
}

/* The library's thread moves it while nobody looks. */
TEST(what_nobody_waits_for_ends)
{
    zero_comm_bytes before, after;
    zero_work *work;
    bool done = false;
    const int64_t count = 1200000;
    float *data = calloc((size_t)count, sizeof *data);
    zero_comm_traffic(world, &before);
    assert_ok(zero_all_reduce_begin(world, ZERO_SUM, ZERO_NUMBER_FP32, count, data, &work));
    for (int i = 0; i < 1000; i++) {
        zero_comm_traffic(world, &after);
        if (after.all_reduce.bytes_sent - before.all_reduce.bytes_sent ==
            2 * 4 * count * (test_size - 1) / test_size)
            break;
        usleep(10000);
    }
    assert_all(after.all_reduce.bytes_sent - before.all_reduce.bytes_sent ==
               8 * count * (test_size - 1) / test_size);
    end(work);
    (void)done;
    free(data);
}

TEST(close_waits_for_what_is_in_flight)
{
    zero_work *work;
    int32_t *data = filled(ZERO_SUM, ZERO_NUMBER_INT32, test_rank, 1000);
    assert_ok(zero_all_reduce_begin(world, ZERO_SUM, ZERO_NUMBER_INT32, 1000, data, &work));
    zero_work_close(&work);
    assert_null(work);
    zero_work_close(&work);
    zero_work_close(NULL);
    assert_all(wrong(ZERO_SUM, ZERO_NUMBER_INT32, test_size, 0, 1000, data) == 0);
    free(data);
}

/* ---- shared memory ---- */

/* Data lie at different places on different ranks, and on the last one perhaps not in the shared
 * memory at all. */
static void share_memory(zero_comm *group, bool all_shared)
{
    enum { COUNT_ = 50000 };
    const int64_t n = test_size;
    const bool mine = all_shared || test_rank < n - 1;
    zero_comm_bytes before, after;
    void *gap = zero_comm_allocate(group, (size_t)(4096 * test_rank + 1));
    const size_t bytes = (size_t)n * COUNT_ * sizeof(float);
    float *data[3];
    zero_work *work[3];
    for (int k = 0; k < 3; k++) {
        data[k] = mine ? zero_comm_allocate(group, bytes) : malloc(bytes);
        assert_non_null(data[k]);
    }
    zero_comm_traffic(group, &before);
    for (int64_t i = 0; i < n * COUNT_; i++) {
        data[0][i] = (float)value(ZERO_MEAN, test_rank, i);
        data[1][i] = (float)value(ZERO_SUM, test_rank, i);
        data[2][i] = (float)test_rank;
    }
    float *own = data[2] + test_rank * COUNT_;
    assert_ok(zero_reduce_scatter_begin(group, ZERO_MEAN, ZERO_NUMBER_FP32, COUNT_, data[0],
                                        data[0] + test_rank * COUNT_, &work[0]));
    assert_ok(zero_all_reduce_begin(group, ZERO_SUM, ZERO_NUMBER_FP32, n * COUNT_, data[1],
                                    &work[1]));
    assert_ok(zero_all_gather_begin(group, COUNT_ * sizeof(float), own, data[2], &work[2]));
    for (int k = 2; k >= 0; k--) end(work[k]);
    zero_comm_traffic(group, &after);
    assert_all(wrong(ZERO_MEAN, ZERO_NUMBER_FP32, test_size, test_rank * COUNT_, COUNT_,
                     data[0] + test_rank * COUNT_) == 0);
    assert_all(wrong(ZERO_SUM, ZERO_NUMBER_FP32, test_size, 0, n * COUNT_, data[1]) == 0);
    bool gathered = true;
    for (int64_t i = 0; i < n * COUNT_; i++)
        gathered = gathered && data[2][i] == (float)(i / COUNT_);
    assert_all(gathered);
    int64_t messages = after.reduce_scatter.messages_sent -
                       before.reduce_scatter.messages_sent +
                       after.all_gather.messages_sent - before.all_gather.messages_sent +
                       after.all_reduce.messages_sent - before.all_reduce.messages_sent;
    assert_all(all_shared || n == 1 ? messages == 0 : messages > 0);
    assert_all(after.all_reduce.bytes_sent - before.all_reduce.bytes_sent ==
               (int64_t)bytes * 2 * (n - 1) / n);
    for (int k = 0; k < 3; k++) mine ? zero_comm_free(group, data[k]) : free(data[k]);
    zero_comm_free(group, gap);
}

TEST(neighbours_read_what_lies_in_shared_memory)
{
    int ranks[16];
    zero_comm *group;
    for (int r = 0; r < test_size; r++) ranks[r] = r;
    assert_ok(zero_comm_open_ranks(world, test_size, ranks, "sharing", &group));
    assert_all(zero_comm_allocate(group, 1) == NULL);
    all_ok(zero_comm_share(group, (size_t)8 << 20));
    all_fail(zero_comm_share(group, 1), ZERO_ERR_INVALID, "shares memory already");
    for (int run = 0; run < 3; run++) {
        share_memory(group, true);
        share_memory(group, false);
    }
    void *all =
        zero_comm_allocate(group, (size_t)8 << 20); /* the parts were joined again */
    assert_all(all != NULL);
    assert_all(zero_comm_allocate(group, 1) == NULL);
    zero_comm_free(group, all);
    zero_comm_close(&group);
}

/* ---- refusals ---- */

TEST(refused_with_the_reason)
{
    zero_work *work = NULL;
    float x[4] = {0};
    int twice[] = {0, 0}, far[] = {0, test_size}, other[] = {test_size - 1 - test_rank};
    zero_comm *group;
    all_fail(zero_all_reduce_begin(world, ZERO_MEAN, ZERO_NUMBER_INT32, 1, x, &work),
             ZERO_ERR_UNSUPPORTED, "the mean of int32");
    all_fail(zero_all_reduce_begin(world, ZERO_XOR, ZERO_NUMBER_FP32, 1, x, &work),
             ZERO_ERR_UNSUPPORTED, "the xor of fp32");
    all_fail(zero_all_reduce_begin(world, ZERO_SUM, ZERO_NUMBER_FP32, -1, x, &work),
             ZERO_ERR_INVALID, "-1");
    all_fail(zero_reduce_begin(world, ZERO_SUM, ZERO_NUMBER_FP32, 1, test_size, x, &work),
             ZERO_ERR_INVALID, "root");
    all_fail(zero_broadcast_begin(world, 4, 0, NULL, &work), ZERO_ERR_INVALID, "NULL");
    all_fail(zero_world_set_watchdog(world, 0.0), ZERO_ERR_INVALID, "watchdog of 0 s");
    all_fail(zero_all_gather_begin(NULL, 4, x, x, &work), ZERO_ERR_INVALID, "NULL");
    all_fail(
        zero_exchange_begin(world, 1, &(zero_message){test_size, true, 0, x, 4}, &work),
        ZERO_ERR_INVALID, "message 0");
    all_fail(zero_comm_open_ranks(world, 2, twice, "twice", &group), ZERO_ERR_INVALID,
             test_size > 1 ? "twice" : "expected 1 to 1 ranks");
    if (test_size > 1)
        all_fail(zero_comm_open_ranks(world, 2, far, "far", &group), ZERO_ERR_INVALID,
                 "has rank");
    if (test_size % 2 == 0)
        all_fail(zero_comm_open_ranks(world, 1, other, "other", &group), ZERO_ERR_INVALID,
                 "only its ranks may");
    assert_all(work == NULL);
    assert_string_equal(zero_version(), ZERO_VERSION_STRING);
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE,
                    &provided); /* assert_all() calls MPI */
    test_begin(&argc, &argv);
    if (zero_world_open(20.0, &world) != ZERO_OK) return 1;
    int failed = run_here(NULL, NULL);
    if (zero_world_close(&world) != ZERO_OK) return 1;
    return test_end(failed);
}
