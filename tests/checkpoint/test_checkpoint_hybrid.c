/* Checkpoints of runs whose ranks shard over R of N neighbours (--shard-ranks): any layout
 * resumes what any other has saved, and the files do not say how many replicas wrote them. */
#include "support/damage_test.h"
#include "support/resume_test.h"

/* A layout on all ranks of the job. */
typedef struct {
    int stage, tp, shard_ranks; /* R; 0: all N */
    zero_algorithm collectives;
    int node_parameters;
} arrangement;

static const arrangement arrangements[] = {
    {0, 1, 0, ZERO_ALGORITHM_P2P, 0}, {1, 1, 1, ZERO_ALGORITHM_SHM, 0},
    {2, 1, 2, ZERO_ALGORITHM_P2P, 0}, {3, 1, 2, ZERO_ALGORITHM_HIER, 0},
    {3, 1, 0, ZERO_ALGORITHM_SHM, 1}, {0, 1, 2, ZERO_ALGORITHM_P2P, 0},
    {2, 2, 1, ZERO_ALGORITHM_SHM, 0}, {3, 2, 0, ZERO_ALGORITHM_P2P, 0},
};

/* False if the ranks of the job cannot be arranged so. */
static bool is_possible(const arrangement *a)
{
    int N = test_size / a->tp, R = a->shard_ranks > 0 ? a->shard_ranks : N;
    return test_size % a->tp == 0 && N % R == 0;
}

/* A step has as many microbatches as the job has ranks, and sums are those of two slices, so that
 * bits do not depend on the arrangement. */
static test_setup arranged(const arrangement *a, zero_type type)
{
    zero_plan_input plan = {.stage = a->stage,
                            .collectives = a->collectives,
                            .shard_ranks = a->shard_ranks,
                            .node_parameters = a->node_parameters};
    test_setup setup = with_layout(&plan, type);
    setup.shape.hidden = 16;
    setup.shape.heads = 2;
    setup.tp = a->tp;
    setup.slices = 2;
    setup.plan.micro_batch = 1;
    setup.plan.accumulation = a->tp;
    setup.plan.reproducible = test_size % 2 == 0;
    return setup;
}

TEST(arrangements_resume_what_others_have_saved)
{
    for (size_t from = 0; from < COUNT(arrangements); from++) {
        test_place place;
        zero_type type = from % 2 == 0 ? ZERO_FP32 : ZERO_BF16;
        if (!is_possible(&arrangements[from])) continue;
        test_place_open(&place);
        test_setup setup = arranged(&arrangements[from], type);
        course expected = never_stopped(&setup, test_size, &place);
        /* Three of them, to save time. */
        for (size_t k = 0; k < COUNT(arrangements); k += 3) {
            size_t to = (from + k) % COUNT(arrangements);
            if (!is_possible(&arrangements[to])) continue;
            setup = arranged(&arrangements[to], type);
            check_resumed(&setup, test_size, &place, &expected);
        }
        test_place_close(&place);
    }
}

/* Another number of ranks loads it, too. */
TEST(fewer_ranks_load_what_replicas_have_saved)
{
    const arrangement saved = {3, 1, test_size % 2 == 0 ? 2 : 1, ZERO_ALGORITHM_P2P, 0};
    test_setup setup = arranged(&saved, ZERO_BF16);
    test_place place;
    test_place_open(&place);
    course expected = never_stopped(&setup, test_size, &place);
    for (int n = 1; n < test_size; n++) {
        test_run run;
        setup = as_loader(setup);
        setup.plan.shard_ranks = n % 2 == 0 ? 1 : 0;
        setup.plan.reproducible = 0; /* no step follows */
        test_run_open(&run, &setup, n);
        test_load(&run, &place, SAVED);
        assert_all(test_same(test_run_digest(&run), expected.at_save));
        test_run_close(&run);
    }
    test_place_close(&place);
}

/* ---- the files ---- */

static void save_into(test_place *place, int shard_ranks)
{
    const arrangement a = {2, 1, shard_ranks, ZERO_ALGORITHM_P2P, 0};
    test_setup setup = arranged(&a, ZERO_FP32);
    test_place_open(place);
    (void)never_stopped(&setup, test_size, place);
}

static zero_bytes read_file(const test_place *place, const char *name)
{
    victim v = choose(place, SAVED, name);
    return v.good;
}

TEST(the_files_are_those_of_a_run_without_replicas)
{
    test_place alone, replicas;
    save_into(&alone, 0);
    save_into(&replicas, 1);
    for (int r = 0; r <= test_size && test_rank == 0; r++) {
        char name[64] = ZERO_MANIFEST_NAME;
        if (r < test_size) zero_shard_name(r, test_size, name);
        zero_bytes a = read_file(&alone, name), b = read_file(&replicas, name);
        if (a.len != b.len || memcmp(a.bytes, b.bytes, a.len) != 0)
            fail_msg("%s differs", name);
        zero_bytes_destroy(&a);
        zero_bytes_destroy(&b);
    }
    test_place_close(&replicas);
    test_place_close(&alone);
}

/* Every shard is read, though no replica needs those of the others. */
TEST(a_damaged_shard_of_any_replica_is_refused_and_named)
{
    const arrangement a = {1, 1, 1, ZERO_ALGORITHM_P2P, 0};
    test_setup setup = as_loader(arranged(&a, ZERO_FP32));
    test_place place;
    save_into(&place, 1);
    for (int r = 0; r < test_size; r++) {
        char path[400];
        test_run run;
        victim v = choose_shard(&place, SAVED, r, test_size);
        test_step_path(&place, SAVED, path);
        MPI_Barrier(MPI_COMM_WORLD);
        if (test_rank == 0) {
            v.good.bytes[v.good.len - 1] ^= 1;
            restore(&v);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        test_run_open(&run, &setup, test_size);
        zero_status st = test_try_load(&run, path);
        assert_all(st == ZERO_ERR_FORMAT && strstr(zero_last_error(), name_of(&v)));
        test_run_close(&run);
        if (test_rank == 0) {
            v.good.bytes[v.good.len - 1] ^= 1;
            restore(&v);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        zero_bytes_destroy(&v.good);
    }
    test_place_close(&place);
}
