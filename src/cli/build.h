/* build.h - what the program was built from. The build writes build.c
 * (cmake/WriteCommit.cmake). */
#pragma once

/* The commit of its sources, with -dirty if they were changed since; "unknown" if they were
 * not a git repository of their own. */
const char *zero_build_commit(void);
