/* embedded.h - text files that the build puts into the program (cmake/EmbedTexts.cmake). */
#pragma once

#include "base/fail.h"

typedef struct {
    const char *name; /* of the file, without folder and ending */
    const char *text;
} zero_embedded;

/* The text of a table that ends with a NULL name; NULL: there is none. */
static inline const char *zero_embedded_text(const zero_embedded *table, const char *name)
{
    for (; table->name; table++)
        if (zero_same_text(table->name, name)) return table->text;
    return NULL;
}
