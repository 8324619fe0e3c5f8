#include "report/live.h"

#include "base/number.h"
#include "train/step_times.h"

#define PART 64
#define BAR  20

/* Parts in the order in which they are shown. */
enum {
    STEP,
    SHARE,
    BAR_PART,
    LOSS,
    VALIDATION,
    TOKENS,
    TIME,
    DIVISION,
    LEFT,
    SAVED,
    N_PARTS
};

/* The first part that does not fit is left out, and those after it here. Numbers come
 * before the picture of the share, which is also there as a number. */
static const int by_importance[N_PARTS] = {STEP,       LEFT, LOSS,  SHARE,    TOKENS,
                                           VALIDATION, TIME, SAVED, DIVISION, BAR_PART};

/* ---- parts ---- */

static void put_loss(char text[PART], const char *before, double loss, int digits,
                     const char *after)
{
    if (fabs(loss) < 1e3)
        snprintf(text, PART, "%s%.*f%s", before, digits, loss, after);
    else
        snprintf(text, PART, "%s%.3g%s", before, loss, after);
}

static void put_bar(char text[PART], const zero_live *l)
{
    char bar[BAR + 1] = "";
    size_t done = (size_t)(BAR * l->step / l->steps);
    memset(bar, ' ', BAR);
    memset(bar, '#', done);
    snprintf(text, PART, " [%s]", bar);
}

static void put_tokens(char text[PART], double rate)
{
    static const char units[] = {' ', 'k', 'M', 'G'};
    size_t k = 0;
    for (; rate >= 999.5 && k + 1 < sizeof units; k++) rate /= 1e3;
    int digits = k > 0 && rate < 9.95 ? 1 : 0;
    if (k == 0)
        snprintf(text, PART, "  %.0f tok/s", rate);
    else
        snprintf(text, PART, "  %.*f%c tok/s", digits, rate, units[k]);
}

/* The step and its two parts have one unit and the same digits. */
static void put_times(const zero_live *l, char time[PART], char division[PART])
{
    bool is_long = l->seconds >= 9.95;
    double unit = is_long ? 1.0 : 1e3, shown = unit * l->seconds;
    int digits = is_long ? 1 : shown < 9.95 ? 2 : 0;
    snprintf(time, PART, "  %.*f %s", digits, shown, is_long ? "s" : "ms");
    if (isnan(l->compute) || isnan(l->exposed)) return;
    snprintf(division, PART, ": %.*f compute %.*f exposed", digits, unit * l->compute,
             digits, unit * l->exposed);
}

static void put_left(char text[PART], double seconds)
{
    const double most = 999.0 * 86400.0; /* about three years */
    if (isnan(seconds)) return;
    int64_t s = (int64_t)(fmin(fmax(seconds, 0.0), most) + 0.5);
    int64_t m = s / 60, h = m / 60, d = h / 24;
    if (d > 0)
        snprintf(text, PART, "  left %" PRId64 " d %" PRId64 " h", d, h % 24);
    else if (h > 0)
        snprintf(text, PART, "  left %" PRId64 " h %" PRId64 " min", h, m % 60);
    else if (m > 0)
        snprintf(text, PART, "  left %" PRId64 " min %" PRId64 " s", m, s % 60);
    else
        snprintf(text, PART, "  left %" PRId64 " s", s);
}

static void put_parts(const zero_live *l, char parts[N_PARTS][PART])
{
    snprintf(parts[STEP], PART, "step %" PRId64 "/%" PRId64, l->step, l->steps);
    snprintf(parts[SHARE], PART, " %3d%%", (int)(100 * l->step / l->steps));
    put_left(parts[LEFT], l->left);
    if (l->saved >= 0) snprintf(parts[SAVED], PART, "  saved %" PRId64, l->saved);
    if (l->has_val_loss) put_loss(parts[VALIDATION], " (val ", l->val_loss, 2, ")");
    if (!l->has_step) return;
    put_loss(parts[LOSS], "  loss ", l->loss, 3, "");
    put_tokens(parts[TOKENS], l->tokens_per_second);
    put_times(l, parts[TIME], parts[DIVISION]);
    put_bar(parts[BAR_PART], l);
}

size_t zero_live_text(const zero_live *live, int width, char text[ZERO_LIVE_TEXT])
{
    char parts[N_PARTS][PART] = {{0}};
    bool is_shown[N_PARTS] = {false};
    size_t room = (size_t)zero_max(0, zero_min(width, ZERO_LIVE_TEXT) - 1), length = 0;
    put_parts(live, parts);
    for (int i = 0; i < N_PARTS; i++) {
        length += strlen(parts[by_importance[i]]);
        if (length > room) break;
        is_shown[by_importance[i]] = true;
    }
    char *at = text;
    *at = '\0';
    for (int i = 0; i < N_PARTS; i++)
        if (is_shown[i]) at = stpcpy(at, parts[i]);
    return (size_t)(at - text);
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
