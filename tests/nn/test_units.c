/* The units of all architectures as whole models: their gradients against finite differences of
 * their loss, on the oracle; dropout, 16-bit weights, generation. */
#include "support/share.h"
#include "support/unit_machine.h"

/* The step of the differences, whose error comes from single precision, not from their order. */
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

static void check_gradient(test_pool *pool, const zero_shape *shape, int64_t B, int64_t T)
{
    machine m;
    make_machine(pool, &m, shape, B, T);
    for (int i = 0; i < m.model.n_tensors; i += TEST_SHARE(4)) {
        gradient(&m); /* again for each tensor: the differences overwrite it */
        check_tensor(pool, &m, &m.model.tensors[i]);
    }
    zero_model_destroy(&m.model);
}

static const zero_shape tiny = {
    .layers = 2, .hidden = 12, .heads = 3, .seq = 6, .vocab = 17};

static const zero_shape others[] = {
    {OTHER(ZERO_LLAMA, 12, 4, 2, 4, 20), .seq = 6, .vocab = 17},
    {OTHER(ZERO_MISTRAL, 12, 3, 1, 4, 20), .seq = 6, .vocab = 17},
    {OTHER(ZERO_QWEN2, 16, 2, 2, 8, 20), .seq = 6, .vocab = 17, .tied = true},
    {OTHER(ZERO_QWEN3, 12, 4, 2, 6, 20), .seq = 6, .vocab = 17},
    {OTHER(ZERO_NEOX, 24, 3, 3, 8, 20), .seq = 6, .vocab = 17},
    {OTHER(ZERO_NEOX, 12, 2, 2, 6, 20), .seq = 6, .vocab = 17, .rotary = 1, .tied = true},
};

static void for_all(test_pool *pool, void (*check)(test_pool *, const zero_shape *))
{
    check(pool, &tiny);
    for (size_t i = 0; i < COUNT(others); i++) check(pool, &others[i]);
}

TEST(the_gradient_is_that_of_the_loss)
{
    check_gradient(*state, &tiny, 3, 6);
    for (size_t i = 0; i < COUNT(others); i++) check_gradient(*state, &others[i], 3, 6);
}

TEST(the_gradient_is_that_of_the_loss_with_dropout)
{
    zero_shape shape = tiny;
    shape.dropout = 0.3f;
    shape.seed = 99;
    check_gradient(*state, &shape, 3, 6);
    shape = others[0];
    shape.dropout = 0.3f;
    check_gradient(*state, &shape, 3, 6);
}

/* The head takes rows in chunks of 256: 280 rows are two. */
TEST(the_gradient_is_that_of_the_loss_over_chunks_of_the_head)
{
    zero_shape shape = {.layers = 1, .hidden = 12, .heads = 1, .seq = 70, .vocab = 5};
    check_gradient(*state, &shape, 4, 70);
}

static void check_adding(test_pool *pool, const zero_shape *shape)
{
    machine m;
    make_machine(pool, &m, shape, 2, 5);
    gradient(&m);
    for (int u = 0; u < m.model.n_units; u++) {
        const zero_unit *unit = &m.model.units[u];
        float *before[ZERO_UNIT_GROUPS];
        zero_call c = make_call(&m, u, true);
        float *stream = test_copy(pool, m.batch.B * m.batch.T * shape->hidden, m.stream);
        for (int twice = 0; twice < 2; twice++) {
            memcpy(m.stream, stream,
                   (size_t)(m.batch.B * m.batch.T * shape->hidden) * sizeof *stream);
            for (int k = 0; k < unit->n_groups; k++) c.accumulate[k] = twice > 0;
            unit->backward(unit, &c);
            for (int k = 0; k < unit->n_groups && !twice; k++)
                before[k] =
                    test_copy(pool, m.model.groups[unit->groups[k]].n_params, c.grad[k]);
        }
        for (int k = 0; k < unit->n_groups; k++) {
            int64_t n = m.model.groups[unit->groups[k]].n_params;
            for (int64_t i = 0; i < n; i++) before[k][i] *= 2.0f;
            assert_true(test_error(n, c.grad[k], before[k]) < 1e-5);
        }
    }
    zero_model_destroy(&m.model);
}

TEST(gradients_add_up_where_the_call_says_so)
{
    for_all(*state, check_adding);
}

static void check_saving(test_pool *pool, const zero_shape *shape)
{
    int without = 0;
    machine m;
    make_machine(pool, &m, shape, 2, 5);
    forward(&m, true);
    for (int u = 0; u < m.model.n_units; u++) {
        const zero_unit *unit = &m.model.units[u];
        if (!unit->recompute_without_out) continue;
        zero_call c = make_call(&m, u, true);
        size_t bytes = (size_t)unit->sizes(unit, 2, 5).saved * sizeof *c.saved;
        float *saved = test_copy(pool, unit->sizes(unit, 2, 5).saved, c.saved);
        memset(c.saved, 0xff, bytes);
        c.out = NULL;
        unit->forward(unit, &c);
        assert_memory_equal(c.saved, saved, bytes);
        without++;
    }
    assert_int_equal(without, shape->layers);
    zero_model_destroy(&m.model);
}

TEST(a_forward_call_without_output_saves_the_same)
{
    for_all(*state, check_saving);
}

static void check_one_loss(test_pool *pool, const zero_shape *shape)
{
    machine m;
    make_machine(pool, &m, shape, 3, 6);
    double training = forward(&m, true);
    assert_true(training > 1.0 && training == forward(&m, false));
    zero_model_destroy(&m.model);
}

TEST(without_dropout_training_and_evaluation_have_one_loss)
{
    for_all(*state, check_one_loss);
}

TEST(dropout_acts_in_training_only_and_by_step_and_sample)
{
    zero_shape shape = tiny;
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

/* The head's chunks, dropout and both passes: 280 rows. */
static const zero_shape longer[] = {
    {.layers = 2, .hidden = 24, .heads = 3, .seq = 70, .vocab = 37},
    {OTHER(ZERO_LLAMA, 24, 4, 2, 6, 40), .seq = 70, .vocab = 37},
    {OTHER(ZERO_QWEN2, 24, 3, 1, 8, 40), .seq = 70, .vocab = 37, .tied = true},
    {OTHER(ZERO_QWEN3, 24, 4, 4, 8, 40), .seq = 70, .vocab = 37},
    {OTHER(ZERO_NEOX, 24, 3, 3, 8, 40), .seq = 70, .vocab = 37},
};

static void check_half(test_pool *pool, const zero_backend *backend, zero_type type,
                       zero_shape shape)
{
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

TEST(weights_of_16_bits_give_the_bits_of_the_same_weights_in_fp32)
{
    for (size_t i = 0; i < COUNT(longer); i++) {
        check_half(*state, &zero_backend_naive, ZERO_BF16, longer[i]);
        check_half(*state, &zero_backend_naive, ZERO_FP16, longer[i]);
        check_half(*state, &zero_backend_cpu, ZERO_BF16, longer[i]);
        check_half(*state, &zero_backend_cpu, ZERO_FP16, longer[i]);
    }
}

/* The largest difference between the gradient and `want`, as a share of the largest element of it. */
static double apart(const machine *m, float *const want[MAX_UNITS])
{
    double most = 0.0, largest = 0.0;
    for (int g = 0; g < m->model.n_groups; g++)
        for (int64_t i = 0; i < m->model.groups[g].n_params; i++) {
            assert_true(isfinite(m->grad[g][i]));
            most = fmax(most, fabs((double)m->grad[g][i] - (double)want[g][i]));
            largest = fmax(largest, fabs((double)want[g][i]));
        }
    return most / largest;
}

/* With fp32 activations first, then with 16 bits in the same memory, which is then large enough. Units
 * may not read what they have not written: all of it is NaN before. */
static void check_activations(test_pool *pool, const zero_backend *backend, zero_type type,
                              float dropout, zero_shape shape)
{
    shape.dropout = dropout;
    machine m;
    make_machine(pool, &m, &shape, 4, 70);
    open_backend(pool, &m, backend);
    round_weights(pool, &m, type);
    m.type = type;
    gradient(&m);
    const double loss = mean_loss(&m);
    float *want[MAX_UNITS];
    for (int g = 0; g < m.model.n_groups; g++)
        want[g] = test_copy(pool, m.model.groups[g].n_params, m.grad[g]);

    assert_ok(zero_model_activate(&m.model, type));
    for (int u = 0; u < m.model.n_units; u++) {
        zero_unit_sizes n = m.model.units[u].sizes(&m.model.units[u], 4, 70);
        if (n.out > 0) memset(m.out[u], 0xff, (size_t)n.out * 2);
        if (n.saved > 0) memset(m.saved[u], 0xff, (size_t)n.saved * sizeof(float));
    }
    gradient(&m);
    const double off = apart(&m, want), off_loss = fabs(mean_loss(&m) / loss - 1.0);
    if (!(off > 0.0 && off < (shape.kind ? 3e-2 : 1e-2) && off_loss < 5e-3))
        fail_msg("%s, %s: gradient %g of the largest, loss %g", backend->name,
                 zero_type_name(type), off, off_loss);
    zero_model_destroy(&m.model);
}

TEST(activations_of_16_bits_give_nearly_the_gradient_of_fp32)
{
    const zero_backend *backends[] = {&zero_backend_naive, &zero_backend_cpu};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < 2 * COUNT(longer); i++) {
            const float dropout = i % 2 > 0 ? 0.2f : 0.0f;
            check_activations(*state, backends[k], ZERO_BF16, dropout, longer[i / 2]);
            check_activations(*state, backends[k], ZERO_FP16, dropout, longer[i / 2]);
        }
}

/* Rows of logits may lie apart, with anything between them; how many are computed at a time changes the
 * order of sums alone. */
TEST(the_head_takes_as_many_rows_as_suit_the_device)
{
    const zero_shape shape = {
        .layers = 1, .hidden = 24, .heads = 3, .seq = 70, .vocab = 37};
    const zero_logits_chunk chunks[] = {{64, 16}, {4096, 64}, {1, 1}};
    const zero_backend *backends[] = {&zero_backend_naive, &zero_backend_cpu};
    for (int k = 0; k < 2; k++) {
        machine m;
        float *want[MAX_UNITS];
        make_machine(*state, &m, &shape, 4, 70);
        open_backend(*state, &m, backends[k]);
        gradient(&m);
        float *loss = test_copy(*state, 280, m.row_loss);
        for (int g = 0; g < m.model.n_groups; g++)
            want[g] = test_copy(*state, m.model.groups[g].n_params, m.grad[g]);
        for (size_t i = 0; i < COUNT(chunks); i++) {
            const zero_unit *head = &m.model.units[m.model.n_units - 1];
            zero_model_chunk_logits(&m.model, chunks[i]);
            const int64_t n = head->sizes(head, 4, 70).logits;
            assert_int_equal(n, zero_min(280, chunks[i].rows) *
                                    zero_round_up(37, chunks[i].step));
            m.logits = test_floats(*state, n);
            memset(m.logits, 0xff, (size_t)n * sizeof(float));
            gradient(&m);
            assert_memory_equal(m.row_loss, loss, 280 * sizeof(float));
            assert_true(apart(&m, want) < 1e-5);
        }
        zero_model_destroy(&m.model);
    }
}

TEST(activations_are_of_a_type_that_all_units_heed)
{
    zero_model model = built(&tiny);
    zero_unit *block = &model.units[1];
    assert_int_equal(zero_unit_room(block, 7), 7);
    assert_ok(zero_model_activate(&model, ZERO_BF16));
    assert_int_equal(zero_unit_room(block, 7), 4);
    block->heeds_activations = false;
    assert_fails(zero_model_activate(&model, ZERO_FP16), ZERO_ERR_UNSUPPORTED, "block 0");
    assert_int_equal(model.units[0].activations, ZERO_BF16);
    assert_int_equal(zero_model_activate(&model, (zero_type)9), ZERO_ERR_INVALID);
    assert_ok(zero_model_activate(&model, ZERO_FP32));
    zero_model_destroy(&model);
    assert_int_equal(zero_model_activate(&model, ZERO_FP32), ZERO_ERR_INVALID);
}

/* Generating gives the logits of the last position only; they must reproduce its loss. */
static void check_generated_logits_are_those_of_the_last_position(test_pool *pool,
                                                                  const zero_shape *shape)
{
    machine m;
    make_machine(pool, &m, shape, 1, 6);
    forward(&m, false);
    double sum = 0.0, loss = (double)m.row_loss[5];
    int32_t target = ((const int32_t *)m.batch.targets)[5];
    m.batch.targets = NULL;
    forward(&m, false);
    for (int64_t v = 0; v < shape->vocab; v++) sum += exp((double)m.logits[v]);
    assert_true(fabs(log(sum) - (double)m.logits[target] - loss) < 1e-5);
    zero_model_destroy(&m.model);
}

TEST(generated_logits_are_those_of_the_last_position)
{
    for_all(*state, check_generated_logits_are_those_of_the_last_position);
}
