#include "comm/verdict.h"

#define MAX_CLASSES 5 /* classes that an error lists */

static int count(const zero_stalled_job *g, int class)
{
    return zero_ranks_count(g->size, g->class_of, class);
}

/* True if a rank is in, or about to enter, another operation than `other`. One that
 * computes is in no operation. */
static bool is_elsewhere(const zero_standing *at, const zero_standing *other)
{
    bool differs = at->kind != other->kind || at->unit != other->unit ||
                   at->sequence != other->sequence || at->member.part != other->member.part;
    return differs && at->state != ZERO_WATCH_COMPUTING;
}

static bool are_together(const zero_member *part, int a, int b)
{
    return zero_member_beside(part, a).first == zero_member_beside(part, b).first;
}

/* The group of the class's operation; `first` is -1 if the ranks are in several. */
static zero_member find_member(const zero_stalled_job *g, int class)
{
    const zero_member *any = &g->all[class].member;
    for (int r = class; r < g->size; r++)
        if (g->class_of[r] == class && !are_together(any, class, r)) return *any;
    return zero_member_beside(any, class);
}

/* ---- families ---- */

/* Ranks that begin the same operations in one order are behind or ahead in all groups
 * alike. With shared_only, compares only the groups to which both belong. */
static bool are_in_order(const zero_stalled_job *g, int a, int b, bool shared_only)
{
    const int64_t *one = g->all[a].begun, *other = g->all[b].begun;
    bool is_ahead = one[ZERO_WHOLE] > other[ZERO_WHOLE];
    bool is_behind = one[ZERO_WHOLE] < other[ZERO_WHOLE];
    for (int i = 0; i < g->n_parts; i++) {
        int part = g->parts[i].part;
        if (shared_only && !are_together(&g->parts[i], a, b)) continue;
        is_ahead = is_ahead || one[part] > other[part];
        is_behind = is_behind || one[part] < other[part];
    }
    return !(is_ahead && is_behind);
}

/* Number of ranks that are not in order with one of the class, which has left out an
 * operation or belongs to a group in which a rank has. Only ranks that share a group can
 * tell: 0 if the ranks of the class are in order with those. */
static int count_conflicts(const zero_stalled_job *g, int class)
{
    int shared = 0, all = 0;
    for (int a = class; a < g->size; a++) {
        for (int b = 0; g->class_of[a] == class && b < g->size; b++) {
            shared += !are_in_order(g, a, b, true);
            all += !are_in_order(g, a, b, false);
        }
    }
    return shared > 0 ? all / count(g, class) : 0;
}

/* True if the class may be at fault, and does not just wait for a rank that is. */
static bool is_suspect(const zero_stalled_job *g, int class)
{
    if (g->n_parts == 0) return true;
    if (g->has_silent) return false;
    if (g->most_conflicts > 0) return count_conflicts(g, class) == g->most_conflicts;
    return g->all[class].reached == g->least;
}

/* ---- works ---- */

/* Whether it has begun operation `number` of the group of this name; true outside it. */
static bool has_begun(const zero_standing *at, uint32_t group, int64_t number)
{
    for (int i = 0; i < at->n_groups; i++)
        if (at->groups[i].name == group) return at->groups[i].begun > number;
    return true;
}

/* True if rank a waits for something that rank b has yet to begin. Which ranks open a group
 * is not known here. */
static bool waits_for(const zero_stalled_job *g, int a, int b)
{
    const zero_standing *at = &g->all[a], *other = &g->all[b];
    if (a == b || at->state < ZERO_WATCH_COMPARING || at->group[0] == '\0') return false;
    if (at->kind == ZERO_OPERATION_OPENING) return other->state == ZERO_WATCH_COMPUTING;
    return !has_begun(other, zero_operation_group_hash(at->group), at->sequence);
}

/* ---- faults ---- */

/* Why the class is suspected; NULL: it is not. */
static const char *find_fault(const zero_stalled_job *g, int class)
{
    const zero_standing *at = &g->all[class];
    const zero_standing *most = &g->all[zero_ranks_majority(g->size, g->class_of)];
    bool one = count(g, class) == 1;
    if (at->state == ZERO_WATCH_SILENT) return one ? "does not answer" : "do not answer";
    if (g->all[class].n_groups > 0) {
        if (g->has_silent) return NULL;
        int awaited = 0, waits = 0, more = 0, idle = 0, mine = count(g, class);
        for (int r = class; r < g->size; r++)
            for (int q = 0; q < g->size && g->class_of[r] == class; q++) {
                awaited += waits_for(g, q, r);
                waits += waits_for(g, r, q);
            }
        for (int q = 0; q < g->size; q++) {
            bool differs = g->class_of[q] == q && q != class &&
                           (g->all[q].state >= ZERO_WATCH_COMPARING &&
                            g->all[class].state >= ZERO_WATCH_COMPARING &&
                            g->all[q].sequence == g->all[class].sequence &&
                            zero_same_text(g->all[q].group, g->all[class].group));
            if (differs && (count(g, q) > mine || (count(g, q) == mine && q < class)))
                more++;
            idle += g->all[q].state == ZERO_WATCH_COMPUTING;
        }
        if (awaited > 0 && waits == 0) return mine == 1 ? "is behind" : "are behind";
        if (more > 0) return mine == 1 ? "is elsewhere" : "are elsewhere";
        if (awaited > 0 && idle == 0)
            return mine == 1 ? "waits while others wait for it"
                             : "wait while others wait for them";
        return NULL;
    }
    if (!is_suspect(g, class)) return NULL;
    if (g->most_conflicts > 0) return one ? "left out an operation" : "left out operations";
    if (at->reached < g->furthest) return one ? "is behind" : "are behind";
    if (most->state != ZERO_WATCH_SILENT && is_elsewhere(at, most))
        return one ? "is elsewhere" : "are elsewhere";
    if (at->state == ZERO_WATCH_COPYING)
        return one ? "waits for its device" : "wait for their devices";
    return NULL;
}

static void add_state(zero_sentence *report, const zero_stalled_job *g, int class)
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
    double longest = 0.0;
    for (int r = 0; r < g->size; r++)
        if (g->class_of[r] == class) longest = fmax(longest, g->all[r].seconds);
    zero_operation op = {.sequence = at->sequence,
                         .kind = at->kind,
                         .unit = at->unit,
                         .count = at->count,
                         .type = at->type,
                         .root = at->root,
                         .member = find_member(g, class)};
    zero_operation_set_group(&op, at->group);
    zero_operation_name(&op, name);
    zero_sentence_add(report, ": ");
    if (at->work >= 0) zero_sentence_add(report, "in %s %" PRId64 ", ", g->work, at->work);
    zero_sentence_add(report, "%s %s (%.3g s)", doing[at->state], name, longest);
    if (at->place[0] == '\0') return;
    if (count(g, class) == 1)
        zero_sentence_add(report, ", at %s", at->place);
    else
        zero_sentence_add(report, ", rank %d at %s", class, at->place);
}

void zero_verdict_write(zero_stalled_job *g, zero_sentence *report)
{
    zero_ranks_classes(g->size, g->all, sizeof *g->all, offsetof(zero_standing, seconds),
                       g->class_of);
    g->has_silent = false;
    g->furthest = g->most_conflicts = 0;
    g->least = INT64_MAX;
    for (int r = 0; r < g->size; r++) {
        bool is_silent = g->all[r].state == ZERO_WATCH_SILENT;
        g->has_silent = g->has_silent || is_silent;
        if (g->all[r].reached > g->furthest) g->furthest = g->all[r].reached;
        if (!is_silent && g->all[r].reached < g->least) g->least = g->all[r].reached;
    }
    for (int r = 0; r < g->size && g->n_parts > 0 && !g->has_silent; r++) {
        int n = g->class_of[r] == r ? count_conflicts(g, r) : 0;
        if (n > g->most_conflicts) g->most_conflicts = n;
    }
    zero_sentence_add(report, "no progress for %.3g s, longer than %s allows", g->stalled,
                      g->all[0].n_groups > 0 ? "the watchdog" : "--watchdog");
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
    int left = g->size;
    listed = 0;
    for (int r = 0; r < g->size && listed < MAX_CLASSES; r++) {
        if (g->class_of[r] != r) continue;
        zero_sentence_add(report, listed++ > 0 ? "; " : ". State: ");
        add_state(report, g, r);
        left -= count(g, r);
    }
    if (left > 0) zero_sentence_add(report, "; %d more ranks elsewhere", left);
}
