/* A bit that flips in what is held more than once, or, with check_memory, in an optimizer state,
 * is noticed before the next update and before the next save. The message names the rank, the
 * tensor and the element.
 *
 * The test flips bits itself, in one rank's memory, at places drawn from a seed. What the message
 * has to say follows from the stage, the type and the nodes; it does not ask sharding/checks.h,
 * which the program asks. */
#include "base/half.h"
#include "comm/sentence.h"
#include "sharding/checks.h"
#include "support/bit_flips.h"
#include "support/checkpoint_test.h"

typedef struct {
    int stage;
    zero_type type;
    zero_algorithm collectives;
    int fake_nodes;
    int64_t persist;
    zero_partition_scheme partition;
} memory;

#define ROW(stage, type, algorithm, nodes, persist, scheme) \
    { \
        stage, ZERO_##type, ZERO_ALGORITHM_##algorithm, nodes, persist, \
            ZERO_PARTITION_##scheme \
    }

/* The last ones keep parameters, round to fp16, or have owners. */
static const memory others[] = {
    ROW(3, FP32, P2P, 0, 99, SLICE), ROW(3, FP32, HIER, 2, 99, SLICE),
    ROW(1, FP16, P2P, 0, 0, SLICE),  ROW(0, FP16, SHM, 0, 0, SLICE),
    ROW(1, BF16, SHM, 0, 0, OWNER),  ROW(2, FP32, P2P, 0, 0, OWNER),
    ROW(3, BF16, HIER, 2, 0, OWNER),
};
enum { PLAIN = 3 * 4 * 2, MEMORIES = PLAIN + COUNT(others) };

static memory memory_of(int k)
{
    static const zero_algorithm algorithms[] = {ZERO_ALGORITHM_P2P, ZERO_ALGORITHM_SHM,
                                                ZERO_ALGORITHM_HIER};
    if (k >= PLAIN) return others[k - PLAIN];
    memory m = {.stage = k / 2 % 4,
                .type = k % 2 ? ZERO_BF16 : ZERO_FP32,
                .collectives = algorithms[k / 8],
                .partition = ZERO_PARTITION_SLICE};
    if (m.collectives == ZERO_ALGORITHM_HIER) m.fake_nodes = m.stage == 2 ? 3 : 2;
    return m;
}

static spot draw_spot(const test_run *run)
{
    spot p = {.rank = (int)draw(run->comm->size),
              .tensor = (int)draw(run->model.n_tensors),
              .array = (zero_array)draw(ZERO_ARRAYS)};
    const zero_tensor *t = tensor_of(run, &p);
    bool wide = p.array != ZERO_ARRAY_PARAMETERS || run->setup.plan.type == ZERO_FP32;
    p.element = draw(t->rows * t->cols);
    p.bit = (int)draw(wide ? 32 : 16);
    return p;
}

/* ---- what is held where ---- */

static bool is_wide(const test_run *run)
{
    return run->setup.plan.type == ZERO_FP32;
}

static bool is_whole(const test_run *run)
{
    return run->setup.plan.stage < 3 || run->setup.plan.persist > 0;
}

/* The ranks of a node share its whole parameters; on one node pieces are whole together. Owners'
 * pieces are not. */
static bool is_shared(const test_run *run)
{
    return run->setup.plan.partition == ZERO_PARTITION_SLICE && run->setup.plan.stage > 0 &&
           run->setup.plan.collectives != ZERO_ALGORITHM_P2P &&
           (is_whole(run) || run->comm->layout.n_nodes == 1);
}

static int node_of(const test_run *run, int rank)
{
    return run->comm->layout.node_of[rank];
}

/* True if the flip is seen in the master's 16-bit value. The ranks ask the one that has it. */
static bool changes_rounded(const test_run *run, const spot *p)
{
    int changes = 0;
    if (run->comm->rank == p->rank) {
        uint32_t bits;
        float before, after;
        bool is_bf16 = run->setup.plan.type == ZERO_BF16;
        memcpy(&before, held_at(run, p, ZERO_ARRAY_MASTERS), sizeof before);
        memcpy(&bits, &before, sizeof bits);
        bits ^= UINT32_C(1) << p->bit;
        memcpy(&after, &bits, sizeof after);
        changes = is_bf16 ? zero_to_bf16(before) != zero_to_bf16(after)
                          : zero_to_fp16(before) != zero_to_fp16(after);
    }
    MPI_Bcast(&changes, 1, MPI_INT, p->rank, MPI_COMM_WORLD);
    return changes;
}

/* ---- what is to be said ---- */

/* "rank 2", or "ranks 2-3", which share the memory. */
static void name_holders(const test_run *run, int rank, zero_sentence *name)
{
    int class_of[8], size = run->comm->size, first = size;
    for (int r = size - 1; r >= 0; r--) {
        bool same = is_shared(run) ? node_of(run, r) == node_of(run, rank) : r == rank;
        class_of[r] = same;
        if (same) first = r;
    }
    for (int r = 0; r < size; r++) class_of[r] = class_of[r] ? first : size;
    zero_sentence_add_ranks(name, size, class_of, first);
}

/* With two copies that nothing else can tell apart, both are named. */
static void expect_one_of_copies(const test_run *run, const spot *p, int copies,
                                 zero_sentence *said)
{
    if (copies == 2) {
        zero_sentence_add(said, " hold different bits in ");
        return;
    }
    name_holders(run, p->rank, said);
    zero_sentence_add(said, " hold");
}

/* The beginning of what has to be said; false if the place is held once. */
static bool expect_words(const test_run *run, const spot *p, zero_sentence *said)
{
    bool stage_0 = run->setup.plan.stage == 0, wide = is_wide(run);
    bool whole = is_whole(run);
    int ranks = run->comm->size, owner = shard_of(run, p);
    int copies = is_shared(run) ? run->comm->layout.n_nodes : ranks;
    if (p->array == ZERO_ARRAY_MASTERS && wide) return false; /* fp32 has no masters */
    if (p->array == ZERO_ARRAY_MASTERS && (stage_0 || owner == p->rank) &&
        changes_rounded(run, p)) {
        zero_sentence_add(said, "rank %d found", p->rank);
        return true;
    }
    if (p->array == ZERO_ARRAY_PARAMETERS && !wide) {
        bool is_owned = is_shared(run) ? node_of(run, owner) == node_of(run, p->rank)
                                       : owner == p->rank;
        if (!whole && !is_owned) return false;
        if (stage_0 || is_owned)
            zero_sentence_add(said, "rank %d found", is_shared(run) ? owner : p->rank);
        else
            name_holders(run, p->rank, said);
        return true;
    }
    if (p->array == ZERO_ARRAY_PARAMETERS ? !whole : !stage_0) return false;
    if (copies == 1) return false;
    expect_one_of_copies(run, p, copies, said);
    return true;
}

static void expect_message(const test_run *run, const spot *p, const char *said)
{
    char element[160];
    snprintf(element, sizeof element, " of %s, element %d", tensor_of(run, p)->name,
             (int)p->element);
    all_told(said);
    all_told(element);
}

/* ---- flips ---- */

static zero_status step(test_run *run, int64_t number_of_it)
{
    zero_source source = test_words(run);
    zero_step_input in = test_step_input(run, number_of_it);
    return zero_engine_step(&run->engine, &source, &in, &run->last);
}

static void expect_empty(const test_place *there, int64_t step)
{
    char path[400];
    test_step_path(there, step, path);
    assert_all(access(path, F_OK) != 0);
}

/* True if other ranks hold the place, too. In a step only its own update sees other places. */
static bool is_compared(const test_run *run, const spot *p)
{
    bool stage_0 = run->setup.plan.stage == 0;
    int copies = is_shared(run) ? run->comm->layout.n_nodes : run->comm->size;
    if (p->array != ZERO_ARRAY_PARAMETERS) return stage_0 && copies > 1;
    return is_whole(run) && copies > 1 && (is_wide(run) || !stage_0);
}

/* The flip is noticed in a step, before its update, or in a save, before it writes. Undone, the
 * step does what it always does. */
static void flip_and_expect(test_run *run, const test_place *there, const spot *p,
                            int64_t done, const char *said)
{
    bool in_step = draw(2) == 0 && is_compared(run, p);
    all_ok(zero_engine_settle(&run->engine));
    flip(run, p);
    bool beside = draw(2) == 0;
    zero_status st = in_step ? step(run, done) : test_try_save_so(run, there, done, beside);
    assert_all(st == ZERO_ERR_CORRUPTED);
    expect_message(run, p, said);
    expect_empty(there, done);
    MPI_Barrier(MPI_COMM_WORLD); /* all have looked */
    flip(run, p);
}

static test_setup setup_of(memory m)
{
    test_setup setup = test_standard;
    setup.shape.vocab = 70; /* more elements than one record has, without head or tail */
    setup.shape.hidden = 60;
    setup.plan.stage = m.stage;
    setup.plan.type = m.type;
    setup.plan.collectives = m.collectives;
    setup.plan.partition = m.partition;
    setup.plan.persist = m.persist > 0 ? 1 << 20 : 0;
    int nodes = m.fake_nodes < test_size ? m.fake_nodes : test_size;
    setup.fake_nodes = nodes;
    if (m.collectives == ZERO_ALGORITHM_HIER && nodes == 1)
        setup.plan.collectives = ZERO_ALGORITHM_SHM;
    return setup;
}

enum { FLIPS = 2, TRIES = 400 };

/* Returns the number of flips; few memories have nothing that is held twice. */
static int try_memory(memory m, const test_place *there)
{
    test_setup setup = setup_of(m);
    test_digest sound = test_digest_after(&setup, test_size, 1 + FLIPS);
    test_run run;
    int flips = 0;
    setup.plan.check_replicas = 1;
    test_run_open(&run, &setup, test_size);
    test_run_steps(&run, 0, 1);
    for (int n = 0; n < TRIES && flips < FLIPS; n++) {
        spot p = draw_spot(&run);
        zero_sentence said = {.used = 0};
        if (!expect_words(&run, &p, &said)) continue;
        flip_and_expect(&run, there, &p, 1 + flips, said.chars);
        test_run_steps(&run, 1 + flips, 1);
        flips++;
    }
    test_run_steps(&run, 1 + flips, FLIPS - flips);
    assert_all(test_same(sound, test_run_digest(&run)));
    assert_all(zero_is_checked(&run.engine.schedule) == (flips > 0));
    test_run_close(&run);
    return flips;
}

TEST(copies_that_differ_are_noticed)
{
    test_place there;
    int flips = 0;
    test_place_open(&there);
    for (int k = 0; k < MEMORIES; k++) flips += try_memory(memory_of(k), &there);
    test_place_close(&there);
    print_message("%d flips\n", flips);
    assert_true(test_size == 1 || flips >= 40);
}

/* ---- optimizer states ---- */

/* The block of elements that a record covers: from the begin of this rank's part of the tensor. */
static zero_range block_of(const test_run *run, const spot *p)
{
    const zero_tensor *t = tensor_of(run, p);
    zero_range all = zero_range_of_tensor(t);
    zero_range held = {0, group_of(run, p)->partition.n_params};
    if (run->setup.plan.stage > 0)
        held = zero_partition_shard(&group_of(run, p)->partition, p->rank);
    zero_range part = zero_range_overlap(all, held);
    int64_t first = part.begin - t->offset, last = part.end - t->offset;
    int64_t begin = first + (p->element - first) / ZERO_RECORD_BLOCK * ZERO_RECORD_BLOCK;
    return (zero_range){begin, zero_min(begin + ZERO_RECORD_BLOCK, last)};
}

static bool is_state(const test_run *run, const spot *p)
{
    bool is_master =
        p->array == (is_wide(run) ? ZERO_ARRAY_PARAMETERS : ZERO_ARRAY_MASTERS);
    bool held = run->setup.plan.stage == 0 || shard_of(run, p) == p->rank;
    return held && (is_master || p->array >= ZERO_ARRAY_STATES);
}

static void expect_state_message(const test_run *run, const spot *p)
{
    zero_range block = block_of(run, p);
    char said[300], elements[60];
    snprintf(elements, sizeof elements, "s %d to %d.", (int)block.begin,
             (int)block.end - 1);
    if (zero_range_len(block) == 1)
        snprintf(elements, sizeof elements, " %d.", (int)block.begin);
    snprintf(said, sizeof said,
             "rank %d sees bits changed since the last update in the %s of "
             "%s, element%s",
             p->rank, zero_array_name(&run->engine.schedule, p->array),
             tensor_of(run, p)->name, elements);
    all_told(said);
}

static int try_states(memory m, const test_place *there)
{
    test_setup setup = setup_of(m);
    test_digest sound = test_digest_after(&setup, test_size, 3);
    test_run run;
    int flips = 0;
    setup.plan.check_memory = 1;
    test_run_open(&run, &setup, test_size);
    test_run_steps(&run, 0, 1);
    while (flips < 2) {
        spot p = draw_spot(&run);
        if (!is_state(&run, &p)) continue;
        all_ok(zero_engine_settle(&run.engine));
        flip(&run, &p);
        zero_status st = flips == 0 ? step(&run, 1) : test_try_save(&run, there, 1 + flips);
        assert_all(st == ZERO_ERR_CORRUPTED);
        expect_state_message(&run, &p);
        expect_empty(there, 1 + flips);
        flip(&run, &p);
        test_run_steps(&run, 1 + flips, 1);
        flips++;
    }
    assert_all(test_same(sound, test_run_digest(&run)));
    test_run_close(&run);
    return flips;
}

TEST(states_that_change_between_updates_are_noticed)
{
    test_place there;
    int flips = 0;
    test_place_open(&there);
    for (int k = 0; k < MEMORIES; k += 3) flips += try_states(memory_of(k), &there);
    test_place_close(&there);
    assert_true(flips >= 10);
}

/* ---- when ---- */

/* A share of them in each step: it depends on the place which of N steps finds a flip. */
TEST(all_copies_are_compared_in_n_steps)
{
    enum { N = 3 };
    int found_in[N] = {0};
    test_setup setup = test_standard;
    test_run run;
    if (test_size == 1) return;
    setup.plan.check_replicas = N;
    for (int k = 0; k < 8; k++) {
        spot p = {.rank = test_size - 1, .array = ZERO_ARRAY_STATES + 1, .bit = 30};
        char text[16];
        int64_t at = 0;
        test_run_open(&run, &setup, test_size);
        p.tensor = (run.model.n_tensors - 1) * k / 7;
        flip(&run, &p);
        while (at < N && step(&run, at) == ZERO_OK) at++;
        assert_all(at < N);
        snprintf(text, sizeof text, "step %d: ", (int)at + 1);
        assert_all(strncmp(zero_last_error(), text, strlen(text)) == 0);
        found_in[at]++;
        test_run_close(&run);
    }
    for (int i = 0; i < N; i++) assert_all(found_in[i] > 0);
    assert_all(zero_exit_code(ZERO_ERR_CORRUPTED) == 1);
}

/* Two ranks with the same wrong value are not a majority of four, and two of five are named. */
TEST(several_ranks_may_be_wrong)
{
    test_setup setup = test_standard;
    test_run run;
    if (test_size < 4) return;
    setup.plan.check_replicas = 1;
    test_run_open(&run, &setup, test_size);
    for (int rank = 1; rank < 3; rank++) {
        spot p = {.rank = rank, .tensor = 3, .array = ZERO_ARRAY_STATES, .bit = 30};
        p.element = 5;
        flip(&run, &p);
    }
    assert_all(zero_engine_check(&run.engine) == ZERO_ERR_CORRUPTED);
    assert_all(strstr(zero_last_error(), "ranks 0,3 and ranks 1-2 hold different bits") ==
               zero_last_error());
    test_run_close(&run);
}
