#include "report/show.h"

#include <inttypes.h>
#include <stdio.h>

#include "report/print_text.h"

void zero_show_step(const zero_run_view *v, const zero_metrics_step *step)
{
    printf("step %6" PRId64 "/%" PRId64
           " | loss %7.4f | norm %6.3f | lr %.2e | %8.1f ms | %8.0f tok/s\n",
           step->step, v->config->steps, step->loss, step->grad_norm, step->lr,
           1e3 * step->seconds, (double)step->tokens / step->seconds);
    if (step->skipped)
        printf("step %6" PRId64 "/%" PRId64
               " | skipped: a gradient overflowed at loss scale %g\n",
               step->step, v->config->steps, step->loss_scale);
    fflush(stdout);
}

void zero_show_evaluation(const zero_run_view *v, const zero_metrics_step *step)
{
    printf("step %6" PRId64 "/%" PRId64 " | validation loss %.4f\n", step->step,
           v->config->steps, step->val_loss);
    fflush(stdout);
}

void zero_show_sample(const zero_run_view *v, const char *title, const int32_t *tokens,
                      int64_t n)
{
    const zero_tokenizer *tokenizer = v->corpus->tokenizer;
    printf("---- %s\n", title);
    for (int64_t i = 0; !tokenizer && i < n; i++) printf("%" PRId32 " ", tokens[i]);
    /* Without memory for it the sample is left out; the run does not fail. */
    bool shown =
        !tokenizer || zero_print_tokens(tokenizer, tokens, n, false, stdout) == ZERO_OK;
    printf("%s\n----\n", shown ? "" : "(no memory)");
    fflush(stdout);
}
