/* tale.h - the events of one instruction among all ranks' events (state/told.h). */
#pragma once

#include "state/told.h"

/* Copies the events of a rank, whose program has n instructions, at most as many as the tale. */
void zero_tale_take(zero_tale *tale, int rank, const zero_told *events, int n);

/* The rank with which others are compared: the first whose program is the longest. Programs differ in
 * length where a rank owns nothing that could be read from its file. */
int zero_tale_leader(const zero_tale *tale);

/* The event of `rank` in the leader's instruction `at`; NULL: nothing. */
const zero_told *zero_tale_find(const zero_tale *tale, int at, int rank);

/* The REDUCE of `rank` that belongs to an owner's REDUCE_WAIT: the last one of its group before it;
 * NULL: none. */
const zero_told *zero_tale_reduce(const zero_tale *tale, int rank, const zero_told *wait);

/* The bytes that `from` sends to `to` in the leader's instruction `at`, by message or because `to` reads
 * its memory. */
int64_t zero_tale_bytes(const zero_tale *tale, int at, int from, int to);

/* Ranks in a TP group. */
int zero_tale_tp(const zero_tale *tale);
