/* json_put.h - trees of facts, printed. */
#pragma once

#include "io/json_tree.h"

/* Prints the object, legible, and a newline, and releases it. ZERO_ERR_NOMEM, also for
 * NULL. */
zero_status zero_json_print(json_t *object, size_t flags, FILE *out);

/* Prints a section of forms/report.txt, with texts legible, and releases the tree, which
 * may be NULL. ZERO_ERR_NOMEM. */
zero_status zero_report_print(const char *section, json_t *facts, FILE *out);
