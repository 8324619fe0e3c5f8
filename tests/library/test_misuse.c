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

typedef zero_status misuse(program *p, int i);

static void refuse_all(const char *what, misuse *calls, int n, const char *const *expected)
{
    program p;
    zero_step_result out;
    char digest[2][33];
    open_all(&p);
    for (int i = 0; i < n; i++) assert_refusal(what, i, calls(&p, i), expected[i]);
    assert_true(p.trainer && p.optimizer && p.comm && p.other);
    for (int64_t step = 0; step < 3; step++) take_step(p.trainer, step, &out);
    all_ok(zero_trainer_digest(p.trainer, digest[0]));
    close_all(&p);

    open_all(&p); /* as if nothing had happened */
    for (int64_t step = 0; step < 3; step++) take_step(p.trainer, step, &out);
    all_ok(zero_trainer_digest(p.trainer, digest[1]));
    assert_string_equal(digest[0], digest[1]);
    close_all(&p);
    if (test_rank == 0) printf("%d misuses: %s\n", n, what);
}

/* ---- NULL ---- */

static zero_status trainer_null(program *p, int i)
{
    zero_trainer *t = NULL;
    zero_step_result out;
    zero_trainer_spec no_model = p->spec;
    const zero_source none = {0};
    double loss;
    no_model.model = NULL;
    switch (i) {
    case 0: return zero_comm_open(MPI_COMM_WORLD, 0.0, NULL);
    case 1: return zero_trainer_open(NULL, p->comm, &t);
    case 2: return zero_trainer_open(&p->spec, NULL, &t);
    case 3: return zero_trainer_open(&p->spec, p->comm, NULL);
    case 4: return zero_trainer_open(&no_model, p->comm, &t);
    case 5: return zero_trainer_step(NULL, &tied_source, &tied_input, &out);
    case 6: return zero_trainer_step(p->trainer, NULL, &tied_input, &out);
    case 7: return zero_trainer_step(p->trainer, &none, &tied_input, &out);
    case 8: return zero_trainer_step(p->trainer, &tied_source, NULL, &out);
    case 9: return zero_trainer_step(p->trainer, &tied_source, &tied_input, NULL);
    case 10: return zero_trainer_compute(p->trainer, NULL, 0, &out);
    case 11: return zero_trainer_compute(p->trainer, &tied_source, 0, NULL);
    case 12: return zero_trainer_evaluate(p->trainer, NULL, &loss);
    case 13: return zero_trainer_evaluate(p->trainer, &none, &loss);
    default: return zero_trainer_evaluate(p->trainer, &tied_source, NULL);
    }
}

static const char *const trainer_null_texts[] = {
    "place for the group", "without a spec",
    "group is NULL",       "place for the trainer",
    "without a model",     "trainer is NULL",
    "source is NULL",      "without its function sample",
    "input is NULL",       "result is NULL",
    "source is NULL",      "result is NULL",
    "source is NULL",      "without its function sample",
    "result is NULL",
};

static zero_status state_null(program *p, int i)
{
    int64_t step;
    switch (i) {
    case 0: return zero_trainer_gradient(p->trainer, NULL, p->values);
    case 1: return zero_trainer_gradient(p->trainer, "A", NULL);
    case 2: return zero_trainer_save(p->trainer, NULL, 0);
    case 3: return zero_trainer_resume(p->trainer, NULL, &step);
    case 4: return zero_trainer_resume(p->trainer, "/nowhere", NULL);
    case 5: return zero_trainer_digest(p->trainer, NULL);
    case 6: return zero_trainer_read(p->trainer, NULL, p->values);
    case 7: return zero_trainer_read(p->trainer, "A", NULL);
    case 8: return zero_trainer_write(p->trainer, "A", 0, 1, NULL);
    case 9: return zero_trainer_write(p->trainer, NULL, 0, 1, p->values);
    case 10: return zero_trainer_count(p->trainer, NULL);
    case 11: return zero_trainer_count(NULL, NULL);
    default: return zero_trainer_digest(NULL, NULL);
    }
}

static const char *const state_null_texts[] = {
    "name is NULL",    "values is NULL", "directory is NULL", "directory is NULL",
    "step is NULL",    "digest is NULL", "name is NULL",      "values is NULL",
    "values is NULL",  "name is NULL",   "ledger is NULL",    "trainer is NULL",
    "trainer is NULL",
};

static zero_status other_null(program *p, int i)
{
    zero_optimizer *o = NULL;
    zero_optimizer_result out;
    zero_model m = {0};
    zero_gpt2_shape shape = {.layers = 1, .hidden = 4, .heads = 1, .seq = 2, .vocab = 3};
    tied_model tied;
    tied_init(&tied);
    switch (i) {
    case 0: return zero_optimizer_open(NULL, p->other, p->params, &o);
    case 1: return zero_optimizer_open(&p->small, NULL, p->params, &o);
    case 2: return zero_optimizer_open(&p->small, p->other, NULL, &o);
    case 3: return zero_optimizer_open(&p->small, p->other, p->params, NULL);
    case 4: return zero_optimizer_step(NULL, p->params, p->grads, &plain, &out);
    case 5: return zero_optimizer_step(p->optimizer, NULL, p->grads, &plain, &out);
    case 6: return zero_optimizer_step(p->optimizer, p->params, NULL, &plain, &out);
    case 7: return zero_optimizer_step(p->optimizer, p->params, p->grads, NULL, &out);
    case 8: return zero_optimizer_step(p->optimizer, p->params, p->grads, &plain, NULL);
    case 9: return zero_model_describe(NULL, &m);
    case 10: return zero_model_describe(&tied.tables, NULL);
    case 11: return zero_gpt2_describe(NULL, &m);
    case 12: return zero_gpt2_describe(&shape, NULL);
    case 13: return zero_gpt2_check(NULL);
    case 14: return zero_gpt2_preset(NULL, &shape);
    case 15: return zero_gpt2_preset("tiny", NULL);
    case 16: return zero_unit_check(NULL, 0, &tied_source, NULL, NULL);
    default: return zero_unit_check(&p->model, 0, NULL, NULL, NULL);
    }
}

static const char *const other_null_texts[] = {
    "with NULL",           "group is NULL",       "params is NULL",     "with NULL",
    "optimizer is NULL",   "array of parameters", "array of gradients", "input is NULL",
    "result is NULL",      "with NULL",           "with NULL",          "shape is NULL",
    "place for the model", "shape is NULL",       "with NULL",          "with NULL",
    "without a model",     "without a source",
};

TEST(null_gives_a_status_and_a_message)
{
    refuse_all("NULL to a trainer", trainer_null, COUNT(trainer_null_texts),
               trainer_null_texts);
    refuse_all("NULL to its state", state_null, COUNT(state_null_texts), state_null_texts);
    refuse_all("NULL to the rest", other_null, COUNT(other_null_texts), other_null_texts);
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

static zero_status bad_spec(program *p, int i)
{
    zero_trainer *t = NULL;
    zero_trainer_spec s = p->spec;
    zero_model half = p->model;
    switch (i) {
    case 0: s.seed = -1; break;
    case 1: s.bucket = 63; break;
    case 2: s.bucket = -1; break;
    case 3: s.bucket = (INT64_C(1) << 28) + 1; break;
    case 4: s.micro_batch = INT64_C(1) << 40; break;
    case 5: s.micro_batch = INT64_MIN; break;
    case 6: s.stage = 4; break;
    case 7: s.stage = -1; break;
    case 8: s.type = (zero_type)-1; break;
    case 9: s.accumulation = 1 << 20; break;
    case 10: s.eval_batches = -1; break;
    case 11: s.prefetch = -1; break;
    case 12: s.seq = INT64_MAX; break;
    case 13: s.threads = -1; break;
    case 14: s.threads = 4097; break;
    case 15: half.tensors = NULL, s.model = &half; break;
    default: half.n_units = 0, s.model = &half; break;
    }
    return zero_trainer_open(&s, p->comm, &t);
}

static const char *const bad_spec_texts[] = {
    "seed -1: expected 0 to 9223372036854775807",
    "bucket 63: expected 64 to 268435456",
    "bucket -1: expected 64 to",
    "bucket 268435457: expected 64 to",
    "at most 2^24",
    "at least 1",
    "stage 4",
    "stage -1",
    "type -1",
    "accumulation 1048576",
    "eval_batches -1",
    "prefetch -1",
    "the model takes",
    "threads -1: expected 0 to 4096",
    "threads 4097",
    "without a model",
    "without a model",
};

static zero_status bad_number(program *p, int i)
{
    zero_step_result out;
    zero_step_input in = tied_input;
    const float nan[] = {0.0f, NAN};
    switch (i) {
    case 0: in.step = -1; break;
    case 1: in.step = INT64_C(1) << 62; break;
    case 2: in.lr = NAN; break;
    case 3: in.lr = INFINITY; break;
    case 4: in.beta1 = 1.0; break;
    case 5: in.eps = 0.0; break;
    case 6: return zero_trainer_compute(p->trainer, &tied_source, -7, &out);
    case 7: return zero_trainer_save(p->trainer, "/nowhere", -1);
    case 8: return zero_trainer_write(p->trainer, "A", 0, WIDE * NARROW + 1, p->values);
    case 9: return zero_trainer_write(p->trainer, "A", 5, 4, p->values);
    case 10: return zero_trainer_write(p->trainer, "A", -1, 4, p->values);
    case 11: return zero_trainer_write(p->trainer, "gain", 0, 2, nan);
    case 12: return zero_trainer_write(p->trainer, "B", 0, 1, p->values);
    default: return zero_trainer_gradient(p->trainer, "A", p->values);
    }
    return zero_trainer_step(p->trainer, &tied_source, &in, &out);
}

static const char *const bad_number_texts[] = {
    "step -1: expected 0 to",
    "step 4611686018427387904: expected 0 to",
    "lr nan",
    "lr inf",
    "beta1 1",
    "eps 0",
    "step -7",
    "step -1",
    "range within [0, 120)",
    "[5, 4)",
    "[-1, 4)",
    "values[1]",
    "no tensor is called 'B'",
    "no gradient", /* before the first step */
};

static zero_status bad_optimizer(program *p, int i)
{
    zero_optimizer *o = NULL;
    zero_optimizer_result out;
    zero_optimizer_spec s = p->small;
    zero_optimizer_input in = plain;
    const zero_range beyond = {WEIGHTS - 1, WEIGHTS + 1};
    switch (i) {
    case 0: s.n_params = 0; break;
    case 1: s.updates = -1; break;
    case 2: s.updates = INT64_MAX; break;
    case 3: s.no_decay = &beyond, s.n_no_decay = 1; break;
    case 4: s.n_no_decay = 3; break;
    case 5:
        return zero_optimizer_step(p->optimizer, p->params, p->params + 1, &plain, &out);
    case 6:
        in.divisor = 0.0;
        return zero_optimizer_step(p->optimizer, p->params, p->grads, &in, &out);
    default:
        in.lr = -1.0;
        return zero_optimizer_step(p->optimizer, p->params, p->grads, &in, &out);
    }
    return zero_optimizer_open(&s, p->other, p->params, &o);
}

static const char *const bad_optimizer_texts[] = {
    "n_params 0",    "updates -1", "expected 0 to 2^62", "no_decay[0]",
    "without spans", "overlap",    "divisor 0",          "lr -1",
};

/* Names and shapes. */
static zero_status bad_model(program *p, int i)
{
    zero_model m = {0};
    zero_gpt2_shape shape = {.layers = 1, .hidden = 4, .heads = 1, .seq = 2, .vocab = 3};
    zero_unit_check_spec how = {.tolerance = -1.0};
    tied_model tied;
    tied_init(&tied);
    switch (i) {
    case 0: strcpy(tied.tensors[0].name, "a\"b"); break;
    case 1: strcpy(tied.tensors[0].name, "a'b"); break;
    case 2: strcpy(tied.tensors[1].name, "a\nb"); break;
    case 3: strcpy(tied.units[1].name, "\033[2J"); break;
    case 4: strcpy(tied.units[1].name, "\xc2\x9b"); break;
    case 5: tied.groups[1] = "\xff\xfe"; break;
    case 6: tied.groups[0] = "back\\slash"; break;
    case 7: shape.dropout = 1.0f; return zero_gpt2_describe(&shape, &m);
    case 8: shape.seed = -1; return zero_gpt2_describe(&shape, &m);
    case 9: shape.layers = INT64_MAX; return zero_gpt2_describe(&shape, &m);
    case 10: return zero_unit_check(&p->model, 3, &tied_source, NULL, NULL);
    default: return zero_unit_check(&p->model, 0, &tied_source, &how, NULL);
    }
    return zero_model_describe(&tied.tables, &m);
}

static const char *const bad_model_texts[] = {
    "without quotes",   "without quotes",    "without quotes",          "unit 1 is called",
    "unit 1 is called", "group 1 is called", "group 0 is called",       "--dropout 1",
    "--seed -1",        "--layers",          "unit 3: expected 0 to 2", "tolerance -1",
};

TEST(numbers_out_of_range_are_refused_with_the_range)
{
    refuse_all("specs", bad_spec, COUNT(bad_spec_texts), bad_spec_texts);
    refuse_all("numbers of steps", bad_number, COUNT(bad_number_texts), bad_number_texts);
    refuse_all("optimizers", bad_optimizer, COUNT(bad_optimizer_texts),
               bad_optimizer_texts);
    refuse_all("models", bad_model, COUNT(bad_model_texts), bad_model_texts);
}
