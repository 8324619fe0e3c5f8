/* Programs that call the library in a wrong order, or differently on one rank: the same status and
 * message on all ranks, no signal, and nobody waits. */
#define TEST_HAS_MAIN
#include "support/library_test.h"

#include <unistd.h>

#include <zero/check.h>
#include <zero/gpt2.h>

enum { WEIGHTS = 300 };

static const zero_optimizer_input plain = {
    .lr = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .divisor = 1.0};

/* The last rank does it differently. */
static bool is_odd(void)
{
    return test_size > 1 && test_rank == test_size - 1;
}

/* ---- order ---- */

static void before_mpi_is_up(void)
{
    zero_comm *comm = NULL;
    zero_status st = zero_comm_open(MPI_COMM_WORLD, 0.0, &comm);
    if (st != ZERO_ERR_INVALID || !strstr(zero_last_error(), "MPI_Init") || comm) abort();
    zero_comm_close(&comm);
}

static void check_closed(zero_trainer *t, zero_optimizer *o, const zero_trainer_spec *spec,
                         zero_comm *comm)
{
    const char *const closed[] = {"trainer is NULL", "trainer is NULL", "optimizer is NULL",
                                  "group is NULL"};
    zero_step_result out;
    char digest[33];
    float params[1], grads[1];
    zero_optimizer_result result;
    refused(zero_trainer_step(t, &tied_source, &tied_input, &out), closed[0]);
    refused(zero_trainer_digest(t, digest), closed[1]);
    refused(zero_optimizer_step(o, params, grads, &plain, &result), closed[2]);
    refused(zero_trainer_open(spec, comm, &t), closed[3]);
    zero_trainer_close(&t);
    zero_optimizer_close(&o);
    zero_comm_close(&comm);
}

TEST(what_is_closed_says_so)
{
    zero_model model;
    float params[WEIGHTS] = {0};
    const zero_optimizer_spec small = {.n_params = WEIGHTS};
    zero_optimizer *o = NULL;
    describe_tied(&model);
    zero_trainer_spec spec = tied_spec(&model);
    zero_comm *comm = open_world();
    zero_trainer *t = open_trainer(&spec, comm);
    all_ok(zero_optimizer_open(&small, comm, params, &o));
    zero_optimizer_close(&o);
    zero_trainer_close(&t);
    zero_comm_close(&comm);
    assert_true(!o && !t && !comm);
    check_closed(t, o, &spec, comm);
    zero_model_destroy(&model);
    comm = open_world();
    refused(zero_trainer_open(&spec, comm, &t), "without a model");
    refused(zero_unit_check(&model, 0, &tied_source, NULL, NULL), "without a model");
    zero_comm_close(&comm);
}

/* The group is closed first, and the model destroyed, while a step's gathers are in flight. */
TEST(what_was_closed_too_early_says_so)
{
    const char *const closed = "group is closed";
    const char *const destroyed = "destroyed";
    for (int stage = 0; stage <= 3; stage++) {
        zero_model model;
        zero_step_result out;
        double loss;
        describe_tied(&model);
        zero_trainer_spec spec = tied_spec(&model);
        spec.stage = stage;
        zero_comm *comms[2] = {open_world(), open_world()}, *early = comms[0];
        zero_trainer *t = open_trainer(&spec, comms[0]), *u = open_trainer(&spec, comms[1]);
        take_step(t, 0, &out);
        take_step(u, 0, &out);
        zero_comm_close(&early);
        refused(zero_trainer_evaluate(t, &tied_source, &loss), closed);
        zero_model_destroy(&model);
        refused(zero_trainer_evaluate(u, &tied_source, &loss), destroyed);
        refused(zero_trainer_step(u, &tied_source, &tied_input, &out), destroyed);
        zero_trainer_close(&t);
        zero_trainer_close(&u);
        zero_comm_close(&comms[1]);
    }
}

TEST(a_gradient_needs_a_step_that_succeeded)
{
    const char *const none = "no gradient";
    zero_model model;
    zero_step_result out;
    float values[WIDE * NARROW];
    describe_tied(&model);
    zero_trainer_spec spec = tied_spec(&model);
    zero_comm *comm = open_world();
    zero_trainer *t = open_trainer(&spec, comm);
    refused(zero_trainer_gradient(t, "A", values), none);
    take_step(t, 0, &out);
    all_ok(zero_trainer_gradient(t, "A", values));
    assert_all(zero_trainer_step(t, NULL, NULL, NULL) == ZERO_ERR_INVALID);
    refused(zero_trainer_save(t, "/dev/null", 3), "/dev/null");
    zero_trainer_close(&t);
    zero_comm_close(&comm);
    zero_model_destroy(&model);
}

/* ---- ranks that differ: steps ---- */

static zero_status odd_step(zero_trainer *t, int i)
{
    zero_step_result out;
    zero_step_input in = tied_input;
    const zero_source none = {0};
    double loss;
    if (is_odd() && i == 0) in.lr = 3e-2;
    if (is_odd() && i == 1) in.step = 5;
    if (is_odd() && i == 2) in.clip = 0.5;
    if (is_odd() && i == 3) in.weight_decay = 0.0;
    if (is_odd() && i == 4) in.lr = NAN;
    if (is_odd() && i == 5) in.step = -1;
    switch (i) {
    case 6: return zero_trainer_step(t, is_odd() ? NULL : &tied_source, &in, &out);
    case 7: return zero_trainer_step(t, is_odd() ? &none : &tied_source, &in, &out);
    case 8: return zero_trainer_step(t, &tied_source, is_odd() ? NULL : &in, &out);
    case 9: return zero_trainer_step(t, &tied_source, &in, is_odd() ? NULL : &out);
    case 10: return zero_trainer_compute(t, &tied_source, is_odd() ? 4 : 3, &out);
    case 11: return zero_trainer_evaluate(t, is_odd() ? NULL : &tied_source, &loss);
    case 12: return zero_trainer_evaluate(t, &tied_source, is_odd() ? NULL : &loss);
    default: return zero_trainer_step(t, &tied_source, &in, &out);
    }
}

static const char *const odd_step_texts[] = {
    "the step's lr is 0.03 here and 0.02 on rank 0",
    "the step's step is 5 here and 0 on rank 0",
    "the step's clip is 0.5 here",
    "the step's weight_decay is 0 here",
    "lr nan",
    "step -1: expected 0 to",
    "source is NULL",
    "function sample",
    "input is NULL",
    "result is NULL",
    "the step's step is 4 here and 3 on rank 0",
    "source is NULL",
    "result is NULL",
};

static zero_status odd_state(zero_trainer *t, int i)
{
    float values[WIDE * NARROW] = {0};
    const char *name = is_odd() ? "gain" : "A";
    zero_trainer_ledger ledger;
    char hex[33];
    values[2] = is_odd() ? 1.0f : 2.0f;
    switch (i) {
    case 0: return zero_trainer_read(t, name, values);
    case 1: return zero_trainer_gradient(t, is_odd() ? "A" : NULL, values);
    case 2: return zero_trainer_write(t, name, 0, 1, values);
    case 3: return zero_trainer_write(t, "A", 0, 5, values);
    case 4: return zero_trainer_write(t, "A", 0, is_odd() ? 1 : 2, values);
    case 5: return zero_trainer_write(t, "A", 0, 1, is_odd() ? NULL : values);
    case 6: return zero_trainer_save(t, "/nowhere", is_odd() ? 1 : 2);
    case 7: return zero_trainer_save(t, is_odd() ? NULL : "/nowhere", 1);
    case 8: return zero_trainer_count(t, is_odd() ? NULL : &ledger);
    default: return zero_trainer_digest(t, is_odd() ? NULL : hex);
    }
}

static const char *const odd_state_texts[] = {
    "the call's tensor is gain here and A on rank 0",
    "name is NULL",
    "the call's tensor is gain here",
    "the call's values is",
    "the call's end is 1 here and 2 on rank 0",
    "values is NULL",
    "the save's step is 1 here and 2 on rank 0",
    "directory is NULL",
    "ledger is NULL",
    "digest is NULL",
};

/* In all stages; afterwards the trainer trains as if nothing had happened. */
TEST(a_rank_that_differs_in_a_call_is_named)
{
    if (test_size == 1) return;
    char digest[4][33];
    for (int stage = 0; stage <= 3; stage++) {
        zero_model model;
        zero_step_result out;
        describe_tied(&model);
        zero_trainer_spec spec = tied_spec(&model);
        spec.stage = stage;
        zero_comm *comm = open_world();
        zero_trainer *t = open_trainer(&spec, comm);
        for (int i = 0; i < (int)COUNT(odd_step_texts); i++)
            refused(odd_step(t, i), odd_step_texts[i]);
        for (int i = 0; i < (int)COUNT(odd_state_texts); i++)
            refused(odd_state(t, i), odd_state_texts[i]);
        for (int64_t step = 0; step < 3; step++) take_step(t, step, &out);
        all_ok(zero_trainer_digest(t, digest[stage]));
        assert_string_equal(digest[stage], digest[0]);
        zero_trainer_close(&t);
        zero_comm_close(&comm);
        zero_model_destroy(&model);
    }
}

/* ---- ranks that differ: opening ---- */

static zero_status odd_open(zero_comm *comm, int i)
{
    tied_model tied;
    zero_model model;
    zero_trainer *t = NULL;
    tied_init(&tied);
    if (is_odd()) {
        switch (i) {
        case 0: tied.tensors[0].init_std = 0.4f; break;
        case 1: tied.tensors[0].decays = false; break;
        case 2: tied.tensors[1].init = ZERO_INIT_ZEROS; break;
        case 3: strcpy(tied.tensors[1].name, "gaim"); break;
        case 4: tied.tensors[0].rows = NARROW, tied.tensors[0].cols = WIDE; break;
        case 5: tied.units[1].recompute_without_out = true; break;
        case 6: tied.tables.seq = 2; break;
        default: break;
        }
    }
    all_ok(zero_model_describe(&tied.tables, &model));
    zero_trainer_spec spec = tied_spec(&model);
    if (is_odd() && i == 7) spec.collectives = "mpi";
    if (is_odd() && i == 8) spec.bucket = 4096;
    if (is_odd() && i == 9) spec.seed = -2;
    if (is_odd() && i == 12) spec.stage = 2;
    if (is_odd() && i == 13) spec.type = ZERO_BF16;
    if (is_odd() && i == 14) spec.serial = true;
    if (is_odd() && i == 15) spec.seed = 6;
    if (is_odd() && i == 16) spec.backend = "naive";
    zero_status st = zero_trainer_open(is_odd() && i == 10 ? NULL : &spec, comm,
                                       is_odd() && i == 11 ? NULL : &t);
    zero_model_destroy(&model);
    return st;
}

static const char *const odd_open_texts[] = {
    "tensor 'A''s init_std is 0.4",
    "tensor 'A''s decays is off here and on on rank 0",
    "tensor 'gain''s init is 0 here",
    "name is gaim here and gain on rank 0",
    "tensor 'A''s rows is 5 here and 24 on rank 0",
    "unit 'tanh''s recompute_without_out is on here",
    "seq is 2 here and 3 on rank 0",
    "the spec's collectives is mpi here",
    "the spec's bucket is 4096 here",
    "seed -2",
    "without a spec",
    "place for the trainer",
    "the spec's stage is 2 here and 0 on rank 0",
    "the spec's type is bf16 here and fp32 on rank 0",
    "the spec's serial is on here and off on rank 0",
    "the spec's seed is 6 here",
    "the spec's backend is naive here",
};

static zero_status odd_gpt2(zero_comm *comm, int i)
{
    zero_gpt2_shape shape = {.layers = 1, .hidden = 4, .heads = 1, .seq = 2, .vocab = 3};
    zero_trainer *t = NULL;
    zero_model model;
    if (is_odd() && i == 0) shape.dropout = 0.1f;
    if (is_odd() && i == 1) shape.seed = 9;
    all_ok(zero_gpt2_describe(&shape, &model));
    zero_trainer_spec spec = {.model = &model};
    zero_status st = zero_trainer_open(&spec, comm, &t);
    zero_model_destroy(&model);
    return st;
}

static const char *const odd_gpt2_texts[] = {
    "dropout is 0.1",
    "seed is 9 here and 0 on rank 0",
};

TEST(a_rank_that_opens_something_else_is_named)
{
    if (test_size == 1) return;
    zero_comm *comm = open_world(), *none = NULL;
    for (int i = 0; i < (int)COUNT(odd_open_texts); i++)
        refused(odd_open(comm, i), odd_open_texts[i]);
    for (int i = 0; i < (int)COUNT(odd_gpt2_texts); i++)
        refused(odd_gpt2(comm, i), odd_gpt2_texts[i]);
    refused(zero_comm_open(MPI_COMM_WORLD, is_odd() ? -1.0 : 1.0, &none), "watchdog of -1");
    refused(zero_comm_open(MPI_COMM_WORLD, 1.0, is_odd() ? NULL : &none),
            "place for the group");
    zero_comm_close(&comm);
}

/* ---- ranks that differ: the optimizer ---- */

static zero_status odd_optimizer(zero_comm *comm, zero_optimizer *o, int i)
{
    float params[WEIGHTS] = {0}, grads[WEIGHTS] = {0};
    const zero_range span = {10, is_odd() ? 20 : 30};
    zero_optimizer_spec s = {.n_params = WEIGHTS};
    zero_optimizer_input in = plain;
    zero_optimizer_result out;
    zero_optimizer *made = NULL;
    if (is_odd() && i == 0) params[WEIGHTS - 1] = 1e-3f;
    if (is_odd() && i == 1) s.type = ZERO_BF16;
    if (i == 2) s.no_decay = &span, s.n_no_decay = 1;
    if (is_odd() && i == 3) s.updates = 1;
    if (is_odd() && i == 4) s.n_params--;
    if (i < 6)
        return zero_optimizer_open(&s, comm, is_odd() && i == 5 ? NULL : params, &made);
    if (is_odd() && i == 6) in.lr = 5e-3;
    if (is_odd() && i == 7) in.divisor = 2.0;
    if (is_odd() && i == 8) in.eps = NAN;
    return zero_optimizer_step(o, is_odd() && i == 9 ? NULL : params,
                               is_odd() && i == 10 ? params + 1 : grads,
                               is_odd() && i == 11 ? NULL : &in, &out);
}

static const char *const odd_optimizer_texts[] = {
    "the spec's params is hash",
    "the spec's type is bf16 here and fp32 on rank 0",
    "the spec's no_decay is hash",
    "the spec's updates is 1 here and 0 on rank 0",
    "the spec's n_params is 299 here and 300 on rank 0",
    "params is NULL",
    "the step's lr is 0.005 here and 0.01 on rank 0",
    "the step's divisor is 2 here",
    "eps nan",
    "without its array of parameters",
    "overlap",
    "input is NULL",
};

TEST(a_rank_whose_optimizer_differs_is_named)
{
    if (test_size == 1) return;
    const zero_optimizer_spec spec = {.n_params = WEIGHTS};
    float params[WEIGHTS] = {0};
    zero_optimizer *o = NULL;
    zero_comm *comm = open_world();
    all_ok(zero_optimizer_open(&spec, comm, params, &o));
    for (int i = 0; i < (int)COUNT(odd_optimizer_texts); i++)
        refused(odd_optimizer(comm, o, i), odd_optimizer_texts[i]);
    assert_true(zero_optimizer_count(o) == 0);
    zero_optimizer_close(&o);
    zero_comm_close(&comm);
}

/* ---- after the end ---- */

typedef struct {
    zero_comm *comms[2];
    zero_model model;
    zero_trainer *trainer;
    zero_optimizer *optimizer;
    float params[WEIGHTS];
} left;

static void leave_open(left *l)
{
    const zero_optimizer_spec small = {.n_params = WEIGHTS, .type = ZERO_FP32};
    zero_step_result out;
    *l = (left){.comms = {open_world(), open_world()}};
    describe_tied(&l->model);
    zero_trainer_spec spec = tied_spec(&l->model);
    spec.stage = 1;
    l->trainer = open_trainer(&spec, l->comms[0]);
    all_ok(zero_optimizer_open(&small, l->comms[1], l->params, &l->optimizer));
    take_step(l->trainer, 0, &out);
    double loss; /* nothing is in flight when MPI ends */
    all_ok(zero_trainer_evaluate(l->trainer, &tied_source, &loss));
}

static void expect_finalized(zero_status st)
{
    if (st != ZERO_ERR_INVALID || !strstr(zero_last_error(), "MPI is finalized")) {
        fprintf(stderr, "after MPI_Finalize: status %d, '%s'\n", (int)st,
                zero_last_error());
        abort();
    }
}

static void after_mpi_is_down(left *l)
{
    zero_step_result out;
    zero_optimizer_result result;
    zero_comm *comm = NULL;
    float grads[WEIGHTS] = {0};
    expect_finalized(zero_comm_open(MPI_COMM_WORLD, 0.0, &comm));
    expect_finalized(zero_trainer_step(l->trainer, &tied_source, &tied_input, &out));
    expect_finalized(zero_optimizer_step(l->optimizer, l->params, grads, &plain, &result));
    zero_trainer_close(&l->trainer);
    zero_optimizer_close(&l->optimizer);
    zero_comm_close(&l->comms[0]);
    zero_comm_close(&l->comms[1]);
    zero_model_destroy(&l->model);
}

int main(int argc, char **argv)
{
    left l;
    before_mpi_is_up();
    test_begin(&argc, &argv);
    int failed = run_here(NULL, NULL);
    leave_open(&l);
    failed = test_end(failed);
    after_mpi_is_down(&l);
    return failed;
}
