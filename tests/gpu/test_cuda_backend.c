/* The CUDA backend's glue, on the emulated device or on a GPU: memory, copies and their tickets,
 * products in pieces, and failures. The emulator's streams run late and in random orders, so a wait
 * that is missing changes numbers. */
#include "gpu/open_device.h"

/* ---- memory and copies ---- */

TEST(memory_is_zeroed_and_aligned)
{
    device d;
    open_device(&d);
    assert_int_equal((uintptr_t)d.memory % ZERO_MEMORY_ALIGN, 0);
    memset(d.host, 1, HOST_BYTES);
    fetch_now(&d, d.host, d.memory, HOST_BYTES);
    for (size_t i = 0; i < HOST_BYTES; i++) assert_int_equal(d.host[i], 0);
    void *none;
    assert_int_equal(d.of->memory->take(&d.math, (size_t)1 << 50, &none), ZERO_ERR_NOMEM);
    assert_ok(d.of->sync(&d.math)); /* no failure that stays */
    assert_ok(d.of->memory->take(&d.math, 0, &none));
    d.of->memory->give_back(&d.math, none);
    d.of->memory->give_back(&d.math, d.memory);
    d.of->memory->unpin(&d.math, d.host);
    assert_ok(d.of->memory->pin(&d.math, d.host, HOST_BYTES));
    close_device(&d);
}

/* More copies than there are events, each of a number that a call has just made: x = 2x + 1. */
TEST(copies_wait_for_calls_and_calls_for_copies)
{
    enum { N = 64, TURNS = 2 * ZERO_CUDA_COPIES + 100 };
    device d;
    open_device(&d);
    const zero_memory *m = d.of->memory;
    float *up = (float *)d.host, *down = up + N;
    zero_ticket stored, fetched = 0, first = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        assert_ok(wait_for(&d, fetched)); /* the host writes there again */
        for (int i = 0; i < N; i++) up[i] = (float)(turn + i);
        assert_ok(m->store(&d.math, d.memory, up, N * sizeof *up, &stored));
        assert_ok(m->after(&d.math, stored));
        d.of->accumulate(&d.math, ZERO_FP32, N, d.memory, d.memory, d.memory + N);
        assert_ok(m->fetch(&d.math, down, d.memory + N, N * sizeof *down, &fetched));
        if (turn == 0) first = fetched;
        assert_ok(wait_for(&d, fetched));
        for (int i = 0; i < N; i++) assert_true(down[i] == (float)(2 * (turn + i)));
    }
    assert_ok(wait_for(&d, first));
    assert_ok(wait_for(&d, 0));
    assert_ok(m->after(&d.math, first));
    close_device(&d);
}

/* A running sum is fetched after each addition, and nothing else makes the copy wait. */
TEST(a_copy_waits_for_the_calls_before_it)
{
    enum { N = 64, TURNS = 200 };
    device d;
    open_device(&d);
    const zero_memory *m = d.of->memory;
    float *ones = (float *)d.host, *sums = ones + N, *sum = d.memory + N;
    zero_ticket ticket;
    for (int i = 0; i < N; i++) ones[i] = 1.0f;
    assert_ok(m->store(&d.math, d.memory, ones, N * sizeof *ones, &ticket));
    assert_ok(m->after(&d.math, ticket));
    for (int turn = 0; turn < TURNS; turn++, sum += N) { /* each in a place of its own */
        d.of->accumulate(&d.math, ZERO_FP32, N, sum, d.memory, sum + N);
        assert_ok(m->fetch(&d.math, sums + N * turn, sum + N, N * sizeof *sums, &ticket));
    }
    assert_ok(wait_for(&d, ticket));
    for (int i = 0; i < N * TURNS; i++) assert_true(sums[i] == (float)(i / N + 1));
    close_device(&d);
}

/* The same with later calls that overwrite a sum, beside which the copy may run: x, then 2x. A place
 * stays one after many others. */
TEST(a_copy_since_a_place_waits_for_the_calls_before_it)
{
    enum { N = 64, TURNS = 3 * ZERO_CUDA_PLACES };
    device d;
    int earlier = 0;
    open_device(&d);
    const zero_memory *m = d.of->memory;
    float *ones = (float *)d.host, *sums = ones + N;
    zero_ticket ticket;
    zero_call_place old, at;
    for (int i = 0; i < N; i++) ones[i] = 1.0f;
    assert_ok(m->store(&d.math, d.memory, ones, N * sizeof *ones, &ticket));
    assert_ok(m->after(&d.math, ticket));
    assert_ok(m->place(&d.math, &old));
    for (int turn = 0; turn < TURNS; turn++) {
        float *x = d.memory + (turn + 1) * N;
        d.of->accumulate(&d.math, ZERO_FP32, N, x, d.memory, x);
        assert_ok(m->place(&d.math, &at));
        d.of->accumulate(&d.math, ZERO_FP32, N, x, x, x);
        m->since(&d.math, at);
        assert_ok(m->fetch(&d.math, sums, x, N * sizeof *sums, &ticket));
        assert_ok(wait_for(&d, ticket));
        assert_true(sums[0] == 1.0f || sums[0] == 2.0f);
        earlier += sums[0] == 1.0f;
        m->since(&d.math, 0);
        fetch_now(&d, sums, x, N * sizeof *sums);
        assert_true(sums[N - 1] == 2.0f);
    }
    m->since(&d.math, old);
    fetch_now(&d, sums, d.memory, N * sizeof *sums);
    assert_true(sums[0] == 1.0f);
    print_message("copies ran before a later call in %d of %d turns\n", earlier, TURNS);
    /* A GPU runs a short call before the host has asked for the copy. */
    assert_true(is_gpu() || (earlier > 0 && earlier < TURNS));
    close_device(&d);
}

/* Without waits between them: copies of one direction end in their order. */
TEST(tickets_end_in_order)
{
    enum { N = 3 * ZERO_CUDA_COPIES / 2 };
    static zero_ticket tickets[N];
    device d;
    open_device(&d);
    const zero_memory *m = d.of->memory;
    for (int i = 0; i < N; i++)
        assert_ok(m->fetch(&d.math, d.host + 4 * i, d.memory + i, 4, &tickets[i]));
    assert_ok(wait_for(&d, tickets[N - 1]));
    for (int i = 0; i < N; i++) {
        bool ended = false;
        assert_ok(m->ended(&d.math, tickets[i], &ended));
        assert_true(ended);
    }
    close_device(&d);
}

/* The clock of a mark is the device's: the second one is set while the first call is still queued. */
TEST(marks_tell_the_time_of_calls)
{
    device d;
    double calls = 0.0, nothing = 0.0, all = 0.0;
    open_device(&d);
    const zero_stopwatch *watch = d.of->stopwatch;
    watch->set(&d.math, 0);
    for (int i = 0; i < 20; i++)
        d.of->clear(&d.math, (int64_t)(HOST_BYTES / sizeof(float)), d.memory);
    watch->set(&d.math, 1);
    watch->set(&d.math, watch->marks - 1);
    assert_ok(watch->between(&d.math, 0, 1, &calls));
    assert_ok(watch->between(&d.math, 1, watch->marks - 1, &nothing));
    assert_ok(watch->between(&d.math, 0, watch->marks - 1, &all));
    assert_true(calls > 0.0 && nothing >= 0.0 && nothing < calls && all >= calls);
    close_device(&d);
}

static void count_poll(void *polled)
{
    ++*(int *)polled;
}

TEST(calls_poll)
{
    device d;
    open_device(&d);
    int polled = 0;
    d.math.poll = count_poll;
    d.math.poll_arg = &polled;
    d.of->clear(&d.math, 100, d.memory);
    assert_int_equal(polled, 1);
    close_device(&d);
}

/* ---- products ---- */

typedef struct {
    zero_gemm g;
    int64_t rows_a, rows_b; /* as stored */
} product;

/* On the device and by the oracle; c begins with numbers, also between its rows. */
static void compare_product(device *d, const product *p)
{
    zero_gemm g = p->g;
    const int64_t nc = g.m * g.ldc;
    size_t used = 0;
    char *a = fill(d, &used, g.a_type, p->rows_a * g.lda, 1);
    char *b = fill(d, &used, g.b_type, p->rows_b * g.ldb, 2);
    char *c = fill(d, &used, g.c_type, nc, 3);
    const size_t bytes = used;
    char *result = fill(d, &used, g.c_type, nc, 0);
    zero_ticket ticket;
    assert_ok(d->of->memory->store(&d->math, d->memory, d->host, bytes, &ticket));
    assert_ok(d->of->memory->after(&d->math, ticket));
    g.a = on_device(d, a), g.b = on_device(d, b), g.c = on_device(d, c);
    d->of->gemm(&d->math, &g);
    fetch_now(d, result, g.c, bytes_of(g.c_type, nc));
    g.a = a, g.b = b, g.c = c;
    zero_math host = {.poll = NULL};
    zero_backend_naive.gemm(&host, &g);
    assert_memory_equal(result, c, bytes_of(g.c_type, nc));
}

/* Types of the product's factors, of a, b and c: sums that go on are fp32. */
static void compare_types(device *d, int64_t m, int64_t n, int64_t k, int64_t gap)
{
    enum { F = ZERO_FP32, B = ZERO_BF16, H = ZERO_FP16 };
    static const int types[][4] = {{F, F, F, F}, {F, F, B, F}, {B, F, B, F}, {B, F, F, F},
                                   {H, F, H, F}, {H, F, F, F}, {B, B, B, B}, {H, H, H, H},
                                   {B, F, B, B}, {H, H, F, H}, {B, B, B, F}, {F, B, B, B},
                                   {H, F, F, B}};
    for (size_t t = 0; t < COUNT(types); t++)
        for (int bits = 0; bits < 8; bits++) {
            const bool ta = bits & 1, tb = bits & 2;
            const zero_gemm g = {.transpose_a = ta,
                                 .transpose_b = tb,
                                 .accumulate = bits & 4 && types[t][3] == ZERO_FP32,
                                 .factors = (zero_type)types[t][0],
                                 .a_type = (zero_type)types[t][1],
                                 .b_type = (zero_type)types[t][2],
                                 .c_type = (zero_type)types[t][3],
                                 .m = m,
                                 .n = n,
                                 .k = k,
                                 .lda = (ta ? m : k) + gap,
                                 .ldb = (tb ? k : n) + gap,
                                 .ldc = n + gap};
            const product p = {g, ta ? k : m, tb ? n : k};
            compare_product(d, &p);
        }
}

TEST(products_are_the_oracles)
{
    device d;
    open_device(&d);
    compare_types(&d, 1, 1, 1, 0);
    compare_types(&d, 5, 9, 13, 0);
    compare_types(&d, 33, 17, 20, 3);
    compare_types(&d, 3, 4, 0, 1); /* nothing to add */
    /* Long and odd: the end is a piece of its own. */
    compare_types(&d, 3, 1031, 5, 9);
    compare_types(&d, 1029, 3, 5, 3);
    compare_types(&d, 3, 5, 1031, 1);
    assert_ok(d.of->sync(&d.math));
    close_device(&d);
}

/* With little room each of m, n and k is cut, and the last pieces are short. */
TEST(products_in_pieces_are_the_same)
{
    device d;
    open_device(&d);
    zero_cuda *c = (zero_cuda *)d.math.state[0];
    const size_t rooms[] = {64 << 10, 96 << 10, 160 << 10};
    for (size_t i = 0; i < COUNT(rooms); i++) {
        c->room.bytes = rooms[i];
        compare_types(&d, 150, 130, 140, 0);
        compare_types(&d, 30, 300, 70, 2);
        compare_types(&d, 300, 20, 200, 0);
    }
    c->room.bytes = ZERO_CUDA_ROOM_BYTES;
    close_device(&d);
}

/* ---- failures ---- */

TEST(wrong_memory_is_refused_and_the_refusal_stays)
{
    zero_ticket ticket;
    for (int which = 0; which < 4; which++) {
        device d;
        open_device(&d);
        const zero_memory *m = d.of->memory;
        const char *text = which == 0   ? "not memory of the device"
                           : which == 1 ? "not pinned host memory"
                           : which == 2 ? "not memory of the device"
                                        : "belongs to no copy";
        char unpinned[8];
        bool ended = false;
        if (which == 0)
            assert_fails(m->store(&d.math, d.host, d.host, 8, &ticket), ZERO_ERR_INVALID,
                         text);
        if (which == 1)
            assert_fails(m->fetch(&d.math, unpinned, d.memory, 8, &ticket),
                         ZERO_ERR_INVALID, text);
        if (which == 2)
            assert_fails(
                m->fetch(&d.math, d.host, (char *)d.memory + 8, HOST_BYTES, &ticket),
                ZERO_ERR_INVALID, text);
        if (which == 3) assert_fails(m->ended(&d.math, 40, &ended), ZERO_ERR_INVALID, text);
        d.of->clear(&d.math, 4, d.memory);
        assert_fails(d.of->sync(&d.math), ZERO_ERR_INVALID, text);
        assert_fails(m->fetch(&d.math, d.host, d.memory, 8, &ticket), ZERO_ERR_INVALID,
                     text);
        assert_fails(m->ended(&d.math, 0, &ended), ZERO_ERR_INVALID, text);
        m->unpin(&d.math, d.host);
        m->give_back(&d.math, d.memory);
        close_device(&d);
    }
}

TEST(wrong_pins_are_refused)
{
    device d;
    open_device(&d);
    const zero_memory *m = d.of->memory;
    assert_fails(m->pin(&d.math, d.host, 4096), ZERO_ERR_INVALID, "pinned already");
    assert_fails(m->pin(&d.math, d.host + 8, 4096), ZERO_ERR_INVALID, "whole pages");
    assert_fails(m->pin(&d.math, NULL, 4096), ZERO_ERR_INVALID, "whole pages");
    char *page = (char *)(((uintptr_t)d.memory + 4095) / 4096 * 4096);
    assert_fails(m->pin(&d.math, page, 4096), ZERO_ERR_INVALID, "memory of the device");
    assert_ok(d.of->sync(&d.math));
    close_device(&d);
}

TEST(devices_have_numbers)
{
    const zero_backend *of;
    const zero_plugin *plugin;
    zero_math math = {.device = 1000};
    assert_ok(zero_device_find(device_name(), &of, &plugin));
    assert_fails(of->open(&math), ZERO_ERR_INVALID, "there is no device 1000");
    of->close(&math);
    device d;
    open_device(&d);
    assert_ok(of->accepts(&d.math, ZERO_BF16));
    ((zero_cuda *)d.math.state[0])->capability = 70;
    assert_fails(of->accepts(&d.math, ZERO_BF16), ZERO_ERR_UNSUPPORTED, "use --dtype fp16");
    assert_ok(of->accepts(&d.math, ZERO_FP16));
    close_device(&d);
}
