#include "data/pattern_known.h"

#include "base/fail.h"
#include "data/ascii.h"

typedef zero_ascii_class class;

/* The class of text[at]; the end of the text counts as white space. */
static class class_at(const unsigned char *text, size_t len, size_t at)
{
    return at < len ? zero_ascii_class_of(text[at]) : ZERO_ASCII_SPACE;
}

/* The end of the bytes of one class from `at` on. */
static size_t run_end(const unsigned char *text, size_t len, size_t at, class of)
{
    while (at < len && zero_ascii_class_of(text[at]) == of) at++;
    return at;
}

/* The end of such a run, which may go on with a character that is not ASCII: then 0. */
static size_t sure_end(const unsigned char *text, size_t len, size_t at, class of)
{
    const size_t end = run_end(text, len, at, of);
    return end < len && text[end] >= 128 ? 0 : end;
}

/* 's 't 'm 'd 're 've 'll after an apostrophe at `at`; 0: none of them. */
static size_t contraction_end(const unsigned char *text, size_t len, size_t at,
                              unsigned char fold)
{
    const unsigned char a = at + 1 < len ? text[at + 1] | fold : 0;
    const unsigned char b = at + 2 < len ? text[at + 2] | fold : 0;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return at + 2;
    const bool is_long =
        (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l');
    return is_long ? at + 3 : 0;
}

/* \s+(?!\S)|\s+ on the white space [at, end): all but the last before anything else. */
static size_t spaces_end(size_t len, size_t at, size_t end)
{
    return end == len || end - at == 1 ? end : end - 1;
}

static size_t gpt2_end(const unsigned char *text, size_t len, size_t at)
{
    if (text[at] == '\'') {
        const size_t end = contraction_end(text, len, at, 0);
        if (end > 0) return end;
    }
    const size_t first = at + (text[at] == ' ' && at + 1 < len);
    const class of = class_at(text, len, first);
    if (of == ZERO_ASCII_NOT) return 0;
    if (of != ZERO_ASCII_SPACE) return sure_end(text, len, first, of);
    const size_t end = sure_end(text, len, at, ZERO_ASCII_SPACE);
    return end == 0 ? 0 : spaces_end(len, at, end);
}

static bool is_line_end(unsigned char c)
{
    return c == '\r' || c == '\n';
}

static size_t line_ends(const unsigned char *text, size_t len, size_t at)
{
    while (at < len && is_line_end(text[at])) at++;
    return at;
}

/* The most digits of a number are 3 or 1. */
static size_t word_end(const unsigned char *text, size_t len, size_t at, size_t digits)
{
    const unsigned char c = text[at];
    const class here = class_at(text, len, at), next = class_at(text, len, at + 1);
    if (here == ZERO_ASCII_NOT) return 0;
    if (c == '\'' && next == ZERO_ASCII_LETTER) {
        const size_t end = contraction_end(text, len, at, 0x20);
        if (end > 0) return end;
    }
    if (here == ZERO_ASCII_LETTER) return sure_end(text, len, at, ZERO_ASCII_LETTER);
    if (here == ZERO_ASCII_DIGIT) {
        const size_t most = len - at < digits ? len : at + digits;
        const size_t end = run_end(text, most, at, ZERO_ASCII_DIGIT);
        return end < most && text[end] >= 128 ? 0 : end;
    }
    if (!is_line_end(c) && next == ZERO_ASCII_NOT) return 0;
    if (!is_line_end(c) && next == ZERO_ASCII_LETTER)
        return sure_end(text, len, at + 1, ZERO_ASCII_LETTER);
    const size_t first = at + (c == ' ');
    if (class_at(text, len, first) == ZERO_ASCII_OTHER) {
        const size_t end = sure_end(text, len, first, ZERO_ASCII_OTHER);
        return end == 0 ? 0 : line_ends(text, len, end);
    }
    /* \s*[\r\n]+|\s+(?!\S)|\s+ on white space. */
    const size_t end = sure_end(text, len, at, ZERO_ASCII_SPACE);
    for (size_t last = end; last > at; last--)
        if (is_line_end(text[last - 1])) return last;
    return end == 0 ? 0 : spaces_end(len, at, end);
}

static size_t llama3_end(const unsigned char *text, size_t len, size_t at)
{
    return word_end(text, len, at, 3);
}

static size_t qwen_end(const unsigned char *text, size_t len, size_t at)
{
    return word_end(text, len, at, 1);
}

zero_known_pattern *zero_known_pattern_find(const char *regex)
{
    if (zero_same_text(regex, ZERO_PATTERN_GPT2)) return gpt2_end;
    if (zero_same_text(regex, ZERO_PATTERN_QWEN)) return qwen_end;
    return zero_same_text(regex, ZERO_PATTERN_LLAMA3) ? llama3_end : NULL;
}
