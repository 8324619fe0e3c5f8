/* Members of the metrics' lines that runs of the tests are too small to show whole. */

#include "support/planned.h"
#include "support/test.h"

#include "base/fail.h"
#include "nn/shape.h"
#include "sharding/compile.h"
#include "sharding/instruction_text.h"
#include "train/metrics.h"

typedef struct {
    zero_model model;
    zero_schedule s;
    json_t *schedule;
} sample;

static void make(sample *m, int stage, int accumulation)
{
    const zero_shape shape = {
        .layers = 3, .hidden = 24, .heads = 3, .seq = 8, .vocab = 50, .seed = 5};
    m->model = built(&shape);
    zero_plan_input in = zero_plan_input_standard(&m->model, 3, 1);
    in.stage = stage;
    in.accumulation = accumulation;
    m->s = compiled(&in);
    m->schedule = zero_metrics_schedule(&m->s);
    assert_non_null(m->schedule);
}

static void unmake(sample *m)
{
    json_decref(m->schedule);
    zero_schedule_destroy(&m->s);
    zero_model_destroy(&m->model);
}

static int64_t whole(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* The object is instruction number `at` of the step. */
static void assert_instruction(const sample *m, const json_t *object, int at)
{
    const zero_instruction *i = &m->s.programs[ZERO_PROGRAM_STEP].code[at];
    const json_t *live = json_object_get(object, "live");
    char name[ZERO_PLAN_TEXT];
    size_t sum = 0;
    zero_text_instruction(&m->model, i, name);
    assert_string_equal(json_string_value(json_object_get(object, "name")), name);
    assert_string_equal(json_string_value(json_object_get(object, "op")),
                        zero_op_name(i->op));
    int64_t bytes = zero_plan_instruction_bytes(&m->s, i);
    assert_int_equal(json_object_get(object, "bytes") != NULL, bytes >= 0);
    if (bytes >= 0) assert_int_equal(whole(object, "bytes"), bytes);
    assert_int_equal(json_object_get(object, "microbatch") != NULL,
                     zero_ops[i->op].has_microbatch);
    for (size_t k = 0; k < json_array_size(live); k++)
        sum += (size_t)json_integer_value(json_array_get(live, k));
    assert_int_equal(sum, i->live_bytes);
}

TEST(a_program_has_each_instruction_and_its_bytes_by_class)
{
    for (int stage = 0; stage < 4; stage++)
        for (int microbatches = 1; microbatches <= 2; microbatches++) {
            sample m;
            make(&m, stage, microbatches);
            int length = m.s.programs[ZERO_PROGRAM_STEP].length;
            const json_t *code = json_object_get(m.schedule, "instructions");
            assert_int_equal(json_array_size(code), length);
            assert_int_equal(whole(m.schedule, "length"), length);
            for (int at = 0; at < length; at++)
                assert_instruction(&m, json_array_get(code, (size_t)at), at);
            assert_int_equal(whole(m.schedule, "peak"), m.s.peak_at + 1);
            assert_null(json_object_get(m.schedule, "left_out"));
            unmake(&m);
        }
}

TEST(a_long_program_says_what_it_leaves_out)
{
    sample m;
    make(&m, 3, 200);
    const int half = ZERO_METRICS_INSTRUCTIONS / 2;
    int length = m.s.programs[ZERO_PROGRAM_STEP].length;
    const json_t *code = json_object_get(m.schedule, "instructions");
    const json_t *left_out = json_object_get(m.schedule, "left_out");
    assert_true(length > ZERO_METRICS_INSTRUCTIONS);
    assert_int_equal(json_array_size(code), ZERO_METRICS_INSTRUCTIONS);
    assert_int_equal(whole(left_out, "after"), half);
    assert_int_equal(whole(left_out, "count"), length - ZERO_METRICS_INSTRUCTIONS);
    assert_instruction(&m, json_array_get(code, (size_t)half - 1), half - 1);
    assert_instruction(&m, json_array_get(code, (size_t)half), length - half);
    assert_instruction(&m, json_array_get(code, ZERO_METRICS_INSTRUCTIONS - 1), length - 1);
    int64_t peak = whole(m.schedule, "peak") - 1;
    const json_t *highest = json_object_get(m.schedule, "peak_instruction");
    assert_int_equal(highest != NULL, peak >= half && peak < length - half);
    if (highest) assert_instruction(&m, highest, (int)peak);
    unmake(&m);
}

/* The peak is moved to where it is left out. */
TEST(a_peak_that_is_left_out_is_there_by_itself)
{
    sample m;
    make(&m, 3, 200);
    int middle = m.s.programs[ZERO_PROGRAM_STEP].length / 2;
    m.s.programs[ZERO_PROGRAM_STEP].code[middle].live_bytes = (size_t)1 << 40;
    json_t *schedule = zero_metrics_schedule(&m.s);
    assert_int_equal(whole(schedule, "peak"), middle + 1);
    assert_non_null(json_object_get(schedule, "peak_instruction"));
    json_decref(schedule);
    unmake(&m);
}

TEST(seconds_of_very_many_ranks_are_bounds_alone)
{
    for (int n = ZERO_METRICS_RANKS; n <= ZERO_METRICS_RANKS + 1; n++) {
        zero_rank_seconds s = {.n = n};
        s.of_rank = calloc((size_t)n * ZERO_RANK_TIMES, sizeof *s.of_rank);
        s.most[ZERO_RANK_WAITED] = 2.5;
        json_t *object = zero_metrics_rank_seconds(&s);
        const json_t *waited = json_object_get(object, "waited");
        assert_int_equal(json_object_size(object), ZERO_RANK_TIMES);
        assert_true(json_real_value(json_object_get(waited, "most")) == 2.5);
        assert_int_equal(json_object_get(waited, "ranks") != NULL, n <= ZERO_METRICS_RANKS);
        json_decref(object);
        zero_rank_seconds_destroy(&s);
    }
}
