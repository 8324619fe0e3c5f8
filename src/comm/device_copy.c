#include "comm/device_copy.h"

#include "base/fail.h"

/* Bytes before element `at` of `in` or `out`. */
static size_t bytes_before(const zero_collective_step *step, int64_t at)
{
    return (size_t)at * zero_type_size(step->type);
}

/* In the host's memory: in a mirror, or direct in staging. */
static char *host_address(const zero_collective *op, const zero_collective_step *step,
                          zero_spot spot)
{
    if (spot.place == ZERO_STAGING) return (char *)op->staging + spot.at;
    char *mirror = spot.place == ZERO_IN ? (char *)op->in : op->out;
    return mirror + bytes_before(step, spot.at);
}

zero_status zero_device_copy_place(zero_collective *op)
{
    const zero_copier *c = op->copier;
    return c && c->place ? c->place(c->arg, &op->place) : ZERO_OK;
}

/* The place of a ticket for a copy that begins now; the copy waits for what was computed
 * before the collective began, not for what the device was given since. */
static uint64_t *take_slot(zero_collective *op, zero_device_tickets *copies)
{
    const zero_copier *c = op->copier;
    if (c->since) c->since(c->arg, op->place);
    int64_t i = copies->begun++ % ZERO_COLLECTIVE_COPIES;
    copies->step[i] = op->next_step;
    return &copies->ticket[i];
}

zero_status zero_device_copy_begin(zero_collective *op, const zero_collective_step *step)
{
    const zero_copier *c = op->copier;
    size_t bytes = bytes_before(step, step->len);
    if (step->kind == ZERO_STEP_FETCH)
        return c->fetch(c->arg, host_address(op, step, step->to),
                        (const char *)op->device_in + bytes_before(step, step->from.at),
                        bytes, take_slot(op, &op->fetches));
    return c->store(c->arg, (char *)op->device_out + bytes_before(step, step->to.at),
                    host_address(op, step, step->from), bytes, take_slot(op, &op->stores));
}

/* ---- direct: in the order of stores ---- */

zero_status zero_device_mark(zero_collective *op)
{
    return op->copier->mark(op->copier->arg, take_slot(op, &op->stores));
}

zero_status zero_device_copy_near(zero_collective *op, void *to, const void *from,
                                  size_t bytes)
{
    return op->copier->copy(op->copier->arg, to, from, bytes, take_slot(op, &op->stores));
}

zero_status zero_device_add(zero_collective *op, int n, const zero_collective_step *step,
                            void *to)
{
    zero_device_sum sum = {
        .n = n, .terms = op->terms, .len = step->len, .type = step->type, .out = to};
    return op->copier->sum(op->copier->arg, &sum, take_slot(op, &op->stores));
}

/* ---- both ---- */

/* Copies of one direction end in their order: after the first that has not ended, the later
 * ones need not be asked for. */
static zero_status reap(const zero_copier *c, zero_device_tickets *copies)
{
    bool ended = true;
    while (ended && copies->ended < copies->begun) {
        uint64_t ticket = copies->ticket[copies->ended % ZERO_COLLECTIVE_COPIES];
        ZERO_TRY(c->ended(c->arg, ticket, &ended));
        copies->ended += ended;
    }
    return ZERO_OK;
}

zero_status zero_device_copy_reap(zero_collective *op)
{
    ZERO_TRY(reap(op->copier, &op->fetches));
    return reap(op->copier, &op->stores);
}
