/* expect.h - what members a JSON object from outside must have: expect.form. */
#pragma once

#include "io/json_input.h"

/* The object has the members that this section names. ZERO_ERR_FORMAT names `where`, the
 * object that has the member, the member, what was expected and what was found. */
zero_status zero_expect(const char *where, const json_t *object, const char *section);
