/* job_place.h - a directory for the scratch files of all tests of a file. */
#pragma once

#include "support/offload_test.h"

static inline void test_place_begin(int *argc, char ***argv)
{
    test_begin(argc, argv);
    test_place_open();
}

static inline int test_place_end(int failed)
{
    return test_end(failed + test_place_close());
}

__attribute__((constructor)) static void test_has_a_place(void)
{
    around.begin = test_place_begin;
    around.end = test_place_end;
}
