/* The contents of buffers. Writing takes the bytes from all other buffers that lie there. */

#include "base/number.h"
#include "support/shadow.h"

const zero_schedule *shadow_plan(const shadow *w)
{
    return &w->job->s[w->rank];
}

const zero_instruction *shadow_now(const shadow *w)
{
    return &shadow_plan(w)->programs[w->program].code[w->at[w->rank]];
}

int shadow_groups(const shadow *w)
{
    return w->job->s[0].input.model->n_groups;
}

void shadow_expect_at(const shadow *w, bool ok, const char *text, const char *file,
                      int line)
{
    if (ok) return;
    const zero_program *p = &shadow_plan(w)->programs[w->program];
    if (w->at[w->rank] >= p->length)
        fail_msg("%s:%d: after the program: %s", file, line, text);
    const zero_instruction *i = shadow_now(w);
    fail_msg("%s:%d: rank %d, %s %d, %s of unit %d, group %d, microbatch %d: %s", file,
             line, w->rank, zero_program_name(w->program), w->at[w->rank],
             zero_op_name(i->op), i->unit, i->group, i->microbatch, text);
}

/* ---- places ---- */

static const zero_buffer *look_up(const shadow *w, int buffer)
{
    shadow_expect(w, buffer >= 0 && buffer < shadow_plan(w)->n_buffers);
    const zero_buffer *b = &shadow_plan(w)->buffers[buffer];
    shadow_expect(w, b->program == w->program || zero_buffer_lives_through(b, w->program));
    shadow_expect(w, b->offset + b->bytes <= shadow_plan(w)->extent[b->space]);
    return b;
}

int shadow_pieces(const shadow *w)
{
    const zero_plan_input *in = &w->job->s[0].input;
    return in->shard_ranks > 0 ? in->shard_ranks : in->n_ranks;
}

int shadow_own(const shadow *w)
{
    return w->rank % shadow_pieces(w);
}

int shadow_first(const shadow *w)
{
    return w->rank - shadow_own(w);
}

/* The window of a node is one for each shard group there. */
static shadow_memory *memory_of(shadow *w, int buffer)
{
    const zero_layout *layout = &w->job->layout;
    bool is_node = shadow_plan(w)->buffers[buffer].space == ZERO_SPACE_NODE;
    int first = (int)zero_max(layout->first[layout->node_of[w->rank]], shadow_first(w));
    return &w->memory[is_node ? first : w->rank];
}

static shadow_cell *cell_of(shadow *w, int buffer, int p)
{
    return &memory_of(w, buffer)->cells[(int64_t)buffer * shadow_pieces(w) + p];
}

zero_range shadow_piece(const shadow *w, int g, int p)
{
    return zero_partition_piece(&shadow_plan(w)->groups[g].partition, p);
}

bool shadow_is_empty(const shadow *w, int g, int p)
{
    return zero_range_len(shadow_piece(w, g, p)) == 0;
}

typedef struct {
    size_t begin, end; /* in the buffer's space */
} span;

/* Piece p of group g in a buffer; g = -1: plain data, all of it. */
static span span_of(const shadow *w, const zero_buffer *b, int g, int p)
{
    if (g < 0) return (span){b->offset, b->offset + b->bytes};
    zero_range piece = shadow_piece(w, g, p);
    size_t size = zero_type_size(b->type);
    return (span){b->offset + (size_t)(piece.begin - b->begin) * size,
                  b->offset + (size_t)(piece.end - b->begin) * size};
}

static void check_bounds(const shadow *w, const zero_buffer *b, int g, int p)
{
    zero_range piece = shadow_piece(w, g, p);
    size_t size = zero_type_size(b->type);
    shadow_expect(w, piece.begin < piece.end && piece.begin >= b->begin);
    shadow_expect(w, (size_t)(piece.end - b->begin) * size <= b->bytes);
}

/* ---- holding ---- */

static void forget_cell(shadow *w, shadow_memory *m, int buffer, int p)
{
    shadow_cell *c = &m->cells[(int64_t)buffer * shadow_pieces(w) + p];
    if (c->value == 0) return;
    *c = (shadow_cell){0};
    if (--m->held[buffer] > 0) return;
    int k = 0;
    while (m->live[k] != buffer) k++;
    m->live[k] = m->live[--m->n_live];
}

static void hold(shadow *w, int buffer, int g, int p, shadow_cell value)
{
    shadow_memory *m = memory_of(w, buffer);
    shadow_cell *c = cell_of(w, buffer, p);
    if (c->value == 0 && m->held[buffer]++ == 0) m->live[m->n_live++] = buffer;
    shadow_expect(w, m->held[buffer] == 1 || m->group[buffer] == g);
    m->group[buffer] = g;
    *c = value;
}

/* The old contents of these bytes are lost: no one may still need them. */
static void lose(shadow *w, shadow_memory *m, int buffer, span s)
{
    const zero_buffer *b = &shadow_plan(w)->buffers[buffer];
    for (int p = 0; p < shadow_pieces(w); p++) {
        const shadow_cell *c = &m->cells[(int64_t)buffer * shadow_pieces(w) + p];
        if (c->value == 0) continue;
        span other = span_of(w, b, m->group[buffer], p);
        if (other.begin >= s.end || s.begin >= other.end) continue;
        shadow_expect(w, b->program != ZERO_PROGRAM_ALL);
        shadow_expect(w, c->lock == SHADOW_FREE);
        forget_cell(w, m, buffer, p);
    }
}

static void claim(shadow *w, int buffer, span s)
{
    shadow_memory *m = memory_of(w, buffer);
    const zero_buffer *b = &shadow_plan(w)->buffers[buffer];
    for (int k = m->n_live - 1; k >= 0; k--) {
        const zero_buffer *other = &shadow_plan(w)->buffers[m->live[k]];
        bool meets = other->space == b->space && other->offset < s.end &&
                     s.begin < other->offset + other->bytes;
        if (meets && m->live[k] != buffer) lose(w, m, m->live[k], s);
    }
}

/* ---- reading and writing ---- */

static unsigned all_ranks(void)
{
    return ~0u;
}

void shadow_write(shadow *w, int buffer, size_t bytes, term value)
{
    if (bytes == 0) return;
    const zero_buffer *b = look_up(w, buffer);
    shadow_expect(w, bytes <= b->bytes);
    shadow_expect(w, cell_of(w, buffer, 0)->lock == SHADOW_FREE);
    claim(w, buffer, span_of(w, b, -1, 0));
    hold(w, buffer, -1, 0, (shadow_cell){.value = value, .seen = all_ranks()});
}

term shadow_read(shadow *w, int buffer, size_t bytes)
{
    if (bytes == 0) return 0;
    shadow_expect(w, bytes <= look_up(w, buffer)->bytes);
    const shadow_cell *c = cell_of(w, buffer, 0);
    shadow_expect(w, c->value != 0);
    shadow_expect(w, c->lock != SHADOW_WRITING);
    return c->value;
}

void shadow_write_piece(shadow *w, int g, int buffer, int p, term value)
{
    const zero_buffer *b = look_up(w, buffer);
    check_bounds(w, b, g, p);
    shadow_expect(w, term_fits(b->type, value));
    shadow_expect(w, cell_of(w, buffer, p)->lock == SHADOW_FREE);
    claim(w, buffer, span_of(w, b, g, p));
    hold(w, buffer, g, p, (shadow_cell){.value = value, .seen = 1u << w->rank});
}

term shadow_read_piece(shadow *w, int g, int buffer, int p)
{
    check_bounds(w, look_up(w, buffer), g, p);
    const shadow_cell *c = cell_of(w, buffer, p);
    shadow_expect(w, c->value != 0);
    shadow_expect(w, memory_of(w, buffer)->group[buffer] == g);
    shadow_expect(w, c->lock != SHADOW_WRITING);
    shadow_expect(w, c->seen >> w->rank & 1);
    return c->value;
}

/* ---- collectives ---- */

static const term on_its_way = TERM_JUNK;

void shadow_lock_piece(shadow *w, int g, int buffer, int p, shadow_lock lock)
{
    const zero_buffer *b = look_up(w, buffer);
    check_bounds(w, b, g, p);
    shadow_cell *c = cell_of(w, buffer, p);
    if (lock == SHADOW_WRITING) {
        /* The node's memory is locked by all of its ranks. */
        shadow_expect(w, c->lock == SHADOW_FREE || c->value == on_its_way);
        claim(w, buffer, span_of(w, b, g, p));
        hold(w, buffer, g, p, (shadow_cell){.value = on_its_way, .lock = lock});
        return;
    }
    shadow_expect(w, c->value != 0 && c->lock == SHADOW_FREE);
    c->lock = lock;
}

void shadow_unlock_piece(shadow *w, int g, int buffer, int p)
{
    check_bounds(w, look_up(w, buffer), g, p);
    shadow_cell *c = cell_of(w, buffer, p);
    shadow_expect(w, c->value != 0 && c->lock == SHADOW_READING);
    c->lock = SHADOW_FREE;
}

void shadow_lock_staging(shadow *w, int buffer, size_t bytes)
{
    if (bytes == 0) return;
    shadow_write(w, buffer, bytes, on_its_way);
    cell_of(w, buffer, 0)->lock = SHADOW_WRITING;
}

void shadow_unlock_staging(shadow *w, int buffer)
{
    if (buffer == ZERO_NO_BUFFER) return;
    shadow_expect(w, cell_of(w, buffer, 0)->lock == SHADOW_WRITING);
    cell_of(w, buffer, 0)->lock = SHADOW_FREE;
    forget_cell(w, memory_of(w, buffer), buffer, 0);
}

term shadow_lock_plain(shadow *w, int buffer)
{
    term value = shadow_read(w, buffer, look_up(w, buffer)->bytes);
    shadow_expect(w, cell_of(w, buffer, 0)->lock == SHADOW_FREE);
    cell_of(w, buffer, 0)->lock = SHADOW_READING;
    return value;
}

void shadow_unlock_plain(shadow *w, int buffer)
{
    shadow_cell *c = cell_of(w, buffer, 0);
    shadow_expect(w, c->value != 0 && c->lock == SHADOW_READING);
    c->lock = SHADOW_FREE;
}

void shadow_publish_piece(shadow *w, int g, int buffer, int p, term value)
{
    const zero_buffer *b = look_up(w, buffer);
    check_bounds(w, b, g, p);
    const shadow_cell *c = cell_of(w, buffer, p);
    bool is_done = c->value == value && c->lock == SHADOW_FREE; /* by a neighbour */
    shadow_expect(w, is_done || (c->value == on_its_way && c->lock == SHADOW_WRITING));
    shadow_expect(w, term_fits(b->type, value));
    hold(w, buffer, g, p, (shadow_cell){.value = value, .seen = all_ranks()});
}

void shadow_release(shadow *w, int g, int buffer)
{
    const zero_buffer *b = look_up(w, buffer);
    for (int p = 0; p < shadow_pieces(w); p++) {
        shadow_cell *c = cell_of(w, buffer, p);
        if (shadow_is_empty(w, g, p)) continue;
        shadow_expect(w, c->lock == SHADOW_FREE);
        if (b->program == ZERO_PROGRAM_ALL)
            c->seen &= 1u << (shadow_first(w) + p);
        else
            forget_cell(w, memory_of(w, buffer), buffer, p);
    }
}

/* ---- begin and end ---- */

void shadow_memory_open(shadow *w)
{
    size_t ranks = (size_t)w->job->n_ranks;
    for (int r = 0; r < w->job->n_ranks; r++) {
        size_t n = (size_t)w->job->s[r].n_buffers;
        shadow_memory *m = &w->memory[r];
        m->cells = calloc(n * ranks, sizeof *m->cells);
        m->held = calloc(n, sizeof *m->held);
        m->group = calloc(n, sizeof *m->group);
        m->live = calloc(n, sizeof *m->live);
        assert_true(m->cells && m->held && m->group && m->live);
    }
}

void shadow_memory_close(shadow *w)
{
    for (int r = 0; r < w->job->n_ranks; r++) {
        free(w->memory[r].cells);
        free(w->memory[r].held);
        free(w->memory[r].group);
        free(w->memory[r].live);
    }
}

static void forget_programs(shadow *w, shadow_memory *m)
{
    for (int k = m->n_live - 1; k >= 0; k--) {
        int buffer = m->live[k];
        /* The cache stays until another program writes there. */
        if (shadow_plan(w)->buffers[buffer].program >= ZERO_PROGRAMS) continue;
        for (int p = 0; p < shadow_pieces(w); p++) {
            shadow_expect(w, m->cells[(int64_t)buffer * shadow_pieces(w) + p].lock ==
                                 SHADOW_FREE);
            forget_cell(w, m, buffer, p);
        }
    }
}

void shadow_memory_forget(shadow *w)
{
    for (w->rank = 0; w->rank < w->job->n_ranks; w->rank++)
        forget_programs(w, &w->memory[w->rank]);
    w->rank = 0;
}
