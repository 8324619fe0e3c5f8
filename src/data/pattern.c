#include "data/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/grow.h"
#include "base/number.h"
#include "base/utf8.h"

struct zero_pattern {
    pcre2_code *code;
    zero_known_pattern *known; /* NULL: not known */
    bool is_digits;
};

/* ---- compiling ---- */

/* No repetition is made possessive, and nothing is compiled just in time: the limit of
 * matches would not count the steps of \s* then, and hostile text could hang a run. */
static zero_status compile(const char *where, const char *translated, zero_pattern *p)
{
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
    if (!matches_empty) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_UNSUPPORTED,
        "%s: the pre-tokenizer's pattern matches the empty text, which makes no piece",
        where);
}

static void destroy_at(zero_pattern **pattern)
{
    zero_pattern_destroy(*pattern);
}

zero_status zero_pattern_compile(const char *where, const char *regex,
                                 zero_pattern **pattern)
{
    ZERO_AT_END(destroy_at) zero_pattern *p = calloc(1, sizeof *p);
    ZERO_FREED char *translated = malloc((size_t)16 * ZERO_PATTERN_BYTES);
    ZERO_TRY(zero_allocated(p && translated, "%s: no memory for a pattern", where));
    ZERO_TRY(zero_pattern_translate(where, regex, translated));
    ZERO_TRY(compile(where, translated, p));
    p->known = zero_known_pattern_find(regex);
    p->is_digits = strcmp(regex, ZERO_PATTERN_DIGIT) == 0 ||
                   strcmp(regex, ZERO_PATTERN_DIGIT "+") == 0;
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
    if (!s->match) return zero_fail(ZERO_ERR_NOMEM, "no memory to match a pattern");
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
