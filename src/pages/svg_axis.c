#include "pages/svg_axis.h"

#define LARGEST 1e300 /* of values: differences of two stay finite */

static double clamped(double value)
{
    return fmin(fmax(value, -LARGEST), LARGEST);
}

/* The least of 1, 2, 5 times a power of ten that is not below `raw` > 0. */
static double round_step(double raw)
{
    double power = pow(10.0, floor(log10(raw)));
    for (int decade = 0; decade < 2; decade++, power *= 10.0)
        for (int k = 0; k < 3; k++) {
            double step = power * (double[]){1.0, 2.0, 5.0}[k];
            if (step >= raw * (1.0 - 1e-9)) return step;
        }
    return power;
}

zero_axis zero_axis_make(zero_axis_kind kind, double least, double most, int ticks,
                         double from, double to)
{
    if (!isfinite(least) || !isfinite(most) || least > most) least = 0.0, most = 1.0;
    least = clamped(least);
    most = clamped(most);
    if (kind == ZERO_AXIS_LOG && least >= 1e-290) {
        zero_axis axis = {.kind = ZERO_AXIS_LOG, .from = from, .to = to, .step = 1.0};
        axis.least = pow(10.0, floor(log10(least) + 1e-9));
        axis.most = pow(10.0, ceil(log10(most) - 1e-9));
        if (axis.most <= axis.least) axis.most = 10.0 * axis.least;
        return axis;
    }
    if (kind == ZERO_AXIS_LOG) kind = ZERO_AXIS_AROUND;
    if (kind == ZERO_AXIS_ZERO) {
        if (least > 0.0) least = 0.0;
        if (most <= least) most = least < 0.0 ? 0.0 : 1.0;
    }
    /* Room around a single value: a tenth of it, and never less than what doubles can tell
     * apart. */
    double room = 0.1 * fmax(fabs(least), fabs(most));
    if (most - least <= 1e-9 * room) {
        if (room < 1e-290) room = 1.0;
        least -= room;
        most += room;
    }
    zero_axis axis = {kind, least, most, from, to, 0.0};
    axis.step = round_step((most - least) / ticks);
    if (kind == ZERO_AXIS_EXACT) return axis;
    axis.least = axis.step * floor(least / axis.step + 1e-9);
    axis.most = axis.step * ceil(most / axis.step - 1e-9);
    return axis;
}

double zero_axis_at(const zero_axis *a, double value)
{
    double share = a->kind == ZERO_AXIS_LOG
                       ? log10(fmax(value, a->least) / a->least) / log10(a->most / a->least)
                       : (value - a->least) / (a->most - a->least);
    return a->from + fmin(fmax(share, 0.0), 1.0) * (a->to - a->from);
}

int zero_axis_ticks(const zero_axis *a, double tick[ZERO_AXIS_TICKS])
{
    if (a->kind == ZERO_AXIS_LOG) {
        int first = (int)lround(log10(a->least)), last = (int)lround(log10(a->most));
        int every = 1 + (last - first) / 8, n = 0;
        bool has_room = last - first <= 2;
        for (int p = first; p <= last; p += every) {
            tick[n++] = pow(10.0, p);
            for (int k = 2; has_room && p < last && k <= 5; k += 3)
                tick[n++] = k * pow(10.0, p);
        }
        return n;
    }
    int n = 0;
    double first = ceil(a->least / a->step - 1e-9);
    for (; n < ZERO_AXIS_TICKS; n++) {
        double value = (first + n) * a->step;
        if (value > a->most + 1e-9 * a->step) break;
        tick[n] = value == 0.0 ? 0.0 : value; /* never -0 */
    }
    return n;
}

/* Decimals that tell values apart which differ by `step`. */
static int decimals(double step)
{
    int n = (int)-floor(log10(step) + 1e-9);
    return n < 0 ? 0 : n;
}

void zero_axis_label(const zero_axis *a, double value, char text[ZERO_AXIS_LABEL])
{
    static const char *const suffixes[] = {"", "k", "M", "G", "T"};
    double largest = fmax(fabs(a->least), fabs(a->most));
    double step = a->kind == ZERO_AXIS_LOG ? fabs(value) : a->step;
    if (a->kind == ZERO_AXIS_LOG) largest = fabs(value);
    int k = 0;
    while (largest >= 10000.0 && k < 4) {
        largest /= 1000.0;
        step /= 1000.0;
        value /= 1000.0;
        k++;
    }
    if (largest >= 10000.0 || decimals(step) > 6)
        snprintf(text, ZERO_AXIS_LABEL, "%.3g%s", value, suffixes[k]);
    else
        snprintf(text, ZERO_AXIS_LABEL, "%.*f%s", decimals(step), value,
                 value == 0.0 ? "" : suffixes[k]);
}

json_t *zero_axis_facts(const zero_axis *a)
{
    json_t *ticks = json_array();
    double tick[ZERO_AXIS_TICKS];
    int n = zero_axis_ticks(a, tick);
    for (int k = 0; k < n; k++) {
        char text[ZERO_AXIS_LABEL];
        zero_axis_label(a, tick[k], text);
        zero_put_item(ticks, "{s:f, s:s}", "at", zero_axis_at(a, tick[k]), "text", text);
    }
    return json_pack("{s:o}", "ticks", ticks);
}

bool zero_axis_prefers_log(double least, double most)
{
    return least > 0.0 && most / least > 20.0;
}

/* ---- thinning ---- */

/* The points of one unit of the picture; -1: none yet. */
struct column {
    int64_t first, least, most, last, gap;
};

static const struct column empty = {-1, -1, -1, -1, -1};

/* The column's points in their order, each once. */
static int64_t give(const struct column *c, int64_t *kept)
{
    int64_t list[] = {c->first, c->least, c->most, c->last, c->gap}, n = 0;
    for (int64_t before = -1;;) {
        int64_t next = -1;
        for (int k = 0; k < 5; k++)
            if (list[k] > before && (next < 0 || list[k] < next)) next = list[k];
        if (next < 0) return n;
        kept[n++] = before = next;
    }
}

int64_t zero_axis_thin(const zero_axis *x, const double *at, const double *value, int64_t n,
                       int64_t *kept)
{
    struct column column = empty;
    int64_t n_kept = 0;
    double place = 0.0;
    for (int64_t i = 0; i < n; i++) {
        double here = floor(zero_axis_at(x, at[i]));
        if (i > 0 && here != place) {
            n_kept += give(&column, kept + n_kept);
            column = empty;
        }
        place = here;
        if (!isfinite(value[i])) {
            if (column.gap < 0) column.gap = i;
            continue;
        }
        if (column.first < 0) column.first = column.least = column.most = i;
        if (value[i] < value[column.least]) column.least = i;
        if (value[i] > value[column.most]) column.most = i;
        column.last = i;
    }
    return n_kept + give(&column, kept + n_kept);
}

json_t *zero_axis_curve(const zero_axis *x, const zero_axis *y, const double *at,
                        const double *value, int64_t n, int64_t *kept)
{
    json_t *points = json_array(), *lonely = json_array();
    int64_t n_kept = zero_axis_thin(x, at, value, n, kept);
    for (int64_t k = 0; k < n_kept; k++) {
        bool joined = k > 0 && isfinite(value[kept[k - 1]]);
        bool goes_on = k + 1 < n_kept && isfinite(value[kept[k + 1]]);
        if (!isfinite(value[kept[k]])) continue;
        zero_put_item(joined || goes_on ? points : lonely, "{s:f, s:f, s:b}", "x",
                      zero_axis_at(x, at[kept[k]]), "y", zero_axis_at(y, value[kept[k]]),
                      "joined", joined);
    }
    return json_pack("{s:o, s:o}", "points", points, "lonely", lonely);
}
