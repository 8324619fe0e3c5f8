/* json_input.h - JSON that comes from outside, read strictly.
 *
 * A reader loads a file's bytes (bytes.h) and parses them here. Errors are ZERO_ERR_FORMAT
 * and name the file, the byte offset or the key, what was expected and what was found;
 * `path` is only for these messages. Nothing here is collective. */
#pragma once

#include "io/json_tree.h"

#define ZERO_JSON_DEPTH 64 /* nested lists and objects, at most */
#define ZERO_JSON_SHOWN 80

/* One value, and only white space after it. Refused are invalid UTF-8, NUL, duplicate keys,
 * nesting beyond ZERO_JSON_DEPTH, numbers out of range, and text whose tree would take more
 * than 24 times its size + 16 MiB. *root is the caller's (json_decref). */
zero_status zero_json_parse(const char *path, const void *text, size_t len, json_t **root);
/* The same, but whole numbers of 19 digits or more are read as real ones: transformers
 * writes 10^30 where it means any length. */
zero_status zero_json_parse_wide(const char *path, const void *text, size_t len,
                                 json_t **root);

/* Members of an object by key. Missing ones, other types and numbers out of range are
 * errors. Texts and members are borrowed from the object. */
zero_status zero_json_whole(const char *path, const json_t *object, const char *key,
                            int64_t least, int64_t most, int64_t *value);
zero_status zero_json_real(const char *path, const json_t *object, const char *key,
                           double *value); /* finite */
zero_status zero_json_flag(const char *path, const json_t *object, const char *key,
                           bool *value);
zero_status zero_json_text(const char *path, const json_t *object, const char *key,
                           const char **value);
zero_status zero_json_object(const char *path, const json_t *object, const char *key,
                             const json_t **value);
zero_status zero_json_array(const char *path, const json_t *object, const char *key,
                            const json_t **value);

/* Refuses members that are not among names[n]: a misspelt key is not ignored. */
zero_status zero_json_only(const char *path, const json_t *object, int n,
                           const char *const *names);

/* A text of the file as a message may show it: cut, and without control characters. Returns
 * `shown`. */
const char *zero_json_shown(const char *text, char shown[ZERO_JSON_SHOWN]);
/* The same in memory of the block that it stands in. */
#define ZERO_SHOWN_SHORT(text) zero_json_shown((text), (char[ZERO_JSON_SHOWN]){""})
