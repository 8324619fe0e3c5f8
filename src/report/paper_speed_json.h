/* paper_speed_json.h - the figures of paper_speed.h as JSON. */
#pragma once

#include <stdio.h>

#include "report/paper_speed.h"

/* One object: machine, cells, how close they are, and the figure's counterfactual. Rates are in
 * flop/s, times in seconds, memory in bytes. */
ZERO_NODISCARD zero_status zero_paper_print_speed_json(const zero_paper_figure *figure,
                                                       const zero_machine_file *machine,
                                                       FILE *out);
