/* library_test.h - trainers of the tied model, and calls that must be refused. */
#pragma once

#include "support/mpi_cmocka.h"

#include "support/library_models.h"

#include <zero/optimizer.h>

static const zero_source tied_source = {.sample = tied_sample};
static const zero_step_input tied_input = {
    .lr = 2e-2, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .clip = 1.0};

static inline zero_comm *open_world(void)
{
    zero_comm *comm = NULL;
    all_ok(zero_comm_open(MPI_COMM_WORLD, 60.0, &comm));
    return comm;
}

static inline void describe_tied(zero_model *model)
{
    tied_model tied;
    tied_init(&tied);
    all_ok(zero_model_describe(&tied.tables, model));
}

static inline zero_trainer_spec tied_spec(const zero_model *model)
{
    return (zero_trainer_spec){.model = model, .micro_batch = 4, .seed = 7};
}

static inline zero_trainer *open_trainer(const zero_trainer_spec *spec, zero_comm *comm)
{
    zero_trainer *t = NULL;
    zero_status st = zero_trainer_open(spec, comm, &t);
    all_ok(st);
    return t;
}

static inline void take_step(zero_trainer *t, int64_t step, zero_step_result *out)
{
    zero_step_input in = tied_input;
    in.step = step;
    if (zero_trainer_step(t, &tied_source, &in, out) != ZERO_OK)
        fail_msg("step %d: %s", (int)step, zero_last_error());
}

/* A call that must be refused on all ranks as wrong, with this text in its message. */
#define refused(call, text) refused_at(call, #call, text)
static inline void refused_at(zero_status st, const char *call, const char *text)
{
    bool told = strstr(zero_last_error(), text) != NULL;
    if (st != ZERO_ERR_INVALID || !told)
        print_error("%s: status %d, '%s' is not in '%s'\n", call, (int)st, text,
                    zero_last_error());
    assert_all(st == ZERO_ERR_INVALID && told);
}
