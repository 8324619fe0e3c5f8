#include "lists/spec.h"

#include "base/number.h"

#define MAX_CHUNK    ((int64_t)1 << 28) /* elements: messages of 1 GiB */
#define MAX_MESSAGE  ((int64_t)1 << 30) /* bytes */
#define MAX_ELEMENTS ((int64_t)1 << 60)

const char *zero_collective_kind_name(zero_collective_kind kind)
{
    static const char *const names[ZERO_COLLECTIVE_KINDS] = {
        "reduce-scatter", "all-gather", "reduce", "broadcast", "all-reduce"};
    return names[kind];
}

/* ---- checks ---- */

/* Where data lie, and who reads them there. */
static zero_status check_places(const zero_collective_spec *spec, int size)
{
    bool may_be_in_place = size == 1 || !zero_collective_sums(spec->kind);
    ZERO_INVALID_IF(
        spec->on_device && spec->one_out,
        "a %s on a device with one 'out' for a node: expected an 'out' for each "
        "rank, since each device needs its own",
        zero_collective_kind_name(spec->kind));
    ZERO_INVALID_IF(
        spec->direct && (!spec->on_device || spec->algorithm == ZERO_ALGORITHM_MPI),
        "a direct %s%s: expected a device with the algorithm shm or hier, since neighbours "
        "read its memory, or p2p, since MPI does",
        zero_collective_kind_name(spec->kind), spec->on_device ? " on a device" : "");
    if (!spec->in_place || (spec->on_device && may_be_in_place)) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "a %s%s with in_place: expected an all-gather or a broadcast on a "
                     "device, or one rank",
                     zero_collective_kind_name(spec->kind),
                     spec->on_device ? " on a device" : "");
}

zero_status zero_collective_check_spec(const zero_collective_spec *spec, int size)
{
    bool has_root = zero_collective_has_root(spec->kind);
    int64_t stride = has_root ? spec->count : spec->stride;
    ZERO_INVALID_IF(spec->count < 0 || spec->count > stride || stride > MAX_ELEMENTS / size,
                    "a collective over %d pieces of %" PRId64 " elements, %" PRId64
                    " apart: expected 0 <= count <= stride, and no more than 2^60 in all",
                    size, spec->count, stride);
    ZERO_INVALID_IF(spec->max_chunk < 0 || spec->max_chunk > MAX_CHUNK,
                    "messages of up to %" PRId64 " elements: expected 0 to %" PRId64,
                    spec->max_chunk, MAX_CHUNK);
    ZERO_INVALID_IF(spec->message != 0 &&
                        (spec->message < ZERO_LEAST_MESSAGE || spec->message > MAX_MESSAGE),
                    "messages of up to %" PRId64 " bytes: expected %d to %" PRId64
                    ", or 0 for no limit",
                    spec->message, ZERO_LEAST_MESSAGE, MAX_MESSAGE);
    ZERO_INVALID_IF(has_root && (spec->root < 0 || spec->root >= size),
                    "a %s with root %d: expected a rank below %d",
                    zero_collective_kind_name(spec->kind), spec->root, size);
    const int only = spec->only - 1;
    ZERO_INVALID_IF(spec->only != 0 && (only < 0 || only >= size || only == spec->root ||
                                        spec->kind != ZERO_BROADCAST ||
                                        spec->algorithm != ZERO_ALGORITHM_P2P),
                    "a %s from rank %d to rank %d alone: expected a broadcast by p2p to "
                    "another rank below %d",
                    zero_collective_kind_name(spec->kind), spec->root, only, size);
    bool sums = zero_collective_sums(spec->kind), to_all = spec->kind == ZERO_ALL_REDUCE;
    ZERO_INVALID_IF(to_all ? spec->on_device || spec->result != spec->type ||
                                 spec->tail < 0 || spec->tail > MAX_CHUNK
                           : spec->tail != 0,
                    "a %s%s with a tail of %" PRId64
                    ": expected an all-reduce on the host in one type, with 0 to %" PRId64
                    " elements, or no tail",
                    zero_collective_kind_name(spec->kind),
                    spec->on_device ? " on a device" : "", spec->tail, MAX_CHUNK);
    if (sums) ZERO_TRY(zero_reduction_check(spec->reduction, (zero_number)spec->type));
    bool is_plain = zero_collective_is_plain(spec);
    ZERO_INVALID_IF(
        !is_plain && (spec->on_device || spec->result != spec->type),
        "a %s other than a sum of fp32, bf16 or fp16: expected the host, and the "
        "type of the input",
        zero_collective_kind_name(spec->kind));
    ZERO_INVALID_IF(
        spec->result != spec->type && !(sums && spec->result == ZERO_FP32),
        "a %s of %s with a result in %s: expected the type of the input, or for sums fp32",
        zero_collective_kind_name(spec->kind), zero_type_name(spec->type),
        zero_type_name(spec->result));
    return check_places(spec, size);
}

bool zero_collective_is_nothing(const zero_collective_spec *spec, int size)
{
    return size == 1 && spec->on_device && spec->in_place;
}

/* ---- traffic ---- */

void zero_traffic_add(zero_traffic *sum, int64_t times, const zero_traffic *more)
{
    for (int reach = 0; reach < ZERO_REACHES; reach++) {
        sum->bytes_sent[reach] += times * more->bytes_sent[reach];
        sum->bytes_received[reach] += times * more->bytes_received[reach];
        sum->messages_sent[reach] += times * more->messages_sent[reach];
        sum->messages_received[reach] += times * more->messages_received[reach];
    }
    sum->bytes_fetched += times * more->bytes_fetched;
    sum->bytes_stored += times * more->bytes_stored;
}

int64_t zero_traffic_sent(const zero_traffic *traffic)
{
    return zero_traffic_total(traffic).bytes_sent;
}

int64_t zero_traffic_sent_to(const zero_traffic *traffic, zero_reach reach)
{
    return traffic->bytes_sent[reach];
}

zero_volume zero_traffic_to(const zero_traffic *traffic, zero_reach reach)
{
    return (zero_volume){traffic->bytes_sent[reach], traffic->bytes_received[reach],
                         traffic->messages_sent[reach], traffic->messages_received[reach]};
}

zero_volume zero_traffic_total(const zero_traffic *traffic)
{
    const zero_volume inside = zero_traffic_to(traffic, ZERO_INSIDE),
                      across = zero_traffic_to(traffic, ZERO_ACROSS);
    return (zero_volume){inside.bytes_sent + across.bytes_sent,
                         inside.bytes_received + across.bytes_received,
                         inside.messages_sent + across.messages_sent,
                         inside.messages_received + across.messages_received};
}

int64_t zero_volume_duplex(const zero_volume *v)
{
    return zero_max(v->bytes_sent, v->bytes_received);
}
