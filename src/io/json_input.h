/* json_input.h - JSON that comes from outside, read strictly.
 *
 * Whoever reads a file takes its bytes (text.h) and parses them here; errors are
 * ZERO_ERR_FORMAT and name the file, the byte offset or the key, what was expected and what
 * was found. `path` is only for these messages. Nothing here is collective. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "zero/status.h"

#define ZERO_JSON_DEPTH 64 /* lists and objects within one another, at most */
#define ZERO_JSON_SHOWN 80

/* One value and nothing behind it but white space. Refused are invalid UTF-8, NUL, duplicate
 * keys, nesting beyond ZERO_JSON_DEPTH, numbers out of range, and what would take more than
 * 24 times its size + 16 MiB of memory as a tree. *root is the caller's (json_decref). */
ZERO_NODISCARD zero_status zero_json_parse(const char *path, const void *text, size_t len,
                                           json_t **root);

/* Members of an object by key; a missing one, and one of another type or out of range, is an
 * error. Strings and members are borrowed from the object. */
ZERO_NODISCARD zero_status zero_json_whole(const char *path, const json_t *object,
                                           const char *key, int64_t least, int64_t most,
                                           int64_t *value);
ZERO_NODISCARD zero_status zero_json_real(const char *path, const json_t *object,
                                          const char *key, double *value); /* finite */
ZERO_NODISCARD zero_status zero_json_flag(const char *path, const json_t *object,
                                          const char *key, bool *value);
ZERO_NODISCARD zero_status zero_json_text(const char *path, const json_t *object,
                                          const char *key, const char **value);
ZERO_NODISCARD zero_status zero_json_object(const char *path, const json_t *object,
                                            const char *key, const json_t **value);
ZERO_NODISCARD zero_status zero_json_array(const char *path, const json_t *object,
                                           const char *key, const json_t **value);

/* Refuses members that are none of names[n]: a misspelt key is not ignored. */
ZERO_NODISCARD zero_status zero_json_only(const char *path, const json_t *object, int n,
                                          const char *const *names);

/* A key or another text of the file as a message may show it: no control characters, and
 * cut to its room. Returns `shown`. */
const char *zero_json_shown(const char *text, char shown[ZERO_JSON_SHOWN]);
