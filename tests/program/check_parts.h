/* check_parts.h - parts of check_metrics: what a run's metrics say about its program and its ranks. */
#pragma once

#include <jansson.h>

/* Each prints what is wrong, with the line, and exits with 1. */
_Noreturn void fail(const char *what, const char *line);
double real(const json_t *object, const char *key, const char *line);
json_int_t whole(const json_t *object, const char *key, const char *line);

/* The first line's program: its highest instruction is the highest, and no class is above its ledger.
 * Returns the bytes live there. */
json_int_t check_schedule(const json_t *run, const char *line);
/* Bytes from rank to rank: planned is sent, and rank 0's row and column are its ledger. */
void check_peers(const json_t *final, long ranks, const char *line);
/* The parts of each rank's step add up to it. */
void check_rank_seconds(const json_t *final, long ranks, const char *line);
/* If the plan has bytes from rank to rank, a step more moves as many. */
void compare_peers(const json_t *planned, const json_t *before, const json_t *after);
