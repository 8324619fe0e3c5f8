/* info_disk.h - zero info --offload DIR: what a directory can do as a place for scratch files. */
#pragma once

#include <stdbool.h>

#include "zero/status.h"

/* Prints it; with a trial also how fast it is, which takes 1 to 2 s. On ranks other than 0 there
 * is no trial: it would disturb that of rank 0. zero_disk_trial()'s errors. */
ZERO_NODISCARD zero_status zero_info_disk(const char *directory, bool with_trial,
                                          bool json);
