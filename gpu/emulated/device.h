/* device.h - the emulated devices: their memory, and the queues of work that streams are.
 *
 * A device has an error that stays once work has failed; nothing is executed on it any more. */
#pragma once

#include <pthread.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "gpu/emulated/cuda_runtime.h"
#include "gpu/emulated/kernel.h"

namespace emulated
{

const int most_devices = 8;

/* From the environment, when the first function is called; README.md has the list. */
struct settings {
    int devices, capability;
    std::size_t memory; /* bytes of each device */
    uint64_t order;     /* the random order's seed; 0: at once */
    int64_t failing;    /* the number of the work that fails; 0: none does */
    double call, copy;  /* a call's nanoseconds, a copied byte's picoseconds: clock.cc */
    bool has_keys;      /* protection keys may be used */
    bool has_peers;     /* devices reach each other's memory */
    bool is_open;       /* the host reaches it, and so does MPI */
    bool down;          /* order of threads */
};

struct device {
    cudaError_t error; /* that stays */
    std::size_t taken; /* bytes */
    CUstream_st *legacy;
};

struct machine {
    pthread_t owner; /* the thread that calls */
    struct settings set;
    struct device devices[most_devices];
    int current;      /* device */
    cudaError_t last; /* for cudaGetLastError() */
    std::vector<CUstream_st *> streams;
    uint64_t numbered; /* works and other entries of queues */
    int64_t works;
    uint64_t draws, moments;
    double time; /* the host's, in milliseconds: clock.cc */
};

/* The one of this process. Ends the program if a variable of the environment cannot be read. */
machine *the_machine();

/* Remembers an error for cudaGetLastError(), and returns it. */
cudaError_t note(cudaError_t error);
/* The current device's error that stays; cudaErrorNoDevice without devices. */
cudaError_t current_error();

/* ---- memory ---- */

cudaError_t memory_take(int device, std::size_t bytes, void **memory);
cudaError_t memory_give_back(void *memory);
/* Whether the range lies in one piece of the device's memory. */
bool memory_is_of(int device, const void *memory, std::size_t bytes);
/* memory_share() makes a handle of the piece that begins there; with it another process opens the piece,
 * which counts as memory of `device` in that process. */
cudaError_t memory_share(void *memory, cudaIpcMemHandle_t *handle);
cudaError_t memory_open_shared(int device, const cudaIpcMemHandle_t *handle, void **memory);
cudaError_t memory_close_shared(void *memory);
/* The device that owns the address, or -1. */
int memory_owner(const void *memory);
cudaError_t memory_register(void *host, std::size_t bytes);
cudaError_t memory_unregister(void *host);
bool memory_is_registered(const void *host, std::size_t bytes);
/* Between these two, and only there, the device's memory can be read and written. */
void memory_open(int device);
void memory_close(int device);
/* Describes an access to memory that may not be touched, before the program ends by it. */
void watch_faults();

/* ---- streams ---- */

/* A record of an event, which outlives it: the place in a stream where it stands. */
struct moment {
    CUstream_st *stream;
    uint64_t number;
    bool has_passed;
    double milliseconds; /* when that was */
    int patience;        /* questions that may still hear no */
};

/* 0 names the legacy stream of the current device; NULL if the handle is not a stream. */
CUstream_st *stream_of(cudaStream_t handle);
/* Queues work. Takes it over. */
cudaError_t stream_add(CUstream_st *stream, work *work);
std::shared_ptr<moment> stream_record(CUstream_st *stream);
void stream_wait(CUstream_st *stream, std::shared_ptr<moment> moment);
/* Executes until the moment has passed. */
void moment_reach(moment *moment);
/* Whether it has passed; it will have when it was asked a few times. NULL has. */
bool moment_asked(moment *moment);
/* Executes until all of the stream has ended. */
cudaError_t stream_drain(CUstream_st *stream);
cudaError_t device_drain(int device);
/* Work may be executed now. Every function of the runtime calls it. */
void pass_moment();

/* ---- clock ---- */

/* A stream executes work, or waits for a moment that has passed. */
void clock_work(CUstream_st *stream, const work *work);
void clock_wait(CUstream_st *stream, const moment *moment);
/* When a record that passes now passes, in milliseconds. */
double clock_record(const CUstream_st *stream);
/* The host has waited until then; asks whether a moment has passed that has been executed. */
void clock_host_waits(double milliseconds);
bool clock_host_asks(const moment *moment);

} // namespace emulated

/* ---- handles ---- */

struct CUstream_st {
    struct entry {
        uint64_t number;
        std::unique_ptr<emulated::work> work;      /* executed, or */
        std::shared_ptr<emulated::moment> records; /* passed, or */
        std::shared_ptr<emulated::moment> waits;   /* waited for */
    };
    int device;
    bool is_legacy, is_blocking;
    std::deque<entry> queue;
    double time; /* when all that was executed would have ended: clock.cc */
};

struct CUevent_st {
    int device;
    bool has_timing;
    std::shared_ptr<emulated::moment> latest; /* none: never recorded */
};
