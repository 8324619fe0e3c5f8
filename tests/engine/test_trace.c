/* The rings of a trace (state/trace.h): whole steps, in order, whatever the number of steps. */
#include "support/engine_test.h"

#include "base/clock.h"
#include "state/trace.h"

static void run_steps(test_run *run, zero_trace *t, int64_t first, int n)
{
    for (int64_t step = first; step < first + n; step++) {
        zero_trace_step_begin(t, step, zero_clock_seconds());
        test_run_steps(run, (int)step - 1, 1);
        zero_trace_step_end(t, zero_clock_seconds());
    }
}

static bool adjoin(const zero_run_span *spans, int n, const zero_traced_step *step)
{
    bool right = spans[0].begin >= step->begin && spans[n - 1].end <= step->end;
    for (int i = 1; i < n; i++) right = right && spans[i].begin == spans[i - 1].end;
    return right;
}

/* One span for each instruction of the program, in its order. */
static void check_step(const test_run *run, const zero_trace *t,
                       const zero_traced_step *step)
{
    const zero_program *p = &run->engine.schedule.programs[ZERO_PROGRAM_STEP];
    const zero_run_span *spans = zero_trace_spans(t, step);
    bool right = step->is_whole && step->n == p->length;
    for (int i = 0; right && i < step->n; i++)
        right = spans[i].at == i && spans[i].program == ZERO_PROGRAM_STEP &&
                !spans[i].is_ahead && !spans[i].is_open && spans[i].begin <= spans[i].end;
    assert_all(right && adjoin(spans, step->n, step));
}

/* Steps before `first` are overwritten or were never there. */
static void check_list(const test_run *run, zero_trace *t, int64_t first, int64_t last)
{
    const zero_traced_step *list[8];
    zero_trace_stop(t);
    int n = zero_trace_list(t, list);
    assert_all(n == (int)(last - first + 1));
    for (int k = 0; k < n; k++) {
        assert_all(list[k]->step == first + k);
        check_step(run, t, list[k]);
    }
}

static void check_window(const test_setup *setup, zero_trace_window window, int64_t from,
                         int n, int64_t first, int64_t last)
{
    test_run run;
    zero_trace t;
    test_run_open(&run, setup, test_size);
    all_ok(zero_trace_init(&t, &run.engine.schedule, &window));
    zero_engine_record(&run.engine, &t);
    run_steps(&run, &t, from, n);
    check_list(&run, &t, first, last);
    zero_engine_record(&run.engine, NULL);
    zero_trace_destroy(&t);
    test_run_close(&run);
}

TEST(the_ring_keeps_the_last_whole_steps)
{
    for (int keeps = 1; keeps <= 4; keeps++)
        for (int n = 1; n <= 7; n += 2)
            check_window(&test_standard, (zero_trace_window){keeps, INT64_MAX}, 1, n,
                         n > keeps ? n - keeps + 1 : 1, n);
}

TEST(steps_after_the_window_are_not_recorded)
{
    check_window(&test_standard, (zero_trace_window){2, 4}, 1, 7, 3, 4);
    check_window(&test_standard, (zero_trace_window){3, 4}, 3, 4, 3, 4); /* a resumed run */
}

TEST(every_stage_has_its_instructions)
{
    test_setup setup = test_standard;
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++) {
        setup.plan.stage = stage;
        setup.plan.accumulation = 1 + stage % 2;
        check_window(&setup, (zero_trace_window){2, INT64_MAX}, 1, 3, 2, 3);
    }
}

/* The collectives of a step are those of its program, and are named by the instruction that began
 * them. */
TEST(flights_are_labelled_by_their_instruction)
{
    test_setup setup = test_standard;
    test_run run;
    zero_trace t;
    zero_comm_span flights[512];
    int64_t open, matches = 0;
    setup.plan.stage = 3;
    test_run_open(&run, &setup, test_size);
    const zero_schedule *s = &run.engine.schedule;
    zero_trace_window window = {1, INT64_MAX};
    all_ok(zero_trace_init(&t, s, &window));
    zero_engine_record(&run.engine, &t);
    run_steps(&run, &t, 1, 1);
    int64_t n = zero_comm_spans_copy(run.engine.runner.comm, 0.0, 512, flights, &open);
    assert_all(n == zero_trace_measure(s, &window).flights);
    for (int64_t k = 0; k < n; k++) {
        int at = zero_label_at(flights[k].label);
        bool is_reduce = flights[k].kind == ZERO_REDUCE_SCATTER;
        zero_op op = s->programs[ZERO_PROGRAM_STEP].code[at].op;
        matches += zero_label_program(flights[k].label) == ZERO_PROGRAM_STEP &&
                   op == (is_reduce ? ZERO_OP_REDUCE : ZERO_OP_GATHER);
    }
    assert_all(matches == n);
    zero_engine_record(&run.engine, NULL);
    zero_trace_destroy(&t);
    test_run_close(&run);
}

/* No engine: the slots alone, as a failing run leaves them. */
TEST(a_failed_step_ends_in_an_open_span)
{
    test_run run;
    zero_trace t;
    const zero_traced_step *list[4];
    zero_trace_window window = {2, INT64_MAX};
    test_run_open(&run, &test_standard, test_size);
    all_ok(zero_trace_init(&t, &run.engine.schedule, &window));
    for (int step = 1; step <= 5; step++) {
        zero_trace_step_begin(&t, step, (double)step);
        zero_trace_note(&t, ZERO_PROGRAM_STEP, 0, false, step + 0.1, step + 0.2);
        if (step < 5) zero_trace_step_end(&t, step + 0.5);
    }
    zero_trace_note_failure(&t, ZERO_PROGRAM_STEP, 1, 5.2);
    zero_trace_stop(&t);
    assert_all(zero_trace_list(&t, list) == 3);
    assert_all(list[0]->step == 3 && list[0]->is_whole && list[0]->end == 3.5);
    assert_all(list[2]->step == 5 && !list[2]->is_whole && list[2]->n == 2);
    const zero_run_span *spans = zero_trace_spans(&t, list[2]);
    assert_all(!spans[0].is_open && spans[1].is_open && spans[1].at == 1);
    assert_all(spans[1].begin == 5.2 && list[2]->end == spans[1].end);
    zero_trace_destroy(&t);
    test_run_close(&run);
}

TEST(a_full_slot_takes_no_more)
{
    test_run run;
    zero_trace t;
    const zero_traced_step *list[2];
    zero_trace_window window = {1, INT64_MAX};
    test_run_open(&run, &test_standard, test_size);
    all_ok(zero_trace_init(&t, &run.engine.schedule, &window));
    zero_trace_step_begin(&t, 1, 0.0);
    for (int k = 0; k < t.room + 10; k++)
        zero_trace_note(&t, ZERO_PROGRAM_STEP, 0, false, 0.0, 1.0);
    zero_trace_step_end(&t, 1.0);
    assert_all(zero_trace_list(&t, list) == 1 && list[0]->n == t.room);
    zero_trace_destroy(&t);
    test_run_close(&run);
}

TEST(bits_are_those_without_a_trace)
{
    test_setup setup = test_standard;
    setup.plan.stage = 3;
    test_run run;
    zero_trace t;
    zero_trace_window window = {2, INT64_MAX};
    test_digest plain = test_digest_after(&setup, test_size, 3);
    test_run_open(&run, &setup, test_size);
    all_ok(zero_trace_init(&t, &run.engine.schedule, &window));
    zero_engine_record(&run.engine, &t);
    run_steps(&run, &t, 1, 3);
    assert_all(test_same(test_run_digest(&run), plain));
    zero_engine_record(&run.engine, NULL);
    zero_trace_destroy(&t);
    test_run_close(&run);
}
