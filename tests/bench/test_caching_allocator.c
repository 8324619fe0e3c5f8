/* The model of a caching allocator keeps the rules that it states, and a plan's buffers
 * pass through it. */

#include "support/test.h"

#include "caching_allocator.h"
#include "memory_trace.h"
#include "nn/shape.h"
#include "sharding/compile.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static int take(caching_allocator *a, size_t bytes)
{
    int id;
    assert_ok(caching_allocator_take(a, bytes, &id));
    return id;
}

static void release(caching_allocator *a, int id)
{
    assert_ok(caching_allocator_free(a, id));
}

/* ---- laws that hold after every request ---- */

/* True for blocks that exist: spare ones have no bytes. */
static bool exists(const caching_allocator *a, int id)
{
    return a->blocks[id].bytes > 0;
}

/* Neighbours know each other, lie end to end in one pool, and are never both free. */
static void check_neighbours(const caching_allocator *a, int id)
{
    const caching_block *b = &a->blocks[id];
    if (b->next == CACHING_NONE) return;
    const caching_block *next = &a->blocks[b->next];
    assert_int_equal(next->previous, id);
    assert_true(next->address == b->address + b->bytes);
    assert_true(next->is_small == b->is_small);
    assert_true(b->is_used || next->is_used);
}

static void check_overlap(const caching_allocator *a, int id)
{
    const caching_block *b = &a->blocks[id];
    for (int k = 0; k < id; k++) {
        const caching_block *other = &a->blocks[k];
        assert_true(!exists(a, k) || other->address + other->bytes <= b->address ||
                    b->address + b->bytes <= other->address);
    }
}

static void check_pool(const caching_allocator *a, const caching_pool *pool, bool is_small)
{
    int n = 0;
    for (int id = 0; id < a->n_blocks; id++)
        n += exists(a, id) && !a->blocks[id].is_used && a->blocks[id].is_small == is_small;
    assert_int_equal(pool->n, n);
    for (int k = 1; k < pool->n; k++) {
        const caching_block *b = &a->blocks[pool->ids[k - 1]],
                            *c = &a->blocks[pool->ids[k]];
        assert_true(b->bytes < c->bytes ||
                    (b->bytes == c->bytes && b->address < c->address));
    }
}

static void check(const caching_allocator *a)
{
    size_t reserved = 0, used = 0, requested = 0;
    for (int id = 0; id < a->n_blocks; id++) {
        const caching_block *b = &a->blocks[id];
        if (!exists(a, id)) continue;
        check_neighbours(a, id);
        check_overlap(a, id);
        assert_int_equal(b->bytes % CACHING_ROUND, 0);
        assert_true(!b->is_used || b->requested <= b->bytes);
        reserved += b->bytes;
        used += b->is_used ? b->bytes : 0;
        requested += b->is_used ? b->requested : 0;
    }
    check_pool(a, &a->small, true);
    check_pool(a, &a->large, false);
    assert_true(reserved == a->reserved && used == a->used && requested == a->requested);
    assert_true(a->reserved <= a->limit && a->reserved % CACHING_GRAIN == 0);
}

/* The bytes of the free block that the policy chooses; 0: none fits. */
static size_t best_fit(const caching_allocator *a, size_t bytes)
{
    size_t best = 0;
    for (int id = 0; id < a->n_blocks; id++) {
        const caching_block *b = &a->blocks[id];
        bool may = exists(a, id) && !b->is_used && b->bytes >= bytes &&
                   b->is_small == (bytes <= CACHING_SMALL);
        if (may && (best == 0 || b->bytes < best)) best = b->bytes;
    }
    return best;
}

/* The bytes of a free block that a request keeps, by the rule of splitting. */
static size_t kept_of(size_t whole, size_t rounded)
{
    bool splits =
        rounded <= CACHING_SMALL ? whole > rounded : whole - rounded > CACHING_SMALL;
    return splits ? rounded : whole;
}

static uint64_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return *state >> 33;
}

static size_t random_size(uint64_t *state)
{
    const size_t most[] = {4 * KIB, MIB, 2 * MIB, 12 * MIB, 40 * MIB};
    return 1 + (size_t)draw(state) % most[draw(state) % 5];
}

static void try_request(caching_allocator *a, uint64_t *random, int *held, int *n)
{
    size_t bytes = random_size(random);
    size_t rounded = (bytes + CACHING_ROUND - 1) / CACHING_ROUND * CACHING_ROUND;
    size_t fit = best_fit(a, rounded), requested = a->requested, reserved = a->reserved;
    int id = take(a, bytes);
    if (id == CACHING_NONE) {
        assert_true(fit == 0 && a->requested == requested);
        return;
    }
    held[(*n)++] = id;
    assert_true(a->blocks[id].is_used && a->requested == requested + bytes);
    if (fit == 0) return;
    assert_true(a->reserved == reserved && a->blocks[id].bytes == kept_of(fit, rounded));
}

TEST(any_order_of_requests_keeps_the_laws)
{
    const size_t limits[] = {30 * MIB, 200 * MIB, SIZE_MAX / 2};
    for (uint64_t seed = 1; seed <= 12; seed++) {
        caching_allocator a;
        int held[400], n = 0;
        uint64_t random = seed;
        caching_allocator_init(&a, limits[seed % 3]);
        for (int k = 0; k < 400; k++) {
            if (n == 0 || draw(&random) % 5 < 3) {
                try_request(&a, &random, held, &n);
            } else {
                int k_held = (int)(draw(&random) % (uint64_t)n);
                release(&a, held[k_held]);
                held[k_held] = held[--n];
            }
            check(&a);
        }
        while (n > 0) release(&a, held[--n]);
        check(&a);
        assert_true(a.used == 0 && a.requested == 0);
        caching_allocator_destroy(&a);
    }
}

/* ---- the rules, one by one ---- */

TEST(sizes_decide_the_segment)
{
    const struct {
        size_t bytes, block, segment;
    } cases[] = {
        {1, 512, 2 * MIB},
        {512, 512, 2 * MIB},
        {513, 1024, 2 * MIB},
        {MIB, MIB, 2 * MIB},
        {MIB + 1, MIB + 512, 20 * MIB},
        {10 * MIB - 512, 10 * MIB - 512, 20 * MIB},
        {10 * MIB - 1, 10 * MIB, 10 * MIB},
        {10 * MIB + 1, 10 * MIB + 512, 12 * MIB},
        {11 * MIB + 1, 12 * MIB, 12 * MIB}, /* the rest is too small to be split off */
    };
    for (size_t k = 0; k < COUNT(cases); k++) {
        caching_allocator a;
        caching_allocator_init(&a, 100 * MIB);
        int id = take(&a, cases[k].bytes);
        assert_int_equal(a.reserved, cases[k].segment);
        assert_int_equal(a.blocks[id].bytes, cases[k].block);
        check(&a);
        caching_allocator_destroy(&a);
    }
}

TEST(a_rest_of_one_mib_stays_with_a_large_block)
{
    for (size_t more = 0; more < 2; more++) {
        caching_allocator a;
        caching_allocator_init(&a, 100 * MIB);
        int id = take(&a, 11 * MIB - 512 * more);
        assert_int_equal(a.blocks[id].bytes, more ? 11 * MIB - 512 : 12 * MIB);
        assert_int_equal(a.large.n, more);
        caching_allocator_destroy(&a);
    }
}

TEST(freed_neighbours_become_one_block)
{
    const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                              {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int k = 0; k < 6; k++) {
        caching_allocator a;
        caching_allocator_init(&a, 20 * MIB);
        int ids[3];
        for (int i = 0; i < 3; i++) ids[i] = take(&a, 5 * MIB);
        for (int i = 0; i < 3; i++) release(&a, ids[orders[k][i]]);
        assert_int_equal(a.large.n, 1);
        assert_int_equal(a.blocks[a.large.ids[0]].bytes, 20 * MIB);
        assert_int_equal(a.reserved, 20 * MIB);
        caching_allocator_destroy(&a);
    }
}

/* A segment with a block in use stays; the device is asked again only when it is full. */
TEST(whole_segments_are_returned_before_it_fails)
{
    caching_allocator a;
    caching_allocator_init(&a, 60 * MIB);
    int big = take(&a, 20 * MIB), half = take(&a, 9 * MIB), rest = take(&a, 9 * MIB);
    release(&a, big);
    release(&a, rest);
    assert_int_equal(a.reserved, 40 * MIB);
    assert_int_equal(a.returns, 0);
    int larger = take(&a, 40 * MIB);
    assert_int_not_equal(larger, CACHING_NONE);
    assert_int_equal(a.returns, 1);
    assert_int_equal(a.reserved, 60 * MIB);
    check(&a);
    assert_int_equal(take(&a, 12 * MIB), CACHING_NONE); /* 11 MiB are free, in one block */
    assert_int_equal(a.used, 49 * MIB);
    release(&a, half);
    release(&a, larger);
    assert_int_not_equal(take(&a, 60 * MIB), CACHING_NONE);
    check(&a);
    caching_allocator_destroy(&a);
}

/* Twice what is wanted is free, and none of it in one piece. */
TEST(memory_in_pieces_is_lost)
{
    caching_allocator a;
    int ids[8];
    caching_allocator_init(&a, 40 * MIB);
    for (int i = 0; i < 8; i++) ids[i] = take(&a, 5 * MIB);
    for (int i = 0; i < 8; i += 2) release(&a, ids[i]);
    assert_int_equal(a.limit - a.used, 20 * MIB);
    assert_int_equal(take(&a, 10 * MIB), CACHING_NONE);
    assert_int_not_equal(take(&a, 5 * MIB), CACHING_NONE);
    caching_allocator_destroy(&a);
}

/* ---- plans ---- */

static void compile(const char *name, int stage, bool recompute, zero_model *model,
                    zero_schedule *s)
{
    zero_shape shape;
    assert_ok(zero_model_preset(name, &shape));
    if (shape.vocab == 0) shape.vocab = 256;
    assert_ok(zero_model_build(&shape, model));
    zero_plan_input in = zero_plan_input_standard(model, 3, 1);
    in.stage = stage;
    in.type = ZERO_BF16;
    in.recompute = recompute;
    in.accumulation = 2;
    assert_ok(zero_schedule_compile(s, &in));
}

/* Bytes in use before an event. */
static size_t live_before(const memory_trace *t, int at)
{
    size_t bytes = 0;
    for (int k = 0; k < at; k++)
        if (t->events[k] < 0)
            bytes -= t->schedule->buffers[-t->events[k] - 1].bytes;
        else
            bytes += t->schedule->buffers[t->events[k]].bytes;
    return bytes;
}

static void check_plan(const zero_schedule *s, memory_order order)
{
    memory_trace trace;
    memory_squeeze found;
    memory_play again;
    assert_ok(memory_trace_init(&trace, s, order));
    assert_ok(memory_trace_squeeze(&trace, &found));
    assert_int_equal(found.unlimited.alive, s->peak_bytes);
    assert_true(found.unlimited.fits && found.least.fits);
    assert_true(found.least.limit <= found.unlimited.reserved);
    assert_true(found.least.reserved <= found.least.limit);
    assert_true(found.least.limit >= s->peak_bytes);
    size_t less = found.least.limit - CACHING_GRAIN;
    assert_ok(memory_trace_play(&trace, less, &again));
    assert_true(!again.fits && again.failed_at < trace.n);
    assert_int_equal(again.free, less - live_before(&trace, again.failed_at));
    assert_int_equal(again.wanted, s->buffers[trace.events[again.failed_at]].bytes);
    assert_true(found.below.fits || again.free == found.below.free);
    memory_trace_destroy(&trace);
}

/* Every buffer is taken and freed in turn; those of the whole run stay. */
static void check_balance(const zero_schedule *s)
{
    memory_trace trace;
    int *held = calloc((size_t)s->n_buffers, sizeof *held);
    assert_non_null(held);
    assert_ok(memory_trace_init(&trace, s, MEMORY_AS_LISTED));
    for (int k = 0; k < trace.n; k++) {
        int b = trace.events[k] < 0 ? -trace.events[k] - 1 : trace.events[k];
        held[b] += trace.events[k] < 0 ? -1 : 1;
        assert_true(held[b] == 0 || held[b] == 1);
    }
    for (int b = 0; b < s->n_buffers; b++)
        assert_int_equal(held[b], s->buffers[b].program == ZERO_PROGRAM_ALL &&
                                      s->buffers[b].bytes > 0);
    memory_trace_destroy(&trace);
    free(held);
}

/* An instruction that names a buffer twice, and two in another order than the plan's
 * list. */
TEST(a_trace_is_a_list_of_lives)
{
    zero_schedule s = {0};
    for (int b = 0; b < 3; b++)
        zero_schedule_add_buffer(
            &s, (zero_buffer){.bytes = b == 2 ? 0 : 64, .program = ZERO_PROGRAM_STEP});
    zero_instruction *i = zero_schedule_emit(&s, ZERO_PROGRAM_STEP, ZERO_OP_ROUND);
    i->in = i->buffer = 1;
    i->sum = 0;
    i->staging = 2; /* of no bytes */
    for (int b = 0; b < 3; b++) s.buffers[b].first = s.buffers[b].last = 0;
    const int expected[2][4] = {{0, 1, -1, -2}, {1, 0, -2, -1}};
    for (int order = 0; order < 2; order++) {
        memory_trace trace;
        assert_ok(memory_trace_init(&trace, &s, (memory_order)order));
        assert_int_equal(trace.n, 8); /* two steps */
        for (int k = 0; k < 8; k++)
            assert_int_equal(trace.events[k], expected[order][k % 4]);
        memory_trace_destroy(&trace);
    }
    zero_schedule_destroy(&s);
}

/* The layout has at most 1 % of gaps. */
TEST(a_plan_needs_less_than_the_allocator)
{
    const char *const names[] = {"tiny", "gpt2"};
    for (int k = 0; k < 2 * 4 * 2; k++) {
        zero_model model;
        zero_schedule s;
        memory_trace trace;
        memory_squeeze found;
        compile(names[k / 8], k / 2 % 4, k % 2, &model, &s);
        check_plan(&s, MEMORY_AS_LISTED);
        check_plan(&s, MEMORY_AS_OPERANDS);
        check_balance(&s);
        assert_true((double)s.own_bytes <= 1.01 * (double)s.peak_bytes);
        assert_ok(memory_trace_init(&trace, &s, MEMORY_AS_LISTED));
        assert_ok(memory_trace_squeeze(&trace, &found));
        assert_true(s.own_bytes < found.least.limit);
        memory_trace_destroy(&trace);
        zero_schedule_destroy(&s);
        zero_model_destroy(&model);
    }
}
