/* version.h - the library's version, when compiling and when linking.
 *
 * The build reads it from here. Before 1.0.0 a new minor version may change the API; a
 * patch never does. */
#pragma once

#include "zero/api.h"

#define ZERO_VERSION_MAJOR 0
#define ZERO_VERSION_MINOR 1
#define ZERO_VERSION_PATCH 0

#define ZERO_VERSION_JOIN(major, minor, patch) #major "." #minor "." #patch
#define ZERO_VERSION_TEXT(major, minor, patch) ZERO_VERSION_JOIN(major, minor, patch)
/* MAJOR.MINOR.PATCH of these headers, as text. */
#define ZERO_VERSION_STRING \
    ZERO_VERSION_TEXT(ZERO_VERSION_MAJOR, ZERO_VERSION_MINOR, ZERO_VERSION_PATCH)

ZERO_API_BEGIN

/* The version of the library that the program is linked with, in the same form. */
const char *zero_version(void);

ZERO_API_END
