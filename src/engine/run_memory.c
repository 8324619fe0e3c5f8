#include "engine/run_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "sharding/schedule_memory.h"

void *zero_runner_buffer(const zero_runner *r, int buffer)
{
    if (buffer == ZERO_NO_BUFFER) return NULL;
    const zero_schedule *s = r->schedule;
    const zero_buffer *b = &s->buffers[buffer];
    if (b->space == ZERO_SPACE_OWN) return r->arena.base + b->offset;
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

/* The two arrays of the window: ranks' parts, and what is there once for the node. */
zero_status zero_runner_share(const zero_schedule *schedule, zero_comm *comm,
                              zero_window *window)
{
    size_t parts = schedule->extent[ZERO_SPACE_PART];
    return zero_window_init(window, comm, 2,
                            (size_t[]){parts, schedule->window_bytes - parts});
}

/* ---- lifetimes ---- */

/* What a program may use in a space of this rank: all behind the persistent buffers. */
static char *program_memory(const zero_runner *r, zero_space space, size_t *bytes)
{
    const zero_schedule *s = r->schedule;
    *bytes = s->extent[space] - s->persistent[space];
    if (*bytes == 0) return NULL;
    if (space == ZERO_SPACE_OWN) return r->arena.base + s->persistent[space];
    return zero_window_array(r->window, 0) +
           s->extent[space] * (size_t)r->window->local_rank + s->persistent[space];
}

void zero_lifetimes_open(const zero_runner *r)
{
    for (int space = ZERO_SPACE_OWN; space <= ZERO_SPACE_PART; space++) {
        size_t bytes;
        char *memory = program_memory(r, (zero_space)space, &bytes);
        if (bytes > 0) zero_arena_poison(memory, bytes);
    }
}

void zero_lifetimes_close(const zero_runner *r)
{
    size_t bytes;
    char *memory = program_memory(r, ZERO_SPACE_PART, &bytes);
    if (bytes > 0) zero_arena_release(memory, bytes);
}

static bool has_lifetime(const zero_buffer *b)
{
    return b->program != ZERO_PROGRAM_ALL && b->space != ZERO_SPACE_NODE;
}

void zero_lifetimes_begin(const zero_runner *r, const zero_instruction *i, int at)
{
    int list[ZERO_MAX_OPERANDS];
    int n = zero_instruction_operands(i, list);
    for (int k = 0; k < n; k++) {
        if (list[k] == ZERO_NO_BUFFER) continue;
        const zero_buffer *b = &r->schedule->buffers[list[k]];
        if (has_lifetime(b) && b->first == at)
            zero_arena_unpoison(zero_runner_buffer(r, list[k]), b->bytes);
    }
}

void zero_lifetimes_end(const zero_runner *r, const zero_instruction *i, int at)
{
    int list[ZERO_MAX_OPERANDS];
    int n = zero_instruction_operands(i, list);
    for (int k = 0; k < n; k++) {
        if (list[k] == ZERO_NO_BUFFER) continue;
        const zero_buffer *b = &r->schedule->buffers[list[k]];
        if (has_lifetime(b) && b->last == at)
            zero_arena_poison(zero_runner_buffer(r, list[k]), b->bytes);
    }
}

/* ---- the ledger ---- */

/* change[at + 1] - change[at]: what begins at instruction `at`, less what ended before it. */
static void add_lifetimes(const zero_runner *r, zero_program_kind program, int class,
                          int64_t *change)
{
    const zero_schedule *s = r->schedule;
    for (int i = 0; i < s->n_buffers; i++) {
        const zero_buffer *b = &s->buffers[i];
        const zero_touch *t = &r->touched[i];
        if (class < ZERO_CLASSES && b->class != (zero_class) class) continue;
        int64_t bytes = (int64_t)zero_schedule_cost(s, b);
        if (b->program == ZERO_PROGRAM_ALL) {
            change[0] += bytes;
        } else if (b->program == program && t->first >= 0) {
            change[t->first] += bytes;
            change[t->last + 1] -= bytes;
        }
    }
}

static size_t worst_moment(const zero_runner *r, zero_program_kind program, int class,
                           int64_t *change)
{
    int length = r->schedule->programs[program].length;
    int64_t now = 0, most = 0;
    memset(change, 0, ((size_t)length + 1) * sizeof *change);
    add_lifetimes(r, program, class, change);
    for (int at = 0; at < length; at++) {
        now += change[at];
        if (now > most) most = now;
    }
    return (size_t)most;
}

static size_t longest_program(const zero_schedule *s)
{
    size_t longest = 0;
    for (int p = 0; p < ZERO_PROGRAMS; p++)
        if ((size_t)s->programs[p].length > longest)
            longest = (size_t)s->programs[p].length;
    return longest;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void join(zero_peak *peak, const zero_peak *more)
{
    peak->bytes = larger(peak->bytes, more->bytes);
    for (int c = 0; c < ZERO_CLASSES; c++)
        peak->of_class[c] = larger(peak->of_class[c], more->of_class[c]);
}

zero_status zero_runner_memory(const zero_runner *r, zero_peak *planned,
                               zero_peak *measured)
{
    int64_t *change = calloc(longest_program(r->schedule) + 2, sizeof *change);
    if (!change) return zero_fail(ZERO_ERR_NOMEM, "no memory for the memory ledger");
    *planned = *measured = (zero_peak){0};
    for (int p = 0; p < ZERO_PROGRAMS; p++) {
        zero_program_kind program = (zero_program_kind)p;
        if (r->walks[p] == 0) continue;
        zero_peak now = {.bytes = worst_moment(r, program, ZERO_CLASSES, change)};
        for (int c = 0; c < ZERO_CLASSES; c++)
            now.of_class[c] = worst_moment(r, program, c, change);
        join(measured, &now);
        join(planned, &r->schedule->peak_of[p]);
    }
    free(change);
    return ZERO_OK;
}
