/* Flipped bits in pipelines: each stage compares what its own ranks hold, and all ranks tell the same. */
#include "state/replicas.h"
#include "support/bit_flips.h"
#include "support/faulty_unit.h"

typedef struct {
    int stage;
    zero_type type;
    zero_algorithm collectives;
} memory;

static const memory memories[] = {
    {0, ZERO_FP32, ZERO_ALGORITHM_P2P},
    {0, ZERO_BF16, ZERO_ALGORITHM_SHM},
    {1, ZERO_FP32, ZERO_ALGORITHM_P2P},
    {1, ZERO_BF16, ZERO_ALGORITHM_P2P},
};
enum { MEMORIES = COUNT(memories) };

/* Two stages of two ranks each; the embedding's states are on the second one. */
static test_setup setup_of(const memory *m)
{
    test_setup setup = test_standard;
    setup.plan.pp = 2;
    setup.plan.stage = m->stage;
    setup.plan.type = m->type;
    setup.plan.collectives = m->collectives;
    setup.plan.check_replicas = 1;
    return setup;
}

/* A flip makes the next digest fail and, unless only masters can tell, the next step. */
static void flip_and_expect(test_run *run, const spot *p, bool in_steps, int64_t step)
{
    char where[160], hex[33];
    snprintf(where, sizeof where, "the %s of %s, element %d",
             zero_array_name(&run->engine.schedule, p->array), tensor_of(run, p)->name,
             (int)p->element);
    all_ok(zero_engine_settle(&run->engine));
    flip(run, p);
    assert_all(zero_engine_digest(&run->engine, hex) == ZERO_ERR_CORRUPTED);
    all_told(where);
    if (in_steps) {
        assert_all(test_step(run, step) == ZERO_ERR_CORRUPTED);
        all_told(where);
    }
    flip(run, p);
    all_ok(zero_engine_digest(&run->engine, hex));
}

/* The first group of the rank's stage, or its copy of the embedding. */
static spot spot_of(const test_run *run, zero_array array, int rank, bool is_copy)
{
    spot p = {.rank = rank, .array = array, .element = 5};
    while (!is_copy && group_of(run, &p)->stage != rank / 2) p.tensor++;
    return p;
}

static void check_memory(const memory *m)
{
    const test_setup setup = setup_of(m);
    test_run run;
    int64_t step = 1;
    test_run_open(&run, &setup, test_size);
    test_run_steps(&run, 0, 1);
    assert_all(run.engine.runner.compares == 1 && test_control_is_planned(&run.engine));
    for (int rank = 0; rank < test_size; rank++)
        for (int a = 0; a < (m->stage == 0 ? ZERO_ARRAY_STATES + 2 : 1); a++) {
            const zero_array array = (zero_array)a;
            const bool is_rounded = m->type != ZERO_FP32 && array == ZERO_ARRAY_PARAMETERS;
            if (m->type == ZERO_FP32 && array == ZERO_ARRAY_MASTERS) continue;
            spot p = spot_of(&run, array, rank, false);
            flip_and_expect(&run, &p, !is_rounded || m->stage == 1, step);
            p = spot_of(&run, array, rank, true);
            if (array == ZERO_ARRAY_PARAMETERS && rank < 2)
                flip_and_expect(&run, &p, true, step);
            test_run_steps(&run, step++, 1);
        }
    test_run_close(&run);
}

TEST(a_flip_on_any_stage_is_found_and_named)
{
    for (int k = 0; k < MEMORIES; k++) check_memory(&memories[k]);
}

/* A block's norm, which both ranks of a stage's TP group compute for themselves. */
TEST(what_ranks_of_a_tp_group_compute_alike_is_compared_in_its_stage)
{
    for (int rank = 0; rank < test_size; rank++) {
        test_setup setup = setup_of(&memories[rank % MEMORIES]);
        test_run run;
        char where[160];
        setup.tp = setup.slices = 2;
        setup.shape.heads = 4;
        test_run_open(&run, &setup, test_size);
        test_run_steps(&run, 0, 1);
        all_ok(zero_engine_settle(&run.engine));
        assert_all(test_control_is_planned(&run.engine));
        const zero_tensor *t = &run.part.units[1 + rank / 2].tensors[0][0];
        const zero_group_state *g = &run.engine.schedule.groups[t->group];
        char *grad = zero_runner_element(&run.engine.runner, g->grad, t->offset + 7);
        if (test_rank == rank) *grad ^= 1;
        assert_all(zero_replicas_compare(&run.engine.runner, true) == ZERO_ERR_CORRUPTED);
        snprintf(where, sizeof where, "the gradients of %s, element 7", t->name);
        all_told(where);
        test_run_close(&run);
    }
}

TEST(records_name_the_rank_of_any_stage)
{
    for (int rank = 0; rank < test_size; rank++) {
        test_setup setup = setup_of(&memories[rank % MEMORIES]);
        test_run run;
        char said[64];
        setup.plan.check_replicas = 0;
        setup.plan.check_memory = true;
        test_run_open(&run, &setup, test_size);
        test_run_steps(&run, 0, 1);
        spot p = spot_of(&run, ZERO_ARRAY_STATES + 1, rank, false);
        if (setup.plan.stage == 1) { /* an element of its own */
            const zero_range own =
                zero_states_held(&run.engine.schedule, tensor_of(&run, &p)->group);
            int64_t begin = own.begin;
            MPI_Bcast(&begin, 1, MPI_INT64_T, rank, MPI_COMM_WORLD);
            while (begin >= zero_range_of_tensor(tensor_of(&run, &p)).end) p.tensor++;
            p.element = zero_max(begin - tensor_of(&run, &p)->offset, 0);
        }
        flip(&run, &p);
        assert_all(zero_engine_check(&run.engine) == ZERO_ERR_CORRUPTED);
        snprintf(said, sizeof said, "rank %d sees bits changed", rank);
        all_told(said);
        all_told(tensor_of(&run, &p)->name);
        test_run_close(&run);
    }
}
