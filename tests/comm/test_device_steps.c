/* The step lists of collectives whose data is a device's, run by the machine of step_machine.h. */
#include "lists/mirror.h"
#include "support/share.h"
#include "support/step_cases.h"

#define TRIALS 5 /* per layout, algorithm and kind */

static machine_case on_device(machine_case c)
{
    static const int64_t copies[] = {1, 3, MACHINE_COPIES / 2};
    uint64_t random = oracle_mix(c.trial + 77);
    c.spec.on_device = true;
    c.spec.one_out = false;
    c.spec.in_place = c.in_place && !zero_collective_sums(c.spec.kind) && toss(&random);
    c.copies = (int)pick(&random, COUNT(copies), copies);
    return c;
}

/* Neighbours read each other's devices: any spec of a window, without mirrors. */
static machine_case directly(machine_case c)
{
    c = on_device(c);
    c.spec.direct = true;
    c.spec.in_place = false;
    return c;
}

static void run_all(zero_algorithm algorithm, machine_case vary(machine_case c))
{
    for (size_t i = 0; i < COUNT(test_layouts) * ZERO_ALL_REDUCE; i++) {
        zero_layout layout = layout_of(test_layouts[i / ZERO_ALL_REDUCE]);
        zero_collective_kind kind = (zero_collective_kind)(i % ZERO_ALL_REDUCE);
        bool runs = algorithm != ZERO_ALGORITHM_SHM || layout.n_nodes == 1;
        for (uint64_t trial = 0; runs && trial < TRIALS; trial += TEST_SHARE(3)) {
            machine_case c =
                vary(vary_case(algorithm, kind, &layout, 37 * trial + 11 * (uint64_t)i));
            assert_true(machine_run(&c, NULL));
        }
        zero_layout_destroy(&layout);
    }
}

TEST(pairs_give_devices_the_bits_of_the_tree)
{
    run_all(ZERO_ALGORITHM_P2P, on_device);
}

TEST(windows_give_devices_the_bits_of_the_tree)
{
    run_all(ZERO_ALGORITHM_SHM, on_device);
}

TEST(neighbours_devices_give_the_bits_of_the_tree)
{
    for (int size = 1; size <= 9; size++) {
        zero_layout layout;
        assert_ok(zero_layout_init_blocks(&layout, size, 1));
        for (uint64_t i = 0; i < 10 * ZERO_ALL_REDUCE; i += TEST_SHARE(3)) {
            zero_collective_kind kind = (zero_collective_kind)(i % ZERO_ALL_REDUCE);
            machine_case c = directly(
                vary_case(ZERO_ALGORITHM_SHM, kind, &layout, 91 * i + (uint64_t)size));
            assert_true(machine_run(&c, NULL));
        }
        zero_layout_destroy(&layout);
    }
}

/* The same inside nodes of all sizes, with messages from and to staging between them; or messages from
 * and to devices alone. */
TEST(neighbours_devices_in_several_nodes_give_the_bits_of_the_tree)
{
    run_all(ZERO_ALGORITHM_HIER, directly);
}

TEST(messages_between_devices_give_the_bits_of_the_tree)
{
    run_all(ZERO_ALGORITHM_P2P, directly);
}

TEST(two_levels_give_devices_the_bits_of_the_tree)
{
    run_all(ZERO_ALGORITHM_HIER, on_device);
}

/* Chunks of the algorithms' own size, more of them than copies are in flight. */
TEST(pieces_of_many_full_chunks_reach_the_device)
{
    static const node_sizes some[] = {{3}, {2, 1}, {2, 2}, {1, 1, 1}};
    for (uint64_t trial = 0; trial < 4 * ZERO_ALL_REDUCE; trial += TEST_SHARE(3)) {
        zero_layout layout = layout_of(some[trial % 4]);
        int64_t count = 300000 + (int64_t)trial;
        machine_case c = {.layout = &layout, .trial = trial, .requests = 32, .copies = 8};
        c.spec = (zero_collective_spec){
            .kind = (zero_collective_kind)(trial / 4),
            .algorithm = (trial + trial / 4) % 2 ? ZERO_ALGORITHM_HIER : ZERO_ALGORITHM_P2P,
            .on_device = true,
            .count = count,
            .stride = count + 64};
        assert_true(machine_run(&c, NULL));
        zero_layout_destroy(&layout);
    }
}

/* ---- traffic ---- */

typedef struct {
    int64_t fetched, stored; /* bytes */
} copied;

static bool is_owner(const zero_collective_spec *spec, int rank)
{
    return rank == spec->root || !zero_collective_has_root(spec->kind);
}

/* Each element that a rank gives is fetched once, and each that it gets is stored once. */
static copied closed_form(const zero_collective_spec *spec, int size, int rank)
{
    int64_t in = spec->count * (int64_t)zero_type_size(spec->type);
    int64_t out = spec->count * (int64_t)zero_type_size(spec->result);
    bool owner = is_owner(spec, rank);
    switch (spec->kind) {
    case ZERO_REDUCE_SCATTER: return (copied){size * in, out};
    case ZERO_ALL_GATHER: return (copied){in, (size - spec->in_place) * out};
    case ZERO_REDUCE: return (copied){in, owner ? out : 0};
    case ZERO_BROADCAST:
    case ZERO_ALL_REDUCE: break;
    }
    return (copied){owner ? in : 0, owner && spec->in_place ? 0 : out};
}

/* Messages and reads are those of the collective on the host. */
static void check_traffic(zero_collective_spec spec, const zero_layout *layout, int rank,
                          copied expected)
{
    zero_traffic t, host;
    assert_ok(zero_collective_traffic(&spec, layout, rank, &t));
    spec.on_device = spec.in_place = spec.direct = false;
    assert_ok(zero_collective_traffic(&spec, layout, rank, &host));
    assert_int_equal(t.bytes_fetched, expected.fetched);
    assert_int_equal(t.bytes_stored, expected.stored);
    assert_int_equal(host.bytes_fetched + host.bytes_stored, 0);
    t.bytes_fetched = t.bytes_stored = 0;
    assert_memory_equal(&t, &host, sizeof t);
}

/* The spec number `way` of an algorithm, for all kinds and types. */
static zero_collective_spec spec_of(zero_algorithm algorithm, int way)
{
    static const zero_type types[][2] = {
        {ZERO_FP32, ZERO_FP32}, {ZERO_BF16, ZERO_BF16}, {ZERO_BF16, ZERO_FP32}};
    zero_collective_kind kind = (zero_collective_kind)(way % ZERO_ALL_REDUCE);
    int t = way / ZERO_ALL_REDUCE % (zero_collective_sums(kind) ? 3 : 2);
    return (zero_collective_spec){.algorithm = algorithm,
                                  .kind = kind,
                                  .type = types[t][0],
                                  .result = types[t][1],
                                  .count = 1000,
                                  .stride = 1331,
                                  .max_chunk = 64,
                                  .root = 1,
                                  .in_apart = 1 << 20,
                                  .out_apart = 1 << 20,
                                  .on_device = true};
}

/* Nothing passes through the host, neighbours read as in a window, messages are those of hosts, and no
 * mirror takes memory. */
TEST(direct_collectives_copy_nothing_to_the_host)
{
    zero_layout layout = layout_of((node_sizes){5});
    for (int way = 0; way < 24; way++) {
        zero_algorithm algorithm = way < 12 ? ZERO_ALGORITHM_SHM : ZERO_ALGORITHM_P2P;
        zero_collective_spec spec = spec_of(algorithm, way % 12), host = spec;
        spec.direct = true;
        host.on_device = false;
        assert_int_equal(zero_collective_staging(&spec, &layout),
                         zero_collective_staging(&host, &layout));
        for (int rank = 0; rank < layout.size; rank++)
            check_traffic(spec, &layout, rank, (copied){0, 0});
    }
    zero_layout_destroy(&layout);
}

/* Nodes of n_local ranks, a power of two: a rank fetches sums of its node alone, for the pieces that it
 * works for, and stores what no neighbour stores. */
static copied between_nodes(const zero_collective_spec *spec, int nodes, int n_local,
                            int rank)
{
    int64_t in = spec->count * (int64_t)zero_type_size(spec->type);
    int64_t out = spec->count * (int64_t)zero_type_size(spec->result);
    int64_t sum = spec->count * (int64_t)sizeof(float);
    int root_node = spec->root / n_local, root_local = spec->root % n_local;
    bool is_root = rank == spec->root, works = rank % n_local == root_local;
    bool leads = rank / n_local != root_node && rank % n_local == 0;
    switch (spec->kind) {
    case ZERO_REDUCE_SCATTER: return (copied){nodes * sum, out};
    case ZERO_ALL_GATHER: return (copied){in, (nodes - 1) * out};
    case ZERO_REDUCE: return (copied){works ? sum : 0, is_root ? out : 0};
    case ZERO_BROADCAST:
    case ZERO_ALL_REDUCE: break;
    }
    return (copied){is_root ? in : 0, leads ? out : 0};
}

TEST(only_what_other_nodes_need_passes_through_the_host)
{
    static const int shapes[][2] = {{2, 2}, {2, 4}, {4, 2}};
    for (int i = 0; i < (int)COUNT(shapes) * 12; i++) {
        int nodes = shapes[i / 12][0], n_local = shapes[i / 12][1];
        zero_layout layout;
        zero_collective_spec spec = spec_of(ZERO_ALGORITHM_HIER, i % 12);
        spec.direct = true;
        assert_ok(zero_layout_init_blocks(&layout, nodes * n_local, nodes));
        assert_true(zero_collective_staging(&spec, &layout) <= ZERO_COLLECTIVE_STAGING);
        for (int rank = 0; rank < layout.size; rank++)
            check_traffic(spec, &layout, rank, between_nodes(&spec, nodes, n_local, rank));
        zero_layout_destroy(&layout);
    }
}

TEST(each_element_is_copied_once_in_each_direction)
{
    static const node_sizes some[] = {{2}, {5}, {2, 2}, {3, 2, 1}, {1, 1, 1}};
    for (size_t i = 0; i < COUNT(some); i++) {
        zero_layout layout = layout_of(some[i]);
        for (int run = 0; run < 24 * ZERO_ALGORITHMS; run++) {
            zero_collective_spec spec = spec_of((zero_algorithm)(run / 24), run % 12);
            spec.in_place = run % 24 >= 12 && !zero_collective_sums(spec.kind);
            bool runs = spec.algorithm != ZERO_ALGORITHM_SHM || layout.n_nodes == 1;
            for (int rank = 0; runs && rank < layout.size; rank++)
                check_traffic(spec, &layout, rank, closed_form(&spec, layout.size, rank));
        }
        zero_layout_destroy(&layout);
    }
}

/* ---- staging ---- */

/* Mirrors hold count elements of each piece, and nothing else grows with the count. */
TEST(staging_is_mirrors_and_a_bounded_part)
{
    zero_layout layout = layout_of((node_sizes){3, 3});
    for (int run = 0; run < 12 * ZERO_ALGORITHMS; run++) {
        zero_collective_spec spec = spec_of((zero_algorithm)(run / 12), run % 12);
        size_t last = 0;
        spec.max_chunk = run % 2 ? 1000 : 0;
        spec.stride = 1 << 22;
        for (spec.count = 0; spec.count < spec.stride; spec.count += 1 + spec.count / 3) {
            size_t staging = zero_collective_staging(&spec, &layout), most = 0;
            size_t in = (size_t)spec.count * zero_type_size(spec.type);
            size_t out = (size_t)spec.count * zero_type_size(spec.result);
            size_t mirrors = zero_collective_mirrors(&spec, layout.size, 2).staged;
            bool shares = !zero_collective_sums(spec.kind) || spec.type == spec.result;
            most = (zero_collective_has_root(spec.kind) ? 1 : 6) * in + (shares ? 0 : out);
            assert_true(mirrors % 64 == 0 && mirrors >= most && mirrors < most + 128);
            assert_true(staging >= last && staging >= mirrors);
            assert_true(staging - mirrors <= ZERO_COLLECTIVE_STAGING ||
                        !zero_algorithm_get(spec.algorithm)->bounds_staging);
            last = staging;
        }
    }
    zero_layout_destroy(&layout);
}

/* ---- overlap ---- */

/* The longest row of copies of one kind without another step in between. */
static int64_t longest_row(const zero_steps *s, zero_step_kind kind)
{
    int64_t row = 0, longest = 0;
    for (int64_t i = 0; i < s->n; i++) {
        row = s->list[i].kind == kind ? row + 1 : 0;
        longest = row > longest ? row : longest;
    }
    return longest;
}

static int64_t count_kind(const zero_steps *s, zero_step_kind kind)
{
    int64_t n = 0;
    for (int64_t i = 0; i < s->n; i++) n += s->list[i].kind == kind;
    return n;
}

/* Where all data passes through a rank chunk by chunk, copies stand between the other steps and not
 * all before or after them. */
TEST(copies_go_on_while_other_chunks_travel)
{
    static const node_sizes some[] = {{3}, {2, 2}, {1, 1, 1}};
    for (int run = 0; run < 12 * 3; run++) {
        zero_layout layout = layout_of(some[run / 12]);
        zero_algorithm algorithm = run / 4 % 3 == 0   ? ZERO_ALGORITHM_P2P
                                   : run / 4 % 3 == 1 ? ZERO_ALGORITHM_HIER
                                                      : ZERO_ALGORITHM_SHM;
        zero_collective_spec spec = spec_of(algorithm, run % 4);
        zero_steps s;
        spec.max_chunk = 0;
        spec.count = spec.stride = 1 << 23;
        if (algorithm == ZERO_ALGORITHM_SHM && layout.n_nodes > 1) spec.count = 0;
        if (spec.count > 0) {
            assert_ok(zero_steps_init(&s, &spec, &layout, 1));
            bool gathers = spec.kind == ZERO_ALL_GATHER; /* `in` is but one piece of many */
            if (!gathers) assert_true(longest_row(&s, ZERO_STEP_FETCH) <= 12);
            assert_true(longest_row(&s, ZERO_STEP_STORE) <= 16);
            assert_true(count_kind(&s, ZERO_STEP_FETCH) >= 32);
            assert_true(count_kind(&s, ZERO_STEP_STORE) >= 32);
            zero_steps_destroy(&s);
        }
        zero_layout_destroy(&layout);
    }
}

/* ---- nonsense ---- */

static void refuse(zero_collective_spec spec, const char *words)
{
    zero_layout layout = layout_of((node_sizes){2});
    zero_steps steps = {.rank = 42};
    assert_fails(zero_steps_init(&steps, &spec, &layout, 0), ZERO_ERR_INVALID, words);
    assert_int_equal(steps.rank, 42);
    zero_layout_destroy(&layout);
}

TEST(one_array_for_several_devices_is_refused)
{
    zero_collective_spec spec = spec_of(ZERO_ALGORITHM_SHM, ZERO_ALL_GATHER);
    spec.one_out = true;
    refuse(spec, "one 'out'");
    spec = spec_of(ZERO_ALGORITHM_SHM, ZERO_REDUCE_SCATTER);
    spec.in_place = true;
    refuse(spec, "in_place");
    spec = spec_of(ZERO_ALGORITHM_SHM, ZERO_ALL_GATHER);
    spec.on_device = false;
    spec.in_place = true;
    refuse(spec, "in_place");
    spec.in_place = false;
    spec.direct = true;
    refuse(spec, "a direct all-gather");
    spec = spec_of(ZERO_ALGORITHM_MPI, ZERO_REDUCE);
    spec.direct = true;
    refuse(spec, "neighbours read its memory");
}
