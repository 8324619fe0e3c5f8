/* record.h - what a run says of itself before its first step and after its last one. */
#pragma once

#include "cli/session.h"

/* The part of it that decides bits: runs with equal texts have equal bits. True if every
 * CPU has these bits. */
bool zero_record_bits(const zero_session *s, char *text, size_t size);

/* Shows the head of the run, warnings and notes, and, if it has steps to do, begins its
 * metrics with the same. Collective; ZERO_ERR_ENV if the standard output cannot be
 * written. */
zero_status zero_record_begin(zero_session *s);

/* Sums over the steps of a run. */
typedef struct {
    double loss, val_loss; /* the last ones */
    bool has_val_loss;
    double seconds;      /* of all steps */
    double eval_seconds; /* of evaluations and samples */
    int64_t tokens;
} zero_totals;

/* The summary: loss, speed, profile, memory, communication, digest. With --quiet the loss
 * and the digest alone. Takes over the facts of the last line of the metrics. */
void zero_record_totals(const zero_session *s, const zero_totals *totals, json_t *final);
/* Instead of it, if the resumed checkpoint has all steps. */
void zero_record_finished(const zero_session *s, const char *digest);
