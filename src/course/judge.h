/* judge.h - ranks that run a student's program, and the messages between them.
 *
 * Each rank is a closed process (jail.h) that talks to nobody but the judge: the judge has
 * every message in its hands, so it counts them, knows who waits for whom, and no rank can
 * see or change another's memory, or a figure. A message is sent as soon as it is begun,
 * and is received where its source is named, so what happens does not depend on which
 * process is faster.
 *
 * Time is counted in rounds. In a round a rank sends one message and receives one; work
 * that an exercise gives takes the rounds that it says, and messages travel during it. */
#pragma once

#include "course/jail.h"
#include "io/json_tree.h"

#define ZERO_JUDGE_RANKS   8
#define ZERO_JUDGE_NUMBERS 8
#define ZERO_JUDGE_BUFFERS 8

typedef struct {
    pid_t pid;
    int socket;
} zero_judged;

/* One call of the student's function on `size` ranks. */
typedef struct {
    int size, n_numbers, n_buffers;
    int per_node; /* ranks of a node; 0: nodes do not matter */
    int64_t numbers[ZERO_JUDGE_NUMBERS];
    int64_t lengths[ZERO_JUDGE_RANKS][ZERO_JUDGE_BUFFERS];
    float *buffers[ZERO_JUDGE_RANKS][ZERO_JUDGE_BUFFERS]; /* owned; changed by the call */
} zero_judge_call;

void zero_judge_call_destroy(zero_judge_call *call);

/* Starts the program as ZERO_JUDGE_RANKS ranks. */
zero_status zero_judge_start(const zero_jail *jail, char *const words[],
                             zero_judged ranks[ZERO_JUDGE_RANKS]);
void zero_judge_end(zero_judged ranks[ZERO_JUDGE_RANKS]); /* accepts zeroed ones */

/* Lets them do one call. *facts, new, tells what they did: bytes, busiest (bytes of the rank
 * that sends most), messages, rounds, memory (bytes of the rank with most), left (not
 * freed), crossing (bytes between nodes), read, and how often which collective was called;
 * where it went wrong also `fault`, a word, with `text`, and the rank. */
zero_status zero_judge_run(zero_judged ranks[ZERO_JUDGE_RANKS], zero_judge_call *call,
                           json_t **facts);
