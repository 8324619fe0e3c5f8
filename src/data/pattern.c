#include "data/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <ctype.h>
#include <pcre2.h>

#include "base/number.h"
#include "base/utf8.h"

struct zero_pattern {
    pcre2_code *code;
    zero_known_pattern *known; /* NULL: not known */
    bool is_digits;
};

/* ---- the accepted syntax ----
 *
 *     letters, (...) (?:...) (?i:...) (?=...) (?!...) | [...] [^...]
 *     \s \S \d \r \n \t \p{L} \P{N} and other general categories, \ before punctuation
 *     ? * + *? +? ?? *+ ++ ?+ {n} {n,} {n,m}      groups: ? only
 *
 * White space is spelt out: PCRE2's \s has U+180E, which is not white space since Unicode
 * 6.3. */

#define PATTERN_BYTES 4096 /* of a regular expression, at most */
#define SPACES        "\\p{Z}\\t-\\r\\x{85}"

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

static void put(reader *r, const char *text)
{
    r->out = stpcpy(r->out, text);
}

/* Copies n characters of the pattern. */
static void copy(reader *r, size_t n)
{
    memcpy(r->out, r->at, n);
    r->out += n;
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
    static const char *const letters[] = {"Lultmo",   "Mnce",  "Ndlo",
                                          "Pcdseifo", "Smcko", "Zslp"};
    for (int i = 0; i < ZERO_COUNT(letters); i++)
        if (n > 0 && name[0] == letters[i][0])
            return n == 1 || (n == 2 && strchr(letters[i] + 1, name[1]));
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
        put(r, SPACES);
    else if (c == 's')
        put(r, "[" SPACES "]");
    else if (c == 'S')
        put(r, "[^" SPACES "]");
    else if (c == 'd')
        put(r, "\\p{Nd}");
    else if (c == 'r' || c == 'n' || c == 't' || (c < 0x80 && ispunct(c))) {
        copy(r, 2);
        return ZERO_OK;
    } else
        return refuse(r, "this escape sequence is not supported");
    r->at += 2;
    return ZERO_OK;
}

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

/* ---- compiling ---- */

static void destroy_at(zero_pattern **pattern)
{
    zero_pattern_destroy(*pattern);
}

zero_status zero_pattern_compile(const char *where, const char *regex,
                                 zero_pattern **pattern)
{
    ZERO_AT_END(destroy_at) zero_pattern *p = calloc(1, sizeof *p);
    ZERO_FREED char *translated = malloc((size_t)16 * PATTERN_BYTES);
    ZERO_TRY(zero_allocated(p && translated, "%s: no memory for a pattern", where));
    reader r = {.where = where, .regex = regex, .at = regex, .out = translated};
    ZERO_FAIL_IF(strlen(regex) > PATTERN_BYTES, ZERO_ERR_UNSUPPORTED,
                 "%s: the pre-tokenizer's pattern has %zu bytes: expected at most %d",
                 where, strlen(regex), PATTERN_BYTES);
    while (*r.at) ZERO_TRY(read_item(&r));
    if (r.depth > 0) return refuse(&r, "( has no end");
    *r.out = '\0';
    /* No repetition is made possessive, and nothing is compiled just in time: the limit
     * of matches would not count the steps of \s* then, and hostile text could hang a
     * run. */
    int error;
    PCRE2_SIZE at;
    uint32_t matches_empty = 0;
    p->code =
        pcre2_compile((PCRE2_SPTR)translated, PCRE2_ZERO_TERMINATED,
                      PCRE2_UTF | PCRE2_UCP | PCRE2_NO_AUTO_POSSESS, &error, &at, NULL);
    if (!p->code) {
        zero_status st = ZERO_ERR_UNSUPPORTED;
        unsigned char text[128] = "";
        pcre2_get_error_message(error, text, sizeof text);
        return zero_fail(st, "%s: the pre-tokenizer's pattern, at byte %zu: %s", where, at,
                         (const char *)text);
    }
    pcre2_pattern_info(p->code, PCRE2_INFO_MATCHEMPTY, &matches_empty);
    ZERO_FAIL_IF(
        matches_empty, ZERO_ERR_UNSUPPORTED,
        "%s: the pre-tokenizer's pattern matches the empty text, which makes no piece",
        where);
    p->known = zero_known_pattern_find(regex);
    p->is_digits = zero_same_text(regex, ZERO_PATTERN_DIGIT) ||
                   zero_same_text(regex, ZERO_PATTERN_DIGIT "+");
    ZERO_GIVE(pattern, p);
    return ZERO_OK;
}

void zero_pattern_destroy(zero_pattern *pattern)
{
    if (!pattern) return;
    pcre2_code_free(pattern->code);
    free(pattern);
}

bool zero_pattern_is_known(const zero_pattern *pattern)
{
    return pattern->known || pattern->is_digits;
}

/* ---- cutting ---- */

typedef struct {
    zero_pattern *const *patterns;
    int n;
    const unsigned char *text;   /* all of it, for messages */
    int64_t steps;               /* left for matches of many steps */
    pcre2_match_context *limits; /* NULL: PCRE2 has matched nothing yet */
    pcre2_match_data *match;
    zero_piece_visit visit;
    void *arg;
} splitter;

/* PCRE2 does not tell how many steps it took, so the limit grows until it is enough. */
static int match(splitter *s, const zero_pattern *p, const unsigned char *text, size_t len,
                 size_t from)
{
    for (int64_t limit = ZERO_PATTERN_FEW;; limit *= 8) {
        pcre2_set_match_limit(s->limits, (uint32_t)limit);
        int found =
            pcre2_match(p->code, text, len, from, PCRE2_NO_UTF_CHECK, s->match, s->limits);
        if (limit > ZERO_PATTERN_FEW) s->steps -= limit;
        if (found != PCRE2_ERROR_MATCHLIMIT || 8 * limit > s->steps) return found;
    }
}

/* Sets the first match from `from` on; without one *begin is len. Texts are valid UTF-8. */
static zero_status find(splitter *s, int k, const unsigned char *text, size_t len,
                        size_t from, size_t *begin, size_t *end)
{
    const zero_pattern *p = s->patterns[k];
    *begin = from;
    *end = p->known ? p->known(text, len, from) : 0;
    if (*end > 0) return ZERO_OK;
    *begin = *end = len;
    /* Only the place of a match is read, so one pair is enough for all patterns: with more,
     * PCRE2 returns 0, which is a match, too. */
    if (!s->match) s->limits = pcre2_match_context_create(NULL);
    if (!s->match && s->limits) s->match = pcre2_match_data_create(1, NULL);
    ZERO_FAIL_IF(!s->match, ZERO_ERR_NOMEM, "no memory to match a pattern");
    int found = match(s, p, text, len, from);
    if (found == PCRE2_ERROR_NOMATCH) return ZERO_OK;
    if (found < 0) {
        const unsigned char *at = text + from;
        unsigned char why[128] = "";
        pcre2_get_error_message(found, why, sizeof why);
        return zero_fail(ZERO_ERR_UNSUPPORTED,
                         "the tokenizer's pattern cannot cut the text at byte %zu: %s; it "
                         "is repetitive there: cut or remove that part",
                         (size_t)(at - s->text), (const char *)why);
    }
    *begin = pcre2_get_ovector_pointer(s->match)[0];
    *end = pcre2_get_ovector_pointer(s->match)[1];
    return ZERO_OK;
}

/* Cuts a piece of pattern k - 1 by pattern k and those after it. */
static zero_status split(splitter *s, int k, const unsigned char *text, size_t len)
{
    if (len == 0) return ZERO_OK;
    if (k == s->n) return s->visit(s->arg, text, len);
    for (size_t at = 0, begin, end; at < len; at = end) {
        ZERO_TRY(find(s, k, text, len, at, &begin, &end));
        ZERO_TRY(split(s, k + 1, text + at, begin - at));
        ZERO_TRY(split(s, k + 1, text + begin, end - begin));
    }
    return ZERO_OK;
}

static zero_status split_valid(splitter *s, const unsigned char *text, size_t len)
{
    for (size_t at = 0, end = 0; at < len; at = end) {
        for (size_t more = 1; end < len && more > 0; end += more)
            more = zero_utf8_length(text + end, len - end);
        ZERO_TRY(split(s, 0, text + at, end - at));
        if (end == len) break;
        ZERO_TRY(s->visit(s->arg, text + end, 1));
        end++;
    }
    return ZERO_OK;
}

zero_status zero_pattern_split(zero_pattern *const *patterns, int n,
                               const unsigned char *text, size_t len,
                               zero_piece_visit visit, void *arg)
{
    splitter s = {.patterns = patterns, .n = n, .text = text, .visit = visit, .arg = arg};
    s.steps =
        ZERO_PATTERN_MOST + ZERO_PATTERN_EACH * (int64_t)zero_min_size(len, INT32_MAX / 64);
    zero_status st = split_valid(&s, text, len);
    pcre2_match_data_free(s.match);
    pcre2_match_context_free(s.limits);
    return st;
}
