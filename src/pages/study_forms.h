/* study_forms.h - a study as text, CSV and JSON. */
#pragma once

#include <stdio.h>

#include <jansson.h>

#include "pages/study.h"

void zero_study_print(const zero_study *study, FILE *out);
/* A row per point of all studies, the first of which names the columns. */
void zero_studies_print_csv(const zero_study *studies, int n, FILE *out);
/* NULL without memory. */
json_t *zero_study_describe(const zero_study *study);

/* A field of CSV, in quotes if it needs them. */
void zero_csv_text(const char *text, FILE *out);
/* A comma and 17 digits; nothing after the comma for what is not finite. */
void zero_csv_real(double value, FILE *out);
