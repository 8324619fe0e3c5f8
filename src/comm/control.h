/* control.h - the small messages that keep the ranks of a group of one mind.
 *
 * Every function here is collective over its group and blocks; all ranks call the same
 * functions in the same order. Collectives in flight keep moving while a rank waits here.
 * The watchdog covers these waits (watch.h: ZERO_ERR_STALLED), and the check compares what
 * ranks begin (check.h). */
#pragma once

#include "comm/group.h"

/* One verdict for all ranks, for work where one rank can fail alone (memory, files). If any
 * failed, every rank returns the status of the lowest that did, and zero_last_error() is
 * that rank's text after "rank R: ", or its text alone if every rank failed (a mistake that
 * all share). Costs one integer all-reduce when all is well. A rank with ZERO_ERR_STALLED
 * keeps it and asks no other. */
zero_status zero_agree(zero_comm *comm, zero_status mine);

/* The same after work on files, which may take some ranks much longer than others: the
 * watchdog and a SIGTERM allow this wait ZERO_FILE_PATIENCE times the usual time. */
zero_status zero_agree_after_files(zero_comm *comm, zero_status mine);

/* *any = true on all ranks if `mine` is true on at least one. */
zero_status zero_comm_any(zero_comm *comm, bool mine, bool *any);

/* A vote of all ranks with one reduction: *most = the largest of their numbers; *same:
 * whether they all gave the same `common`, which is not negative. */
zero_status zero_comm_vote(zero_comm *comm, int64_t mine, int64_t common, int64_t *most,
                           bool *same);

/* *most = the largest of the ranks' numbers. */
zero_status zero_comm_most(zero_comm *comm, int64_t mine, int64_t *most);

/* words[n] = their sums over the ranks, in place; n >= 0, the same on all ranks. Sums do
 * not overflow if the caller bounds the words. Traffic: zero_small_add_reduced() with 8
 * bytes. */
zero_status zero_comm_sum(zero_comm *comm, int64_t n, int64_t *words);

/* words[n] = their bitwise or over the ranks, in place; n >= 0, the same on all ranks. */
zero_status zero_comm_or(zero_comm *comm, int64_t n, uint64_t *words);

/* spans[i] = the ranks' spans of index i, merged, in place, for i < n; n >= 0, the same on
 * all ranks. Spans of one index belong to one tree and adjoin in the order of ranks, empty
 * ones left out; ZERO_ERR_INVALID everywhere if they do not, and then all are lost.
 * Traffic: zero_small_add_merged(). */
zero_status zero_comm_merge_spans(zero_comm *comm, int n, zero_tree_span *spans);

/* all[r * n + i] = mine[i] of rank r, 0 <= i < n; all is [size][n]. */
zero_status zero_comm_all_gather_doubles(zero_comm *comm, int n, const double *mine,
                                         double *all);

/* Copies data[bytes] of rank `root` to all ranks. */
zero_status zero_comm_broadcast(zero_comm *comm, int root, void *data, size_t bytes);

/* *same: whether this rank has the word of rank 0. It may differ between the ranks. */
zero_status zero_comm_compare_with_root(zero_comm *comm, uint64_t mine, bool *same);

/* Returns when all ranks have called it. */
zero_status zero_comm_barrier(zero_comm *comm);
/* The same after work on files, as zero_agree_after_files(). */
zero_status zero_comm_barrier_after_files(zero_comm *comm);
/* The same at the end of the group, or of what watches it: errors name it so. */
zero_status zero_comm_finish(zero_comm *comm);
