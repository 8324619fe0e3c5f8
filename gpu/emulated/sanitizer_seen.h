/* sanitizer_seen.h - whether the address sanitizer is on; for C and C++. */
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define ZERO_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ZERO_ADDRESS_SANITIZER 1
#endif
#endif
#ifndef ZERO_ADDRESS_SANITIZER
#define ZERO_ADDRESS_SANITIZER 0
#endif
