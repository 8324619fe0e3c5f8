#include "report/live.h"

#include "base/embedded.h"
#include "facts/form.h"
#include "train/metrics.h"

extern const zero_embedded zero_report_forms[];

/* Parts in the order in which they are shown, a line each of the form "live". */
enum { STEP, SHARE, BAR, LOSS, VALIDATION, TOKENS, TIME, DIVISION, LEFT, SAVED, N_PARTS };

/* The first part that does not fit is left out, and those after it here. Numbers come
 * before the picture of the share, which is also there as a number. */
static const int by_importance[N_PARTS] = {STEP,       LEFT, LOSS,  SHARE,    TOKENS,
                                           VALIDATION, TIME, SAVED, DIVISION, BAR};

size_t zero_live_text(const zero_live *l, int width, char text[ZERO_LIVE_TEXT])
{
    char bar[21] = "                    ";
    const char *parts[N_PARTS], *at;
    bool is_shown[N_PARTS] = {false};
    size_t room = (size_t)zero_max(0, zero_min(width, ZERO_LIVE_TEXT) - 1), length = 0;
    ZERO_FREED char *lines = NULL;
    memset(bar, '#', (size_t)(20 * l->step / l->steps));
    json_auto_t *facts = json_pack(
        "{s:I, s:I, s:b, s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:I}", "step",
        l->step, "steps", l->steps, "has_step", l->has_step, "bar", bar, "loss",
        json_sprintf(fabs(l->loss) < 1e3 ? "%.3f" : "%.3g", l->loss), "seconds",
        zero_metrics_real(l->seconds), "rate", zero_metrics_real(l->tokens_per_second),
        "compute", zero_metrics_real(l->compute), "exposed", zero_metrics_real(l->exposed),
        "has_val_loss", l->has_val_loss, "val_loss",
        json_sprintf(fabs(l->val_loss) < 1e3 ? "%.2f" : "%.3g", l->val_loss), "left",
        zero_metrics_real(isinf(l->left) ? 1e12 : l->left), "saved", l->saved);
    text[0] = '\0';
    if (zero_form_text(zero_embedded_text(zero_report_forms, "report"), "live", facts, NULL,
                       &lines) != ZERO_OK)
        return 0;
    at = lines;
    for (int i = 0; i < N_PARTS; i++) {
        parts[i] = at;
        at += strcspn(at, "\n") + 1;
    }
    for (int i = 0; i < N_PARTS; i++) {
        length += strcspn(parts[by_importance[i]], "\n");
        if (length > room) break;
        is_shown[by_importance[i]] = true;
    }
    for (int i = 0; i < N_PARTS; i++)
        if (is_shown[i]) strncat(text, parts[i], strcspn(parts[i], "\n"));
    return strlen(text);
}

/* ---- how long it still takes ---- */

int64_t zero_live_due(int64_t step, int64_t last, int64_t every, bool at_end)
{
    if (step >= last) return 0;
    int64_t n = every > 0 ? last / every - step / every : 0;
    bool has_last = every > 0 && last % every == 0;
    return n + (at_end && !has_last ? 1 : 0);
}

void zero_live_add_step(zero_live_times *t, double seconds)
{
    t->steps[t->n_steps++ % ZERO_LIVE_STEPS] = seconds;
}

static double mean(double sum, int64_t n)
{
    return n > 0 ? sum / (double)n : 0.0;
}

double zero_live_left(const zero_live_times *t, const zero_live_rest *rest)
{
    double sorted[ZERO_LIVE_STEPS];
    if (t->n_steps == 0) return NAN;
    memcpy(sorted, t->steps, sizeof sorted);
    double step =
        zero_step_times_of(sorted, zero_min(t->n_steps, ZERO_LIVE_STEPS), 0).median;
    double save = mean(t->saves, t->n_saves);
    double left = (double)rest->steps * step +
                  (double)rest->evaluations * mean(t->evaluations, t->n_evaluations) +
                  (double)rest->saves * save;
    if (rest->save_seconds > 0.0) left += floor(left / rest->save_seconds) * save;
    return left;
}
