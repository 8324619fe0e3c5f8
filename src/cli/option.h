/* option.h - one option: a row of a table, which is a text in options/
 * (cmake/EmbedOptions.cmake).
 *
 * Command lines, --config files, --help, man pages, what identifies a run and what ranks
 * must agree on all come from such rows. A row says where its value lies in the struct that
 * a command fills, and where the option has no effect: a note says so then, nothing is
 * ignored silently. */
#pragma once

#include <jansson.h>

#include "base/field.h"

typedef enum {
    ZERO_OPTION_TEXT, /* const char *: any text but the empty one */
    ZERO_OPTION_CHOICE, /* const char *: one of the row's words; bool or an enumeration: its place */
    ZERO_OPTION_WHOLE, /* int64_t or int in [min, max]; may have a suffix (base/quantity.h) */
    ZERO_OPTION_REAL, /* double in [low, high] */
    ZERO_OPTION_RATE, /* the same; may have a suffix */
    ZERO_OPTION_FLAG, /* bool: alone, or =on, =off */
} zero_option_kind;

/* Bits of zero_option.is. */
enum {
    ZERO_OPTION_IDENTITY = 1,     /* part of a run's identity: kept in its checkpoints */
    ZERO_OPTION_PLANNED = 2,      /* means something to a plan */
    ZERO_OPTION_PER_RANK = 4,     /* may differ between ranks */
    ZERO_OPTION_COMMAND_LINE = 8, /* not in a --config file */
    /* Decides numbers: a resumed run that is not given it takes that of its checkpoint. */
    ZERO_OPTION_RESUMED = 16,
    ZERO_OPTION_PLACED = 32, /* where and how it is computed: zero verify has it, too */
};

#define ZERO_OPTION_NOWHERE SIZE_MAX
#define ZERO_OPTION_WORD    INT64_MIN /* the value of a whole number given as its word */

typedef struct {
    const char *group; /* heading above it in --help; NULL: the previous option's */
    const char *name;  /* without dashes, as in a configuration file */
    zero_option_kind kind;
    size_t offset; /* of the field in the struct; ZERO_OPTION_NOWHERE: it has none */
    size_t size;   /* of the field; 0: that of the kind's first type */
    unsigned is;   /* bits, as above */

    const char *argument; /* what --help calls the value; NULL: the words, or nothing */
    const char *help;
    const char *standard; /* the default, as a user would write it; NULL: left open, and */
    const char *absent;   /* in words, what happens then */
    /* Where it has no effect, or less than it seems to: an expression (facts/facts.h) over
     * the options and what a command knows of its run, and the note, after the option's
     * name. The first that holds is told; zeros past the last one. */
    struct {
        const char *when, *words;
    } idle[3];

    const char *words; /* CHOICE: "lines|bar"; WHOLE: a word instead of a number */
    /* CHOICE: more words; WHOLE: the meaning of number i, for --help. NULL past the
     * last. */
    const char *(*name_at)(int i);
    int64_t min, max; /* CHOICE of an enumeration: the value of the first word is min */
    double low, high;
} zero_option;

/* The place of a value: .offset and .size. */
#define ZERO_OPTION_FIELD(type, member) \
    .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)

#define ZERO_OPTION_TEXT_BYTES ZERO_FIELD_TEXT_BYTES
#define ZERO_OPTION_HELP_BYTES 512

/* The row of this name in a table that ends with a row without one; there must be one. */
const zero_option *zero_option_named(const zero_option *rows, const char *name);

/* Sets the row's field in the struct to its default: `standard`, or what stands for "left
 * open": NULL, false, -1, or 0 where an option cannot be 0. */
void zero_option_reset(const zero_option *option, void *into);

/* Checks `text` and stores it in the struct; texts and choices are borrowed. `where` is
 * what a message calls the value: "--steps -1", or "\"steps\": -1 in run.json".
 * ZERO_ERR_INVALID with what is allowed. */
zero_status zero_option_store(const zero_option *option, const char *text,
                              const char *where, void *into);

/* The value as a user would write it, in `text` or elsewhere; NULL if it is left open or
 * has no field. */
const char *zero_option_value(const zero_option *option, const void *from,
                              char text[ZERO_OPTION_TEXT_BYTES]);

/* The value with its type, null if it is left open; and all of a table that have a field,
 * by name. The caller's. */
json_t *zero_option_typed(const zero_option *option, const void *from);
json_t *zero_options_typed(const zero_option *rows, const void *from);

/* The row's help, with the meanings of its numbers. */
void zero_option_help(const zero_option *option, char text[ZERO_OPTION_HELP_BYTES]);

/* The value as --help calls it: "N", "fp32|bf16|fp16"; empty for a flag. */
void zero_option_argument(const zero_option *option, char text[ZERO_OPTION_TEXT_BYTES]);
