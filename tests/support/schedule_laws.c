#include "support/schedule_laws.h"

#include "sharding/ops.h"
#include "sharding/schedule_memory.h"

int64_t laws_padded(const zero_schedule *s)
{
    int64_t sum = 0;
    for (int g = 0; g < s->input.model->n_groups; g++) sum += s->groups[g].partition.padded;
    return sum;
}

int laws_count(const zero_schedule *s, zero_program_kind program, zero_op op, int group)
{
    const zero_program *p = &s->programs[program];
    int n = 0;
    for (int at = laws_find(p, 0, op, group); at < p->length; n++)
        at = laws_find(p, at + 1, op, group);
    return n;
}

int laws_find(const zero_program *p, int from, zero_op op, int group)
{
    while (from < p->length &&
           (p->code[from].op != op || (group != LAWS_ANY && p->code[from].group != group)))
        from++;
    return from;
}

bool laws_unit_has(const zero_schedule *s, int unit, int group)
{
    const zero_unit *u = &s->input.model->units[unit];
    for (int k = 0; k < u->n_groups; k++)
        if (u->groups[k] == group) return true;
    return false;
}

bool laws_computes(zero_op op)
{
    return op == ZERO_OP_FORWARD || op == ZERO_OP_RECOMPUTE || op == ZERO_OP_BACKWARD;
}

/* ---- lifetimes ---- */

int laws_named_buffers(const zero_instruction *i, int *list)
{
    const int all[] = {i->in,       i->out,      i->stream, i->saved,  i->work,
                       i->logits,   i->row_loss, i->tokens, i->buffer, i->staging,
                       i->state[0], i->state[1], i->master, i->sum,    i->file,
                       i->host,     i->joint,    i->joined, i->before, i->hashes};
    int n = 0;
    for (size_t k = 0; k < COUNT(all); k++)
        if (all[k] != ZERO_NO_BUFFER) list[n++] = all[k];
    for (int k = 0; k < ZERO_UNIT_GROUPS; k++) {
        if (i->param[k] != ZERO_NO_BUFFER) list[n++] = i->param[k];
        if (i->grad[k] != ZERO_NO_BUFFER) list[n++] = i->grad[k];
    }
    return n;
}

typedef struct {
    int first, last;
} span;

/* spans[id]: from the first to the last instruction of the program that names the buffer;
 * buffers of the whole run are alive throughout. */
static span *find_spans(const zero_schedule *s, zero_program_kind kind)
{
    const zero_program *p = &s->programs[kind];
    span *spans = calloc((size_t)s->n_buffers + 1, sizeof *spans);
    assert_non_null(spans);
    for (int id = 0; id < s->n_buffers; id++) {
        bool always = zero_buffer_lives_through(&s->buffers[id], kind);
        spans[id] = always ? (span){0, p->length - 1} : (span){p->length, -1};
    }
    for (int at = 0; at < p->length; at++) {
        int list[ZERO_OPERANDS], n = laws_named_buffers(&p->code[at], list);
        for (int k = 0; k < n; k++) {
            if (at < spans[list[k]].first) spans[list[k]].first = at;
            if (at > spans[list[k]].last) spans[list[k]].last = at;
        }
    }
    return spans;
}

typedef void (*span_check)(const zero_schedule *s, zero_program_kind kind,
                           const span *spans);

static void for_all_programs(const zero_schedule *s, span_check check)
{
    for (int kind = 0; kind < ZERO_PROGRAMS; kind++) {
        span *spans = find_spans(s, (zero_program_kind)kind);
        check(s, (zero_program_kind)kind, spans);
        free(spans);
    }
}

static void check_alive(const zero_schedule *s, zero_program_kind kind, const span *spans)
{
    for (int id = 0; id < s->n_buffers; id++) {
        const zero_buffer *b = &s->buffers[id];
        if (b->program != kind) continue;
        assert_true(spans[id].first <= spans[id].last); /* it is used */
        assert_int_equal(b->first, spans[id].first);
        assert_int_equal(b->last, spans[id].last);
    }
}

void laws_check_lifetimes(const zero_schedule *s)
{
    for_all_programs(s, check_alive);
}

/* ---- places ---- */

static void check_pair(const zero_schedule *s, int i, int k)
{
    const zero_buffer *a = &s->buffers[i], *b = &s->buffers[k];
    bool is_apart = a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset;
    if (a->space == b->space && !is_apart)
        fail_msg("buffers %d [%zu +%zu] and %d [%zu +%zu] overlap", i, a->offset, a->bytes,
                 k, b->offset, b->bytes);
}

static void check_pairs(const zero_schedule *s, zero_program_kind kind, const span *spans)
{
    (void)kind;
    for (int i = 0; i < s->n_buffers; i++)
        for (int k = 0; k < i; k++)
            if (spans[i].first <= spans[k].last && spans[k].first <= spans[i].last)
                check_pair(s, i, k);
}

void laws_check_places(const zero_schedule *s)
{
    for_all_programs(s, check_pairs);
    for (int id = 0; id < s->n_buffers; id++) {
        const zero_buffer *b = &s->buffers[id];
        bool persistent = b->program == ZERO_PROGRAM_ALL;
        assert_true(b->offset % s->align == 0);
        if (b->bytes == 0) continue;
        assert_true(b->offset + b->bytes <= s->extent[b->space]);
        assert_true(persistent == (b->offset < s->persistent[b->space]));
        if (persistent) assert_true(b->offset + b->bytes <= s->persistent[b->space]);
    }
}

/* ---- the ledger ---- */

struct peaks {
    size_t total, by_class[ZERO_CLASSES];
};

/* Where the backend computes, and beside a device. */
enum { NEAR, BESIDE, COLUMNS };

static size_t ranks_on_tp_node(const zero_schedule *s)
{
    const zero_layout *layout = zero_schedule_tp_layout(s);
    size_t ranks = 0;
    for (int r = 0; r < layout->size; r++)
        ranks += layout->node_of[r] == layout->node_of[s->input.model->share.rank];
    return ranks;
}

/* This rank's share of memory that the node has once. */
static size_t cost(const zero_schedule *s, const zero_buffer *b)
{
    const zero_layout *layout = zero_schedule_layout(s);
    size_t ranks = 0;
    if (b->space == ZERO_SPACE_FILE) return 0; /* no memory */
    for (int r = 0; r < layout->size; r++)
        ranks += layout->node_of[r] == layout->node_of[s->input.rank % layout->size];
    if (b->space == ZERO_SPACE_TP_NODE) ranks = ranks_on_tp_node(s);
    bool is_once = b->space == ZERO_SPACE_NODE || b->space == ZERO_SPACE_TP_NODE;
    return is_once ? (b->bytes + ranks - 1) / ranks : b->bytes;
}

static int column(const zero_schedule *s, const zero_buffer *b)
{
    bool is_near = b->space == ZERO_SPACE_OWN || b->space == ZERO_SPACE_FILE;
    return s->input.device && !is_near ? BESIDE : NEAR;
}

static void add_alive(const zero_schedule *s, const span *spans, int at,
                      struct peaks now[COLUMNS])
{
    for (int id = 0; id < s->n_buffers; id++) {
        if (at < spans[id].first || at > spans[id].last) continue;
        struct peaks *where = &now[column(s, &s->buffers[id])];
        where->total += cost(s, &s->buffers[id]);
        where->by_class[s->buffers[id].class] += cost(s, &s->buffers[id]);
    }
}

static void widen(struct peaks *most, const struct peaks *now)
{
    if (now->total > most->total) most->total = now->total;
    for (int c = 0; c < ZERO_CLASSES; c++)
        if (now->by_class[c] > most->by_class[c]) most->by_class[c] = now->by_class[c];
}

static void add_peaks(const zero_schedule *s, zero_program_kind kind,
                      struct peaks most[COLUMNS])
{
    span *spans = find_spans(s, kind);
    int length = s->programs[kind].length;
    size_t(*live)[ZERO_CLASSES] = calloc((size_t)length + 1, sizeof *live);
    assert_non_null(live);
    zero_schedule_live(s, kind, live);
    for (int at = 0; at < length; at++) {
        struct peaks now[COLUMNS] = {0};
        add_alive(s, spans, at, now);
        assert_true(s->programs[kind].code[at].live_bytes == now[NEAR].total);
        size_t one[ZERO_CLASSES];
        zero_schedule_live_at(s, kind, at, one);
        assert_memory_equal(live[at], now[NEAR].by_class, sizeof live[at]);
        assert_memory_equal(one, live[at], sizeof one);
        for (int k = 0; k < COLUMNS; k++) widen(&most[k], &now[k]);
    }
    free(live);
    free(spans);
}

/* Shares of the node's memory are rounded up one by one: a byte for each of its buffers. */
static size_t rounding(const zero_schedule *s)
{
    size_t n = 0;
    for (int id = 0; id < s->n_buffers; id++)
        n += s->buffers[id].space == ZERO_SPACE_NODE ||
             s->buffers[id].space == ZERO_SPACE_TP_NODE;
    return n;
}

void laws_check_ledger(const zero_schedule *s)
{
    struct peaks all[COLUMNS] = {0}, most, beside;
    for (int kind = 0; kind < ZERO_PROGRAMS; kind++)
        add_peaks(s, (zero_program_kind)kind, all);
    most = all[NEAR];
    beside = all[BESIDE];
    size_t window = s->input.device ? 0 : s->window_bytes;
    assert_true(s->peak_bytes == most.total);
    assert_true(s->peak_bytes <= s->own_bytes + window + s->tp_window_bytes + rounding(s));
    assert_true(s->host_peak_bytes == beside.total);
    assert_true(s->host_peak_bytes <= s->host_bytes + s->window_bytes);
    assert_memory_equal(s->host_class_peak, beside.by_class, sizeof beside.by_class);
    assert_true(s->programs[s->peak_program].code[s->peak_at].live_bytes == s->peak_bytes);
    assert_memory_equal(s->class_peak, most.by_class, sizeof most.by_class);
}

void laws_check_least(const zero_schedule *s)
{
    zero_schedule_bound least;
    int64_t instructions = 0;
    assert_ok(zero_schedule_least(&s->input, &least));
    for (int kind = 0; kind < ZERO_PROGRAMS; kind++)
        instructions += s->programs[kind].length;
    size_t window = s->input.device ? 0 : s->window_bytes;
    assert_true(least.bytes <= s->own_bytes + window + s->tp_window_bytes);
    assert_true(least.host_bytes <= s->host_bytes + s->window_bytes - window);
    assert_true(least.instructions <= instructions);
    /* It is no trivial bound: it has all that lives for the whole run, but for staging. */
    size_t states = s->persistent[ZERO_SPACE_OWN] + s->persistent[ZERO_SPACE_PART] +
                    s->persistent[ZERO_SPACE_HOST];
    for (int id = 0; id < s->n_buffers; id++)
        if (s->buffers[id].class == ZERO_CLASS_BUCKETS &&
            s->buffers[id].program == ZERO_PROGRAM_ALL)
            states -= (s->buffers[id].bytes + s->align - 1) / s->align * s->align;
    assert_true(least.bytes + least.host_bytes >= states);
}

/* ---- the window ---- */

/* Ranks may hold different numbers of blocks in their files. Instructions of these and the blocks
 * are left out where two ranks are compared. */
typedef struct {
    const zero_schedule *s;
    int *number[ZERO_PROGRAMS]; /* of each instruction, without those of blocks */
    int *ids, n;                /* buffers that are no blocks of a file */
} common;

static bool is_of_block(const zero_instruction *i)
{
    return i->op == ZERO_OP_FETCH || i->op == ZERO_OP_FETCH_WAIT ||
           i->op == ZERO_OP_UPDATE || i->op == ZERO_OP_STORE || i->op == ZERO_OP_STORE_WAIT;
}

static common find_common(const zero_schedule *s)
{
    common c = {.s = s, .ids = calloc((size_t)s->n_buffers + 1, sizeof *c.ids)};
    assert_non_null(c.ids);
    for (int kind = 0; kind < ZERO_PROGRAMS; kind++) {
        const zero_program *p = &s->programs[kind];
        c.number[kind] = calloc((size_t)p->length + 1, sizeof *c.number[kind]);
        assert_non_null(c.number[kind]);
        for (int at = 0; at < p->length; at++)
            c.number[kind][at + 1] = c.number[kind][at] + !is_of_block(&p->code[at]);
    }
    for (int id = 0; id < s->n_buffers; id++)
        if (s->buffers[id].space != ZERO_SPACE_FILE) c.ids[c.n++] = id;
    return c;
}

static void free_common(common *c)
{
    for (int kind = 0; kind < ZERO_PROGRAMS; kind++) free(c->number[kind]);
    free(c->ids);
}

static void check_same_life(const common *a, const zero_buffer *x, const common *b,
                            const zero_buffer *y)
{
    assert_int_equal(x->program, y->program);
    if (x->program >= ZERO_PROGRAMS || x->first < 0) return;
    assert_int_equal(a->number[x->program][x->first], b->number[y->program][y->first]);
    assert_int_equal(a->number[x->program][x->last], b->number[y->program][y->last]);
}

static void check_alike(const zero_schedule *a, const zero_schedule *b)
{
    common one = find_common(a), other = find_common(b);
    assert_int_equal(one.n, other.n);
    for (int k = 0; k < one.n; k++) {
        const zero_buffer *x = &a->buffers[one.ids[k]], *y = &b->buffers[other.ids[k]];
        assert_true(x->space == y->space && x->class == y->class && x->type == y->type);
        check_same_life(&one, x, &other, y);
        if (x->space == ZERO_SPACE_OWN || x->space == ZERO_SPACE_HOST) continue;
        assert_true(x->offset == y->offset && x->bytes == y->bytes);
        if (x->space == ZERO_SPACE_NODE) assert_true(x->begin == y->begin);
    }
    assert_true(a->extent[ZERO_SPACE_PART] == b->extent[ZERO_SPACE_PART]);
    assert_true(a->extent[ZERO_SPACE_NODE] == b->extent[ZERO_SPACE_NODE]);
    free_common(&one);
    free_common(&other);
}

/* The ranks of a node that shard together provide the memory that lies there once; each
 * provides its part. */
static void check_sum(const schedule_job *job, int node, int replica)
{
    size_t brought = 0, needed = 0;
    int R = job_shard_ranks(job);
    for (int r = replica * R; r < (replica + 1) * R; r++) {
        const zero_schedule *s = &job->s[r];
        if (job->layout.node_of[r] != node) continue;
        assert_true(s->own_bytes == s->extent[ZERO_SPACE_OWN]);
        assert_true(s->window_bytes >= s->extent[ZERO_SPACE_PART]);
        brought += s->window_bytes - s->extent[ZERO_SPACE_PART];
        needed = s->extent[ZERO_SPACE_NODE];
    }
    assert_true(brought >= needed);
}

void laws_check_window(const schedule_job *job)
{
    const zero_schedule *s = &job->s[0];
    for (int r = 1; r < job->n_ranks; r++) check_alike(s, &job->s[r]);
    for (int node = 0; node < job->layout.n_nodes; node++)
        for (int k = 0; k < job->n_ranks / job_shard_ranks(job); k++)
            check_sum(job, node, k);
    if (!zero_algorithm_needs_window(s->input.collectives, zero_schedule_layout(s)))
        assert_true(s->window_bytes == 0);
}

/* ---- in flight ---- */

static bool begins(zero_op op)
{
    return zero_ops[op].kind == ZERO_WORK_EXCHANGE ||
           zero_ops[op].kind == ZERO_WORK_TRANSFER;
}

/* Where what begins at `at` ends; the program's length: in a later one. */
static int end_of(const zero_program *p, int at)
{
    const zero_instruction *i = &p->code[at];
    for (int end = at + 1; end < p->length; end++) {
        const zero_instruction *e = &p->code[end];
        if (e->op != i->op && zero_ops[e->op].begun_by == i->op && e->unit == i->unit &&
            e->group == i->group && e->buffer == i->buffer)
            return end;
    }
    return p->length;
}

/* `in` may be read by others, as `in` or as parameters. */
static void check_flight(const zero_program *p, int at)
{
    const zero_instruction *i = &p->code[at];
    bool is_write = zero_ops[i->op].writes; /* of a file */
    for (int k = at + 1, end = end_of(p, at); k < end; k++) {
        const zero_instruction *other = &p->code[k];
        int list[ZERO_OPERANDS], n = laws_named_buffers(other, list);
        for (int b = 0; b < n; b++) {
            bool reads = list[b] == other->in || list[b] == other->param[0] ||
                         list[b] == other->param[1];
            bool is_read = list[b] == i->in || (is_write && list[b] == i->buffer);
            bool is_written = (!is_write && list[b] == i->buffer) || list[b] == i->staging;
            if (is_written || (is_read && !reads))
                fail_msg("%s at %d is in flight when %s at %d uses buffer %d",
                         zero_op_name(i->op), at, zero_op_name(other->op), k, list[b]);
        }
    }
}

void laws_check_flights(const zero_schedule *s)
{
    for (int kind = 0; kind < ZERO_PROGRAMS; kind++)
        for (int at = 0; at < s->programs[kind].length; at++)
            if (begins(s->programs[kind].code[at].op)) check_flight(&s->programs[kind], at);
}

/* ---- all ---- */

void laws_check(const schedule_job *job)
{
    for (int r = 0; r < job->n_ranks; r++) {
        laws_check_lifetimes(&job->s[r]);
        laws_check_places(&job->s[r]);
        laws_check_ledger(&job->s[r]);
        laws_check_least(&job->s[r]);
        laws_check_flights(&job->s[r]);
        laws_check_order(&job->s[r]);
        laws_check_offload(&job->s[r]);
        laws_check_device(&job->s[r]);
        laws_check_joins(&job->s[r]);
        laws_check_kept(&job->s[r]);
    }
    laws_check_window(job);
    laws_check_exchanges(job);
}

void laws_check_plan(zero_plan_input input, int nodes)
{
    schedule_job job;
    job_open(&job, input, nodes);
    laws_check(&job);
    job_close(&job);
}
