/* overwriting.h - what a command writes must not take the place of what it, or the next
 * one, reads.
 *
 * Files are the same if they have one device and inode, whatever their names and links. A
 * file that does not exist yet counts, too, if it would be read the next time, as in a
 * directory of --data. */
#pragma once

#include "train/config.h"

/* ZERO_ERR_INVALID, with both options, if --metrics, --trace, --checkpoint or, if it is not
 * NULL, the directory of a study would do so. Local. */
zero_status zero_overwriting_check(const zero_config *config, const char *study);

/* The same of the directory that an export makes, and the checkpoint that it reads. */
zero_status zero_overwriting_check_export(const char *to, const char *checkpoint);
