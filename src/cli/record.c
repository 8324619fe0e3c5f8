#include "cli/record.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "cli/build.h"
#include "cli/notes.h"
#include "cli/output.h"
#include "comm/launch.h"
#include "math/blas.h"
#include "zero/version.h"

/* Texts that a record points to. */
typedef struct {
    char mpi[128], blas[128], arithmetic[256];
    json_t *config;   /* owned, as the next */
    zero_kind *kinds; /* [n_kinds] of ranks: the texts that decide their bits */
    int n_kinds;
} texts;

/* The configuration with what the ranks, the data and the machine decided. */
static json_t *resolve(const zero_session *s)
{
    const zero_shape *shape = s->model.shape;
    zero_config c = s->config;
    c.shape.layers = shape->layers;
    c.shape.hidden = shape->hidden;
    c.shape.heads = shape->heads;
    c.shape.seq = shape->seq;
    c.shape.vocab = shape->vocab;
    c.collectives = zero_algorithm_name(s->engine.schedule.input.collectives);
    if (!c.checkpoint) c.keep = 0; /* refused without --checkpoint */
    return zero_run_options_resolved(&c);
}

static zero_status fill_in(const zero_session *s, texts *t)
{
    zero_run_view view = zero_session_view(s);
    zero_launch_library(t->mpi, sizeof t->mpi);
    zero_blas_name(t->blas, sizeof t->blas);
    zero_show_arithmetic(&view, t->arithmetic, sizeof t->arithmetic);
    t->config = resolve(s);
    return t->config ? ZERO_OK : zero_fail(ZERO_ERR_NOMEM, "no memory for the options");
}

/* Ranks on nodes of several kinds may compute other bits. */
static zero_status find_kinds(zero_session *s, texts *t)
{
    char mine[sizeof t->arithmetic + sizeof t->blas + 2];
    snprintf(mine, sizeof mine, "%s; %s", t->blas, t->arithmetic);
    return zero_comm_kinds(&s->world, mine, &t->kinds, &t->n_kinds);
}

static zero_metrics_run describe(const zero_session *s, const texts *t)
{
    return (zero_metrics_run){.version = zero_version(),
                              .commit = zero_build_commit(),
                              .build = ZERO_BUILD,
                              .command = s->facts.command,
                              .has_file = s->given.file != NULL,
                              .started = s->facts.started,
                              .id = s->facts.run,
                              .options = s->facts.options,
                              .config = t->config,
                              .model = s->config.model,
                              .shape = s->model.shape,
                              .n_params = s->model.n_params,
                              .plan = &s->engine.schedule.input,
                              .schedule = &s->engine.schedule,
                              .layout = &s->world.layout,
                              .fake_nodes = s->fake_nodes,
                              .hosts = s->hosts,
                              .n_hosts = s->n_hosts,
                              .mpi = t->mpi,
                              .cpu = s->topology.cpu,
                              .cores = s->topology.usable_cores,
                              .node_cores = s->topology.allowed_cores,
                              .blas = t->blas,
                              .arithmetic = t->arithmetic,
                              .kinds = t->kinds,
                              .n_kinds = t->n_kinds,
                              .blas_threads = zero_blas_threads(),
                              .data = s->dataset.corpus.description,
                              .start = s->saving.start};
}

static void tell(zero_session *s, const texts *t)
{
    zero_run_view view = zero_session_view(s);
    zero_metrics_run run = describe(s, t);
    zero_show_setup(&view, &run);
    if (t->n_kinds > 1)
        fprintf(stderr,
                "zero: warning: ranks have %d kinds of kernels or BLAS: bits may depend on "
                "which rank computes what\n",
                t->n_kinds);
    zero_run_facts facts = {&s->config, s->engine.schedule.input.collectives, s->n_hosts};
    zero_notes_show(&s->given, &facts);
    if (s->saving.start >= s->config.steps) return;
    zero_metrics_begin(&s->metrics);
    zero_metrics_run_line(&s->metrics, &run);
}

zero_status zero_record_begin(zero_session *s)
{
    texts t = {.config = NULL};
    zero_status st = zero_agree(&s->world, fill_in(s, &t));
    if (st == ZERO_OK) st = find_kinds(s, &t);
    if (st == ZERO_OK && zero_comm_is_root(&s->world)) tell(s, &t);
    free(t.kinds);
    json_decref(t.config);
    return st == ZERO_OK ? zero_agree(&s->world, zero_output_check()) : st;
}
