#include "comm/verdict.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "comm/operation.h"

#define MAX_CLASSES 5 /* classes that an error lists */

typedef struct {
    int size;
    const zero_standing *all; /* [size] */
    const int *class_of;      /* [size] */
    const char *work;         /* the name of a piece of work */
} group;

static int count(const group *g, int class)
{
    return zero_ranks_count(g->size, g->class_of, class);
}

/* True if a rank is in, or about to enter, another operation than `other`. One that computes is
 * in no operation. */
static bool is_elsewhere(const zero_standing *at, const zero_standing *other)
{
    bool differs = at->kind != other->kind || at->unit != other->unit ||
                   at->sequence != other->sequence || at->member.part != other->member.part;
    return differs && at->state != ZERO_WATCH_COMPUTING;
}

/* The group of the class's operation; index -1 if the ranks are in several. */
static zero_member find_member(const group *g, int class)
{
    const zero_member *any = &g->all[class].member;
    zero_member first =
        zero_member_of((zero_family_part)any->part, any->tp, any->size, class);
    for (int r = class; r < g->size; r++) {
        zero_member its =
            zero_member_of((zero_family_part)any->part, any->tp, any->size, r);
        if (g->class_of[r] == class && its.index != first.index) return *any;
    }
    return first;
}

/* Why the class is suspected; NULL: it is not. */
static const char *find_fault(const group *g, int class)
{
    const zero_standing *at = &g->all[class];
    const zero_standing *most = &g->all[zero_ranks_majority(g->size, g->class_of)];
    bool one = count(g, class) == 1;
    int64_t furthest = 0;
    for (int r = 0; r < g->size; r++)
        if (g->all[r].reached > furthest) furthest = g->all[r].reached;
    if (at->state == ZERO_WATCH_SILENT) return one ? "does not answer" : "do not answer";
    if (at->reached < furthest) return one ? "is behind" : "are behind";
    if (most->state != ZERO_WATCH_SILENT && is_elsewhere(at, most))
        return one ? "is elsewhere" : "are elsewhere";
    if (at->state == ZERO_WATCH_COPYING)
        return one ? "waits for its device" : "wait for their devices";
    return NULL;
}

static void add_faults(zero_sentence *report, const group *g)
{
    int listed = 0;
    for (int r = 0; r < g->size && listed < MAX_CLASSES; r++) {
        const char *fault = g->class_of[r] == r ? find_fault(g, r) : NULL;
        if (!fault) continue;
        zero_sentence_add(report, listed++ > 0 ? ", " : "; ");
        zero_sentence_add_ranks(report, g->size, g->class_of, r);
        zero_sentence_add(report, " %s", fault);
    }
    if (listed == 0)
        zero_sentence_add(report, "; no rank is behind, so a message is missing");
}

static double longest(const group *g, int class)
{
    double seconds = 0.0;
    for (int r = 0; r < g->size; r++)
        if (g->class_of[r] == class) seconds = fmax(seconds, g->all[r].seconds);
    return seconds;
}

static void add_state(zero_sentence *report, const group *g, int class)
{
    static const char *const doing[] = {
        [ZERO_WATCH_COMPUTING] = "computing after",
        [ZERO_WATCH_COMPARING] = "comparing before",
        [ZERO_WATCH_WAITING] = "waiting for",
        [ZERO_WATCH_COPYING] = "waiting for copies of a device, and for",
    };
    const zero_standing *at = &g->all[class];
    zero_sentence_add_ranks(report, g->size, g->class_of, class);
    if (at->state == ZERO_WATCH_SILENT) {
        zero_sentence_add(report, ": no answer (dead, stopped, or not in our code)");
        return;
    }
    char name[ZERO_OPERATION_TEXT];
    zero_operation op = {.sequence = at->sequence,
                         .kind = at->kind,
                         .unit = at->unit,
                         .member = find_member(g, class)};
    zero_operation_name(&op, name);
    zero_sentence_add(report, ": ");
    if (at->work >= 0) zero_sentence_add(report, "in %s %" PRId64 ", ", g->work, at->work);
    zero_sentence_add(report, "%s %s (%.3g s)", doing[at->state], name, longest(g, class));
}

static void add_states(zero_sentence *report, const group *g)
{
    int listed = 0, left = g->size;
    for (int r = 0; r < g->size && listed < MAX_CLASSES; r++) {
        if (g->class_of[r] != r) continue;
        zero_sentence_add(report, listed++ > 0 ? "; " : ". State: ");
        add_state(report, g, r);
        left -= count(g, r);
    }
    if (left > 0) zero_sentence_add(report, "; %d more ranks elsewhere", left);
}

void zero_verdict_write(int size, const zero_standing all[], const char *work,
                        double stalled, int class_of[], zero_sentence *report)
{
    zero_ranks_classes(size, all, sizeof *all, offsetof(zero_standing, seconds), class_of);
    group g = {size, all, class_of, work};
    zero_sentence_add(report, "no progress for %.3g s, longer than --watchdog allows",
                      stalled);
    add_faults(report, &g);
    add_states(report, &g);
}
