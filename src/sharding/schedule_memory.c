#include "sharding/schedule_memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/number.h"
#include "sharding/schedule_places.h"

static size_t aligned(const zero_schedule *s, size_t bytes)
{
    return zero_round_up_size(bytes, s->align);
}

/* This rank's share of memory that its group has once per node. Without any there may be no
 * group, and no layout. */
static size_t share_of_node(const zero_layout *layout, int rank, size_t bytes)
{
    if (bytes == 0) return 0;
    size_t ranks = (size_t)zero_layout_local_size(layout, rank);
    return (bytes + ranks - 1) / ranks;
}

/* Its share of such a space. */
static size_t share_of(const zero_schedule *s, zero_space space, size_t bytes)
{
    if (space == ZERO_SPACE_NODE)
        return share_of_node(zero_schedule_layout(s), s->shard.rank, bytes);
    if (space == ZERO_SPACE_TP_NODE)
        return share_of_node(zero_schedule_tp_layout(s), s->input.model->share.rank, bytes);
    return bytes;
}

bool zero_schedule_is_beside(const zero_schedule *s, zero_space space)
{
    return s->input.device && space != ZERO_SPACE_OWN && space != ZERO_SPACE_FILE;
}

size_t zero_schedule_cost(const zero_schedule *s, const zero_buffer *b)
{
    if (b->space == ZERO_SPACE_FILE) return 0;
    return share_of(s, b->space, b->bytes);
}

static void find_lifetimes(zero_schedule *s, zero_program_kind kind)
{
    const zero_program *p = &s->programs[kind];
    for (int at = 0; at < p->length; at++) {
        int list[ZERO_MAX_OPERANDS];
        int n = zero_instruction_operands(&p->code[at], list);
        for (int k = 0; k < n; k++) {
            if (list[k] == ZERO_NO_BUFFER) continue;
            zero_buffer *b = &s->buffers[list[k]];
            if (zero_buffer_lives_through(b, kind)) continue;
            assert(b->program == kind);
            if (b->first < 0) b->first = at;
            b->last = at;
        }
    }
}

void zero_peak_widen(zero_peak *peak, const zero_peak *more)
{
    peak->bytes = zero_max_size(peak->bytes, more->bytes);
    peak->host_bytes = zero_max_size(peak->host_bytes, more->host_bytes);
    for (int c = 0; c < ZERO_CLASSES; c++) {
        peak->of_class[c] = zero_max_size(peak->of_class[c], more->of_class[c]);
        peak->host_of_class[c] =
            zero_max_size(peak->host_of_class[c], more->host_of_class[c]);
    }
}

/* This rank's part of a window, and its share of what lies there once. */
static size_t window_of(const zero_schedule *s, zero_space part, zero_space node)
{
    return s->extent[part] + aligned(s, share_of(s, node, s->extent[node]));
}

static void add_spaces(zero_schedule *s)
{
    s->own_bytes = s->extent[ZERO_SPACE_OWN];
    s->host_bytes = s->extent[ZERO_SPACE_HOST];
    s->window_bytes = window_of(s, ZERO_SPACE_PART, ZERO_SPACE_NODE);
    s->tp_window_bytes = window_of(s, ZERO_SPACE_TP_PART, ZERO_SPACE_TP_NODE);
}

void zero_schedule_place_persistent(zero_schedule *s)
{
    for (int i = 0; i < s->n_buffers; i++) {
        zero_buffer *b = &s->buffers[i];
        if (b->program != ZERO_PROGRAM_ALL) continue;
        b->offset = s->persistent[b->space];
        s->persistent[b->space] += aligned(s, b->bytes);
    }
    memcpy(s->extent, s->persistent, sizeof s->extent);
    add_spaces(s);
}

/* A program's buffers, sorted by their first instruction or by their last. */
struct row {
    int *ids;
    int *ends; /* [length + 1] instruction `at` has the ids before ids[ends[at]] */
    int next;
};

/* Bytes [begin, end) that no buffer has. */
struct gap {
    size_t begin, end;
};

/* No gap that begins before `offset` has `need` bytes: a program asks for few sizes, each
 * often. */
struct hint {
    size_t need, offset;
};

#define HINTS 32

/* The state of memory between two instructions: the sums of the buffers alive, and the gaps
 * between them. The gaps are kept only if the sweep places buffers. */
struct sweep {
    bool places;
    struct gap *gaps[ZERO_SPACES]; /* sorted, never adjacent; the last one has no end */
    int n_gaps[ZERO_SPACES];
    struct hint hints[ZERO_SPACES][HINTS];
    struct row births, deaths;
    zero_peak now;
};

/* `bytes` may stand for a negative number: sums wrap around. */
static void count(const zero_schedule *s, struct sweep *w, const zero_buffer *b,
                  size_t bytes)
{
    bool beside = zero_schedule_is_beside(s, b->space);
    *(beside ? &w->now.host_bytes : &w->now.bytes) += bytes;
    (beside ? w->now.host_of_class : w->now.of_class)[b->class] += bytes;
}

static void remove_gap(struct sweep *w, zero_space space, int k)
{
    struct gap *gaps = w->gaps[space];
    int after = --w->n_gaps[space] - k;
    memmove(gaps + k, gaps + k + 1, (size_t)after * sizeof *gaps);
}

/* The first gap that begins at or after `offset`. */
static int find_gap(const struct sweep *w, zero_space space, size_t offset)
{
    int low = 0, high = w->n_gaps[space];
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (w->gaps[space][middle].begin < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Takes the start of the first gap that is long enough. */
static void place(zero_schedule *s, struct sweep *w, int id)
{
    zero_buffer *b = &s->buffers[id];
    size_t need = aligned(s, b->bytes);
    b->offset = zero_schedule_floor(s, b->program, b->space);
    if (need == 0) return;
    struct hint *hint = &w->hints[b->space][need / ZERO_BUFFER_ALIGN * 0x9E3779B1 % HINTS];
    if (hint->need != need) *hint = (struct hint){.need = need};
    struct gap *gap = w->gaps[b->space] + find_gap(w, b->space, hint->offset);
    while (gap->end - gap->begin < need) gap++;
    b->offset = hint->offset = gap->begin;
    gap->begin += need;
    if (gap->begin == gap->end) remove_gap(w, b->space, (int)(gap - w->gaps[b->space]));
    s->extent[b->space] = zero_max_size(s->extent[b->space], b->offset + need);
}

/* Makes a gap of the buffer's place, one with those beside it. */
static void drop(const zero_schedule *s, struct sweep *w, int id)
{
    const zero_buffer *b = &s->buffers[id];
    struct gap *gaps = w->gaps[b->space],
               freed = {b->offset, b->offset + aligned(s, b->bytes)};
    if (b->bytes == 0) return;
    int k = find_gap(w, b->space, freed.begin);
    assert(k < w->n_gaps[b->space] && freed.end <= gaps[k].begin);
    if (freed.end == gaps[k].begin) {
        gaps[k].begin = freed.begin;
    } else {
        int after = w->n_gaps[b->space]++ - k;
        memmove(gaps + k + 1, gaps + k, (size_t)after * sizeof *gaps);
        gaps[k] = freed;
    }
    if (k > 0 && gaps[k - 1].end == gaps[k].begin) {
        gaps[k].begin = gaps[k - 1].begin;
        remove_gap(w, b->space, --k);
    }
    for (struct hint *h = w->hints[b->space]; h < w->hints[b->space] + HINTS; h++)
        if (h->offset > gaps[k].begin && h->need <= gaps[k].end - gaps[k].begin)
            h->offset = gaps[k].begin;
}

static int key(const zero_buffer *b, bool by_last)
{
    return by_last ? b->last : b->first;
}

/* Counting sort. */
static void sort_row(const zero_schedule *s, zero_program_kind kind, bool by_last,
                     struct row *row)
{
    int length = s->programs[kind].length, *ends = row->ends;
    memset(ends, 0, ((size_t)length + 1) * sizeof *ends);
    for (int i = 0; i < s->n_buffers; i++)
        if (zero_buffer_is_of(&s->buffers[i], kind))
            ends[key(&s->buffers[i], by_last) + 1]++;
    for (int at = 0; at < length; at++) ends[at + 1] += ends[at];
    for (int i = 0; i < s->n_buffers; i++)
        if (zero_buffer_is_of(&s->buffers[i], kind))
            row->ids[ends[key(&s->buffers[i], by_last)]++] = i;
    row->next = 0;
}

static struct row new_row(size_t n, size_t length)
{
    return (struct row){.ids = malloc(n * sizeof(int)),
                        .ends = malloc((length + 1) * sizeof(int))};
}

static zero_status open_sweep(const zero_schedule *s, struct sweep *w)
{
    size_t n = (size_t)s->n_buffers + 1, longest = 0;
    for (int p = 0; p < ZERO_PROGRAMS; p++)
        longest = zero_max_size(longest, (size_t)s->programs[p].length);
    *w = (struct sweep){.births = new_row(n, longest), .deaths = new_row(n, longest)};
    bool complete = w->births.ids && w->births.ends && w->deaths.ids && w->deaths.ends;
    for (int space = 0; space < ZERO_SPACES; space++) {
        w->gaps[space] = malloc((n + 1) * sizeof(struct gap));
        complete = complete && w->gaps[space];
    }
    if (complete) return ZERO_OK;
    return zero_fail(ZERO_ERR_NOMEM, "no memory to lay out %d buffers", s->n_buffers);
}

static void sweep_program(zero_schedule *s, struct sweep *w, zero_program_kind kind)
{
    struct row *births = &w->births, *deaths = &w->deaths;
    memset(w->hints, 0, sizeof w->hints);
    for (int space = 0; space < ZERO_SPACES; space++) {
        w->n_gaps[space] = 1;
        w->gaps[space][0] =
            (struct gap){zero_schedule_floor(s, kind, (zero_space)space), SIZE_MAX};
    }
    w->now = (zero_peak){0};
    for (int i = 0; i < s->n_buffers; i++)
        if (zero_buffer_lives_through(&s->buffers[i], kind))
            count(s, w, &s->buffers[i], zero_schedule_cost(s, &s->buffers[i]));
    sort_row(s, kind, false, births);
    sort_row(s, kind, true, deaths);
    for (int at = 0; at < s->programs[kind].length; at++) {
        while (at > 0 && deaths->next < deaths->ends[at - 1]) {
            int id = deaths->ids[deaths->next++];
            if (w->places) drop(s, w, id);
            count(s, w, &s->buffers[id],
                  (size_t)0 - zero_schedule_cost(s, &s->buffers[id]));
        }
        while (births->next < births->ends[at]) {
            int id = births->ids[births->next++];
            if (w->places) place(s, w, id);
            count(s, w, &s->buffers[id], zero_schedule_cost(s, &s->buffers[id]));
        }
        s->programs[kind].code[at].live_bytes = w->now.bytes;
        zero_peak_widen(&s->peak_of[kind], &w->now);
        if (w->now.bytes <= s->peak_bytes) continue;
        s->peak_bytes = w->now.bytes;
        s->peak_program = kind;
        s->peak_at = at;
    }
}

zero_status zero_schedule_lay_out(zero_schedule *s)
{
    struct sweep w;
    zero_status st = open_sweep(s, &w);
    if (st == ZERO_OK) zero_schedule_place_persistent(s);
    if (st == ZERO_OK) {
        /* A buffer of two programs has one place in both, below their own buffers. */
        for (int i = 0; i < s->n_buffers; i++) {
            zero_buffer *b = &s->buffers[i];
            if (b->program != ZERO_PROGRAM_TEXT) continue;
            b->offset = s->persistent[b->space] + s->cached[b->space];
            s->cached[b->space] += aligned(s, b->bytes);
        }
        for (int space = 0; space < ZERO_SPACES; space++)
            s->extent[space] =
                zero_max_size(s->extent[space], s->persistent[space] + s->cached[space]);
    }
    for (int p = 0; st == ZERO_OK && p < ZERO_PROGRAMS; p++) {
        zero_program_kind kind = (zero_program_kind)p;
        find_lifetimes(s, kind);
        w.places = !zero_places_are_few(s, kind);
        if (!w.places) st = zero_places_find(s, kind);
        if (st == ZERO_OK) sweep_program(s, &w, kind);
    }
    if (st == ZERO_OK) {
        zero_peak all = {0};
        for (int p = 0; p < ZERO_PROGRAMS; p++) zero_peak_widen(&all, &s->peak_of[p]);
        memcpy(s->class_peak, all.of_class, sizeof s->class_peak);
        memcpy(s->host_class_peak, all.host_of_class, sizeof s->host_class_peak);
        s->host_peak_bytes = all.host_bytes;
        add_spaces(s);
    }
    for (int space = 0; space < ZERO_SPACES; space++) free(w.gaps[space]);
    free(w.births.ids);
    free(w.births.ends);
    free(w.deaths.ids);
    free(w.deaths.ends);
    return st;
}
