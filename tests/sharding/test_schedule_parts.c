/* Shared models: parts of passes and the JOINs between them. */
#include "nn/share.h"
#include "support/random_plan.h"
#include "support/schedule_laws.h"

#include <stdio.h>
#include <string.h>

/* ---- the order of parallel.md ---- */

static void append(char *text, size_t room, const zero_instruction *i)
{
    size_t n = strlen(text);
    bool is_join = i->op == ZERO_OP_JOIN || i->op == ZERO_OP_JOIN_WAIT;
    if (i->unit >= 0 && i->part != ZERO_PART_ALL && !is_join)
        snprintf(text + n, room - n, "%s %d.%d, ", zero_op_name(i->op), i->unit, i->part);
    else if (i->unit >= 0 || i->group >= 0)
        snprintf(text + n, room - n, "%s %d, ", zero_op_name(i->op),
                 i->unit >= 0 ? i->unit : i->group);
    else
        snprintf(text + n, room - n, "%s, ", zero_op_name(i->op));
}

static void assert_program(const zero_schedule *s, zero_program_kind program,
                           const char *expected)
{
    char text[4000] = "";
    const zero_program *p = &s->programs[program];
    for (int at = 0; at < p->length; at++) append(text, sizeof text, &p->code[at]);
    assert_string_equal(text, expected);
}

/* A block with the passes of a transformer's, and a head that gathers. */
static zero_model block_and_head(void)
{
    static const int64_t n_params[] = {100, 200};
    const zero_unit_part joins = {.join = ZERO_JOIN_SUM, .count = 2},
                         waits = {.waits = true},
                         both = {.waits = true, .join = ZERO_JOIN_SUM, .count = 2},
                         neither = {.waits = false},
                         gathers = {.join = ZERO_JOIN_GATHER, .count = 1};
    made_unit units[2] = {{.n_groups = 1, .groups = {0}}, {.n_groups = 1, .groups = {1}}};
    units[0].recompute_without_out = true;
    units[0].sizes =
        (zero_unit_sizes){.out = 2, .saved = 3, .forward_work = 1, .backward_work = 2};
    units[1].sizes =
        (zero_unit_sizes){.saved = 1, .backward_work = 2, .logits = 2, .row_loss = 1};
    made_pass *block = units[0].passes, *head = units[1].passes;
    block[ZERO_PASS_FORWARD] = (made_pass){3, {joins, both, waits}};
    block[ZERO_PASS_EVALUATE] = block[ZERO_PASS_GENERATE] = block[ZERO_PASS_FORWARD];
    block[ZERO_PASS_RECOMPUTE] = (made_pass){2, {joins, waits}};
    block[ZERO_PASS_BACKWARD] = (made_pass){5, {joins, neither, both, neither, waits}};
    head[ZERO_PASS_FORWARD] = (made_pass){1, {neither}};
    head[ZERO_PASS_BACKWARD] = (made_pass){3, {gathers, both, waits}};
    head[ZERO_PASS_EVALUATE] = head[ZERO_PASS_GENERATE] = (made_pass){2, {gathers, waits}};
    return made_model(2, n_params, 2, units);
}

static void joins_stand_between_parts(void **state)
{
    (void)state;
    zero_model model = block_and_head();
    zero_schedule s;
    made_share(&model, (zero_share){2, 1, 4});
    zero_plan_input input = job_input(&model, 0, 1);
    input.recompute = true;
    assert_int_equal(zero_schedule_compile(&s, &input), ZERO_OK);
    assert_program(
        &s, ZERO_PROGRAM_STEP,
        "LOAD, FORWARD 0.0, JOIN 0, JOIN_WAIT 0, FORWARD 0.1, JOIN 0, JOIN_WAIT 0, FORWARD "
        "0.2, FORWARD 1.0, "
        "BACKWARD 1.0, JOIN 1, JOIN_WAIT 1, BACKWARD 1.1, JOIN 1, JOIN_WAIT 1, BACKWARD "
        "1.2, REDUCE 1, "
        "RECOMPUTE 0.0, JOIN 0, JOIN_WAIT 0, RECOMPUTE 0.1, "
        "BACKWARD 0.0, JOIN 0, BACKWARD 0.1, JOIN_WAIT 0, BACKWARD 0.2, JOIN 0, BACKWARD "
        "0.3, JOIN_WAIT 0, BACKWARD 0.4, "
        "REDUCE_WAIT 1, GATHER 1, REDUCE 0, REDUCE_WAIT 0, GATHER 0, GATHER_WAIT 1, "
        "GATHER_WAIT 0, LOSS, NORM 0, NORM 1, OVERFLOW, UPDATE 0, UPDATE 1, ");
    assert_program(&s, ZERO_PROGRAM_GENERATE,
                   "FORWARD 0.0, JOIN 0, JOIN_WAIT 0, FORWARD 0.1, JOIN 0, JOIN_WAIT 0, "
                   "FORWARD 0.2, FORWARD 1.0, JOIN 1, JOIN_WAIT 1, FORWARD 1.1, ");
    zero_schedule_destroy(&s);
    zero_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins_stand_between_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
