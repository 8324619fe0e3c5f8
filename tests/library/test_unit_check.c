/* zero_unit_check(): sound units pass, and each mistake is found and named. */
#include "support/mpi_cmocka.h"

#include "support/library_models.h"

#include <zero/check.h>
#include <zero/gpt2.h>

static const zero_source tied_source = {.sample = tied_sample};

/* ---- sound units ---- */

static void check_all(const zero_model *model, const zero_source *source,
                      const zero_unit_check_spec *spec)
{
    for (int u = 0; u < model->n_units; u++) {
        zero_unit_check_result worst;
        assert_ok(zero_unit_check(model, u, source, spec, &worst));
        assert_true(worst.deviation <= 0.02);
    }
}

static void sample_tokens(const void *arg, int64_t step, int64_t i, int64_t T, void *inputs,
                          void *targets)
{
    (void)arg;
    for (int64_t t = 0; t < T; t++) {
        ((int32_t *)inputs)[t] = (int32_t)((step + 5 * i + 3 * t) % 17);
        ((int32_t *)targets)[t] = (int32_t)((step + 7 * i + 2 * t) % 17);
    }
}

TEST(sound_units_pass_with_any_seed)
{
    tied_model tied;
    zero_model model;
    tied_init(&tied);
    assert_ok(zero_model_describe(&tied.tables, &model));
    check_all(&model, &tied_source, NULL);
    for (int64_t seed = 0; seed < 20; seed++)
        check_all(&model, &tied_source,
                  &(zero_unit_check_spec){.seed = seed, .B = 1 + seed % 3});
    zero_model_destroy(&model);
}

TEST(the_units_of_gpt2_pass_on_both_backends)
{
    const zero_source source = {.sample = sample_tokens};
    zero_model model;
    for (int64_t seed = 0; seed < 3; seed++) {
        const zero_gpt2_shape shape = {.layers = 1,
                                       .hidden = 16,
                                       .heads = 2,
                                       .seq = 6,
                                       .vocab = 17,
                                       .dropout = 0.1f * (float)seed,
                                       .seed = seed};
        assert_ok(zero_gpt2_describe(&shape, &model));
        check_all(&model, &source, &(zero_unit_check_spec){.seed = seed});
        check_all(&model, &source, &(zero_unit_check_spec){.seed = seed, .backend = "cpu"});
        zero_model_destroy(&model);
    }
}

/* ---- units with one mistake ---- */

static void in_ignores_accumulate(const zero_unit *u, const zero_call *c)
{
    zero_call set = *c;
    set.accumulate[0] = false;
    tied_in_backward(u, &set);
}

static void in_never_sets(const zero_unit *u, const zero_call *c)
{
    zero_call add = *c;
    add.accumulate[0] = true;
    tied_in_backward(u, &add);
}

static void in_forgets_an_element(const zero_unit *u, const zero_call *c)
{
    float before = c->grad[0][7];
    tied_in_backward(u, c);
    c->grad[0][7] = before;
}

static void in_doubles_an_element(const zero_unit *u, const zero_call *c)
{
    tied_in_backward(u, c);
    c->grad[0][7] *= 2.0f;
}

static void tanh_forgets_the_derivative(const zero_unit *u, const zero_call *c)
{
    (void)u, (void)c; /* the stream passes unchanged */
}

static void tanh_has_a_sign_wrong(const zero_unit *u, const zero_call *c)
{
    (void)u;
    for (int64_t i = 0; i < rows_of(c) * NARROW; i++)
        c->stream[i] *= 1.0f + c->saved[i] * c->saved[i];
}

static void tanh_leaves_an_output(const zero_unit *u, const zero_call *c)
{
    float before = c->out[3];
    tanh_forward(u, c);
    c->out[3] = before;
}

static void tanh_writes_beyond_saved(const zero_unit *u, const zero_call *c)
{
    tanh_forward(u, c);
    c->saved[rows_of(c) * NARROW] = 1.0f;
}

static void tanh_works_in_its_input(const zero_unit *u, const zero_call *c)
{
    float *in = (float *)(uintptr_t)c->in;
    tanh_forward(u, c);
    for (int64_t i = 0; i < rows_of(c) * NARROW; i++) in[i] = c->out[i];
}

static void tanh_backward_writes_its_input(const zero_unit *u, const zero_call *c)
{
    tanh_backward(u, c);
    ((float *)(uintptr_t)c->in)[0] = 5.0f;
}

static void tanh_saves_through_out(const zero_unit *u, const zero_call *c)
{
    (void)u;
    for (int64_t i = 0; i < rows_of(c) * NARROW; i++)
        c->saved[i] = c->out ? c->out[i] = tanhf(c->in[i]) : 0.0f;
}

static void out_forgets_the_gain(const zero_unit *u, const zero_call *c)
{
    tied_out_backward(u, c);
    memset(zero_weight_grad(u, c, 1, 0), 0, WIDE * sizeof(float));
}

static void out_forgets_the_seed(const zero_unit *u, const zero_call *c)
{
    zero_batch batch = *c->batch;
    zero_call other = *c;
    batch.loss_seed = 1.0f;
    other.batch = &batch;
    tied_out_backward(u, &other);
}

static void out_forgets_a_loss(const zero_unit *u, const zero_call *c)
{
    float before = c->row_loss[1];
    tied_out_backward(u, c);
    c->row_loss[1] = before;
}

typedef void unit_call(const zero_unit *u, const zero_call *c);

static const struct {
    int unit;
    unit_call *forward, *backward; /* in place of the unit's own; NULL: its own */
    bool without_out;
    zero_status status;
    const char *text;
} mistakes[] = {
    {0, NULL, in_ignores_accumulate, false, ZERO_ERR_INVALID, "accumulates"},
    {0, NULL, in_never_sets, false, ZERO_ERR_INVALID, "gradient of 'A' undefined"},
    {0, NULL, in_forgets_an_element, false, ZERO_ERR_INVALID, "element 7 of the gradient"},
    {0, NULL, in_doubles_an_element, false, ZERO_ERR_DIFFERENT, "gradient of 'A' is wrong"},
    {1, NULL, tanh_forgets_the_derivative, false, ZERO_ERR_DIFFERENT, "gradient of 'in'"},
    {1, NULL, tanh_has_a_sign_wrong, false, ZERO_ERR_DIFFERENT, "gradient of 'in'"},
    {1, tanh_leaves_an_output, NULL, false, ZERO_ERR_INVALID, "element 3 of its output"},
    {1, tanh_writes_beyond_saved, NULL, false, ZERO_ERR_INVALID, "end of saved"},
    {1, tanh_works_in_its_input, NULL, false, ZERO_ERR_INVALID, "other bits"},
    {1, NULL, tanh_backward_writes_its_input, false, ZERO_ERR_INVALID, "may only read"},
    {1, tanh_saves_through_out, NULL, true, ZERO_ERR_INVALID, "`out` is NULL"},
    {2, NULL, out_forgets_the_gain, false, ZERO_ERR_DIFFERENT, "'gain' is wrong"},
    {2, NULL, out_forgets_the_seed, false, ZERO_ERR_DIFFERENT, "finite differences"},
    {2, NULL, out_forgets_a_loss, false, ZERO_ERR_INVALID, "element 1 of its losses"},
};

TEST(each_mistake_is_found_and_named)
{
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        tied_model tied;
        zero_model model;
        zero_unit_check_result worst;
        tied_init(&tied);
        zero_unit *unit = &tied.units[mistakes[i].unit];
        if (mistakes[i].forward) unit->forward = mistakes[i].forward;
        if (mistakes[i].backward) unit->backward = mistakes[i].backward;
        unit->recompute_without_out = mistakes[i].without_out;
        assert_ok(zero_model_describe(&tied.tables, &model));
        zero_status st =
            zero_unit_check(&model, mistakes[i].unit, &tied_source, NULL, &worst);
        if (st != mistakes[i].status || !strstr(zero_last_error(), mistakes[i].text))
            fail_msg("mistake %d: status %d, '%s'", (int)i, (int)st, zero_last_error());
        if (st == ZERO_ERR_DIFFERENT) assert_true(worst.deviation > 0.02);
        zero_model_destroy(&model);
    }
}
