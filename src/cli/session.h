/* session.h - what a training run is made of, from its options to its engine. */
#pragma once

#include "base/fail.h"
#include "base/topology.h"
#include "checkpoint/directory.h"
#include "checkpoint/hugging_face.h"
#include "checkpoint/manifest.h"
#include "cli/dataset.h"
#include "cli/facts.h"
#include "cli/importing.h"
#include "cli/list.h"
#include "cli/machine.h"
#include "cli/progress.h"
#include "comm/clock_offset.h"
#include "comm/deadline.h"
#include "comm/hosts.h"
#include "data/loader.h"
#include "engine/engine.h"
#include "io/whole_file.h"
#include "report/show.h"
#include "state/trace.h"
#include "train/devices.h"
#include "train/metrics.h"

/* The checkpoint that a run resumes, and what its options have to do with it
 * (resumed_options.h). */
typedef struct {
    bool is_there; /* false: the run begins with its initial weights */
    int at;        /* its number among the directory's steps */
    char path[ZERO_STORAGE_PATH];
    /* The options of the run that saved it. Owned; the configuration borrows its texts. */
    json_t *options;
    char taken[2048];   /* options that were not given and are its, in words */
    char changes[1024]; /* options that differ from it, in words */
} zero_resumed;

/* A run's checkpoints and what it resumed from; see saving.h. */
typedef struct {
    zero_checkpoint_directory directory; /* --checkpoint; not open without it */
    zero_resumed resumed;
    int64_t start;       /* steps that were done before this run */
    int64_t saved;       /* the newest step that is safe; -1: none */
    double attempt;      /* when rank 0 last began to wait for the clock */
    int64_t asked;       /* requests for a checkpoint that this rank has seen */
    int64_t answered;    /* requests that all ranks have acted on */
    int64_t stop_at;     /* the step after which a requested stop is tried; 0: no request */
    int64_t stop_gap;    /* steps from there to the next try */
    zero_failure output; /* of rank 0's standard output */
    char data[ZERO_CHECKSUM]; /* of the tokens */
    char from[256];           /* in words, what the run resumed from */
} zero_saving;

/* A run's trace; see tracing.h. */
typedef struct {
    zero_trace_window window;
    int64_t first; /* the first step that is asked for; 0: the last ones are */
    zero_trace_ranks ranks;
    zero_whole_file place;    /* rank 0's: the file is its own from the start */
    bool is_open;             /* the options ask for a trace of steps that this run makes */
    bool is_recorded;         /* this rank is among `ranks` */
    zero_trace trace;         /* if it is */
    zero_clock_reading clock; /* at the start */
    double uncertainty;       /* of the worst node's */
} zero_tracing;

/* The steps that --narrate tells; see telling.h. */
typedef struct {
    zero_told *mine; /* [length] of this rank's program; NULL: nothing is told; owned */
    int length;
    zero_tale tale; /* rank 0's: all ranks'; owned */
} zero_telling;

typedef struct {
    const zero_options *given;
    zero_facts facts;
    zero_config config;     /* completed */
    zero_deadline deadline; /* of starting and ending MPI */
    zero_comm world;
    zero_host *hosts; /* [n_hosts] the machines; owned */
    int n_hosts;
    int node_ranks;  /* on this machine, whatever nodes --fake-nodes declares */
    bool fake_nodes; /* --fake-nodes declares more nodes than there are machines */
    zero_topology topology;
    size_t taken; /* bytes that the process had before it had data, which no plan counts */
    zero_device_place place; /* zeroed but for `sharing` with --device cpu */
    zero_thread_choice threads;
    zero_binding binding; /* of several threads */
    zero_dataset dataset;
    zero_loader loader;
    const char *why_collectives; /* in words, what --collectives auto saw; NULL: not auto */
    zero_model model;            /* the whole one */
    zero_model made;             /* the rank's part, if that is another one */
    const zero_model *part;      /* what the rank has of the model */
    zero_importing importing;  /* with --init-from, or of the checkpoint that is resumed */
    zero_hugging_face initial; /* the same, while the engine begins */
    zero_engine engine;
    zero_metrics metrics;        /* rank 0's; the others write nothing */
    bool metrics_warned;         /* that the file is incomplete */
    zero_progress_view progress; /* rank 0's; the others show nothing */
    zero_saving saving;
    zero_tracing tracing;
    zero_telling telling;
} zero_session;

/* Checks the options, which the caller has filled in, then starts MPI. Collective over
 * MPI_COMM_WORLD, like what follows; every rank gets the same verdict. After a failure the
 * caller closes `deadline`, too. */
ZERO_NODISCARD zero_status zero_session_open(zero_session *s);
/* Waits while another process writes a file of ours, "--metrics FILE", which `take` tries
 * to get for the session on rank 0 (await_lock.h). Collective, one verdict. */
ZERO_NODISCARD zero_status zero_session_await(zero_session *s, const char *option,
                                              const char *path, zero_lock_taker *take);
/* Builds everything above but `saving`; if a checkpoint is resumed, zero_saving_find() has
 * found it. */
ZERO_NODISCARD zero_status zero_session_build(zero_session *s);
/* The run as it is shown. Local. */
zero_run_view zero_session_view(const zero_session *s);
/* Collective; ends MPI. What saving.h opened is closed before, and `deadline` after. */
ZERO_NODISCARD zero_status zero_session_close(zero_session *s);
