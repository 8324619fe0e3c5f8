/* Every operation (support/operations.c) by the oracle and by the cpu backend: on each
 * instruction set, by each kind of kernels, by teams of threads. Sites have each other's
 * bits or are near the oracle; and on numbers of 16 bits each has the bits of fp32, rounded
 * once. */
#include "support/calls.h"
#include "support/share.h"
#include "support/table.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/cpu_level.h"
#include "math/backends.h"
#include "math/blas.h"
#include "math/cpu_state.h"
#include "math/team.h"

/* The oracle rounds once, at the end. The cpu backend rounds at each of up to a few hundred
 * additions, 6e-8 each, mostly cancelling: errors of single precision are 1e-7 to 2e-6 of
 * the largest result. A wrong term is off by 1e-3 or more. Factors in bf16 are off by up to
 * 2^-9. */
#define TOLERANCE 5e-6
#define IN_BF16   (1.0 / 64)

#define MOST_SITES 40

/* At, below and above whole registers, tiles, panels, blocks and pieces. */
#define SIZES "math/sizes.txt"

static const zero_type types[] = {ZERO_FP32, ZERO_BF16, ZERO_FP16};

/* Calls come one after the other, so sites share their memory. Site 0 is the oracle, or
 * what others are like. */
typedef struct {
    site all[MOST_SITES];
    int like[MOST_SITES]; /* the site whose bits it has; -1: it is near site 0 */
    bool in_bf16[MOST_SITES];
    int n;
    bool is_slow; /* site 0: it computes in fp32 only */
    char *memory;
} sites;

static site *add_site(sites *s, test_pool *pool, const char *name, const zero_backend *ops,
                      int threads, int like)
{
    assert_true(s->n < MOST_SITES);
    if (!s->memory) s->memory = test_bytes(pool, HOST_BYTES + 256);
    s->memory += -(uintptr_t)s->memory % 256;
    s->like[s->n] = like;
    s->all[s->n] = host_site(name, ops, pool, s->memory, threads);
    return &s->all[s->n++];
}

/* The oracle, the cpu backend, and this on each other instruction set. */
static sites instruction_sets(test_pool *pool)
{
    sites s = {.n = 0};
    const zero_cpu_kernels *kernels;
    assert_string_equal(zero_cpu_kernels_at(0)->name, zero_cpu_kernels_name());
    add_site(&s, pool, "naive", &zero_backend_naive, 1, 0);
    add_site(&s, pool, "cpu", &zero_backend_cpu, 1, -1);
    for (int i = 1; (kernels = zero_cpu_kernels_at(i)); i++)
        add_site(&s, pool, kernels->name, &zero_backend_cpu, 1, 1)
            ->math.state[ZERO_CPU_KERNELS] = kernels;
    return s;
}

/* The oracle, and the cpu backend with each kind of panels and of packed kernels, by one
 * thread and by three. */
static sites kernels_of_products(test_pool *pool)
{
    sites s = {.is_slow = true};
    const zero_packed_kernels *packed;
    const zero_panel_kernels *panels;
    add_site(&s, pool, "naive", &zero_backend_naive, 1, 0);
    for (int i = 0; (panels = zero_panels_at(i)); i++)
        for (int threads = 1; threads < 4; threads += 2) {
            const void **state = add_site(&s, pool, "panels", &zero_backend_cpu, threads,
                                          threads > 1 ? s.n - 1 : -1)
                                     ->math.state;
            state[ZERO_CPU_PANELS] = panels;
            state[ZERO_CPU_FP32_PRODUCTS] = &panels->packed;
        }
    for (int i = 0; (packed = zero_packed_at(i)); i++)
        for (int threads = 1; threads < 4; threads += 2) {
            s.in_bf16[s.n] = packed->type == ZERO_BF16;
            const void **state = add_site(&s, pool, packed->name, &zero_backend_cpu,
                                          threads, threads > 1 ? s.n - 1 : -1)
                                     ->math.state;
            state[ZERO_CPU_FP32_PRODUCTS] = state[ZERO_CPU_BF16_PRODUCTS] = packed;
        }
    return s;
}

/* Kernels for bf16 have no factors of fp16, and factors of bf16 are exact in them. */
static void check_at(sites *s, const operation *op, const shape *of)
{
    call made[MOST_SITES], given = make_first(op, of);
    for (int i = 0; i < s->n; i++) {
        shape here = *of;
        made[i] = (call){.op = NULL};
        if (s->in_bf16[i] && of->numbers == ZERO_FP16) continue;
        if (s->in_bf16[i]) here.factors = ZERO_BF16;
        if (of->numbers == ZERO_FP32 || (i == 0 && s->is_slow))
            made[i] = make_call_given(&s->all[i], op, &here, &given);
        else
            check_types(&s->all[i], op, here, of->numbers, &given, &made[i]);
        if (i > 0)
            compare_calls(&made[i], &made[zero_max(s->like[i], 0)],
                          s->like[i] >= 0 ? 0.0
                          : s->in_bf16[i] && !(of->numbers == ZERO_BF16 &&
                                               strcmp(op->name, "gemm") == 0)
                              ? IN_BF16
                              : TOLERANCE);
    }
    for (int i = 0; i < s->n; i++) drop_call(&made[i]);
    drop_call(&given);
}

static shape shape_of(const int64_t *size, zero_type type, int variant)
{
    static const int64_t past[] = {2, 0, 7}; /* of three texts */
    shape s = {.B = size[0], .T = size[1], .C = size[2], .H = size[3], .K = size[4]};
    s.V = size[5], s.numbers = type;
    s.in_place = s.accumulate = variant & 1, s.is_odd = variant & 2, s.drops = variant & 4;
    s.lacks = variant % 3 == 1, s.shift = variant % 4 == 1 || variant % 4 == 2;
    s.ways = (variant * 5 + (int)type) % WAYS;
    if (variant % 3 == 2 && s.V > 4) s.first = s.V / 4, s.words = s.V / 2;
    if (variant % 4 == 0 && s.B < 4) s.past = past;
    s.slices = type != ZERO_FP32 && !s.accumulate; /* BLAS has bits of its own */
    return s;
}

TEST(every_instruction_set_has_the_same_bits_near_the_oracles)
{
    sites s = instruction_sets(*state);
    int64_t size[6];
    for (test_table table = table_open(SIZES); table_numbers(&table, "all", 6, size);)
        for (int i = 0; i < n_operations; i++)
            for (size_t t = 0; t < COUNT(types); t++)
                for (int variant = 0; variant < 8; variant += TEST_SHARE(3)) {
                    const shape of = shape_of(size, types[t], variant);
                    check_at(&s, &operations[i], &of);
                }
}

/* Widths and lengths that only some of them care for. */
TEST(longer_rows_and_ranges_agree_too)
{
    static const struct {
        const char *of;
        int64_t B, T, C, V;
    } cases[] = {
        {"clear add_bias bias_gelu adamw accumulate exact_squares", 1, 1, 70001, 1},
        {"sum_squares", 1, 1, 300001, 1},
        {"round", 1, 1, (1 << 20) + 77, 1}, /* past the caches */
        {"add_bias bias_gelu add_branch layernorm layernorm_backward embedding", 1, 1,
         131072, 3},
        {"layernorm layernorm_backward bias_backward bias_gelu_backward add_branch", 1, 131,
         1025, 1},
        {"cross_entropy cross_entropy_backward", 1, 2, 50257, 1},
        {"gemm", 1, 257, 65, 3},
        {"gemm", 1, 5, 9, 1025},
        {"gemm", 1, 3, 1100, 2},
        {"gemm", 4, 4, 32, 0},
        {"gemm", 1, 61, 53, 47},
        {"gemm", 1, 600, 17, 40}};
    sites s = instruction_sets(*state);
    for (size_t k = 0; k < COUNT(cases); k++)
        for (int i = 0; i < n_operations; i++)
            for (size_t t = 0;
                 t < COUNT(types) && is_among(cases[k].of, operations[i].name); t++)
                for (int variant = 0; variant < 2; variant++) {
                    const int64_t size[] = {cases[k].B, cases[k].T, cases[k].C,
                                            1,          1,          cases[k].V};
                    const shape of = shape_of(size, types[t], 5 * variant);
                    check_at(&s, &operations[i], &of);
                }
}

static const char flat[] = "clear adamw round accumulate sum_squares exact_squares dropout";

/* Of numbers that the type has not, with parameters that are not their masters, rounded. */
TEST(flat_ranges_of_16_bits_agree)
{
    static const int64_t lengths[] = {0, 1, 2, 7, 15, 16, 17, 61, 257, 1031, 4097, 70001};
    sites s = instruction_sets(*state);
    for (int i = 0; i < n_operations; i++)
        for (size_t k = 0; k < COUNT(lengths) && is_among(flat, operations[i].name); k++)
            for (int way = 0; way < 6; way++) {
                const shape of = {.B = 1,
                                  .T = 1,
                                  .C = lengths[k],
                                  .type = types[1 + way % 2],
                                  .tells = way / 2,
                                  .lacks = way < 3,
                                  .is_odd = k % 2};
                check_at(&s, &operations[i], &of);
            }
}

/* ---- products and attention by all kernels ---- */

TEST(attention_agrees_by_all_kernels)
{
    sites s = kernels_of_products(*state);
    int64_t size[4], n = 0;
    for (test_table table = table_open(SIZES); table_numbers(&table, "attention", 4, size);
         n++)
        for (int64_t K = 1; K <= size[3]; K++)
            for (size_t t = 0; t < COUNT(types) && size[3] % K == 0; t++) {
                if (size[1] > 1000 && t > 0) continue;
                const shape of = {.B = size[0],
                                  .T = size[1],
                                  .C = size[2],
                                  .H = size[3],
                                  .K = K,
                                  .drops = (n + K) % 2 == 0,
                                  .numbers = types[t]};
                check_at(&s, operation_named("attention"), &of);
                check_at(&s, operation_named("attention_backward"), &of);
            }
}

/* m, n, k; slices and their parts. */
static void check_products(sites *s, const int64_t size[3], int slices, int parts, int ways)
{
    for (size_t t = 0; t < COUNT(types); t++) {
        const shape of = {.B = 1,
                          .T = size[0],
                          .C = size[1],
                          .V = size[2],
                          .numbers = types[t],
                          .accumulate = slices == 0,
                          .ways = ways,
                          .slices = slices,
                          .parts = parts};
        check_at(s, operation_named("gemm"), &of);
    }
}

TEST(products_of_16_bits_have_the_bits_of_floats_by_all_kernels)
{
    sites s = kernels_of_products(*state);
    for (int64_t n = 1; n <= 70; n += TEST_SHARE(6)) {
        const int64_t sizes[][3] = {{n, 33, 35}, {31, n, 17}, {5, 34, n}};
        for (int i = 0; i < 3; i++)
            check_products(&s, sizes[i], (int)n % 2, 0, (int)(n / 2 + i) % 8);
    }
}

/* Several blocks of m, n and k; sums that wait for all columns, and for some; an empty sum.
 * Groups of slices, slices one by one, pieces of several parts. */
TEST(sums_of_blocks_and_slices_are_rounded_once)
{
    sites s = kernels_of_products(*state);
    int64_t size[5], n = 0;
    for (test_table table = table_open(SIZES); table_numbers(&table, "slices", 5, size);
         n++)
        if (n % TEST_SHARE(2) == 0)
            check_products(&s, size, (int)size[3], (int)size[4],
                           (int)n * 7 % 64 & ~FEW_ROWS);
}

/* Sizes whose rows, or columns, do not fit the scratch at one time, too. Factors are not
 * rounded. */
TEST(products_of_few_rows_have_the_bits_of_floats)
{
    sites s = {.is_slow = true};
    add_site(&s, *state, "naive", &zero_backend_naive, 1, 0);
    for (int threads = 1; threads <= 3; threads += 2)
        add_site(&s, *state, "cpu", &zero_backend_cpu, threads, threads > 1 ? 1 : -1);
    int64_t size[3], n = 0;
    for (test_table table = table_open(SIZES); table_numbers(&table, "few", 3, size); n++)
        for (int slices = 0; slices <= 4 && n % TEST_SHARE(2) == 0; slices += 4)
            if (size[2] % 4 == 0 ? slices || size[2] < 1000 : !slices)
                check_products(&s, size, slices, 0,
                               (slices || n % 2 ? FEW_ROWS : FEW_ROWS | TURN_B) |
                                   (n % 3 ? 0 : STRIDES));
}

/* ---- teams: the first thread alone polls ---- */

typedef struct {
    pthread_t caller;
    int polls;
    atomic_int others; /* polls by other threads */
} listener;

static void listen(void *arg)
{
    listener *l = arg;
    if (pthread_equal(pthread_self(), l->caller))
        l->polls++;
    else
        l->others++;
}

/* One thread with these kernels (NULL: BLAS), then teams, whose threads are OpenMP's for
 * each call or held for three. */
static sites teams_with(test_pool *pool, const zero_packed_kernels *products, listener *l)
{
    static const int teams[] = {1, 2, 3, 4, 7};
    sites s = {.n = 0};
    *l = (listener){.caller = pthread_self()};
    for (size_t i = 1; i < 2 * COUNT(teams); i++) {
        site *w = add_site(&s, pool, "a team", &zero_backend_cpu, teams[i / 2], 0);
        w->is_held = i % 2, w->turns = i % 2 ? 3 : 1;
        w->math.poll = listen, w->math.poll_arg = l;
        w->math.state[ZERO_CPU_FP32_PRODUCTS] = w->math.state[ZERO_CPU_BF16_PRODUCTS] =
            products;
    }
    return s;
}

static void check_teams(sites *s, const listener *l, const operation *op, const shape *of)
{
    call one = make_call(&s->all[0], op, of);
    for (int i = 1; i < s->n; i++) {
        call team = make_call(&s->all[i], op, of);
        compare_calls(&team, &one, 0.0);
        drop_call(&team);
    }
    drop_call(&one);
    assert_int_equal(l->others, 0);
    assert_true(l->polls > 0);
}

TEST(operations_do_not_depend_on_threads)
{
    static const int64_t sizes[][6] = {{3, 43, 1030, 5, 5, 40},
                                       {3, 90, 500, 5, 1, 40},
                                       {1, 1, 3 * ZERO_CPU_PIECE + 77, 1, 1, 1}};
    listener l;
    sites s = teams_with(*state, zero_packed_at(0), &l);
    for (int i = 0; i < n_operations; i++)
        for (size_t k = 0; k < 2 || (k == 2 && is_among(flat, operations[i].name)); k++)
            for (int variant = 0; variant < 2; variant++) {
                shape of = shape_of(sizes[k], ZERO_FP32, 5 * variant);
                if (variant == 1) of.type = ZERO_BF16, of.tells = 2;
                check_teams(&s, &l, &operations[i], &of);
            }
}

TEST(products_do_not_depend_on_threads)
{
    const zero_packed_kernels *kernels = NULL;
    zero_blas_set_threads(1); /* as programs have it: more cut a sum, each time elsewhere */
    for (int which = -1; which < 0 || (kernels = zero_packed_at(which)); which++) {
        void *pool;
        listener l;
        assert_int_equal(test_pool_make(&pool), 0);
        sites s = teams_with(pool, kernels, &l);
        int64_t size[3], n = 0;
        for (test_table table = table_open(SIZES);
             table_numbers(&table, "threads", 3, size); n++)
            for (int slices = 0; slices <= (kernels ? 4 : 0); slices += 4) {
                const bool is_half = kernels && kernels->type == ZERO_BF16;
                shape of = {.B = 1, .T = size[0], .C = size[1], .V = size[2]};
                of.slices = slices, of.ways = (int)(n + 3 * is_half) % 4;
                if (n > 7) of.ways |= FEW_ROWS;
                of.accumulate = n % 2;
                if (slices > 0) of.V = zero_round_up(of.V, slices);
                if (is_half) of.type = of.factors = ZERO_BF16;
                check_teams(&s, &l, operation_named("gemm"), &of);
            }
        test_pool_free(&pool);
    }
}

/* ---- polls ---- */

static void check_polls(site *w, const operation *op, const shape *of)
{
    int polls = 0;
    w->math.poll = test_count_poll, w->math.poll_arg = &polls;
    call c = make_call(w, op, of);
    if (c.n_arrays > 0 && polls < 2) fail_msg("%s polls %d times", op->name, polls);
    drop_call(&c);
}

TEST(long_operations_poll)
{
    sites s = instruction_sets(*state);
    for (size_t t = 0; t < 4; t++) {
        shape of = {.B = 2, .T = 300, .C = 256, .H = 2, .K = 2, .V = 200, .drops = true};
        const shape few = {
            .B = 1, .T = 1, .C = 1200, .V = 900, .ways = FEW_ROWS | (t & 1 ? TURN_B : 0)};
        if (t & 1) of.type = ZERO_BF16;
        if (t & 2) of.rows = ZERO_BF16;
        for (int i = 0; i < n_operations; i++) check_polls(&s.all[1], &operations[i], &of);
        check_polls(&s.all[1], operation_named("gemm"), &few);
    }
}
