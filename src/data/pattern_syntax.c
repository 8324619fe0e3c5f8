/* The accepted syntax of patterns:
 *
 *     letters, (...) (?:...) (?i:...) (?=...) (?!...) | [...] [^...]
 *     \s \S \d \r \n \t \p{L} \P{N} and other general categories, \ before punctuation
 *     ? * + *? +? ?? *+ ++ ?+ {n} {n,} {n,m}      groups: ? only
 *
 * White space is spelt out: PCRE2's \s has U+180E, which is not white space since Unicode
 * 6.3. */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/fail.h"
#include "base/number.h"
#include "data/pattern.h"

#define SPACES "\\p{Z}\\t-\\r\\x{85}"

enum { DEPTH = 32 };

typedef struct {
    const char *where, *regex, *at;
    char *out;
    bool in_class, after_set;  /* after_set: a range may not begin here */
    bool may_repeat, is_group; /* the item before this place */
    int depth;
    uint64_t caseless; /* a bit per open group */
} reader;

static zero_status refuse(const reader *r, const char *why)
{
    return zero_fail(ZERO_ERR_UNSUPPORTED,
                     "%s: the pre-tokenizer's pattern, at byte %d: %s", r->where,
                     (int)(r->at - r->regex), why);
}

static void put(reader *r, const char *text, size_t n)
{
    memcpy(r->out, text, n);
    r->out += n;
}

/* Copies n characters of the pattern. */
static void copy(reader *r, size_t n)
{
    put(r, r->at, n);
    r->at += n;
}

static void item(reader *r, bool is_group)
{
    r->may_repeat = true;
    r->is_group = is_group;
}

/* ---- escapes ---- */

/* General categories but C, which grows and shrinks with each Unicode version. */
static bool is_category(const char *name, size_t n)
{
    static const char *const known[] = {"L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn",
                                        "Mc", "Me", "N",  "Nd", "Nl", "No", "P", "Pc",
                                        "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S", "Sm",
                                        "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp"};
    for (int i = 0; i < ZERO_COUNT(known); i++)
        if (strlen(known[i]) == n && strncmp(known[i], name, n) == 0) return true;
    return false;
}

static zero_status read_escape(reader *r)
{
    unsigned char c = (unsigned char)r->at[1];
    if (c == 'p' || c == 'P') {
        const char *name = r->at + 3;
        const char *end = r->at[2] == '{' ? strchr(name, '}') : NULL;
        if (!end || !is_category(name, (size_t)(end - name)))
            return refuse(r, "expected a general category of Unicode, as in \\p{L}");
        /* Whether Lu matches small letters without case is not the same everywhere. */
        if (r->caseless && *name == 'L' && end == name + 2)
            return refuse(r, "letters of one case within (?i:...) are not supported");
        copy(r, (size_t)(end + 1 - r->at));
        r->after_set = true;
        return ZERO_OK;
    }
    r->after_set = c == 's' || c == 'S' || c == 'd';
    if (c == 'S' && r->in_class) return refuse(r, "\\S within [...] is not supported");
    if (c == 's' && r->in_class)
        put(r, SPACES, strlen(SPACES));
    else if (c == 's')
        put(r, "[" SPACES "]", strlen(SPACES) + 2);
    else if (c == 'S')
        put(r, "[^" SPACES "]", strlen(SPACES) + 3);
    else if (c == 'd')
        put(r, "\\p{Nd}", 6);
    else if (c == 'r' || c == 'n' || c == 't' || (c < 0x80 && ispunct(c)))
        put(r, r->at, 2);
    else
        return refuse(r, "this escape sequence is not supported");
    r->at += 2;
    return ZERO_OK;
}

/* ---- classes ---- */

/* ---- groups and repetition ---- */

static zero_status open_group(reader *r)
{
    static const char *const heads[] = {"(?:", "(?i:", "(?=", "(?!"};
    size_t n = r->at[1] == '?' ? 0 : 1;
    for (int i = 0; n == 0 && i < ZERO_COUNT(heads); i++)
        if (strncmp(r->at, heads[i], strlen(heads[i])) == 0) n = strlen(heads[i]);
    if (n == 0) return refuse(r, "expected (, (?:, (?i:, (?= or (?!");
    if (++r->depth > DEPTH) return refuse(r, "groups are nested too deep");
    if (n == 4) r->caseless |= UINT64_C(1) << r->depth;
    copy(r, n);
    r->may_repeat = false;
    return ZERO_OK;
}

/* "{2}", "{2,}", "{2,3}": the length of this text; 0 if it is something else. */
static size_t length_of_count(const char *at)
{
    size_t least = strspn(at + 1, "0123456789"), n = 1 + least;
    if (least == 0 || least > 3) return 0;
    if (at[n] == ',') n += 1 + strspn(at + n + 1, "0123456789");
    return at[n] == '}' && n <= 8 ? n + 1 : 0;
}

static zero_status read_repetition(reader *r)
{
    size_t n = *r->at == '{' ? length_of_count(r->at) : 1;
    if (n == 0) return refuse(r, "expected {n}, {n,} or {n,m}");
    if (!r->may_repeat) return refuse(r, "found nothing to repeat");
    if (r->is_group && *r->at != '?')
        return refuse(r, "a group that repeats is not supported");
    if (*r->at != '{' && (r->at[n] == '?' || r->at[n] == '+')) n++;
    copy(r, n);
    r->may_repeat = false;
    return ZERO_OK;
}

static zero_status read_item(reader *r)
{
    switch (*r->at) {
    case '(': return open_group(r);
    case ')': {
        if (r->depth == 0) return refuse(r, "found ) without (");
        r->caseless &= ~(UINT64_C(1) << r->depth--);
        copy(r, 1);
        item(r, true);
        return ZERO_OK;
    }
    case '[': {
        copy(r, r->at[1] == '^' ? 2 : 1);
        if (*r->at == ']') return refuse(r, "an empty [...] is not supported");
        r->in_class = true;
        r->after_set = false;
        for (; *r->at != ']';) {
            char c = *r->at;
            if (c == '\0') return refuse(r, "[...] has no end");
            if (c == '[') return refuse(r, "[ within [...] is not supported");
            if (c == '&' && r->at[1] == '&')
                return refuse(r, "&& in [...] is not supported");
            if (c == '-' && r->after_set && r->at[1] != ']')
                return refuse(r, "a range that begins with a class is not supported");
            r->after_set = false;
            if (c == '\\')
                ZERO_TRY(read_escape(r));
            else
                copy(r, 1);
        }
        copy(r, 1);
        r->in_class = false;
        item(r, false);
        return ZERO_OK;
    }
    case '?':
    case '*':
    case '+':
    case '{': return read_repetition(r);
    case '.':
    case '^':
    case '$':
    case ']':
    case '}': return refuse(r, "this character is not supported here; \\ before it is");
    case '|':
        r->may_repeat = false;
        copy(r, 1);
        return ZERO_OK;
    case '\\': ZERO_TRY(read_escape(r)); break;
    default: { /* a character of several bytes is one item */
        size_t n = 1;
        while (((unsigned char)r->at[n] & 0xc0) == 0x80) n++;
        copy(r, n);
    }
    }
    item(r, false);
    return ZERO_OK;
}

zero_status zero_pattern_translate(const char *where, const char *regex,
                                   char out[16 * ZERO_PATTERN_BYTES])
{
    reader r = {.where = where, .regex = regex, .at = regex, .out = out};
    if (strlen(regex) > ZERO_PATTERN_BYTES)
        return zero_fail(
            ZERO_ERR_UNSUPPORTED,
            "%s: the pre-tokenizer's pattern has %zu bytes: expected at most %d", where,
            strlen(regex), ZERO_PATTERN_BYTES);
    while (*r.at) ZERO_TRY(read_item(&r));
    if (r.depth > 0) return refuse(&r, "( has no end");
    *r.out = '\0';
    return ZERO_OK;
}
