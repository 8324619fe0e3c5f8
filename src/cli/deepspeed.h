/* deepspeed.h - a DeepSpeed configuration as options of zero train.
 *
 * Values that DeepSpeed's file leaves out are DeepSpeed's defaults where zero's would
 * change results: without gradient_clipping, clip is 0. "auto", which Hugging Face's
 * Trainer replaces by its own arguments, counts as left to the user. */
#pragma once

#include <jansson.h>

#include "io/bytes.h"

/* A row of deepspeed.keys, which says what the rules are. A key is named by its path in the
 * file. */
typedef struct {
    const char *path, *rule, *reason;
} zero_deepspeed_key;

extern const zero_deepspeed_key zero_deepspeed_keys[]; /* ends with a NULL path */

/* The result of reading a file. */
typedef struct {
    json_t *options;  /* as in a --config file; owned */
    zero_bytes notes; /* lines for the user: each key that is not taken as it is, and why */
    zero_bytes refused; /* keys without a counterpart that change results, in words */
    int n_refused;
} zero_deepspeed;

/* Translates an object, read from `path`, for n_ranks ranks; 0: any number.
 * ZERO_ERR_INVALID if a value has a wrong type, or the batches contradict each other. Keys
 * without a counterpart are for zero_deepspeed_check(). */
zero_status zero_deepspeed_translate(const char *path, const json_t *file, int64_t n_ranks,
                                     zero_deepspeed *out);

/* ZERO_ERR_INVALID with the keys that were refused, if there are any. */
zero_status zero_deepspeed_check(const char *path, const zero_deepspeed *d);

void zero_deepspeed_destroy(zero_deepspeed *d);
