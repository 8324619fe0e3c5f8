/* Flipped bits with hybrid sharding: replicas hold everything at least twice, so a bit that flips in
 * any array of any rank is found before the next update and before each digest, and named.
 *
 * Which words are expected follows from stage, type and nodes; the test does not ask
 * sharding/checks.h. */
#include "comm/sentence.h"
#include "sharding/checks.h"
#include "state/replicas.h"
#include "support/bit_flips.h"
#include "support/faulty_unit.h"
#include "support/share.h"

typedef struct {
    int stage;
    zero_type type;
    zero_algorithm collectives;
    int node; /* ranks of each; 0: one node */
    int64_t persist;
} memory;

static const memory memories[] = {
    {0, ZERO_FP32, ZERO_ALGORITHM_P2P, 0, 0},
    {0, ZERO_BF16, ZERO_ALGORITHM_SHM, 0, 0},
    {1, ZERO_FP32, ZERO_ALGORITHM_P2P, 0, 0},
    {1, ZERO_BF16, ZERO_ALGORITHM_SHM, 0, 0},
    {1, ZERO_FP32, ZERO_ALGORITHM_SHM, 0, 0},
    {2, ZERO_BF16, ZERO_ALGORITHM_HIER, 2, 0},
    {2, ZERO_FP16, ZERO_ALGORITHM_P2P, 0, 0},
    {2, ZERO_FP32, ZERO_ALGORITHM_HIER, 1, 0},
    {3, ZERO_FP32, ZERO_ALGORITHM_P2P, 0, 0},
    {3, ZERO_BF16, ZERO_ALGORITHM_P2P, 1, 0},
    {3, ZERO_FP32, ZERO_ALGORITHM_SHM, 0, 0},
    {3, ZERO_FP32, ZERO_ALGORITHM_HIER, 2, 0},
    {3, ZERO_BF16, ZERO_ALGORITHM_HIER, 2, 1 << 20},
};
enum { MEMORIES = COUNT(memories) };

/* ---- what is held where ---- */

static const zero_plan_input *plan_of(const test_run *run)
{
    return &run->setup.plan;
}

static int replica_of(const test_run *run, int rank)
{
    return rank / plan_of(run)->shard_ranks;
}

static bool is_whole(const test_run *run, zero_array array)
{
    const zero_plan_input *plan = plan_of(run);
    bool is_kept = plan->stage < 3 || plan->persist > 0;
    return plan->stage == 0 || (array == ZERO_ARRAY_PARAMETERS && is_kept);
}

static bool same_node(const test_run *run, int a, int b)
{
    return run->comm->layout.node_of[a] == run->comm->layout.node_of[b];
}

/* True if a whole array lies once for all of a shard group's ranks on a node. */
static bool is_shared(const test_run *run, zero_array array)
{
    const zero_plan_input *plan = plan_of(run);
    return array == ZERO_ARRAY_PARAMETERS && plan->stage > 0 && is_whole(run, array) &&
           plan->collectives != ZERO_ALGORITHM_P2P;
}

static bool same_memory(const test_run *run, zero_array array, int a, int b)
{
    return a == b || (is_shared(run, array) && same_node(run, a, b) &&
                      replica_of(run, a) == replica_of(run, b));
}

/* Copies of an element of the array in the whole world. */
static int copies_of(const test_run *run, zero_array array)
{
    int copies = 0;
    if (!is_whole(run, array)) return test_size / plan_of(run)->shard_ranks;
    for (int r = 0; r < test_size; r++) {
        bool is_first = true;
        for (int q = 0; q < r; q++) is_first = is_first && !same_memory(run, array, q, r);
        copies += is_first;
    }
    return copies;
}

/* The rank of the same replica that owns the element. */
static int owner_of(const test_run *run, const spot *p)
{
    int shards = plan_of(run)->shard_ranks;
    if (plan_of(run)->stage == 0) return p->rank;
    return p->rank / shards * shards + shard_of(run, p);
}

/* The elements of the tensor that the rank holds. */
static zero_range held(const test_run *run, const spot *p)
{
    const zero_tensor *t = tensor_of(run, p);
    zero_range all = zero_range_of_tensor(t);
    if (!is_whole(run, p->array))
        all = zero_range_overlap(all,
                                 zero_partition_shard(&group_of(run, p)->partition,
                                                      p->rank % plan_of(run)->shard_ranks));
    return (zero_range){all.begin - t->offset, all.end - t->offset};
}

/* The last bit of any element that a rank holds of this array; the rounded value of a master does not
 * depend on it. */
static spot draw_spot(const test_run *run, zero_array array)
{
    spot p = {.array = array, .rank = (int)draw(test_size)};
    zero_range range;
    do {
        p.tensor = (int)draw(run->model.n_tensors);
        range = held(run, &p);
    } while (zero_range_is_empty(range));
    p.element = range.begin + draw(zero_range_len(range));
    return p;
}

/* ---- what the message says ---- */

static void add_holders(const test_run *run, const spot *p, zero_sentence *said)
{
    int class_of[8], first = 0;
    while (!same_memory(run, p->array, first, p->rank)) first++;
    for (int r = 0; r < test_size; r++)
        class_of[r] = same_memory(run, p->array, r, p->rank) ? first : -1;
    zero_sentence_add_ranks(said, test_size, class_of, first);
    zero_sentence_add(said, " hold");
}

static void expect_words(const test_run *run, const spot *p, zero_sentence *said)
{
    bool is_rounded = p->array == ZERO_ARRAY_PARAMETERS && plan_of(run)->type != ZERO_FP32;
    int owner = owner_of(run, p);
    if (is_rounded && same_memory(run, p->array, owner, p->rank))
        zero_sentence_add(said, "rank %d found other bits than its masters", owner);
    else if (!is_rounded && copies_of(run, p->array) == 2)
        zero_sentence_add(said, " hold different bits in the ");
    else
        add_holders(run, p, said);
}

static void check_message(const test_run *run, const spot *p)
{
    zero_sentence said = {.used = 0};
    char where[160];
    expect_words(run, p, &said);
    snprintf(where, sizeof where, "the %s of %s, element %d",
             zero_array_name(&run->engine.schedule, p->array), tensor_of(run, p)->name,
             (int)p->element);
    all_told(said.chars);
    all_told(where);
}

/* ---- flips ---- */

static test_setup setup_of(const memory *m, int shards)
{
    test_setup setup = test_standard;
    setup.shape.vocab = 70;
    setup.fake_nodes = m->node > 0 ? test_size / m->node : 1;
    setup.plan.stage = m->stage;
    setup.plan.type = m->type;
    setup.plan.collectives = m->collectives;
    setup.plan.persist = m->persist;
    setup.plan.check_replicas = 1;
    setup.plan.shard_ranks = shards;
    return setup;
}

/* A flip makes the next digest fail, and the next step, before its update. Once it is undone, the run
 * continues. Where only masters can tell, the step's update does (test_flips_in_steps). */
static void flip_and_expect(test_run *run, const spot *p, int64_t step)
{
    char hex[33];
    all_ok(zero_engine_settle(&run->engine));
    flip(run, p);
    assert_all(zero_engine_digest(&run->engine, hex) == ZERO_ERR_CORRUPTED);
    check_message(run, p);
    int stage = plan_of(run)->stage;
    bool only_masters_tell = p->array == ZERO_ARRAY_PARAMETERS &&
                             plan_of(run)->type != ZERO_FP32 &&
                             (stage == 0 || !is_whole(run, p->array));
    if (!only_masters_tell) {
        assert_all(test_step(run, step) == ZERO_ERR_CORRUPTED);
        check_message(run, p);
    }
    flip(run, p);
}

static void check_memory(const memory *m, int shards)
{
    test_setup setup = setup_of(m, shards);
    test_run run;
    int64_t step = 1;
    test_run_open(&run, &setup, test_size);
    test_run_steps(&run, 0, 1);
    assert_all(run.engine.runner.compares == 1 && test_control_is_planned(&run.engine));
    for (int a = 0; a < ZERO_ARRAYS; a++) {
        spot p = draw_spot(&run, (zero_array)a);
        int buffer = group_of(&run, &p)->buffers[p.array];
        if (buffer == ZERO_NO_BUFFER) continue; /* the masters of fp32 */
        flip_and_expect(&run, &p, step);
        test_run_steps(&run, step++, 1);
    }
    assert_all(step >= 4);
    test_run_close(&run);
}

TEST(every_flip_is_found_and_named)
{
    for (int k = 0; k < MEMORIES; k += TEST_SHARE(2))
        for (int shards = 1; shards < test_size; shards *= 2)
            if (test_size % shards == 0) check_memory(&memories[k], shards);
}

/* The momentum of a tensor that is cut, which only the replicas of this part of the model have. */
TEST(parts_of_a_model_are_compared_with_their_replicas)
{
    for (int rank = 0; rank < test_size && test_size > 2; rank++) {
        test_setup setup = setup_of(&memories[8], 1);
        test_run run;
        char said[64];
        int replicas = test_size / 2, p = rank % 2;
        setup.tp = setup.slices = 2;
        setup.shape.heads = 4;
        test_run_open(&run, &setup, test_size);
        test_run_steps(&run, 0, 1);
        assert_all(test_control_is_planned(&run.engine));
        const zero_group_state *g = &run.engine.schedule.groups[1];
        char *momentum = zero_runner_element(&run.engine.runner, g->state[0], 5);
        if (test_rank == rank) *momentum ^= 1;
        assert_all(zero_engine_check(&run.engine) == ZERO_ERR_CORRUPTED);
        if (replicas > 2)
            snprintf(said, sizeof said, "rank %d holds other bits", rank);
        else
            snprintf(said, sizeof said, "rank %d and rank %d hold different bits", p,
                     p + 2);
        all_told(said);
        if (test_rank == rank) *momentum ^= 1;
        all_ok(zero_engine_check(&run.engine));
        test_run_close(&run);
    }
}

/* Each rank has a copy of its own. With replicas there is a majority, even of gradients. */
TEST(what_ranks_of_a_tp_group_compute_alike_is_compared_with_all_replicas)
{
    for (int rank = 0; rank < test_size && test_size > 2; rank++) {
        test_setup setup = setup_of(&memories[8], 1);
        test_run run;
        char said[32];
        setup.tp = setup.slices = 2;
        setup.shape.heads = 4;
        test_run_open(&run, &setup, test_size);
        test_run_steps(&run, 0, 1);
        all_ok(zero_engine_settle(&run.engine));
        const zero_tensor *t = &run.part.units[3].tensors[0][0]; /* ln_f.weight */
        int buffer = run.engine.schedule.groups[t->group].grad;
        char *grad = zero_runner_element(&run.engine.runner, buffer, t->offset + 7);
        if (test_rank == rank) *grad ^= 1;
        assert_all(zero_replicas_compare(&run.engine.runner, true) == ZERO_ERR_CORRUPTED);
        snprintf(said, sizeof said, "rank %d: other bits", rank);
        all_told(said);
        all_told("the gradients of ln_f.weight, element 7");
        test_run_close(&run);
    }
}

/* A group that is divided otherwise than the plan says would exchange other pieces. */
TEST(a_plan_runs_on_its_own_shard_groups_only)
{
    test_run run = {.setup = setup_of(&memories[0], 2), .comm = &run.own};
    test_split(test_size, 1, &run.own);
    all_fail(test_run_init(&run), ZERO_ERR_INVALID, "shards over 2 ranks");
    zero_model_destroy(&run.model);
    zero_comm_destroy(&run.own);
}

/* Without a comparison each rank still knows what it has written. */
TEST(records_name_the_rank_of_any_replica)
{
    for (int rank = 0; rank < test_size; rank++) {
        test_setup setup = setup_of(&memories[rank % MEMORIES], 1 + rank % 2);
        test_run run;
        char said[64];
        setup.plan.check_replicas = 0;
        setup.plan.check_memory = 1;
        if (setup.plan.shard_ranks == test_size) setup.plan.shard_ranks = 1;
        test_run_open(&run, &setup, test_size);
        test_run_steps(&run, 0, 1);
        spot p = draw_spot(&run, ZERO_ARRAY_STATES + 1);
        flip(&run, &p);
        assert_all(zero_engine_check(&run.engine) == ZERO_ERR_CORRUPTED);
        snprintf(said, sizeof said, "rank %d sees bits changed", p.rank);
        all_told(said);
        all_told(run.model.tensors[p.tensor].name);
        test_run_close(&run);
    }
}

/* The sum over replicas brings it to all of them, but one computed it. */
TEST(a_number_that_is_not_finite_is_told_with_its_rank)
{
    for (int rank = 0; rank < test_size; rank++)
        for (int stage = rank % TEST_SHARE(3); stage < ZERO_STAGE_COUNT;
             stage += TEST_SHARE(3)) {
            test_setup setup = test_setup_of(stage, ZERO_BF16);
            test_run run;
            char said[64];
            test_fault f = {.step = 1, .is_mine = test_rank == rank, .number = INFINITY};
            setup.plan.shard_ranks = test_size > 2 ? 1 + stage % 2 : 1;
            test_run_open(&run, &setup, test_size);
            f.element = 3;
            test_plant(&run, 1, &f);
            test_run_steps(&run, 0, 1);
            assert_all(test_step(&run, 1) == ZERO_ERR_DIVERGED);
            snprintf(said, sizeof said, "backward pass of block 0, on rank %d,", rank);
            all_told(said);
            test_run_close(&run);
        }
}
