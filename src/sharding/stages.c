#include "sharding/stages.h"

#define ADDRESS(name) &zero_stage_##name,

static const zero_stage *const stages[ZERO_STAGE_COUNT] = {ZERO_STAGES(ADDRESS)};

const zero_stage *zero_stage_at(int number)
{
    assert(number >= 0 && number < ZERO_STAGE_COUNT);
    return stages[number];
}

const char *zero_stage_words(int number)
{
    return number >= 0 && number < ZERO_STAGE_COUNT ? stages[number]->words : NULL;
}
