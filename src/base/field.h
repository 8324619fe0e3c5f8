/* field.h - the members of a struct, listed once.
 *
 * A table of fields says name, type and place of what decides something. Whether two
 * structs agree, what differs, and how their values read come from that one table. */
#pragma once

#include "base/fail.h"

typedef enum {
    ZERO_FIELD_FLAG,  /* bool */
    ZERO_FIELD_INT,   /* int, or an enumeration */
    ZERO_FIELD_WHOLE, /* int64_t */
    ZERO_FIELD_REAL,  /* double */
    ZERO_FIELD_FLOAT,
    ZERO_FIELD_TEXT,  /* const char *, which may be NULL */
    ZERO_FIELD_CHARS, /* an array of char that ends with a zero */
} zero_field_kind;

typedef struct {
    const char *name;
    zero_field_kind kind;
    size_t offset;

    /* The names of an enumeration's values. NULL: numbers are shown. */
    const char *(*word)(int value);
} zero_field;

#define ZERO_FIELD_TEXT_BYTES 320 /* longer texts are cut there */

/* A row of such a table: ZERO_FIELD(zero_plan_input, bucket). _NAMED is for
 * enumerations. */
#define ZERO_FIELD(type, member) ZERO_FIELD_NAMED(type, member, NULL)
#define ZERO_FIELD_NAMED(type, member, word) \
    { \
#member, ZERO_FIELD_KIND(((type *)0)->member), offsetof(type, member), word \
    }
#define ZERO_FIELD_KIND(member) \
    _Generic((member), \
        bool: ZERO_FIELD_FLAG, \
        int: ZERO_FIELD_INT, \
        unsigned: ZERO_FIELD_INT, \
        int64_t: ZERO_FIELD_WHOLE, \
        double: ZERO_FIELD_REAL, \
        float: ZERO_FIELD_FLOAT, \
        char *: ZERO_FIELD_CHARS, \
        const char *: ZERO_FIELD_TEXT)

/* The value of the field in the struct at `of`, as a user would write it: on, off; the
 * fewest digits that read back as the same number; a text that is NULL is empty. */
void zero_field_write(const zero_field *field, const void *of,
                      char text[ZERO_FIELD_TEXT_BYTES]);
