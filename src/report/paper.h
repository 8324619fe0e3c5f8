/* paper.h - the paper's tables next to our numbers. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "zero/status.h"

/* Prints every cell of "table1", "table2" or "fig1": our exact value, the paper's, their
 * difference and how they agree; then what that means, and the counts. Or a figure's cells beside
 * ours, and why they differ: "fig6", "fig7" (paper_fig6.h, paper_fig7.h), "fig2", "fig3", "fig4",
 * "fig8", "turing-nlg", "trillion" (paper_speed.h); "figure2" means "fig2". At most 100 columns; with
 * `json`, one JSON object. For another name ZERO_ERR_INVALID, which names the tables; then
 * nothing is printed. The caller checks `out` for write errors. */
ZERO_NODISCARD zero_status zero_paper_show(const char *name, bool json, FILE *out);
