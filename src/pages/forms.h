/* forms.h - the forms of this folder (run.form, study.form, trace.form). */
#pragma once

#include "facts/csv.h"
#include "facts/form.h"

/* Prints a section of a file of forms. `put`: zero_legible_print on a terminal,
 * zero_escape on a page. */
zero_status zero_print_form(const char *file, const char *section, const json_t *tree,
                            zero_put_text *put, FILE *out);
/* The same in memory, for free(), with texts as they are. */
zero_status zero_text_of_form(const char *file, const char *section, const json_t *tree,
                              char **text);
