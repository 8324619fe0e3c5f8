#include "sharding/schedule_places.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/number.h"

struct place {
    size_t need, offset; /* bytes */
    size_t fullest;      /* the most bytes alive during its life */
    int first, last, id;
};

/* The buffers of a program in one space. */
struct places {
    size_t floor; /* their lowest offset */
    struct place *all;
    int n;
    struct place **placed; /* sorted by offset */
    int n_placed;
    size_t *alive; /* [length + 1] bytes, by instruction */
    int length;
};

typedef int (*order)(const void *, const void *);

bool zero_places_are_few(const zero_schedule *s, zero_program_kind kind)
{
    int n = 0;
    for (int i = 0; i < s->n_buffers; i++) n += zero_buffer_is_of(&s->buffers[i], kind);
    return n <= ZERO_PLACES_AT_ONCE;
}

static void collect(zero_schedule *s, zero_program_kind kind, zero_space space,
                    struct places *p)
{
    p->n = 0;
    p->length = s->programs[kind].length;
    p->floor = zero_schedule_floor(s, kind, space);
    for (int i = 0; i < s->n_buffers; i++) {
        zero_buffer *b = &s->buffers[i];
        if (!zero_buffer_is_of(b, kind) || b->space != space) continue;
        b->offset = p->floor;
        size_t need = zero_round_up_size(b->bytes, s->align);
        if (need == 0) continue;
        p->all[p->n++] =
            (struct place){.need = need, .first = b->first, .last = b->last, .id = i};
    }
}

/* ---- orders ---- */

static int by_size(const void *one, const void *other)
{
    const struct place *a = one, *b = other;
    if (a->need != b->need) return a->need > b->need ? -1 : 1;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

static int by_fullness(const void *one, const void *other)
{
    const struct place *a = one, *b = other;
    if (a->fullest != b->fullest) return a->fullest > b->fullest ? -1 : 1;
    return by_size(one, other);
}

/* Returns the most bytes that are alive at once: no layout needs less. */
static size_t count_alive(struct places *p)
{
    size_t most = 0;
    memset(p->alive, 0, ((size_t)p->length + 1) * sizeof *p->alive);
    for (int i = 0; i < p->n; i++) {
        p->alive[p->all[i].first] += p->all[i].need;
        p->alive[p->all[i].last + 1] -= p->all[i].need; /* the sum stays positive */
    }
    for (int at = 1; at < p->length; at++) p->alive[at] += p->alive[at - 1];
    for (int at = 0; at < p->length; at++) most = zero_max_size(most, p->alive[at]);
    return most;
}

/* ---- places ---- */

/* Returns the end of the highest buffer. */
static size_t place_all(struct places *p, order in)
{
    size_t end = p->floor;
    qsort(p->all, (size_t)p->n, sizeof *p->all, in);
    p->n_placed = 0;
    for (struct place *x = p->all; x < p->all + p->n; x++) {
        /* The first gap between those that live at the same time. */
        size_t offset = p->floor;
        for (int k = 0; k < p->n_placed; k++) {
            const struct place *y = p->placed[k];
            if (y->last < x->first || y->first > x->last) continue;
            if (y->offset >= offset + x->need) break;
            offset = zero_max_size(offset, y->offset + y->need);
        }
        x->offset = offset;
        int k = p->n_placed++;
        for (; k > 0 && p->placed[k - 1]->offset > x->offset; k--)
            p->placed[k] = p->placed[k - 1];
        p->placed[k] = x;
        end = zero_max_size(end, x->offset + x->need);
    }
    return end;
}

static size_t place_well(struct places *p)
{
    size_t least = p->floor + count_alive(p), end = place_all(p, by_size);
    if (end == least) return end;
    for (struct place *x = p->all; x < p->all + p->n; x++) {
        x->fullest = 0;
        for (int at = x->first; at <= x->last; at++)
            x->fullest = zero_max_size(x->fullest, p->alive[at]);
    }
    size_t other = place_all(p, by_fullness);
    return other <= end ? other : place_all(p, by_size);
}

static zero_status allocate(const zero_schedule *s, zero_program_kind kind,
                            struct places *p)
{
    size_t n = (size_t)s->n_buffers + 1, length = (size_t)s->programs[kind].length + 1;
    *p = (struct places){.all = malloc(n * sizeof *p->all),
                         .placed = malloc(n * sizeof *p->placed),
                         .alive = malloc(length * sizeof *p->alive)};
    if (p->all && p->placed && p->alive) return ZERO_OK;
    return zero_fail(ZERO_ERR_NOMEM, "no memory to lay out %d buffers", s->n_buffers);
}

zero_status zero_places_find(zero_schedule *s, zero_program_kind kind)
{
    struct places p;
    zero_status st = allocate(s, kind, &p);
    for (int space = 0; st == ZERO_OK && space < ZERO_SPACES; space++) {
        collect(s, kind, (zero_space)space, &p);
        s->extent[space] = zero_max_size(s->extent[space], place_well(&p));
        for (int i = 0; i < p.n; i++) s->buffers[p.all[i].id].offset = p.all[i].offset;
    }
    free(p.all);
    free(p.placed);
    free(p.alive);
    return st;
}
