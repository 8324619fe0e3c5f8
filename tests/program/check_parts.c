#include "check_parts.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void fail(const char *what, const char *line)
{
    fprintf(stderr, "check_metrics: %s: %s\n", what, line);
    exit(1);
}

double real(const json_t *object, const char *key, const char *line)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_real(value)) fail(key, line);
    return json_real_value(value);
}

json_int_t whole(const json_t *object, const char *key, const char *line)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value)) fail(key, line);
    return json_integer_value(value);
}

/* ---- the program ---- */

static json_int_t live_at(const json_t *instruction, size_t n_classes, const char *line)
{
    const json_t *live = json_object_get(instruction, "live");
    const char *op = json_string_value(json_object_get(instruction, "op"));
    const char *name = json_string_value(json_object_get(instruction, "name"));
    json_int_t sum = 0;
    if (!op || !name || strncmp(name, op, strlen(op)) != 0)
        fail("an instruction without a name", line);
    if (json_array_size(live) != n_classes) fail("not the bytes of all classes", line);
    for (size_t k = 0; k < n_classes; k++)
        sum += json_integer_value(json_array_get(live, k));
    return sum;
}

json_int_t check_schedule(const json_t *run, const char *line)
{
    const json_t *schedule = json_object_get(run, "schedule");
    const json_t *code = json_object_get(schedule, "instructions");
    size_t n = json_array_size(code),
           n_classes = json_array_size(json_object_get(schedule, "classes"));
    json_int_t most = 0, peak = 0;
    if (n_classes < 4 || n < 10) fail("no program", line);
    if (whole(schedule, "length", line) != (json_int_t)n ||
        json_object_get(schedule, "left_out"))
        fail("a short program is not complete", line);
    for (size_t at = 0; at < n; at++) {
        json_int_t live = live_at(json_array_get(code, at), n_classes, line);
        if (live > most) peak = (json_int_t)at + 1;
        if (live > most) most = live;
    }
    if (whole(schedule, "peak", line) != peak) fail("another peak", line);
    return most;
}

/* ---- from rank to rank ---- */

static json_int_t cell(const json_t *matrix, size_t from, size_t to)
{
    return json_integer_value(json_array_get(json_array_get(matrix, from), to));
}

static json_int_t ledger_sum(const json_t *final, const char *key)
{
    static const char *const ops[] = {"reduce", "all_reduce", "gather", "join", "collect"};
    const json_t *communication = json_object_get(final, "communication");
    json_int_t sum = 0;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        sum += json_integer_value(
            json_object_get(json_object_get(communication, ops[i]), key));
    return sum;
}

static void check_size(const json_t *matrix, size_t ranks, const char *line)
{
    if (json_array_size(matrix) != ranks) fail("not a row for each rank", line);
    for (size_t r = 0; r < ranks; r++)
        if (json_array_size(json_array_get(matrix, r)) != ranks)
            fail("not a column for each rank", line);
}

void check_peers(const json_t *final, long ranks, const char *line)
{
    const json_t *peers = json_object_get(final, "peers");
    const json_t *sent = json_object_get(peers, "sent");
    json_int_t row = 0, column = 0;
    check_size(sent, (size_t)ranks, line);
    if (!json_equal(sent, json_object_get(peers, "planned")))
        fail("other bytes from rank to rank than planned", line);
    if (json_array_size(json_object_get(peers, "node_of")) != (size_t)ranks)
        fail("not a node for each rank", line);
    for (size_t r = 0; r < (size_t)ranks; r++) {
        row += cell(sent, 0, r);
        column += cell(sent, r, 0);
        if (cell(sent, r, r) != 0) fail("a rank sends to itself", line);
    }
    if (row != ledger_sum(final, "bytes_sent") ||
        column != ledger_sum(final, "bytes_received"))
        fail("rank 0 sends to others what its ledger does not have", line);
}

void compare_peers(const json_t *planned, const json_t *before, const json_t *after)
{
    const json_t *matrix = json_object_get(planned, "bytes_sent");
    const json_t *first = json_object_get(json_object_get(before, "peers"), "sent");
    const json_t *then = json_object_get(json_object_get(after, "peers"), "sent");
    if (!planned) return;
    check_size(first, json_array_size(matrix), "peers");
    check_size(then, json_array_size(matrix), "peers");
    for (size_t from = 0; from < json_array_size(matrix); from++)
        for (size_t to = 0; to < json_array_size(matrix); to++)
            if (cell(then, from, to) - cell(first, from, to) != cell(matrix, from, to))
                fail("a step moves other bytes from rank to rank than the plan says",
                     "peers");
}

/* ---- seconds ---- */

static double of_rank(const json_t *seconds, const char *part, size_t rank)
{
    return json_real_value(
        json_array_get(json_object_get(json_object_get(seconds, part), "ranks"), rank));
}

static void check_bounds(const json_t *part, size_t ranks, const char *line)
{
    double least = real(part, "least", line), most = real(part, "most", line);
    double mean = real(part, "mean", line);
    const json_t *list = json_object_get(part, "ranks");
    if (json_array_size(list) != ranks) fail("not the seconds of each rank", line);
    bool has_least = false, has_most = false;
    for (size_t r = 0; r < ranks; r++) {
        double x = json_real_value(json_array_get(list, r));
        has_least = has_least || x == least;
        has_most = has_most || x == most;
        if (x < least || x > most) fail("seconds outside their bounds", line);
    }
    if (!has_least || !has_most || mean < least * 0.999999 || mean > most * 1.000001)
        fail("not the least, the mean and the most", line);
}

void check_rank_seconds(const json_t *final, long ranks, const char *line)
{
    static const char *const parts[] = {"compute", "exchange", "exposed", "waited",
                                        "transfers"};
    const json_t *seconds = json_object_get(final, "rank_seconds");
    const char *name;
    json_t *part;
    if (json_object_size(seconds) != 8) fail("not all parts of a rank's seconds", line);
    json_object_foreach((json_t *)seconds, name, part)
        check_bounds(part, (size_t)ranks, line);
    for (size_t r = 0; r < (size_t)ranks; r++) {
        double sum = 0.0, step = of_rank(seconds, "step", r);
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
            sum += of_rank(seconds, parts[i], r);
        if (fabs(sum - step) > 1e-6 * step + 1e-9)
            fail("parts do not add up to a step", line);
        if (of_rank(seconds, "compute", r) <= 0.0)
            fail("a rank that computes nothing", line);
        if (of_rank(seconds, "awaited", r) > of_rank(seconds, "in_flight", r))
            fail("waited longer than collectives took", line);
    }
}
