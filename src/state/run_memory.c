#include "state/run_memory.h"

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
    for (zero_space space = 0; space < ZERO_SPACES; space++) {
        size_t bytes;
        char *memory = program_memory(r, space, &bytes);
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
    for (int k = 0; k < ZERO_OPERANDS; k++) {
        int id = i->operands[k];
        if (id == ZERO_NO_BUFFER) continue;
        const zero_buffer *b = &r->schedule->buffers[id];
        bool has_lifetime = b->program < ZERO_PROGRAMS && can_poison(r, b->space);
        if (!has_lifetime || r->at != (ends ? b->last : b->first)) continue;
        char *memory = zero_runner_buffer(r, id);
        if (ends)
            zero_arena_poison(memory, b->bytes);
        else
            zero_arena_unpoison(memory, b->bytes);
    }
}

/* ---- the ledger ---- */

zero_status zero_runner_memory(const zero_runner *r, zero_peak *planned,
                               zero_peak *measured)
{
    const zero_schedule *s = r->schedule;
    size_t longest = 0;
    for (zero_program_kind p = 0; p < ZERO_PROGRAMS; p++)
        longest = zero_max_size(longest, (size_t)s->programs[p].length);
    size_t *live;
    ZERO_TRY(zero_new(&live, longest + 1, "instructions of the memory ledger"));
    *planned = *measured = (zero_peak){0};
    for (zero_program_kind p = 0; p < ZERO_PROGRAMS; p++) {
        if (r->walks[p] == 0) continue;
        zero_peak now = zero_schedule_peak(s, p, r->touched, live);
        zero_peak_widen(measured, &now);
        zero_peak_widen(planned, &s->peak_of[p]);
    }
    free(live);
    return ZERO_OK;
}
