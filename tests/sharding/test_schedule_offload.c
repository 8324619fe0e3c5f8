/* Programs whose optimizer states lie in a slower tier. */
#include "sharding/offload.h"
#include "support/made_model.h"
#include "support/random_plan.h"
#include "support/schedule_laws.h"
#include "support/share.h"

/* One group has several blocks, of which the last is not whole. */
static void enlarge(zero_model *model, uint64_t *random)
{
    zero_group *group = &model->groups[made_draw(random, model->n_groups)];
    int64_t more = made_draw(random, 5) * ZERO_OFFLOAD_BLOCK;
    if (made_draw(random, 3) == 0) more = 64 * made_draw(random, 20000);
    group->n_params += more;
    model->n_params += more;
}

static void draw_offload(zero_plan_input *input, uint64_t *random)
{
    random_offload(input, random);
    bool is_delayed = input->offload == ZERO_OFFLOAD_DELAYED;
    if (input->device) { /* the file, or with half of these plans the host's memory */
        input->offload_host = made_draw(random, 2);
        return;
    }
    input->offload_parameters = input->stage == 3 && !is_delayed && made_draw(random, 2);
    input->offload_activations = input->recompute && made_draw(random, 2);
}

/* A piece from the file is padded to a page, and then as long as the whole of these groups. */
TEST(a_padded_piece_is_not_taken_for_its_group)
{
    static const int64_t n_params[] = {1024, 2048};
    static const made_unit units[] = {
        {.n_groups = 1, .groups = {0}, .sizes = {.out = 1, .saved = 1}},
        {.n_groups = 1, .groups = {1}, .sizes = {.out = 1, .saved = 1, .row_loss = 1}}};
    zero_model model = made_model(2, n_params, 2, units);
    for (int ranks = 2; ranks <= 8; ranks *= 2)
        for (int type = 0; type < 3; type++) {
            zero_plan_input input = job_input(&model, 3, ranks);
            input.type = (zero_type)type;
            input.collectives = ZERO_ALGORITHM_SHM;
            input.offload = ZERO_OFFLOAD_LAZY;
            input.offload_depth = 2;
            input.offload_parameters = true;
            laws_check_plan(input, 1);
        }
    zero_model_destroy(&model);
}

TEST(any_model_keeps_all_laws_with_a_slower_tier)
{
    for (uint64_t trial = 0; trial < 1000; trial += TEST_SHARE(4)) {
        uint64_t random = trial + 10000;
        int nodes;
        zero_model model = made_random(&random);
        if (made_draw(&random, 2)) enlarge(&model, &random);
        zero_plan_input input = random_plan(&model, &random, &nodes);
        draw_offload(&input, &random);
        laws_check_plan(input, nodes);
        zero_model_destroy(&model);
    }
}

/* ---- refusals ---- */

static zero_plan_input valid(const zero_model *model, zero_offload place)
{
    zero_plan_input input = job_input(model, 3, 4);
    input.offload = place;
    input.offload_depth = 2;
    input.delayed_from = 1;
    return input;
}

/* A valid plan, with one member changed. */
#define CHANGED(place, field, value) \
    (input = valid(&model, ZERO_OFFLOAD_##place), input.field = (value), input)

TEST(plans_that_a_file_cannot_serve_are_refused)
{
    uint64_t random = 1;
    zero_model model = made_random(&random);
    zero_plan_input input;
    assert_refused(CHANGED(END, offload_depth, 0), "expected 1 to");
    assert_refused(CHANGED(END, offload_depth, ZERO_OFFLOAD_MAX_DEPTH + 1),
                   "expected 1 to");
    assert_refused(CHANGED(OFF, offload_parameters, 1), "need --offload DIR");
    assert_refused(CHANGED(OFF, offload_activations, 1), "need --offload DIR");
    assert_refused(CHANGED(LAZY, forward_only, true), "no optimizer states to offload");
    assert_refused(CHANGED(LAZY, offload_activations, 1), "needs --recompute");
    assert_refused(CHANGED(BACKWARD, type, ZERO_FP16), "with fp16");
    assert_refused(CHANGED(BACKWARD, check_memory, 1), "with --check-memory");
    assert_refused(CHANGED(DELAYED, check_memory, 1), "with --check-memory");
    assert_refused(CHANGED(DELAYED, offload_parameters, 1), "with --offload-parameters");
    assert_refused(CHANGED(DELAYED, delayed_from, 0), "expected 1 or more");
    input = valid(&model, ZERO_OFFLOAD_LAZY);
    input.device = 1;
    input.offload_parameters = 1;
    assert_refused(input, "--offload-parameters with --device");
    input.offload_parameters = 0;
    input.offload_activations = 1;
    input.recompute = true;
    assert_refused(input, "--offload-activations with --device");
    input = valid(&model, ZERO_OFFLOAD_OFF);
    input.device = input.offload_host = 1;
    assert_refused(input, "offload_host without offload");
    input = valid(&model, ZERO_OFFLOAD_LAZY);
    input.offload_parameters = 1;
    for (input.stage = 0; input.stage < 3; input.stage++)
        assert_refused(input, "needs --stage 3");
    zero_model_destroy(&model);
}
