/* The figures of paper_speed.h for a terminal: runs, then what explains them. */
#include <inttypes.h>
#include <math.h>

#include "base/fail.h"
#include "report/paper_speed_json.h"
#include "report/paper_speed_more.h"
#include "report/text.h"

#define TERA 1e12
#define GIGA 1e9

/* ---- the runs ---- */

static void print_head(const zero_paper_figure *figure, const zero_machine_file *m,
                       FILE *out)
{
    fprintf(
        out,
        "%s\n\n  machine  %s, %s: a fit of ours\n           %s\n"
        "           fitted: %s\n"
        "  paper    %s\n"
        "  flops    with recomputed products: 96 B s L h^2 (1 + s/6h + V/16Lh), s 1024, "
        "V 50257 assumed\n\n",
        figure->title, m->name, m->date, m->about, m->fit, figure->numbers);
    fprintf(out, "  %-5s %-8s %7s %4s %5s %7s %7s %6s   %s\n", "model", "system", "devices",
            "MP", "batch", "ours", "paper", "ratio", "comp  tensor  data  host, %      GB");
}

static void print_time(const zero_throughput *t, double paper, FILE *out)
{
    double percent = 100.0 / t->step, ours = t->rate / TERA;
    if (paper > 0.0)
        fprintf(out, " %7.1f %7.1f %6.2f", ours, paper, ours / paper);
    else
        fprintf(out, " %7.1f %7s %6s", ours, "-", "-");
    fprintf(out, "   %4.0f %7.0f %5.0f %5.0f ", percent * t->compute, percent * t->tensor,
            percent * t->data, percent * t->host);
}

static void print_run(const zero_paper_run *run, const zero_machine_file *m, FILE *out)
{
    zero_throughput t = zero_paper_time(run, m);
    double bytes = zero_paper_memory_of(&run->setup).all;
    fprintf(out, "  %-5s %-8s %7d %4d %5" PRId64, run->size, run->system,
            zero_paper_devices(&run->setup), run->setup.model_parallel, run->setup.batch);
    if (run->paper != 0.0)
        print_time(&t, run->paper, out);
    else
        fprintf(out, " %7s %7s %6s %26s", bytes > m->memory ? "memory" : "fits", "memory",
                bytes > m->memory ? "=" : "!", "");
    fprintf(out, " %9.1f\n", bytes / GIGA);
}

/* ---- how close ours are ---- */

static void print_closeness(const zero_paper_figure *figure, const zero_machine_file *m,
                            FILE *out)
{
    zero_paper_closeness c = zero_paper_compare_runs(figure, m);
    if (c.cells == 0) return;
    fprintf(out,
            "\n%d cell%s: %d within %.0f %%; ours are typically off by %.0f %%. Those "
            "beyond:\n",
            c.cells, zero_text_plural(c.cells), c.near, 100.0 * ZERO_PAPER_NEAR,
            100.0 * expm1(c.typical));
    for (int i = 0; i < figure->n; i++) {
        const zero_paper_run *run = &figure->runs[i];
        if (run->note) fprintf(out, "  %-5s %-8s %s\n", run->size, run->system, run->note);
    }
    fputs(
        "\n%: of a step, the part that nothing hides; data: reduce-scatter and all-gather "
        "of states;\nthe rest of a step is the optimizer's update.\n"
        "GB: states, checkpoints, activations, logits and buffers by formula; a device has "
        "32.\n",
        out);
}

zero_status zero_paper_show_speed(const zero_paper_figure *figure, bool json, FILE *out)
{
    zero_machine_file machine;
    ZERO_TRY(zero_machine_file_find(ZERO_PAPER_MACHINE, &machine));
    if (json) return zero_paper_print_speed_json(figure, &machine, out);
    print_head(figure, &machine, out);
    for (int i = 0; i < figure->n; i++) print_run(&figure->runs[i], &machine, out);
    print_closeness(figure, &machine, out);
    zero_paper_print_more(figure, &machine, out);
    return ZERO_OK;
}
