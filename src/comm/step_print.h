/* step_print.h - the steps of a collective as text. */
#pragma once

#include <stdio.h>

#include "comm/step.h"

/* A line about the collective, and one per step. */
void zero_steps_print(const zero_steps *steps, FILE *file);
