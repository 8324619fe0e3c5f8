/* A trace that is written and read again has every number and every name. */
#define TEST_HAS_MAIN
#include <unistd.h>

#include "support/test.h"

#include "base/fail.h"
#include "io/bytes.h"
#include "trace/trace_file.h"
#include "trace/trace_read.h"

static char place[] = "/tmp/zero_test_trace_XXXXXX"; /* also the current directory */

static const int nodes_of[] = {7, 7, 9};

static zero_trace_head head_of(const zero_layout *layout)
{
    return (zero_trace_head){.layout = layout,
                             .command = "zero train",
                             .version = "1.2.3",
                             .commit = "abc",
                             .run = 1795464467123456789,
                             .first_step = 2,
                             .last_step = 3,
                             .clock_uncertainty = 2.5e-5};
}

static zero_trace_file *begin(const char *path, const zero_trace_head *head)
{
    zero_trace_file *file;
    zero_whole_file begun;
    zero_lock lock;
    if (zero_trace_file_place(&begun, path, ZERO_WHOLE_FILE_ALONE, &lock) != ZERO_OK ||
        zero_trace_file_begin(&file, &begun, head) != ZERO_OK)
        fail_msg("%s", zero_last_error());
    return file;
}

static void end(zero_trace_file *file)
{
    assert_ok(zero_trace_file_end(file, ZERO_OK));
}

static void read_back(zero_traced *trace)
{
    assert_ok(zero_traced_read(trace, "t.json"));
}

static zero_trace_span span_of(int rank, int64_t step, const char *name, double from,
                               double to)
{
    return (zero_trace_span){.rank = rank,
                             .step = step,
                             .name = name,
                             .category = "compute",
                             .at = 5,
                             .group = -1,
                             .bytes = -1,
                             .live_bytes = 1000,
                             .begin = from,
                             .end = to};
}

/* All ranks of a step and a half, in an order that is not that of time. */
static void put_all(zero_trace_file *f)
{
    static const size_t classes[ZERO_CLASSES] = {
        [ZERO_CLASS_GRADIENTS] = 11, [ZERO_CLASS_DATA] = 13};
    static const size_t more[ZERO_CLASSES] = {[ZERO_CLASS_GRADIENTS] = 12};
    for (int rank = 2; rank >= 0; rank--) {
        zero_trace_file_rank(f, rank);
        zero_trace_span late = span_of(rank, 3, "LOAD", 1.25, 1.5);
        zero_trace_span early = span_of(rank, 2, "BACKWARD block 3", 1.0, 1.25);
        early.waited = 0.125;
        early.group = 4;
        early.bytes = 99;
        zero_trace_file_span(f, &late);
        zero_trace_file_span(f, &early);
        late.name = "copy";
        zero_trace_file_queue(f, rank, "device queue", &late);
        zero_trace_flight flight = {rank, 2, 17, 0, "all-gather block 3", 4096, 1.0, 1.5};
        zero_trace_file_flight(f, &flight);
        zero_trace_file_memory(f, rank, 1.0, classes);
        zero_trace_file_memory(f, rank, 1.125, classes); /* the same: nothing to draw */
        zero_trace_file_memory(f, rank, 1.25, more);
    }
}

static void check_spans(const zero_traced_rank *rank)
{
    const zero_traced_span *s = rank->spans;
    assert_int_equal(rank->n_spans, 2);
    assert_string_equal(s[0].name, "BACKWARD block 3");
    assert_true(s[0].begin == 1000000000 && s[0].end == 1250000000);
    assert_true(s[0].waited == 125000000 && s[0].step == 2 && s[0].at == 5);
    assert_true(s[0].group == 4 && s[0].bytes == 99 && s[0].live == 1000);
    assert_true(s[1].begin == s[0].end && s[1].step == 3 && s[1].waited == 0);
    assert_true(s[1].group == -1 && s[1].bytes == -1);
    assert_true(s[0].kind == ZERO_TRACED_COMPUTE);
}

static void check_rest(const zero_traced_rank *rank)
{
    const zero_traced_span *f = rank->flights;
    assert_int_equal(rank->n_flights, 1);
    assert_string_equal(f->name, "all-gather block 3");
    assert_true(f->begin == 1000000000 && f->end == 1500000000 && f->bytes == 4096);
    assert_true(f->step == 2 && f->sequence == 17 && f->first == 0);
    assert_int_equal(rank->n_samples, 2);
    assert_true(rank->samples[0].at == 1000000000 && rank->samples[1].at == 1250000000);
    assert_true(rank->samples[0].of_class[ZERO_CLASS_GRADIENTS] == 11);
    assert_true(rank->samples[0].of_class[ZERO_CLASS_DATA] == 13);
    assert_true(rank->samples[0].of_class[ZERO_CLASS_LOGITS] == 0);
    assert_int_equal(rank->n_rows, 1);
    assert_string_equal(rank->rows[0].name + strlen("rank 0 "), "device queue");
    assert_true(rank->n_queues == 1 && rank->queues->begin == 1250000000);
}

TEST(all_that_is_written_is_read)
{
    static const char *const hosts[] = {"one", "two"};
    zero_layout layout;
    zero_traced t;
    assert_ok(zero_layout_init(&layout, 3, nodes_of));
    zero_trace_head head = head_of(&layout);
    head.hosts = hosts;
    head.note = "the ring was full";
    zero_trace_file *f = begin("t.json", &head);
    put_all(f);
    assert_int_equal(access("t.json", F_OK), -1);
    end(f);
    read_back(&t);
    assert_false(t.is_cut || t.is_simulated);
    assert_string_equal(t.command, "zero train");
    assert_string_equal(t.version, "1.2.3");
    assert_string_equal(t.commit, "abc");
    assert_true(t.run == 1795464467123456789);
    assert_string_equal(t.note, "the ring was full");
    assert_string_equal(t.hosts[1], "node 1, two");
    assert_true(t.world == 3 && t.nodes == 2 && t.n_ranks == 3);
    assert_true(t.first_step == 2 && t.last_step == 3 && t.clock_uncertainty == 25000);
    assert_true(t.end == 1500000000);
    for (int rank = 0; rank < 3; rank++) {
        const zero_traced_rank *r = &t.ranks[rank];
        assert_true(r->rank == rank && r->node == layout.node_of[rank]);
        check_spans(r);
        check_rest(r);
    }
    zero_traced_destroy(&t);
    zero_layout_destroy(&layout);
    unlink("t.json");
}

/* Ends and begins are rounded alike, so that no span overlaps the next one. */
TEST(spans_that_touch_still_touch)
{
    zero_layout layout;
    zero_traced t;
    assert_ok(zero_layout_init_blocks(&layout, 1, 1));
    zero_trace_head head = head_of(&layout);
    zero_trace_file *f = begin("t.json", &head);
    zero_trace_file_rank(f, 0);
    double from = 0.0;
    for (int k = 0; k < 1000; k++) {
        double to = from + 1e-9 * (k % 7) / 3.0;
        zero_trace_span span = span_of(0, 2, "UPDATE", from, to);
        zero_trace_file_span(f, &span);
        from = to;
    }
    end(f);
    read_back(&t);
    assert_int_equal(t.ranks[0].n_spans, 1000);
    for (int k = 1; k < 1000; k++)
        assert_true(t.ranks[0].spans[k].begin == t.ranks[0].spans[k - 1].end);
    zero_traced_destroy(&t);
    zero_layout_destroy(&layout);
    unlink("t.json");
}

/* Flights of a rank, in any order. */
TEST(flights_of_a_row_do_not_overlap)
{
    zero_layout layout;
    zero_traced t;
    uint64_t random = 7;
    int most = 0;
    assert_ok(zero_layout_init_blocks(&layout, 1, 1));
    zero_trace_head head = head_of(&layout);
    zero_trace_file *f = begin("t.json", &head);
    zero_trace_file_rank(f, 0);
    for (int k = 0; k < 200; k++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        double from = (double)(random >> 40) * 1e-6, length = (double)(random >> 60) * 0.3;
        zero_trace_flight flight = {0, 2, k, 0, "all-gather", 1, from, from + length};
        zero_trace_file_flight(f, &flight);
    }
    end(f);
    read_back(&t); /* which checks it */
    assert_int_equal(t.ranks[0].n_flights, 200);
    for (int k = 0; k < 200; k++)
        if (t.ranks[0].flights[k].row > most) most = t.ranks[0].flights[k].row;
    assert_in_range(most, 2, 199);
    zero_traced_destroy(&t);
    zero_layout_destroy(&layout);
    unlink("t.json");
}

TEST(hostile_names_are_shown_and_change_nothing)
{
    static const char *const names[][2] = {
        {"\"},{\"ph\":\"M", "\"},{\"ph\":\"M"},
        {"back\\slash\\\"", "back\\slash\\\""},
        {"line\nbreak\t\x1b[31m\x7f", "line\\u{A}break\\u{9}\\u{1B}[31m\\u{7F}"},
        {"not \xff utf-8 \xc3", "not \\x{FF} utf-8 \\x{C3}"},
        {"turned \xe2\x80\xae around", "turned \\u{202E} around"},
        {"", ""},
        {"\xc3\xa9t\xc3\xa9", "\xc3\xa9t\xc3\xa9"},
    };
    enum { N = COUNT(names) };
    zero_layout layout;
    zero_traced t;
    assert_ok(zero_layout_init_blocks(&layout, 1, 1));
    for (int k = 0; k < N; k++) {
        const char *hosts[] = {names[k][0]};
        char host[200];
        zero_trace_head head = head_of(&layout);
        head.hosts = hosts;
        head.command = head.note = names[k][0];
        zero_trace_file *f = begin("t.json", &head);
        zero_trace_file_rank(f, 0);
        zero_trace_span span = span_of(0, 2, names[k][0], 0.0, 1.0);
        zero_trace_file_span(f, &span);
        zero_trace_file_queue(f, 0, names[k][0], &span);
        zero_trace_flight flight = {0, 2, 1, 0, names[k][0], 0, 0.0, 1.0};
        zero_trace_file_flight(f, &flight);
        end(f);
        read_back(&t);
        snprintf(host, sizeof host, "node 0, %s", names[k][1]);
        assert_string_equal(t.hosts[0], host);
        assert_string_equal(t.command, names[k][1]);
        assert_string_equal(t.note, names[k][1]);
        assert_string_equal(t.ranks[0].spans[0].name, names[k][1]);
        assert_string_equal(t.ranks[0].flights[0].name, names[k][1]);
        assert_int_equal(t.ranks[0].n_rows, 1);
        zero_traced_destroy(&t);
    }
    zero_layout_destroy(&layout);
    unlink("t.json");
}

TEST(a_long_name_is_cut)
{
    char name[5000];
    zero_layout layout;
    zero_traced t;
    memset(name, '"', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_ok(zero_layout_init_blocks(&layout, 1, 1));
    zero_trace_head head = head_of(&layout);
    zero_trace_file *f = begin("t.json", &head);
    zero_trace_file_rank(f, 0);
    for (int k = 0; k < 1000; k++) {
        zero_trace_span span = span_of(0, 2, name, k, k + 1);
        zero_trace_file_span(f, &span);
    }
    end(f);
    read_back(&t);
    assert_int_equal(strlen(t.ranks[0].spans[999].name), ZERO_TRACE_NAME);
    assert_int_equal(json_object_size(t.texts),
                     5); /* each once, the name of the spans too */
    zero_traced_destroy(&t);
    zero_layout_destroy(&layout);
    unlink("t.json");
}

TEST(a_failure_leaves_no_file)
{
    zero_whole_file begun;
    zero_lock lock;
    static const double never[] = {-1.0, 1.0 / 0.0, 0.0 / 0.0, 1e10};
    zero_layout layout;
    zero_trace_file *f;
    assert_ok(zero_layout_init_blocks(&layout, 1, 1));
    zero_trace_head head = head_of(&layout);
    f = begin("t.json", &head);
    assert_int_equal(zero_trace_file_end(f, ZERO_ERR_MPI), ZERO_ERR_MPI);
    for (size_t k = 0; k < COUNT(never); k++) {
        zero_trace_span span = span_of(0, 2, "LOAD", 0.0, never[k]);
        f = begin("t.json", &head);
        zero_trace_file_rank(f, 0);
        zero_trace_file_span(f, &span);
        assert_fails(zero_trace_file_end(f, ZERO_OK), ZERO_ERR_INVALID,
                     "cannot be in a trace");
    }
    f = begin("t.json", &head);
    zero_trace_file_fail(f, zero_fail(ZERO_ERR_IO, "a failure of the caller"));
    assert_int_equal(zero_trace_file_end(f, ZERO_OK), ZERO_ERR_IO);
    assert_int_equal(access("t.json", F_OK), -1);
    assert_fails(
        zero_trace_file_place(&begun, "no/such/t.json", ZERO_WHOLE_FILE_ALONE, &lock),
        ZERO_ERR_INVALID, "--trace no/such");
    zero_layout_destroy(&layout);
}

TEST(a_file_that_would_be_too_large_is_refused)
{
    zero_trace_counts few = {.spans = 1000, .flights = 100, .samples = 500};
    zero_trace_counts many = {.spans = 1000000};
    assert_ok(zero_trace_file_check(&few, "give less"));
    assert_fails(zero_trace_file_check(&many, "give less"), ZERO_ERR_INVALID,
                 "more than 64, with 1000000 instructions");
    assert_told("give less");
}

TEST(every_instruction_has_a_category)
{
    for (int op = 0; op < ZERO_OP_KINDS; op++) {
        const char *category = zero_trace_category((zero_op)op);
        assert_true(strcmp(category, "compute") == 0 ||
                    strcmp(category, "communication") == 0 ||
                    strcmp(category, "disk") == 0 || strcmp(category, "other") == 0);
    }
    for (int op = 0; op < ZERO_OP_KINDS; op++) {
        zero_work_kind kind = zero_ops[op].kind;
        const char *category = zero_trace_category((zero_op)op);
        bool moves = kind == ZERO_WORK_TRANSFER || kind == ZERO_WORK_TRANSFER_WAIT;
        assert_true((strcmp(category, "compute") == 0) == (kind == ZERO_WORK_COMPUTE));
        assert_true((strcmp(category, "disk") == 0) == moves);
    }
    assert_string_equal(zero_trace_category(ZERO_OP_REDUCE_WAIT), "communication");
    assert_string_equal(zero_trace_category(ZERO_OP_RESTORE), "disk");
    assert_string_equal(zero_trace_category(ZERO_OP_UPDATE), "other");
}

int main(void)
{
    if (!mkdtemp(place) || chdir(place) != 0) return 1;
    int failed = run_here(NULL, NULL);
    return rmdir(place) != 0 || failed;
}
