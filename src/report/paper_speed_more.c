#include "report/paper_speed_more.h"

#include <inttypes.h>
#include <string.h>

#define TERA 1e12
#define PETA 1e15
#define GIGA 1e9

static double rate_of(const zero_paper_run *run, const zero_machine_file *m)
{
    return zero_paper_time(run, m).rate / TERA;
}

/* ---- figure 2 ---- */

static void print_speed_ups(const zero_paper_figure *figure, const zero_machine_file *m,
                            FILE *out)
{
    fprintf(out,
            "\nSpeed-up over Megatron; and Megatron if all its devices were one node\n\n"
            "  %-5s %9s %7s %6s   %16s %16s\n",
            "model", "ours", "paper", "ratio", "Megatron's MP", "on one node, TF");
    for (int i = 0; i + 1 < figure->n; i += 2) {
        const zero_paper_run *zero = &figure->runs[i], *megatron = zero + 1;
        double ours = rate_of(zero, m) / rate_of(megatron, m);
        fprintf(out, "  %-5s %9.2f %7.4g %6.2f   %16d %7.1f for %4.1f\n", zero->size, ours,
                zero->speed_up, ours / zero->speed_up, megatron->setup.model_parallel,
                zero_paper_time_inside(megatron, m).rate / TERA, rate_of(megatron, m));
    }
}

#define FIRST_OF_MEAN 2 /* the paper's "15 PFlops on average": ZeRO from 8B to 100B */
#define LAST_OF_MEAN  10
#define AT_40B        4

static void print_mean(const zero_paper_figure *figure, const zero_machine_file *m,
                       FILE *out)
{
    const zero_paper_run *zero = &figure->runs[AT_40B], *megatron = zero + 1;
    double sum = 0.0;
    int n = 0;
    for (int i = FIRST_OF_MEAN; i <= LAST_OF_MEAN; i += 2, n++)
        sum += rate_of(&figure->runs[i], m) * zero_paper_devices(&figure->runs[i].setup);
    fprintf(
        out,
        "\nZeRO, 8B to 100B: %.1f Pflop/s on average, in the paper's text 15.\n"
        "The counterfactual is the last column: on one fast link ZeRO's lead at 40B would "
        "be %.1f\ninstead of %.1f. What remains at MP 64 and more is the small batch and "
        "messages that wait.\n",
        sum / n * TERA / PETA,
        rate_of(zero, m) * TERA / zero_paper_time_inside(megatron, m).rate,
        rate_of(zero, m) / rate_of(megatron, m));
}

#define SLOW_LINK 7e9 /* that gives 40B on two nodes the paper's rate */

static void print_alone(const zero_paper_figure *figure, const zero_machine_file *m,
                        FILE *out)
{
    const zero_paper_run *at_40b = &figure->runs[AT_40B + 1], *at_60b = at_40b + 2;
    double ours = zero_paper_time_alone(at_40b, m).rate / TERA;
    zero_machine_file slow = *m;
    slow.between.bandwidth = SLOW_LINK;
    fprintf(
        out,
        "\nMegatron's 40B on two nodes alone: ours %.1f, in the paper's text about %.0f "
        "(ratio %.2f). A link\nof %.0f GB/s would give %.1f, but 60B over four nodes %.1f "
        "and not the figure's %.1f.\n",
        ours, ZERO_PAPER_40B_ALONE, ours / ZERO_PAPER_40B_ALONE, SLOW_LINK / GIGA,
        zero_paper_time_alone(at_40b, &slow).rate / TERA, rate_of(at_60b, &slow),
        at_60b->paper);
}

static void print_fig2(const zero_paper_figure *figure, const zero_machine_file *m,
                       FILE *out)
{
    print_speed_ups(figure, m, out);
    print_alone(figure, m, out);
    print_mean(figure, m, out);
}

/* ---- figure 3 ---- */

#define MOST_RUNS 16

static void print_totals(const zero_paper_figure *figure, const zero_paper_scaling *s,
                         FILE *out)
{
    fprintf(out,
            "\nAll devices, Tflop/s; linear: the first run's times the devices\n\n"
            "  %7s %9s %9s %6s   %9s %9s %6s\n",
            "devices", "ours", "paper", "ratio", "linear", "paper", "ratio");
    for (int i = 0; i < figure->n; i++) {
        double ours = s[i].total / TERA, linear = ours / s[i].times_linear;
        double paper = figure->runs[i].total;
        fprintf(out, "  %7d %9.0f %9.0f %6.2f   %9.0f %9.0f %6.2f\n", s[i].devices, ours,
                paper, ours / paper, linear, figure->runs[i].linear,
                linear / figure->runs[i].linear);
    }
}

static void print_fig3(const zero_paper_figure *figure, const zero_machine_file *m,
                       FILE *out)
{
    static const char *const names[ZERO_PAPER_BATCHES] = {
        "the paper's batches", "what the first run takes", "all of the device",
        "the first run's batch"};
    zero_paper_scaling s[ZERO_PAPER_BATCHES][MOST_RUNS];
    for (int k = 0; k < ZERO_PAPER_BATCHES; k++)
        zero_paper_scale(figure, (zero_paper_batch)k, m, s[k]);
    print_totals(figure, s[0], out);
    fputs("\nTimes linear, and the batch per replica\n\n", out);
    for (int k = 0; k < ZERO_PAPER_BATCHES; k++) {
        fprintf(out, "  %-26s", names[k]);
        for (int i = 0; i < figure->n; i++)
            fprintf(out, "  %5.3f (%3" PRId64 ")", s[k][i].times_linear, s[k][i].batch);
        fputc('\n', out);
    }
    fprintf(out, "  %-26s", "paper");
    for (int i = 0; i < figure->n; i++)
        fprintf(out, "  %5.3f (%3" PRId64 ")",
                figure->runs[i].paper / figure->runs[0].paper, figure->runs[i].setup.batch);
    fputs(
        "\n\nStates shrink with the devices, so the batch that fits grows, and with it "
        "computing beside\nmessages. The second line fills the memory that the paper's "
        "first run fills, the third all 32 GB.\nThe counterfactual is the fourth: with one "
        "batch for all there is nothing beyond linear.\n",
        out);
}

/* ---- figure 4 ---- */

static void print_fig4(const zero_paper_figure *figure, const zero_machine_file *m,
                       FILE *out)
{
    double sum = 0.0, paper = 0.0, largest = 0.0;
    int n = 0;
    fputs("\nThe counterfactual, whole states on every device (DDP)\n\n"
          "  model     GB for the same batch\n",
          out);
    for (int i = 0; i < figure->n; i++) {
        const zero_paper_run *run = &figure->runs[i];
        zero_paper_setup whole = zero_paper_without_zero(run);
        double bytes = zero_paper_memory_of(&whole).all;
        double fits = zero_paper_largest_without_zero(run, m);
        fprintf(out, "  %-5s %10.1f  %s\n", run->size, bytes / GIGA,
                bytes <= m->memory ? "fits" : "does not fit");
        if (fits > largest) largest = fits;
        if (run->setup.stage == 0) continue;
        sum += rate_of(run, m);
        paper += run->paper;
        n++;
    }
    fprintf(
        out,
        "\nDDP ends at %.1fB with one sample by formula, in the paper at 1.4B: what the "
        "framework\nkeeps beyond the formulas is not counted. ZeRO's runs are at %.1f "
        "Tflop/s on average,\nin the figure at %.1f, in the paper's text \"over 40\".\n",
        largest / GIGA, sum / n, paper / n);
}

/* ---- figure 8 ---- */

static void print_fig8(const zero_paper_figure *figure, const zero_machine_file *m,
                       FILE *out)
{
    fputs("\nThe counterfactual, the batch of C1 for all\n\n", out);
    for (int i = 0; i < figure->n; i++) {
        const zero_paper_run *run = &figure->runs[i];
        if (i == 0 || strcmp(run->size, figure->runs[i - 1].size) != 0)
            fprintf(out, "%s  %-5s", i > 0 ? "\n" : "", run->size);
        fprintf(out, "  %s %4.1f", run->system,
                zero_paper_time_first_batch(figure, i, m).rate / TERA);
    }
    fputs("\n\nWith one batch the configurations are equally fast (at 170B only C5 fits): "
          "what P_os+g and P_a\nbring is memory, and memory becomes batch. Batches of "
          "table 9 are listed as 2, 4, 32, 32, 8\nwithout saying whose; here they are "
          "sorted, because C1 and C3 do not hold 32 samples.\n",
          out);
}

/* ---- Turing-NLG and a trillion parameters ---- */

#define MOST_PARTS 16 /* of a model on a node */

static void print_cut(const zero_paper_run *run, const zero_machine_file *m, FILE *out)
{
    if (run->setup.batch == 0)
        fputs("   does not fit", out);
    else
        fprintf(out, "   %5.1f (%4" PRId64 ")", rate_of(run, m), run->setup.batch);
}

static void print_cuts_among(const zero_paper_run *run, int parts, const int stages[],
                             int n, const zero_machine_file *m, FILE *out)
{
    if (run->setup.shape.heads % parts != 0) return;
    fprintf(out, "  %7d", parts);
    for (int k = 0; k < n; k++) {
        zero_paper_run cut = zero_paper_cut_among(run, parts, stages[k], m);
        print_cut(&cut, m, out);
    }
    fputc('\n', out);
}

/* Stages side by side, for the degrees of MP that divide the heads: on a node, and the largest. */
static void print_cuts(const zero_paper_run *run, const int stages[], int n,
                       const zero_machine_file *m, FILE *out)
{
    int heads = (int)run->setup.shape.heads;
    fputs("\nTflop/s per device with the batch that fills it, by MP and stage\n\n       MP",
          out);
    for (int k = 0; k < n; k++) fprintf(out, "        stage %d", stages[k]);
    fputc('\n', out);
    for (int parts = 1; parts <= MOST_PARTS; parts *= 2)
        print_cuts_among(run, parts, stages, n, m, out);
    if (heads > MOST_PARTS && zero_paper_devices(&run->setup) % heads == 0)
        print_cuts_among(run, heads, stages, n, m, out);
}

static void print_turing(const zero_paper_figure *figure, const zero_machine_file *m,
                         FILE *out)
{
    static const int stages[] = {2, 0};
    print_cuts(&figure->runs[0], stages, 2, m, out);
    fputs("\nThe counterfactual is stage 0, plain data parallelism: its states do not fit "
          "with any MP that\ndivides both 28 heads and 256 devices. With P_os+g, MP 2 "
          "reaches "
          "the paper's rate when the batch\nfills the memory.\n",
          out);
}

static void print_trillion(const zero_paper_figure *figure, const zero_machine_file *m,
                           FILE *out)
{
    static const int stages[] = {3, 2, 0};
    const zero_paper_run *run = &figure->runs[0];
    zero_paper_estimates e = zero_paper_estimate(run, m);
    fprintf(out, "\n  %-44s %9s %7s %6s\n", "", "ours", "paper", "ratio");
    fprintf(out, "  %-44s %9.3f %7.0f %6.2f\n", "states of 1e12 parameters, GB per device",
            e.states / GIGA, e.paper_states / GIGA, e.states / e.paper_states);
    fprintf(out, "  %-44s %9.1f %7.0f %6.2f\n", "days: 3000 times BERT-Large's 67 minutes",
            e.days, e.paper_days, e.days / e.paper_days);
    fprintf(out, "  %-44s %9.0f %7s %6s\n", "days for 157e9 tokens at the rate above",
            e.days_for_tokens, "-", "-");
    print_cuts(run, stages, 3, m, out);
    fputs(
        "\nThe counterfactuals: with P_os+g alone a trillion fits only cut among 256 "
        "devices, at a quarter\nof the rate; without ZeRO it does not fit 1024 devices at "
        "all.\n",
        out);
}

void zero_paper_print_more(const zero_paper_figure *figure, const zero_machine_file *m,
                           FILE *out)
{
    static const struct {
        const char *name;
        void (*print)(const zero_paper_figure *, const zero_machine_file *, FILE *);
    } more[] = {{"fig2", print_fig2},         {"fig3", print_fig3},
                {"fig4", print_fig4},         {"fig8", print_fig8},
                {"turing-nlg", print_turing}, {"trillion", print_trillion}};
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
        if (strcmp(figure->name, more[i].name) == 0) more[i].print(figure, m, out);
}
