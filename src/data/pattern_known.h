/* pattern_known.h - the patterns of GPT-2, Llama-3 and Qwen, matched by loops where text is
 * ASCII.
 *
 * A match is the one that the regular expression finds; a general matcher takes five times
 * as long. These patterns match at every place of a text, and look at most one character
 * ahead. */
#pragma once

#include <stddef.h>

#define ZERO_PATTERN_GPT2 \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define ZERO_PATTERN_LLAMA3 ZERO_PATTERN_OF("\\p{N}{1,3}")
#define ZERO_PATTERN_QWEN   ZERO_PATTERN_OF("\\p{N}") /* Qwen2's and Qwen3's */
#define ZERO_PATTERN_OF(digits) \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

#define ZERO_PATTERN_DIGIT "\\p{N}" /* Digits is a pattern, too */

/* The end of the match that begins at text[at], at < len. 0: bytes that are not ASCII
 * decide. */
typedef size_t zero_known_pattern(const unsigned char *text, size_t len, size_t at);

/* The function of a regular expression; NULL if it is none of them. */
zero_known_pattern *zero_known_pattern_find(const char *regex);
