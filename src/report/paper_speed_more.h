/* paper_speed_more.h - what each figure of paper_speed.h shows beyond its runs. */
#pragma once

#include <stdio.h>

#include "report/paper_speed.h"

/* The figure's shape and its counterfactual, at most 100 columns. */
void zero_paper_print_more(const zero_paper_figure *figure,
                           const zero_machine_file *machine, FILE *out);
