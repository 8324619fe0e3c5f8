/* states_test.h - this rank's states of a small engine, whose states are in memory. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "engine/engine.h"

/* All that this rank holds of a group, to be read or written in place. */
static inline zero_state_block test_states(zero_engine *e, int group)
{
    zero_state_block view;
    if (zero_states_view(&e->runner, group, zero_states_held(&e->schedule, group), NULL,
                         &view) == ZERO_OK)
        return view;
    fprintf(stderr, "%s\n", zero_last_error());
    abort();
}
