/* Shared models, made at random and GPT-2: their schedules keep all laws, on all ranks. */
#include "base/fail.h"
#include "nn/shape.h"
#include "nn/share.h"
#include "sharding/formula.h"
#include "support/planned.h"
#include "support/random_plan.h"
#include "support/schedule_laws.h"
#include "support/share.h"

/* ---- at random ---- */

/* Any number of TP ranks, with 1, 2, 4 or 8 slices for each, on one node or two. */
static zero_share draw_share(uint64_t *random)
{
    static const int all[] = {1, 2, 3, 4, 8};
    int ranks = all[made_draw(random, 5)];
    int most = ranks == 1 ? 2 << made_draw(random, 3) : ranks << made_draw(random, 3);
    return (zero_share){ranks, made_draw(random, ranks), most};
}

static void draw_file(zero_plan_input *input, uint64_t *random)
{
    if (made_draw(random, 4) != 0) return;
    input->offload = made_draw(random, 2) ? ZERO_OFFLOAD_LAZY : ZERO_OFFLOAD_END;
    input->offload_depth = 2;
    input->offload_parameters = input->stage == 3;
    input->offload_activations = input->recompute;
}

/* ---- in pieces ---- */

static bool joins_in_forward(const zero_model *model, int u)
{
    const zero_unit *unit = &model->units[u];
    zero_unit_part part = {.is_last = false};
    bool joins = false;
    for (int64_t k = 0; !part.is_last; k++) {
        part = unit->part(unit, ZERO_PASS_FORWARD, 1, model->seq, k);
        joins = joins || part.join != ZERO_JOIN_NONE;
    }
    return joins;
}

static zero_unit_sizes sizes_of(const zero_model *model, int u)
{
    return model->units[u].sizes(&model->units[u], 1, model->seq);
}

/* True if the inputs of all units that are computed again can be cut. */
static bool can_be_cut(const zero_plan_input *input)
{
    const zero_model *model = input->model;
    bool can = true;
    for (int u = 1; u < model->n_units - 1; u++) {
        int64_t floats = input->micro_batch * sizes_of(model, u - 1).out;
        if (sizes_of(model, u).saved == 0 || floats == 0) continue;
        can = can && joins_in_forward(model, u) && floats % model->share.ranks == 0;
    }
    return can;
}

/* A forward pass that joins, for units that have none. */
static void let_units_join(const zero_model *model)
{
    for (int u = 0; u < model->n_units; u++) {
        made_unit *unit = (made_unit *)model->shape + u;
        if (!joins_in_forward(model, u))
            unit->passes[ZERO_PASS_FORWARD] =
                (made_pass){2, {{.join = ZERO_JOIN_SUM, .count = 1}, {.waits = true}}};
    }
}

/* Draws whether to cut; false if the plan must be refused, which is checked. */
static bool draw_pieces(zero_plan_input *input, uint64_t *random)
{
    zero_schedule s;
    if (!input->recompute || input->model->share.ranks == 1) return true;
    input->partition_activations = made_draw(random, 4) > 0;
    if (!input->partition_activations) return true;
    if (made_draw(random, 4) > 0) let_units_join(input->model);
    if (can_be_cut(input)) return true;
    zero_plan_input anywhere = *input;
    anywhere.collectives = ZERO_ALGORITHM_P2P; /* it is given no nodes here */
    assert_fails(zero_schedule_compile(&s, &anywhere), ZERO_ERR_INVALID,
                 "--partition-activations");
    return false;
}

/* The ranks of rank 0's TP group have the same program, and windows that fit together. */
static void check_tp_group(const zero_model *model, zero_plan_input input)
{
    zero_schedule s[JOB_RANKS];
    zero_model part[JOB_RANKS];
    int n = model->share.ranks;
    for (int p = 0; p < n; p++) {
        part[p] = *model;
        part[p].share.rank = p;
        input.model = &part[p];
        s[p] = compiled(&input);
    }
    laws_check_tp_group(n, s);
    for (int p = 0; p < n; p++) zero_schedule_destroy(&s[p]);
}

static void check_trial(uint64_t trial)
{
    uint64_t random = trial + 1000;
    int nodes;
    zero_layout tp;
    schedule_job job;
    zero_model model = made_random(&random);
    made_share(&model, draw_share(&random));
    zero_plan_input input = random_plan(&model, &random, &nodes);
    int T = model.share.ranks;
    bool is_spread = T > 1 && made_draw(&random, 3) == 0;
    random_plan_on_cpu(&input);
    draw_file(&input, &random);
    assert_ok(zero_layout_init_blocks(&tp, T, is_spread ? 2 : 1));
    input.tp_layout = made_draw(&random, 2) || is_spread ? &tp : NULL;
    if (draw_pieces(&input, &random)) {
        job_open(&job, input, nodes);
        laws_check(&job);
        input.layout = &job.layout;
        check_tp_group(&model, input);
        job_close(&job);
    }
    zero_layout_destroy(&tp);
    zero_model_destroy(&model);
}

/* ---- GPT-2 ---- */

/* Two chunks of rows in the head; words that ranks cannot share evenly. */
static const zero_shape gpt2 = {
    .layers = 2, .hidden = 48, .heads = 12, .seq = 40, .vocab = 1009};
static const zero_share gpt2_shares[] = {{1, 0, 4}, {2, 0, 2}, {2, 1, 4},
                                         {3, 1, 6}, {4, 3, 4}, {6, 5, 12}};

/* Each block, the sums of the embedding and of the head, and the head's statistics: of each
 * slice the largest and the sum, and the target's logit. */
static void check_gpt2_volume(const zero_schedule *s)
{
    const zero_plan_input *in = &s->input;
    const zero_share *share = &in->model->share;
    int64_t rows = in->micro_batch * in->seq, M = in->accumulation;
    int64_t sums = gpt2.layers * zero_formula_tp_sums(in->recompute) + 2;
    int64_t stats = 2 * (share->slices / share->ranks) + 1;
    double elements = zero_formula_tp_volume(rows * gpt2.hidden, M * sums, share->ranks) +
                      zero_formula_tp_gathered(M * rows * stats, share->ranks);
    zero_traffic t = zero_schedule_traffic(s, ZERO_PROGRAM_STEP, ZERO_OP_JOIN);
    zero_volume v = zero_traffic_total(&t);
    assert_true((double)v.bytes_sent == 4 * elements);
    assert_true(v.bytes_received == v.bytes_sent);
}

static void check_gpt2_group(const zero_model *whole, zero_plan_input input,
                             const zero_share *share)
{
    zero_model part[JOB_RANKS];
    zero_schedule s[JOB_RANKS];
    int n = share->ranks;
    for (int p = 0; p < n; p++) {
        zero_share own = {n, p, share->slices};
        assert_ok(zero_model_share(whole, own, &part[p]));
        input.model = &part[p];
        s[p] = compiled(&input);
    }
    laws_check_tp_group(n, s);
    for (int p = 0; p < n; p++) {
        zero_schedule_destroy(&s[p]);
        zero_model_destroy(&part[p]);
    }
}

/* The same for what is kept in pieces: one all-gather more for each block. */
static void check_gpt2_pieces(const zero_schedule *s)
{
    const zero_plan_input *in = &s->input;
    int64_t elements = in->micro_batch * in->seq * gpt2.hidden;
    int64_t blocks = in->accumulation * gpt2.layers, ranks = in->model->share.ranks;
    zero_traffic t = zero_schedule_traffic(s, ZERO_PROGRAM_STEP, ZERO_OP_COLLECT);
    double added = zero_formula_exchanged(blocks * elements, in->model->share.ranks);
    bool moves = in->collectives == ZERO_ALGORITHM_P2P;
    assert_true((double)zero_traffic_total(&t).bytes_sent == (moves ? 4 * added : 0.0));
    assert_true(10 * added ==
                (double)blocks * zero_formula_tp_volume(elements, 5, (int)ranks));
    assert_true((int64_t)s->class_peak[ZERO_CLASS_KEPT] ==
                4 * gpt2.layers * elements / ranks);
}

static void check_gpt2(const zero_model *whole, const zero_share *share, int bits)
{
    zero_model part;
    schedule_job job;
    assert_ok(zero_model_share(whole, *share, &part));
    zero_plan_input input = job_input(&part, bits & 3, 2);
    input.micro_batch = 7;
    input.type = bits & 4 ? ZERO_BF16 : ZERO_FP32;
    input.recompute = bits & 8;
    input.accumulation = bits & 16 ? 2 : 1;
    input.collectives = bits & 32 ? ZERO_ALGORITHM_SHM : ZERO_ALGORITHM_P2P;
    input.partition_activations = input.recompute && share->ranks > 1 && bits & 64;
    job_open(&job, input, input.collectives == ZERO_ALGORITHM_SHM ? 1 : 2);
    laws_check(&job);
    check_gpt2_volume(&job.s[0]);
    if (input.partition_activations) check_gpt2_pieces(&job.s[0]);
    input.layout = &job.layout;
    check_gpt2_group(whole, input, share);
    job_close(&job);
    zero_model_destroy(&part);
}

TEST(gpt2_in_parts_keeps_all_laws)
{
    zero_model whole = built(&gpt2);
    for (size_t k = 0; k < COUNT(gpt2_shares); k++)
        for (int bits = 0; bits < 128; bits += TEST_SHARE(7))
            check_gpt2(&whole, &gpt2_shares[k], bits);
    zero_model_destroy(&whole);
}

TEST(any_shared_model_keeps_all_laws)
{
    for (uint64_t trial = 0; trial < 200; trial += TEST_SHARE(4)) check_trial(trial);
}
