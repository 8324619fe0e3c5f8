/* The reader of machine files: what it takes, and that it refuses everything else with the line. */

#include "support/table.h"

#include "base/embedded.h"
#include "report/machine_file.h"

#define F    "f.machine"
#define MOST 4096

static const char whole[] = "# a machine\n"
                            "name             m\n"
                            "about            four devices\n"
                            "source           made up\n"
                            "date             2026-11-23\n"
                            "fit              nothing\n"
                            "\n"
                            "devices          4\n"
                            "memory           8G\n"
                            "memory-bandwidth 100G\n"
                            "peak             fp32 1T\n"
                            "peak             fp16 2T\n"
                            "efficiency       0.5 100\n"
                            "unaligned        8 0.25\n"
                            "inside           1e-6 10G\n"
                            "between          0 1.5G\n"
                            "host             20G\n";

/* Read from memory that ends with the text: a sanitizer sees one byte too many. */
static zero_status parse(const char *text, size_t len, zero_machine_file *machine)
{
    char *exact = malloc(len);
    assert_true(len == 0 || exact);
    if (len > 0) memcpy(exact, text, len);
    zero_status st = zero_machine_file_parse(F, exact, len, machine);
    free(exact);
    return st;
}

/* Refused with these words and the file, on one legible line, and nothing is written. */
static void refused(const char *text, size_t len, const char *words)
{
    zero_machine_file machine, before;
    memset(&machine, 0x5a, sizeof machine);
    before = machine;
    if (parse(text, len, &machine) != ZERO_ERR_INVALID) fail_msg("taken: %.80s", text);
    if (memcmp(&machine, &before, sizeof machine) != 0) fail_msg("written: %.80s", text);
    const char *said = zero_last_error();
    if (!strstr(said, words) || !strstr(said, F)) fail_msg("'%s' lacks '%s'", said, words);
    for (const char *c = said; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) fail_msg("control character: %s", said);
}

/* `whole` with the first `old` replaced. */
static void with(const char *old, const char *new, char text[MOST])
{
    const char *at = strstr(whole, old);
    assert_non_null(at);
    snprintf(text, MOST, "%.*s%s%s", (int)(at - whole), whole, new, at + strlen(old));
}

TEST(a_good_file_is_read_to_the_last_number)
{
    zero_machine_file m;
    assert_ok(parse(whole, strlen(whole), &m));
    assert_string_equal(m.name, "m");
    assert_string_equal(m.about, "four devices");
    assert_string_equal(m.source, "made up");
    assert_string_equal(m.date, "2026-11-23");
    assert_string_equal(m.fit, "nothing");
    assert_true(m.devices == 4.0 && m.memory == 8e9 && m.memory_bandwidth == 100e9);
    assert_true(m.peak[ZERO_FP32] == 1e12 && m.peak[ZERO_FP16] == 2e12);
    assert_true(m.peak[ZERO_BF16] == 0.0);
    assert_true(m.share == 0.5 && m.tokens == 100.0);
    assert_true(m.unaligned_every == 8.0 && m.unaligned_share == 0.25);
    assert_true(m.inside.latency == 1e-6 && m.inside.bandwidth == 10e9);
    assert_true(m.between.latency == 0.0 && m.between.bandwidth == 1.5e9);
    assert_true(m.host == 20e9);
}

TEST(order_blanks_and_a_missing_last_newline_do_not_matter)
{
    zero_machine_file a, b;
    char text[MOST];
    with("devices          4\n", "", text);
    snprintf(text + strlen(text), MOST - strlen(text), "  devices   4  ");
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    assert_ok(parse(whole, strlen(whole), &a));
    assert_ok(parse(text, strlen(text), &b));
    assert_memory_equal(&a, &b, sizeof a);
}

TEST(every_mistake_is_told_with_its_line)
{
    for (test_table t = table_open("report/mistakes.txt"); table_next(&t);) {
        char text[MOST];
        with(t.field[0], t.field[1], text);
        refused(text, strlen(text), t.field[2]);
    }
    refused("", 0, "is missing");
    refused("name \0", 6, "0x00");
}

TEST(long_lines_and_texts_are_refused)
{
    char text[MOST], long_text[400];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    with("four devices", long_text, text);
    refused(text, strlen(text), F ":3: expected a line of at most 199 characters");
    long_text[150] = '\0';
    with("four devices", long_text, text);
    refused(text, strlen(text), F ":3: about: expected a text of 1 to 119 characters");
}

TEST(without_any_peak_a_machine_is_incomplete)
{
    char text[MOST], *at;
    with("peak             fp32 1T\n", "", text);
    zero_machine_file m;
    assert_ok(parse(text, strlen(text), &m));
    assert_non_null(at = strstr(text, "peak"));
    memmove(at, strchr(at, '\n') + 1, strlen(strchr(at, '\n')));
    refused(text, strlen(text), "\"peak\" is missing");
}

/* ---- damage ---- */

/* A file cut before the end of its last line's key lacks at least that key. */
TEST(a_truncated_file_is_never_taken_for_a_whole_one)
{
    for (const zero_embedded *t = zero_machine_texts; t->name; t++) {
        size_t len = strlen(t->text), last = len - 1;
        while (last > 0 && t->text[last - 1] != '\n') last--;
        zero_machine_file m;
        assert_ok(parse(t->text, len, &m));
        for (size_t n = 0; n <= last; n++) refused(t->text, n, "");
    }
}

/* Every byte, replaced by others: taken or refused, with a reason on one legible line. */
TEST(any_changed_byte_is_taken_or_refused_in_words)
{
    static const char others[] = {'\0', '\n', ' ', '#',    '9',   '.',
                                  '-',  'e',  'T', '\x80', '\x1b'};
    char text[MOST];
    size_t len = strlen(whole);
    int taken = 0, tried = 0;
    for (size_t at = 0; at < len; at++)
        for (size_t k = 0; k < sizeof others; k++, tried++) {
            zero_machine_file m;
            memcpy(text, whole, len);
            text[at] = others[k];
            if (parse(text, len, &m) == ZERO_OK)
                taken++;
            else
                refused(text, len, "");
        }
    assert_true(taken > 0 && taken < tried);
}

/* ---- machines of the program ---- */

TEST(machines_of_the_program_have_their_files_names)
{
    int n = 0;
    for (; zero_machine_name_at(n); n++) {
        zero_machine_file m;
        assert_ok(zero_machine_file_find(zero_machine_name_at(n), &m));
        assert_string_equal(m.name, zero_machine_name_at(n));
        assert_non_null(strstr(m.date, "202"));
    }
    assert_true(n >= 3);
}

TEST(the_dgx2_has_the_papers_numbers)
{
    zero_machine_file m;
    assert_ok(zero_machine_file_find("v100-dgx2", &m));
    assert_true(m.devices == 16.0 && m.memory == 32e9 && m.peak[ZERO_FP16] == 125e12);
    assert_true(m.peak[ZERO_BF16] == 0.0);
    assert_true(m.inside.bandwidth == 150e9); /* 300 GB/s, half in each direction */
    assert_true(m.between.bandwidth < 8 * 12.5e9);
}

TEST(unknown_names_are_answered_with_all_names)
{
    zero_machine_file m;
    assert_int_equal(zero_machine_file_find("dgx\x1b[1m", &m), ZERO_ERR_INVALID);
    for (int i = 0; zero_machine_name_at(i); i++) assert_told(zero_machine_name_at(i));
    assert_null(strchr(zero_last_error(), '\x1b'));
}

TEST(a_path_is_read_and_a_bad_one_is_a_usage_error)
{
    char path[] = "/tmp/zero-test-XXXXXX.machine", text[MOST];
    int fd = mkstemps(path, 8);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    with("four", "five", text);
    assert_int_equal(fputs(text, file) < 0, 0);
    assert_int_equal(fclose(file), 0);
    zero_machine_file m;
    zero_status st = zero_machine_file_find(path, &m);
    remove(path);
    assert_ok(st);
    assert_string_equal(m.about, "five devices");
    assert_fails(zero_machine_file_find(path, &m), ZERO_ERR_INVALID, path);
    assert_int_equal(zero_machine_file_find("/tmp", &m), ZERO_ERR_INVALID);
}
