#include "course/answer.h"

#include <ctype.h>
#include <strings.h>

#include "base/number.h"
#include "base/quantity.h"

/* ---- lines ---- */

#define LINE_MOST 1000000 /* bytes; /dev/zero has no end */

static bool is_blank(int c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Editors of Windows begin a file with the mark of UTF-8; in `cat *.txt` that is any
 * line. */
static size_t drop_mark(char *text, size_t n)
{
    static const char mark[] = "\xEF\xBB\xBF";
    if (n < 3 || memcmp(text, mark, 3) != 0) return n;
    size_t from = 3;
    while (is_blank(text[from])) from++;
    memmove(text, text + from, n - from + 1);
    return n - from;
}

bool zero_answer_read(FILE *in, zero_answer_line *line)
{
    size_t n = 0, bytes = 0;
    int c = getc(in);
    *line = (zero_answer_line){.is_whole = true};
    if (c == EOF) return false;
    for (; c != EOF && c != '\n' && bytes < LINE_MOST; c = getc(in), bytes++) {
        if (n == 0 && is_blank(c)) continue;
        line->is_whole &= c != '\0' && n + 1 < sizeof line->text;
        if (c != '\0' && n + 1 < sizeof line->text) line->text[n++] = (char)c;
    }
    n = drop_mark(line->text, n);
    while (n > 0 && is_blank(line->text[n - 1])) line->text[--n] = '\0';
    return true;
}

/* ---- numbers ---- */

/* A comma followed by three digits separates thousands; in a number that may have a
 * fraction, a single comma is a decimal point. Blanks and underscores go. */
static bool strip(const char *text, bool may_have_fraction, char to[ZERO_ANSWER_BYTES])
{
    const char *comma = strchr(text, ',');
    bool is_point =
        may_have_fraction && comma && !strchr(text, '.') && !strchr(comma + 1, ',');
    size_t n = 0;
    for (; *text; text++) {
        if (is_blank(*text) || *text == '_') continue;
        if (*text == ',' && !is_point && strspn(text + 1, "0123456789") != 3) return false;
        if (*text == ',' && !is_point) continue;
        to[n++] = (char)(*text == ',' ? '.' : *text);
    }
    to[n] = '\0';
    return n > 0;
}

static bool ends_in(char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    if (n <= k) return false;
    for (size_t i = 0; i < k; i++)
        if (tolower((unsigned char)text[n - k + i]) != end[i]) return false;
    text[n - k] = '\0';
    return true;
}

/* The question's own unit, as it prints it: "3instructions", "1digest", "0.9seconds". */
static bool drop_own(char *text, const char *unit)
{
    char singular[ZERO_ANSWER_BYTES];
    size_t n = strlen(unit);
    if (zero_same_text(unit, "s"))
        return ends_in(text, "seconds") || ends_in(text, "second") || ends_in(text, "sec");
    if (n < 2) return false;
    zero_print(singular, "%.*s", (int)n - (unit[n - 1] == 's'), unit);
    return ends_in(text, unit) || ends_in(text, singular);
}

/* "4800bytes", "1.375x", "37%": units that do not change the number, but for the per cent
 * where the question is not about per cent. */
static double drop_unit(char *text, const char *unit)
{
    static const char *const units[] = {"bytes", "byte", "elements", "element", "times",
                                        "ranks", "rank", "messages", "x"};
    size_t n = strlen(text);
    if (ends_in(text, "%") || ends_in(text, "percent"))
        return zero_same_text(unit, "percent") ? 1.0 : 0.01;
    if (n > 1 && isdigit((unsigned char)text[n - 2]) && ends_in(text, "b")) return 1.0;
    if (drop_own(text, unit)) return 1.0;
    for (int k = 0; k < ZERO_COUNT(units); k++)
        if (ends_in(text, units[k])) return 1.0;
    if ((text[0] == 'x' || text[0] == 'X') && text[1])
        memmove(text, text + 1, strlen(text));
    return 1.0;
}

/* "4.69kib", "5k", "4800b" as base/quantity.h writes them. */
static void mend_suffix(char *text)
{
    char *suffix = text + strcspn(text, "kKmMgGtTbB");
    size_t n = strlen(suffix);
    if (n == 0 || n > 3) return;
    *suffix = (char)toupper((unsigned char)*suffix);
    if (n == 2) suffix[1] = (char)toupper((unsigned char)suffix[1]);
    if (n == 3) suffix[1] = (char)tolower((unsigned char)suffix[1]);
    if (n == 3) suffix[2] = (char)toupper((unsigned char)suffix[2]);
}

/* Half a unit of the last digit, if there are two; "2.3" has 0.05. `n` characters are the
 * digits. */
static double slack_of(const char *text, size_t n)
{
    const char *point = memchr(text, '.', n);
    size_t zeros = strspn(text, "+-0."), after = point ? n - (size_t)(point - text) - 1 : 0;
    size_t digits = n > zeros ? n - zeros - (point && point >= text + zeros) : 0;
    return digits < 2 ? 0.0 : 0.5 * pow(10.0, -(double)after);
}

static bool parse_number(zero_answer_kind kind, const char *unit, const char *text,
                         zero_answer *answer)
{
    char bare[ZERO_ANSWER_BYTES], *slash;
    double factor = 1.0, below = 1.0;
    if (strlen(text) >= sizeof bare || !strip(text, kind != ZERO_ANSWER_WHOLE, bare))
        return false;
    size_t n = strspn(bare, "+-.0123456789");
    /* "11/8" and "2e3" have no last digit; a suffix is a factor of the unit, too. */
    bool has_last = !strchr(bare, '/') && !strchr("eE", bare[n] ? bare[n] : '0');
    double digits = strtod(bare, NULL), slack = has_last ? slack_of(bare, n) : 0.0;
    bool is_plain = bare[strspn(bare, "+-0123456789")] == '\0';
    if (kind != ZERO_ANSWER_SECONDS || !zero_quantity_seconds(bare, &answer->value)) {
        factor = drop_unit(bare, unit);
        is_plain |= factor == 1.0 && bare[strspn(bare, "+-0123456789")] == '\0';
        if ((slash = strchr(bare, '/'))) *slash = '\0';
        mend_suffix(bare);
        /* "1.5KiB": a rate may have the suffix of a whole number, and a fraction. */
        if (!zero_quantity_rate(bare, &answer->value)) return false;
        if (slash && (!zero_quantity_rate(slash + 1, &below) || below == 0.0)) return false;
        answer->value /= below;
        if (!isfinite(answer->value)) return false;
        answer->value *= factor;
        answer->is_rounded = !is_plain;
    } else {
        answer->is_rounded = true;
    }
    answer->slack = digits != 0.0 ? slack * fabs(answer->value / digits) : 0.0;
    return true;
}

/* ---- words ---- */

static bool is_word(const char *text, const char *word, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (tolower((unsigned char)text[i]) != tolower((unsigned char)word[i]))
            return false;
    return text[length] == '\0';
}

/* A word, or its first letter where no other word begins with it. */
static bool parse_word(const char *words, const char *text, zero_answer *answer)
{
    int found = 0, number = 0;
    if (strncasecmp(text, "a ", 2) == 0) text += 2 + strspn(text + 2, " "); /* "a third" */
    for (const char *word = words; *word; number++) {
        size_t length = strcspn(word, "|");
        if (is_word(text, word, length) || is_word(text, word, 1)) {
            answer->value = number;
            found++;
            if (is_word(text, word, length)) return true;
        }
        word += length + (word[length] == '|');
    }
    return found == 1;
}

bool zero_answer_parse(zero_answer_kind kind, const char *unit, const char *text,
                       zero_answer *answer)
{
    zero_answer read = {.value = 0.0};
    bool done = kind == ZERO_ANSWER_WORD ? parse_word(unit, text, &read)
                                         : parse_number(kind, unit, text, &read);
    if (done) *answer = read;
    return done;
}

/* ---- questions ---- */

static double number_of(const json_t *of, const char *key)
{
    const json_t *value = json_object_get(of, key);
    return value ? json_number_value(value) : NAN;
}

zero_answer_kind zero_question_kind(const json_t *question)
{
    static const char *const kinds[] = {"whole", "real", "fine", "seconds"};
    const char *kind = zero_said(question, "kind");
    int k = 0;
    while (k < ZERO_ANSWER_WORD && kind && !zero_same_text(kind, kinds[k])) k++;
    return (zero_answer_kind)k;
}

double zero_question_answer(const json_t *question)
{
    return number_of(question, "answer");
}

void zero_course_answer(const json_t *question, double value, char text[ZERO_ANSWER_BYTES])
{
    const char *word = zero_said(question, "unit");
    if (zero_question_kind(question) == ZERO_ANSWER_WORD) {
        for (int n = (int)value; n > 0 && strchr(word, '|'); n--)
            word = strchr(word, '|') + 1;
        snprintf(text, ZERO_ANSWER_BYTES, "%.*s", (int)strcspn(word, "|"), word);
    } else if (value == floor(value) && fabs(value) < 9e15) {
        snprintf(text, ZERO_ANSWER_BYTES, "%" PRId64, (int64_t)value);
    } else {
        snprintf(text, ZERO_ANSWER_BYTES, "%.6g", value);
    }
}

/* ---- grades ---- */

bool zero_grade_is(const json_t *question, double value, const zero_answer *answer)
{
    zero_answer_kind kind = zero_question_kind(question);
    const json_t *within = json_object_get(question, "within");
    bool is_exact =
        kind == ZERO_ANSWER_WORD ||
        (kind == ZERO_ANSWER_WHOLE && !answer->is_rounded && value == floor(value));
    if (is_exact) return answer->value == value;
    double tolerance = within                     ? json_number_value(within)
                       : kind == ZERO_ANSWER_FINE ? 5e-4
                                                  : 0.01;
    return fabs(answer->value - value) <= tolerance * fabs(value);
}

/* Whether the answer is this value rounded. Where four digits are asked for, fewer are not
 * enough, and whole numbers are rounded only if they look so. */
static bool is_rounded_from(const json_t *question, double value, const zero_answer *answer)
{
    zero_answer_kind kind = zero_question_kind(question);
    return kind != ZERO_ANSWER_FINE && (kind != ZERO_ANSWER_WHOLE || answer->is_rounded) &&
           fabs(answer->value - value) <= answer->slack * (1.0 + 1e-9);
}

typedef bool comparison(const json_t *question, double value, const zero_answer *answer);

static bool find_mistake(const json_t *question, comparison *is, const zero_answer *answer,
                         zero_graded *graded)
{
    int number = 0;
    for (int k = 0; k < 2; k++) {
        const json_t *list = json_object_get(question, k == 0 ? "mistakes" : "common");
        for (size_t i = 0; i < json_array_size(list); i++, number++) {
            const json_t *mistake = json_array_get(list, i);
            double value = number_of(mistake, "value");
            if (isnan(value) || !is(question, value, answer)) continue;
            *graded = (zero_graded){ZERO_GRADE_MISTAKE, zero_said(mistake, "why"), number};
            return true;
        }
    }
    return false;
}

zero_graded zero_grade_answer(const json_t *question, const zero_answer_line *line)
{
    static comparison *const comparisons[] = {zero_grade_is, is_rounded_from};
    zero_answer answer;
    zero_graded graded = {.grade = ZERO_GRADE_WRONG};
    if (line->text[0] == '\0' && line->is_whole)
        return (zero_graded){.grade = ZERO_GRADE_MISSING};
    if (!line->is_whole ||
        !zero_answer_parse(zero_question_kind(question), zero_said(question, "unit"),
                           line->text, &answer))
        return (zero_graded){.grade = ZERO_GRADE_UNREADABLE};
    for (int k = 0; k < 2; k++) {
        if (comparisons[k](question, zero_question_answer(question), &answer))
            return (zero_graded){.grade = ZERO_GRADE_RIGHT};
        if (find_mistake(question, comparisons[k], &answer, &graded)) break;
    }
    return graded;
}
