#include "sharding/holdings.h"
#include "sharding/writer.h"

/* Microbatch by microbatch, forward and back through all units. */
static void write_passes(zero_writer *w)
{
    int n_units = w->model->n_units;
    bool trains = w->program == ZERO_PROGRAM_STEP;
    for (int m = 0; m < (trains ? w->in->accumulation : 1); m++) {
        zero_write_load(w, m);
        for (int u = 0; u < n_units; u++) zero_write_forward(w, u);
        for (int u = n_units - 1; trains && u >= 0; u--) {
            zero_write_backward(w, u);
            zero_write_complete(w, u);
        }
    }
}

static void write_program(zero_schedule *s, zero_program_kind program)
{
    const zero_stage *stage = zero_stage_at(s->input.stage);
    const zero_gradient_path *path = program == ZERO_PROGRAM_STEP ? stage->path : NULL;
    zero_writer w;
    if (!zero_writer_open(&w, s, program, path)) return;
    (s->pipe.n_stages > 1  ? zero_write_stage
     : stage->write_passes ? stage->write_passes
                           : write_passes)(&w);
    if (path) {
        zero_write_finish_reduce(&w);
        if (path->summed) path->summed(&w);
        zero_write_update(&w);
    }
    if (program == ZERO_PROGRAM_EVALUATE) zero_write_loss(&w);
    zero_writer_close(&w);
}

static void wait_for_all(zero_writer *w)
{
    for (int g = 0; g < w->model->n_groups; g++)
        if (zero_is_published(w->s, g)) zero_write_gather_wait(w, g, w->groups[g].param);
}

void zero_write_programs(zero_schedule *s)
{
    zero_writer w;
    if (!s->input.forward_only) write_program(s, ZERO_PROGRAM_STEP);
    write_program(s, ZERO_PROGRAM_EVALUATE);
    write_program(s, ZERO_PROGRAM_GENERATE);
    if (zero_schedule_has_cache(s)) write_program(s, ZERO_PROGRAM_TOKEN);
    /* Prologue and epilogue: gather and await what is published. */
    if (!zero_writer_open(&w, s, ZERO_PROGRAM_PROLOGUE, NULL)) return;
    for (int g = 0; g < s->model->n_groups; g++)
        if (zero_is_published(s, g) && s->groups[g].is_here)
            zero_write_gather(&w, g, s->groups[g].param, s->groups[g].param);
    zero_write_copies(&w);
    wait_for_all(&w);
    zero_writer_close(&w);
    if (!zero_writer_open(&w, s, ZERO_PROGRAM_EPILOGUE, NULL)) return;
    for (int g = 0; g < s->model->n_groups; g++) zero_write_due(&w, g);
    zero_write_finish_stream(&w);
    zero_write_late_update(&w);
    const zero_offload place = s->input.offload;
    if (place == ZERO_OFFLOAD_LAZY || place == ZERO_OFFLOAD_DELAYED) zero_write_copies(&w);
    wait_for_all(&w);
    zero_writer_close(&w);
}
