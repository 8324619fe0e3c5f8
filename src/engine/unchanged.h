/* unchanged.h - what surrounds programs that update nothing: evaluate, generate, token. */
#pragma once

#include "engine/engine.h"

/* To be called before: they read the parameters after the last step's update. */
zero_status zero_engine_settle_update(zero_engine *e);
/* To be called after: there was no vote, and wrong parameters may have been read. */
zero_status zero_engine_check_parameters(zero_engine *e);
