/* telling.h - --narrate: the first steps in words, with numbers of all ranks, which rank 0 collects
 * and prints (lesson/narrate.h). Other steps cost nothing. */
#pragma once

#include "cli/session.h"

/* Takes the room for events. Does nothing without --narrate. Collective, with one verdict:
 * ZERO_ERR_UNSUPPORTED, with the remedy, for what cannot be told: large models, many ranks, devices
 * and replicas; ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_telling_open(zero_session *s);
void zero_telling_close(zero_session *s); /* local */

/* Step number `step`, from 1, begins: it is told, or it is not. Local. */
void zero_telling_begin(zero_session *s, int64_t step);
/* The step has ended: rank 0 prints it. Collective if the step is told. */
ZERO_NODISCARD zero_status zero_telling_end(zero_session *s);
