/* deepspeed_input.h - values of a DeepSpeed configuration by their path, and what is made
 * of them.
 *
 * A value that is absent, null or "auto" counts as not given. The first mistake is kept in
 * `status`: ZERO_ERR_INVALID with the key, what was expected and what was found. After it
 * nothing is read. */
#pragma once

#include "cli/deepspeed.h"

typedef struct {
    const char *path;   /* the file's, for messages */
    const json_t *file; /* borrowed */
    int64_t n_ranks;    /* that ZeRO shards over: ranks / tp; 0: any number */
    int64_t tp;         /* ranks that share each product; 0 or 1: none do */
    zero_status status;
    zero_deepspeed out;
} zero_deepspeed_input;

/* The value at "a.b.c"; NULL if it is not given. */
const json_t *zero_deepspeed_value(const zero_deepspeed_input *in, const char *key);

/* True if the value is "auto". */
bool zero_deepspeed_is_auto(const zero_deepspeed_input *in, const char *key);

/* The value, or `absent` if it is not given or wrong. Whole numbers may be written as
 * 5e8. */
int64_t zero_deepspeed_whole(zero_deepspeed_input *in, const char *key, int64_t least,
                             int64_t absent);
double zero_deepspeed_real(zero_deepspeed_input *in, const char *key, double absent);
bool zero_deepspeed_flag(zero_deepspeed_input *in, const char *key, bool absent);
const char *zero_deepspeed_text(zero_deepspeed_input *in, const char *key,
                                const char *absent);

/* A mistake: "FILE: ..."; or the value of a key is not what was expected. */
void zero_deepspeed_wrong(zero_deepspeed_input *in, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void zero_deepspeed_expected(zero_deepspeed_input *in, const char *key,
                             const char *expected);

/* One of zero's options. The value is taken over. */
void zero_deepspeed_put(zero_deepspeed_input *in, const char *option, json_t *value);

/* A line for the user about a key; the same for one that has no counterpart and changes
 * results. */
void zero_deepspeed_note(zero_deepspeed_input *in, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void zero_deepspeed_refuse(zero_deepspeed_input *in, const char *key, const char *reason);

/* deepspeed_training.c: what decides numbers. Batches, the optimizer, the learning rate. */
void zero_deepspeed_take_training(zero_deepspeed_input *in);
