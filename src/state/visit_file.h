/* visit_file.h - states that lie in the run's scratch file, visited through its slots (tier.h).
 *
 * To be called between walks, or in an instruction while no slot is in use. */
#pragma once

#include "state/runner.h"
#include "state/state_block.h"

/* As zero_states_visit(). Blocks are those of the file (offload.h). Blocks that were never written
 * are zeros. */
ZERO_NODISCARD zero_status zero_states_visit_file(zero_runner *r, int group,
                                                  zero_range range,
                                                  zero_visit_access access,
                                                  zero_state_visitor *visit, void *arg);

/* Writes zeros to the blocks that no visit has written: all their elements are padding. */
ZERO_NODISCARD zero_status zero_states_write_padding(zero_runner *r);
