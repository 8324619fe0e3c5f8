/* Runs as CSV: RFC 4180 but for the line's end, which is a new line alone. Numbers have 17 digits;
 * what is unknown is empty. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/legible.h"
#include "pages/runs.h"
#include "pages/study_forms.h"

void zero_csv_text(const char *text, FILE *out)
{
    bool is_quoted = strpbrk(text, ",\"\r\n") != NULL;
    if (is_quoted) fputc('"', out);
    for (size_t n; *text; text += n) {
        char shown[ZERO_SHOWN_BYTES];
        n = *text == '"' ? 1 : zero_legible(text, strcspn(text, "\""), shown, sizeof shown);
        fputs(*text == '"' ? "\"\"" : shown, out);
    }
    if (is_quoted) fputc('"', out);
}

void zero_csv_real(double value, FILE *out)
{
    fputc(',', out);
    if (isfinite(value)) fprintf(out, "%.17g", value);
}

static void put_step(const char *path, const zero_record_step *s, FILE *out)
{
    zero_csv_text(path, out);
    fprintf(out, ",%" PRId64, s->step);
    zero_csv_real(s->loss, out);
    zero_csv_real(s->val_loss, out);
    zero_csv_real(s->lr, out);
    zero_csv_real(s->grad_norm, out);
    zero_csv_real(s->loss_scale, out);
    zero_csv_real(s->tokens, out);
    zero_csv_real(s->seconds, out);
    zero_csv_real(s->exposed, out);
    zero_csv_real(s->tokens_per_second, out);
    zero_csv_real(s->elapsed, out);
    fprintf(out, ",%s\n", s->skipped ? "true" : "false");
}

void zero_runs_print_csv(const zero_runs *runs, FILE *out)
{
    fputs("run,step,loss,val_loss,lr,grad_norm,loss_scale,tokens,step_seconds,"
          "exposed_seconds,tokens_per_second,elapsed,skipped\n",
          out);
    for (int r = 0; r < runs->n; r++)
        for (int64_t i = 0; i < runs->records[r].n_steps; i++)
            put_step(runs->records[r].path, &runs->records[r].steps[i], out);
}
