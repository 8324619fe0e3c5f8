/* text.h - bytes, counts and instructions in words. */
#pragma once

#include "sharding/instruction_text.h"
#include "train/config.h"

/* "1.25 GiB": three digits and more, binary units; below 1 KiB "512 B". Returns `text`. */
const char *zero_text_bytes(double bytes, char text[ZERO_PLAN_TEXT]);
/* The same as an argument of printf(). Valid in the enclosing block. */
#define ZERO_BYTES(bytes) zero_text_bytes((double)(bytes), (char[ZERO_PLAN_TEXT]){""})

/* The ending of a noun: "" for one, else "s". */
const char *zero_text_plural(int64_t n);

/* The batch of a completed configuration and the ranks that shard together, as new
 * facts. */
json_t *zero_batch_facts(const zero_config *config, int64_t seq);

/* "2 layers, 48 hidden, 1 head, T 32" */
void zero_text_shape(const zero_shape *shape, char text[ZERO_PLAN_TEXT]);
