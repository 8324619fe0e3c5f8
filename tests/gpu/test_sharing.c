/* Device memory that two processes reach, on the emulated device or on the GPU that ZERO_TEST_DEVICE
 * names: a neighbour takes memory and fills it; this process opens it, copies from it and adds it up.
 * Each test is a process of its own with a neighbour of its own, since a device is used by the process
 * that opened it. */
#define TEST_HAS_MAIN
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test.h"

#include "base/half.h"
#include "gpu/child.h"
#include "math/device.h"

/* CUDA recommends whole multiples of 2 MiB for what is shared; numbers lie at the begin. */
enum { FLOATS = 1 << 14, BYTES = FLOATS * sizeof(float), TAKEN = 2 << 20 };

typedef struct {
    const zero_backend *of;
    const zero_memory_sharing *sharing;
    zero_math math;
    float *host, *memory; /* pinned; the device's */
} device;

static const char *device_name(void)
{
    const char *name = getenv("ZERO_TEST_DEVICE");
    return name ? name : "cuda-emulated";
}

static bool is_gpu(void)
{
    return strcmp(device_name(), "cuda") == 0;
}

static void open_device(device *d, int number)
{
    const zero_plugin *plugin;
    void *memory;
    *d = (device){.math = {.device = number}};
    child_assert(zero_device_find(device_name(), &d->of, &plugin) == ZERO_OK);
    child_assert(d->of->open(&d->math) == ZERO_OK);
    d->host = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    child_assert(d->host != MAP_FAILED);
    child_assert(d->of->memory->pin(&d->math, d->host, BYTES) == ZERO_OK);
    child_assert(d->of->memory->take(&d->math, TAKEN, &memory) == ZERO_OK);
    d->memory = memory;
    d->sharing = d->of->memory->sharing;
    child_assert(d->sharing);
}

static void wait_for(device *d, zero_ticket ticket)
{
    bool ended = false;
    while (!ended) child_assert(d->of->memory->ended(&d->math, ticket, &ended) == ZERO_OK);
}

static void store_now(device *d)
{
    zero_ticket ticket;
    child_assert(d->of->memory->store(&d->math, d->memory, d->host, BYTES, &ticket) ==
                 ZERO_OK);
    wait_for(d, ticket);
}

static void fetch_now(device *d)
{
    zero_ticket ticket;
    child_assert(d->of->memory->fetch(&d->math, d->host, d->memory, BYTES, &ticket) ==
                 ZERO_OK);
    wait_for(d, ticket);
}

/* Both halves of the bits are numbers of 16 bits, too, of either sign. */
static float number(int i)
{
    const uint32_t random = (uint32_t)i * 2654435761u ^ (uint32_t)i >> 3;
    const uint32_t bits = 0x3c003c00u | (random & 0x83ff83ffu);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- the neighbour ---- */

typedef struct {
    pid_t process;
    int to, from; /* pipes */
    zero_memory_handle handle;
} neighbour;

static void tell(int pipe, const void *data, size_t bytes)
{
    child_assert(write(pipe, data, bytes) == (ssize_t)bytes);
}

static void hear(int pipe, void *data, size_t bytes)
{
    child_assert(read(pipe, data, bytes) == (ssize_t)bytes);
}

/* Fills its memory, tells the handle; on a word it fills the memory with twice the numbers. */
static void be_neighbour(int from, int to)
{
    device d;
    zero_memory_handle handle;
    char word;
    open_device(&d, 0);
    for (int i = 0; i < FLOATS; i++) d.host[i] = number(i);
    store_now(&d);
    child_assert(d.sharing->share(&d.math, d.memory, &handle) == ZERO_OK);
    tell(to, &handle, sizeof handle);
    for (int times = 2; read(from, &word, 1) == 1; times++) {
        for (int i = 0; i < FLOATS; i++) d.host[i] = (float)times * number(i);
        store_now(&d);
        tell(to, &word, 1);
    }
    d.of->close(&d.math);
    _exit(0);
}

static void begin_neighbour(neighbour *n)
{
    int down[2], up[2];
    child_assert(pipe(down) == 0 && pipe(up) == 0);
    n->process = fork();
    if (n->process == 0) {
        close(down[1]);
        be_neighbour(down[0], up[1]);
    }
    close(down[0]);
    close(up[1]);
    n->to = down[1];
    n->from = up[0];
    hear(n->from, &n->handle, sizeof n->handle);
}

static void change(const neighbour *n)
{
    char word = 1;
    tell(n->to, &word, 1);
    hear(n->from, &word, 1);
}

static void end_neighbour(const neighbour *n)
{
    int status;
    close(n->to);
    child_assert(waitpid(n->process, &status, 0) == n->process && status == 0);
}

/* ---- what it shares ---- */

static void read_neighbour(int number_of_device)
{
    neighbour n;
    device d;
    void *theirs, *again;
    zero_ticket ticket;
    begin_neighbour(&n);
    open_device(&d, number_of_device);
    child_assert(d.sharing->open(&d.math, &n.handle, &theirs) == ZERO_OK);
    for (int times = 1; times <= 2; times++) {
        child_assert(d.sharing->copy(&d.math, d.memory, theirs, BYTES, &ticket) == ZERO_OK);
        wait_for(&d, ticket);
        fetch_now(&d);
        for (int i = 0; i < FLOATS; i++)
            child_assert(d.host[i] == (float)times * number(i));
        child_assert(d.sharing->copy(&d.math, d.host, theirs, BYTES, &ticket) == ZERO_OK);
        wait_for(&d, ticket);
        for (int i = 0; i < FLOATS; i++)
            child_assert(d.host[i] == (float)times * number(i));
        if (times == 1) change(&n);
    }
    d.sharing->close(&d.math, theirs);
    child_assert(d.sharing->open(&d.math, &n.handle, &again) == ZERO_OK);
    if (!is_gpu()) end_neighbour(&n); /* its pages stay while they are open here */
    child_assert(d.sharing->copy(&d.math, d.memory, again, BYTES, &ticket) == ZERO_OK);
    wait_for(&d, ticket);
    if (!is_gpu()) /* CUDA opens again what is open already */
        child_assert(d.sharing->open(&d.math, &n.handle, &theirs) == ZERO_ERR_UNSUPPORTED);
    child_assert(d.of->sync(&d.math) == ZERO_OK); /* which is no failure of the device */
    d.of->close(&d.math);
    if (is_gpu()) end_neighbour(&n);
}

static void read_the_same_device(void)
{
    read_neighbour(0);
}

static void read_another_device(void)
{
    read_neighbour(1);
}

static void neighbours_memory_is_read_where_it_lies(void **state)
{
    (void)state;
    assert_child_passes(read_the_same_device, NULL);
    if (is_gpu()) return; /* there may be one */
    assert_child_passes(read_another_device, NULL);
    assert_child_passes(read_another_device, "ZERO_EMULATED_KEYS=0 ZERO_EMULATED_ORDER=5");
}

static void touch_neighbours_memory(void)
{
    neighbour n;
    device d;
    void *theirs;
    begin_neighbour(&n);
    open_device(&d, 0);
    child_assert(d.sharing->open(&d.math, &n.handle, &theirs) == ZERO_OK);
    if (*(const volatile float *)theirs > 0) child_assert(false);
}

static void the_host_cannot_touch_it(void **state)
{
    (void)state;
    const char *message = "emulator: the host touches 0x";
    assert_child_ends(touch_neighbours_memory, "ZERO_EMULATED_KEYS=1", message, NULL);
    assert_child_ends(touch_neighbours_memory, "ZERO_EMULATED_KEYS=0", message, NULL);
}

static void find_it_closed(void)
{
    device d;
    open_device(&d, 0);
    child_assert(d.of->memory->access(&d.math, d.memory) == ZERO_MEMORY_CLOSED);
    child_assert(d.of->memory->access(&d.math, d.host) == ZERO_MEMORY_CLOSED);
}

static void read_what_the_host_wrote(void)
{
    device d;
    open_device(&d, 0);
    child_assert(d.of->memory->access(&d.math, d.memory) == ZERO_MEMORY_OPEN);
    child_assert(d.of->sync(&d.math) == ZERO_OK); /* it has been zeroed */
    for (int i = 0; i < FLOATS; i++) d.memory[i] = number(i);
    fetch_now(&d);
    for (int i = 0; i < FLOATS; i++) child_assert(d.host[i] == number(i));
    child_assert(d.memory[FLOATS - 1] == number(FLOATS - 1)); /* still open */
}

static void it_is_open_to_the_host_if_messages_reach_it(void **state)
{
    (void)state;
    assert_child_passes(find_it_closed, "ZERO_EMULATED_MPI=0");
    assert_child_passes(read_what_the_host_wrote, "ZERO_EMULATED_MPI=1");
    assert_child_passes(read_the_same_device, "ZERO_EMULATED_MPI=1");
}

static void open_without_peers(void)
{
    neighbour n;
    device d;
    void *theirs;
    begin_neighbour(&n);
    open_device(&d, 1);
    child_assert(d.sharing->open(&d.math, &n.handle, &theirs) == ZERO_ERR_UNSUPPORTED);
    child_assert(strstr(zero_last_error(), "peer access is not supported"));
    child_assert(d.of->sync(&d.math) == ZERO_OK);
    end_neighbour(&n);
}

static void a_device_that_cannot_be_reached_is_no_failure(void **state)
{
    (void)state;
    assert_child_passes(open_without_peers, "ZERO_EMULATED_PEERS=0");
    assert_child_passes(read_the_same_device, "ZERO_EMULATED_PEERS=0");
}

/* ---- sums ---- */

static const zero_type types[][2] = {{ZERO_FP32, ZERO_FP32},
                                     {ZERO_BF16, ZERO_BF16},
                                     {ZERO_BF16, ZERO_FP32},
                                     {ZERO_FP16, ZERO_FP16},
                                     {ZERO_FP16, ZERO_FP32}};

/* The terms are parts of one piece, here or the neighbour's; odd ones are not aligned to more than
 * their elements. */
static void add_up(device *d, const char *seen, const char *real, int n,
                   const zero_type *type)
{
    enum { LEN = 77 };
    zero_tree_term terms[ZERO_MEMORY_TERMS], here[ZERO_MEMORY_TERMS];
    unsigned char want[LEN * sizeof(float)];
    const size_t step = 8 * 80, odd = zero_type_size(type[0]);
    zero_ticket ticket;
    for (int t = 0; t < n; t++) {
        const size_t at = (size_t)t * step + (n % 3 == 0 && t % 2 ? odd : 0);
        terms[t] = (zero_tree_term){seen + at, type[0], t, 1};
        here[t] = (zero_tree_term){real + at, type[0], t, 1};
    }
    zero_tree_sum(n, here, LEN, type[1], want, false);
    const zero_memory_sum sum = {n, terms, LEN, type[1], d->memory};
    child_assert(d->sharing->sum(&d->math, &sum, &ticket) == ZERO_OK);
    wait_for(d, ticket);
    fetch_now(d);
    child_assert(memcmp(d->host, want, LEN * zero_type_size(type[1])) == 0);
    const zero_memory_sum to_host = {n, terms, LEN, type[1], d->host};
    memset(d->host, 0xff, sizeof want);
    child_assert(d->sharing->sum(&d->math, &to_host, &ticket) == ZERO_OK);
    wait_for(d, ticket);
    child_assert(memcmp(d->host, want, LEN * zero_type_size(type[1])) == 0);
}

static void add_neighbours_numbers(void)
{
    neighbour n;
    device d;
    void *theirs;
    float *real = malloc(BYTES);
    child_assert(real);
    for (int i = 0; i < FLOATS; i++) real[i] = number(i);
    begin_neighbour(&n);
    open_device(&d, 0);
    child_assert(d.sharing->open(&d.math, &n.handle, &theirs) == ZERO_OK);
    for (int terms = 1; terms <= ZERO_MEMORY_TERMS; terms += terms < 18 ? 1 : 11)
        for (size_t t = 0; t < COUNT(types); t++)
            add_up(&d, theirs, (const char *)real, terms, types[t]);
    add_up(&d, theirs, (const char *)real, ZERO_MEMORY_TERMS, types[0]);
    end_neighbour(&n);
    free(real);
}

static void sums_have_the_bits_of_the_tree(void **state)
{
    (void)state;
    assert_child_passes(add_neighbours_numbers, "ZERO_EMULATED_THREADS=up");
    assert_child_passes(add_neighbours_numbers,
                        "ZERO_EMULATED_THREADS=down ZERO_EMULATED_ORDER=3");
}

/* In place, after calls that have not ended when the sum is queued, and with a mark. */
static void add_in_order(void)
{
    device d;
    zero_ticket ticket;
    open_device(&d, 0);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < FLOATS; i++) d.host[i] = number(i);
        store_now(&d);
        d.of->clear(&d.math, 100, d.memory);
        zero_tree_term terms[3];
        for (int t = 0; t < 3; t++)
            terms[t] = (zero_tree_term){d.memory + 50 * t, ZERO_FP32, t, 1};
        const zero_memory_sum sum = {3, terms, 50, ZERO_FP32, d.memory + 100};
        child_assert(d.sharing->sum(&d.math, &sum, &ticket) == ZERO_OK);
        child_assert(d.sharing->mark(&d.math, &ticket) == ZERO_OK);
        wait_for(&d, ticket);
        fetch_now(&d);
        for (int i = 0; i < 150; i++)
            child_assert(d.host[i] == (i < 100 ? 0.0f : number(i)));
    }
}

static void sums_wait_for_calls_made_before(void **state)
{
    (void)state;
    assert_child_passes(add_in_order, "ZERO_EMULATED_ORDER=1");
    assert_child_passes(add_in_order, "ZERO_EMULATED_ORDER=9");
}

/* ---- mistakes, which stay ---- */

static void refused(device *d, zero_status st, const char *words)
{
    child_assert(st == ZERO_ERR_INVALID && strstr(zero_last_error(), words));
    child_assert(d->of->sync(&d->math) == ZERO_ERR_INVALID);
    d->of->close(&d->math);
}

static void make_mistakes(void)
{
    zero_ticket ticket;
    zero_memory_handle handle;
    device d;
    open_device(&d, 0);
    refused(&d, d.sharing->share(&d.math, d.memory + 1, &handle), "take() did not give");
    open_device(&d, 0);
    refused(&d, d.sharing->copy(&d.math, d.memory, d.host, 64, &ticket), "copy()");
    open_device(&d, 0);
    refused(&d, d.sharing->copy(&d.math, &handle, d.memory, 64, &ticket),
            "pinned host memory");
    open_device(&d, 0);
    refused(&d, d.sharing->copy(&d.math, d.memory + TAKEN / 4 - 1, d.memory, 64, &ticket),
            "not memory of the device");
    zero_tree_term terms[] = {{NULL, ZERO_FP32, 0, 1}, {NULL, ZERO_BF16, 1, 1}};
    zero_memory_sum sum = {2, terms, 8, ZERO_FP32, NULL};
    open_device(&d, 0);
    terms[0].data = terms[1].data = sum.out = d.memory;
    refused(&d, d.sharing->sum(&d.math, &sum, &ticket), "of one type");
    open_device(&d, 0);
    terms[0].data = terms[1].data = sum.out = d.memory;
    terms[1].type = ZERO_FP32;
    sum.len = TAKEN / 4 + 1;
    refused(&d, d.sharing->sum(&d.math, &sum, &ticket), "sum()");
}

static void mistakes_are_refused(void **state)
{
    (void)state;
    assert_child_passes(make_mistakes, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_memory_is_read_where_it_lies),
        cmocka_unit_test(sums_have_the_bits_of_the_tree),
        cmocka_unit_test(sums_wait_for_calls_made_before),
        cmocka_unit_test(mistakes_are_refused),
    };
    const struct CMUnitTest emulated[] = {
        cmocka_unit_test(the_host_cannot_touch_it),
        cmocka_unit_test(it_is_open_to_the_host_if_messages_reach_it),
        cmocka_unit_test(a_device_that_cannot_be_reached_is_no_failure),
    };
    const int failed = cmocka_run_group_tests_name("neighbours", tests, NULL, NULL);
    if (is_gpu()) return failed;
    return failed + cmocka_run_group_tests_name("emulated", emulated, NULL, NULL);
}
