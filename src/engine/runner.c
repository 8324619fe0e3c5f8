#include "engine/runner.h"

void *zero_runner_buffer(const zero_runner *r, int buffer)
{
    if (buffer == ZERO_NO_BUFFER) return NULL;
    const zero_schedule *s = r->schedule;
    const zero_buffer *b = &s->buffers[buffer];
    if (b->space == ZERO_SPACE_OWN && r->device) return (char *)r->device + b->offset;
    if (b->space == ZERO_SPACE_OWN || b->space == ZERO_SPACE_HOST)
        return r->arena.base + b->offset;
    char *array = zero_window_array(r->window, b->space == ZERO_SPACE_NODE);
    size_t part = b->space == ZERO_SPACE_PART ? s->extent[ZERO_SPACE_PART] : 0;
    return array + part * (size_t)r->window->local_rank + b->offset;
}

void *zero_runner_element(const zero_runner *r, int buffer, int64_t i)
{
    if (buffer == ZERO_NO_BUFFER) return NULL;
    const zero_buffer *b = &r->schedule->buffers[buffer];
    return (char *)zero_runner_buffer(r, buffer) +
           (i - b->begin) * (int64_t)zero_type_size(b->type);
}

static void note(zero_runner *r, int buffer)
{
    if (buffer == ZERO_NO_BUFFER) return;
    zero_touch *touch = &r->touched[buffer];
    if (touch->first < 0 || r->at < touch->first) touch->first = r->at;
    if (r->at > touch->last) touch->last = r->at;
}

void *zero_runner_use(zero_runner *r, int buffer)
{
    note(r, buffer);
    return zero_runner_buffer(r, buffer);
}

void *zero_runner_use_element(zero_runner *r, int buffer, int64_t i)
{
    note(r, buffer);
    return zero_runner_element(r, buffer, i);
}
