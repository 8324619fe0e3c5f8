#include "report/sweep_show.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/legible.h"
#include "report/text.h"

/* ---- rows ---- */

/* Milliseconds with four digits. */
static void print_ms(double seconds, int width, FILE *out)
{
    double ms = 1e3 * seconds;
    int digits = ms < 1.0 ? 4 : ms < 10.0 ? 3 : ms < 100.0 ? 2 : ms < 1000.0 ? 1 : 0;
    if (isfinite(ms))
        fprintf(out, "%*.*f", width, digits, ms);
    else
        fprintf(out, "%*s", width, "-");
}

static void print_share(double share, FILE *out)
{
    if (isfinite(share))
        fprintf(out, "%9.3f", share);
    else
        fprintf(out, "%9s", "-");
}

static void print_model(const zero_sweep_model *m, FILE *out)
{
    print_ms(m->step, 11, out);
    print_share(m->exposed, out);
}

static void print_head(const zero_sweep *sweep, FILE *out)
{
    fprintf(out, "%5s%7s%6s%12s%11s%19s%13s%7s%9s", "stage", "ranks", "nodes",
            "tokens/rank", "step ms", "quartiles ms", "tokens/s", "eff.", "exposed");
    if (sweep->has_plan) fprintf(out, "%11s%9s", "planned", "exposed");
    if (sweep->has_simulation) fprintf(out, "%11s%9s", "simulated", "exposed");
    fputc('\n', out);
}

static void print_measurement(const zero_sweep_point *p, FILE *out)
{
    fprintf(out, "%5d%c%12.6g", p->nodes, p->fake_nodes ? 'f' : ' ',
            (double)p->tokens / p->ranks);
    print_ms(p->time.median, 11, out);
    print_ms(p->time.lower, 10, out);
    print_ms(p->time.upper, 9, out);
    fprintf(out, "%13.6g%7.3f", zero_sweep_tokens_per_second(p), p->efficiency);
    print_share(p->exposed, out);
}

static void print_row(const zero_sweep *sweep, const zero_sweep_point *p, FILE *out)
{
    fprintf(out, "%5d%7d", p->stage, p->ranks);
    if (p->state != ZERO_SWEEP_MEASURED) {
        fprintf(out, " %s\n", zero_sweep_state_name(p->state));
        return;
    }
    print_measurement(p, out);
    if (sweep->has_plan) print_model(&p->planned, out);
    if (sweep->has_simulation) print_model(&p->simulated, out);
    fputc('\n', out);
}

/* ---- what they have in common ---- */

static const zero_sweep_point *first_measured(const zero_sweep *sweep)
{
    for (int i = 0; i < sweep->n; i++)
        if (sweep->points[i].state == ZERO_SWEEP_MEASURED) return &sweep->points[i];
    return NULL;
}

static const char *text_of(const zero_sweep_point *p, const char *key)
{
    const char *text = json_string_value(json_object_get(p->run, key));
    return text ? text : "unknown";
}

static void print_machine(const zero_sweep_point *p, FILE *out)
{
    fprintf(out, "%s, %s, zero %s", ZERO_SHOWN(text_of(p, "cpu")),
            ZERO_SHOWN(text_of(p, "mpi")), ZERO_SHOWN(text_of(p, "commit")));
    if (p->load[0] >= 0.0)
        fprintf(out, "; load %.2f when the first point began", p->load[0]);
    fputc('\n', out);
}

/* Points that were measured on other machines or by another program cannot be compared. */
static void print_differences(const zero_sweep *sweep, const zero_sweep_point *first,
                              FILE *out)
{
    static const char *const keys[] = {"cpu", "node_cores", "mpi", "commit", "arithmetic"};
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
        for (int i = 0; i < sweep->n; i++) {
            const zero_sweep_point *p = &sweep->points[i];
            if (p->state != ZERO_SWEEP_MEASURED) continue;
            if (json_equal(json_object_get(p->run, keys[k]),
                           json_object_get(first->run, keys[k])))
                continue;
            fprintf(out, "not comparable: stage %d on %d rank%s had another %s\n", p->stage,
                    p->ranks, zero_text_plural(p->ranks), keys[k]);
            break;
        }
}

/* Ranks that wait for a core, and not for each other. */
static void print_shared_cores(const zero_sweep *sweep, FILE *out)
{
    int least = 0;
    for (int i = 0; i < sweep->n; i++) {
        const zero_sweep_point *p = &sweep->points[i];
        bool is_shared =
            p->state == ZERO_SWEEP_MEASURED && p->cores > 0.0 && p->cores < 1.0;
        if (is_shared && (least == 0 || p->ranks < least)) least = p->ranks;
    }
    if (least > 0)
        fprintf(out,
                "from %d ranks on there are fewer cores than ranks: their times mean "
                "little\n",
                least);
}

static bool has_fake(const zero_sweep *sweep)
{
    for (int i = 0; i < sweep->n; i++)
        if (sweep->points[i].state == ZERO_SWEEP_MEASURED && sweep->points[i].fake_nodes)
            return true;
    return false;
}

static void print_failures(const zero_sweep *sweep, FILE *out)
{
    for (int i = 0; i < sweep->n; i++)
        if (sweep->points[i].state == ZERO_SWEEP_FAILED)
            fprintf(out, "stage %d on %d rank%s: %s\n", sweep->points[i].stage,
                    sweep->points[i].ranks, zero_text_plural(sweep->points[i].ranks),
                    ZERO_SHOWN(sweep->points[i].why));
}

void zero_sweep_show(const zero_sweep *sweep, FILE *out)
{
    const zero_sweep_point *first = first_measured(sweep);
    fprintf(out, "%s scaling, %" PRId64 " steps a point without the first %" PRId64 "\n",
            sweep->is_strong ? "strong" : "weak", sweep->steps, sweep->warm_up);
    if (first) print_machine(first, out);
    print_head(sweep, out);
    for (int i = 0; i < sweep->n; i++) print_row(sweep, &sweep->points[i], out);
    if (first) print_differences(sweep, first, out);
    print_shared_cores(sweep, out);
    if (has_fake(sweep)) fprintf(out, "f: fake nodes; their times mean nothing\n");
    print_failures(sweep, out);
}
