/* check_trace TRACE [METRICS [PLAN]]: does the trace say what its run did?
 *
 * The file is one JSON array without duplicate keys. Spans of a thread do not overlap; those of a
 * rank adjoin within a step. Bytes by class add up to the live bytes of the instruction that begins
 * with them. Flights are in rows below their rank; a reduce-scatter or an all-gather is in flight
 * on all its ranks at once, which is how clocks are tested. With METRICS a rank's spans of a step
 * add up to rank 0's step_seconds within 1 %. With PLAN, the JSON of `zero plan --show-schedule
 * --rank R` for the first rank in the trace, that rank's instructions have the names, bytes and live bytes of
 * the plan.
 *
 * Prints what it has found: ranks, steps, spans, flights, queues, gap (the largest difference to
 * step_seconds in percent). */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#define THREADS 1000 /* of a rank: itself, then rows below it */

typedef struct {
    int64_t thread, begin, end, step, at, live, bytes;
    const char *name, *category;
} span;

typedef struct {
    int64_t rank, step, sequence, first, begin, end;
    const char *name;
} flight;

typedef struct {
    int64_t rank, at, bytes;
} sample;

typedef struct {
    json_t *root, *head;
    span *spans;
    flight *flights;
    sample *samples;
    size_t n_spans, n_flights, n_samples;
} trace;

static _Noreturn void fail(const char *what, const char *name, int64_t number)
{
    fprintf(stderr, "check_trace: %s: %s (%" PRId64 ")\n", what, name, number);
    exit(1);
}

static const json_t *member(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!value) {
        char *text = json_dumps(object, JSON_COMPACT);
        fail(key, text ? text : "is missing", 0);
    }
    return value;
}

static int64_t whole(const json_t *object, const char *key)
{
    const json_t *value = member(object, key);
    if (!json_is_integer(value)) fail(key, "expected a whole number", 0);
    return json_integer_value(value);
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(member(object, key));
    if (!value) fail(key, "expected a text", 0);
    return value;
}

/* Microseconds as nanoseconds. */
static int64_t nano(const json_t *object, const char *key)
{
    const json_t *value = member(object, key);
    if (!json_is_number(value) || json_number_value(value) < 0.0)
        fail(key, "expected a time from 0 on", 0);
    return llround(1e3 * json_number_value(value));
}

static void *room(size_t n, size_t size)
{
    void *memory = calloc(n + 1, size);
    if (!memory) fail("no memory", "events", (int64_t)n);
    return memory;
}

/* ---- reading ---- */

static void read_flight(trace *t, const json_t *event)
{
    const json_t *args = member(event, "args");
    int64_t begin = nano(event, "ts"), thread = whole(event, "tid");
    if (thread % THREADS == 0)
        fail("is in no row below its rank", text(event, "name"), begin);
    if (whole(args, "sent") < 0) fail("sends less than nothing", text(event, "name"), 0);
    t->flights[t->n_flights++] = (flight){.rank = thread / THREADS,
                                          .step = whole(args, "step"),
                                          .sequence = whole(args, "sequence"),
                                          .first = whole(args, "first"),
                                          .begin = begin,
                                          .end = begin + nano(event, "dur"),
                                          .name = text(event, "name")};
}

static void read_span(trace *t, const json_t *event)
{
    if (strcmp(text(event, "cat"), "wait") == 0) return;
    if (strcmp(text(event, "cat"), "collective") == 0) {
        read_flight(t, event);
        return;
    }
    const json_t *args = member(event, "args"), *bytes = json_object_get(args, "bytes");
    int64_t begin = nano(event, "ts");
    t->spans[t->n_spans++] = (span){.thread = whole(event, "tid"),
                                    .begin = begin,
                                    .end = begin + nano(event, "dur"),
                                    .step = whole(args, "step"),
                                    .at = whole(args, "at"),
                                    .live = whole(args, "live"),
                                    .bytes = bytes ? json_integer_value(bytes) : -1,
                                    .name = text(event, "name"),
                                    .category = text(event, "cat")};
}

static void read_sample(trace *t, const json_t *event)
{
    const char *class;
    json_t *bytes;
    sample *s = &t->samples[t->n_samples++];
    *s = (sample){.rank = whole(event, "tid"), .at = nano(event, "ts")};
    json_object_foreach((json_t *)(uintptr_t)member(event, "args"), class, bytes)
    {
        if (!json_is_integer(bytes) || json_integer_value(bytes) < 0)
            fail("bytes of a class", class, s->at);
        s->bytes += json_integer_value(bytes);
    }
}

static void read_event(trace *t, const json_t *event)
{
    const char *phase = text(event, "ph"), *name = text(event, "name");
    whole(event, "pid");
    if (strcmp(phase, "X") == 0)
        read_span(t, event);
    else if (strcmp(phase, "C") == 0)
        read_sample(t, event);
    else if (strcmp(phase, "M") != 0)
        fail("an event of an unknown phase", phase, 0);
    else if (strcmp(name, "zero_trace") == 0)
        t->head = json_object_get(event, "args");
}

static void read_trace(trace *t, const char *path)
{
    json_error_t at;
    json_t *event;
    size_t index, n;
    t->root = json_load_file(path, JSON_REJECT_DUPLICATES, &at);
    if (!json_is_array(t->root)) fail("not a JSON array", at.text, at.line);
    n = json_array_size(t->root);
    t->spans = room(n, sizeof *t->spans);
    t->flights = room(n, sizeof *t->flights);
    t->samples = room(n, sizeof *t->samples);
    json_array_foreach(t->root, index, event) read_event(t, event);
    if (!t->head) fail("no event says what the trace is", path, 0);
}

/* ---- spans ---- */

static int by_thread_and_begin(const void *a, const void *b)
{
    const span *x = a, *y = b;
    if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static void check_spans(trace *t)
{
    qsort(t->spans, t->n_spans, sizeof *t->spans, by_thread_and_begin);
    for (size_t k = 1; k < t->n_spans; k++) {
        const span *a = &t->spans[k - 1], *b = &t->spans[k];
        if (a->thread != b->thread) continue;
        if (a->end > b->begin) fail("overlaps the span before it", b->name, b->begin);
        if (b->thread % THREADS == 0 && a->step == b->step && a->end != b->begin)
            fail("does not begin where the span before it ends", b->name, b->begin);
        if (a->step > b->step) fail("an earlier step comes later", b->name, b->step);
    }
}

static void check_samples(const trace *t)
{
    for (size_t k = 0; k < t->n_samples; k++) {
        const sample *m = &t->samples[k];
        bool found = false;
        for (size_t i = 0; i < t->n_spans; i++) {
            const span *s = &t->spans[i];
            if (s->thread != m->rank || s->begin != m->at || s->at == 0) continue;
            if (s->live == m->bytes) found = true;
        }
        if (!found)
            fail("classes do not add up to an instruction's bytes", "memory", m->at);
    }
}

/* ---- flights ---- */

static bool is_of_all(const char *name)
{
    return (strncmp(name, "reduce-scatter", 14) == 0 ||
            strncmp(name, "all-gather", 10) == 0) &&
           !strstr(name, "not ended");
}

/* Two ranks' clocks may differ by twice what one differs from rank 0's. */
static size_t check_flights(const trace *t)
{
    double uncertainty = json_number_value(member(t->head, "clock_uncertainty"));
    int64_t slack = llround(2e9 * uncertainty);
    size_t pairs = 0;
    for (size_t k = 0; k < t->n_flights; k++) {
        const flight *a = &t->flights[k];
        for (size_t i = k + 1; is_of_all(a->name) && i < t->n_flights; i++) {
            const flight *b = &t->flights[i];
            if (a->rank == b->rank || a->step != b->step || a->sequence != b->sequence ||
                a->first != b->first)
                continue;
            if (strcmp(a->name, b->name) != 0) fail("has two names", a->name, a->begin);
            pairs++;
            if (a->begin > b->end + slack || b->begin > a->end + slack)
                fail("is not in flight on two ranks at once", a->name, a->begin);
        }
    }
    return pairs;
}

/* ---- metrics ---- */

static double seconds_of(const char *path, int64_t step)
{
    FILE *file = fopen(path, "r");
    json_t *line;
    double seconds = -1.0;
    if (!file) fail("cannot open", path, 0);
    while (seconds < 0.0 &&
           (line = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL)) != NULL) {
        const json_t *number = json_object_get(line, "step");
        if (json_is_integer(number) && json_integer_value(number) == step)
            seconds = json_number_value(json_object_get(line, "step_seconds"));
        json_decref(line);
    }
    fclose(file);
    if (seconds <= 0.0) fail("no step_seconds", path, step);
    return seconds;
}

static int64_t sum_of(const trace *t, int64_t rank, int64_t step)
{
    int64_t sum = 0;
    for (size_t k = 0; k < t->n_spans; k++)
        if (t->spans[k].thread == rank && t->spans[k].step == step)
            sum += t->spans[k].end - t->spans[k].begin;
    return sum;
}

/* Rank 0 writes its own times. Returns the largest difference in percent. */
static double check_sums(const trace *t, const char *path)
{
    double most = 0.0;
    for (int64_t step = whole(t->head, "first_step"); step <= whole(t->head, "last_step");
         step++) {
        double sum = 1e-9 * (double)sum_of(t, 0, step), seconds = seconds_of(path, step);
        most = fmax(most, 100.0 * fabs(sum / seconds - 1.0));
        if (most > 1.0) fail("spans of rank 0 do not add up to step_seconds", path, step);
    }
    return most;
}

/* ---- the plan ---- */

static void check_instruction(const span *s, const json_t *i)
{
    char name[256];
    const char *operand = text(i, "operand");
    const json_t *microbatch = json_object_get(i, "microbatch");
    const json_t *bytes = json_object_get(i, "bytes");
    int n =
        snprintf(name, sizeof name, "%s%s%s", text(i, "op"), *operand ? " " : "", operand);
    if (microbatch)
        snprintf(name + n, sizeof name - (size_t)n, ", microbatch %d",
                 (int)json_integer_value(microbatch));
    if (strcmp(name, s->name) != 0) fail(name, s->name, s->at);
    if ((bytes ? json_integer_value(bytes) : -1) != s->bytes)
        fail("other bytes than planned", s->name, s->bytes);
    if (whole(i, "live_bytes") != s->live)
        fail("other live bytes than planned", s->name, s->live);
}

/* The main thread's instructions come in order, without those that ran ahead. */
static void check_plan(const trace *t, const char *path)
{
    json_error_t at;
    json_t *plan = json_load_file(path, 0, &at);
    json_t *stage = json_array_get(json_object_get(plan, "stages"), 0);
    json_t *step = json_object_get(json_object_get(stage, "programs"), "step");
    int64_t rank = t->n_spans > 0 ? t->spans[0].thread : 0, last = 0, of_step = 0;
    if (!json_is_array(step)) fail("no program of a step", path, 0);
    for (size_t k = 0; k < t->n_spans; k++) {
        const span *s = &t->spans[k];
        if (s->thread != rank || s->at == 0) continue;
        if (s->step == of_step && s->at <= last) fail("out of order", s->name, s->at);
        check_instruction(s, json_array_get(step, (size_t)s->at - 1));
        last = s->at;
        of_step = s->step;
    }
    if (last != (int64_t)json_array_size(step)) fail("the last instruction", path, last);
    json_decref(plan);
}

/* ---- all of it ---- */

static int64_t count_threads(const trace *t, bool of_queues)
{
    int64_t n = 0;
    for (size_t k = 0; k < t->n_spans; k++) {
        bool is_new = k == 0 || t->spans[k].thread != t->spans[k - 1].thread;
        n += is_new && (t->spans[k].thread % THREADS > 0) == of_queues;
    }
    return n;
}

int main(int argc, char **argv)
{
    trace t = {.root = NULL};
    double gap = 0.0;
    if (argc < 2 || argc > 4) fail("arguments", "TRACE [METRICS [PLAN]]", argc);
    read_trace(&t, argv[1]);
    check_spans(&t);
    check_samples(&t);
    size_t pairs = check_flights(&t);
    if (argc > 2) gap = check_sums(&t, argv[2]);
    if (argc > 3) check_plan(&t, argv[3]);
    printf("ranks %" PRId64 " steps %" PRId64 "-%" PRId64 " spans %zu flights %zu "
           "pairs %zu samples %zu queues %" PRId64 " gap %.4f\n",
           count_threads(&t, false), whole(t.head, "first_step"),
           whole(t.head, "last_step"), t.n_spans, t.n_flights, pairs, t.n_samples,
           count_threads(&t, true), gap);
    json_decref(t.root);
    free(t.spans);
    free(t.flights);
    free(t.samples);
    return 0;
}
