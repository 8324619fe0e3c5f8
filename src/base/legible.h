/* legible.h - texts that come from others (files, paths, networks), shown on one line.
 *
 * Names in manifests, JSON, tensors and directories could act on a terminal, forge a line,
 * or show their letters in another order than they have. So control characters (C0, DEL,
 * C1), invisible ones and those that change the direction of writing are shown as \u{202E},
 * and bytes that are not UTF-8 as \x{9B}. What was made legible once stays as it is. */
#pragma once

#include "base/fail.h"

/* True for characters that are shown by their number. */
bool zero_legible_hides(uint32_t character);

/* Shows text[len] in `size` > 0 bytes, with a zero at the end. Returns how many bytes of
 * the text are shown: less than len if it is cut, which it is between characters. */
size_t zero_legible(const char *text, size_t len, char *to, size_t size);

/* Prints the whole text. */
void zero_legible_print(const char *text, FILE *out);
/* Prints a text in JSON, which stays the same JSON: hidden characters become \u202E. */
void zero_legible_print_json(const char *json, FILE *out);

/* Takes the line of a terminal away, and lets output begin at its first column. */
#define ZERO_LINE_ERASED "\r\033[K"

/* An argument of printf(): the text, cut to about 1000 bytes. Valid in the enclosing
 * block. */
#define ZERO_SHOWN_BYTES 1024
#define ZERO_SHOWN(text) zero_shown((text), (char[ZERO_SHOWN_BYTES]){""})
const char *zero_shown(const char *text, char shown[ZERO_SHOWN_BYTES]);
