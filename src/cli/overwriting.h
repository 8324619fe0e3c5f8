/* overwriting.h - a run's files must not take the place of those that it reads. */
#pragma once

#include "train/config.h"

/* ZERO_ERR_INVALID if --metrics or --trace is the file of another option, under any name. Local. */
ZERO_NODISCARD zero_status zero_overwriting_check(const zero_config *config);
