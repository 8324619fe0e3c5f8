/* Checkpoints of running engines: resumed equals never stopped, whatever layout resumes. */
#include "support/resume_test.h"

/* ---- any layout from any other ---- */

TEST(a_run_resumed_in_any_layout_goes_on_as_if_never_stopped)
{
    for (zero_type type = ZERO_FP32; type <= ZERO_FP16; type++)
        for (size_t from = 0; from < COUNT(layouts); from++) {
            test_place place;
            test_place_open(&place);
            test_setup setup = with_layout(&layouts[from], type);
            course expected = never_stopped(&setup, test_size, &place);
            for (size_t to = 0; to < COUNT(layouts); to++) {
                setup = with_layout(&layouts[to], type);
                check_resumed(&setup, test_size, &place, &expected);
            }
            test_place_close(&place);
        }
}

/* Saving in the middle does not change the run that saves. */
TEST(a_run_that_saves_is_the_run_that_does_not)
{
    for (int stage = 0; stage <= 3; stage++) {
        test_place place;
        test_place_open(&place);
        test_setup setup = test_setup_of(stage, ZERO_BF16);
        course saving = never_stopped(&setup, test_size, &place);
        course plain = never_stopped(&setup, test_size, NULL);
        assert_all(test_same(saving.at_end, plain.at_end) && saving.loss == plain.loss);
        test_place_close(&place);
    }
}

/* Into an engine with other weights, and into one that waits for them. */
TEST(any_number_of_ranks_loads_what_any_other_has_saved)
{
    for (int from = 1; from <= test_size; from++)
        for (int to = 1; to <= test_size; to++)
            for (size_t k = 0; k < COUNT(layouts); k++) {
                test_place place;
                test_run run;
                test_place_open(&place);
                test_setup setup = with_layout(&layouts[k], ZERO_BF16);
                course saved = never_stopped(&setup, from, &place);
                setup = as_loader(with_layout(&layouts[COUNT(layouts) - 1 - k], ZERO_BF16));
                setup.awaits_states = (from + to + (int)k) % 2 == 0;
                test_run_open(&run, &setup, to);
                test_load(&run, &place, SAVED);
                assert_all(test_same(test_run_digest(&run), saved.at_save));
                test_run_close(&run);
                test_place_close(&place);
            }
}

/* ---- types, the loss scale ---- */

/* Two steps overflow, the second after the save: hysteresis forgives the first, the second halves
 * the scale, which is also about to grow. */
static void step_with_overflows(test_run *run, test_fault *f, int64_t first, int64_t end)
{
    for (int64_t step = first; step < end; step++) {
        f->step = step == 1 || step == 2 ? step : -1;
        f->is_mine = test_rank == test_size - 1;
        zero_status st = test_step(run, step);
        if (st != ZERO_OK) print_error("%s\n", zero_last_error());
        assert_all(st == ZERO_OK && run->last.overflow == (step == 1 || step == 2));
    }
}

static void open_overflowing(test_run *run, const test_setup *setup, test_fault *f)
{
    test_run_open(run, setup, test_size);
    *f = (test_fault){.step = -1, .number = INFINITY};
    test_plant(run, 1, f);
}

static bool same_scale(const zero_loss_scale *a, const zero_loss_scale *b)
{
    return a->type == b->type && a->scale == b->scale && a->clean_steps == b->clean_steps &&
           a->hysteresis == b->hysteresis;
}

TEST(the_loss_scale_its_hysteresis_and_skipped_steps_go_on)
{
    for (int stage = 0; stage <= 3; stage++) {
        test_place place;
        test_run run, again;
        test_fault f, g;
        test_setup setup = test_setup_of(stage, ZERO_FP16);
        test_setup other = as_loader(test_setup_of(3 - stage, ZERO_FP16));
        test_place_open(&place);
        open_overflowing(&run, &setup, &f);
        run.engine.loss_scale.scale = 512.0f;
        run.engine.loss_scale.clean_steps = 700;
        step_with_overflows(&run, &f, 0, SAVED);
        assert_all(run.engine.skipped == 1 && run.engine.adam_steps == 1);
        assert_all(run.engine.loss_scale.hysteresis == 1);
        test_save(&run, &place, SAVED);

        open_overflowing(&again, &other, &g);
        test_load(&again, &place, SAVED);
        assert_all(same_scale(&again.engine.loss_scale, &run.engine.loss_scale));
        run.engine.loss_scale.clean_steps = again.engine.loss_scale.clean_steps =
            ZERO_LOSS_SCALE_WINDOW - 1;
        step_with_overflows(&run, &f, SAVED, TOTAL + 1);
        step_with_overflows(&again, &g, SAVED, TOTAL + 1);
        assert_all(run.engine.skipped == 2 && again.engine.skipped == 2);
        assert_all(again.engine.adam_steps == run.engine.adam_steps);
        assert_all(same_scale(&again.engine.loss_scale, &run.engine.loss_scale));
        assert_all(run.engine.loss_scale.scale == 256.0f);
        assert_all(test_same(test_run_digest(&run), test_run_digest(&again)));
        test_run_close(&again);
        test_run_close(&run);
        test_place_close(&place);
    }
}

/* A run may change its type: the state is fp32 in all types, and only fp16 has a scale. */
TEST(the_state_goes_from_type_to_type_and_the_scale_does_not)
{
    for (zero_type from = ZERO_FP32; from <= ZERO_FP16; from++)
        for (zero_type to = ZERO_FP32; to <= ZERO_FP16; to++) {
            test_place place;
            test_run run, again;
            test_setup setup = test_setup_of(1, from), other = test_setup_of(3, to);
            test_place_open(&place);
            test_run_open(&run, &setup, test_size);
            if (from == ZERO_FP16) run.engine.loss_scale.scale = 128.0f;
            test_run_steps(&run, 0, SAVED);
            test_save(&run, &place, SAVED);
            test_run_open(&again, &other, test_size);
            zero_loss_scale fresh = again.engine.loss_scale;
            test_load(&again, &place, SAVED);
            assert_all(test_same(test_run_digest(&run), test_run_digest(&again)));
            assert_all(same_scale(&again.engine.loss_scale,
                                  from == to ? &run.engine.loss_scale : &fresh));
            test_run_steps(&again, SAVED, 1);
            test_run_close(&again);
            test_run_close(&run);
            test_place_close(&place);
        }
}
