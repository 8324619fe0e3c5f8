/* GPT-2 as groups and units: its description and its first weights. */
#include "support/gpt2_test.h"
#include "support/model_writers.h"

static const zero_shape small = {
    .layers = 3, .hidden = 64, .heads = 4, .seq = 20, .vocab = 101};

TEST(tensors_tile_the_flat_space_of_their_group)
{
    zero_model m = built(&small);
    int next_tensor = 0;
    int64_t total = 0;
    for (int g = 0; g < m.n_groups; g++) {
        int64_t at = 0;
        assert_int_equal(m.groups[g].first_tensor, next_tensor);
        next_tensor += m.groups[g].n_tensors;
        for (int i = m.groups[g].first_tensor; i < next_tensor; i++) {
            assert_true(m.tensors[i].offset == at && m.tensors[i].group == g);
            at += m.tensors[i].rows * m.tensors[i].cols;
        }
        assert_true(m.groups[g].n_params == at);
        total += at;
    }
    assert_int_equal(next_tensor, m.n_tensors);
    assert_true(total == m.n_params && total == zero_shape_count(&small));
    zero_model_destroy(&m);
}

static const zero_tensor *find_tensor(const zero_model *m, const char *name)
{
    const zero_tensor *found = NULL;
    for (int i = 0; i < m->n_tensors; i++) {
        if (strcmp(m->tensors[i].name, name) != 0) continue;
        assert_null(found);
        found = &m->tensors[i];
    }
    if (!found) fail_msg("there is no tensor '%s'", name);
    return found;
}

TEST(the_tied_embedding_is_written_first_by_the_head_and_last_by_the_embedding)
{
    zero_model m = built(&small);
    int tied = find_tensor(&m, "wte.weight")->group, head = m.n_units - 1;
    assert_int_equal(tied, find_tensor(&m, "wpe.weight")->group);
    assert_int_equal(first_writer(&m, tied), head);
    assert_int_equal(last_writer(&m, tied), 0);
    for (int g = 0; g < m.n_groups; g++) {
        if (g == tied) continue;
        int u = first_writer(&m, g);
        assert_int_equal(last_writer(&m, g), u);
        assert_int_equal(m.units[u].groups[0], g);
    }
    zero_model_destroy(&m);
}

TEST(only_the_embedding_can_do_without_parameters_backward)
{
    zero_model m = built(&small);
    for (int u = 0; u < m.n_units; u++)
        assert_int_equal(m.units[u].backward_without_params, u == 0);
    zero_model_destroy(&m);
}

TEST(a_position_is_a_token_and_the_one_that_follows)
{
    zero_model m = built(&small);
    assert_int_equal(m.input_bytes, 4);
    assert_int_equal(m.target_bytes, 4);
    zero_model_destroy(&m);
}

TEST(impossible_shapes_are_refused_with_their_numbers)
{
#define SHAPE(l, c, h, t, v) \
    { \
        .layers = (l), .hidden = (c), .heads = (h), .seq = (t), .vocab = (v) \
    }
    static const struct {
        zero_shape shape;
        const char *text[2];
    } bad[] = {
        {SHAPE(1, 100, 7, 8, 9), {"--hidden 100", "--heads 7"}},
        {SHAPE(0, 8, 2, 8, 9), {"--layers 0", "10000"}},
        {SHAPE(10001, 8, 2, 8, 9), {"--layers 10001", "10000"}},
        {SHAPE(1, -8, 2, 8, 9), {"--hidden -8", "131072"}},
        {SHAPE(1, 8, 0, 8, 9), {"--heads 0", "65536"}},
        {SHAPE(1, 8, 2, 0, 9), {"--seq 0", "16777216"}},
        {SHAPE(1, 8, 2, 8, 0), {"--vocab 0", "16777216"}},
        {SHAPE(1, 8, 2, 8, INT64_MAX), {"--vocab 9223372036854775807", "16777216"}},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        zero_model model = {.n_units = 42};
        assert_int_equal(zero_model_build(&bad[i].shape, &model), ZERO_ERR_INVALID);
        for (int k = 0; k < 2; k++) assert_told(bad[i].text[k]);
        assert_int_equal(model.n_units, 42);
    }
}

TEST(a_model_of_10_to_the_12_parameters_is_described)
{
    zero_shape shape = {
        .layers = 128, .hidden = 25600, .heads = 160, .seq = 2048, .vocab = 50257};
    zero_model m = built(&shape);
    assert_true(m.n_params == zero_shape_count(&shape) &&
                m.n_params > INT64_C(1000000000000));
    assert_int_equal(m.n_units, 130);
    zero_model_destroy(&m);
}

/* ---- initial values ---- */

static float *initial(test_pool *pool, const zero_model *m, int g, int64_t seed,
                      int64_t begin, int64_t end)
{
    float *x = test_bytes(pool, (end - begin) * (int64_t)sizeof *x);
    memset(x, 0xff, (size_t)(end - begin) * sizeof *x);
    zero_model_init_params(m, g, seed, begin, end, x);
    return x;
}

#define PADDING 200

TEST(initial_values_do_not_depend_on_the_range_asked_for)
{
    static const int64_t steps[] = {1, 61, 64, 1000, 8192};
    zero_shape shape = {.layers = 1, .hidden = 12, .heads = 2, .seq = 7, .vocab = 31};
    zero_model m = built(&shape);
    for (int g = 0; g < m.n_groups; g++) {
        int64_t n = m.groups[g].n_params + PADDING;
        float *whole = initial(*state, &m, g, 5, 0, n);
        for (size_t k = 0; k < COUNT(steps); k++)
            for (int64_t at = 0; at < n; at += steps[k]) {
                int64_t end = at + steps[k] < n ? at + steps[k] : n;
                float part[8192];
                zero_model_init_params(&m, g, 5, at, end, part);
                assert_memory_equal(part, whole + at, (size_t)(end - at) * sizeof *part);
            }
    }
    zero_model_destroy(&m);
}

TEST(padding_starts_as_zero)
{
    zero_model m = built(&small);
    for (int g = 0; g < m.n_groups; g++) {
        int64_t n = m.groups[g].n_params;
        const float *all = initial(*state, &m, g, 1, 0, n + PADDING);
        const float *beyond = initial(*state, &m, g, 1, n + 64, n + PADDING);
        for (int64_t i = n; i < n + PADDING; i++) assert_true(all[i] == 0.0f);
        for (int64_t i = 0; i < PADDING - 64; i++) assert_true(beyond[i] == 0.0f);
    }
    zero_model_destroy(&m);
}

static void check_normal(const char *name, const float *x, int64_t n, double std)
{
    double sum = 0.0, squares = 0.0;
    for (int64_t i = 0; i < n; i++) {
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
    }
    /* Five standard errors of either estimate. */
    double mean = sum / (double)n, found = sqrt(squares / (double)n);
    if (fabs(mean) > 5.0 * std / sqrt((double)n) ||
        fabs(found / std - 1.0) > 5.0 / sqrt(2.0 * (double)n))
        fail_msg("%s: mean %g, std %g, expected 0 and %g", name, mean, found, std);
}

static void check_initial_tensor(const zero_tensor *t, const float *x)
{
    int64_t n = t->rows * t->cols;
    if (t->rows > 1) {
        bool residual = strstr(t->name, "c_proj") != NULL;
        double layers = (double)small.layers;
        check_normal(t->name, x, n, residual ? 0.02 / sqrt(2.0 * layers) : 0.02);
        return;
    }
    bool gain = strstr(t->name, "ln_") && strstr(t->name, ".weight");
    for (int64_t i = 0; i < n; i++) assert_true(x[i] == (gain ? 1.0f : 0.0f));
}

TEST(every_kind_of_tensor_starts_as_gpt2_does)
{
    zero_model m = built(&small);
    for (int g = 0; g < m.n_groups; g++) {
        const float *x = initial(*state, &m, g, 1234, 0, m.groups[g].n_params);
        for (int i = 0; i < m.groups[g].n_tensors; i++) {
            const zero_tensor *t = &m.tensors[m.groups[g].first_tensor + i];
            check_initial_tensor(t, x + t->offset);
        }
    }
    zero_model_destroy(&m);
}

TEST(tensors_and_seeds_have_numbers_of_their_own)
{
    zero_model m = built(&small);
    const zero_tensor *first = find_tensor(&m, "h.0.attn.c_attn.weight"),
                      *second = find_tensor(&m, "h.1.attn.c_attn.weight");
    int64_t n = 64;
    const float *a = initial(*state, &m, first->group, 1, first->offset, first->offset + n),
                *b = initial(*state, &m, second->group, 1, second->offset,
                             second->offset + n),
                *c = initial(*state, &m, first->group, 2, first->offset, first->offset + n);
    for (int64_t i = 0; i < n; i++) assert_true(a[i] != b[i] && a[i] != c[i]);
    zero_model_destroy(&m);
}
