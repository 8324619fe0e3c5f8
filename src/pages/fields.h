/* fields.h - members of the lines of a run, beyond those of io/json_input.h: numbers that may be
 * null, texts that must fit. `where` names path and line. */
#pragma once

#include <jansson.h>

#include "zero/status.h"

/* A number of at least `least`, or null, which becomes NAN. */
ZERO_NODISCARD zero_status zero_field_real_or_null(const char *where, const json_t *object,
                                                   const char *key, double least,
                                                   double *value);
/* A text of less than `size` bytes. */
ZERO_NODISCARD zero_status zero_field_text(const char *where, const json_t *object,
                                           const char *key, char *text, size_t size);
/* A name, which a key of an object is. */
ZERO_NODISCARD zero_status zero_field_name(const char *where, const char *key, char *text,
                                           size_t size);
