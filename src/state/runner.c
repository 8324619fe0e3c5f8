#include "state/runner.h"

void *zero_runner_buffer(const zero_runner *r, int buffer)
{
    if (buffer == ZERO_NO_BUFFER) return NULL;
    const zero_schedule *s = r->schedule;
    const zero_buffer *b = &s->buffers[buffer];
    if (b->space == ZERO_SPACE_OWN && r->device) return (char *)r->device + b->offset;
    if (b->space == ZERO_SPACE_OWN || b->space == ZERO_SPACE_HOST)
        return r->arena.base + b->offset;
    bool is_of_tp = b->space == ZERO_SPACE_TP_PART || b->space == ZERO_SPACE_TP_NODE;
    const zero_window *window = is_of_tp ? r->tp_window : r->window;
    bool is_part = b->space == ZERO_SPACE_PART || b->space == ZERO_SPACE_TP_PART;
    size_t part = is_part ? s->extent[b->space] : 0;
    return zero_window_array(window, !is_part) + part * (size_t)window->local_rank +
           b->offset;
}

void *zero_runner_element(const zero_runner *r, int buffer, int64_t i)
{
    if (buffer == ZERO_NO_BUFFER) return NULL;
    const zero_buffer *b = &r->schedule->buffers[buffer];
    return (char *)zero_runner_buffer(r, buffer) +
           (i - b->begin) * (int64_t)zero_type_size(b->type);
}
