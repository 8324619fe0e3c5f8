/* child.h - what a process says when it ends by a broken rule. */
#pragma once

#include <stdbool.h>

/* Runs body() in a child process whose environment has `variables` ("A=1 B=2"; NULL: none). Returns
 * whether it ended well; text[bytes] is the beginning of what it wrote to standard error. */
bool child_runs(void (*body)(void), const char *variables, char *text, int bytes);

/* Fails the test unless the child ends badly and says each of the texts, a NULL ends them. */
void assert_child_ends(void (*body)(void), const char *variables, ...);
/* Fails the test unless the child ends well: its own asserts hold. */
void assert_child_passes(void (*body)(void), const char *variables);

/* In a child: ends it, with the line, unless `truth`. */
#define child_assert(truth) child_check(truth, #truth, __FILE__, __LINE__)
void child_check(bool truth, const char *text, const char *file, int line);
