/* session.h - what a training run is made of, from its options to its engine. */
#pragma once

#include "base/topology.h"
#include "checkpoint/hugging_face.h"
#include "cli/run_options.h"
#include "cli/saving.h"
#include "data/corpus.h"
#include "data/loader.h"
#include "engine/engine.h"
#include "report/show.h"
#include "train/metrics.h"

struct zero_session {
    zero_options given;
    zero_config config; /* completed */
    zero_comm world;
    int node_ranks; /* on this machine, whatever nodes --fake-nodes declares */
    zero_topology topology;
    int blas_threads; /* in force; 0: this BLAS cannot be told */
    zero_corpus corpus;
    zero_loader loader;
    const char *why_collectives; /* in words, what --collectives auto saw; NULL: not auto */
    zero_model model;
    zero_hugging_face initial; /* while the engine begins, with --init-from */
    zero_engine engine;
    zero_metrics metrics; /* rank 0's; the others write nothing */
    bool metrics_warned;  /* that the file is incomplete */
    zero_saving saving;
};

/* Reads options (no MPI yet), starts MPI, then builds everything in the order above.
 * Collective over MPI_COMM_WORLD; every rank gets the same verdict. */
ZERO_NODISCARD zero_status zero_session_open(zero_session *s, int argc, char **argv);
/* The run as it is shown. Local. */
zero_run_view zero_session_view(const zero_session *s);
/* Collective; ends MPI. */
ZERO_NODISCARD zero_status zero_session_close(zero_session *s);
