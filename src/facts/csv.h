/* csv.h - rows of facts as RFC 4180 has them, but for their end, which is a new line
 * alone. */
#pragma once

#include "facts/facts.h"

/* Rows of the items of a list, within `outer` (NULL: alone): numbers that are not whole in
 * this unit, the texts of a list with blanks between them, nothing for what is missing or
 * null. Columns are a spec (facts.h); with `names` they are the first row. */
void zero_csv_rows(const char *spec, const char *unit, const json_t *list,
                   const zero_scope *outer, bool names, FILE *out);

/* A field, in quotes if it needs them. Hidden characters are shown by number. */
void zero_csv_text(const char *text, FILE *out);
