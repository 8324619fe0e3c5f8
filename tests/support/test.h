/* test.h - what a test file begins with: CMocka, the headers that it wants, and TEST. */
#pragma once

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "zero/status.h"

#define TESTS_OF_A_FILE 80

static struct CMUnitTest tests_here[TESTS_OF_A_FILE] __attribute__((unused));
static size_t n_tests_here __attribute__((unused));

/* TEST(a_law) { ... }: a test of its file. They run in the order in which they stand. */
#define TEST(law) \
    static void law(void **state); \
    __attribute__((constructor)) static void law##_is_a_test(void) \
    { \
        assert_true(n_tests_here < TESTS_OF_A_FILE); \
        tests_here[n_tests_here++] = (struct CMUnitTest){#law, law, NULL, NULL, NULL}; \
    } \
    static void law(void **state __attribute__((unused)))

/* What the headers that a file includes, or its main(), want done around its tests. */
static struct {
    void (*begin)(int *argc, char ***argv);
    int (*end)(int failed);
    CMFixtureFunction set_up, tear_down; /* of all tests */
    CMFixtureFunction before, after;     /* of each */
    void *state; /* of each; then nothing is done before and after */
} around __attribute__((unused));

/* Runs the file's tests, between `set_up` and `tear_down` (NULL: none); with TEST_FILTER in the
 * environment those alone whose names fit it. Returns how many failed; a file without tests fails. */
static inline int run_here(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    cmocka_set_test_filter(getenv("TEST_FILTER"));
    for (size_t i = 0; i < n_tests_here; i++) {
        tests_here[i].setup_func = around.state ? NULL : around.before;
        tests_here[i].teardown_func = around.state ? NULL : around.after;
        tests_here[i].initial_state = around.state;
    }
    return n_tests_here > 0 ? _cmocka_run_group_tests("tests", tests_here, n_tests_here,
                                                      set_up, tear_down)
                            : 1;
}

/* zero_test() sets the first; a file with a main() of its own defines the other one. */
#if defined(TEST_MAIN) && !defined(TEST_HAS_MAIN)
int main(int argc, char **argv)
{
    if (around.begin) around.begin(&argc, &argv);
    int failed = run_here(around.set_up, around.tear_down);
    return around.end ? around.end(failed) : failed;
}
#endif

/* Arguments COUNT SEED of tests with random cases. */
typedef struct {
    int64_t count;
    uint64_t seed;
    bool is_given;
} test_rounds;

static inline test_rounds test_rounds_of(int argc, char **argv, int64_t count)
{
    if (argc != 3) return (test_rounds){count, 1, false};
    return (test_rounds){strtoll(argv[1], NULL, 10), strtoull(argv[2], NULL, 10), true};
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The last failure's message has this text. */
#define assert_told(text) test_told_at(text, __FILE__, __LINE__)
static inline void test_told_at(const char *text, const char *file, int line)
{
    if (strstr(zero_last_error(), text)) return;
    print_error("'%s' is not in '%s'\n", text, zero_last_error());
    _fail(file, line);
}

/* A call that fails, and says why. */
#define assert_fails(call, status, text) \
    do { \
        assert_int_equal(call, status); \
        assert_told(text); \
    } while (0)

#define assert_ok(call) test_ok_at(call, __FILE__, __LINE__)
static inline void test_ok_at(zero_status st, const char *file, int line)
{
    if (st == ZERO_OK) return;
    print_error("status %d: %s\n", (int)st, zero_last_error());
    _fail(file, line);
}
