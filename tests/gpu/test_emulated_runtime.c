/* Memory, streams, events and errors of the emulated device. */
#include <unistd.h>

#include "support/test.h"

#include "gpu/child.h"
#include "gpu/emulated/emulator.h"
#include "gpu/test_emulated_kernels.h"

enum { n = 1024, bytes = n * sizeof(float) };

static float host[n] __attribute__((aligned(4096))), back[n];

static float *room(void)
{
    void *memory;
    if (cudaMalloc(&memory, bytes) != cudaSuccess) abort();
    return memory;
}

/* ---- memory ---- */

static void read_device_memory(void)
{
    const volatile float *memory = room();
    if (memory[3] > 0) child_assert(false);
}

static void write_device_memory(void)
{
    volatile float *memory = room();
    memory[3] = 1;
}

static void read_after_a_kernel(void)
{
    volatile float *memory = room();
    run_scale(0, n, 1.0f, (float *)memory);
    cudaDeviceSynchronize();
    if (memory[3] > 0) child_assert(false);
}

static void write_file(void)
{
    child_assert(write(STDERR_FILENO, room(), 4) == -1);
}

TEST(the_host_cannot_touch_device_memory)
{
    static const char *const ways[] = {"ZERO_EMULATED_KEYS=1", "ZERO_EMULATED_KEYS=0"};
    const char *message = "emulator: the host touches 0x";
    for (int i = 0; i < 2; i++) {
        assert_child_ends(read_device_memory, ways[i], message, NULL);
        assert_child_ends(write_device_memory, ways[i], message, NULL);
        assert_child_ends(read_after_a_kernel, ways[i], message, NULL);
        assert_child_passes(write_file, ways[i]);
    }
}

/* The write has to happen while only device 0 computes. */
static void use_memory_of_another_device(void)
{
    child_assert(cudaSetDevice(1) == cudaSuccess);
    float *memory = room();
    child_assert(cudaSetDevice(0) == cudaSuccess);
    run_write(memory);
    cudaDeviceSynchronize();
}

TEST(a_kernel_cannot_touch_memory_of_another_device)
{
    const char *message = "which is memory of device 1";
    assert_child_ends(use_memory_of_another_device, "ZERO_EMULATED_KEYS=1", message, NULL);
    assert_child_ends(use_memory_of_another_device, "ZERO_EMULATED_KEYS=0", message, NULL);
}

static void use_after_free(void)
{
    float *memory = room();
    child_assert(cudaFree(memory) == cudaSuccess);
    run_write(memory);
    cudaDeviceSynchronize();
}

TEST(freed_memory_is_gone)
{
    assert_child_ends(use_after_free, NULL, "write_one", NULL);
}

static void take_all_memory(void)
{
    size_t free_bytes, total;
    void *first, *second;
    child_assert(cudaMemGetInfo(&free_bytes, &total) == cudaSuccess);
    child_assert(free_bytes == 100000 && total == 100000);
    child_assert(cudaMalloc(&first, 60000) == cudaSuccess);
    child_assert(cudaMalloc(&second, 60000) == cudaErrorMemoryAllocation && !second);
    child_assert(cudaGetLastError() == cudaErrorMemoryAllocation);
    child_assert(cudaGetLastError() == cudaSuccess);
    child_assert(cudaMemGetInfo(&free_bytes, &total) == cudaSuccess && free_bytes == 40000);
    child_assert(cudaFree(first) == cudaSuccess);
    child_assert(cudaMalloc(&second, 60000) == cudaSuccess);
}

TEST(a_device_has_the_memory_that_it_was_given)
{
    assert_child_passes(take_all_memory, "ZERO_EMULATED_MEMORY=100000");
}

/* ---- copies ---- */

/* ---- streams ---- */

typedef struct {
    cudaStream_t compute, up, down;
    cudaEvent_t stored, computed;
    float *memory;
} queues;

static queues make_queues(void)
{
    queues q;
    cudaStream_t *streams[] = {&q.compute, &q.up, &q.down};
    cudaEvent_t *events[] = {&q.stored, &q.computed};
    for (int i = 0; i < 3; i++)
        assert_int_equal(cudaStreamCreateWithFlags(streams[i], cudaStreamNonBlocking), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(cudaEventCreateWithFlags(events[i], cudaEventDisableTiming), 0);
    q.memory = room();
    assert_int_equal(cudaHostRegister(host, bytes, 0), cudaSuccess);
    return q;
}

static void drop_queues(queues q)
{
    assert_int_equal(cudaHostUnregister(host), cudaSuccess);
    assert_int_equal(cudaFree(q.memory), cudaSuccess);
    assert_int_equal(cudaEventDestroy(q.stored) | cudaEventDestroy(q.computed), 0);
    assert_int_equal(cudaStreamDestroy(q.compute) | cudaStreamDestroy(q.up), 0);
    assert_int_equal(cudaStreamDestroy(q.down), cudaSuccess);
}

/* Numbers go up, are doubled, and come down, on a stream each. Returns how many come back right;
 * each of the waits may be left out. */
static int send_through(queues q, bool waits_for_store, bool waits_for_kernel)
{
    int right = 0;
    for (int i = 0; i < n; i++) host[i] = (float)(i + 1);
    cudaMemcpyAsync(q.memory, host, bytes, cudaMemcpyHostToDevice, q.up);
    cudaEventRecord(q.stored, q.up);
    if (waits_for_store) cudaStreamWaitEvent(q.compute, q.stored, 0);
    run_scale(q.compute, n, 2.0f, q.memory);
    cudaEventRecord(q.computed, q.compute);
    assert_int_equal(cudaEventSynchronize(q.stored), cudaSuccess);
    if (waits_for_kernel) cudaStreamWaitEvent(q.down, q.computed, 0);
    cudaMemcpyAsync(host, q.memory, bytes, cudaMemcpyDeviceToHost, q.down);
    assert_int_equal(cudaStreamSynchronize(q.down), cudaSuccess);
    for (int i = 0; i < n; i++) right += host[i] == 2.0f * (float)(i + 1);
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    return right;
}

/* How many of 64 orders of execution give a wrong result. */
static int wrong_orders(bool waits_for_store, bool waits_for_kernel)
{
    int wrong = 0;
    queues q = make_queues();
    for (uint64_t seed = 1; seed <= 64; seed++) {
        zero_emulated_order(seed);
        wrong += send_through(q, waits_for_store, waits_for_kernel) != n;
    }
    drop_queues(q);
    return wrong;
}

/* ---- errors ---- */

static void fail_twice(void)
{
    cudaStream_t stream;
    void *other;
    child_assert(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    float *memory = room();
    child_assert(cudaMemset(memory, 0, bytes) == cudaSuccess);
    for (int i = 0; i < 3; i++) run_count(stream, 1, memory);
    child_assert(cudaStreamSynchronize(stream) == cudaErrorLaunchFailure);
    child_assert(cudaGetLastError() == cudaErrorLaunchFailure);
    child_assert(cudaGetLastError() == cudaErrorLaunchFailure);
    child_assert(cudaMalloc(&other, 16) == cudaErrorLaunchFailure);
    child_assert(cudaMemsetAsync(memory, 0, 4, stream) == cudaErrorLaunchFailure);
    child_assert(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
    child_assert(cudaSetDevice(1) == cudaSuccess && cudaMalloc(&other, 16) == cudaSuccess);
    child_assert(cudaDeviceSynchronize() == cudaSuccess);
    child_assert(cudaSetDevice(0) == cudaErrorLaunchFailure);
    cudaFree(memory);
    child_assert(cudaStreamDestroy(stream) == cudaSuccess);
}

TEST(failures_stay)
{
    assert_child_passes(fail_twice, "ZERO_EMULATED_FAIL=3");
    assert_child_passes(fail_twice, "ZERO_EMULATED_FAIL=3 ZERO_EMULATED_ORDER=0");
}

/* ---- devices ---- */

static void count_devices(void)
{
    struct cudaDeviceProp about;
    int devices, version;
    char bus[2][32];
    child_assert(cudaGetDeviceCount(&devices) == cudaSuccess && devices == 3);
    child_assert(cudaGetDeviceProperties(&about, 2) == cudaSuccess);
    child_assert(about.major == 7 && about.minor == 5 && about.totalGlobalMem == 4096);
    child_assert(strcmp(about.name, "emulated sm_75") == 0);
    child_assert(cudaGetDeviceProperties(&about, 3) == cudaErrorInvalidDevice);
    child_assert(cudaSetDevice(3) == cudaErrorInvalidDevice);
    for (int i = 0; i < 2; i++)
        child_assert(cudaDeviceGetPCIBusId(bus[i], sizeof bus[i], i) == cudaSuccess);
    child_assert(strcmp(bus[0], bus[1]) != 0);
    child_assert(cudaDriverGetVersion(&version) == cudaSuccess && version >= 13000);
}

static void find_no_device(void)
{
    int devices;
    void *memory;
    child_assert(cudaGetDeviceCount(&devices) == cudaErrorNoDevice && devices == 0);
    child_assert(cudaMalloc(&memory, 16) == cudaErrorNoDevice);
    run_scale(0, 1, 1.0f, NULL);
    child_assert(cudaGetLastError() == cudaErrorNoDevice);
}

static void get_device(void)
{
    int device;
    cudaGetDevice(&device);
}

TEST(the_environment_describes_the_devices)
{
    assert_child_passes(
        count_devices,
        "ZERO_EMULATED_DEVICES=3 ZERO_EMULATED_SM=75 ZERO_EMULATED_MEMORY=4096");
    assert_child_passes(find_no_device, "ZERO_EMULATED_DEVICES=0");
    assert_child_ends(get_device, "ZERO_EMULATED_DEVICES=9",
                      "ZERO_EMULATED_DEVICES='9': it needs a whole number from 0 to 8",
                      NULL);
    assert_child_ends(get_device, "ZERO_EMULATED_THREADS=sideways", "it needs up or down",
                      NULL);
}

TEST(fresh_memory_is_nan)
{
    float *memory = room();
    assert_int_equal(cudaMemcpy(back, memory, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
    for (int i = 0; i < n; i++) assert_true(isnan(back[i]));
    assert_int_equal(cudaFree(memory), cudaSuccess);
}

TEST(copies_are_checked)
{
    float *memory = room();
    const enum cudaMemcpyKind down = cudaMemcpyDeviceToHost, up = cudaMemcpyHostToDevice;
    assert_int_equal(cudaMemcpyAsync(memory, host, bytes, up, 0),
                     cudaErrorInvalidHostPointer);
    assert_int_equal(cudaHostRegister(host, bytes, 0), cudaSuccess);
    assert_int_equal(cudaHostRegister(host + 16, 64, 0),
                     cudaErrorHostMemoryAlreadyRegistered);
    assert_int_equal(cudaMemcpyAsync(memory, host, bytes, up, 0), cudaSuccess);
    assert_int_equal(cudaMemcpyAsync(memory, host + 1, bytes, up, 0),
                     cudaErrorInvalidHostPointer);
    assert_int_equal(cudaMemcpyAsync(memory + 1, host, bytes, up, 0),
                     cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpyAsync(memory, host, bytes, down, 0), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpyAsync(host, host, bytes, cudaMemcpyHostToHost, 0),
                     cudaErrorInvalidMemcpyDirection);
    assert_int_equal(cudaMemcpyAsync(memory, host, bytes, cudaMemcpyDefault, 0),
                     cudaErrorInvalidMemcpyDirection);
    assert_int_equal(cudaMemsetAsync(memory + 1, 0, bytes, 0), cudaErrorInvalidValue);
    assert_int_equal(cudaHostUnregister(host), cudaSuccess);
    assert_int_equal(cudaHostUnregister(host), cudaErrorHostMemoryNotRegistered);
    assert_int_equal(cudaMemcpyAsync(host, memory, bytes, down, 0),
                     cudaErrorInvalidHostPointer);
    assert_int_equal(cudaFree(memory), cudaSuccess);
    assert_int_equal(cudaFree(memory), cudaErrorInvalidValue);
    cudaGetLastError();
}

TEST(no_order_is_wrong_with_all_waits)
{
    assert_int_equal(wrong_orders(true, true), 0);
}

TEST(some_order_shows_a_missing_wait)
{
    const int without_store = wrong_orders(false, true);
    const int without_kernel = wrong_orders(true, false);
    assert_true(without_store >= 4 && without_store < 64);
    assert_true(without_kernel >= 4 && without_kernel < 64);
}

TEST(at_once_nothing_is_late)
{
    queues q = make_queues();
    zero_emulated_order(0);
    assert_int_equal(send_through(q, false, false), n);
    drop_queues(q);
    zero_emulated_order(1);
}

TEST(memory_that_a_copy_fills_is_nan_until_then)
{
    int late = 0;
    queues q = make_queues();
    assert_int_equal(cudaMemsetAsync(q.memory, 0, bytes, q.down), cudaSuccess);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        zero_emulated_order(seed);
        for (int i = 0; i < n; i++) host[i] = 7;
        cudaMemcpyAsync(host, q.memory, bytes, cudaMemcpyDeviceToHost, q.down);
        assert_true(host[5] == 0 || isnan(host[5]));
        late += host[5] != 0;
        assert_int_equal(cudaStreamSynchronize(q.down), cudaSuccess);
        assert_true(host[5] == 0);
    }
    assert_true(late > 0);
    drop_queues(q);
}

/* Asking is enough: nobody has to wait. */
TEST(events_pass_when_they_are_asked)
{
    int unfinished = 0;
    queues q = make_queues();
    for (uint64_t seed = 1; seed <= 20; seed++) {
        zero_emulated_order(seed);
        run_count(q.compute, 1, q.memory);
        cudaEventRecord(q.computed, q.compute);
        int turns = 0;
        cudaError_t answer;
        while ((answer = cudaEventQuery(q.computed)) == cudaErrorNotReady) turns++;
        assert_int_equal(answer, cudaSuccess);
        assert_true(turns < 100);
        unfinished += turns > 0;
    }
    assert_true(unfinished > 0);
    drop_queues(q);
}

TEST(the_legacy_stream_waits_for_blocking_ones)
{
    cudaStream_t blocking;
    float *memory = room();
    assert_int_equal(cudaStreamCreate(&blocking), cudaSuccess);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        zero_emulated_order(seed);
        assert_int_equal(cudaMemset(memory, 0, bytes), cudaSuccess);
        for (int i = 0; i < 5; i++) run_count(i % 2 ? 0 : blocking, 1, memory);
        run_scale(blocking, 1, 10.0f, memory);
        run_count(0, 1, memory);
        assert_int_equal(cudaMemcpy(back, memory, 4, cudaMemcpyDeviceToHost), cudaSuccess);
        assert_true(back[0] == 51.0f);
    }
    assert_int_equal(cudaStreamDestroy(blocking), cudaSuccess);
    assert_int_equal(cudaFree(memory), cudaSuccess);
}

TEST(events_tell_the_time)
{
    float *memory = room(), milliseconds = -1;
    cudaEvent_t begin, end;
    assert_int_equal(cudaEventCreate(&begin) | cudaEventCreate(&end), 0);
    assert_int_equal(cudaEventElapsedTime(&milliseconds, begin, end),
                     cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaEventRecord(begin, 0), cudaSuccess);
    run_count(0, 1000000, memory);
    assert_int_equal(cudaEventRecord(end, 0), cudaSuccess);
    assert_int_equal(cudaEventSynchronize(end), cudaSuccess);
    assert_int_equal(cudaEventElapsedTime(&milliseconds, begin, end), cudaSuccess);
    assert_true(milliseconds > 0.1f && milliseconds < 60e3f);
    assert_int_equal(cudaEventDestroy(begin) | cudaEventDestroy(end), 0);
    assert_int_equal(cudaFree(memory), cudaSuccess);
    cudaGetLastError();
}

TEST(impossible_launches_are_errors)
{
    float *memory = room();
    run_scale(0, 0, 1.0f, memory);
    assert_int_equal(cudaPeekAtLastError(), cudaErrorInvalidConfiguration);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidConfiguration);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    run_numbers((dim3){1, 1, 1}, (dim3){1025, 1, 1}, (int *)memory);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidConfiguration);
    run_scale((cudaStream_t)memory, 1, 1.0f, memory);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaFree(memory), cudaSuccess);
}
