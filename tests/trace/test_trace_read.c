/* A trace from outside is read strictly: mistakes name the line, and a file that was cut off anywhere
 * is read up to there. */

#include "support/test.h"

#include "base/fail.h"
#include "trace/trace_read.h"

#define HEAD \
    "[\n{\"name\":\"zero_trace\",\"ph\":\"M\",\"pid\":0,\"args\":{\"format\":1," \
    "\"command\":\"zero train\",\"version\":\"1\",\"commit\":\"c\",\"ranks\":2," \
    "\"nodes\":1,\"simulated\":false,\"first_step\":1,\"last_step\":2," \
    "\"clock_uncertainty\":0.000001}},\n" \
    "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"args\":{\"name\":\"node 0\"}},\n" \
    "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":1000,\"args\":{\"name\":" \
    "\"rank " \
    "1\"}}"
#define SPAN(ts, dur, more) \
    ",\n{\"name\":\"LOAD\",\"cat\":\"other\",\"ph\":\"X\",\"pid\":0,\"tid\":1000," \
    "\"ts\":" ts ",\"dur\":" dur ",\"args\":{\"step\":1,\"at\":1,\"live\":5" more "}}"
#define WAIT(ts, dur) \
    ",\n{\"name\":\"waiting\",\"cat\":\"wait\",\"ph\":\"X\",\"pid\":0,\"tid\":1000," \
    "\"ts\":" ts ",\"dur\":" dur "}"
#define ROW \
    ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":1001,\"args\":{" \
    "\"name\":" \
    "\"rank 1 in flight\"}}"
#define FLIGHT(tid, sequence) FLIGHT_AT(tid, sequence, "2")
#define FLIGHT_AT(tid, sequence, ts) \
    ",\n{\"name\":\"g\",\"cat\":\"collective\",\"ph\":\"X\",\"pid\":0,\"tid\":" tid \
    ",\"ts\":" ts ",\"dur\":1,\"args\":{\"step\":1,\"sequence\":" sequence \
    ",\"first\":0,\"sent\":8}}"
#define MEMORY(args) \
    ",\n{\"name\":\"memory of rank " \
    "1\",\"ph\":\"C\",\"pid\":0,\"tid\":1000,\"ts\":1,\"args\":" args "}"
#define GOOD \
    HEAD ROW SPAN("1.5", "2", ",\"bytes\":7") WAIT("1.5", "0.001") FLIGHT("1001", "4") \
        MEMORY("{\"gradients\":5}") "\n]\n"

/* Parses memory that ends with the text, so that a sanitizer sees one byte too many. */
static zero_status parse(zero_traced *t, const char *text, size_t len)
{
    char *exact = malloc(len + 1);
    assert_non_null(exact);
    memcpy(exact, text, len);
    exact = realloc(exact, len > 0 ? len : 1);
    zero_status st = zero_traced_parse(t, "t.json", exact, len);
    free(exact);
    return st;
}

TEST(a_good_one_is_read)
{
    zero_traced t;
    assert_ok(parse(&t, GOOD, strlen(GOOD)));
    assert_false(t.is_cut);
    assert_int_equal(t.n_ranks, 1);
    assert_true(t.ranks[0].spans[0].waited == 1 && t.ranks[0].spans[0].begin == 1500);
    assert_true(t.ranks[0].n_flights == 1 && t.ranks[0].n_samples == 1);
    zero_traced_destroy(&t);
}

/* From the end of the first event on. */
TEST(a_file_cut_off_anywhere_is_read_up_to_there)
{
    const char *events[] = {"{\"name\":\"LOAD\"", "\"cat\":\"collective\"", "\"ph\":\"C\""};
    size_t whole = strlen(GOOD), first = (size_t)(strstr(GOOD, "}},\n{") - GOOD) + 2;
    for (size_t len = 0; len < whole; len++) {
        zero_traced t = {0};
        zero_status st = parse(&t, GOOD, len);
        assert_int_equal(st, len < first ? ZERO_ERR_FORMAT : ZERO_OK);
        if (st == ZERO_OK) assert_int_equal(t.is_cut, len < whole - 1);
        if (st == ZERO_OK && t.n_ranks == 1) {
            char *copy = strndup(GOOD, len);
            assert_non_null(copy);
            const char *end_of[3];
            for (int k = 0; k < 3; k++) {
                end_of[k] = strstr(copy, events[k]);
                if (end_of[k]) end_of[k] = strpbrk(end_of[k], "\n");
            }
            if (end_of[0]) assert_int_equal(t.ranks[0].n_spans, 1);
            assert_int_equal(t.ranks[0].n_flights > 0 || !end_of[1], 1);
            assert_int_equal(t.ranks[0].n_samples > 0 || !end_of[2], 1);
            free(copy);
        }
        zero_traced_destroy(&t);
    }
}

TEST(mistakes_name_the_line)
{
    static const char *const cases[][2] = {
        {"", "empty file"},
        {"{\"traceEvents\":[\n", "line 1: expected a line [, with which"},
        {"[\n]\n", "expected events, found none"},
        {"[\n{\"name\":\"x\",\"ph\":\"X\"}\n]\n", "line 2: expected the event zero_trace"},
        {"[\n5\n]\n", "line 2: expected an event, found 5"},
        {"[\nx\n]\n", "line 2"},
        {HEAD ",\n]\n", "line 5: expected an event after the comma"},
        {HEAD "\n{}\n]\n", "line 5: expected ] or a comma on the line before"},
        {HEAD ",\n\n", "line 5"},
        {HEAD "\n]\n]\n", "line 6: expected nothing after the ]"},
        {HEAD ",\n{\"name\":\"a\",\"ph\":\"Q\"}\n]\n", "expected M, X or C, found Q"},
        {HEAD ",\n{\"name\":\"a\",\"ph\":\"M\",\"pid\":0,\"args\":{}}\n]\n",
         "line 5: \"name\": expected zero_trace, process_name"},
        {HEAD SPAN("-1", "2", "") "\n]\n", "line 5: \"ts\": expected a time from 0"},
        {HEAD SPAN("1e300", "2", "") "\n]\n", "\"ts\": expected a time from 0"},
        {HEAD SPAN("\"1\"", "2", "") "\n]\n", "\"ts\": expected a finite number"},
        {HEAD SPAN("1", "2", ",\"colour\":1") "\n]\n", "\"colour\": no such key"},
        {HEAD SPAN("1", "2", ",\"bytes\":-1") "\n]\n",
         "\"bytes\": expected a whole number"},
        {HEAD SPAN("1", "2", "") SPAN("2", "2", "") "\n]\n",
         "line 6: rank 1: expected a span from 3000 ns on, where the one of line 5 ends"},
        {HEAD SPAN("1", "2", "") WAIT("1", "3") "\n]\n", "line 6: rank 1: expected a wait"},
        {HEAD SPAN("1", "2", "") WAIT("2", "1") "\n]\n", "line 6: rank 1: expected a wait"},
        {HEAD WAIT("2", "1") "\n]\n", "line 5: rank 1: expected a wait"},
        {HEAD ROW FLIGHT("1001", "4") FLIGHT_AT("1001", "5", "2.5") "\n]\n",
         "line 7: row 1 of rank 1: expected a collective from 3000 ns on"},
        {HEAD ROW FLIGHT("1001", "4") FLIGHT_AT("1001", "4", "3") "\n]\n",
         "line 7: rank 1: expected a step and sequence that no other collective has, found "
         "those of line 6"},
        {HEAD FLIGHT("1000", "4") "\n]\n",
         "line 5: expected a collective on a row of them"},
        {HEAD FLIGHT("1001", "-4") "\n]\n", "\"sequence\": expected a whole number"},
        {HEAD MEMORY("{\"gradient\":5}") "\n]\n", "\"gradient\": no such key"},
        {HEAD MEMORY("{\"gradients\":1.5}") "\n]\n",
         "\"gradients\": expected a whole number"},
        {HEAD MEMORY("{\"gradients\":1,\"gradients\":1}") "\n]\n", "line 5"},
        {HEAD ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":1000,\"args\":{"
              "\"name\":\"r\"}}\n]\n",
         "line 5: rank 1 gets a second name"},
        {HEAD ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":2000,\"args\":{"
              "\"name\":\"r\"}}\n]\n",
         "expected one of the ranks 0 to 1, found 2"},
        {HEAD
         ",\n{\"name\":\"L\",\"cat\":\"other\",\"ph\":\"X\",\"pid\":0,\"tid\":0,\"ts\":"
         "1,\"dur\":1,\"args\":{}}\n]\n",
         "expected the thread_name of rank 0 before this event"},
    };
    for (size_t k = 0; k < COUNT(cases); k++) {
        zero_traced t;
        assert_int_equal(parse(&t, cases[k][0], strlen(cases[k][0])), ZERO_ERR_FORMAT);
        if (!strstr(zero_last_error(), cases[k][1]) || !strstr(zero_last_error(), "t.json"))
            fail_msg("case %zu: expected '%s' in: %s", k, cases[k][1], zero_last_error());
    }
}

TEST(a_file_that_is_not_there_is_an_error)
{
    zero_traced t;
    assert_fails(zero_traced_read(&t, "no/such/t.json"), ZERO_ERR_IO, "no/such/t.json");
}
