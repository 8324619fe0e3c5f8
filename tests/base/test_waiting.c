/* Calls on files that have not returned: how looks count them, and what they say. */
#include "support/test.h"

#include "base/waiting.h"

#include <errno.h>
#include <stdatomic.h>

#include <pthread.h>

static char text[256];

static double look(double passed)
{
    return zero_waiting_look(passed, 5.0, text, sizeof text);
}

TEST(a_call_is_late_once_looks_have_seen_it_for_the_limit)
{
    zero_waiting c;
    assert_true(look(100.0) == 0.0);
    zero_waiting_begin(&c, "run/m.json", "synced", 1.0);
    assert_true(look(100.0) == 0.0); /* it may have begun just before */
    assert_true(look(2.0) == 0.0);
    assert_true(look(2.5) == 0.0);
    assert_true(look(0.5) == 5.0);
    assert_string_equal(text, "run/m.json: cannot be synced");
    zero_waiting_end(&c);
    assert_true(look(100.0) == 0.0);
    zero_waiting_begin(&c, "run/m.json", "synced", 1.0); /* a new call counts anew */
    assert_true(look(4.0) == 0.0);
    assert_true(look(4.0) == 0.0);
    zero_waiting_end(&c);
}

TEST(a_patient_call_has_a_longer_limit)
{
    zero_waiting c;
    zero_waiting_begin(&c, "run/old", "removed", ZERO_FILE_PATIENCE);
    look(0.0);
    assert_true(look(5.0 * ZERO_FILE_PATIENCE - 1.0) == 0.0);
    assert_true(look(1.0) == 5.0 * ZERO_FILE_PATIENCE);
    zero_waiting_end(&c);
}

/* Calls of several threads end in any order. */
TEST(of_several_calls_the_oldest_late_one_is_named)
{
    zero_waiting c[4];
    static const char *const paths[] = {"a", "b\n", "c", "d"};
    for (int first = 0; first < 4; first++) {
        for (int i = 0; i < 4; i++) {
            zero_waiting_begin(&c[i], paths[i], "read", i == 3 ? 1e6 : 1.0);
            look(i > 0);
        }
        for (int k = 0; k < 4; k++) { /* ends them one by one, from `first` on */
            int oldest = 4;
            zero_waiting_end(&c[(first + k) % 4]);
            for (int i = 3; i >= 0; i--)
                if ((i - first + 4) % 4 > k) oldest = i;
            double late = look(10.0);
            assert_true((late > 0.0) == (oldest < 3));
            if (late > 0.0) assert_int_equal(text[0], paths[oldest][0]);
            if (late > 0.0 && oldest == 1)
                assert_string_equal(text, "b\\u{A}: cannot be read"); /* on one line */
        }
    }
}

TEST(errors_and_ages_are_left_alone)
{
    zero_waiting c, d;
    assert_true(zero_waiting_oldest() == 0.0);
    zero_waiting_begin(&c, "a", "read", 1.0);
    c.begun -= 100.0;
    zero_waiting_begin(&d, "b", "read", 1.0);
    assert_true(zero_waiting_oldest() >= 100.0);
    errno = EILSEQ;
    zero_waiting_end(&c);
    assert_int_equal(errno, EILSEQ);
    assert_true(zero_waiting_oldest() < 100.0);
    zero_waiting_end(&d);
    assert_true(zero_waiting_oldest() == 0.0);
}

static atomic_bool is_over;

static void *call_often(void *arg)
{
    (void)arg;
    while (!is_over) {
        zero_waiting outer, inner;
        zero_waiting_begin(&outer, "outer", "read", 1.0);
        zero_waiting_begin(&inner, "inner", "written", 1.0);
        zero_waiting_end(&inner);
        zero_waiting_end(&outer);
    }
    return NULL;
}

TEST(threads_call_while_another_one_looks)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, NULL), 0);
    for (int i = 0; i < 20000; i++) assert_true(look(1e-6) == 0.0);
    is_over = true;
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    assert_true(zero_waiting_oldest() == 0.0);
}
