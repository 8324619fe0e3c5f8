/* simulation_json.h - simulated steps as one JSON object; its keys: README.md. */
#pragma once

#include <stdio.h>

#include "report/simulation_report.h"

/* The same simulation gives the same text. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_simulation_show_json(const zero_simulation_report *report,
                                                     FILE *out);
