#include "sharding/compile.h"

static void forward_program(zero_schedule *s, zero_program_kind program)
{
    zero_writer w;
    if (!zero_writer_open(&w, s, program, ZERO_DEAL_ROUND)) return;
    zero_write_load(&w, 0);
    for (int u = 0; u < s->input.model->n_units; u++) zero_write_forward(&w, u);
    if (program == ZERO_PROGRAM_EVALUATE) zero_write_loss(&w);
    zero_writer_close(&w);
}

void zero_compile_forward_programs(zero_schedule *s)
{
    forward_program(s, ZERO_PROGRAM_EVALUATE);
    forward_program(s, ZERO_PROGRAM_GENERATE);
}

static void wait_for_all(zero_writer *w)
{
    for (int g = 0; g < w->s->input.model->n_groups; g++)
        if (zero_compile_is_published(w->s, g))
            zero_write_gather_wait(w, g, w->s->groups[g].param);
}

void zero_compile_ends(zero_schedule *s)
{
    zero_writer w;
    if (!zero_writer_open(&w, s, ZERO_PROGRAM_PROLOGUE, ZERO_DEAL_ROUND)) return;
    for (int g = 0; g < s->input.model->n_groups; g++)
        if (zero_compile_is_published(s, g))
            zero_write_gather(&w, g, s->groups[g].param, s->groups[g].param);
    wait_for_all(&w);
    w.program = ZERO_PROGRAM_EPILOGUE;
    wait_for_all(&w);
    zero_writer_close(&w);
}
