/* planned.h - models and their schedules that must be. */
#pragma once

#include "support/built.h"

#include "sharding/compile.h"

static inline zero_schedule compiled(const zero_plan_input *in)
{
    zero_schedule s;
    assert_ok(zero_schedule_compile(&s, in));
    return s;
}
