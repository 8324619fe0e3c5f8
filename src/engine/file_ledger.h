/* file_ledger.h - the ledger of a run's scratch file on this rank: as planned, and as
 * measured.
 *
 * Transfers are counted when they have ended and succeeded (tier.h). Nothing here is
 * collective. */
#pragma once

#include "state/runner.h"

typedef struct {
    /* By all programs walked so far. They are equal once the last update is settled. */
    zero_offload_traffic planned, measured;
    zero_file_traffic visits; /* digests, checkpoints, initial values: in no program */

    /* Bytes in the file: all that have a place there, and those that were ever written. */
    size_t planned_bytes[ZERO_CLASSES], measured_bytes[ZERO_CLASSES];
} zero_file_ledger;

/* All zeros if the schedule has nothing in a file. */
zero_file_ledger zero_runner_file_ledger(const zero_runner *r);

bool zero_file_ledger_is_as_planned(const zero_file_ledger *l);
