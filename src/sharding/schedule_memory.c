#include "sharding/schedule_memory.h"

#include "base/grow.h"

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
        return share_of_node(zero_schedule_tp_layout(s), s->model->share.rank, bytes);
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

/* ---- lives ---- */

/* live[at * stride] = the bytes in use while instruction `at` runs: of a class, or of all
 * (ZERO_CLASSES); with a device on it, or beside it. Returns the most. A buffer is added
 * where its life begins and taken away after its end: sums wrap around. */
static size_t add_lives(const zero_schedule *s, zero_program_kind program,
                        const zero_life *lives, int class, bool beside, size_t *live,
                        size_t stride)
{
    const int length = s->programs[program].length;
    size_t now = 0, most = 0;
    for (int at = 0; at < length; at++) live[(size_t)at * stride] = 0;
    for (int i = 0; length > 0 && i < s->n_buffers; i++) {
        const zero_buffer *b = &s->buffers[i];
        zero_life life = lives ? lives[i] : (zero_life){b->first, b->last};
        if (class < ZERO_CLASSES && b->class != (zero_class) class) continue;
        if (zero_schedule_is_beside(s, b->space) != beside) continue;
        if (zero_buffer_lives_through(b, program))
            life = (zero_life){0, length};
        else if (b->program != program || life.first < 0)
            continue;
        size_t cost = zero_schedule_cost(s, b);
        live[(size_t)life.first * stride] += cost;
        if (life.last + 1 < length) live[(size_t)(life.last + 1) * stride] -= cost;
    }
    for (int at = 0; at < length; at++) {
        live[(size_t)at * stride] = now += live[(size_t)at * stride];
        most = zero_max_size(most, now);
    }
    return most;
}

zero_peak zero_schedule_peak(const zero_schedule *s, zero_program_kind program,
                             const zero_life *lives, size_t *live)
{
    zero_peak peak = {0};
    for (int c = 0; c < ZERO_CLASSES; c++)
        peak.of_class[c] = add_lives(s, program, lives, c, false, live, 1);
    for (int c = 0; s->input.device && c < ZERO_CLASSES; c++)
        peak.host_of_class[c] = add_lives(s, program, lives, c, true, live, 1);
    if (s->input.device)
        peak.host_bytes = add_lives(s, program, lives, ZERO_CLASSES, true, live, 1);
    peak.bytes = add_lives(s, program, lives, ZERO_CLASSES, false, live, 1);
    return peak;
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

bool zero_buffer_lives_at(const zero_buffer *b, zero_program_kind program, int at)
{
    if (zero_buffer_lives_through(b, program)) return true;
    return zero_buffer_is_of(b, program) && b->first <= at && at <= b->last;
}

void zero_schedule_live(const zero_schedule *s, zero_program_kind program,
                        size_t (*of_class)[ZERO_CLASSES])
{
    for (int c = 0; c < ZERO_CLASSES; c++)
        add_lives(s, program, NULL, c, false, &of_class[0][c], ZERO_CLASSES);
}

void zero_schedule_live_at(const zero_schedule *s, zero_program_kind program, int at,
                           size_t of_class[ZERO_CLASSES])
{
    memset(of_class, 0, ZERO_CLASSES * sizeof *of_class);
    for (int i = 0; i < s->n_buffers; i++) {
        const zero_buffer *b = &s->buffers[i];
        if (zero_buffer_lives_at(b, program, at) && !zero_schedule_is_beside(s, b->space))
            of_class[b->class] += zero_schedule_cost(s, b);
    }
}

/* ---- places of a program's buffers ---- */

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
};

typedef int (*order)(const void *, const void *);

static int by_birth(const void *one, const void *other)
{
    const struct place *a = one, *b = other;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

static int by_size(const void *one, const void *other)
{
    const struct place *a = one, *b = other;
    if (a->need != b->need) return a->need > b->need ? -1 : 1;
    return by_birth(one, other);
}

static int by_fullness(const void *one, const void *other)
{
    const struct place *a = one, *b = other;
    if (a->fullest != b->fullest) return a->fullest > b->fullest ? -1 : 1;
    return by_size(one, other);
}

/* Returns the end of the highest buffer. */
static size_t place_all(struct places *p, order in)
{
    size_t end = p->floor;
    qsort(p->all, (size_t)p->n, sizeof *p->all, in);
    p->n_placed = 0;
    for (struct place *x = p->all; x < p->all + p->n; x++) {
        /* The first gap between those that live at the same time. In the order of births
         * those that have died are never met again. */
        size_t offset = p->floor;
        int k = 0, n = in == by_birth ? p->n_placed : 0;
        if (in == by_birth) p->n_placed = 0;
        for (; k < n; k++)
            if (p->placed[k]->last >= x->first) p->placed[p->n_placed++] = p->placed[k];
        for (k = 0; k < p->n_placed; k++) {
            const struct place *y = p->placed[k];
            if (y->last < x->first || y->first > x->last) continue;
            if (y->offset >= offset + x->need) break;
            offset = zero_max_size(offset, y->offset + y->need);
        }
        x->offset = offset;
        k = p->n_placed++;
        for (; k > 0 && p->placed[k - 1]->offset > x->offset; k--)
            p->placed[k] = p->placed[k - 1];
        p->placed[k] = x;
        end = zero_max_size(end, x->offset + x->need);
    }
    return end;
}

/* No layout needs less than what is alive at once. */
static size_t place_well(struct places *p, int length)
{
    size_t most = 0, end = place_all(p, by_size);
    memset(p->alive, 0, ((size_t)length + 1) * sizeof *p->alive);
    for (int i = 0; i < p->n; i++) {
        p->alive[p->all[i].first] += p->all[i].need;
        p->alive[p->all[i].last + 1] -= p->all[i].need; /* the sum stays positive */
    }
    for (int at = 1; at < length; at++) p->alive[at] += p->alive[at - 1];
    for (int at = 0; at < length; at++) most = zero_max_size(most, p->alive[at]);
    if (end == p->floor + most) return end;
    for (struct place *x = p->all; x < p->all + p->n; x++) {
        x->fullest = 0;
        for (int at = x->first; at <= x->last; at++)
            x->fullest = zero_max_size(x->fullest, p->alive[at]);
    }
    size_t other = place_all(p, by_fullness);
    return other <= end ? other : place_all(p, by_size);
}

static void find_places(zero_schedule *s, zero_program_kind kind, struct places *p)
{
    int n = 0;
    for (int i = 0; i < s->n_buffers; i++) n += zero_buffer_is_of(&s->buffers[i], kind);
    for (zero_space space = 0; space < ZERO_SPACES; space++) {
        p->n = 0;
        p->floor =
            s->persistent[space] + (zero_program_generates(kind) ? s->cached[space] : 0);
        for (int i = 0; i < s->n_buffers; i++) {
            zero_buffer *b = &s->buffers[i];
            if (!zero_buffer_is_of(b, kind) || b->space != space) continue;
            b->offset = p->floor;
            size_t need = aligned(s, b->bytes);
            if (need > 0)
                p->all[p->n++] = (struct place){
                    .need = need, .first = b->first, .last = b->last, .id = i};
        }
        size_t end = n > ZERO_PLACES_AT_ONCE ? place_all(p, by_birth)
                                             : place_well(p, s->programs[kind].length);
        s->extent[space] = zero_max_size(s->extent[space], end);
        for (int i = 0; i < p->n; i++) s->buffers[p->all[i].id].offset = p->all[i].offset;
    }
}

/* ---- all of it ---- */

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

/* Buffers of such a life lie end to end above the floors. */
static void place_in_turn(zero_schedule *s, zero_program_kind life,
                          size_t bytes[ZERO_SPACES])
{
    for (int i = 0; i < s->n_buffers; i++) {
        zero_buffer *b = &s->buffers[i];
        if (b->program != life) continue;
        b->offset = s->extent[b->space];
        s->extent[b->space] += aligned(s, b->bytes);
        bytes[b->space] += aligned(s, b->bytes);
    }
}

void zero_schedule_place_persistent(zero_schedule *s)
{
    place_in_turn(s, ZERO_PROGRAM_ALL, s->persistent);
    add_spaces(s);
}

static void destroy_places(struct places *p)
{
    free(p->all);
    free(p->placed);
    free(p->alive);
}

zero_status zero_schedule_lay_out(zero_schedule *s)
{
    size_t n = (size_t)s->n_buffers + 1, longest = 1;
    for (zero_program_kind p = 0; p < ZERO_PROGRAMS; p++)
        longest = zero_max_size(longest, (size_t)s->programs[p].length + 1);
    ZERO_AT_END(destroy_places)
    struct places places = {.all = malloc(n * sizeof *places.all),
                            .placed = malloc(n * sizeof *places.placed),
                            .alive = malloc(longest * sizeof *places.alive)};
    ZERO_TRY(zero_allocated(places.all && places.placed && places.alive,
                            "no memory to lay out %d buffers", s->n_buffers));
    zero_schedule_place_persistent(s);
    /* A buffer of two programs has one place in both, below their own buffers. */
    place_in_turn(s, ZERO_PROGRAM_TEXT, s->cached);
    for (zero_program_kind kind = 0; kind < ZERO_PROGRAMS; kind++) {
        const zero_program *p = &s->programs[kind];
        for (int at = 0; at < p->length; at++)
            for (int k = 0; k < ZERO_OPERANDS; k++) {
                int id = p->code[at].operands[k];
                if (id == ZERO_NO_BUFFER) continue;
                zero_buffer *b = &s->buffers[id];
                if (zero_buffer_lives_through(b, kind)) continue;
                assert(b->program == kind);
                if (b->first < 0) b->first = at;
                b->last = at;
            }
        find_places(s, kind, &places);
        s->peak_of[kind] = zero_schedule_peak(s, kind, NULL, places.alive);
        for (int at = 0; at < s->programs[kind].length; at++) {
            s->programs[kind].code[at].live_bytes = places.alive[at];
            if (places.alive[at] <= s->peak_bytes) continue;
            s->peak_bytes = places.alive[at];
            s->peak_program = kind;
            s->peak_at = at;
        }
        zero_peak_widen(&s->peak, &s->peak_of[kind]);
    }
    add_spaces(s);
    return ZERO_OK;
}
