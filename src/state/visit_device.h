/* visit_device.h - states that lie on a device, visited through chunks of the host's memory. */
#pragma once

#include "state/runner.h"
#include "state/state_block.h"

/* As zero_states_visit(). Blocks have ZERO_OFFLOAD_BLOCK elements, from the beginning of the range. */
ZERO_NODISCARD zero_status zero_states_visit_device(zero_runner *r, int group,
                                                    zero_range range,
                                                    zero_visit_access access,
                                                    zero_state_visitor *visit, void *arg);
