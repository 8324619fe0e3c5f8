#include "sharding/holdings.h"
#include "sharding/writer.h"

static void write_microbatch(zero_writer *w, int m)
{
    int n_units = w->model->n_units;
    zero_write_load(w, m);
    for (int u = 0; u < n_units; u++) zero_write_forward(w, u);
    for (int u = n_units - 1; u >= 0; u--) {
        zero_write_backward(w, u);
        zero_write_complete(w, u);
    }
}

static void write_step(zero_schedule *s, const zero_gradient_path *path)
{
    zero_writer w;
    if (!zero_writer_open(&w, s, ZERO_PROGRAM_STEP, path)) return;
    for (int m = 0; m < s->input.accumulation; m++) write_microbatch(&w, m);
    zero_write_finish_reduce(&w);
    if (path->summed) path->summed(&w);
    zero_write_update(&w);
    zero_writer_close(&w);
}

static void write_forward(zero_schedule *s, zero_program_kind program)
{
    zero_writer w;
    if (!zero_writer_open(&w, s, program, NULL)) return;
    zero_write_load(&w, 0);
    for (int u = 0; u < s->input.model->n_units; u++) zero_write_forward(&w, u);
    if (program == ZERO_PROGRAM_EVALUATE) zero_write_loss(&w);
    zero_writer_close(&w);
}

void zero_write_programs(zero_schedule *s, const zero_gradient_path *path)
{
    if (!s->input.forward_only) write_step(s, path);
    write_forward(s, ZERO_PROGRAM_EVALUATE);
    write_forward(s, ZERO_PROGRAM_GENERATE);
    if (zero_schedule_has_cache(s)) write_forward(s, ZERO_PROGRAM_TOKEN);
    zero_write_ends(s);
}

static void wait_for_all(zero_writer *w)
{
    for (int g = 0; g < w->model->n_groups; g++)
        if (zero_is_published(w->s, g)) zero_write_gather_wait(w, g, w->groups[g].param);
}

void zero_write_ends(zero_schedule *s)
{
    zero_writer w;
    if (!zero_writer_open(&w, s, ZERO_PROGRAM_PROLOGUE, NULL)) return;
    for (int g = 0; g < s->input.model->n_groups; g++)
        if (zero_is_published(s, g))
            zero_write_gather(&w, g, s->groups[g].param, s->groups[g].param);
    wait_for_all(&w);
    zero_writer_close(&w);
    if (!zero_writer_open(&w, s, ZERO_PROGRAM_EPILOGUE, NULL)) return;
    zero_write_all_due(&w);
    zero_write_finish_stream(&w);
    zero_write_late_update(&w);
    wait_for_all(&w);
    zero_writer_close(&w);
}
