/* open_device.h - the CUDA backend as tests use it: an emulated device, or the GPU that ZERO_TEST_DEVICE
 * names, with some of its memory and of the host's. */
#pragma once

#include "support/test.h"
#include <sys/mman.h>

#include "gpu/cuda.h"
#include "math/device.h"

#define HOST_BYTES ((size_t)1 << 20)

/* An open device with a piece of its memory, and pinned memory of the host. */
typedef struct {
    const zero_backend *of;
    zero_math math;
    char *host;
    float *memory;
} device;

static inline const char *device_name(void)
{
    const char *name = getenv("ZERO_TEST_DEVICE");
    return name ? name : "cuda-emulated";
}

/* A machine may have one GPU; an emulated machine has two. */
static inline bool is_gpu(void)
{
    return strcmp(device_name(), "cuda") == 0;
}

static inline void open_device(device *d)
{
    const zero_plugin *plugin;
    void *memory;
    *d = (device){.math = {.device = is_gpu() ? 0 : 1}};
    assert_ok(zero_device_find(device_name(), &d->of, &plugin));
    assert_ok(d->of->open(&d->math));
    d->host =
        mmap(NULL, HOST_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(d->host, MAP_FAILED);
    assert_ok(d->of->memory->pin(&d->math, d->host, HOST_BYTES));
    assert_ok(d->of->memory->take(&d->math, HOST_BYTES, &memory));
    d->memory = memory;
}

static inline void close_device(device *d)
{
    d->of->close(&d->math);
    d->of->close(&d->math); /* accepts a closed one */
    munmap(d->host, HOST_BYTES);
}

static inline zero_status wait_for(device *d, zero_ticket ticket)
{
    bool ended = false;
    while (!ended) {
        zero_status st = d->of->memory->ended(&d->math, ticket, &ended);
        if (st != ZERO_OK) return st;
    }
    return ZERO_OK;
}

static inline void fetch_now(device *d, void *host, const void *memory, size_t bytes)
{
    zero_ticket ticket;
    assert_ok(d->of->memory->fetch(&d->math, host, memory, bytes, &ticket));
    assert_ok(wait_for(d, ticket));
}

/* Small whole numbers have every type, and their sums are exact. */
static inline float number_at(int64_t i, int64_t seed)
{
    return (float)((i * 7 + seed * 3 + i / 5) % 9 - 4);
}

static inline void write_at(zero_type type, void *to, int64_t i, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (type == ZERO_FP32) ((float *)to)[i] = value;
    if (type == ZERO_BF16) ((uint16_t *)to)[i] = (uint16_t)(bits >> 16);
    const uint32_t half =
        value == 0.0f
            ? 0
            : (bits >> 31 << 15) | (((bits >> 23 & 255) - 112) << 10) | (bits >> 13 & 1023);
    if (type == ZERO_FP16) ((uint16_t *)to)[i] = (uint16_t)half;
}

static inline size_t bytes_of(zero_type type, int64_t n)
{
    return (size_t)n * (type == ZERO_FP32 ? 4 : 2);
}

/* Numbers of a type at the end of what is used of the host's memory. */
static inline char *fill(device *d, size_t *used, zero_type type, int64_t n, int64_t seed)
{
    char *x = d->host + *used;
    *used += (bytes_of(type, n) + 15) / 16 * 16;
    assert_true(*used <= HOST_BYTES);
    for (int64_t i = 0; i < n; i++) write_at(type, x, i, number_at(i, seed));
    return x;
}

static inline void *on_device(const device *d, const void *host)
{
    return (char *)d->memory + ((const char *)host - d->host);
}
