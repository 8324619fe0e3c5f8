/* config_file.h - options from a JSON file. */
#pragma once

#include "cli/command.h"

/* Reads one JSON object; *file is the caller's. ZERO_ERR_INVALID if it cannot be read, has
 * more than 64 MiB, is not JSON (with line and column) or not an object, or says a key
 * twice. `option` precedes the path of a file that cannot be read: "--config "; NULL: it is
 * another program's, and may have what hjson.h says. */
zero_status zero_config_file_load(const char *option, const char *path, json_t **file);

/* The same from the file's bytes; `path` is for messages. */
zero_status zero_config_file_parse(const char *path, const void *bytes, size_t len,
                                   json_t **file);

/* Stores every value of `file` whose row is not overridden[], and marks those rows in
 * set[]: [ZERO_OPTIONS_MOST] both. Unknown keys are errors even where other keys are
 * overridden. The struct then borrows texts from `file`. */
zero_status zero_config_file_store(const char *path, json_t *file,
                                   const zero_command *command, const bool overridden[],
                                   void *into, bool set[]);

/* Overwrites comments and last commas with blanks. Line ends stay, so that messages name
 * the places of the file. All else is left to the reader of JSON, strings with such
 * characters in them, too. */
void zero_hjson_blank(unsigned char *text, size_t len);
