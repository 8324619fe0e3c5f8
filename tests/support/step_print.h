/* step_print.h - the steps of a collective as text. */
#pragma once

#include <stdio.h>

#include "lists/step.h"

/* A line about the collective, then one per step. */
void zero_steps_print(const zero_steps *steps, FILE *file);
