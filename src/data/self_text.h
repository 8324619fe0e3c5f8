/* self_text.h - this project's own sources, for --data self.
 *
 * The text is written by cmake/EmbedSources.cmake when the program is built. */
#pragma once

#include <stddef.h>

extern const char zero_self_text[];
extern const size_t zero_self_len;
