/* escape.h - the one way of texts from outside into the page: names of files, hosts,
 * commands.
 *
 * Characters that mean something to HTML or XML are written as references. Control
 * characters, invisible ones and those that change the direction of writing are shown by
 * number as in base/legible.h, \u{202E}, and bytes that are not UTF-8 as \x{9B}; so are
 * characters that XML forbids. The letters "http" are written with a reference for the
 * first: readers see the same text, and that the page refers to no network can be checked
 * by searching for them. */
#pragma once

#include <stdio.h>

void zero_escape(const char *text, FILE *out);
