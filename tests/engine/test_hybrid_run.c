/* Hybrid sharding: a run whose stages shard over some neighbours has the bits of one that shards over
 * all ranks.
 *
 * Losses, norms, an evaluation, generated words and the digest are compared. */
#include "comm/check.h"
#include "support/job_place.h"
#include "support/same_bits.h"
#include "support/share.h"

static const zero_shape shape = {.layers = 2,
                                 .hidden = 32,
                                 .heads = 8,
                                 .seq = 8,
                                 .vocab = 30,
                                 .dropout = 0.1f,
                                 .seed = 5};

/* Settings that must not matter, by number. */
static test_setup setup_of(int variant)
{
    static const struct {
        zero_algorithm algorithm;
        int ranks; /* of a node; 0: all */
    } routes[] = {{ZERO_ALGORITHM_P2P, 0},
                  {ZERO_ALGORITHM_SHM, 0},
                  {ZERO_ALGORITHM_HIER, 2},
                  {ZERO_ALGORITHM_P2P, 1},
                  {ZERO_ALGORITHM_HIER, 1}};
    int ranks = routes[variant % 5].ranks;
    test_setup setup = test_standard;
    setup.shape = shape;
    setup.clip = 0.05;
    setup.eval_batches = 1;
    setup.fake_nodes = ranks > 0 ? test_size / ranks : 1;
    setup.plan = (zero_plan_input){
        .micro_batch = 1,
        .accumulation = 1,
        .collectives = routes[variant % 5].algorithm,
        .bucket = variant % 2 == 0 ? 1 << 20 : 2048,
        .serial = variant % 4 == 1,
        .recompute = variant % 3 == 1,
        .prefetch = variant % 3,
        .persist = variant % 2 * 100,
        .check_replicas = variant % 3 == 0 ? 1 : 2,
        .check_memory = variant % 2,
    };
    return setup;
}

/* All ranks shard together, in the plainest way: what every other run has to give. */
static test_outcome plain(const test_setup *setup)
{
    test_setup one = *setup;
    one.plan.shard_ranks = 0;
    one.plan.collectives = ZERO_ALGORITHM_P2P;
    one.plan.serial = true;
    one.plan.recompute = false;
    one.plan.offload = ZERO_OFFLOAD_OFF;
    one.plan.offload_parameters = one.plan.node_parameters = 0;
    one.directory = NULL;
    one.fake_nodes = 1;
    return test_train(&one, test_size);
}

static void check_shards(zero_type type, int accumulation, int variant)
{
    test_outcome want = {.evaluated = 0};
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage += TEST_SHARE(3))
        for (int shards = 1; shards < test_size; shards *= 2, variant++) {
            if (test_size % shards != 0) continue;
            test_setup setup = setup_of(variant);
            setup.plan.type = type;
            setup.plan.stage = stage;
            setup.plan.accumulation = accumulation;
            setup.plan.shard_ranks = shards;
            if (shards == 1) want = plain(&setup);
            test_expect_same(&setup, test_size, &want);
        }
}

TEST(every_number_of_shards_has_the_bits_of_one)
{
    check_shards(ZERO_FP32, 2, 0);
    check_shards(ZERO_BF16, 1, 1);
    check_shards(ZERO_FP16, 2, 3);
}

/* The bits of one rank, too. */
TEST(a_reproducible_run_has_them_at_any_world_size)
{
    if (test_size % 4 != 0) return;
    for (zero_type type = ZERO_FP32; type <= ZERO_BF16; type++) {
        test_setup one = setup_of(0);
        one.plan.type = type;
        one.plan.accumulation = 2 * test_size;
        one.plan.reproducible = true;
        test_outcome want = test_train(&one, 1);
        for (int stage = 0; stage < ZERO_STAGE_COUNT; stage += TEST_SHARE(3)) {
            test_setup setup = setup_of(stage + 1 + (int)type);
            setup.plan.type = type;
            setup.plan.stage = stage;
            setup.plan.accumulation = 2;
            setup.plan.reproducible = true;
            setup.plan.shard_ranks = 1 + stage % 2;
            test_expect_same(&setup, test_size, &want);
        }
    }
}

/* Two ranks compute a replica's microbatch together. */
TEST(shared_models_can_have_replicas)
{
    for (int k = 0; k < 6; k += TEST_SHARE(4)) {
        test_setup setup = setup_of(k);
        setup.tp = 2;
        setup.slices = 8;
        setup.plan.type = (zero_type)(k % 3);
        setup.plan.stage = k % ZERO_STAGE_COUNT;
        setup.plan.accumulation = 1 + k / 2 % 2;
        test_outcome want = plain(&setup);
        setup.plan.shard_ranks = k % 3 < 2 ? 1 : test_size / 2; /* of 2 or 3: all */
        test_expect_same(&setup, test_size, &want);
    }
}

TEST(states_in_a_file_have_replicas)
{
    for (zero_offload place = ZERO_OFFLOAD_END; place < ZERO_OFFLOAD_DELAYED; place++)
        for (int k = (int)place % TEST_SHARE(3); k < 3; k += TEST_SHARE(3)) {
            test_setup setup = setup_of((int)place + 3 * k);
            setup.directory = test_place;
            if (place == ZERO_OFFLOAD_BACKWARD) setup.clip = setup.plan.check_memory = 0;
            setup.plan.stage = 1 + k % 3;
            setup.plan.type = (zero_type)(k % 2);
            setup.plan.offload = place;
            setup.plan.offload_depth = 1 + k;
            setup.plan.offload_parameters = setup.plan.stage == 3;
            setup.plan.shard_ranks = 1 + k % 2;
            test_outcome want = plain(&setup);
            test_expect_same(&setup, test_size, &want);
        }
}

/* A delayed update gives other numbers, so the run to compare with delays it, too. */
TEST(delayed_updates_have_replicas)
{
    for (int k = 0; k < 3; k += TEST_SHARE(2)) {
        test_setup setup = setup_of(k + 1);
        setup.directory = test_place;
        setup.plan.check_memory = 0;
        setup.plan.stage = 1 + k;
        setup.plan.type = (zero_type)(k % 2);
        setup.plan.offload = ZERO_OFFLOAD_DELAYED;
        setup.plan.delayed_from = 2;
        setup.plan.offload_depth = 2;
        test_outcome want = test_train(&setup, test_size);
        setup.plan.shard_ranks = 2 - k % 2;
        test_expect_same(&setup, test_size, &want);
    }
}

/* Bytes that rank 0 receives in the GATHERs of two steps: as planned, and as measured. */
static int64_t gathered_in_steps(const test_setup *setup)
{
    test_run run;
    zero_traffic moved;
    zero_duration took;
    int64_t bytes = 0;
    test_run_open(&run, setup, test_size);
    test_run_steps(&run, 0, 2);
    all_ok(zero_engine_settle(&run.engine));
    zero_traffic planned = zero_engine_planned_traffic(&run.engine, ZERO_OP_GATHER);
    zero_engine_measured_traffic(&run.engine, ZERO_OP_GATHER, &moved, &took);
    assert_all(memcmp(&planned, &moved, sizeof moved) == 0);
    for (int reach = 0; reach < ZERO_REACHES; reach++) bytes += moved.bytes_received[reach];
    test_run_close(&run);
    MPI_Bcast(&bytes, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    return bytes;
}

/* Two ranks on each node. They gather from all ranks if k is even; else the two shard between them. */
static test_setup in_node_memory(int k)
{
    test_setup setup = setup_of(2); /* hier, two ranks on each node */
    setup.plan.stage = 3;
    setup.plan.type = (zero_type)(k % 3);
    setup.plan.accumulation = 1 + k % 2;
    setup.plan.recompute = k % 3 == 2;
    setup.plan.prefetch = k % 3;
    setup.plan.persist = k % 4 == 3 ? 100 : 0;
    setup.plan.serial = k == 4;
    setup.plan.shard_ranks = k % 2 == 0 ? 0 : 2;
    return setup;
}

TEST(parameters_that_stay_in_node_memory_change_no_bit)
{
    for (int k = 0; k < 6; k += TEST_SHARE(3)) {
        test_setup setup = in_node_memory(k);
        test_outcome want = plain(&setup);
        int64_t twice = gathered_in_steps(&setup);
        setup.plan.node_parameters = 1;
        test_expect_same(&setup, test_size, &want);
        int64_t once = gathered_in_steps(&setup);
        if (once >= twice)
            print_error("way %d: %d bytes, without %d\n", k, (int)once, (int)twice);
        assert_all(once < twice);
        if (k < 2) continue;
        setup.plan.offload = ZERO_OFFLOAD_LAZY;
        setup.plan.offload_parameters = 1;
        setup.plan.offload_depth = 2;
        setup.directory = test_place;
        test_expect_same(&setup, test_size, &want);
    }
}

/* Ranks compare what they begin, so they begin it in one order. */
TEST(a_check_of_collectives_sees_one_order)
{
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage += TEST_SHARE(2)) {
        zero_comm comm;
        test_run run;
        test_setup setup = setup_of(stage);
        setup.plan.stage = stage;
        setup.plan.serial = false;
        test_outcome want = plain(&setup);
        setup.plan.shard_ranks = 1 + stage % 2;
        test_split(test_size, setup.fake_nodes, &comm);
        all_ok(zero_comm_divide(&comm, 1, setup.plan.shard_ranks));
        all_ok(zero_check_start(&comm));
        test_run_open_on(&run, &setup, &comm);
        test_outcome got = test_run_outcome(&run);
        test_run_close(&run);
        all_ok(zero_check_stop(&comm));
        zero_comm_destroy(&comm);
        test_expect_outcome(&setup, &got, &want);
    }
}

/* A group that is divided otherwise than the plan says would exchange other pieces. */
TEST(a_plan_runs_on_its_own_shard_groups_only)
{
    test_run run = {.setup = setup_of(0), .comm = &run.own};
    run.setup.plan.shard_ranks = 2;
    test_split(test_size, 1, &run.own);
    all_fail(test_run_init(&run), ZERO_ERR_INVALID, "shards over 2 ranks");
    zero_model_destroy(&run.model);
    zero_comm_destroy(&run.own);
}
