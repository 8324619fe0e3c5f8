/* The list of backends, and of libraries for BLAS. */
#include "support/math_test.h"

#include "math/backends.h"
#include "math/blas.h"

static const zero_backend *const cpu = &zero_backend_cpu;

TEST(backends_are_found_by_name)
{
    const zero_backend *found = NULL;
    assert_ok(zero_backend_find("cpu", &found));
    assert_ptr_equal(found, cpu);
    assert_ok(zero_backend_find("naive", &found));
    assert_ptr_equal(found, &zero_backend_naive);
    assert_int_equal(zero_backend_find("tpu", &found), ZERO_ERR_INVALID);
    assert_ptr_equal(found, &zero_backend_naive);
    assert_told("'tpu'");
}

TEST(every_backend_is_listed_and_offered)
{
    const zero_backend *found = NULL;
    const char *name;
    int n = 0;
    assert_string_equal(zero_backend_name_at(0), "cpu");
    for (; (name = zero_backend_name_at(n)); n++) {
        assert_ok(zero_backend_find(name, &found));
        assert_string_equal(found->name, name);
    }
    assert_int_equal(n, 2);
    assert_int_equal(zero_backend_find("", &found), ZERO_ERR_INVALID);
    assert_non_null(
        strstr(zero_last_error(), "choose 'cpu' (fast) or 'naive' (plain loops"));
}

TEST(blas_tells_its_name_and_obeys)
{
    char name[64] = "";
    zero_blas_name(name, sizeof name);
    assert_true(strlen(name) >= 4);
    /* A library without a known name has no known call for threads. */
    int expected = strcmp(name, "BLAS") == 0 ? 0 : 1;
    assert_int_equal(zero_blas_set_threads(1), expected);
    print_message("%s\n", name);
}
