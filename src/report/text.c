#include "report/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

const char *zero_text_bytes(double bytes, char text[ZERO_PLAN_TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t unit = 0;
    while (fabs(bytes) >= 1024.0 && unit + 1 < sizeof units / sizeof units[0]) {
        bytes /= 1024.0;
        unit++;
    }
    snprintf(text, ZERO_PLAN_TEXT, "%.*f %s", unit > 0 ? 2 : 0, bytes, units[unit]);
    return text;
}

const char *zero_text_plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

#define INDENT     15 /* the columns of values: in a plan */
#define RUN_INDENT 16 /* in a run */

void zero_text_row(const char *name, FILE *out)
{
    fprintf(out, "%-*s", INDENT, name);
}

void zero_text_continue(FILE *out)
{
    fprintf(out, "\n%*s", INDENT, "");
}

void zero_text_run_row(const char *name)
{
    printf("  %-*s", RUN_INDENT - 2, name);
}

void zero_text_run_continue(void)
{
    printf("\n%*s", RUN_INDENT, "");
}

void zero_text_shape(const zero_gpt2_shape *s, char text[ZERO_PLAN_TEXT])
{
    snprintf(text, ZERO_PLAN_TEXT,
             "%" PRId64 " layer%s, %" PRId64 " hidden, %" PRId64 " head%s, T %" PRId64,
             s->layers, zero_text_plural(s->layers), s->hidden, s->heads,
             zero_text_plural(s->heads), s->seq);
}

void zero_text_ranks(const zero_config *c, char text[ZERO_PLAN_TEXT])
{
    int R = zero_config_shard_ranks(c), K = c->plan.n_ranks / R, T = zero_tp_ranks(&c->tp);
    char replicas[32] = "";
    if (K > 1) snprintf(replicas, sizeof replicas, "%d replicas of ", K);
    if (T > 1)
        snprintf(text, ZERO_PLAN_TEXT, "%s%d x %d ranks", replicas, R, T);
    else
        snprintf(text, ZERO_PLAN_TEXT, "%s%d rank%s", replicas, R, zero_text_plural(R));
}

void zero_text_batch(const zero_config *c, char text[2 * ZERO_PLAN_TEXT])
{
    snprintf(text, 2 * ZERO_PLAN_TEXT,
             "%" PRId64 " sequence%s = %d x %d x %" PRId64
             " (%s x microbatches x sequences)",
             c->global_batch, zero_text_plural(c->global_batch), c->plan.n_ranks,
             c->plan.accumulation, c->plan.micro_batch,
             zero_tp_ranks(&c->tp) > 1 ? "ranks / --tp" : "ranks");
}

void zero_text_shares(const zero_config *c, char text[2 * ZERO_PLAN_TEXT])
{
    int T = zero_tp_ranks(&c->tp), N = c->plan.n_ranks, R = zero_config_shard_ranks(c);
    text[0] = '\0';
    if (T > 1)
        snprintf(text, 2 * ZERO_PLAN_TEXT,
                 "T = %d neighbours share each product, in S = %" PRId64
                 " slices; ZeRO shards over %c = %d",
                 T, c->tp.slices, R < N ? 'R' : 'N', R);
    else if (c->tp.slices > 1)
        snprintf(text, 2 * ZERO_PLAN_TEXT,
                 "sums in S = %" PRId64 " slices, as with every --tp that divides %" PRId64,
                 c->tp.slices, c->tp.slices);
}

void zero_text_replicas(const zero_config *c, char text[2 * ZERO_PLAN_TEXT])
{
    int R = zero_config_shard_ranks(c), N = c->plan.n_ranks;
    text[0] = '\0';
    if (R == N) return;
    snprintf(text, 2 * ZERO_PLAN_TEXT,
             "N = %d is K = %d replicas of R = %d neighbours, over which stages shard", N,
             N / R, R);
}

const char *zero_text_scaling(const zero_config *config)
{
    return config->grows_with_ranks
               ? "more ranks make a larger batch (weak scaling)"
               : "more ranks get fewer sequences each (strong scaling)";
}

void zero_text_peak(const zero_schedule *s, char text[ZERO_PLAN_TEXT])
{
    char what[ZERO_PLAN_TEXT];
    const zero_program *p = &s->programs[s->peak_program];
    zero_text_instruction(s->input.model, &p->code[s->peak_at], what);
    snprintf(text, ZERO_PLAN_TEXT, "%.60s (instruction %d of %d, %s)", what, s->peak_at + 1,
             p->length, zero_program_name(s->peak_program));
}
