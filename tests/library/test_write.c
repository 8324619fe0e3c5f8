/* Tensors that are written, gradients that are read, and models that are checked by them. */
#include "support/library_test.h"

#include <zero/check.h>

enum { PARAMS = WIDE * NARROW };

/* Seen from outside: the loss of step 0 without its update. */
static double loss_of(zero_trainer *t)
{
    zero_step_result out;
    if (zero_trainer_compute(t, &tied_source, 0, &out) != ZERO_OK)
        fail_msg("compute: %s", zero_last_error());
    return out.loss;
}

static void write_one(zero_trainer *t, const char *tensor, int64_t i, float value)
{
    all_ok(zero_trainer_write(t, tensor, i, i + 1, &value));
}

/* ---- perturbation ---- */

static void check_element(zero_trainer *t, const char *tensor, const float *w, float g,
                          int64_t i, double tolerance)
{
    const float h = 2e-2f;
    write_one(t, tensor, i, w[i] + h);
    double up = loss_of(t);
    write_one(t, tensor, i, w[i] - h);
    double down = loss_of(t);
    write_one(t, tensor, i, w[i]);
    double difference = (up - down) / (2.0 * (double)h);
    if (!(fabs(difference - (double)g) <= tolerance * fmax(fabs((double)g), 0.05)))
        fail_msg("%s[%d]: gradient %g, difference %g", tensor, (int)i, (double)g,
                 difference);
}

/* A whole training step's gradient, tied tensors and the sum over ranks included, is what the loss
 * does when a parameter moves; afterwards nothing has changed. */
TEST(the_gradient_is_what_the_loss_does)
{
    zero_model model;
    char before[33], after[33];
    float a[PARAMS], da[PARAMS], gain[WIDE], dgain[WIDE];
    describe_tied(&model);
    for (int stage = 0; stage <= 3; stage++) {
        zero_trainer_spec spec = tied_spec(&model);
        spec.stage = stage;
        spec.accumulation = stage % 2 + 1;
        spec.partition = stage == 2 ? "owner" : NULL;
        spec.collectives = stage == 3 ? "p2p" : NULL;
        zero_comm *comm = open_world();
        zero_trainer *t = open_trainer(&spec, comm);
        all_ok(zero_trainer_digest(t, before));
        loss_of(t);
        all_ok(zero_trainer_read(t, "A", a));
        all_ok(zero_trainer_read(t, "gain", gain));
        all_ok(zero_trainer_gradient(t, "A", da));
        all_ok(zero_trainer_gradient(t, "gain", dgain));
        for (int64_t i = 0; i < PARAMS; i += 17) check_element(t, "A", a, da[i], i, 0.02);
        for (int64_t i = 0; i < WIDE; i += 5)
            check_element(t, "gain", gain, dgain[i], i, 0.02);
        all_ok(zero_trainer_digest(t, after));
        assert_string_equal(before, after);
        zero_trainer_close(&t);
        zero_comm_close(&comm);
    }
    zero_model_destroy(&model);
}

/* A gradient that overflows fp16 has none to read. A step that is skipped lowers the loss scale and
 * changes nothing else. */
static void compute_in_range(zero_trainer *t)
{
    zero_step_result out;
    float g[PARAMS];
    for (int i = 0; i < 8; i++) {
        all_ok(zero_trainer_compute(t, &tied_source, 0, &out));
        if (!out.skipped) return;
        assert_all(zero_trainer_gradient(t, "A", g) == ZERO_ERR_INVALID);
        take_step(t, 0, &out);
        assert_all(out.skipped);
    }
    fail_msg("the loss scale does not fall");
}

/* fp16's gradients carry a loss scale, which the reader does not see. */
TEST(gradients_of_all_types_and_stages_agree)
{
    zero_model model;
    float exact[PARAMS], g[PARAMS];
    describe_tied(&model);
    for (zero_type type = ZERO_FP32; type <= ZERO_FP16; type++)
        for (int stage = 0; stage <= 3; stage++) {
            zero_trainer_spec spec = tied_spec(&model);
            spec.type = type;
            spec.stage = stage;
            zero_comm *comm = open_world();
            zero_trainer *t = open_trainer(&spec, comm);
            compute_in_range(t);
            all_ok(zero_trainer_gradient(t, "A", g));
            if (type == ZERO_FP32 && stage == 0) memcpy(exact, g, sizeof exact);
            if (type == ZERO_FP32) assert_all(memcmp(exact, g, sizeof g) == 0);
            for (int i = 0; i < PARAMS; i++)
                assert_true(fabsf(g[i] - exact[i]) < 0.03f * (0.1f + fabsf(exact[i])));
            zero_trainer_close(&t);
            zero_comm_close(&comm);
        }
    zero_model_destroy(&model);
}

/* ---- writing ---- */

/* Two trainers with other seeds are the same one after all tensors were written, at once in all
 * their copies: what follows has the same bits. */
TEST(what_is_written_trains_on_like_the_original)
{
    zero_model model;
    zero_step_result out;
    char digest[2][33];
    float a[PARAMS], gain[WIDE];
    describe_tied(&model);
    for (int k = 0; k < 12; k++) {
        zero_trainer_spec spec = tied_spec(&model);
        spec.stage = k % 4;
        spec.type = (zero_type)(k / 4);
        spec.persist = k == 3 ? 50 : 0;
        for (int copy = 0; copy < 2; copy++) {
            spec.seed = 7 + copy;
            zero_comm *comm = open_world();
            zero_trainer *t = open_trainer(&spec, comm);
            if (copy == 0) {
                all_ok(zero_trainer_read(t, "A", a));
                all_ok(zero_trainer_read(t, "gain", gain));
            } else {
                all_ok(zero_trainer_write(t, "A", 0, 77, a));
                all_ok(zero_trainer_write(t, "gain", 0, WIDE, gain));
                all_ok(zero_trainer_write(t, "A", 77, PARAMS, a + 77));
                all_ok(zero_trainer_write(t, "A", 5, 5, a));
            }
            for (int64_t step = 0; step < 4; step++) take_step(t, step, &out);
            all_ok(zero_trainer_digest(t, digest[copy]));
            zero_trainer_close(&t);
            zero_comm_close(&comm);
        }
        assert_string_equal(digest[0], digest[1]);
    }
    zero_model_destroy(&model);
}

/* Between steps, while gathers are in flight: only what was written changes, moments stay. */
TEST(what_is_written_is_read_and_nothing_else_changes)
{
    zero_model model;
    zero_step_result out;
    float before[PARAMS], after[PARAMS];
    const float three[3] = {1.5f, -2.25f, 0.125f};
    double loss[2];
    describe_tied(&model);
    for (int stage = 0; stage <= 3; stage++) {
        zero_trainer_spec spec = tied_spec(&model);
        spec.stage = stage;
        spec.type = ZERO_BF16;
        zero_comm *comm = open_world();
        zero_trainer *t = open_trainer(&spec, comm);
        for (int64_t step = 0; step < 2; step++) take_step(t, step, &out);
        all_ok(zero_trainer_read(t, "A", before));
        all_ok(zero_trainer_evaluate(t, &tied_source, &loss[0]));
        all_ok(zero_trainer_write(t, "A", 60, 63, three));
        all_ok(zero_trainer_evaluate(t, &tied_source, &loss[1]));
        assert_all(loss[0] != loss[1]);
        all_ok(zero_trainer_read(t, "A", after));
        assert_memory_equal(after + 60, three, sizeof three);
        memcpy(after + 60, before + 60, sizeof three);
        assert_memory_equal(after, before, sizeof after);
        all_ok(zero_trainer_write(t, "A", 60, 63, before + 60));
        all_ok(zero_trainer_evaluate(t, &tied_source, &loss[1]));
        assert_true(loss[0] == loss[1]);
        zero_trainer_close(&t);
        zero_comm_close(&comm);
    }
    zero_model_destroy(&model);
}

/* ---- undefined results ---- */

static void forget_gain(const zero_unit *u, const zero_call *c)
{
    float *gain = zero_weight_grad(u, c, 1, 0), before = gain[WIDE - 1];
    tied_out_backward(u, c);
    gain[WIDE - 1] = before;
}

static void add_always(const zero_unit *u, const zero_call *c)
{
    zero_call add = *c;
    add.accumulate[1] = true;
    tied_out_backward(u, &add);
}

static void forget_loss(const zero_unit *u, const zero_call *c)
{
    float before = c->row_loss[2];
    tied_out_backward(u, c);
    c->row_loss[2] = before;
}

static void forget_stream(const zero_unit *u, const zero_call *c)
{
    float before = c->stream[4];
    tied_out_backward(u, c);
    c->stream[4] = before;
}

static void forget_output(const zero_unit *u, const zero_call *c)
{
    float before = c->out[1];
    tied_in_forward(u, c);
    c->out[1] = before;
}

/* Only the last rank's samples meet the mistake. */
static void forget_on_one_rank(const zero_unit *u, const zero_call *c)
{
    (test_rank == test_size - 1 ? forget_gain : tied_out_backward)(u, c);
}

static const struct {
    int unit;
    void (*forward)(const zero_unit *, const zero_call *);
    void (*backward)(const zero_unit *, const zero_call *);
    const char *text;
} forgetful[] = {
    {2, NULL, forget_gain, "unit 'out' leaves element 23 of the gradient of 'gain'"},
    {2, NULL, add_always, "unit 'out' leaves element 0 of the gradient of 'gain'"},
    {2, NULL, forget_loss, "unit 'out' leaves the loss of position 2"},
    {2, NULL, forget_stream, "unit 'out' leaves element 4 of the gradient of its input"},
    {0, forget_output, NULL, "unit 'in' leaves element 1 of its output"},
    {2, NULL, forget_on_one_rank, "element 23 of the gradient of 'gain'"},
};

/* fp16 would skip such a step as an overflow, again and again. */
TEST(what_a_unit_leaves_undefined_is_told_in_the_first_step)
{
    zero_step_result out;
    for (size_t i = 0; i < COUNT(forgetful); i++)
        for (int k = 0; k < 4; k++) {
            tied_model tied;
            zero_model model;
            char digest[2][33];
            tied_init(&tied);
            if (forgetful[i].forward)
                tied.units[forgetful[i].unit].forward = forgetful[i].forward;
            if (forgetful[i].backward)
                tied.units[forgetful[i].unit].backward = forgetful[i].backward;
            all_ok(zero_model_describe(&tied.tables, &model));
            zero_trainer_spec spec = tied_spec(&model);
            spec.stage = k;
            spec.type = k == 1 ? ZERO_FP16 : k == 2 ? ZERO_BF16 : ZERO_FP32;
            spec.recompute = k == 3;
            zero_comm *comm = open_world();
            zero_trainer *t = open_trainer(&spec, comm);
            all_ok(zero_trainer_digest(t, digest[0]));
            for (int twice = 0; twice < 2; twice++)
                refused(zero_trainer_step(t, &tied_source, &tied_input, &out),
                        forgetful[i].text);
            all_ok(zero_trainer_digest(t, digest[1]));
            assert_string_equal(digest[0], digest[1]);
            zero_trainer_close(&t);
            zero_comm_close(&comm);
            zero_model_destroy(&model);
        }
}

/* ---- masks ---- */

enum { MASK_SEED = 3, MASK_NUMBER = 1 };

static zero_mask mask_of(const zero_call *c)
{
    return (zero_mask){.call = c, .seed = MASK_SEED, .number = MASK_NUMBER, .p = 0.25f};
}

static void drop_forward(const zero_unit *u, const zero_call *c)
{
    const zero_mask mask = mask_of(c);
    tanh_forward(u, c);
    zero_mask_apply(&mask, c->batch->T * NARROW, c->out, c->out);
}

static void drop_backward(const zero_unit *u, const zero_call *c)
{
    const zero_mask mask = mask_of(c);
    zero_mask_apply(&mask, c->batch->T * NARROW, c->stream, c->stream);
    tanh_backward(u, c);
}

static void describe_dropping(zero_model *model)
{
    tied_model tied;
    tied_init(&tied);
    tied.units[1].forward = drop_forward, tied.units[1].backward = drop_backward;
    all_ok(zero_model_describe(&tied.tables, model));
}

/* Also with the forward pass repeated, and by finite differences. */
TEST(masks_of_a_units_own_are_the_same_in_all_stages)
{
    zero_model model, plain;
    zero_step_result out;
    char first[33], digest[33];
    double losses[2];
    describe_dropping(&model);
    describe_tied(&plain);
    all_ok(zero_unit_check(&model, 1, &tied_source, NULL, NULL));
    for (int stage = 0; stage <= 3; stage++) {
        zero_trainer_spec spec = tied_spec(&model);
        spec.stage = stage;
        spec.recompute = stage % 2 == 1;
        zero_comm *comm = open_world();
        zero_trainer *t = open_trainer(&spec, comm);
        all_ok(zero_trainer_evaluate(t, &tied_source, &losses[0]));
        for (int64_t step = 0; step < 3; step++) take_step(t, step, &out);
        all_ok(zero_trainer_digest(t, stage == 0 ? first : digest));
        if (stage > 0) assert_string_equal(first, digest);
        zero_trainer_close(&t);
        spec.model = &plain; /* evaluating drops nothing */
        t = open_trainer(&spec, comm);
        all_ok(zero_trainer_evaluate(t, &tied_source, &losses[1]));
        assert_true(losses[0] == losses[1]);
        zero_trainer_close(&t);
        zero_comm_close(&comm);
    }
    zero_model_destroy(&model);
    zero_model_destroy(&plain);
}

TEST(random_numbers_depend_on_their_place_alone)
{
    const zero_random stream = {.seed = 1, .step = 2, .sample = 3, .number = 4};
    zero_random other = stream;
    float all[1000], part[10], sum = 0.0f;
    zero_random_uniform(&stream, 0, 1000, all);
    zero_random_uniform(&stream, 333, 10, part);
    assert_memory_equal(all + 333, part, sizeof part);
    for (int i = 0; i < 1000; i++) sum += all[i];
    assert_true(sum > 450.0f && sum < 550.0f);
    other.sample = 4;
    zero_random_uniform(&other, 333, 10, part);
    assert_memory_not_equal(all + 333, part, sizeof part);
    zero_random_normal(&stream, 0, 1000, all);
    zero_random_normal(&stream, 500, 10, part);
    assert_memory_equal(all + 500, part, sizeof part);
}
