#include "report/show_profile.h"

#include <math.h>

#define LEAST_SHARE 1e-3
#define MOST_LINES  32 /* a model may have more kinds of units than that */

struct line {
    zero_op op;
    int column;
    zero_profile_row row;
};

struct table {
    const zero_profile_ranks *ranks;
    FILE *out;
    double steps, seconds;
    int digits; /* of milliseconds: steps may be short */
    int n;
    struct line lines[MOST_LINES]; /* the longest first */
};

static double seconds_of(const struct line *line)
{
    return line->row.own.seconds;
}

/* Inserts a line in order, if it is among the longest. */
static void insert(struct table *t, const struct line *line)
{
    int at = t->n < MOST_LINES ? t->n++ : MOST_LINES;
    for (; at > 0 && seconds_of(&t->lines[at - 1]) < seconds_of(line); at--)
        if (at < MOST_LINES) t->lines[at] = t->lines[at - 1];
    if (at < MOST_LINES) t->lines[at] = *line;
}

static void collect(struct table *t, zero_op op, int column)
{
    struct line line = {op, column, *zero_profile_row_at(t->ranks, op, column)};
    if (line.row.own.count > 0 && seconds_of(&line) >= LEAST_SHARE * t->seconds)
        insert(t, &line);
}

/* Instructions that name units get a line per kind of unit. */
static bool is_by_units(const zero_profile_ranks *ranks, zero_op op)
{
    for (int k = ZERO_ALL_UNITS + 1; k < ranks->profile->n_columns; k++)
        if (zero_profile_row_at(ranks, op, k)->own.count > 0) return true;
    return false;
}

static void collect_all(struct table *t)
{
    for (int op = 0; op < ZERO_OP_KINDS; op++) {
        if (!is_by_units(t->ranks, (zero_op)op)) {
            collect(t, (zero_op)op, ZERO_ALL_UNITS);
            continue;
        }
        for (int k = ZERO_ALL_UNITS + 1; k < t->ranks->profile->n_columns; k++)
            collect(t, (zero_op)op, k);
    }
}

static void print_numbers(const struct table *t, const char *name,
                          const zero_profile_row *row)
{
    double ms = 1e3 / t->steps;
    fprintf(t->out, "    %-20.20s%8.4g%10.*f%8.1f%10.*f", name,
            (double)row->own.count / t->steps, t->digits, ms * row->own.seconds,
            100.0 * row->own.seconds / t->seconds, t->digits, ms * row->own.exchange);
}

static void print_line(const struct table *t, const struct line *line)
{
    char kind[ZERO_UNIT_NAME] = "", name[64];
    double ms = 1e3 / t->steps;
    if (line->column != ZERO_ALL_UNITS)
        zero_profile_kind(t->ranks->profile, line->column, kind);
    snprintf(name, sizeof name, "%s%s%s", zero_op_name(line->op), *kind ? " " : "", kind);
    print_numbers(t, name, &line->row);
    fprintf(t->out, "%9.*f..%.*f\n", t->digits, ms * line->row.least, t->digits,
            ms * line->row.most);
}

static void print_rest(const struct table *t)
{
    zero_profile_row rest = {.own = zero_profile_sum(t->ranks)};
    for (int i = 0; i < t->n; i++) {
        rest.own.count -= t->lines[i].row.own.count;
        rest.own.seconds -= t->lines[i].row.own.seconds;
        rest.own.exchange -= t->lines[i].row.own.exchange;
    }
    rest.own.seconds = fmax(0.0, rest.own.seconds); /* not "-0.00" */
    rest.own.exchange = fmax(0.0, rest.own.exchange);
    print_numbers(t, "the rest", &rest);
    fputc('\n', t->out);
}

/* The time in which a device had nothing to do. */
static void print_exposed(const struct table *t)
{
    double seconds = 0.0;
    for (int op = 0; op < ZERO_OP_KINDS; op++)
        if (zero_profile_is_exposed(t->ranks->profile, (zero_op)op))
            seconds +=
                zero_profile_row_at(t->ranks, (zero_op)op, ZERO_ALL_UNITS)->own.seconds;
    fprintf(t->out,
            "    exposed: the device waited %.*f ms, %.1f %%, for messages and copies\n",
            t->digits, 1e3 / t->steps * seconds, 100.0 * seconds / t->seconds);
}

void zero_show_profile(const zero_profile_ranks *ranks, int64_t steps, double seconds,
                       FILE *out)
{
    struct table t = {
        .ranks = ranks, .out = out, .steps = (double)steps, .seconds = seconds};
    t.digits = seconds < 1e-2 * t.steps ? 4 : 2;
    collect_all(&t);
    fprintf(out, "    %-20s%8s%10s%8s%10s%12s\n", "in a step of rank 0", "times", "ms", "%",
            "exchange", "all ranks");
    for (int i = 0; i < t.n; i++) print_line(&t, &t.lines[i]);
    print_rest(&t);
    if (ranks->profile->is_of_device) print_exposed(&t);
}
