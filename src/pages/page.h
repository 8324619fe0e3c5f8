/* page.h - a report as one HTML file: no network, no script, light and dark, and it prints.
 *
 * The page is well-formed XML, so that anything can check it. Texts from outside come in through
 * escape.h alone. A section without data says why it has none. */
#pragma once

#include <stdio.h>

#include "pages/page_input.h"

/* Writes the page to a stream, whose errors the caller sees by ferror(). ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_page_print(const zero_page *page, FILE *out);
