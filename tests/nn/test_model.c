/* GPT-2 as groups and units: its description, its first weights, and its gradient against
 * finite differences of its loss, on the oracle. */
#include "support/math_test.h"

#include <inttypes.h>
#include <stdio.h>

#include "math/cpu_state.h"
#include "nn/gpt2.h"

static zero_model describe(const zero_gpt2_shape *shape)
{
    zero_model model;
    assert_int_equal(zero_gpt2_describe(shape, &model), ZERO_OK);
    return model;
}

/* ---- the description ---- */

static void presets_have_the_published_parameter_counts(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t n_params;
    } published[] = {{"gpt2", 124439808},
                     {"gpt2-medium", 354823168},
                     {"gpt2-large", 774030080},
                     {"gpt2-xl", 1557611200},
                     {"tiny", 0}};
    for (size_t i = 0; i < COUNT(published); i++) {
        zero_gpt2_shape shape;
        assert_int_equal(zero_gpt2_preset(published[i].name, &shape), ZERO_OK);
        if (shape.vocab == 0) shape.vocab = 300; /* tiny takes the tokenizer's */
        zero_model model = describe(&shape);
        assert_true(model.n_params == zero_gpt2_count(&shape));
        if (published[i].n_params) assert_true(model.n_params == published[i].n_params);
        assert_true(model.vocab == shape.vocab && model.seq == shape.seq);
        zero_model_destroy(&model);
    }
}

static void every_preset_is_a_sound_model_of_the_size_that_is_counted(void **state)
{
    (void)state;
    int n;
    const zero_gpt2_preset_row *rows = zero_gpt2_presets(&n);
    for (int i = 0; i < n; i++) {
        zero_gpt2_shape shape;
        assert_int_equal(zero_gpt2_preset(rows[i].name, &shape), ZERO_OK);
        assert_true(shape.hidden == rows[i].shape.hidden);
        if (shape.vocab == 0) shape.vocab = 300;
        assert_int_equal(zero_gpt2_check(&shape), ZERO_OK);
        zero_model model = describe(&shape);
        assert_true(model.n_params == zero_gpt2_count(&shape));
        zero_model_destroy(&model);
        for (int k = 0; k < i; k++) assert_string_not_equal(rows[i].name, rows[k].name);
    }
}

/* What a name says in billions: "paper-nomp-2.5b" 2.5, "paper-1t" 1000; 0 if it says none. */
static double billions(const char *name)
{
    while (*name && !(name[0] == '-' && name[1] >= '0' && name[1] <= '9')) name++;
    if (!*name) return 0.0;
    char *unit;
    double number = strtod(name + 1, &unit);
    return *unit == 't' ? 1000.0 * number : number;
}

/* The papers round: to tens from 20 billions on (GPT-3's to units), to units from 4, to
 * tenths or hundredths below; ZeRO-Infinity's table prints 1.01 for 1T. */
static double unit_of(const char *name)
{
    double size = billions(name);
    if (strcmp(name, "gpt3-175b") == 0) return 1.0;
    if (size >= 1000.0) return 20.0;
    if (size >= 20.0) return 10.0;
    if (size >= 4.0) return 1.0;
    return fabs(10.0 * size - round(10.0 * size)) < 1e-9 ? 0.1 : 0.01;
}

static void papers_models_have_the_size_that_their_name_says(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double billions;                      /* what it counts instead */
    } others[] = {{"paper-1.5b", 1.56},       /* as GPT-2's largest: cut off, not rounded */
                  {"paper-nomp-1.5b", 1.60},  /* right without its embeddings only */
                  {"paper-ddp-1.38b", 1.21}}; /* Megatron-LM calls this shape 1.2B */
    int n, named = 0;
    const zero_gpt2_preset_row *rows = zero_gpt2_presets(&n);
    for (int i = 0; i < n; i++) {
        double said = billions(rows[i].name), unit = unit_of(rows[i].name);
        if (said == 0.0) continue;
        named++;
        for (size_t k = 0; k < COUNT(others); k++)
            if (strcmp(others[k].name, rows[i].name) == 0)
                said = others[k].billions, unit = 0.01;
        double counted = (double)zero_gpt2_count(&rows[i].shape) / 1e9;
        if (fabs(counted - said) > unit / 2.0)
            fail_msg("%s counts %g billions", rows[i].name, counted);
    }
    assert_int_equal(named, n - 5); /* all but tiny and GPT-2's four */
}

/* Units count masked attention as well, half of 12 L T C; the embedding only adds. */
static void
a_steps_flops_are_three_times_its_forward_pass_without_what_is_masked(void **state)
{
    (void)state;
    zero_gpt2_shape shape;
    assert_int_equal(zero_gpt2_preset("gpt2", &shape), ZERO_OK);
    zero_model m = describe(&shape);
    double forward = 0.0, L = (double)shape.layers, C = (double)shape.hidden;
    for (int u = 1; u < m.n_units; u++)
        forward += m.units[u].sizes(&m.units[u], 1, shape.seq).flops;
    double masked = 6.0 * L * (double)shape.seq * C;
    double expected = 3.0 * forward / (double)shape.seq - masked;
    assert_true(fabs(zero_gpt2_flops(&shape) / expected - 1.0) < 1e-12);
    zero_model_destroy(&m);
}

/* "paper-80b" belongs to "paper", and the message has to lead there. */
static void the_answer_to_an_unknown_preset_names_every_family(void **state)
{
    (void)state;
    int n;
    const zero_gpt2_preset_row *rows = zero_gpt2_presets(&n);
    zero_gpt2_shape shape;
    assert_int_equal(zero_gpt2_preset("paper", &shape), ZERO_ERR_INVALID);
    for (int i = 0; i < n; i++) {
        char family[32];
        snprintf(family, sizeof family, "%s", rows[i].name);
        if (billions(family) > 0.0) *strpbrk(family, "0123456789") = 0;
        if (!strstr(zero_last_error(), family))
            fail_msg("'%s' is not in '%s'", family, zero_last_error());
    }
}

static void unknown_presets_are_answered_with_those_that_exist(void **state)
{
    (void)state;
    zero_gpt2_shape shape = {.layers = 77};
    assert_int_equal(zero_gpt2_preset("gpt3", &shape), ZERO_ERR_INVALID);
    assert_non_null(strstr(zero_last_error(), "gpt3"));
    assert_non_null(strstr(zero_last_error(), "gpt2-medium"));
    assert_true(shape.layers == 77);
}

static const zero_gpt2_shape small = {
    .layers = 3, .hidden = 64, .heads = 4, .seq = 20, .vocab = 101};

static void tensors_tile_the_flat_space_of_their_group(void **state)
{
    (void)state;
    zero_model m = describe(&small);
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
    assert_true(total == m.n_params && total == zero_gpt2_count(&small));
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

static void check_shape(const zero_model *m, const char *name, int64_t rows, int64_t cols)
{
    const zero_tensor *t = find_tensor(m, name);
    if (t->rows != rows || t->cols != cols)
        fail_msg("%s: [%" PRId64 ", %" PRId64 "]", name, t->rows, t->cols);
    assert_int_equal(t->decays, rows > 1); /* weight decay: matrices only */
}

static void tensors_have_the_names_and_shapes_of_hugging_face(void **state)
{
    (void)state;
    const int64_t C = small.hidden;
    const struct {
        const char *name;
        int64_t rows, cols;
    } block[] = {
        {"ln_1.weight", 1, C},
        {"ln_1.bias", 1, C},
        {"attn.c_attn.weight", C, 3 * C},
        {"attn.c_attn.bias", 1, 3 * C},
        {"attn.c_proj.weight", C, C},
        {"attn.c_proj.bias", 1, C},
        {"ln_2.weight", 1, C},
        {"ln_2.bias", 1, C},
        {"mlp.c_fc.weight", C, 4 * C},
        {"mlp.c_fc.bias", 1, 4 * C},
        {"mlp.c_proj.weight", 4 * C, C},
        {"mlp.c_proj.bias", 1, C},
    };
    zero_model m = describe(&small);
    check_shape(&m, "wte.weight", small.vocab, C);
    check_shape(&m, "wpe.weight", small.seq, C);
    check_shape(&m, "ln_f.weight", 1, C);
    check_shape(&m, "ln_f.bias", 1, C);
    for (int layer = 0; layer < small.layers; layer++)
        for (size_t i = 0; i < COUNT(block); i++) {
            char name[64];
            snprintf(name, sizeof name, "h.%d.%s", layer, block[i].name);
            check_shape(&m, name, block[i].rows, block[i].cols);
        }
    assert_int_equal(m.n_tensors, 4 + small.layers * (int64_t)COUNT(block));
    zero_model_destroy(&m);
}

static void
the_tied_embedding_is_written_first_by_the_head_and_last_by_the_embedding(void **state)
{
    (void)state;
    zero_model m = describe(&small);
    int tied = find_tensor(&m, "wte.weight")->group, head = m.n_units - 1;
    assert_int_equal(tied, find_tensor(&m, "wpe.weight")->group);
    assert_int_equal(zero_model_first_writer(&m, tied), head);
    assert_int_equal(zero_model_last_writer(&m, tied), 0);
    for (int g = 0; g < m.n_groups; g++) {
        if (g == tied) continue;
        int u = zero_model_first_writer(&m, g);
        assert_int_equal(zero_model_last_writer(&m, g), u);
        assert_int_equal(m.units[u].groups[0], g);
    }
    zero_model_destroy(&m);
}

static void only_the_embedding_can_do_without_parameters_backward(void **state)
{
    (void)state;
    zero_model m = describe(&small);
    for (int u = 0; u < m.n_units; u++)
        assert_int_equal(m.units[u].backward_without_params, u == 0);
    zero_model_destroy(&m);
}

static void a_position_is_a_token_and_the_one_that_follows(void **state)
{
    (void)state;
    zero_model m = describe(&small);
    assert_int_equal(m.input_bytes, 4);
    assert_int_equal(m.target_bytes, 4);
    zero_model_destroy(&m);
}

static void impossible_shapes_are_refused_with_their_numbers(void **state)
{
    (void)state;
    static const struct {
        zero_gpt2_shape shape;
        const char *text[2];
    } bad[] = {
        {{1, 100, 7, 8, 9, 0, 0}, {"--hidden 100", "--heads 7"}},
        {{0, 8, 2, 8, 9, 0, 0}, {"--layers 0", "10000"}},
        {{10001, 8, 2, 8, 9, 0, 0}, {"--layers 10001", "10000"}},
        {{1, -8, 2, 8, 9, 0, 0}, {"--hidden -8", "131072"}},
        {{1, 8, 0, 8, 9, 0, 0}, {"--heads 0", "65536"}},
        {{1, 8, 2, 0, 9, 0, 0}, {"--seq 0", "16777216"}},
        {{1, 8, 2, 8, 0, 0, 0}, {"--vocab 0", "16777216"}},
        {{1, 8, 2, 8, INT64_MAX, 0, 0}, {"--vocab 9223372036854775807", "16777216"}},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        zero_model model = {.n_units = 42};
        assert_int_equal(zero_gpt2_describe(&bad[i].shape, &model), ZERO_ERR_INVALID);
        for (int k = 0; k < 2; k++)
            if (!strstr(zero_last_error(), bad[i].text[k]))
                fail_msg("'%s' is not in '%s'", bad[i].text[k], zero_last_error());
        assert_int_equal(model.n_units, 42);
    }
}

static void a_model_of_10_to_the_12_parameters_is_described(void **state)
{
    (void)state;
    zero_gpt2_shape shape = {
        .layers = 128, .hidden = 25600, .heads = 160, .seq = 2048, .vocab = 50257};
    zero_model m = describe(&shape);
    assert_true(m.n_params == zero_gpt2_count(&shape) &&
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

static void initial_values_do_not_depend_on_the_range_asked_for(void **state)
{
    static const int64_t steps[] = {1, 61, 64, 1000, 8192};
    zero_gpt2_shape shape = {.layers = 1, .hidden = 12, .heads = 2, .seq = 7, .vocab = 31};
    zero_model m = describe(&shape);
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

static void padding_starts_as_zero(void **state)
{
    zero_model m = describe(&small);
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

static void every_kind_of_tensor_starts_as_gpt2_does(void **state)
{
    zero_model m = describe(&small);
    for (int g = 0; g < m.n_groups; g++) {
        const float *x = initial(*state, &m, g, 1234, 0, m.groups[g].n_params);
        for (int i = 0; i < m.groups[g].n_tensors; i++) {
            const zero_tensor *t = &m.tensors[m.groups[g].first_tensor + i];
            check_initial_tensor(t, x + t->offset);
        }
    }
    zero_model_destroy(&m);
}

static void tensors_and_seeds_have_numbers_of_their_own(void **state)
{
    zero_model m = describe(&small);
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

/* ---- the gradient of the whole model ---- */

#define MAX_UNITS 8

/* A model with the memory of one microbatch. */
typedef struct {
    zero_model model;
    const zero_backend *backend;
    zero_math math;
    zero_batch batch;
    zero_type type;                            /* of what the units read */
    uint16_t *half[MAX_UNITS];                 /* by group, where that is not param */
    float *param[MAX_UNITS], *grad[MAX_UNITS]; /* by group */
    float *out[MAX_UNITS], *saved[MAX_UNITS];  /* by unit */
    float *stream, *work, *logits, *row_loss;
} machine;

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Weights of a size at which every path of the model matters. */
static void set_weights(test_pool *pool, machine *m)
{
    for (int g = 0; g < m->model.n_groups; g++) {
        m->param[g] = test_floats(pool, m->model.groups[g].n_params);
        m->grad[g] = test_floats(pool, m->model.groups[g].n_params);
        for (int64_t i = 0; i < m->model.groups[g].n_params; i++) m->param[g][i] *= 0.3f;
    }
    for (int i = 0; i < m->model.n_tensors; i++) {
        const zero_tensor *t = &m->model.tensors[i];
        for (int64_t k = 0; k < t->cols && t->init == ZERO_INIT_ONES; k++)
            m->param[t->group][t->offset + k] += 1.0f;
    }
}

static void make_machine(test_pool *pool, machine *m, const zero_gpt2_shape *shape,
                         int64_t B, int64_t T)
{
    *m = (machine){.model = describe(shape), .backend = &zero_backend_naive};
    assert_true(m->model.n_units <= MAX_UNITS);
    set_weights(pool, m);
    int32_t *tokens = test_tokens(pool, B * T, shape->vocab);
    m->batch = (zero_batch){.B = B,
                            .T = T,
                            .inputs = tokens,
                            .targets = test_tokens(pool, B * T, shape->vocab),
                            .step = 3,
                            .first_sample = 11,
                            .loss_seed = (float)(1.0 / (double)(B * T))};
    int64_t work = 0, logits = 0;
    for (int u = 0; u < m->model.n_units; u++) {
        zero_unit_sizes n = m->model.units[u].sizes(&m->model.units[u], B, T);
        m->out[u] = test_floats(pool, n.out);
        m->saved[u] = test_floats(pool, n.saved);
        work = larger(work, larger(n.forward_work, n.backward_work));
        logits = larger(logits, n.logits);
    }
    m->stream = test_floats(pool, B * T * shape->hidden);
    m->work = test_floats(pool, work);
    m->logits = test_floats(pool, logits);
    m->row_loss = test_floats(pool, B * T);
}

static zero_call make_call(const machine *m, int u, bool training)
{
    zero_call c = {.backend = m->backend,
                   .math = &m->math,
                   .batch = &m->batch,
                   .training = training,
                   .type = m->type,
                   .in = u > 0 ? m->out[u - 1] : NULL,
                   .out = m->out[u],
                   .saved = m->saved[u],
                   .stream = m->stream,
                   .work = m->work,
                   .logits = m->logits,
                   .row_loss = m->row_loss};
    const zero_unit *unit = &m->model.units[u];
    for (int k = 0; k < unit->n_groups; k++) {
        c.param[k] = m->param[unit->groups[k]];
        if (m->type != ZERO_FP32) c.param[k] = m->half[unit->groups[k]];
        c.grad[k] = m->grad[unit->groups[k]];
        c.accumulate[k] = u != zero_model_first_writer(&m->model, unit->groups[k]);
    }
    return c;
}

static double mean_loss(const machine *m)
{
    double sum = 0.0;
    int64_t rows = m->batch.B * m->batch.T;
    for (int64_t i = 0; i < rows; i++) sum += (double)m->row_loss[i];
    return sum / (double)rows;
}

static void run_backward(const machine *m, int u)
{
    zero_call c = make_call(m, u, true);
    if (m->model.units[u].backward_without_params) c.param[0] = NULL;
    m->model.units[u].backward(&m->model.units[u], &c);
}

static double forward(const machine *m, bool training)
{
    for (int u = 0; u < m->model.n_units; u++) {
        zero_call c = make_call(m, u, training);
        m->model.units[u].forward(&m->model.units[u], &c);
    }
    if (training) run_backward(m, m->model.n_units - 1); /* which gives the loss */
    return mean_loss(m);
}

/* The gradient starts as NaN: the first writer of a group defines every element of it. */
static void gradient(const machine *m)
{
    for (int g = 0; g < m->model.n_groups; g++)
        memset(m->grad[g], 0xff, (size_t)m->model.groups[g].n_params * sizeof(float));
    forward(m, true);
    for (int u = m->model.n_units - 2; u >= 0; u--) run_backward(m, u);
}

/* The step of the differences; single precision limits them, not their order. */
#define STEP      2e-3f
#define TOLERANCE 2e-3 /* of the gradient's length; measured: at most 4e-4 */

/* The loss with a tensor moved by h along `direction` from `at`. */
static double moved(const machine *m, const zero_tensor *t, const float *at,
                    const float *direction, float h)
{
    float *x = m->param[t->group] + t->offset;
    for (int64_t i = 0; i < t->rows * t->cols; i++) x[i] = at[i] + h * direction[i];
    return forward(m, true);
}

static void check_tensor(test_pool *pool, const machine *m, const zero_tensor *t)
{
    int64_t n = t->rows * t->cols;
    const float *g = test_copy(pool, n, m->grad[t->group] + t->offset);
    const float *at = test_copy(pool, n, m->param[t->group] + t->offset);
    for (int trial = 0; trial < 3; trial++) {
        const float *d = test_floats(pool, n);
        double along = 0.0, size = 0.0;
        for (int64_t i = 0; i < n; i++) {
            along += (double)g[i] * (double)d[i];
            size += (double)g[i] * (double)g[i];
        }
        double one = moved(m, t, at, d, STEP) - moved(m, t, at, d, -STEP);
        double two = moved(m, t, at, d, 2 * STEP) - moved(m, t, at, d, -2 * STEP);
        double found = (8.0 * one - two) / (12.0 * (double)STEP);
        if (!(fabs(along - found) <= TOLERANCE * sqrt(size)))
            fail_msg("%s: backward %g, difference %g, length %g", t->name, along, found,
                     sqrt(size));
    }
    memcpy(m->param[t->group] + t->offset, at, (size_t)n * sizeof *at);
}

static void check_gradient(test_pool *pool, const zero_gpt2_shape *shape, int64_t B,
                           int64_t T)
{
    machine m;
    make_machine(pool, &m, shape, B, T);
    for (int i = 0; i < m.model.n_tensors; i++) {
        gradient(&m); /* again for each tensor: the differences overwrite it */
        check_tensor(pool, &m, &m.model.tensors[i]);
    }
    zero_model_destroy(&m.model);
}

static const zero_gpt2_shape tiny = {
    .layers = 2, .hidden = 12, .heads = 3, .seq = 6, .vocab = 17};

static void the_gradient_is_that_of_the_loss(void **state)
{
    check_gradient(*state, &tiny, 3, 6);
}

static void the_gradient_is_that_of_the_loss_with_dropout(void **state)
{
    zero_gpt2_shape shape = tiny;
    shape.dropout = 0.3f;
    shape.seed = 99;
    check_gradient(*state, &shape, 3, 6);
}

/* The head takes rows in chunks of 256: 280 rows are two. */
static void the_gradient_is_that_of_the_loss_over_chunks_of_the_head(void **state)
{
    zero_gpt2_shape shape = {.layers = 1, .hidden = 12, .heads = 1, .seq = 70, .vocab = 5};
    check_gradient(*state, &shape, 4, 70);
}

static void gradients_add_up_where_the_call_says_so(void **state)
{
    machine m;
    make_machine(*state, &m, &tiny, 2, 5);
    gradient(&m);
    for (int u = 0; u < m.model.n_units; u++) {
        const zero_unit *unit = &m.model.units[u];
        float *before[ZERO_UNIT_GROUPS];
        zero_call c = make_call(&m, u, true);
        float *stream = test_copy(*state, m.batch.B * m.batch.T * tiny.hidden, m.stream);
        for (int twice = 0; twice < 2; twice++) {
            memcpy(m.stream, stream,
                   (size_t)(m.batch.B * m.batch.T * tiny.hidden) * sizeof *stream);
            for (int k = 0; k < unit->n_groups; k++) c.accumulate[k] = twice > 0;
            unit->backward(unit, &c);
            for (int k = 0; k < unit->n_groups && !twice; k++)
                before[k] =
                    test_copy(*state, m.model.groups[unit->groups[k]].n_params, c.grad[k]);
        }
        for (int k = 0; k < unit->n_groups; k++) {
            int64_t n = m.model.groups[unit->groups[k]].n_params;
            for (int64_t i = 0; i < n; i++) before[k][i] *= 2.0f;
            assert_true(test_error(n, c.grad[k], before[k]) < 1e-5);
        }
    }
    zero_model_destroy(&m.model);
}

static void without_dropout_training_and_evaluation_have_one_loss(void **state)
{
    machine m;
    make_machine(*state, &m, &tiny, 3, 6);
    double training = forward(&m, true);
    assert_true(training > 1.0 && training == forward(&m, false));
    zero_model_destroy(&m.model);
}

static void dropout_acts_in_training_only_and_by_step_and_sample(void **state)
{
    zero_gpt2_shape shape = tiny;
    machine plain, m;
    make_machine(*state, &plain, &shape, 3, 6);
    shape.dropout = 0.3f;
    make_machine(*state, &m, &shape, 3, 6);
    m.batch = plain.batch;
    for (int g = 0; g < m.model.n_groups; g++) m.param[g] = plain.param[g];

    assert_true(forward(&m, false) == forward(&plain, false));
    double first = forward(&m, true);
    assert_true(first != forward(&plain, true) && first == forward(&m, true));
    m.batch.step++;
    assert_true(first != forward(&m, true));
    m.batch.step--;
    m.batch.first_sample++;
    assert_true(first != forward(&m, true));
    zero_model_destroy(&m.model);
    zero_model_destroy(&plain.model);
}

/* Rounds the weights to a type, and keeps them in both forms. */
static void round_weights(test_pool *pool, machine *m, zero_type type)
{
    for (int g = 0; g < m->model.n_groups; g++) {
        int64_t n = m->model.groups[g].n_params;
        m->half[g] = test_bytes(pool, 2 * n);
        zero_convert(ZERO_FP32, type, n, m->param[g], m->half[g]);
        zero_convert(type, ZERO_FP32, n, m->half[g], m->param[g]);
    }
}

static void open_backend(test_pool *pool, machine *m, const zero_backend *backend)
{
    m->backend = backend;
    assert_int_equal(backend->open(&m->math), ZERO_OK);
    m->math.state[ZERO_CPU_BF16_PRODUCTS] = NULL; /* the model in fp32 does not round */
    m->math.scratch = test_floats(pool, zero_math_scratch());
}

/* The head's chunks, dropout and both passes: 280 rows. */
static void check_half(test_pool *pool, const zero_backend *backend, zero_type type)
{
    zero_gpt2_shape shape = {.layers = 2, .hidden = 24, .heads = 3, .seq = 70, .vocab = 37};
    shape.dropout = 0.2f;
    machine m;
    make_machine(pool, &m, &shape, 4, 70);
    open_backend(pool, &m, backend);
    round_weights(pool, &m, type);
    gradient(&m);
    float *want[MAX_UNITS], *losses = test_copy(pool, 280, m.row_loss);
    for (int g = 0; g < m.model.n_groups; g++)
        want[g] = test_copy(pool, m.model.groups[g].n_params, m.grad[g]);

    m.type = type;
    for (int g = 0; g < m.model.n_groups; g++) m.param[g] = NULL;
    gradient(&m);
    assert_memory_equal(m.row_loss, losses, 280 * sizeof *losses);
    for (int g = 0; g < m.model.n_groups; g++)
        assert_memory_equal(m.grad[g], want[g],
                            (size_t)m.model.groups[g].n_params * sizeof(float));
    forward(&m, false);
    assert_true(isfinite(mean_loss(&m)));
    zero_model_destroy(&m.model);
}

static void weights_of_16_bits_give_the_bits_of_the_same_weights_in_fp32(void **state)
{
    check_half(*state, &zero_backend_naive, ZERO_BF16);
    check_half(*state, &zero_backend_naive, ZERO_FP16);
    check_half(*state, &zero_backend_cpu, ZERO_BF16);
    check_half(*state, &zero_backend_cpu, ZERO_FP16);
}

/* Generating gives the logits of the last position only: those of the loss over them. */
static void generated_logits_are_those_of_the_last_position(void **state)
{
    machine m;
    make_machine(*state, &m, &tiny, 1, 6);
    forward(&m, false);
    double sum = 0.0, loss = (double)m.row_loss[5];
    int32_t target = ((const int32_t *)m.batch.targets)[5];
    m.batch.targets = NULL;
    forward(&m, false);
    for (int64_t v = 0; v < tiny.vocab; v++) sum += exp((double)m.logits[v]);
    assert_true(fabs(log(sum) - (double)m.logits[target] - loss) < 1e-5);
    zero_model_destroy(&m.model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets_have_the_published_parameter_counts),
        cmocka_unit_test(every_preset_is_a_sound_model_of_the_size_that_is_counted),
        cmocka_unit_test(papers_models_have_the_size_that_their_name_says),
        cmocka_unit_test(
            a_steps_flops_are_three_times_its_forward_pass_without_what_is_masked),
        cmocka_unit_test(the_answer_to_an_unknown_preset_names_every_family),
        cmocka_unit_test(unknown_presets_are_answered_with_those_that_exist),
        cmocka_unit_test(tensors_tile_the_flat_space_of_their_group),
        cmocka_unit_test(tensors_have_the_names_and_shapes_of_hugging_face),
        cmocka_unit_test(
            the_tied_embedding_is_written_first_by_the_head_and_last_by_the_embedding),
        cmocka_unit_test(only_the_embedding_can_do_without_parameters_backward),
        cmocka_unit_test(a_position_is_a_token_and_the_one_that_follows),
        cmocka_unit_test(impossible_shapes_are_refused_with_their_numbers),
        cmocka_unit_test(a_model_of_10_to_the_12_parameters_is_described),
        test_with_pool(initial_values_do_not_depend_on_the_range_asked_for),
        test_with_pool(padding_starts_as_zero),
        test_with_pool(every_kind_of_tensor_starts_as_gpt2_does),
        test_with_pool(tensors_and_seeds_have_numbers_of_their_own),
        test_with_pool(the_gradient_is_that_of_the_loss),
        test_with_pool(the_gradient_is_that_of_the_loss_with_dropout),
        test_with_pool(the_gradient_is_that_of_the_loss_over_chunks_of_the_head),
        test_with_pool(gradients_add_up_where_the_call_says_so),
        test_with_pool(without_dropout_training_and_evaluation_have_one_loss),
        test_with_pool(dropout_acts_in_training_only_and_by_step_and_sample),
        test_with_pool(weights_of_16_bits_give_the_bits_of_the_same_weights_in_fp32),
        test_with_pool(generated_logits_are_those_of_the_last_position),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
