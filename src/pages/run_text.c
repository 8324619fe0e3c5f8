/* One run as text. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/legible.h"
#include "pages/cell.h"
#include "pages/notes.h"
#include "pages/runs.h"
#include "report/text.h"

#define MARGIN "  "

/* ---- what it was ---- */

static const char *text_of(const zero_record *r, const char *key)
{
    const char *text = json_string_value(json_object_get(r->file.run, key));
    return text ? text : "unknown";
}

static void print_setup(const zero_record *r, FILE *out)
{
    if (!r->has_run) return;
    fprintf(out,
            MARGIN "%s, %" PRId64 " parameters, stage %d, %s, %d rank%s on %d %snode%s",
            ZERO_SHOWN(r->model), r->parameters, r->stage, r->dtype, r->ranks,
            zero_text_plural(r->ranks), r->nodes, r->fake_nodes ? "fake " : "",
            zero_text_plural(r->nodes));
    if (r->tp > 1) fprintf(out, ", TP %d", r->tp);
    fprintf(out, ", %s\n", ZERO_SHOWN(r->collectives));
    fprintf(out, MARGIN "started %s, zero %s %s\n", ZERO_SHOWN(r->started),
            ZERO_SHOWN(text_of(r, "version")), ZERO_SHOWN(text_of(r, "commit")));
}

/* Breaks a sentence between words. */
static void print_sentence(const char *first, const char *text, FILE *out)
{
    int column = fprintf(out, "%s", first);
    for (size_t length; *text; text += length + (text[length] == ' ')) {
        length = strcspn(text, " ");
        if (column + 1 + (int)length > 79) column = fprintf(out, "\n   ") - 1;
        column += fprintf(out, " %.*s", (int)length, text);
    }
    fputc('\n', out);
}

void zero_run_print_head(const zero_record *record, FILE *out)
{
    char notes[ZERO_NOTES_MOST][ZERO_NOTE_BYTES];
    int n = zero_notes_of(record, notes);
    fprintf(out, "%s\n", ZERO_SHOWN(record->path));
    print_setup(record, out);
    fprintf(out, MARGIN "%" PRId64 " step%s", record->n_steps,
            zero_text_plural(record->n_steps));
    if (record->ended) fprintf(out, ", digest %s", ZERO_SHOWN(record->digest));
    fputc('\n', out);
    for (int i = 0; i < n; i++) print_sentence(MARGIN "note:", notes[i], out);
}

/* ---- figures ---- */

static void print_beside(const zero_figures *f, int i, FILE *out)
{
    char lower[ZERO_CELL], upper[ZERO_CELL], planned[ZERO_CELL];
    const zero_step_time *t = &f->step_time;
    zero_cell_seconds(t->lower, lower);
    zero_cell_seconds(t->upper, upper);
    zero_cell_bytes((double)f->planned_peak, planned);
    if (i == 0) fprintf(out, "  step %" PRId64, f->step);
    if (i == 1 && f->val_step > 0) fprintf(out, "  step %" PRId64, f->val_step);
    if (i == 2)
        fprintf(out, "  median of %" PRId64 " step%s", t->n, zero_text_plural(t->n));
    if (i == 2 && t->first > 0) fprintf(out, " without the first %" PRId64, t->first);
    if (i == 3) fprintf(out, "  quartiles %s and %s", lower, upper);
    if (i == 4 && f->measured_peak > 0)
        fprintf(out, "  %s planned %s", zero_cell_equal(f->planned_peak, f->measured_peak),
                planned);
    if (i == 5)
        fprintf(out, "  of the step, %s", f->of_all_ranks ? "mean of all ranks" : "rank 0");
}

static void print_figures(const zero_figures *f, FILE *out)
{
    char text[ZERO_CELL];
    fputc('\n', out);
    for (int i = 0; i < ZERO_SIX_FIGURES; i++) {
        zero_cell_figure(i, zero_six_figures_value(f, i), text);
        fprintf(out, MARGIN "%-18s%12s", zero_six_figures[i].name, text);
        print_beside(f, i, out);
        fputc('\n', out);
    }
}

static void print_numbers(const zero_figures *f, FILE *out)
{
    fputc('\n', out);
    for (int i = 0; i < ZERO_FOUR_NUMBERS; i++) {
        char text[ZERO_CELL], first[80];
        zero_cell_share(zero_four_numbers_value(f, i), text);
        snprintf(first, sizeof first, MARGIN "%-18s%12s ", zero_four_numbers[i].name, text);
        print_sentence(first, zero_four_numbers[i].definition, out);
    }
}

/* ---- ledgers ---- */

static void print_pair(const char *name, int64_t planned, int64_t measured, FILE *out)
{
    fprintf(out, MARGIN "%-24s%18" PRId64 "%9s%18" PRId64 "\n", ZERO_SHOWN(name), planned,
            zero_cell_equal(planned, measured), measured);
}

static void print_pairs(const char *title, FILE *out)
{
    fprintf(out, "\n" MARGIN "%-24s%18s%9s%18s\n", title, "planned", "", "measured");
}

static void print_classes(const zero_record_class *classes, int n, FILE *out)
{
    for (int i = 0; i < n; i++)
        if (classes[i].planned != 0 || classes[i].measured != 0)
            print_pair(classes[i].name, classes[i].planned, classes[i].measured, out);
}

static void print_memory(const zero_record *r, FILE *out)
{
    print_pairs(r->n_host > 0 ? "device of rank 0, bytes" : "memory of rank 0, bytes", out);
    print_classes(r->classes, r->n_classes, out);
    print_pair("peak", r->planned_peak, r->measured_peak, out);
    if (r->n_host == 0) return;
    print_pairs("its host, bytes", out);
    print_classes(r->host, r->n_host, out);
    print_pair("peak", r->planned_host_peak, r->host_peak, out);
}

static void print_file(const zero_record *r, FILE *out)
{
    if (r->n_moved == 0) return;
    print_pairs("scratch file, bytes", out);
    for (int i = 0; i < r->n_moved; i++) {
        const zero_record_moved *m = &r->moved[i];
        char name[48];
        if (m->planned_read + m->read + m->planned_written + m->written == 0) continue;
        snprintf(name, sizeof name, "%.17s read", m->name);
        print_pair(name, m->planned_read, m->read, out);
        snprintf(name, sizeof name, "%.17s written", m->name);
        print_pair(name, m->planned_written, m->written, out);
    }
}

static void print_traffic(const zero_record *r, FILE *out)
{
    fprintf(out, "\n" MARGIN "%-12s%18s%9s%18s%11s%9s\n", "sent, bytes", "planned", "",
            "sent", "in flight", "hidden");
    for (int i = 0; i < r->n_traffic; i++) {
        const zero_record_traffic *t = &r->traffic[i];
        char seconds[ZERO_CELL], hidden[ZERO_CELL];
        zero_cell_seconds(t->seconds, seconds);
        zero_cell_share(zero_traffic_hidden(t), hidden);
        fprintf(out, MARGIN "%-12s%18" PRId64 "%9s%18" PRId64 "%11s%9s\n", t->name,
                t->planned_sent, zero_cell_equal(t->planned_sent, t->sent), t->sent,
                seconds, hidden);
    }
    fprintf(out, MARGIN
            "hidden: share of the time in flight in which rank 0 does not wait for it\n");
}

static double profile_total(const zero_record *r)
{
    double sum = 0.0;
    for (int i = 0; i < r->n_profile; i++)
        if (!r->profile[i].unit[0]) sum += r->profile[i].seconds;
    return sum;
}

static void print_profile_row(const zero_record_profile *p, double total, FILE *out)
{
    char own[ZERO_CELL], least[ZERO_CELL], most[ZERO_CELL], share[ZERO_CELL], name[80];
    zero_cell_seconds(p->seconds, own);
    zero_cell_seconds(p->least, least);
    zero_cell_seconds(p->most, most);
    zero_cell_share(total > 0.0 ? p->seconds / total : NAN, share);
    snprintf(name, sizeof name, "%s%.40s", p->unit[0] ? "  " : "",
             p->unit[0] ? p->unit : p->op);
    fprintf(out, MARGIN "%-20s%9" PRId64 "%12s%12s%12s%9s\n", ZERO_SHOWN(name), p->count,
            own, least, most, share);
}

static void print_profile(const zero_record *r, FILE *out)
{
    fprintf(out, "\n" MARGIN "%-20s%9s%12s%12s%12s%9s\n", "instructions", "count", "rank 0",
            "least", "most", "share");
    for (int i = 0; i < r->n_profile; i++)
        print_profile_row(&r->profile[i], profile_total(r), out);
    fprintf(out, MARGIN "of all steps; least and most of %d rank%s\n", r->ranks,
            zero_text_plural(r->ranks));
}

/* ---- where memory peaks, and which rank computes longest ---- */

static void print_peak(const zero_record *r, FILE *out)
{
    char text[ZERO_CELL], sentence[240];
    if (r->peak_at < 0) return;
    const zero_record_instruction *i = &r->program[r->peak_at];
    zero_cell_bytes((double)i->live_bytes, text);
    snprintf(sentence, sizeof sentence,
             "a step has %d instructions; memory peaks at %d, %s, with %s",
             r->program_length, i->number, i->name, text);
    fputc('\n', out);
    print_sentence(" ", ZERO_SHOWN(sentence), out);
}

static void print_spent(const zero_record *r, FILE *out)
{
    if (!r->has_rank_seconds) return;
    fprintf(out, "\n" MARGIN "%-20s%12s%12s%12s\n", "seconds of the ranks", "least", "mean",
            "most");
    for (int i = 0; i < ZERO_SPENT; i++) {
        char least[ZERO_CELL], mean[ZERO_CELL], most[ZERO_CELL];
        zero_cell_seconds(r->rank_seconds[i].least, least);
        zero_cell_seconds(r->rank_seconds[i].mean, mean);
        zero_cell_seconds(r->rank_seconds[i].most, most);
        fprintf(out, MARGIN "%-20s%12s%12s%12s\n",
                zero_record_spent_name((zero_record_spent)i), least, mean, most);
    }
}

void zero_run_print(const zero_record *record, const zero_figures *figures, FILE *out)
{
    zero_run_print_head(record, out);
    print_figures(figures, out);
    print_numbers(figures, out);
    print_peak(record, out);
    if (!record->ended) return;
    print_memory(record, out);
    print_file(record, out);
    print_traffic(record, out);
    print_spent(record, out);
    print_profile(record, out);
}

/* Numbers of a ledger that are not as planned, the peak among them. */
static int count_differences(const zero_record *r)
{
    int n = (r->planned_peak != r->measured_peak) + (r->planned_host_peak != r->host_peak);
    for (int i = 0; i < r->n_host; i++) n += r->host[i].planned != r->host[i].measured;
    for (int i = 0; i < r->n_moved; i++)
        n += (r->moved[i].planned_read != r->moved[i].read) +
             (r->moved[i].planned_written != r->moved[i].written);
    for (int i = 0; i < r->n_classes; i++)
        n += r->classes[i].planned != r->classes[i].measured;
    for (int i = 0; i < r->n_traffic; i++)
        n += r->traffic[i].planned_sent != r->traffic[i].sent;
    return n;
}

void zero_run_print_equality(const zero_record *record, FILE *out)
{
    int differ = count_differences(record);
    if (!record->ended) return;
    if (differ > 0)
        fprintf(out, MARGIN "DIFFERS from its plan in %d number%s of its ledgers\n", differ,
                zero_text_plural(differ));
    else
        fprintf(out, MARGIN "%d classes of memory and %d kinds of messages as planned\n",
                record->n_classes, record->n_traffic);
}
