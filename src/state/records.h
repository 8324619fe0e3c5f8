/* records.h - hashes of the optimizer states, to see whether they change between two
 * updates.
 *
 * They cover what this rank owns: masters, which in fp32 are the parameters, momentum and
 * variance, in blocks of ZERO_RECORD_BLOCK elements. Without check_memory these functions
 * do nothing. */
#pragma once

#include "state/runner.h"

/* Hashes the states of group g, which have just been written. Local; the status of
 * zero_states_view(). */
zero_status zero_records_take(zero_runner *r, int g);

/* ZERO_ERR_CORRUPTED, with the rank and its place, if a rank's states are not those of its
 * records; the status of zero_states_view() if a rank cannot read its states. Collective,
 * one verdict. */
zero_status zero_records_verify(zero_runner *r);
