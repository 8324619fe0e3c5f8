/* within.h - an assertion that an integer lies in a range, both ends included. CMocka 2 deprecates
 * assert_in_range(), and what it has instead is not in CMocka 1. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define assert_within(value, least, most) \
    do { \
        long long value_ = (long long)(value); \
        long long least_ = (long long)(least), most_ = (long long)(most); \
        if (value_ < least_ || value_ > most_) \
            fail_msg("%s is %lld, expected %lld to %lld", #value, value_, least_, most_); \
    } while (0)
