/* Random collectives on random layouts, several in flight, whose ranks come and look when they
 * like: everybody gets to the end, and what has travelled is what a run would move. */
#include "simulation/step_lists.h"
#include "support/exchange_run.h"
#include "support/share.h"
#include "support/step_cases.h"

#define EVENT_OF_BEGIN ((zero_event_kind)(ZERO_EVENT_RANK + 1)) /* a kind of this test */

#define TRIALS (1000 / TEST_SHARE(5))
#define RANKS  24
#define CALLS  3
#define BEGINS 1000 /* event BEGINS * call + member: the member begins the call */

typedef struct {
    uint64_t number, random;
    zero_layout layout;
    zero_collective_spec specs[CALLS];
    int lists[CALLS], group, begun[RANKS];
    bool is_early, noted[CALLS][RANKS];
    exchange_run run;
    double when[4 * RANKS * CALLS]; /* each begin, in the order in which they happened */
    int n;
} trial;

static int draw(trial *t, int below)
{
    t->random = oracle_mix(t->random);
    return (int)(t->random % (uint64_t)below);
}

/* One node, blocks of any sizes, or ranks spread over nodes. */
static void draw_layout(trial *t)
{
    int ids[RANKS], n = 1 + draw(t, RANKS), shape = draw(t, 4);
    for (int r = 0, node = 0; r < n; r++) {
        if (shape == 1) node += r > 0 && draw(t, 3) == 0;
        if (shape == 2) node = draw(t, 4);
        if (shape == 3) node = r / 4;
        ids[r] = node;
    }
    assert_ok(zero_layout_init(&t->layout, n, ids));
}

static zero_algorithm draw_algorithm(trial *t)
{
    if (t->layout.n_nodes == 1 && draw(t, 2)) return ZERO_ALGORITHM_SHM;
    return t->layout.in_blocks && draw(t, 3) > 0 ? ZERO_ALGORITHM_HIER : ZERO_ALGORITHM_P2P;
}

static void draw_specs(trial *t)
{
    for (int i = 0; i < CALLS; i++) {
        zero_collective_kind kind = (zero_collective_kind)draw(t, ZERO_ALL_REDUCE);
        t->specs[i] = vary_spec(draw_algorithm(t), kind, t->layout.size, &t->random);
        t->specs[i].in_apart = t->specs[i].out_apart = 1;
        t->specs[i].in_turn = draw(t, 2);
    }
}

static void open_trial(trial *t, uint64_t number)
{
    *t = (trial){.number = number, .random = number};
    draw_layout(t);
    draw_specs(t);
    zero_network_input network = {.layout = &t->layout,
                                  .across = {1e-6, 1e9},
                                  .inside = {1e-7, 1e10},
                                  .adapter = draw(t, 2) ? 1.5e9 : (double)INFINITY,
                                  .switch_nodes = draw(t, 3),
                                  .switch_ratio = 1.0 + draw(t, 3)};
    run_open(&t->run, &network, draw(t, 2) ? 1e10 : (double)INFINITY);
    t->group = run_group(&t->run, &t->layout);
    for (int i = 0; i < CALLS; i++)
        assert_ok(zero_exchanges_add_lists(t->run.x, t->group, &t->specs[i], &t->lists[i]));
}

static void close_trial(trial *t)
{
    run_close(&t->run);
    zero_layout_destroy(&t->layout);
}

/* ---- running ---- */

/* Whose data, or whose receive, the member needs before it can be over. */
static bool needs(const zero_collective_spec *spec, int member, int other)
{
    if (spec->count == 0) return false;
    if (spec->kind == ZERO_REDUCE && member == spec->root) return true;
    return !zero_collective_has_root(spec->kind) || other == spec->root;
}

/* Nobody is over before those that it needs have begun, whatever the events were. */
static void note_ends(trial *t, int member)
{
    for (int call = 0; call < t->begun[member]; call++) {
        bool is_over = zero_exchange_is_over(t->run.x, t->group, call, member);
        if (!is_over || t->noted[call][member]) continue;
        t->noted[call][member] = true;
        for (int r = 0; r < t->layout.size; r++)
            if (t->begun[r] <= call && needs(&t->specs[call], member, r))
                t->is_early = true;
    }
}

static void expect_begin(trial *t, int member)
{
    if (t->begun[member] == CALLS) return;
    double later = t->run.events.now + draw(t, 5) * (draw(t, 8) == 0 ? 1e-3 : 1e-6);
    zero_events_add(&t->run.events, later, EVENT_OF_BEGIN,
                    BEGINS * t->begun[member] + member);
}

static void begin(trial *t, int which)
{
    int call = which / BEGINS, member = which % BEGINS;
    run_begin(&t->run, t->group, call, t->lists[call], member);
    t->begun[member]++;
    t->when[t->n++] = t->run.events.now;
    note_ends(t, member);
    expect_begin(t, member);
}

/* Ranks that were stirred look at once, or a little later. */
static void look(trial *t, int rank)
{
    double later = t->run.events.now + (1 + draw(t, 8)) * 1e-7;
    if (draw(t, 3) == 0)
        zero_events_add(&t->run.events, later, ZERO_EVENT_RANK, rank);
    else
        run_look(&t->run, rank);
    note_ends(t, rank);
}

static bool is_over(const trial *t)
{
    for (int call = 0; call < CALLS; call++)
        for (int r = 0; r < t->layout.size; r++)
            if (!zero_exchange_is_over(t->run.x, t->group, call, r)) return false;
    return true;
}

static bool run_trial(trial *t)
{
    zero_event event;
    for (int r = 0; r < t->layout.size; r++) expect_begin(t, r);
    while (zero_events_next(&t->run.events, &event)) {
        if (event.kind == ZERO_EVENT_NETWORK)
            zero_network_happens(zero_exchanges_network(t->run.x), &event);
        if (event.kind == ZERO_EVENT_RANK) look(t, event.which);
        if (event.kind == EVENT_OF_BEGIN) begin(t, event.which);
    }
    assert_ok(zero_exchanges_status(t->run.x));
    return is_over(t);
}

/* ---- what has travelled ---- */

static int64_t bytes_on(const trial *t, zero_link_kind kind, int rank)
{
    return zero_network_use(zero_exchanges_network(t->run.x), kind, rank).bytes;
}

/* A reader of several neighbours at once does not count on their links. */
static bool moves(const trial *t, int rank, const zero_traffic *expected)
{
    return bytes_on(t, ZERO_LINK_RANK_OUT, rank) == expected->bytes_sent[ZERO_ACROSS] &&
           bytes_on(t, ZERO_LINK_RANK_IN, rank) == expected->bytes_received[ZERO_ACROSS] &&
           bytes_on(t, ZERO_LINK_INSIDE_IN, rank) ==
               expected->bytes_received[ZERO_INSIDE] &&
           bytes_on(t, ZERO_LINK_INSIDE_OUT, rank) <= expected->bytes_sent[ZERO_INSIDE];
}

/* The step machine runs one of them, too, in another order of events, and checks the data. */
static void run_machine(const trial *t, const zero_traffic *planned)
{
    zero_traffic moved[RANKS];
    machine_case c = {.spec = t->specs[0],
                      .layout = &t->layout,
                      .trial = t->number,
                      .requests = 32,
                      .eager = t->number % 2};
    assert_true(machine_run(&c, moved));
    assert_memory_equal(planned, moved, (size_t)t->layout.size * sizeof *moved);
}

static void expect_traffic(const trial *t, zero_traffic *expected)
{
    for (int call = 0; call < CALLS; call++) {
        zero_traffic planned[RANKS];
        for (int r = 0; r < t->layout.size; r++) {
            assert_ok(zero_collective_traffic(&t->specs[call], &t->layout, r, &planned[r]));
            zero_traffic_add(&expected[r], 1, &planned[r]);
        }
        if (call == 0) run_machine(t, planned);
    }
}

static bool has_right_traffic(const trial *t)
{
    zero_traffic expected[RANKS] = {0};
    bool right = true;
    expect_traffic(t, expected);
    for (int r = 0; r < t->layout.size; r++) right = moves(t, r, &expected[r]) && right;
    return right;
}

TEST(all_ranks_end_and_move_what_a_run_moves)
{
    for (uint64_t number = 0; number < TRIALS; number++) {
        trial t;
        open_trial(&t, number);
        bool ends = run_trial(&t), right = has_right_traffic(&t);
        if (!ends || !right || t.is_early)
            fprintf(stderr, "trial %" PRIu64 ", %d ranks on %d nodes: %s\n", number,
                    t.layout.size, t.layout.n_nodes,
                    !ends    ? "stuck"
                    : !right ? "other traffic"
                             : "over too early");
        assert_true(ends && right && !t.is_early);
        close_trial(&t);
    }
}

TEST(the_same_trial_gives_the_same_bits)
{
    for (uint64_t number = 0; number < TRIALS / 10; number++) {
        trial t[2];
        for (int i = 0; i < 2; i++) {
            open_trial(&t[i], number);
            assert_true(run_trial(&t[i]));
        }
        assert_memory_equal(t[0].when, t[1].when, sizeof t[0].when);
        assert_memory_equal(&t[0].run.end, &t[1].run.end, sizeof t[0].run.end);
        assert_int_equal(t[0].run.events.added, t[1].run.events.added);
        for (int i = 0; i < 2; i++) close_trial(&t[i]);
    }
}

/* ---- lists ---- */

static bool has_this_list(const trial *t, const zero_step_lists *lists, int set, int member)
{
    zero_packed_list own;
    zero_peers peers = zero_peers_of(&t->specs[0], &t->layout);
    const zero_packed_list *kept = zero_step_lists_get(lists->sets[set], member);
    assert_ok(zero_pack(&own, &t->specs[0], &peers, member));
    bool is = kept->n == own.n && kept->until_sent == own.until_sent &&
              memcmp(kept->steps, own.steps, (size_t)own.n * sizeof *own.steps) == 0;
    zero_packed_list_destroy(&own);
    return is;
}

/* Lists that were not written because other members' are said to be equal are indeed equal. */
TEST(each_member_has_its_own_list)
{
    for (uint64_t number = 0; number < TRIALS; number++) {
        trial t;
        zero_step_lists lists = {0};
        int set;
        open_trial(&t, number);
        assert_ok(zero_step_lists_add(&lists, &t.specs[0], &t.layout, &set));
        for (int r = 0; r < t.layout.size; r++)
            assert_true(has_this_list(&t, &lists, set, r));
        zero_step_lists_destroy(&lists);
        close_trial(&t);
    }
}
