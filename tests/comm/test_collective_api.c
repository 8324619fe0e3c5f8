/* zero/collective.h on every kind, type and reduction: values, bits, bytes, refusals. The library is
 * libzero_collective.so, as others load it. */
#include "collective_api.h"

#include "zero/version.h"

#define NUMBERS (ZERO_NUMBER_INT64 + 1)

static bool is_float(zero_number number)
{
    return number <= ZERO_NUMBER_FP64;
}

/* True if nothing was written after data[count]. */
static bool ends_well(zero_number number, int64_t count, const void *data)
{
    static const char guard[] = "ZZZZZZZZ";
    return memcmp((const char *)data + (size_t)count * zero_number_size(number), guard,
                  8) == 0;
}

static bool goes(zero_reduction reduction, zero_number number)
{
    return is_float(number) ? reduction < ZERO_AND : reduction != ZERO_MEAN;
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

/* Counts around the number of ranks, and of chunks. */
static void every_reduction_of(zero_number t)
{
    const int64_t counts[] = {
        0, 1, test_size - 1, test_size, test_size + 1, 1000, (1 << 20) + 1};
    for (int r = 0; r <= ZERO_XOR; r++)
        for (size_t k = 0; k < COUNT(counts); k++) {
            const zero_reduction reduction = (zero_reduction)r;
            const int64_t count = counts[k];
            const bool is_long = count > 1000 && (t > ZERO_NUMBER_BF16 || r > ZERO_MEAN);
            if (!goes(reduction, t) || is_long) continue;
            assert_all(reduce_all(reduction, t, count) == 0);
            assert_all(scatter_all(reduction, t, count, false) == 0);
            assert_all(scatter_all(reduction, t, count, true) == 0);
        }
}

TEST(every_reduction_of_every_type)
{
    for (int t = 0; t < NUMBERS; t++) every_reduction_of((zero_number)t);
}

/* More shapes than are kept. */
TEST(two_hundred_shapes)
{
    for (int i = 0; i < 200; i++)
        assert_all(reduce_all(ZERO_SUM, ZERO_NUMBER_INT32, 10 + i) == 0);
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

/* Tags keep messages apart, whatever the order. */ /* ---- bits and bytes ---- */

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
