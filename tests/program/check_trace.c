/* check_trace TRACE [METRICS [PLAN]]: does the trace say what its run did?
 * check_trace drawn TRACE: can Chrome's viewer and Perfetto draw it?
 *
 * One JSON array without duplicate keys; processes and threads have names before events; spans
 * of a thread do not overlap, but for waits, which lie within one; flights are in rows below
 * their rank, no two of a rank with one step and sequence; counters are whole, not negative.
 * `drawn` asks for no more, and prints for each rank and step, then for each rank
 *
 *     rank 3 step 2 spans 112 seconds 0.051234567 begin 0.000000000 end 0.051234567
 *     rank 3 flights 24 sent 123456
 *
 * Of a run's trace spans of a rank adjoin within a step; bytes by class add up to the live
 * bytes of an instruction; a collective is in flight on all its ranks at once, which tests
 * clocks; spans add up to the METRICS' step_seconds within 1 %; instructions are those of the
 * PLAN, `zero plan --show-schedule --json --rank R` of the first rank. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#define THREADS 1000 /* of a rank: itself, then rows below it */

typedef struct {
    int64_t thread, begin, end, step, at, live, bytes; /* nanoseconds; step 0: a wait */
    size_t order;
    bool is_flight;
    const char *name;
} span;

typedef struct {
    int64_t rank, step, sequence, first, sent, begin, end;
    const char *name;
} flight;

typedef struct {
    int64_t rank, at, bytes;
} sample;

typedef struct {
    json_t *root, *head;
    json_t *processes, *threads, *seen; /* by pid, tid; rank, step and sequence */
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
    if (!value) fail(key, "is missing", 0);
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

/* Notes a key that nobody has noted before. */
static void note(json_t *list, const char *name, json_t *value, const char *format, ...)
{
    char key[80];
    va_list args;
    va_start(args, format);
    vsnprintf(key, sizeof key, format, args);
    va_end(args);
    if (json_object_get(list, key)) fail("a second one of its number", name, 0);
    json_object_set_new(list, key, value);
}

static void read_name(trace *t, const json_t *event)
{
    const char *name = text(event, "name");
    if (strcmp(name, "zero_trace") == 0) t->head = json_object_get(event, "args");
    if (strcmp(name, "process_name") != 0 && strcmp(name, "thread_name") != 0) return;
    text(member(event, "args"), "name");
    int64_t pid = whole(event, "pid");
    if (name[0] == 'p')
        note(t->processes, name, json_true(), "%" PRId64, pid);
    else
        note(t->threads, name, json_integer(pid), "%" PRId64, whole(event, "tid"));
}

static void need_names(const trace *t, const json_t *event)
{
    char pid[24], tid[24];
    snprintf(pid, sizeof pid, "%" PRId64, whole(event, "pid"));
    snprintf(tid, sizeof tid, "%" PRId64, whole(event, "tid"));
    const json_t *of_thread = json_object_get(t->threads, tid);
    if (!json_object_get(t->processes, pid) || !of_thread ||
        json_integer_value(of_thread) != whole(event, "pid"))
        fail("its process or thread has no name before it", text(event, "name"), 0);
}

static void read_flight(trace *t, const json_t *event)
{
    const json_t *args = member(event, "args"), *first = json_object_get(args, "first");
    int64_t begin = nano(event, "ts"), thread = whole(event, "tid"),
            step = whole(args, "step"), sequence = whole(args, "sequence");
    const char *name = text(event, "name");
    if (thread % THREADS == 0) fail("is in no row below its rank", name, begin);
    if (whole(args, "sent") < 0) fail("sends less than nothing", name, 0);
    note(t->seen, name, json_true(), "%" PRId64 ".%" PRId64 ".%" PRId64, thread / THREADS,
         step, sequence);
    t->flights[t->n_flights++] = (flight){.rank = thread / THREADS,
                                          .step = step,
                                          .sequence = sequence,
                                          .first = json_integer_value(first),
                                          .sent = whole(args, "sent"),
                                          .begin = begin,
                                          .end = begin + nano(event, "dur"),
                                          .name = name};
}

static void read_span(trace *t, const json_t *event, size_t order)
{
    const char *category = text(event, "cat");
    const bool waits = strcmp(category, "wait") == 0,
               is_flight = strcmp(category, "collective") == 0;
    const json_t *args = json_object_get(event, "args"),
                 *bytes = json_object_get(args, "bytes");
    int64_t begin = nano(event, "ts");
    need_names(t, event);
    if (is_flight) read_flight(t, event);
    t->spans[t->n_spans++] =
        (span){.thread = whole(event, "tid"),
               .begin = begin,
               .end = begin + nano(event, "dur"),
               .step = waits ? 0 : whole(args, "step"),
               .at = json_integer_value(json_object_get(args, "at")),
               .live = json_integer_value(json_object_get(args, "live")),
               .bytes = bytes ? json_integer_value(bytes) : -1,
               .order = order,
               .is_flight = is_flight,
               .name = text(event, "name")};
}

static void read_sample(trace *t, const json_t *event)
{
    const char *class;
    json_t *bytes;
    sample *s = &t->samples[t->n_samples++];
    need_names(t, event);
    *s = (sample){.rank = whole(event, "tid"), .at = nano(event, "ts")};
    json_object_foreach((json_t *)(uintptr_t)member(event, "args"), class, bytes)
    {
        if (!json_is_integer(bytes) || json_integer_value(bytes) < 0)
            fail("bytes of a class", class, s->at);
        s->bytes += json_integer_value(bytes);
    }
}

static void read_event(trace *t, const json_t *event, size_t order)
{
    const char *phase = text(event, "ph");
    text(event, "name");
    whole(event, "pid");
    switch (strlen(phase) == 1 ? *phase : '\0') {
    case 'M': read_name(t, event); break;
    case 'X': read_span(t, event, order); break;
    case 'C': read_sample(t, event); break;
    default: fail("an event of an unknown phase", phase, 0);
    }
}

static void read_trace(trace *t, const char *path)
{
    json_error_t at;
    json_t *event;
    size_t index, n;
    t->root = json_load_file(path, JSON_REJECT_DUPLICATES, &at);
    if (!json_is_array(t->root)) fail("not a JSON array", at.text, at.line);
    n = json_array_size(t->root);
    t->spans = calloc(n + 1, sizeof *t->spans);
    t->flights = calloc(n + 1, sizeof *t->flights);
    t->samples = calloc(n + 1, sizeof *t->samples);
    t->processes = json_object();
    t->threads = json_object();
    t->seen = json_object();
    json_array_foreach(t->root, index, event) read_event(t, event, index);
    if (n == 0) fail("no events", path, 0);
}

static int by_thread_and_begin(const void *a, const void *b)
{
    const span *x = a, *y = b;
    if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

/* A wait lies within the last span before it. */
static void check_spans(trace *t)
{
    const span *a = NULL;
    qsort(t->spans, t->n_spans, sizeof *t->spans, by_thread_and_begin);
    for (size_t k = 0; k < t->n_spans; k++) {
        const span *b = &t->spans[k];
        bool is_first = !a || a->thread != b->thread;
        if (b->step == 0 ? is_first || b->end > a->end : !is_first && b->begin < a->end)
            fail("overlaps the span before it", b->name, b->begin);
        if (b->step > 0) a = b;
    }
}

/* Drops waits and flights. */
static void check_steps(trace *t)
{
    size_t n = 0;
    for (size_t k = 0; k < t->n_spans; k++)
        if (t->spans[k].step > 0 && !t->spans[k].is_flight) t->spans[n++] = t->spans[k];
    t->n_spans = n;
    for (size_t k = 1; k < n; k++) {
        const span *a = &t->spans[k - 1], *b = &t->spans[k];
        if (a->thread != b->thread) continue;
        if (b->thread % THREADS == 0 && a->step == b->step && a->end != b->begin)
            fail("does not begin where the span before it ends", b->name, b->begin);
        if (a->step > b->step) fail("an earlier step comes later", b->name, b->step);
    }
}

static void print_steps(const trace *t)
{
    for (size_t i = 0, next; i < t->n_spans; i = next) {
        const span *first = &t->spans[i];
        int64_t sum = 0, n = 0, end = 0;
        for (next = i; next < t->n_spans && t->spans[next].thread == first->thread;
             next++) {
            const span *s = &t->spans[next];
            if (s->step > 0 && s->step != first->step) break;
            if (s->step == 0) continue;
            sum += s->end - s->begin;
            end = s->end;
            n++;
        }
        if (first->thread % THREADS == 0)
            printf("rank %" PRId64 " step %" PRId64 " spans %" PRId64
                   " seconds %.9f begin %.9f end %.9f\n",
                   first->thread / THREADS, first->step, n, 1e-9 * (double)sum,
                   1e-9 * (double)first->begin, 1e-9 * (double)end);
    }
}

static void print_drawn(const trace *t)
{
    const char *tid;
    const json_t *pid;
    print_steps(t);
    json_object_foreach(t->threads, tid, pid)
    {
        int64_t thread = strtoll(tid, NULL, 10), n = 0, sent = 0;
        for (size_t i = 0; i < t->n_flights; i++)
            if (t->flights[i].rank == thread / THREADS) n++, sent += t->flights[i].sent;
        if (thread % THREADS == 0)
            printf("rank %" PRId64 " flights %" PRId64 " sent %" PRId64 "\n",
                   thread / THREADS, n, sent);
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

/* Returns the largest difference in percent. */
static double check_sums(const trace *t, const char *path)
{
    double most = 0.0;
    for (int64_t step = whole(t->head, "first_step"); step <= whole(t->head, "last_step");
         step++) {
        double sum = 0.0, seconds = seconds_of(path, step);
        for (size_t k = 0; k < t->n_spans; k++)
            if (t->spans[k].thread == 0 && t->spans[k].step == step)
                sum += 1e-9 * (double)(t->spans[k].end - t->spans[k].begin);
        most = fmax(most, 100.0 * fabs(sum / seconds - 1.0));
        if (most > 1.0) fail("spans of rank 0 do not add up to step_seconds", path, step);
    }
    return most;
}

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

static int64_t count_threads(const trace *t, bool of_queues)
{
    int64_t n = 0;
    for (size_t k = 0; k < t->n_spans; k++) {
        bool is_new = k == 0 || t->spans[k].thread != t->spans[k - 1].thread;
        n += is_new && (t->spans[k].thread % THREADS > 0) == of_queues;
    }
    return n;
}

static void check_run(trace *t, const char *metrics, const char *plan)
{
    if (!t->head) fail("no event says what the trace is", "zero_trace", 0);
    check_steps(t);
    check_samples(t);
    size_t pairs = check_flights(t);
    double gap = metrics ? check_sums(t, metrics) : 0.0;
    if (plan) check_plan(t, plan);
    printf("ranks %" PRId64 " steps %" PRId64 "-%" PRId64 " spans %zu flights %zu "
           "pairs %zu samples %zu queues %" PRId64 " gap %.4f\n",
           count_threads(t, false), whole(t->head, "first_step"),
           whole(t->head, "last_step"), t->n_spans, t->n_flights, pairs, t->n_samples,
           count_threads(t, true), gap);
}

int main(int argc, char **argv)
{
    trace t = {.root = NULL};
    if (argc < 2 || argc > 4) fail("arguments", "TRACE [METRICS [PLAN]]", argc);
    bool drawn = strcmp(argv[1], "drawn") == 0;
    read_trace(&t, argv[drawn ? 2 : 1]);
    check_spans(&t);
    if (drawn)
        print_drawn(&t);
    else
        check_run(&t, argc > 2 ? argv[2] : NULL, argc > 3 ? argv[3] : NULL);
    json_decref(t.root);
    json_decref(t.processes);
    json_decref(t.threads);
    json_decref(t.seen);
    free(t.spans);
    free(t.flights);
    free(t.samples);
    return 0;
}
