/* deepspeed_input.h - values of a DeepSpeed configuration by their path, and what is made of them.
 *
 * A value that is absent, null or "auto" counts as not given. Errors are ZERO_ERR_INVALID with the
 * key, what was expected and what was found. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "io/bytes.h"

/* What a file becomes. */
typedef struct {
    json_t *options;  /* as in a --config file; owned */
    zero_bytes notes; /* lines for the user: each key that is not taken as it is, and why */
    zero_bytes refused; /* keys without a counterpart that change results, in words */
    int n_refused;
} zero_deepspeed;

typedef struct {
    const char *path;   /* the file's, for messages */
    const json_t *file; /* borrowed */
    int64_t n_ranks;    /* that ZeRO shards over: ranks / tp; 0: any number */
    int64_t tp;         /* ranks that share each product; 0 or 1: none do */
    zero_deepspeed *out;
} zero_deepspeed_input;

/* The value at "a.b.c"; NULL if it is not given. */
const json_t *zero_deepspeed_value(const zero_deepspeed_input *in, const char *key);

/* True if the value is "auto". */
bool zero_deepspeed_is_auto(const zero_deepspeed_input *in, const char *key);

/* Set *value if it is given, and leave it alone otherwise. Whole numbers may be written as 5e8. */
ZERO_NODISCARD zero_status zero_deepspeed_whole(const zero_deepspeed_input *in,
                                                const char *key, int64_t least,
                                                int64_t *value);
ZERO_NODISCARD zero_status zero_deepspeed_real(const zero_deepspeed_input *in,
                                               const char *key, double *value);
ZERO_NODISCARD zero_status zero_deepspeed_flag(const zero_deepspeed_input *in,
                                               const char *key, bool *value);
ZERO_NODISCARD zero_status zero_deepspeed_text(const zero_deepspeed_input *in,
                                               const char *key, const char **value);
ZERO_NODISCARD zero_status zero_deepspeed_type_error(const zero_deepspeed_input *in,
                                                     const char *key, const char *expected);

/* One of zero's options. The value is taken over. */
ZERO_NODISCARD zero_status zero_deepspeed_put(const zero_deepspeed_input *in,
                                              const char *option, json_t *value);

/* A line for the user about a key. */
ZERO_NODISCARD zero_status zero_deepspeed_note(const zero_deepspeed_input *in,
                                               const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a key that has no counterpart and changes results. */
ZERO_NODISCARD zero_status zero_deepspeed_refuse(const zero_deepspeed_input *in,
                                                 const char *key, const char *reason);
