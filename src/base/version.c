#include "zero/version.h"

const char *zero_version(void)
{
    return ZERO_VERSION_STRING;
}
