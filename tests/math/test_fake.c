/* The fake device computes what the cpu backend does, in any order of its queues, on memory that
 * the host cannot touch. */
#include "support/device_test.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/calls.h"

enum { ORDERS = 20 };

/* ---- memory ---- */

static void touch(volatile char *memory, bool writes)
{
    signal(SIGSEGV, SIG_DFL); /* sanitizers catch it */
    signal(SIGBUS, SIG_DFL);
    if (writes) *memory = 1;
    _exit(memory[1] == 0 ? 0 : 1);
}

TEST(the_host_cannot_touch_memory_of_the_device)
{
    device d = device_open(1, 65536);
    for (int i = 0; i < 4; i++) {
        int status = 0;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) touch(d.memory + (i / 2 ? d.bytes - 2 : 0), i % 2);
        assert_true(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGSEGV);
    }
    device_close(&d);
}

TEST(system_calls_cannot_touch_it)
{
    int ends[2];
    device d = device_open(1, 65536);
    assert_int_equal(pipe(ends), 0);
    assert_true(write(ends[1], d.memory, 16) == -1 && errno == EFAULT);
    assert_int_equal(write(ends[1], d.host, 16), 16);
    assert_true(read(ends[0], d.memory, 16) == -1 && errno == EFAULT);
    close(ends[0]), close(ends[1]);
    device_close(&d);
}

TEST(memory_is_zeroed_aligned_and_comes_in_pieces)
{
    device d = device_open(1, 65536);
    void *piece[8];
    zero_ticket ticket;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 8; i++) {
            assert_ok(fake->memory->take(&d.math, (size_t)(1 + 5000 * i), &piece[i]));
            assert_true((uintptr_t)piece[i] % ZERO_MEMORY_ALIGN == 0);
            memset(d.host, 1, d.bytes);
            assert_ok(fake->memory->fetch(&d.math, d.host, piece[i], 4096, &ticket));
            device_wait(&d, ticket);
            for (int k = 0; k < 4096; k++) assert_true(d.host[k] == 0);
            memset(d.host, 1, d.bytes);
            assert_ok(fake->memory->store(&d.math, piece[i], d.host, 4096, &ticket));
            device_wait(&d, ticket);
        }
        for (int i = 0; i < 8; i++) fake->memory->give_back(&d.math, piece[i]);
    }
    device_close(&d);
}

/* Mappings of this process that are memory of a device; -1: this system does not list them. */
static int count_mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    int n = 0;
    if (!maps) return -1;
    while (fgets(line, sizeof line, maps)) n += strstr(line, "zero-fake-device") != NULL;
    fclose(maps);
    return n;
}

TEST(closing_gives_back_all_memory)
{
    void *piece;
    const int before = count_mappings();
    device d = device_open(1, 65536);
    for (int i = 0; i < 5; i++) assert_ok(fake->memory->take(&d.math, 4096, &piece));
    fake->memory->give_back(&d.math, piece);
    if (before >= 0) assert_int_equal(count_mappings(), before + 2 * 5);
    device_close(&d);
    assert_int_equal(count_mappings(), before);
}

/* Calls and copies that use the memory would fault if they ran later. */
TEST(what_is_queued_runs_before_memory_goes)
{
    for (int order = 0; order <= ORDERS; order++) {
        device d = device_open(order, 65536);
        void *piece;
        assert_ok(fake->memory->take(&d.math, 4096, &piece));
        zero_ticket stored = device_store(&d, 0, d.bytes);
        fake->round(&d.math, ZERO_FP32, 64, piece, device_floats(&d, 64));
        fake->memory->give_back(&d.math, piece);
        assert_ok(fake->sync(&d.math));
        stored = device_store(&d, 0, d.bytes);
        fake->memory->unpin(&d.math, d.host);
        munmap(d.host, d.bytes);
        device_wait(&d, stored);
        fake->close(&d.math);
    }
}

/* ---- arithmetic ---- */

enum { BYTES = 1 << 19 };

/* Stored in four pieces and fetched in two. */
static void load(site *w, const char *image, size_t bytes)
{
    device *d = w->room_at;
    zero_ticket last = 0;
    memcpy(d->host, image, bytes);
    for (size_t i = 0; i < 4; i++) last = device_store(d, i * BYTES / 4, BYTES / 4);
    assert_ok(fake->memory->after(&d->math, last));
}

static void save(site *w, char *image, size_t bytes)
{
    device *d = w->room_at;
    assert_ok(fake->sync(&d->math)); /* a failure is told */
    zero_ticket last = device_fetch(d, 0, BYTES / 2);
    last = device_fetch(d, BYTES / 2, BYTES / 2);
    device_wait(d, last);
    memcpy(image, d->host, bytes);
}

static void check_order(site *cpu, int order, const operation *op, shape s)
{
    device d = device_open(order, BYTES);
    site w = {
        .name = "fake", .ops = fake, .math = d.math, .memory = d.memory, .bytes = BYTES};
    w.load = load, w.save = save, w.room_at = &d;
    call want = make_call(cpu, op, &s), got = make_call(&w, op, &s);
    compare_calls(&got, &want, 0.0);
    if (got.n_arrays > 0) {
        assert_int_equal(zero_fake_counted(&d.math).bytes_fetched, BYTES);
        assert_int_equal(zero_fake_counted(&d.math).bytes_stored, BYTES);
    }
    drop_call(&want);
    drop_call(&got);
    device_close(&d);
}

TEST(all_calls_have_the_bits_of_the_cpu_backend_in_any_order)
{
    static const zero_type types[][2] = {{ZERO_FP32, ZERO_FP32},
                                         {ZERO_BF16, ZERO_FP32},
                                         {ZERO_FP16, ZERO_FP32},
                                         {ZERO_BF16, ZERO_BF16},
                                         {ZERO_FP16, ZERO_FP16}};
    static const int64_t past[] = {4, 0};
    site cpu =
        host_site("cpu", &zero_backend_cpu, *state, test_bytes(*state, HOST_BYTES), 1);
    for (int i = 0; i < n_operations; i++)
        for (size_t t = 0; t < COUNT(types); t++)
            for (int order = 0; order <= ORDERS; order += 4) {
                shape s = {.B = 2, .T = 19, .C = 24, .H = 3, .K = 1, .V = 40};
                s.type = types[t][0], s.rows = types[t][1], s.slices = order % 3;
                s.in_place = s.accumulate = order & 4, s.drops = s.lacks = order & 8;
                s.factors = s.type;
                if (order % 3 == 1) s.first = 2, s.words = 30;
                if (order % 3 == 2) s.T = 1, s.past = past;
                s.slices = order % 3;
                if (s.rows != ZERO_FP32 && !s.slices) s.slices = 1;
                check_order(&cpu, order, &operations[i], s);
            }
}

TEST(devices_of_one_process_are_apart)
{
    device a = device_open(1, 65536), b = device_open(2, 65536);
    zero_ticket ticket;
    memset(a.host, 1, a.bytes);
    device_wait(&a, device_store(&a, 0, a.bytes));
    device_wait(&b, device_fetch(&b, 0, b.bytes));
    assert_int_equal(b.host[5], 0);
    assert_int_equal(fake->memory->fetch(&b.math, b.host, a.memory, 16, &ticket),
                     ZERO_ERR_INVALID);
    assert_int_not_equal(fake->sync(&b.math), ZERO_OK);
    device_wait(&a, device_fetch(&a, 0, a.bytes));
    assert_int_equal(a.host[5], 1);
    device_close(&b);
    device_close(&a);
}
