#include "support/calls.h"

#include "math/team.h"

/* ---- arrays ---- */

#define GAP 64 /* bytes between arrays, at least */

static uint64_t number_of(const char *name)
{
    uint64_t h = 14695981039346656037u;
    while (*name) h = (h ^ (unsigned char)*name++) * 1099511628211u;
    return h;
}

static void round_to(zero_type type, int64_t n, float *x)
{
    char *half = malloc((size_t)n * zero_type_size(type) + 1);
    assert_non_null(half);
    zero_convert(ZERO_FP32, type, n, x, half);
    zero_convert(type, ZERO_FP32, n, half, x);
    free(half);
}

/* How an array of this name begins in all calls. */
static float *numbers_named(const shape *s, const char *name, int part, int64_t n,
                            bool may_be_odd)
{
    static const float odd[] = {
        65520.0f, 65519.0f,  1e-39f,    1e-6f,     3.4e38f,  1.00390625f, -0.0f,
        INFINITY, NAN,       -1e-45f,   5.9e-8f,   -2.9e-8f, 1e-30f,      -1e20f,
        0.0f,     -INFINITY, 0x1p-126f, 0x1p-133f, -2e-38f,  6.5e4f,      1.01171875f};
    const zero_rng rng = {
        .seed = 7, .purpose = ZERO_RNG_TEST, .tensor = number_of(name) + (uint64_t)part};
    float *x = malloc((size_t)n * sizeof *x + 1);
    assert_non_null(x);
    zero_rng_normal(&rng, 0, n, x);
    for (int64_t i = 0; may_be_odd && s->is_odd && i < n; i += 7)
        x[i] = odd[((uint64_t)i / 7 + rng.tensor) % COUNT(odd)];
    return x;
}

static const array *array_part(const call *c, const char *name, int part)
{
    for (int i = 0; i < c->n_arrays; i++)
        if (strcmp(c->arrays[i].name, name) == 0 && c->arrays[i].part == part)
            return &c->arrays[i];
    return NULL;
}

const array *array_named(const call *c, const char *name)
{
    return array_part(c, name, 0);
}

float *floats_of(const call *c, const array *x, bool begins)
{
    float *wide = malloc((size_t)x->n * sizeof *wide + 1);
    assert_non_null(wide);
    zero_convert(x->type, ZERO_FP32, x->n, (begins ? c->before : c->after) + x->at, wide);
    return wide;
}

void begin_array(const call *c, const array *x, bool may_be_odd)
{
    const array *given = c->given ? array_part(c->given, x->from, x->part) : NULL;
    float *numbers = given ? floats_of(c->given, given, false)
                           : numbers_named(&c->s, x->from, x->part, x->n, may_be_odd);
    if (may_be_odd) round_to(c->s.numbers, x->n, numbers);
    zero_convert(ZERO_FP32, x->type, x->n, numbers, c->before + x->at);
    free(numbers);
}

/* Bytes at a multiple of 256 and the shift. */
static size_t reserve(call *c, size_t bytes, size_t shift)
{
    const size_t at = (c->used + GAP + 255) / 256 * 256 + shift, end = at + bytes + GAP;
    assert_true(end <= c->where->bytes);
    if (end > c->room) {
        c->room = 2 * end;
        assert_non_null(c->before = realloc(c->before, c->room));
    }
    memset(c->before + c->used, 0xff, end - c->used);
    c->used = end;
    return at;
}

void *place(call *c, array x, bool may_be_odd)
{
    const size_t size = zero_type_size(x.type);
    const bool shifts = c->s.only == 0 || c->s.only == c->n_arrays + 1;
    assert_true(c->n_arrays < MOST_ARRAYS);
    x.at = reserve(c, size * (size_t)x.n, shifts ? (size_t)c->s.shift * size : 0);
    if (x.access == READ || x.access == BOTH) begin_array(c, &x, may_be_odd);
    c->arrays[c->n_arrays++] = x;
    return c->where->memory + x.at;
}

void *numbers(call *c, const char *name, const char *from, zero_type type, int64_t n,
              usage how)
{
    return place(c, (array){name, from, 0, type, how, n, 0}, true);
}

void *rows_like(call *c, const char *name, const char *from, int64_t n, usage how)
{
    c->has_rows = true;
    return numbers(c, name, from, c->s.rows, n, how);
}

void *rows(call *c, const char *name, int64_t n, usage how)
{
    return rows_like(c, name, name, n, how);
}

void *weights(call *c, const char *name, int64_t n)
{
    c->has_weights = true;
    return numbers(c, name, name, c->s.type, n, READ);
}

float *floats(call *c, const char *name, int64_t n, usage how)
{
    return place(c, (array){name, name, 0, ZERO_FP32, how, n, 0}, false);
}

float *sums(call *c, const char *name, int64_t n)
{
    return floats(c, name, n, c->s.accumulate ? BOTH : WRITTEN);
}

void *rows_from(call *c, const char *name, const char *from, int64_t n, const void **x)
{
    void *y = rows_like(c, name, from, n, c->s.in_place ? BOTH : WRITTEN);
    *x = c->s.in_place ? y : rows(c, from, n, READ);
    return y;
}

void *image(const call *c, const void *at)
{
    return c->before + ((const char *)at - c->where->memory);
}

const int32_t *tokens(call *c, int64_t n, int64_t V)
{
    const zero_rng rng = {.seed = 8, .purpose = ZERO_RNG_TEST};
    const size_t at = reserve(c, (size_t)n * sizeof(int32_t), (size_t)c->s.shift * 4);
    int32_t *token = (int32_t *)(void *)(c->before + at);
    for (int64_t i = 0; i < n; i++)
        token[i] = (int32_t)(zero_rng_bits(&rng, (uint64_t)i) % (uint64_t)V);
    return (const int32_t *)(void *)(c->where->memory + at);
}

/* Nothing was written but arrays that may be, and each turn writes the same. */
static void check_turn(const call *c, const char *image)
{
    char *want = malloc(c->used + 1);
    assert_non_null(want);
    memcpy(want, c->before, c->used);
    for (int i = 0; i < c->n_arrays; i++) {
        const array *x = &c->arrays[i];
        const size_t bytes = (size_t)x->n * zero_type_size(x->type);
        if (x->access == READ) continue;
        memcpy(want + x->at, image + x->at, bytes);
        if (x->access != WORK && memcmp(c->after + x->at, image + x->at, bytes) != 0)
            fail_msg("%s at %s: %s has other bits in turn %d", c->op->name, c->where->name,
                     x->name, c->turn);
    }
    if (memcmp(want, image, c->used) != 0)
        fail_msg("%s at %s wrote where it may not", c->op->name, c->where->name);
    free(want);
}

bool next(call *c)
{
    site *w = c->where;
    if (c->turn > 0) {
        char **image = c->turn == 1 ? &c->after : &c->other;
        if (!*image) assert_non_null(*image = malloc(c->used + 1));
        w->save(w, *image, c->used);
        check_turn(c, *image);
    }
    w->turn = c->turn;
    if (c->turn++ == zero_max(w->turns, 1)) return false;
    w->load(w, c->before, c->used);
    return true;
}

/* ---- sites of the host ---- */

static void load_host(site *w, const char *image, size_t bytes)
{
    memcpy(w->memory, image, bytes);
}

static char *end_of_scratch(const site *w)
{
    return (char *)(w->math.scratch + zero_max(w->math.threads, 1) * zero_math_scratch());
}

static void save_host(site *w, char *image, size_t bytes)
{
    for (int i = 0; w->math.scratch && i < GAP; i++)
        if (end_of_scratch(w)[i] != (char)0xff)
            fail_msg("%s wrote past its scratch", w->name);
    memcpy(image, w->memory, bytes);
}

/* ---- calls ---- */

static void run(void *arg)
{
    call *c = arg;
    c->op->make(c);
}

call make_call_given(site *w, const operation *op, const shape *s, const call *given)
{
    call c = {.where = w, .op = op, .s = *s, .given = given};
    if (w->room > 0) w->room_at = floats(&c, "room", w->room / 4, WORK);
    if (w->is_held)
        zero_team_hold(&w->math, run, &c);
    else
        run(&c);
    return c;
}

call make_call(site *w, const operation *op, const shape *s)
{
    call given = make_first(op, s);
    const call c = make_call_given(w, op, s, &given);
    drop_call(&given);
    return c;
}

call make_first(const operation *op, const shape *s)
{
    if (!op->first) return (call){.op = NULL};
    site oracle = {.name = "naive", .ops = &zero_backend_naive, .bytes = HOST_BYTES};
    oracle.memory = malloc(oracle.bytes);
    oracle.load = load_host, oracle.save = save_host;
    assert_non_null(oracle.memory);
    const operation first = {.name = op->name, .make = op->first};
    shape wide = *s;
    wide.type = wide.rows = ZERO_FP32;
    const call c = make_call_given(&oracle, &first, &wide, NULL);
    free(oracle.memory);
    return c;
}

void drop_call(call *c)
{
    free(c->before), free(c->after), free(c->other);
    *c = (call){.op = NULL};
}

/* ---- what two calls have made ---- */

bool is_among(const char *names, const char *name)
{
    const size_t len = strlen(name);
    for (const char *at = names; at && (at = strstr(at, name)); at += len)
        if ((at == names || at[-1] == ' ') && (at[len] == ' ' || at[len] == 0)) return true;
    return false;
}

static void compare_array(const call *got, const array *x, const call *want, const array *y,
                          double tolerance)
{
    float *is = floats_of(got, x, false), *be = floats_of(want, y, false);
    assert_int_equal(x->n, y->n);
    round_to(x->type, x->n, be);
    const shape *s = &got->s;
    const bool is_word = strcmp(x->name, "changed") == 0; /* of which all bits count */
    char about[200];
    snprintf(about, sizeof about,
             "%s of B %d T %d C %d H %d K %d V %d, types %d %d %d, odd %d, in place %d, "
             "adds %d, drops "
             "%d, lacks %d, shift %d, ways %d, at %s: %s",
             got->op->name, (int)s->B, (int)s->T, (int)s->C, (int)s->H, (int)s->K,
             (int)s->V, s->type, s->rows, s->numbers, s->is_odd, s->in_place, s->accumulate,
             s->drops, s->lacks, s->shift, s->ways, got->where->name, x->name);
    if (tolerance > 0.0 && !(test_error(x->n, is, be) < tolerance))
        fail_msg("%s is off by %g", about, test_error(x->n, is, be));
    for (int64_t i = 0; tolerance == 0.0 && i < x->n; i++)
        if (memcmp(&is[i], &be[i], sizeof *is) != 0 &&
            (is_word || !isnan(is[i]) || !isnan(be[i])))
            fail_msg("%s[%lld] is %a, not %a", about, (long long)i, (double)is[i],
                     (double)be[i]);
    free(is);
    free(be);
}

/* Arrays that only one of them has are not compared. */
static void compare(const call *got, const call *want, double tolerance,
                    const char *without)
{
    for (int i = 0; i < got->n_arrays; i++) {
        const array *x = &got->arrays[i], *y = array_part(want, x->name, x->part);
        const char *more = got->where->is_gpu ? got->op->near_on_gpu : NULL;
        const bool is_near = tolerance > 0.0 &&
                             (is_among(got->op->near, x->name) || is_among(more, x->name));
        /* What the oracle's call has left is rounded, too. */
        const bool is_rounded =
            x->type != ZERO_FP32 || (got->op->first && got->s.numbers != ZERO_FP32);
        if (!y || x->access == READ || x->access == WORK || is_among(without, x->name))
            continue;
        if (is_near && got->s.is_odd) continue;
        compare_array(got, x, want, y,
                      is_near ? fmax(tolerance, is_rounded ? 1.0 / 128 : 0.0) : 0.0);
    }
}

void compare_calls(const call *got, const call *want, double tolerance)
{
    compare(got, want, tolerance, NULL);
}

/* Arrays that are made from rows as they are stored are made of these rows in fp32. */
static void check_later(const call *narrow, const shape *wide)
{
    const operation again = {.name = narrow->op->name, .make = narrow->op->again};
    call later = make_call_given(narrow->where, &again, wide, narrow);
    compare(narrow, &later, 0.0, NULL);
    drop_call(&later);
}

/* Which differs in weights, in rows or in both, as far as the call has them. */
void check_types(site *w, const operation *op, shape s, zero_type type, const call *given,
                 call *wide)
{
    s.numbers = type, s.type = s.rows = ZERO_FP32;
    *wide = make_call_given(w, op, &s, given);
    for (int which = 1; which < 4; which++) {
        shape of = s;
        if ((which & 1 && !wide->has_weights) || (which & 2 && !wide->has_rows)) continue;
        if (which == 2 && wide->has_weights && w->is_gpu) continue;
        of.type = which & 1 || w->is_gpu ? type : ZERO_FP32;
        of.rows = which & 2 ? type : ZERO_FP32;
        call narrow = make_call_given(w, op, &of, given);
        compare(&narrow, wide, 0.0, of.rows == ZERO_FP32 ? NULL : op->later);
        if (op->later && (of.rows != ZERO_FP32 || !wide->has_rows))
            check_later(&narrow, &s);
        drop_call(&narrow);
    }
}

site host_site(const char *name, const zero_backend *ops, test_pool *pool, char *memory,
               int threads)
{
    const int64_t bytes = threads * zero_math_scratch() * (int64_t)sizeof(float) + GAP;
    site w = {.name = name, .ops = ops, .memory = memory, .bytes = HOST_BYTES};
    w.load = load_host, w.save = save_host;
    w.math.threads = threads;
    w.math.scratch = memset(test_bytes(pool, bytes), 0xff, (size_t)bytes);
    assert_ok(ops->open(&w.math));
    return w;
}
