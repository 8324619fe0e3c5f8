/* machine.h - all ranks of a run in one process, with real arithmetic and without MPI.
 *
 * Each rank is a thread with an engine of its own: the schedule that a run would compile,
 * the memory that this schedule lays out, the backend `naive`. The threads exchange the
 * messages that processes would (comm/local.h). So losses, norms and digests have the bits
 * of a run with as many processes, and a lesson shows that run's numbers.
 *
 * A walk notes what each rank did in each instruction; the tale is read afterwards, in any
 * order. */
#pragma once

#include "data/corpus.h"
#include "sharding/schedule.h"
#include "state/told.h"
#include "train/config.h"

typedef struct zero_lesson_machine zero_lesson_machine;

typedef struct {
    int64_t step;      /* from 1 */
    double loss;       /* mean over all ranks' positions, nats */
    double grad_norm;  /* before clipping */
    double loss_scale; /* with which gradients were made */
    double lr;
    bool skipped; /* fp16: a gradient was not finite, so nothing was updated */
} zero_lesson_step;

/* A machine for a configuration as the command line fills it; completed here for n_ranks
 * ranks, 1 to ZERO_TOLD_RANKS. Its weights are those with which a run begins.
 * ZERO_ERR_INVALID as zero_config_complete() and zero_schedule_compile();
 * ZERO_ERR_UNSUPPORTED, with the option, for what a lesson cannot run: devices, imported
 * weights, checkpoints to resume, replicas, windows. Strings of the configuration are
 * borrowed. */
zero_status zero_lesson_open(const zero_config *config, int n_ranks,
                             zero_lesson_machine **machine);
void zero_lesson_close(zero_lesson_machine **machine); /* accepts a pointer to NULL */

/* Walks all ranks through the next training step. *result and the tale are valid until the
 * next one. ZERO_ERR_DIVERGED if a gradient is not finite and no smaller loss scale can
 * help. */
zero_status zero_lesson_walk(zero_lesson_machine *machine, zero_lesson_step *result);

/* The digest of all ranks' parameters and moments, as `zero train` prints it. Ends what
 * the last step left in flight. */
zero_status zero_lesson_digest(zero_lesson_machine *machine, char hex[33]);

/* What it is made of. The tale is the last step, as each rank tells it, instruction by
 * instruction. */
typedef struct {
    zero_config config; /* completed */
    zero_model model;   /* the whole one */
    zero_corpus corpus; /* its tokenizer has the letters, for words such as "abca" */
    zero_tale tale;
} zero_lesson_shown;
const zero_lesson_shown *zero_lesson_show(const zero_lesson_machine *machine);
/* What a rank walks. */
const zero_schedule *zero_lesson_schedule(const zero_lesson_machine *machine, int rank);
