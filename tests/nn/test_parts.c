/* Units in parts: however many ranks share a model in S slices, all results have the same
 * bits, and without slices nearly these. */
#include "support/gpt2_test.h"
#include "support/lockstep.h"
#include "support/share.h"

#define MAX_TENSORS 40

typedef struct {
    int slices, ranks[4]; /* up to a 0 */
    zero_shape shape;
    int64_t B, T;
    bool has_half_rows; /* activations of the parameters' type */
} team_case;

/* The results of a microbatch's passes, of the whole model. */
typedef struct {
    char about[96];
    int64_t rows, vocab, B;
    int n_units, n_tensors;
    int64_t out_floats, floats[MAX_TENSORS];
    float *out[LOCKSTEP_UNITS], *losses, *d_in, *gradient[MAX_TENSORS];
    float *evaluated, *logits;
} results;

/* ---- one team ---- */

typedef struct {
    zero_model model;
    float *param[LOCKSTEP_UNITS];
    zero_batch batch;
} whole_model;

/* Weights large enough for every path of the model to matter; numbers of a 16-bit type. */
static void make_whole(test_pool *pool, const team_case *c, zero_type type, whole_model *w)
{
    *w = (whole_model){.model = describe(&c->shape)};
    for (int g = 0; g < w->model.n_groups; g++) {
        int64_t n = w->model.groups[g].n_params;
        w->param[g] = test_floats(pool, n);
        for (int64_t i = 0; i < n; i++) w->param[g][i] *= 0.3f;
        void *room = test_bytes(pool, n * (int64_t)sizeof(float));
        zero_convert(ZERO_FP32, type, n, w->param[g], room);
        zero_convert(type, ZERO_FP32, n, room, w->param[g]);
    }
    w->batch = (zero_batch){.B = c->B,
                            .T = c->T,
                            .inputs = test_tokens(pool, c->B * c->T, c->shape.vocab),
                            .targets = test_tokens(pool, c->B * c->T, c->shape.vocab),
                            .step = 3,
                            .first_sample = 11,
                            .loss_seed = (float)(1.0 / (double)(c->B * c->T))};
}

/* The first rank's numbers, in fp32; all ranks must have the same. */
static float *common(test_pool *pool, const lockstep *l, zero_type type, int64_t n,
                     float *(*numbers)(lockstep_rank *r, int u), int u)
{
    const void *first = numbers((lockstep_rank *)&l->ranks[0], u);
    for (int i = 1; i < l->share.ranks; i++)
        assert_memory_equal(numbers((lockstep_rank *)&l->ranks[i], u), first,
                            (size_t)n * zero_type_size(type));
    float *copy = test_floats(pool, n);
    zero_convert(type, ZERO_FP32, n, first, copy);
    return copy;
}

static float *out_of(lockstep_rank *r, int u)
{
    return r->out[u];
}

static float *losses_of(lockstep_rank *r, int u)
{
    (void)u;
    return r->row_loss;
}

static float *stream_of(lockstep_rank *r, int u)
{
    (void)u;
    return r->stream;
}

static float *logits_of(lockstep_rank *r, int u)
{
    (void)u;
    return r->logits;
}

static void keep_results(test_pool *pool, lockstep *l, results *r)
{
    const zero_type type = zero_model_activations(l->whole);
    lockstep_train(l, true);
    for (int u = 0; u < r->n_units - 1; u++)
        r->out[u] = common(pool, l, type, r->out_floats, out_of, u);
    r->losses = common(pool, l, ZERO_FP32, r->rows, losses_of, 0);
    r->d_in = common(pool, l, type, r->out_floats, stream_of, 0);
    for (int i = 0; i < r->n_tensors; i++) {
        r->gradient[i] = test_floats(pool, r->floats[i]);
        lockstep_gradient(l, i, r->gradient[i]);
    }
    lockstep_walk(l, ZERO_PASS_EVALUATE);
    r->evaluated = common(pool, l, ZERO_FP32, r->rows, losses_of, 0);
    l->batch.targets = NULL;
    lockstep_walk(l, ZERO_PASS_GENERATE);
    r->logits = common(pool, l, ZERO_FP32, r->B * r->vocab, logits_of, 0);
}

/* slices 1: the whole model, by whole calls. */
static results run_team(test_pool *pool, const team_case *c, const lockstep *how)
{
    whole_model w;
    results r = {.rows = c->B * c->T, .vocab = c->shape.vocab, .B = c->B};
    lockstep l = *how;
    make_whole(pool, c, l.type, &w);
    if (c->has_half_rows) assert_ok(zero_model_activate(&w.model, l.type));
    assert_true(w.model.n_tensors <= MAX_TENSORS);
    snprintf(r.about, sizeof r.about, "%s, %s%s, V %d, S %d, T %d%s", l.backend->name,
             zero_type_name(l.type), c->has_half_rows ? " rows" : "", (int)c->shape.vocab,
             l.share.slices, l.share.ranks, l.in_place ? ", in place" : "");
    r.out_floats = r.rows * c->shape.hidden;
    r.n_units = w.model.n_units;
    r.n_tensors = w.model.n_tensors;
    for (int i = 0; i < r.n_tensors; i++)
        r.floats[i] = w.model.tensors[i].rows * w.model.tensors[i].cols;
    l.whole = &w.model;
    l.batch = w.batch;
    lockstep_open(&l, pool, w.param);
    keep_results(pool, &l, &r);
    lockstep_close(&l);
    zero_model_destroy(&w.model);
    return r;
}

/* ---- comparing ---- */

/* tolerance 0: equal bits. */
static void compare(const results *got, const results *want, const char *name, int number,
                    int64_t n, const float *a, const float *b, double tolerance)
{
    double error = test_error(n, a, b);
    if (!isfinite(error)) fail_msg("%s: %s %d has NaNs", got->about, name, number);
    bool same = memcmp(a, b, (size_t)n * sizeof *a) == 0;
    if (tolerance > 0.0 ? error > tolerance : !same)
        fail_msg("%s: %s %d is %g from that of %s", got->about, name, number, error,
                 want->about);
}

static void compare_results(const results *a, const results *b, double tolerance)
{
    for (int u = 0; u < a->n_units - 1; u++)
        compare(a, b, "out", u, a->out_floats, a->out[u], b->out[u], tolerance);
    compare(a, b, "losses", 0, a->rows, a->losses, b->losses, tolerance);
    compare(a, b, "d(in)", 0, a->out_floats, a->d_in, b->d_in, tolerance);
    for (int i = 0; i < a->n_tensors; i++)
        compare(a, b, "gradient", i, a->floats[i], a->gradient[i], b->gradient[i],
                tolerance);
    compare(a, b, "evaluated", 0, a->rows, a->evaluated, b->evaluated, tolerance);
    compare(a, b, "logits", 0, a->B * a->vocab, a->logits, b->logits, tolerance);
}

/* A fresh pool for each run: memory comes back, and equal calls draw equal numbers. */
static results run(void **pools, int *n, const team_case *c, const lockstep *how)
{
    assert_int_equal(test_pool_make(&pools[*n]), 0);
    return run_team(pools[(*n)++], c, how);
}

/* Products of bf16 factors, and stores of 16-bit rows, round what a different order has changed
 * before. */
static double tolerance_of(const team_case *c, const lockstep *how)
{
    bool has_half_factors = how->backend == &zero_backend_cpu && how->type == ZERO_BF16;
    if (c->has_half_rows && how->type == ZERO_FP16) return 4e-3;
    return has_half_factors || c->has_half_rows ? 3e-2 : 1e-5;
}

/* In place at T = 1, where nothing is exchanged, and at T = 4. */
static void check_team(const team_case *c, const zero_backend *backend, zero_type type)
{
    void *pools[16];
    int n = 0;
    lockstep how = {.backend = backend, .type = type, .share = {1, 0, 1}};
    const results plain = run(pools, &n, c, &how);
    how.share = (zero_share){c->ranks[0], 0, c->slices};
    const results first = run(pools, &n, c, &how);
    compare_results(&first, &plain, tolerance_of(c, &how));
    for (int i = 0; i < 4 && c->ranks[i] > 0; i += TEST_SHARE(2)) {
        how.share.ranks = c->ranks[i];
        how.in_place = c->ranks[i] == 1 || c->ranks[i] == 4;
        const results other = run(pools, &n, c, &how);
        compare_results(&other, &first, 0.0);
    }
    while (n > 0) test_pool_free(&pools[--n]);
}

static void check_all(const team_case *c, const zero_backend *backend)
{
    static const zero_type types[] = {ZERO_FP32, ZERO_FP16, ZERO_BF16};
    for (size_t i = 0; i < COUNT(types); i += TEST_SHARE(2))
        check_team(c, backend, types[i]);
}

/* Rows of both 16-bit types. */
static void check_half_rows(const team_case *c, const zero_backend *backend)
{
    team_case half = *c;
    half.has_half_rows = true;
    check_team(&half, backend, ZERO_BF16);
    check_team(&half, backend, ZERO_FP16);
}

/* ---- cases ---- */

/* clang-format off */
#define SHAPE(l, c, h, t, v) {.layers = (l), .hidden = (c), .heads = (h), .seq = (t), .vocab = (v), .dropout = 0.1f, .seed = 9}
static const team_case few_words = {8, {1, 2, 4, 8}, SHAPE(2, 64, 8, 10, 17), 2, 9, false};
static const team_case odd_words = {4, {1, 2, 4}, SHAPE(1, 48, 12, 10, 257), 2, 7, false};
static const team_case two_chunks = {8, {1, 2, 4, 8}, SHAPE(1, 64, 8, 10, 257), 26, 10, false};
static const team_case many_words = {8, {1, 2, 4, 8}, SHAPE(1, 64, 8, 10, 1000), 3, 9, false};
static const team_case most_words = {8, {1, 2, 4, 8}, SHAPE(1, 64, 8, 10, 5003), 2, 9, false};
static const team_case long_sums = {2, {1, 2}, SHAPE(1, 512, 4, 40, 100), 1, 33, false};
static const team_case three = {3, {3}, SHAPE(1, 96, 12, 10, 257), 2, 7, false};
static const team_case six = {6, {3, 6}, SHAPE(1, 96, 12, 10, 17), 2, 7, false};
static const team_case twelve = {12, {3, 6, 12}, SHAPE(1, 96, 12, 10, 1000), 2, 7, false};

/* Sums over q, k and v, which are not equally long; gains that all heads share; rows narrower than heads. */
#define OTHER(of, c, h, k, d, f, v) {.kind = &zero_architectures[of], .layers = 1, .hidden = (c), \
    .heads = (h), .kv_heads = (k), .head_size = (d), .inner = (f), .seq = 10, .vocab = (v), \
    .dropout = 0.1f, .seed = 9}
static const team_case others[] = {
    {4, {1, 2, 4}, OTHER(ZERO_LLAMA, 48, 8, 4, 6, 64, 17), 2, 9, false},
    {8, {1, 2, 4, 8}, OTHER(ZERO_QWEN2, 64, 8, 8, 8, 160, 257), 2, 7, false},
    {4, {1, 2, 4}, OTHER(ZERO_QWEN3, 48, 8, 4, 12, 72, 257), 2, 7, false},
    {3, {3}, OTHER(ZERO_QWEN3, 48, 6, 3, 10, 72, 100), 2, 7, false},
    {8, {1, 2, 4, 8}, OTHER(ZERO_NEOX, 64, 8, 8, 8, 160, 257), 2, 7, false},
};
/* clang-format on */

TEST(any_number_of_ranks_gives_the_same_bits)
{
    check_team(&few_words, &zero_backend_naive, ZERO_FP32);
    check_team(&odd_words, &zero_backend_naive, ZERO_BF16);
    check_team(&odd_words, &zero_backend_naive, ZERO_FP16);
    check_all(&few_words, &zero_backend_cpu);
    check_all(&odd_words, &zero_backend_cpu);
}

/* Sums of parts stay fp32 until they are joined, and are rounded once. */
TEST(rows_of_16_bits_have_the_same_bits)
{
    check_half_rows(&few_words, &zero_backend_cpu);
    check_half_rows(&odd_words, &zero_backend_naive);
    check_half_rows(&three, &zero_backend_cpu);
    check_half_rows(&two_chunks, &zero_backend_cpu);
}

TEST(without_dropout_too)
{
    team_case c = few_words;
    c.shape.dropout = 0.0f;
    check_team(&c, &zero_backend_cpu, ZERO_FP32);
    check_team(&c, &zero_backend_cpu, ZERO_BF16);
}

TEST(slices_of_the_vocabulary_may_have_different_lengths)
{
    check_all(&many_words, &zero_backend_cpu);
    check_team(&most_words, &zero_backend_cpu, ZERO_FP32);
    check_team(&most_words, &zero_backend_cpu, ZERO_BF16);
}

TEST(the_head_goes_through_its_chunks_of_rows)
{
    check_team(&two_chunks, &zero_backend_cpu, ZERO_FP32);
    check_team(&two_chunks, &zero_backend_cpu, ZERO_BF16);
    team_case c = two_chunks;
    c.shape.vocab = 17;
    check_team(&c, &zero_backend_naive, ZERO_FP32);
}

/* Slices of more terms than a block of the packed kernels has. */
TEST(long_sums_have_the_same_bits)
{
    check_team(&long_sums, &zero_backend_cpu, ZERO_FP32);
    check_team(&long_sums, &zero_backend_cpu, ZERO_BF16);
}

TEST(three_ranks_share_in_multiples_of_three)
{
    check_all(&three, &zero_backend_cpu);
    check_all(&six, &zero_backend_cpu);
    check_team(&six, &zero_backend_naive, ZERO_FP32);
    check_team(&twelve, &zero_backend_cpu, ZERO_FP32);
    check_team(&twelve, &zero_backend_cpu, ZERO_BF16);
}

TEST(other_architectures_have_the_same_bits)
{
    for (size_t i = 0; i < COUNT(others); i++) {
        check_team(&others[i], &zero_backend_naive, ZERO_FP32);
        check_all(&others[i], &zero_backend_cpu);
        check_half_rows(&others[i], &zero_backend_cpu);
    }
}
