/* States in a scratch file change no bit. Each run has a twin that keeps everything in memory and
 * takes the same steps. Compared are all losses, norms, evaluations, generated text, and the digest
 * of the states.
 *
 *     test_offload               every pair of stage, type and place of UPDATE, with other settings
 *                                drawn at random; large groups; ranks without states
 *     test_offload COUNT SEED    COUNT rounds with every triple of them */
#define TEST_HAS_MAIN
#include "support/job_place.h"
#include "support/same_bits.h"
#include "support/twin_test.h"

#include "base/range.h"

/* ---- a run and its twin ---- */

/* Pages of the file in the page cache would be memory that no plan knows of. */
static void expect_no_cache(const test_run *run)
{
    const zero_scratch *scratch = run->engine.runner.tier.scratch;
    int pages = 0;
    if (scratch) {
        const zero_scratch_file *file = zero_scratch_get_file(scratch);
        pages = disk_place_cached_pages(file->fd, file->bytes);
    }
    assert_all(pages == 0);
}

static test_setup resident_twin(test_setup setup)
{
    setup.directory = NULL;
    setup.plan.offload = ZERO_OFFLOAD_OFF;
    setup.plan.offload_parameters = setup.plan.offload_activations = 0;
    return setup;
}

static void check(const test_setup *setup)
{
    test_setup twin = resident_twin(*setup);
    twin_outcome want = twin_run(&twin, expect_no_cache),
                 got = twin_run(setup, expect_no_cache);
    test_expect(setup, memcmp(&want, &got, sizeof want) == 0);
}

/* ---- settings ---- */

static void draw_parts(dice *d, zero_plan_input *plan)
{
    plan->offload_depth = (int)DRAW(d, 1, 2, 4);
    plan->offload_parameters = (int)DRAW(d, 0, 1) && plan->stage == 3;
    plan->recompute = DRAW(d, 0, 1) == 1;
    plan->offload_activations = (int)DRAW(d, 0, 1, 1) && plan->recompute;
}

static void draw_plan(dice *d, zero_plan_input *plan)
{
    plan->micro_batch = 1;
    plan->accumulation = (int)DRAW(d, 1, 2);
    draw_form(d, plan);
    plan->check_memory = DRAW(d, 0, 0, 1) == 1 && plan->offload != ZERO_OFFLOAD_BACKWARD;
}

static test_setup setup_of(dice *d, int stage, zero_type type, zero_offload when)
{
    test_setup setup = test_standard;
    setup.shape = (zero_shape){.layers = 3,
                               .hidden = 18,
                               .heads = 3,
                               .seq = 5,
                               .vocab = 31,
                               .dropout = 0.1f,
                               .seed = 3};
    setup.directory = test_place;
    setup.eval_batches = 1;
    setup.lr = 1e-2;
    setup.clip = when == ZERO_OFFLOAD_BACKWARD ? 0.0 : 0.05;
    setup.plan = (zero_plan_input){.stage = stage, .type = type, .offload = when};
    draw_parts(d, &setup.plan);
    draw_plan(d, &setup.plan);
    draw_route(d, &setup);
    return setup;
}

/* fp16 must skip a step whose gradient is not finite, which `backward` would know too late. A third
 * of all triples has every pair. */
static bool is_chosen(const test_rounds *r, int stage, zero_type type, zero_offload when)
{
    bool is_legal = type != ZERO_FP16 || when != ZERO_OFFLOAD_BACKWARD;
    return is_legal && (r->is_given || (stage + (int)type + (int)when) % 3 == 0);
}

TEST(each_stage_type_and_place_of_the_update_gives_the_bits_of_memory)
{
    const test_rounds *r = *state;
    dice d = {.rng = {.purpose = ZERO_RNG_TEST, .seed = r->seed}};
    for (int64_t i = 0; i < r->count; i++)
        for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++)
            for (zero_type type = ZERO_FP32; type <= ZERO_FP16; type++)
                for (int when = ZERO_OFFLOAD_END; when <= ZERO_OFFLOAD_BACKWARD; when++) {
                    test_setup setup = setup_of(&d, stage, type, (zero_offload)when);
                    if (is_chosen(r, stage, type, (zero_offload)when)) check(&setup);
                }
}

/* UPDATE looks for flipped bits in groups that stay in memory, not in the slots of those in the file. */
TEST(whole_groups_beside_parameters_in_the_file_raise_no_alarm)
{
    const test_rounds *r = *state;
    dice d = {.rng = {.purpose = ZERO_RNG_TEST, .seed = r->seed}};
    test_setup setup = setup_of(&d, 3, ZERO_BF16, ZERO_OFFLOAD_LAZY);
    setup.plan.offload_parameters = 1;
    setup.plan.offload_depth = 1;
    setup.plan.persist = 100;
    setup.plan.check_replicas = 1;
    check(&setup);
}

/* ---- sizes ---- */

/* The embedding has more than one block on each rank: the last one is short. */
static test_setup large_setup(dice *d, int64_t blocks, int stage, zero_type type,
                              zero_offload when)
{
    test_setup setup = setup_of(d, stage, type, when);
    setup.shape.layers = 1;
    setup.shape.hidden = 96;
    setup.shape.vocab = (blocks * ZERO_OFFLOAD_BLOCK * test_size + 12345) / 96;
    setup.plan.bucket = 1 << 20;
    setup.plan.partition = ZERO_PARTITION_SLICE;
    setup.plan.persist = 0;
    return setup;
}

static int most_blocks(const test_setup *setup)
{
    test_run run;
    int most = 0;
    test_run_open(&run, setup, test_size);
    for (int g = 0; g < run.model.n_groups; g++) {
        int n = run.engine.schedule.groups[g].n_blocks;
        most = n > most ? n : most;
    }
    test_run_close(&run);
    return most;
}

TEST(groups_of_several_blocks_give_the_bits_of_memory)
{
    const test_rounds *r = *state;
    dice d = {.rng = {.purpose = ZERO_RNG_TEST, .seed = r->seed, .sample = 1}};
    const struct {
        int stage;
        zero_type type;
        zero_offload when;
    } cases[] = {{3, ZERO_BF16, ZERO_OFFLOAD_LAZY},
                 {3, ZERO_FP32, ZERO_OFFLOAD_BACKWARD},
                 {1, ZERO_BF16, ZERO_OFFLOAD_END},
                 {2, ZERO_FP32, ZERO_OFFLOAD_END}};
    int n = r->is_given ? 4 : 2, blocks = r->is_given ? 2 : 1;
    for (int i = 0; i < n; i++) {
        test_setup setup =
            large_setup(&d, blocks, cases[i].stage, cases[i].type, cases[i].when);
        setup.plan.offload_depth = 1 + i % blocks; /* blocks wait for a slot */
        setup.plan.offload_parameters = cases[i].stage == 3;
        assert_all(most_blocks(&setup) > setup.plan.offload_depth);
        check(&setup);
    }
}

/* True if a group is owned by other ranks. */
static bool owns_nothing(const test_setup *setup)
{
    test_run run;
    int n = 0;
    test_run_open(&run, setup, test_size);
    for (int g = 0; g < run.model.n_groups; g++)
        n += run.engine.schedule.groups[g].n_blocks == 0;
    test_run_close(&run);
    return n > 0;
}

TEST(ranks_that_own_nothing_of_a_group_give_the_bits_of_memory)
{
    const test_rounds *r = *state;
    dice d = {.rng = {.purpose = ZERO_RNG_TEST, .seed = r->seed, .sample = 2}};
    for (int stage = 1; stage < ZERO_STAGE_COUNT; stage++) {
        zero_offload when = stage == 3 ? ZERO_OFFLOAD_END : ZERO_OFFLOAD_LAZY;
        test_setup setup = setup_of(&d, stage, ZERO_BF16, when);
        setup.shape.layers = 1;
        setup.plan.partition = ZERO_PARTITION_OWNER;
        setup.plan.persist = 0;
        setup.plan.offload_parameters = stage == 3;
        /* Neighbours look for pieces where they would have their own. */
        setup.plan.collectives = ZERO_ALGORITHM_SHM;
        setup.plan.prefetch = 1000;
        setup.fake_nodes = 1;
        int some = owns_nothing(&setup);
        MPI_Allreduce(MPI_IN_PLACE, &some, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
        assert_all(some || test_size < 3);
        check(&setup);
    }
}

int main(int argc, char **argv)
{
    test_rounds r = test_rounds_of(argc, argv, 1);
    around.state = &r;
    around.begin(&argc, &argv);
    return around.end(run_here(NULL, NULL));
}
