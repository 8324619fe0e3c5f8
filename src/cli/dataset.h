/* dataset.h - the corpus of a run, opened once per node.
 *
 *     rank 0 of the node   reads, learns a tokenizer, tokenizes ... | copies |
 *     its other ranks      wait, as for files ..................... |        | the same tokens
 *
 * The tokens lie in a window of the node, after the rest of the corpus (corpus_share.h).
 * Each node reads the files. Where a node cannot share memory, each of its ranks opens a
 * corpus of its own, and `why_own` says why. */
#pragma once

#include "comm/comm.h"
#include "comm/window.h"
#include "data/corpus.h"

typedef struct {
    zero_corpus corpus;
    zero_window window; /* with the corpus' tokens; empty if ranks have their own */
    char why_own[256];  /* the reason; empty: they share, or the nodes have one rank each */
} zero_dataset;

/* Collective, with the same verdict everywhere. Other ranks wait under the watchdog, with
 * the patience that files get. `machine_ranks` of them are on this machine and share its
 * memory, of which the data may take what is free; 0: it is not asked. Errors are
 * zero_corpus_open()'s. */
zero_status zero_dataset_open(zero_dataset *d, zero_comm *world,
                              const zero_corpus_source *from, int machine_ranks);
void zero_dataset_close(zero_dataset *d); /* local */
