/* program_text.h - a program as a line of text: "LOAD, FORWARD 0, FORWARD 1.2, REDUCE 1, ". */
#pragma once

#include "support/test.h"

#include "sharding/compile.h"

static inline void append_instruction(char *text, size_t room, const zero_instruction *i)
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

static inline void assert_program(const zero_schedule *s, zero_program_kind program,
                                  const char *expected)
{
    char text[4000] = "";
    const zero_program *p = &s->programs[program];
    for (int at = 0; at < p->length; at++)
        append_instruction(text, sizeof text, &p->code[at]);
    assert_string_equal(text, expected);
}
