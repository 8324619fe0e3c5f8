#include "state/run_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/number.h"
#include "sharding/schedule_memory.h"

/* ---- lifetimes ---- */

/* True if the space is this rank's alone, and memory that the host can poison. */
static bool can_poison(const zero_runner *r, zero_space space)
{
    switch (space) {
    case ZERO_SPACE_OWN: return !r->device;
    case ZERO_SPACE_HOST:
    case ZERO_SPACE_PART:
    case ZERO_SPACE_TP_PART: return true;
    default: return false;
    }
}

/* The part of such a space that programs use: all above the persistent buffers. */
static char *program_memory(const zero_runner *r, zero_space space, size_t *bytes)
{
    const zero_schedule *s = r->schedule;
    *bytes = can_poison(r, space) ? s->extent[space] - s->persistent[space] : 0;
    if (*bytes == 0) return NULL;
    const zero_window *window = space == ZERO_SPACE_PART      ? r->window
                                : space == ZERO_SPACE_TP_PART ? r->tp_window
                                                              : NULL;
    if (!window) return r->arena.base + s->persistent[space];
    return zero_window_array(window, 0) + s->extent[space] * (size_t)window->local_rank +
           s->persistent[space];
}

void zero_lifetimes_open(const zero_runner *r, zero_program_kind program)
{
    for (int space = 0; space < ZERO_SPACES; space++) {
        size_t bytes;
        char *memory = program_memory(r, (zero_space)space, &bytes);
        if (bytes == 0) continue;
        zero_arena_poison(memory, bytes);
        /* The cache must stay as it is. */
        if (zero_program_generates(program))
            zero_arena_release(memory, r->schedule->cached[space]);
    }
}

void zero_lifetimes_close(const zero_runner *r)
{
    const zero_space windows[] = {ZERO_SPACE_PART, ZERO_SPACE_TP_PART};
    for (int k = 0; k < 2; k++) {
        size_t bytes;
        char *memory = program_memory(r, windows[k], &bytes);
        if (bytes > 0) zero_arena_release(memory, bytes);
    }
}

void zero_lifetimes_change(const zero_runner *r, const zero_instruction *i, bool ends)
{
    int list[ZERO_MAX_OPERANDS];
    int n = zero_instruction_operands(i, list);
    for (int k = 0; k < n; k++) {
        if (list[k] == ZERO_NO_BUFFER) continue;
        const zero_buffer *b = &r->schedule->buffers[list[k]];
        bool has_lifetime = b->program < ZERO_PROGRAMS && can_poison(r, b->space);
        if (!has_lifetime || r->at != (ends ? b->last : b->first)) continue;
        char *memory = zero_runner_buffer(r, list[k]);
        if (ends)
            zero_arena_poison(memory, b->bytes);
        else
            zero_arena_unpoison(memory, b->bytes);
    }
}

/* ---- the ledger ---- */

/* A class, or all of them; with a device there, or beside it. */
typedef struct {
    int class; /* ZERO_CLASSES: all */
    bool beside;
} column;

static size_t worst_moment(const zero_runner *r, zero_program_kind program, column of,
                           int64_t *change)
{
    int length = r->schedule->programs[program].length;
    int64_t now = 0, most = 0;
    memset(change, 0, ((size_t)length + 1) * sizeof *change);
    /* change[at]: the bytes whose use begins at instruction `at`, less those whose
     * use has ended. */
    const zero_schedule *s = r->schedule;
    for (int i = 0; i < s->n_buffers; i++) {
        const zero_buffer *b = &s->buffers[i];
        const zero_touch *t = &r->touched[i];
        if (of.class < ZERO_CLASSES && b->class != (zero_class)of.class) continue;
        if (zero_schedule_is_beside(s, b->space) != of.beside) continue;
        int64_t bytes = (int64_t)zero_schedule_cost(s, b);
        if (zero_buffer_lives_through(b, program)) {
            change[0] += bytes;
        } else if (b->program == program && t->first >= 0) {
            change[t->first] += bytes;
            change[t->last + 1] -= bytes;
        }
    }
    for (int at = 0; at < length; at++) {
        now += change[at];
        most = zero_max(most, now);
    }
    return (size_t)most;
}

zero_status zero_runner_memory(const zero_runner *r, zero_peak *planned,
                               zero_peak *measured)
{
    size_t longest = 0;
    for (int p = 0; p < ZERO_PROGRAMS; p++)
        longest = zero_max_size(longest, (size_t)r->schedule->programs[p].length);
    int64_t *change = calloc(longest + 2, sizeof *change);
    ZERO_TRY(zero_allocated(change, "no memory for the memory ledger"));
    *planned = *measured = (zero_peak){0};
    for (int p = 0; p < ZERO_PROGRAMS; p++) {
        zero_program_kind program = (zero_program_kind)p;
        if (r->walks[p] == 0) continue;
        zero_peak now = {
            .bytes = worst_moment(r, program, (column){ZERO_CLASSES, false}, change)};
        for (int c = 0; c < ZERO_CLASSES; c++)
            now.of_class[c] = worst_moment(r, program, (column){c, false}, change);
        if (r->schedule->input.device)
            now.host_bytes = worst_moment(r, program, (column){ZERO_CLASSES, true}, change);
        for (int c = 0; r->schedule->input.device && c < ZERO_CLASSES; c++)
            now.host_of_class[c] = worst_moment(r, program, (column){c, true}, change);
        zero_peak_widen(measured, &now);
        zero_peak_widen(planned, &r->schedule->peak_of[p]);
    }
    free(change);
    return ZERO_OK;
}
