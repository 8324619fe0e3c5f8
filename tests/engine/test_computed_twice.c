/* --check-compute: one result of one operation on one rank is wrong once, in any pass of any step. The
 * step's vote says so, with the rank, the pass and the unit; nothing was updated then. */
#include "support/bit_flips.h"
#include "support/faulty_unit.h"

#include "fake/fake.h"

enum { STEPS = 2, OFTEN = 7 };

#define OPERATIONS(OP) \
    OP(gemm, zero_gemm, a->c, a->n *(int64_t)zero_type_size(a->c_type)) \
    OP(add_branch, zero_branch, a->out, a->cols *(int64_t)zero_type_size(a->rows_type)) \
    OP(bias_backward, zero_bias_grad, a->dbias, a->cols * 4) \
    OP(bias_gelu, zero_bias, a->y, a->cols *(int64_t)zero_type_size(a->rows_type)) \
    OP(bias_gelu_backward, zero_bias_grad, a->dbias, a->cols * 4) \
    OP(layernorm, zero_layernorm_args, a->y, a->C *(int64_t)zero_type_size(a->rows_type)) \
    OP(layernorm_backward, zero_layernorm_grad_args, a->dgain, a->C * 4) \
    OP(attention, zero_attention, a->out, a->D *(int64_t)zero_type_size(a->rows_type)) \
    OP(attention_backward, zero_attention, a->dv.x, \
       a->D *(int64_t)zero_type_size(a->rows_type)) \
    OP(embedding, zero_embedding, a->out, a->C *(int64_t)zero_type_size(a->rows_type)) \
    OP(embedding_backward, zero_embedding_grad, a->dwpe, a->C * 4) \
    OP(cross_entropy, zero_cross_entropy, a->loss, a->rows * 4)

enum {
#define OP(name, ...) OP_##name,
    OPERATIONS(OP) OPS
#undef OP
};

/* Backends have no argument of ours. */
static struct {
    const zero_backend *sound;
    zero_backend faulty;
    const test_run *run;
    int op, rank;               /* op -1: none */
    int64_t call, float_number; /* the first wrong one of the operation's calls */
    int64_t every;              /* N: every N-th call after it is wrong, too; 0: none is */
    int64_t calls[OPS];
    int made, unit; /* wrong results so far; the unit of the last one */
    zero_op pass;
} fault;

/* On a device, which the host cannot touch, a number becomes 0. */
static void make_call(int op, const zero_math *math, void *result, int64_t bytes)
{
    int64_t after = fault.calls[op]++ - fault.call;
    bool is_due = fault.every > 0 ? after >= 0 && after % fault.every == 0 : after == 0;
    if (op != fault.op || test_rank != fault.rank || !is_due) return;
    const zero_runner *r = &fault.run->engine.runner;
    const zero_instruction *i = &r->schedule->programs[ZERO_PROGRAM_STEP].code[r->at];
    float *x = (float *)result + fault.float_number % (bytes / 4);
    fault.made++;
    fault.unit = i->unit;
    fault.pass = i->op;
    if (fault.sound->memory)
        fault.sound->clear(math, 1, x);
    else
        *(uint32_t *)(void *)x ^= UINT32_C(1) << 22;
}

#define OP(name, type, result, bytes) \
    static void faulty_##name(const zero_math *math, const type *a) \
    { \
        fault.sound->name(math, a); \
        make_call(OP_##name, math, result, bytes); \
    }
OPERATIONS(OP)
#undef OP

static test_setup faulty_setup(int stage, zero_type type, const zero_backend *sound)
{
    test_setup setup = test_setup_of(stage, type);
    fault.sound = sound;
    fault.faulty = *sound;
    fault.faulty.fused = NULL;
    fault.op = -1;
#define OP(name, ...) fault.faulty.name = faulty_##name;
    OPERATIONS(OP)
#undef OP
    setup.plan.check_compute = 1;
    setup.plan.accumulation = 1 + stage % 2;
    setup.shape.dropout = sound->memory ? 0.0f : 0.1f; /* it makes zeros */
    setup.backend = &fault.faulty;
    if (sound->memory) {
        setup.plan.device = true;
        setup.plan.collectives = ZERO_ALGORITHM_P2P;
    }
    return setup;
}

static void open_run(test_run *run, const test_setup *setup)
{
    memset(fault.calls, 0, sizeof fault.calls);
    fault.made = 0;
    fault.run = run;
    test_run_open(run, setup, test_size);
}

/* The digest, and in fault.calls each operation's calls. */
static test_digest run_soundly(const test_setup *setup)
{
    test_run run;
    fault.op = -1;
    open_run(&run, setup);
    test_run_steps(&run, 0, STEPS);
    test_digest d = test_run_digest(&run);
    test_run_close(&run);
    return d;
}

static void expect_found(const test_setup *setup, int op, int64_t calls)
{
    char said[200];
    test_run run;
    zero_status st = ZERO_OK;
    int64_t at = 0;
    fault.op = op;
    fault.rank = (int)draw(test_size);
    fault.call = draw(calls);
    fault.float_number = draw(1000);
    open_run(&run, setup);
    for (; st == ZERO_OK && at < STEPS; at++) st = test_step(&run, at);
    int place[] = {fault.made, fault.unit, (int)fault.pass};
    MPI_Bcast(place, 3, MPI_INT, fault.rank, MPI_COMM_WORLD);
    if (place[0] != 1 || st != ZERO_ERR_CORRUPTED)
        print_error("operation %d, call %d, number %d, made %d\n", op, (int)fault.call,
                    (int)fault.float_number, place[0]);
    assert_all(place[0] == 1 && st == ZERO_ERR_CORRUPTED);
    snprintf(said, sizeof said, "step %d: rank %d computed %s of %s", (int)at, fault.rank,
             zero_op_name((zero_op)place[2]), run.model.units[place[1]].name);
    all_told(said);
    assert_all(run.engine.adam_steps == at - 1);
    test_run_close(&run);
}

static void find_faults(const zero_backend *sound)
{
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++)
        for (zero_type type = ZERO_FP32; type <= ZERO_BF16; type++) {
            test_setup setup = faulty_setup(stage, type, sound), once = setup;
            int64_t calls[OPS], twice[OPS];
            once.plan.check_compute = 0;
            test_digest plain = run_soundly(&once);
            memcpy(calls, fault.calls, sizeof calls);
            test_digest checked = run_soundly(&setup);
            memcpy(twice, fault.calls, sizeof twice);
            assert_all(test_same(plain, checked));
            for (int op = 0; op < OPS; op++) {
                assert_all(calls[op] > 0 && twice[op] == 2 * calls[op]);
                expect_found(&setup, op, twice[op]);
            }
        }
}

/* 4 stages, 2 types, 12 operations: 96 faults each. */
TEST(a_wrong_result_is_found_with_rank_pass_and_unit)
{
    find_faults(&zero_backend_cpu);
}

TEST(so_it_is_on_a_device)
{
    find_faults(&zero_backend_fake);
}

TEST(a_rank_that_is_often_wrong_is_found_when_a_step_is_due)
{
    enum { N = 10 };
    test_setup setup = faulty_setup(2, ZERO_FP32, &zero_backend_cpu);
    setup.plan.check_compute = N;
    for (int k = 0; k < 6; k++) {
        test_run run;
        char said[64];
        zero_status st = ZERO_OK;
        int at = 0;
        fault.op = OP_gemm;
        fault.every = OFTEN;
        fault.rank = (int)draw(test_size);
        fault.call = draw(100);
        open_run(&run, &setup);
        for (; st == ZERO_OK && at < N; at++) st = test_step(&run, at);
        assert_all(st == ZERO_ERR_CORRUPTED && at == N);
        snprintf(said, sizeof said, "step %d: rank %d computed ", N, fault.rank);
        all_told(said);
        test_run_close(&run);
    }
    fault.every = 0;
}

TEST(a_model_in_slices_is_refused)
{
    test_setup setup = test_setup_of(0, ZERO_FP32);
    zero_model model;
    zero_schedule s;
    assert_ok(zero_model_build(&setup.shape, &model));
    zero_plan_input plan = zero_plan_input_standard(&model, 1, 0);
    plan.check_compute = 1;
    model.share.slices = 2;
    assert_true(zero_schedule_compile(&s, &plan) == ZERO_ERR_INVALID);
    assert_told("--check-compute with --tp");
    zero_model_destroy(&model);
}
