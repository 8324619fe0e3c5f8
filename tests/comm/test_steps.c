/* The step lists of all algorithms but `mpi`, run by the machine of step_machine.h. */
#include "support/share.h"
#include "support/step_cases.h"

#define TRIALS (24 / TEST_SHARE(4)) /* per layout, algorithm and kind */

static void run_layout(zero_algorithm algorithm, zero_collective_kind kind,
                       const zero_layout *layout)
{
    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        machine_case c = vary_case(algorithm, kind, layout, trial);
        assert_true(machine_run(&c, NULL));
    }
}

static void run_all(zero_algorithm algorithm)
{
    for (size_t i = 0; i < COUNT(test_layouts); i++) {
        zero_layout layout = layout_of(test_layouts[i]);
        bool runs = algorithm != ZERO_ALGORITHM_SHM || layout.n_nodes == 1;
        for (int kind = 0; runs && kind < ZERO_COLLECTIVE_KINDS; kind++)
            run_layout(algorithm, (zero_collective_kind)kind, &layout);
        zero_layout_destroy(&layout);
    }
}

TEST(pairs_give_the_tree_sum_and_every_piece_in_any_order_of_events)
{
    run_all(ZERO_ALGORITHM_P2P);
}

TEST(windows_give_the_tree_sum_and_every_piece_in_any_order_of_events)
{
    run_all(ZERO_ALGORITHM_SHM);
}

TEST(two_levels_give_the_tree_sum_and_every_piece_in_any_order_of_events)
{
    run_all(ZERO_ALGORITHM_HIER);
}

TEST(ranks_in_no_order_exchange_in_pairs)
{
    zero_layout layout;
    assert_ok(zero_layout_init(&layout, 6, (const int[]){0, 1, 0, 1, 2, 0}));
    for (int kind = 0; kind < ZERO_COLLECTIVE_KINDS; kind++)
        run_layout(ZERO_ALGORITHM_P2P, (zero_collective_kind)kind, &layout);
    zero_layout_destroy(&layout);
}

/* Chunks of the algorithms' own size, more of them than are in flight at once. */
TEST(pieces_of_many_full_chunks_arrive)
{
    static const node_sizes some[] = {{3}, {2, 1}, {2, 2}, {1, 1, 1}};
    for (uint64_t trial = 0; trial < 8 * ZERO_COLLECTIVE_KINDS; trial += TEST_SHARE(3)) {
        zero_layout layout = layout_of(some[trial % 4]);
        int64_t count = 300000 + (int64_t)trial;
        zero_algorithm algorithm = trial / 4 % 2 ? ZERO_ALGORITHM_HIER : ZERO_ALGORITHM_P2P;
        machine_case c = {.layout = &layout, .trial = trial, .requests = 32};
        c.spec = (zero_collective_spec){.kind = (zero_collective_kind)(trial / 8),
                                        .algorithm = algorithm,
                                        .count = count,
                                        .stride = count + 64};
        assert_true(machine_run(&c, NULL));
        zero_layout_destroy(&layout);
    }
}

/* ---- bounded messages ---- */

/* Where the send stands that is ZERO_PACE sends before step i, or 0. */
static int64_t paced_send(const zero_steps *s, int64_t i)
{
    int sends = 0;
    while (i > 0 && sends < ZERO_PACE) sends += s->list[--i].kind == ZERO_STEP_SEND;
    return sends == ZERO_PACE ? i : 0;
}

static void check_messages(const zero_collective_spec *spec, const zero_layout *layout,
                           int rank)
{
    zero_steps s;
    assert_ok(zero_steps_init(&s, spec, layout, rank));
    for (int64_t i = 0; i < s.n; i++) {
        const zero_collective_step *step = &s.list[i];
        int64_t bytes = step->len * (int64_t)zero_type_size(step->type);
        bool sends = step->kind == ZERO_STEP_SEND;
        if (sends || step->kind == ZERO_STEP_RECEIVE) assert_true(bytes <= spec->message);
        if (sends) assert_true(step->received >= paced_send(&s, i) && step->received <= i);
    }
    zero_steps_destroy(&s);
}

/* Larger than what the algorithms would choose for pieces of this length, and much smaller. */
TEST(messages_are_bounded_and_keep_pace)
{
    static const node_sizes some[] = {{2}, {4}, {2, 2}, {3, 2, 1}, {1, 1, 1, 1}, {5, 3, 2}};
    static const int64_t sizes[] = {ZERO_LEAST_MESSAGE, 1000, 60 << 10, 1 << 30};
    for (size_t i = 0; i < COUNT(some) * COUNT(sizes) * ZERO_COLLECTIVE_KINDS; i++) {
        zero_layout layout = layout_of(some[i % COUNT(some)]);
        zero_collective_spec spec = {
            .kind = (zero_collective_kind)(i / COUNT(some) % ZERO_COLLECTIVE_KINDS),
            .type = i % 2 ? ZERO_BF16 : ZERO_FP32,
            .count = 40000,
            .stride = 40000,
            .message = sizes[i / COUNT(some) / ZERO_COLLECTIVE_KINDS],
            .in_apart = 1 << 20,
            .out_apart = 1 << 20};
        spec.result = spec.type;
        for (int rank = 0; rank < layout.size; rank++) {
            spec.algorithm = ZERO_ALGORITHM_P2P;
            check_messages(&spec, &layout, rank);
            spec.algorithm = ZERO_ALGORITHM_HIER;
            check_messages(&spec, &layout, rank);
        }
        zero_layout_destroy(&layout);
    }
}

/* ---- nonsense ---- */

static void refuse(zero_collective_spec spec, const zero_layout *layout, zero_status status)
{
    zero_steps steps = {.rank = 42};
    assert_int_equal(zero_steps_init(&steps, &spec, layout, 0), status);
    assert_non_null(zero_last_error());
    assert_int_equal(steps.rank, 42);
}

TEST(nonsense_is_refused_with_numbers)
{
    zero_layout layout = layout_of((node_sizes){2, 2});
    static const zero_collective_spec nonsense[] = {
        {.count = -1, .stride = 10},
        {.count = 11, .stride = 10},
        {.count = 1, .stride = INT64_MAX},
        {.count = 1, .stride = ((int64_t)1 << 58) + 1},
        {.count = 10, .stride = 10, .max_chunk = -1},
        {.count = 10, .stride = 10, .max_chunk = ((int64_t)1 << 28) + 1},
        {.count = 10, .stride = 10, .message = -1},
        {.count = 10, .stride = 10, .message = ZERO_LEAST_MESSAGE - 1},
        {.count = 10, .stride = 10, .message = ((int64_t)1 << 30) + 1},
        {.count = 10, .kind = ZERO_BROADCAST, .root = 4},
        {.count = 10, .kind = ZERO_BROADCAST, .root = -1},
        {.count = -1, .kind = ZERO_BROADCAST},
        {.count = 10, .kind = ZERO_REDUCE, .root = 4},
        {.count = 10, .kind = ZERO_REDUCE, .root = -1},
        {.count = INT64_MAX, .kind = ZERO_REDUCE},
        {.algorithm = ZERO_ALGORITHM_HIER,
         .kind = ZERO_ALL_GATHER,
         .in_apart = 64,
         .one_out = true,
         .max_chunk = 1,
         .count = 1 << 24,
         .stride = 1 << 24},
    };
    for (size_t i = 0; i < COUNT(nonsense); i++) {
        refuse(nonsense[i], &layout, ZERO_ERR_INVALID);
        assert_non_null(strpbrk(zero_last_error(), "0123456789"));
    }
    zero_layout_destroy(&layout);
}

TEST(only_sums_may_result_in_another_type)
{
    zero_layout layout = layout_of((node_sizes){2});
    zero_collective_spec spec = {.kind = ZERO_ALL_GATHER, .type = ZERO_BF16};
    refuse(spec, &layout, ZERO_ERR_INVALID);
    spec.kind = ZERO_BROADCAST;
    refuse(spec, &layout, ZERO_ERR_INVALID);
    spec.result = ZERO_FP16;
    spec.kind = ZERO_REDUCE_SCATTER;
    refuse(spec, &layout, ZERO_ERR_INVALID);
    spec.kind = ZERO_REDUCE;
    refuse(spec, &layout, ZERO_ERR_INVALID);
    zero_layout_destroy(&layout);
}

TEST(layouts_that_an_algorithm_cannot_run_on_are_refused)
{
    zero_layout two = layout_of((node_sizes){2, 2}), mixed;
    assert_ok(zero_layout_init(&mixed, 4, (const int[]){0, 1, 0, 1}));
    zero_collective_spec spec = {.in_apart = 64, .out_apart = 64};
    spec.algorithm = ZERO_ALGORITHM_SHM;
    refuse(spec, &two, ZERO_ERR_UNSUPPORTED);
    spec.algorithm = ZERO_ALGORITHM_HIER;
    refuse(spec, &mixed, ZERO_ERR_UNSUPPORTED);
    spec.in_apart = 0;
    spec.count = spec.stride = 1;
    refuse(spec, &two, ZERO_ERR_INVALID);
    spec.kind = ZERO_REDUCE;
    refuse(spec, &two, ZERO_ERR_INVALID);
    zero_layout_destroy(&two);
    zero_layout_destroy(&mixed);
}

TEST(algorithms_have_names_and_fit_their_layouts)
{
    zero_algorithm found;
    const char *why;
    for (int a = 0; a < ZERO_ALGORITHMS; a++) {
        assert_true(zero_algorithm_find(zero_algorithm_name((zero_algorithm)a), &found));
        assert_int_equal(found, a);
    }
    assert_false(zero_algorithm_find("", &found) || zero_algorithm_find("p2", &found));
    assert_string_equal(zero_algorithm_name_at(0), "p2p");
    assert_null(zero_algorithm_name_at(ZERO_ALGORITHMS));
    for (size_t i = 0; i < COUNT(test_layouts); i++) {
        zero_layout layout = layout_of(test_layouts[i]);
        zero_collective_spec spec = {.in_apart = 64, .out_apart = 64};
        spec.algorithm = zero_algorithm_choose(&layout, &why);
        assert_ok(zero_collective_check(&spec, &layout));
        assert_true(why[0] != '\0');
        zero_layout_destroy(&layout);
    }
}

/* ---- the tables ---- */

static bool reads_from(const zero_collective_step *step)
{
    return step->kind == ZERO_STEP_SEND || step->kind == ZERO_STEP_COPY ||
           step->kind == ZERO_STEP_MPI;
}

static bool writes_to(const zero_collective_step *step)
{
    return step->kind == ZERO_STEP_RECEIVE || step->kind == ZERO_STEP_COPY ||
           step->kind == ZERO_STEP_MPI || step->kind == ZERO_STEP_ADD;
}

/* True if a step reads or writes another rank's buffers. */
static bool leaves_rank(const zero_steps *s, const zero_collective_step *step)
{
    bool leaves = reads_from(step) && step->from.rank != s->rank;
    leaves = leaves || (writes_to(step) && step->to.rank != s->rank);
    if (step->kind != ZERO_STEP_ADD) return leaves;
    const zero_sum *sum = &s->sums[step->sum];
    for (int64_t t = 0; t < sum->n; t++)
        leaves = leaves || (sum->terms[t].staged < 0 && sum->terms[t].first != s->rank);
    return leaves;
}

static bool uses_staging(const zero_collective_step *step)
{
    return (reads_from(step) && step->from.place == ZERO_STAGING) ||
           (writes_to(step) && step->to.place == ZERO_STAGING);
}

static void check_promises(const zero_collective_spec *spec, const zero_layout *layout,
                           int rank)
{
    const zero_algorithm_table *table = zero_algorithm_get(spec->algorithm);
    bool posts = false, leaves = false, stages = false;
    zero_steps s;
    if (zero_collective_check(spec, layout) == ZERO_ERR_UNSUPPORTED) return;
    assert_ok(zero_steps_init(&s, spec, layout, rank));
    for (int64_t i = 0; i < s.n; i++) {
        posts = posts || s.list[i].kind == ZERO_STEP_MPI;
        leaves = leaves || leaves_rank(&s, &s.list[i]);
        stages = stages || uses_staging(&s.list[i]);
    }
    assert_int_equal(posts, table->posts_mpi_collectives);
    if (!table->works_in_window) assert_false(leaves);
    if (table->stages_on_root_only && spec->kind == ZERO_REDUCE)
        assert_false(stages && rank != spec->root);
    zero_steps_destroy(&s);
}

static void check_all_promises(const zero_layout *layout, int rank)
{
    for (zero_algorithm a = 0; a < ZERO_ALGORITHMS; a++)
        for (zero_collective_kind kind = 0; kind < ZERO_COLLECTIVE_KINDS; kind++)
            check_promises(&(zero_collective_spec){.algorithm = a,
                                                   .kind = kind,
                                                   .count = 1000,
                                                   .stride = 1024,
                                                   .max_chunk = 64,
                                                   .root = 1,
                                                   .in_apart = 8192,
                                                   .out_apart = 8192},
                           layout, rank);
}

TEST(algorithms_keep_the_promises_of_their_tables)
{
    static const node_sizes some[] = {{2}, {5}, {2, 2}, {3, 2, 1}, {1, 1, 1}};
    for (size_t i = 0; i < COUNT(some); i++) {
        zero_layout layout = layout_of(some[i]);
        for (int rank = 0; rank < layout.size; rank++) check_all_promises(&layout, rank);
        zero_layout_destroy(&layout);
    }
}
