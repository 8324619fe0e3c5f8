/* cuda_memory.c - device memory, pinned memory of the host, and the copies between them. */
#include <stdint.h>

#include "base/fail.h"
#include "gpu/cuda.h"

#define PAGE ((uintptr_t)4096)

/* ---- pieces ---- */

bool zero_cuda_holds(const zero_cuda_piece *pieces, int n, const void *memory, size_t bytes)
{
    const char *at = memory;
    for (int i = 0; i < n; i++)
        if (at >= pieces[i].at && bytes <= pieces[i].bytes &&
            (size_t)(at - pieces[i].at) <= pieces[i].bytes - bytes)
            return true;
    return false;
}

size_t zero_cuda_taken_bytes(const zero_cuda *c, const void *memory)
{
    for (int i = 0; i < c->n_taken; i++)
        if (c->taken[i].at == memory) return c->taken[i].bytes;
    return 0;
}

static bool overlaps(const zero_cuda_piece *pieces, int n, const char *at, size_t bytes)
{
    for (int i = 0; i < n; i++)
        if (at < pieces[i].at + pieces[i].bytes && pieces[i].at < at + bytes) return true;
    return false;
}

/* False if there is no such piece. */
static bool remove_piece(zero_cuda_piece *pieces, int *n, const void *memory)
{
    for (int i = 0; i < *n; i++) {
        if (pieces[i].at != memory) continue;
        pieces[i] = pieces[--*n];
        return true;
    }
    return false;
}

static zero_status check_room(const zero_cuda *c, int n)
{
    ZERO_TRY(zero_cuda_verdict(c));
    if (n < ZERO_CUDA_PIECES) return ZERO_OK;
    return zero_fail(ZERO_ERR_NOMEM, "a device has room for %d pieces of memory",
                     ZERO_CUDA_PIECES);
}

/* ---- taken ---- */

static zero_status tell_no_memory(const zero_cuda *c, size_t bytes)
{
    size_t left = 0, all = 0;
    cudaGetLastError();
    if (cudaMemGetInfo(&left, &all) != cudaSuccess) cudaGetLastError();
    return zero_fail(ZERO_ERR_NOMEM,
                     "device %d (%s) cannot give %.1f MiB: %.1f of its %.1f MiB are free; "
                     "use more devices, a smaller --micro-batch or --seq, --recompute or a "
                     "higher --stage",
                     c->device, c->name, (double)bytes / 0x1p20, (double)left / 0x1p20,
                     (double)all / 0x1p20);
}

static zero_status take(zero_math *math, size_t bytes, void **memory)
{
    zero_cuda *c = zero_cuda_of(math);
    void *at = NULL;
    const size_t taken = bytes > 0 ? bytes : ZERO_MEMORY_ALIGN;
    ZERO_TRY(check_room(c, c->n_taken));
    ZERO_TRY(zero_cuda_use(c));
    cudaError_t error = cudaMalloc(&at, taken);
    if (error == cudaErrorMemoryAllocation) return tell_no_memory(c, bytes);
    ZERO_TRY(zero_cuda_check(c, error, "taking memory"));
    c->taken[c->n_taken++] = (zero_cuda_piece){at, taken};
    ZERO_TRY(
        zero_cuda_check(c, cudaMemsetAsync(at, 0, taken, c->compute), "clearing memory"));
    c->is_placed = false;
    *memory = at;
    return ZERO_OK;
}

/* Queued calls and copies may use the memory. After a failure nothing runs any more. */
void zero_cuda_wait(zero_cuda *c)
{
    if (c->failure.status == ZERO_OK)
        (void)!zero_cuda_check(c, cudaStreamSynchronize(c->compute),
                               "waiting for its calls");
    for (int way = 0; way < ZERO_CUDA_WAYS && c->failure.status == ZERO_OK; way++)
        (void)!zero_cuda_check(c, cudaStreamSynchronize(c->queues[way].stream),
                               "waiting for its copies");
}

static void give_back(zero_math *math, void *memory)
{
    zero_cuda *c = zero_cuda_of(math);
    zero_cuda_wait(c);
    if (!remove_piece(c->taken, &c->n_taken, memory)) return;
    cudaError_t error = cudaFree(memory);
    if (c->failure.status == ZERO_OK)
        (void)!zero_cuda_check(c, error, "giving back memory");
}

/* ---- pinned ---- */

static zero_status pin(zero_math *math, void *host, size_t bytes)
{
    zero_cuda *c = zero_cuda_of(math);
    ZERO_TRY(check_room(c, c->n_pinned));
    if (!host || bytes == 0 || (uintptr_t)host % PAGE != 0 || bytes % PAGE != 0)
        return zero_fail(ZERO_ERR_INVALID,
                         "pin() of a device takes whole pages of %zu bytes; it was given "
                         "%zu bytes at %p",
                         (size_t)PAGE, bytes, host);
    if (overlaps(c->pinned, c->n_pinned, host, bytes) ||
        overlaps(c->taken, c->n_taken, host, bytes))
        return zero_fail(ZERO_ERR_INVALID,
                         "pin() of a device was given %zu bytes at %p, of which some are "
                         "pinned already or memory of the device",
                         bytes, host);
    ZERO_TRY(zero_cuda_use(c));
    /* By default it is mapped, too: kernels write it (sum() in cuda_sharing.c). */
    cudaError_t error = cudaHostRegister(host, bytes, cudaHostRegisterDefault);
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return zero_fail(ZERO_ERR_NOMEM,
                         "the driver cannot pin %.1f MiB of the host's memory: use a "
                         "smaller --bucket or fewer ranks on this node",
                         (double)bytes / 0x1p20);
    }
    ZERO_TRY(zero_cuda_check(c, error, "pinning the host's memory"));
    c->pinned[c->n_pinned++] = (zero_cuda_piece){host, bytes};
    return ZERO_OK;
}

static void unpin(zero_math *math, void *host)
{
    zero_cuda *c = zero_cuda_of(math);
    zero_cuda_wait(c);
    if (!remove_piece(c->pinned, &c->n_pinned, host)) return;
    cudaError_t error = cudaHostUnregister(host);
    if (c->failure.status == ZERO_OK)
        (void)!zero_cuda_check(c, error, "unpinning the host's memory");
}

/* ---- tickets: the number of a copy, from 1, and its direction in the last bit ---- */

static zero_ticket ticket_of(zero_cuda_way way, uint64_t number)
{
    return number << 1 | (way == ZERO_CUDA_UP);
}

static zero_cuda_queue *queue_of(zero_cuda *c, zero_ticket ticket)
{
    return &c->queues[ticket & 1 ? ZERO_CUDA_UP : ZERO_CUDA_DOWN];
}

static cudaEvent_t event_of(const zero_cuda_queue *q, uint64_t number)
{
    return q->events[number % ZERO_CUDA_COPIES];
}

/* The number of the newest copy that the event of copy `number` marks by now. */
static uint64_t newest_of(const zero_cuda_queue *q, uint64_t number)
{
    return number + (q->begun - number) / ZERO_CUDA_COPIES * ZERO_CUDA_COPIES;
}

static zero_status check_ticket(zero_cuda *c, const char *call, zero_ticket ticket)
{
    ZERO_TRY(zero_cuda_verdict(c));
    if (queue_of(c, ticket)->begun >= ticket >> 1) return ZERO_OK;
    return zero_cuda_fail(c, ZERO_ERR_INVALID,
                          "%s() of a device was given ticket %llu, which belongs to no "
                          "copy",
                          call, (unsigned long long)ticket);
}

/* ---- copies ---- */

static zero_status check_copy(zero_cuda *c, const char *call, const void *memory,
                              const void *host, size_t bytes)
{
    ZERO_TRY(zero_cuda_verdict(c));
    if (!zero_cuda_holds(c->taken, c->n_taken, memory, bytes))
        return zero_cuda_fail(c, ZERO_ERR_INVALID,
                              "%s() of a device was given %zu bytes at %p, which are not "
                              "memory of the device",
                              call, bytes, memory);
    if (zero_cuda_holds(c->pinned, c->n_pinned, host, bytes)) return ZERO_OK;
    return zero_cuda_fail(c, ZERO_ERR_INVALID,
                          "%s() of a device was given %zu bytes at %p, which are not "
                          "pinned host memory",
                          call, bytes, host);
}

static zero_status place(const zero_math *math, zero_call_place *number)
{
    zero_cuda *c = zero_cuda_of(math);
    ZERO_TRY(zero_cuda_verdict(c));
    if (!c->is_placed)
        ZERO_TRY(zero_cuda_check(
            c, cudaEventRecord(c->placed[++c->places % ZERO_CUDA_PLACES], c->compute),
            "marking its calls"));
    c->is_placed = true;
    *number = c->places;
    return ZERO_OK;
}

static void since(const zero_math *math, zero_call_place number)
{
    zero_cuda_of(math)->since = number;
}

zero_status zero_cuda_queue_begin(const zero_math *math, zero_cuda_way way)
{
    zero_cuda *c = zero_cuda_of(math);
    zero_cuda_queue *q = &c->queues[way];
    zero_call_place from = c->since;
    ZERO_TRY(zero_cuda_verdict(c));
    if (from == 0) ZERO_TRY(place(math, &from));
    if (q->seen >= from) return ZERO_OK;
    ZERO_TRY(zero_cuda_check(
        c, cudaStreamWaitEvent(q->stream, c->placed[from % ZERO_CUDA_PLACES], 0),
        "letting a copy wait"));
    q->seen = from;
    return ZERO_OK;
}

zero_status zero_cuda_queue_end(zero_cuda *c, zero_cuda_way way, zero_ticket *ticket)
{
    zero_cuda_queue *q = &c->queues[way];
    const uint64_t number = q->begun + 1;
    ZERO_TRY(zero_cuda_check(c, cudaEventRecord(event_of(q, number), q->stream),
                             "marking the end of a copy"));
    q->begun = number;
    *ticket = ticket_of(way, number);
    return ZERO_OK;
}

static zero_status copy(const zero_math *math, zero_cuda_way way, void *to,
                        const void *from, size_t bytes, zero_ticket *ticket)
{
    zero_cuda *c = zero_cuda_of(math);
    zero_cuda_queue *q = &c->queues[way];
    ZERO_TRY(zero_cuda_queue_begin(math, way));
    ZERO_TRY(zero_cuda_check(c,
                             cudaMemcpyAsync(to, from, bytes,
                                             way == ZERO_CUDA_UP ? cudaMemcpyHostToDevice
                                                                 : cudaMemcpyDeviceToHost,
                                             q->stream),
                             way == ZERO_CUDA_UP ? "store" : "fetch"));
    return zero_cuda_queue_end(c, way, ticket);
}

static zero_status fetch(const zero_math *math, void *host, const void *memory,
                         size_t bytes, zero_ticket *ticket)
{
    zero_cuda *c = zero_cuda_of(math);
    *ticket = 0;
    if (bytes == 0) return zero_cuda_verdict(c);
    ZERO_TRY(check_copy(c, "fetch", memory, host, bytes));
    return copy(math, ZERO_CUDA_DOWN, host, memory, bytes, ticket);
}

static zero_status store(const zero_math *math, void *memory, const void *host,
                         size_t bytes, zero_ticket *ticket)
{
    zero_cuda *c = zero_cuda_of(math);
    *ticket = 0;
    if (bytes == 0) return zero_cuda_verdict(c);
    ZERO_TRY(check_copy(c, "store", memory, host, bytes));
    return copy(math, ZERO_CUDA_UP, memory, host, bytes, ticket);
}

static zero_status ended(const zero_math *math, zero_ticket ticket, bool *answer)
{
    zero_cuda *c = zero_cuda_of(math);
    ZERO_TRY(check_ticket(c, "ended", ticket));
    zero_cuda_queue *q = queue_of(c, ticket);
    const uint64_t number = ticket >> 1;
    if (number > q->ended) {
        cudaError_t error = cudaEventQuery(event_of(q, number));
        if (error == cudaErrorNotReady)
            cudaGetLastError(); /* no failure */
        else
            ZERO_TRY(zero_cuda_check(c, error, "a copy, or a call before it,"));
        if (error == cudaSuccess) q->ended = newest_of(q, number);
    }
    *answer = number <= q->ended;
    return ZERO_OK;
}

static zero_status after(const zero_math *math, zero_ticket ticket)
{
    zero_cuda *c = zero_cuda_of(math);
    ZERO_TRY(check_ticket(c, "after", ticket));
    zero_cuda_queue *q = queue_of(c, ticket);
    const uint64_t number = ticket >> 1;
    if (number <= q->ended) return ZERO_OK;
    ZERO_TRY(zero_cuda_check(c, cudaStreamWaitEvent(c->compute, event_of(q, number), 0),
                             "letting calls wait for a copy"));
    c->is_placed = false; /* copies made later wait for what compute waits for */
    return ZERO_OK;
}

/* ---- open and close ---- */

static zero_status open_events(zero_cuda *c, int n, cudaEvent_t *events)
{
    for (int i = 0; i < n; i++)
        ZERO_TRY(
            zero_cuda_check(c, cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming),
                            "making an event"));
    return ZERO_OK;
}

zero_status zero_cuda_open_queues(zero_cuda *c)
{
    ZERO_TRY(open_events(c, ZERO_CUDA_PLACES, c->placed));
    for (int way = 0; way < ZERO_CUDA_WAYS; way++) {
        zero_cuda_queue *q = &c->queues[way];
        ZERO_TRY(
            zero_cuda_check(c, cudaStreamCreateWithFlags(&q->stream, cudaStreamNonBlocking),
                            "making a stream"));
        ZERO_TRY(open_events(c, ZERO_CUDA_COPIES, q->events));
    }
    return ZERO_OK;
}

static void close_events(int n, const cudaEvent_t *events)
{
    for (int i = 0; i < n; i++)
        if (events[i]) cudaEventDestroy(events[i]);
}

static void close_queue(const zero_cuda_queue *q)
{
    close_events(ZERO_CUDA_COPIES, q->events);
    if (q->stream) cudaStreamDestroy(q->stream);
}

void zero_cuda_close_memory(zero_cuda *c)
{
    zero_cuda_close_sharing(c);
    while (c->n_pinned > 0) cudaHostUnregister(c->pinned[--c->n_pinned].at);
    while (c->n_taken > 0) cudaFree(c->taken[--c->n_taken].at);
    for (int way = 0; way < ZERO_CUDA_WAYS; way++) close_queue(&c->queues[way]);
    close_events(ZERO_CUDA_PLACES, c->placed);
}

const zero_memory zero_cuda_memory = {.take = take,
                                      .give_back = give_back,
                                      .pin = pin,
                                      .unpin = unpin,
                                      .fetch = fetch,
                                      .store = store,
                                      .ended = ended,
                                      .after = after,
                                      .place = place,
                                      .since = since,
                                      .sharing = &zero_cuda_sharing,
                                      .access = zero_cuda_access};
