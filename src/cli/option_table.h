/* option_table.h - every option, once: parsing, --config and --help all read this table.
 *
 * An option that a later version will honour stands here too, with the values whose meaning
 * is what this version does anyway; the others are refused, never ignored. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    ZERO_OPTION_TEXT,   /* const char *: any text but the empty one */
    ZERO_OPTION_CHOICE, /* const char *: one of `words` */
    ZERO_OPTION_WHOLE,  /* int64_t in [min, max]; may end in K, M or G */
    ZERO_OPTION_REAL,   /* double in [low, high] */
    ZERO_OPTION_FLAG,   /* bool: alone, or =on, =off */
} zero_option_kind;

#define ZERO_OPTION_NOWHERE SIZE_MAX

typedef struct {
    const char *group;    /* heading above it in --help; NULL: the previous option's */
    const char *name;     /* without dashes, as in a configuration file */
    const char *argument; /* what --help calls the value; NULL: the words, or none */
    const char *help;
    const char *standard; /* the default, as a user would write it; NULL: `absent` */
    const char *absent;   /* in words, what happens without it */
    const char *words;    /* "lines|bar" */
    const char
        *only; /* NULL: all values; else the one that this version honours, "": none */
    zero_option_kind kind;
    bool command_line_only;
    int64_t min, max;
    double low, high;
    size_t offset; /* of the field in zero_config; ZERO_OPTION_NOWHERE: it has none */
} zero_option;

/* All options in the order of --help; at most 64. */
const zero_option *zero_option_table(int *n);

/* The option called `name` (its first `length` bytes), and its place in the table; NULL if
 * there is none. Abbreviations are no names: a script must not break when an option is
 * added. */
const zero_option *zero_option_find(const char *name, size_t length, int *index);

/* The name that comes nearest to a wrong one; NULL if none is near. */
const char *zero_option_nearest(const char *name);
