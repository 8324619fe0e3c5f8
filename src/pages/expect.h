/* expect.h - what members a JSON object from outside must have, as a table.
 *
 * A path names members, joined by /. "a,b" stands for each of them, "a?" for one that
 * may be absent, "a[]" for the objects of a list, and "*31" for all members, whose names
 * have at most 31 bytes. Members that no row names are ignored: newer versions add some. */
#pragma once

#include "io/json_input.h"

typedef enum {
    ZERO_EXPECT_WHOLE,  /* a whole number from least to most */
    ZERO_EXPECT_NUMBER, /* a number of at least 0, or null */
    ZERO_EXPECT_ANY,    /* a number, or null */
    ZERO_EXPECT_FLAG,
    ZERO_EXPECT_TEXT, /* of at most `most` bytes */
    ZERO_EXPECT_OBJECT,
    ZERO_EXPECT_LIST
} zero_expected_kind;

typedef struct {
    const char *path;
    zero_expected_kind kind;
    int64_t least, most;
    const char
        *given; /* the row counts only if there is a fact at this path; NULL: always */
} zero_expected;

/* ZERO_ERR_FORMAT names `where`, the object that has the member, the member, what was
 * expected and what was found. */
ZERO_NODISCARD zero_status zero_expect(const char *where, const json_t *object,
                                       const zero_expected *rows, int n);
