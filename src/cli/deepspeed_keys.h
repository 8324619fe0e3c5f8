/* deepspeed_keys.h - what becomes of each key of a DeepSpeed configuration.
 *
 * A key is named by its path in the file, as in "zero_optimization.stage". A key that is not in the
 * table is refused, because it may change results. */
#pragma once

typedef enum {
    ZERO_DEEPSPEED_TAKEN,   /* deepspeed.c translates it */
    ZERO_DEEPSPEED_SECTION, /* an object: its members are keys, too */
    ZERO_DEEPSPEED_SWITCH,  /* the same, and without "enabled": true they mean nothing */
    ZERO_DEEPSPEED_NAMED,   /* not taken, and results stay the same: the reason is shown */
    ZERO_DEEPSPEED_FIXED, /* zero has this one value; another one is refused for the reason */
} zero_deepspeed_kind;

typedef struct {
    const char *path;
    zero_deepspeed_kind kind;
    const char *reason;
    const char *
        value; /* FIXED: as JSON; "false" also stands for null, 0 and what is not enabled */
} zero_deepspeed_key;

/* The row of a path; NULL if there is none. */
const zero_deepspeed_key *zero_deepspeed_find(const char *path);

/* All rows; NULL past the last one. */
const zero_deepspeed_key *zero_deepspeed_key_at(int i);
