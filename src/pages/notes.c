#include "pages/notes.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "report/text.h"

typedef struct {
    char (*notes)[ZERO_NOTE_BYTES];
    int n;
} list;

__attribute__((format(printf, 2, 3))) static void note(list *l, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(l->notes[l->n++], ZERO_NOTE_BYTES, fmt, args);
    va_end(args);
}

int64_t zero_record_wanted_steps(const zero_record *record)
{
    const json_t *config = json_object_get(record->file.run, "config");
    json_int_t steps = json_integer_value(json_object_get(config, "steps"));
    return steps > 0 ? steps : 0;
}

int64_t zero_record_missing_steps(const zero_record *record)
{
    const zero_record_step *s = record->steps;
    return s[record->n_steps - 1].step - s[0].step + 1 - record->n_steps;
}

static void note_end(list *l, const zero_record *r)
{
    int64_t last = r->steps[r->n_steps - 1].step, wanted = zero_record_wanted_steps(r);
    if (r->ended) return;
    if (wanted > last)
        note(
            l,
            "the end is missing: the run was stopped after step %" PRId64 " of %" PRId64
            ", or is still running; memory, communication and profile are in the last line",
            last, wanted);
    else
        note(l,
             "the end is missing: there is no line after step %" PRId64
             "; memory, communication and profile are in the last line",
             last);
}

/* Steps without an update, and losses that are not finite: the metrics have null for them. */
static void note_steps(list *l, const zero_record *r)
{
    int64_t skipped = 0, undefined = 0, first = 0;
    for (int64_t i = r->n_steps - 1; i >= 0; i--) {
        skipped += r->steps[i].skipped;
        if (isfinite(r->steps[i].loss)) continue;
        undefined++;
        first = r->steps[i].step;
    }
    if (undefined > 0)
        note(l, "the loss of %" PRId64 " step%s is not finite, first that of step %" PRId64,
             undefined, zero_text_plural(undefined), first);
    if (skipped > 0)
        note(l, "%" PRId64 " step%s skipped, because a gradient overflowed", skipped,
             skipped == 1 ? " was" : "s were");
}

/* The last line speaks of what came after the first line before it. */
static void note_earlier(list *l, const zero_record *r)
{
    if (r->resumed_step > 0)
        note(l,
             "resumed after step %" PRId64
             "; of steps that were taken twice the later ones count%s",
             r->resumed_step,
             r->ended ? "; bytes sent, profile and shares are of the steps since" : "");
    else if (r->file.n_runs > 1)
        note(l, "the file has the first lines of %" PRId64 " runs; the last of them counts",
             r->file.n_runs);
}

int zero_notes_of(const zero_record *record, char notes[ZERO_NOTES_MOST][ZERO_NOTE_BYTES])
{
    list l = {.notes = notes};
    int64_t missing = zero_record_missing_steps(record);
    note_end(&l, record);
    if (record->cut) note(&l, "the file ends in half a line, which is left out");
    if (record->lost_lines > 0)
        note(&l, "%" PRId64 " line%s could not be written when the run took place",
             record->lost_lines, zero_text_plural(record->lost_lines));
    if (missing > 0)
        note(&l, "%" PRId64 " step%s between the first and the last %s no line", missing,
             zero_text_plural(missing), missing == 1 ? "has" : "have");
    note_steps(&l, record);
    if (!record->has_run) note(&l, "the file does not say what its run was");
    note_earlier(&l, record);
    if (record->fake_nodes)
        note(&l, "its %d nodes are fake and share one machine: times mean nothing",
             record->nodes);
    if (record->steps[0].step > 1 && record->resumed_step == 0)
        note(&l, "the file begins with step %" PRId64, record->steps[0].step);
    return l.n;
}
