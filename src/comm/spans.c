#include "comm/spans.h"

#include "comm/family.h"
#include "comm/thread.h"

zero_status zero_comm_spans_init(zero_comm_spans *s, int64_t capacity)
{
    *s = (zero_comm_spans){.capacity = capacity};
    return zero_new(&s->ring, capacity, "spans of collectives");
}

void zero_comm_spans_destroy(zero_comm_spans *s)
{
    free(s->ring);
    *s = (zero_comm_spans){0};
}

void zero_comm_spans_attach(zero_comm *comm, zero_comm_spans *s)
{
    zero_thread_lock(comm);
    comm->spans = s;
    zero_thread_unlock(comm);
}

void zero_comm_spans_switch(zero_comm *comm, bool is_on)
{
    zero_thread_lock(comm);
    if (comm->spans) comm->spans->is_on = is_on;
    zero_thread_unlock(comm);
}

/* ---- recording ---- */

void zero_comm_spans_begin(zero_collective *op)
{
    const zero_comm_spans *s = zero_family_whole(op->comm)->spans;
    op->is_recorded = s && s->is_on;
    if (op->is_recorded) op->sent_before = zero_traffic_sent(&op->traffic);
}

static zero_comm_span span_of(const zero_collective *op, double ended)
{
    return (zero_comm_span){.begun = op->begun,
                            .ended = ended,
                            .sequence = op->sequence,
                            .sent = zero_traffic_sent(&op->traffic) - op->sent_before,
                            .label = op->label,
                            .kind = (int32_t)op->steps.spec.kind,
                            .part = op->comm->member.part};
}

void zero_comm_spans_end(const zero_collective *op)
{
    zero_comm_spans *s = zero_family_whole(op->comm)->spans;
    if (!op->is_recorded || !s) return;
    s->ring[s->n++ % s->capacity] = span_of(op, op->ended);
}

/* ---- copying ---- */

static int64_t copy_active(const zero_comm *comm, double now, int64_t room,
                           zero_comm_span *out)
{
    int64_t n = 0;
    for (const zero_collective *op = comm->active; op && n < room; op = op->next_active)
        if (op->is_recorded) out[n++] = span_of(op, now);
    return n;
}

int64_t zero_comm_spans_copy(zero_comm *comm, double now, int64_t room, zero_comm_span *out,
                             int64_t *open)
{
    int64_t n = 0, ended = 0;
    zero_thread_lock(comm);
    const zero_comm_spans *s = comm->spans;
    if (s) {
        for (int64_t k = zero_max(0, s->n - s->capacity); k < s->n && n < room; k++)
            out[n++] = s->ring[k % s->capacity];
        ended = n;
        n += copy_active(comm, now, room - n, out + n);
        for (int i = 0; i < comm->n_parts; i++)
            n += copy_active(&comm->parts[i], now, room - n, out + n);
    }
    zero_thread_unlock(comm);
    *open = n - ended;
    return n;
}
