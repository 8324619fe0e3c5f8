/* Programs that call the library wrongly, on all ranks alike: a status and a message for each, and
 * afterwards everything works on. */
#include "support/library_test.h"

#include <zero/check.h>
#include <zero/gpt2.h>

enum { WEIGHTS = 100 };

/* Everything that a program can have open. */
typedef struct {
    zero_comm *comm, *other;
    zero_model model;
    zero_trainer *trainer;
    zero_trainer_spec spec;
    zero_optimizer *optimizer;
    zero_optimizer_spec small;
    float params[WEIGHTS], grads[WEIGHTS], values[WIDE * NARROW];
} program;

static const zero_optimizer_input plain = {
    .lr = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .divisor = 1.0};

static void open_all(program *p)
{
    *p = (program){.small = {.n_params = WEIGHTS}};
    p->comm = open_world();
    p->other = open_world();
    describe_tied(&p->model);
    p->spec = tied_spec(&p->model);
    p->trainer = open_trainer(&p->spec, p->comm);
    all_ok(zero_optimizer_open(&p->small, p->other, p->params, &p->optimizer));
}

static void close_all(program *p)
{
    zero_trainer_close(&p->trainer);
    zero_optimizer_close(&p->optimizer);
    zero_model_destroy(&p->model);
    zero_comm_close(&p->other);
    zero_comm_close(&p->comm);
}

/* Afterwards the trainer trains as if nothing had happened. */
static void refuse_all(void (*misuse)(program *p))
{
    program p;
    zero_step_result out;
    char digest[2][33];
    for (int i = 0; i < 2; i++) {
        open_all(&p);
        if (i == 0) misuse(&p);
        assert_true(p.trainer && p.optimizer && p.comm && p.other);
        for (int64_t step = 0; step < 3; step++) take_step(p.trainer, step, &out);
        all_ok(zero_trainer_digest(p.trainer, digest[i]));
        close_all(&p);
    }
    assert_string_equal(digest[0], digest[1]);
}

/* ---- NULL ---- */

static void trainer_null(program *p)
{
    zero_trainer *t = NULL;
    zero_step_result out;
    zero_trainer_spec no_model = p->spec;
    const zero_source none = {0};
    double loss;
    no_model.model = NULL;
    refused(zero_comm_open(MPI_COMM_WORLD, 0.0, NULL), "place for the group");
    refused(zero_trainer_open(NULL, p->comm, &t), "without a spec");
    refused(zero_trainer_open(&p->spec, NULL, &t), "group is NULL");
    refused(zero_trainer_open(&p->spec, p->comm, NULL), "place for the trainer");
    refused(zero_trainer_open(&no_model, p->comm, &t), "without a model");
    refused(zero_trainer_step(NULL, &tied_source, &tied_input, &out), "trainer is NULL");
    refused(zero_trainer_step(p->trainer, NULL, &tied_input, &out), "source is NULL");
    refused(zero_trainer_step(p->trainer, &none, &tied_input, &out),
            "without its function sample");
    refused(zero_trainer_step(p->trainer, &tied_source, NULL, &out), "input is NULL");
    refused(zero_trainer_step(p->trainer, &tied_source, &tied_input, NULL),
            "result is NULL");
    refused(zero_trainer_compute(p->trainer, NULL, 0, &out), "source is NULL");
    refused(zero_trainer_compute(p->trainer, &tied_source, 0, NULL), "result is NULL");
    refused(zero_trainer_evaluate(p->trainer, NULL, &loss), "source is NULL");
    refused(zero_trainer_evaluate(p->trainer, &none, &loss), "without its function sample");
    refused(zero_trainer_evaluate(p->trainer, &tied_source, NULL), "result is NULL");
}

static void state_null(program *p)
{
    int64_t step;
    refused(zero_trainer_gradient(p->trainer, NULL, p->values), "name is NULL");
    refused(zero_trainer_gradient(p->trainer, "A", NULL), "values is NULL");
    refused(zero_trainer_save(p->trainer, NULL, 0), "directory is NULL");
    refused(zero_trainer_resume(p->trainer, NULL, &step), "directory is NULL");
    refused(zero_trainer_resume(p->trainer, "/nowhere", NULL), "step is NULL");
    refused(zero_trainer_digest(p->trainer, NULL), "digest is NULL");
    refused(zero_trainer_read(p->trainer, NULL, p->values), "name is NULL");
    refused(zero_trainer_read(p->trainer, "A", NULL), "values is NULL");
    refused(zero_trainer_write(p->trainer, "A", 0, 1, NULL), "values is NULL");
    refused(zero_trainer_write(p->trainer, NULL, 0, 1, p->values), "name is NULL");
    refused(zero_trainer_count(p->trainer, NULL), "ledger is NULL");
    refused(zero_trainer_count(NULL, NULL), "trainer is NULL");
    refused(zero_trainer_digest(NULL, NULL), "trainer is NULL");
}

static void other_null(program *p)
{
    zero_optimizer *o = NULL;
    zero_optimizer_result out;
    zero_model m = {0};
    zero_gpt2_shape shape = {.layers = 1, .hidden = 4, .heads = 1, .seq = 2, .vocab = 3};
    tied_model tied;
    tied_init(&tied);
    refused(zero_optimizer_open(NULL, p->other, p->params, &o), "with NULL");
    refused(zero_optimizer_open(&p->small, NULL, p->params, &o), "group is NULL");
    refused(zero_optimizer_open(&p->small, p->other, NULL, &o), "params is NULL");
    refused(zero_optimizer_open(&p->small, p->other, p->params, NULL), "with NULL");
    refused(zero_optimizer_step(NULL, p->params, p->grads, &plain, &out),
            "optimizer is NULL");
    refused(zero_optimizer_step(p->optimizer, NULL, p->grads, &plain, &out),
            "array of parameters");
    refused(zero_optimizer_step(p->optimizer, p->params, NULL, &plain, &out),
            "array of gradients");
    refused(zero_optimizer_step(p->optimizer, p->params, p->grads, NULL, &out),
            "input is NULL");
    refused(zero_optimizer_step(p->optimizer, p->params, p->grads, &plain, NULL),
            "result is NULL");
    refused(zero_model_describe(NULL, &m), "with NULL");
    refused(zero_model_describe(&tied.tables, NULL), "with NULL");
    refused(zero_gpt2_describe(NULL, &m), "shape is NULL");
    refused(zero_gpt2_describe(&shape, NULL), "place for the model");
    refused(zero_gpt2_check(NULL), "shape is NULL");
    refused(zero_gpt2_preset(NULL, &shape), "with NULL");
    refused(zero_gpt2_preset("tiny", NULL), "with NULL");
    refused(zero_unit_check(NULL, 0, &tied_source, NULL, NULL), "without a model");
    refused(zero_unit_check(&p->model, 0, NULL, NULL, NULL), "without a source");
}

TEST(null_gives_a_status_and_a_message)
{
    refuse_all(trainer_null);
    refuse_all(state_null);
    refuse_all(other_null);
}

TEST(what_has_no_status_answers_null_as_documented)
{
    zero_optimizer_part parts[2];
    zero_optimizer_parts(NULL, parts);
    assert_true(!parts[0].momentum && parts[1].span.end == 0);
    zero_optimizer_parts(NULL, NULL);
    assert_true(zero_optimizer_count(NULL) == -1 && zero_gpt2_count(NULL) == 0);
    assert_true(zero_comm_rank(NULL) == -1 && zero_comm_size(NULL) == 0);
    assert_true(zero_gpt2_presets(NULL) != NULL);
    assert_true(zero_type_size((zero_type)7) == 0);
    assert_string_equal(zero_type_name((zero_type)-1), "unknown");
    zero_convert(ZERO_FP32, ZERO_BF16, 5, NULL, NULL);
    zero_model_destroy(NULL);
    zero_trainer_close(NULL);
    zero_optimizer_close(NULL);
    zero_comm_close(NULL);
    zero_poll(NULL);
    zero_multiply(NULL, NULL);
    zero_linear_forward(NULL, NULL, NULL);
    zero_linear_backward(NULL, NULL, NULL, NULL);
    zero_layer_norm_forward(NULL, NULL, NULL, NULL);
    zero_layer_norm_backward(NULL, NULL, NULL, NULL, NULL);
    zero_mask_apply(NULL, 1, NULL, NULL);
    assert_true(zero_weight_floats(NULL, NULL, 0, 0, NULL) == NULL);
    zero_random_uniform(NULL, 0, 1, NULL);
    zero_random_normal(NULL, 0, 1, NULL);
}

/* ---- sizes and numbers ---- */

static void bad_specs(program *p)
{
    zero_trainer *t = NULL;
    zero_trainer_spec s;
    zero_model half = p->model;
#define bad(change, text) \
    s = p->spec, change; \
    refused(zero_trainer_open(&s, p->comm, &t), text)
    bad(s.seed = -1, "seed -1: expected 0 to 9223372036854775807");
    bad(s.bucket = 63, "bucket 63: expected 64 to 268435456");
    bad(s.bucket = -1, "bucket -1: expected 64 to");
    bad(s.bucket = (INT64_C(1) << 28) + 1, "bucket 268435457: expected 64 to");
    bad(s.micro_batch = INT64_C(1) << 40, "at most 2^24");
    bad(s.micro_batch = INT64_MIN, "at least 1");
    bad(s.stage = 4, "stage 4");
    bad(s.stage = -1, "stage -1");
    bad(s.type = (zero_type)-1, "type -1");
    bad(s.accumulation = 1 << 20, "accumulation 1048576");
    bad(s.eval_batches = -1, "eval_batches -1");
    bad(s.prefetch = -1, "prefetch -1");
    bad(s.seq = INT64_MAX, "the model takes");
    bad(s.threads = -1, "threads -1: expected 0 to 4096");
    bad(s.threads = 4097, "threads 4097");
    bad(s.seq = 4, "sequences of 4");
    bad(s.partition = "slices", "'slices'");
    bad(s.collectives = "nccl", "'nccl'");
    bad(s.backend = "gpu", "'gpu'");
    bad(s.bits = "equal", "auto, portable or fastest");
    bad((half.tensors = NULL, s.model = &half), "without a model");
    bad((half = p->model, half.n_units = 0, s.model = &half), "without a model");
#undef bad
}

static void bad_numbers(program *p)
{
    zero_step_result out;
    zero_step_input in;
    const float nan[] = {0.0f, NAN};
#define bad(change, text) \
    in = tied_input, in.change; \
    refused(zero_trainer_step(p->trainer, &tied_source, &in, &out), text)
    refused(zero_trainer_gradient(p->trainer, "A", p->values), "no gradient");
    bad(step = -1, "step -1: expected 0 to");
    bad(step = INT64_C(1) << 62, "step 4611686018427387904: expected 0 to");
    bad(lr = NAN, "lr nan");
    bad(lr = INFINITY, "lr inf");
    bad(beta1 = 1.0, "beta1 1");
    bad(eps = 0.0, "eps 0");
    bad(beta2 = 1.0, "beta2 1");
    bad(clip = -1.0, "clip -1");
    refused(zero_trainer_compute(p->trainer, &tied_source, -7, &out), "step -7");
    refused(zero_trainer_save(p->trainer, "/nowhere", -1), "step -1");
    refused(zero_trainer_write(p->trainer, "A", 0, WIDE * NARROW + 1, p->values),
            "range within [0, 120)");
    refused(zero_trainer_write(p->trainer, "A", 5, 4, p->values), "[5, 4)");
    refused(zero_trainer_write(p->trainer, "A", -1, 4, p->values), "[-1, 4)");
    refused(zero_trainer_write(p->trainer, "gain", 0, 2, nan), "values[1]");
    refused(zero_trainer_write(p->trainer, "B", 0, 1, p->values),
            "no tensor is called 'B'");
#undef bad
}

static void bad_optimizers(program *p)
{
    zero_optimizer *o = NULL;
    zero_optimizer_result out;
    zero_optimizer_spec s;
    zero_optimizer_input in;
    const zero_range beyond = {WEIGHTS - 1, WEIGHTS + 1};
#define bad(change, text) \
    s = p->small, change; \
    refused(zero_optimizer_open(&s, p->other, p->params, &o), text)
    bad(s.n_params = 0, "n_params 0");
    bad(s.updates = -1, "updates -1");
    bad(s.updates = INT64_MAX, "expected 0 to 2^62");
    bad((s.no_decay = &beyond, s.n_no_decay = 1), "no_decay[0]");
    bad(s.n_no_decay = 3, "without spans");
#undef bad
#define bad(change, text) \
    in = plain, in.change; \
    refused(zero_optimizer_step(p->optimizer, p->params, p->grads, &in, &out), text)
    refused(zero_optimizer_step(p->optimizer, p->params, p->params + 1, &plain, &out),
            "overlap");
    bad(divisor = 0.0, "divisor 0");
    bad(lr = -1.0, "lr -1");
#undef bad
}

/* Names and shapes. */
static void bad_models(program *p)
{
    zero_model m = {0};
    const zero_gpt2_shape small = {
        .layers = 1, .hidden = 4, .heads = 1, .seq = 2, .vocab = 3};
    zero_gpt2_shape shape;
    zero_unit_check_spec how = {.tolerance = -1.0};
    tied_model tied;
#define bad(change, text) \
    tied_init(&tied), change; \
    refused(zero_model_describe(&tied.tables, &m), text)
    bad(strcpy(tied.tensors[0].name, "a\"b"), "without quotes");
    bad(strcpy(tied.tensors[0].name, "a'b"), "without quotes");
    bad(strcpy(tied.tensors[1].name, "a\nb"), "without quotes");
    bad(strcpy(tied.units[1].name, "\033[2J"), "unit 1 is called");
    bad(strcpy(tied.units[1].name, "\xc2\x9b"), "unit 1 is called");
    bad(tied.groups[1] = "\xff\xfe", "group 1 is called");
    bad(tied.groups[0] = "back\\slash", "group 0 is called");
#undef bad
#define bad(change, text) \
    shape = small, shape.change; \
    refused(zero_gpt2_describe(&shape, &m), text)
    bad(dropout = 1.0f, "--dropout 1");
    bad(seed = -1, "--seed -1");
    bad(layers = INT64_MAX, "--layers");
#undef bad
    refused(zero_unit_check(&p->model, 3, &tied_source, NULL, NULL),
            "unit 3: expected 0 to 2");
    refused(zero_unit_check(&p->model, 0, &tied_source, &how, NULL), "tolerance -1");
}

TEST(numbers_out_of_range_are_refused_with_the_range)
{
    refuse_all(bad_specs);
    refuse_all(bad_numbers);
    refuse_all(bad_optimizers);
    refuse_all(bad_models);
}
