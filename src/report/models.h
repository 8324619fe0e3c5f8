/* models.h - the models that --model knows. */
#pragma once

#include <stdio.h>

/* A table of every preset: shape, parameters, model states without ZeRO, and its source; at
 * most 100 columns. */
void zero_models_show(FILE *out);
