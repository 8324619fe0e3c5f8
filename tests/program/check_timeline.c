/* check_timeline FILE: is this a trace that Chrome's viewer and Perfetto can draw?
 *
 * It knows the format, and nothing of the program that wrote it: one strict JSON array; processes
 * and threads have names; the spans of a thread do not overlap, but for waits, which lie within
 * one; no two collectives of a rank have the same step and sequence; counters are whole and not negative. Prints
 * for each rank and step
 *
 *     rank 3 step 2 spans 112 seconds 0.051234567 begin 0.000000000 end 0.051234567
 *
 * where `seconds` adds up the spans, then for each rank "rank 3 flights 24 sent 123456". */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

enum { THREADS = 1000 }; /* of a rank: itself and rows below it */

typedef struct {
    int64_t thread, step, begin, end; /* nanoseconds; step 0: a wait */
    size_t order;
    const char *name;
} span;

typedef struct {
    int64_t rank, sent;
} flight;

typedef struct {
    span *spans;
    flight *flights;
    size_t n_spans, n_flights;
    json_t *processes, *threads, *seen; /* by pid, tid; rank, step and sequence */
} trace;

static _Noreturn void fail(const char *what, const json_t *event)
{
    char *text = event ? json_dumps(event, JSON_ENCODE_ANY) : NULL;
    fprintf(stderr, "check_timeline: %s: %s\n", what, text ? text : "");
    exit(1);
}

static const char *text(const json_t *event, const char *key)
{
    const char *value = json_string_value(json_object_get(event, key));
    if (!value) fail(key, event);
    return value;
}

static int64_t whole(const json_t *event, const char *key)
{
    const json_t *value = json_object_get(event, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0) fail(key, event);
    return json_integer_value(value);
}

/* Microseconds in the file. */
static int64_t nano(const json_t *event, const char *key)
{
    const json_t *value = json_object_get(event, key);
    double time = json_number_value(value);
    if (!json_is_number(value) || !(time >= 0.0)) fail(key, event);
    return llround(1000.0 * time);
}

static const json_t *arguments(const json_t *event)
{
    const json_t *args = json_object_get(event, "args");
    if (!json_is_object(args)) fail("args", event);
    return args;
}

/* ---- events ---- */

static const char *key_of(int64_t number, char key[24])
{
    snprintf(key, 24, "%" PRId64, number);
    return key;
}

#define KEY(number) key_of((number), (char[24]){""})

static void need_names(const trace *t, const json_t *event)
{
    if (!json_object_get(t->processes, KEY(whole(event, "pid"))))
        fail("its process has no name before it", event);
    const json_t *pid = json_object_get(t->threads, KEY(whole(event, "tid")));
    if (!pid) fail("its thread has no name before it", event);
    if (json_integer_value(pid) != whole(event, "pid")) fail("another process's", event);
}

static void take_name(trace *t, const json_t *event)
{
    const char *name = text(event, "name");
    if (strcmp(name, "process_name") == 0) {
        if (json_object_get(t->processes, KEY(whole(event, "pid")))) fail("twice", event);
        text(arguments(event), "name");
        json_object_set_new(t->processes, KEY(whole(event, "pid")), json_true());
    } else if (strcmp(name, "thread_name") == 0) {
        if (json_object_get(t->threads, KEY(whole(event, "tid")))) fail("twice", event);
        text(arguments(event), "name");
        json_object_set_new(t->threads, KEY(whole(event, "tid")),
                            json_integer(whole(event, "pid")));
    }
}

static void take_flight(trace *t, const json_t *event)
{
    const json_t *args = arguments(event);
    int64_t rank = whole(event, "tid") / THREADS;
    char key[80];
    snprintf(key, sizeof key, "%" PRId64 ".%" PRId64 ".%" PRId64, rank, whole(args, "step"),
             whole(args, "sequence"));
    if (whole(event, "tid") % THREADS == 0) fail("a collective outside of rows", event);
    if (json_object_get(t->seen, key)) fail("a second one of its number", event);
    json_object_set_new(t->seen, key, json_true());
    t->flights[t->n_flights++] = (flight){rank, whole(args, "sent")};
}

static void take_span(trace *t, const json_t *event, size_t order)
{
    const char *category = text(event, "cat");
    bool waits = strcmp(category, "wait") == 0;
    int64_t begin = nano(event, "ts");
    need_names(t, event);
    if (strcmp(category, "collective") == 0) take_flight(t, event);
    t->spans[t->n_spans++] = (span){.thread = whole(event, "tid"),
                                    .step = waits ? 0 : whole(arguments(event), "step"),
                                    .begin = begin,
                                    .end = begin + nano(event, "dur"),
                                    .order = order,
                                    .name = text(event, "name")};
}

static void take_counter(const trace *t, const json_t *event)
{
    const char *key;
    json_t *value;
    need_names(t, event);
    nano(event, "ts");
    json_object_foreach((json_t *)arguments(event), key, value)
        whole(arguments(event), key);
}

static void take(trace *t, const json_t *event, size_t order)
{
    const char *phase = text(event, "ph");
    text(event, "name");
    whole(event, "pid");
    switch (strlen(phase) == 1 ? *phase : '\0') {
    case 'M': take_name(t, event); break;
    case 'X': take_span(t, event, order); break;
    case 'C': take_counter(t, event); break;
    default: fail("an unknown phase", event);
    }
}

/* ---- spans ---- */

static int compare(const void *left, const void *right)
{
    const span *a = left, *b = right;
    if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

/* A wait lies within the last span before it. */
static void check_order(const trace *t)
{
    const span *before = NULL;
    for (size_t i = 0; i < t->n_spans; i++) {
        const span *s = &t->spans[i];
        bool is_first = !before || before->thread != s->thread;
        bool fits = s->step == 0 ? !is_first && s->end <= before->end
                                 : is_first || s->begin >= before->end;
        if (!fits) {
            fprintf(stderr,
                    "check_timeline: thread %" PRId64 ": %s at %" PRId64
                    " ns overlaps %s\n",
                    s->thread, s->name, s->begin, before ? before->name : "nothing");
            exit(1);
        }
        if (s->step > 0) before = s;
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

static void print_flights(const trace *t)
{
    const char *tid;
    const json_t *pid;
    json_object_foreach(t->threads, tid, pid)
    {
        int64_t thread = strtoll(tid, NULL, 10), rank = thread / THREADS, n = 0, sent = 0;
        for (size_t i = 0; i < t->n_flights; i++) {
            n += t->flights[i].rank == rank;
            sent += t->flights[i].rank == rank ? t->flights[i].sent : 0;
        }
        if (thread % THREADS == 0)
            printf("rank %" PRId64 " flights %" PRId64 " sent %" PRId64 "\n", rank, n,
                   sent);
    }
}

int main(int argc, char **argv)
{
    json_error_t at;
    json_t *root = argc == 2 ? json_load_file(argv[1], JSON_REJECT_DUPLICATES, &at) : NULL;
    if (!root) {
        fprintf(stderr, "check_timeline: %s: %s\n", argc == 2 ? argv[1] : "usage",
                argc == 2 ? at.text : "check_timeline FILE");
        return 1;
    }
    size_t n = json_array_size(root);
    trace t = {calloc(n + 1, sizeof(span)),
               calloc(n + 1, sizeof(flight)),
               0,
               0,
               json_object(),
               json_object(),
               json_object()};
    if (!json_is_array(root) || n == 0 || !t.spans || !t.flights) fail("no array", NULL);
    for (size_t i = 0; i < n; i++) take(&t, json_array_get(root, i), i);
    qsort(t.spans, t.n_spans, sizeof *t.spans, compare);
    check_order(&t);
    print_steps(&t);
    print_flights(&t);
    json_decref(t.processes);
    json_decref(t.threads);
    json_decref(t.seen);
    json_decref(root);
    free(t.spans);
    free(t.flights);
    return 0;
}
