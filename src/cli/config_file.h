/* config_file.h - options from a JSON file. */
#pragma once

#include <jansson.h>

#include "train/config.h"

/* Reads one JSON object; *file is the caller's. ZERO_ERR_INVALID if it cannot be read, has
 * more than 64 MiB, is not JSON (with line and column) or not an object, or says a key
 * twice. */
ZERO_NODISCARD zero_status zero_config_file_load(const char *path, json_t **file);

/* The same from the file's bytes; `path` is for messages. */
ZERO_NODISCARD zero_status zero_config_file_parse(const char *path, const void *bytes,
                                                  size_t len, json_t **file);

/* Stores every value of `file` whose option's bit in `overridden` is 0, and adds the bits
 * of those to *set. Unknown keys are errors even where other keys are overridden. The
 * configuration then borrows strings from `file`. */
ZERO_NODISCARD zero_status zero_config_file_apply(const char *path, json_t *file,
                                                  uint64_t overridden, zero_config *config,
                                                  uint64_t *set);
