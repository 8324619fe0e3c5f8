/* share.h - tests of thousands of cases run a share of them with sanitizers, with which each case
 * takes ten times as long. */
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEST_HAS_SANITIZERS
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define TEST_HAS_SANITIZERS
#endif

/* n with sanitizers, else 1: loops take every n-th case. */
#ifdef TEST_HAS_SANITIZERS
#define TEST_SHARE(n) (n)
#else
#define TEST_SHARE(n) 1
#endif
