/* model_writers.h - which units write the gradient of a group: a search of all units. */
#pragma once

#include <stdbool.h>

#include "zero/model.h"

static inline bool reads_group(const zero_unit *unit, int group)
{
    for (int k = 0; k < unit->n_groups; k++)
        if (unit->groups[k] == group) return true;
    return false;
}

/* The last unit, in backward order, that adds to a group's gradient. */
static inline int last_writer(const zero_model *model, int group)
{
    int u = 0;
    while (!reads_group(&model->units[u], group)) u++;
    return u;
}

/* The first, which defines it. */
static inline int first_writer(const zero_model *model, int group)
{
    int u = model->n_units - 1;
    while (!reads_group(&model->units[u], group)) u--;
    return u;
}
