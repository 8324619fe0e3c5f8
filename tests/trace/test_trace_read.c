/* A trace from outside is read strictly: mistakes name the line, and a file that was cut off anywhere
 * is read up to there. */

#include "support/table.h"

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
#define FLIGHT(tid, sequence, ts) \
    ",\n{\"name\":\"g\",\"cat\":\"collective\",\"ph\":\"X\",\"pid\":0,\"tid\":" tid \
    ",\"ts\":" ts ",\"dur\":1,\"args\":{\"step\":1,\"sequence\":" sequence \
    ",\"first\":0,\"sent\":8}}"
#define MEMORY(args) \
    ",\n{\"name\":\"memory of rank " \
    "1\",\"ph\":\"C\",\"pid\":0,\"tid\":1000,\"ts\":1,\"args\":" args "}"
#define GOOD \
    HEAD ROW SPAN("1.5", "2", ",\"bytes\":7") WAIT("1.5", "0.001") \
        FLIGHT("1001", "4", "2") MEMORY("{\"gradients\":5}") "\n]\n"

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
    for (test_table table = table_open("trace/mistakes.txt"); table_next(&table);) {
        char text[4000];
        zero_traced t;
        const bool is_rest = *table.field[0] == '+';
        snprintf(text, sizeof text, "%s%s", is_rest ? HEAD : "", table.field[0] + is_rest);
        if (parse(&t, text, strlen(text)) != ZERO_ERR_FORMAT) fail_msg("taken: %s", text);
        assert_told(table.field[1]);
        assert_told("t.json");
    }
}

TEST(a_file_that_is_not_there_is_an_error)
{
    zero_traced t;
    assert_fails(zero_traced_read(&t, "no/such/t.json"), ZERO_ERR_IO, "no/such/t.json");
}
