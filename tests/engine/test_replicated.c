/* --check-replicas of shared models: what each rank of a TP group computes for itself is compared over
 * the group, a planted difference is found and named, and this moves what was planned. */
#include "support/engine_test.h"

#include "state/replicas.h"
#include "state/runner.h"

static test_setup setup_of(int stage, zero_type type, int tp)
{
    test_setup setup = test_standard;
    setup.shape.hidden = 48;
    setup.shape.heads = 12;
    setup.shape.vocab = 67;
    setup.plan.stage = stage;
    setup.plan.type = type;
    setup.plan.check_replicas = 3;
    setup.plan.collectives = ZERO_ALGORITHM_P2P;
    setup.tp = tp;
    setup.slices = tp;
    return setup;
}

/* The states, or a gradient, of one element of a tensor on one rank. */
typedef struct {
    const char *what; /* in messages */
    int tensor, p;
    int64_t element;
    bool is_gradient;
} spot;

static const zero_tensor *tensor_of(const test_run *run, const spot *s)
{
    return &run->engine.schedule.input.model->tensors[s->tensor];
}

/* The rank with this p that owns the element; on those of other p the answer is theirs. */
static int owner_of(const test_run *run, const spot *s)
{
    const zero_schedule *schedule = &run->engine.schedule;
    const zero_tensor *t = tensor_of(run, s);
    int tp = schedule->input.model->share.ranks;
    int d = zero_partition_owner_of(&schedule->groups[t->group].partition,
                                    t->offset + s->element);
    return d * tp + s->p;
}

static zero_status flip_master(void *arg, const zero_state_block *block)
{
    uint32_t bits;
    (void)arg;
    memcpy(&bits, block->master, sizeof bits);
    bits ^= 1;
    memcpy(block->master, &bits, sizeof bits);
    return ZERO_OK;
}

/* The lowest bit on the element's owner; again: it is as before. */
static void flip(test_run *run, const spot *s)
{
    zero_engine *e = &run->engine;
    const zero_tensor *t = tensor_of(run, s);
    int64_t at = t->offset + s->element;
    bool has_p = e->schedule.input.model->share.rank == s->p;
    if (!has_p || owner_of(run, s) != test_rank) return;
    if (s->is_gradient)
        *(char *)zero_runner_element(&e->runner, e->schedule.groups[t->group].grad, at) ^=
            1;
    else
        assert_true(zero_states_visit(&e->runner, t->group, (zero_range){at, at + 1},
                                      ZERO_VISIT_CHANGE, flip_master, NULL) == ZERO_OK);
}

/* Of two different parts either may be wrong, so the owners of both are named. */
static void check_message(test_run *run, const spot *s)
{
    char place[160], rank[32];
    int tp = run->setup.tp, owner = owner_of(run, s);
    MPI_Bcast(&owner, 1, MPI_INT, s->p, MPI_COMM_WORLD);
    snprintf(place, sizeof place, "the %s of %s, element %d,", s->what,
             tensor_of(run, s)->name, (int)s->element);
    snprintf(rank, sizeof rank, "rank %d:", owner);
    all_told(tp > 2 ? rank : "it is not known which");
    all_told(place);
}

/* The steps of a period that find a difference. */
static int count_finding(test_run *run)
{
    int n = 0;
    for (int step = 0; step < run->setup.plan.check_replicas; step++) {
        zero_status st = zero_replicas_compare_due(&run->engine.runner, step, true);
        assert_all(st == ZERO_OK || st == ZERO_ERR_CORRUPTED);
        n += st == ZERO_ERR_CORRUPTED;
    }
    return n;
}

static void check_found(test_run *run, const spot *s)
{
    flip(run, s);
    assert_all(count_finding(run) == 1);
    assert_all(zero_replicas_compare(&run->engine.runner, true) == ZERO_ERR_CORRUPTED);
    check_message(run, s);
    flip(run, s);
    all_ok(zero_replicas_compare(&run->engine.runner, true));
}

/* Steps compare without a word, and move what was planned. */
static void check_quiet(test_run *run)
{
    test_run_steps(run, 0, 3);
    assert_all(run->engine.runner.compares == 3);
    assert_all(test_control_is_planned(&run->engine));
    zero_status st = zero_engine_settle(&run->engine);
    all_ok(st);
}

/* Tensors in the middle of groups, among cut ones: "wpe", "h.0.ln_2.weight", "ln_f.bias". */
static int number_of(const test_run *run, const char *name)
{
    int i = 0;
    while (strcmp(run->model.tensors[i].name, name) != 0) i++;
    return i;
}

static void check_spots(test_run *run, const char *what)
{
    static const char *const names[] = {"wpe.weight", "h.0.ln_2.weight", "ln_f.bias"};
    for (int k = 0; k < 3; k++)
        for (int p = 0; p < run->setup.tp; p++) {
            spot s = {.what = what, .p = p, .tensor = number_of(run, names[k])};
            const zero_tensor *t = tensor_of(run, &s);
            s.element = (t->rows * t->cols - 1) * p / (run->setup.tp - 1);
            check_found(run, &s);
            s.what = "gradients";
            s.is_gradient = true;
            check_found(run, &s);
        }
}

/* At stage 3 states lie once in each ZeRO group, so nothing else can find the difference. */
TEST(a_planted_difference_is_found_and_named)
{
    for (zero_type type = ZERO_FP32; type <= ZERO_BF16; type++)
        for (int tp = 2; tp <= test_size; tp++) {
            test_run run;
            test_setup setup = setup_of(3, type, tp);
            if (test_size % tp != 0 || setup.shape.heads % tp != 0) continue;
            test_run_open(&run, &setup, test_size);
            check_quiet(&run);
            check_spots(&run, "masters");
            test_run_close(&run);
        }
}

/* Tensors that are cut are this rank's alone: no rank of the TP group has them, too. */
TEST(all_stages_compare_and_find_nothing)
{
    for (int stage = 0; stage <= 3; stage++)
        for (int tp = 2; tp <= test_size; tp++) {
            test_run run;
            test_setup setup = setup_of(stage, stage % 2 ? ZERO_BF16 : ZERO_FP32, tp);
            if (test_size % tp != 0 || setup.shape.heads % tp != 0) continue;
            setup.plan.partition = (zero_partition_scheme)(stage % 2);
            test_run_open(&run, &setup, test_size);
            check_quiet(&run);
            test_run_close(&run);
        }
}

/* The last rank's copy of parameters that rank 1, of the same part, owns. */
TEST(a_wrong_copy_within_a_zero_group_is_found_as_without_tp)
{
    test_run run;
    test_setup setup = setup_of(1, ZERO_BF16, 2);
    if (test_size % 2 != 0 || test_size < 4) return;
    test_run_open(&run, &setup, test_size);
    check_quiet(&run);
    const zero_group_state *g = &run.engine.schedule.groups[0];
    char *param = zero_runner_element(&run.engine.runner, g->param, 5), text[96];
    if (test_rank == test_size - 1) *param ^= 1;
    assert_all(zero_engine_check(&run.engine) == ZERO_ERR_CORRUPTED);
    snprintf(text, sizeof text, "rank %d holds other bits than the other ranks in the ",
             test_size - 1);
    all_told(text);
    all_told("parameters of wte.weight, element 5");
    if (test_rank == test_size - 1) *param ^= 1;
    all_ok(zero_engine_check(&run.engine));
    test_run_close(&run);
}
