/* events.cc - CUDA's functions for streams and events. */
#include <algorithm>

#include "gpu/emulated/device.h"

using namespace emulated;

/* ---- streams ---- */

/* The first error of two. */
static cudaError_t either(cudaError_t a, cudaError_t b)
{
    return note(a != cudaSuccess ? a : b);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags)
{
    if (current_error() != cudaSuccess) return note(current_error());
    if (flags & ~(unsigned)cudaStreamNonBlocking) return note(cudaErrorInvalidValue);
    machine *m = the_machine();
    *pStream = new CUstream_st{m->current, false, !(flags & cudaStreamNonBlocking), {}, 0};
    m->streams.push_back(*pStream);
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *pStream)
{
    return cudaStreamCreateWithFlags(pStream, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    CUstream_st *s = stream ? stream_of(stream) : nullptr;
    if (!s) return note(cudaErrorInvalidResourceHandle);
    stream_drain(s);
    std::vector<CUstream_st *> &all = the_machine()->streams;
    all.erase(std::find(all.begin(), all.end(), s));
    delete s;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    CUstream_st *s = stream_of(stream);
    return s ? note(stream_drain(s)) : note(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    CUstream_st *s = stream_of(stream);
    if (!s) return note(cudaErrorInvalidResourceHandle);
    pass_moment();
    const cudaError_t stays = the_machine()->devices[s->device].error;
    return stays == cudaSuccess && !s->queue.empty() ? cudaErrorNotReady : note(stays);
}

/* ---- events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    const unsigned known = cudaEventBlockingSync | cudaEventDisableTiming;
    if (current_error() != cudaSuccess) return note(current_error());
    if (flags & ~known) return note(cudaErrorInvalidValue);
    *event =
        new CUevent_st{the_machine()->current, !(flags & cudaEventDisableTiming), nullptr};
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    if (!event) return note(cudaErrorInvalidResourceHandle);
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    CUstream_st *s = stream_of(stream);
    if (!event || !s || event->device != s->device)
        return note(cudaErrorInvalidResourceHandle);
    event->latest = stream_record(s);
    return note(the_machine()->devices[s->device].error);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    CUstream_st *s = stream_of(stream);
    if (!event || !s) return note(cudaErrorInvalidResourceHandle);
    if (flags != 0) return note(cudaErrorInvalidValue);
    if (event->latest) stream_wait(s, event->latest);
    return note(the_machine()->devices[s->device].error);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    if (!event) return note(cudaErrorInvalidResourceHandle);
    pass_moment();
    const cudaError_t stays = the_machine()->devices[event->device].error;
    if (stays != cudaSuccess) return note(stays);
    return moment_asked(event->latest.get()) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (!event) return note(cudaErrorInvalidResourceHandle);
    if (event->latest) moment_reach(event->latest.get());
    return note(the_machine()->devices[event->device].error);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    if (!start || !end || !start->latest || !end->latest || !start->has_timing ||
        !end->has_timing)
        return note(cudaErrorInvalidResourceHandle);
    if (!start->latest->has_passed || !end->latest->has_passed)
        return either(the_machine()->devices[start->device].error, cudaErrorNotReady);
    *ms = (float)(end->latest->milliseconds - start->latest->milliseconds);
    return cudaSuccess;
}
