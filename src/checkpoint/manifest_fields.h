/* manifest_fields.h - what a manifest says: rows that its reader (manifest.c) and its writer
 * (manifest_write.c) share. */
#pragma once

#include "checkpoint/manifest.h"

typedef enum {
    WHOLE,    /* int64_t */
    INT,      /* a whole number in an int */
    SCALE,    /* of losses: float */
    TYPE,     /* zero_type */
    SCHEME,   /* zero_partition_scheme */
    RULE,     /* an optimizer's number in an int */
    CHECKSUM, /* char[ZERO_CHECKSUM] */
    DATA,     /* the same, or "" */
    TEXT,     /* the machine's arithmetic */
    SHAPE,    /* zero_shape */
    OBJECT,   /* of these fields */
    OPTIONS,  /* json_t *, an object of texts */
    KEPT,     /* json_t *, an object of files */
    TENSORS,
    SHARDS,
} kind;

/* Members that are not always there. */
typedef enum {
    ALWAYS,
    IF_GPT2,
    IF_SHAPE, /* of another architecture */
    IF_OPTIONS,
    IF_TOKENIZER,
    IF_SHARED,
    IF_KEPT,
    IF_OPTIMIZER, /* other than AdamW */
    IF_STAGES,    /* of a pipeline */
    N_IFS
} when;

typedef struct field {
    const char *key;
    kind kind;
    size_t at;           /* in the struct that has it */
    int64_t least, most; /* of a whole number */
    when when;
    const struct field *fields; /* of an object; the last one has no key */
} field;

#define STEPS_MOST (INT64_C(1) << 62) /* a run counts on from there */
#define AT(member) .at = offsetof(zero_manifest, member)

static const field of_file[] = {
    {"bytes", WHOLE, offsetof(zero_manifest_file, bytes), .most = INT64_MAX},
    {"checksum", CHECKSUM, .at = offsetof(zero_manifest_file, checksum)},
    {.key = NULL}};

static const field of_loss_scale[] = {
    {"scale", SCALE, AT(loss_scale.scale)},
    {"clean_steps", WHOLE, AT(loss_scale.clean_steps), .most = ZERO_LOSS_SCALE_WINDOW},
    {"hysteresis", INT, AT(loss_scale.hysteresis), 1, ZERO_LOSS_SCALE_HYSTERESIS},
    {.key = NULL}};

static const field of_partition[] = {
    {"scheme", SCHEME, AT(table.layout.scheme)},
    {"ranks", INT, AT(table.layout.n_ranks), 1, ZERO_SHARDS_MOST},
    {.key = NULL}};

/* One slice would be a model that is not shared, which is version 1. */
static const field of_tp[] = {{"size", INT, AT(table.layout.tp), 1, ZERO_TP_MOST},
                              {"slices", INT, AT(table.layout.slices), 2, ZERO_TP_MOST},
                              {.key = NULL}};

static const field of_pp[] = {{"size", INT, AT(table.layout.pp), 2, ZERO_SHARDS_MOST},
                              {.key = NULL}};

/* In the order of the file: "format" and "version" come first, and "checksum" last. */
static const field members[] = {
    {"step", WHOLE, AT(step), .most = STEPS_MOST},
    {"samples", WHOLE, AT(samples), .most = STEPS_MOST},
    {"updates", WHOLE, AT(updates), .most = STEPS_MOST},
    {"skipped", WHOLE, AT(skipped), .most = STEPS_MOST},
    {"seed", WHOLE, AT(seed), INT64_MIN, INT64_MAX},
    {"loss_scale", OBJECT, .fields = of_loss_scale},
    {"dtype", TYPE, AT(loss_scale.type)},
    {"digest", CHECKSUM, AT(digest)},
    {"data", DATA, AT(data)},
    {"arithmetic", TEXT, AT(arithmetic)},
    {"gpt2", SHAPE, AT(shape), .when = IF_GPT2},
    {"shape", SHAPE, AT(shape), .when = IF_SHAPE},
    {"options", OPTIONS, AT(options), .when = IF_OPTIONS},
    {"tokenizer", OBJECT, AT(tokenizer), .when = IF_TOKENIZER, .fields = of_file},
    {"kept", KEPT, AT(kept), .when = IF_KEPT},
    {"optimizer", RULE, AT(table.layout.optimizer), .when = IF_OPTIMIZER},
    {"partition", OBJECT, .fields = of_partition},
    {"tp", OBJECT, .when = IF_SHARED, .fields = of_tp},
    {"pp", OBJECT, .when = IF_STAGES, .fields = of_pp},
    {"tensors", TENSORS, .at = 0},
    {"shards", SHARDS, .at = 0},
    {.key = NULL}};
