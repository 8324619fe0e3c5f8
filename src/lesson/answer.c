#include "lesson/answer.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/quantity.h"

/* ---- lines ---- */

#define LINE_MOST 1000000 /* bytes; /dev/zero has no end */

static bool is_blank(int c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Editors of Windows begin a file with the mark of UTF-8; in `cat *.txt` that is any line. */
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

/* A comma followed by three digits separates thousands; in a number that may have a fraction, a
 * single comma is a decimal point. Blanks and underscores go. */
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
    if (strcmp(unit, "s") == 0)
        return ends_in(text, "seconds") || ends_in(text, "second") || ends_in(text, "sec");
    if (n < 2) return false;
    snprintf(singular, sizeof singular, "%.*s", (int)n - (unit[n - 1] == 's'), unit);
    return ends_in(text, unit) || ends_in(text, singular);
}

/* "4800bytes", "1.375x", "37%": units that do not change the number, but for the per cent where
 * the question is not about per cent. */
static double drop_unit(char *text, const char *unit)
{
    static const char *const units[] = {"bytes", "byte", "elements", "element", "times",
                                        "ranks", "rank", "messages", "x"};
    size_t n = strlen(text);
    if (ends_in(text, "%") || ends_in(text, "percent"))
        return strcmp(unit, "percent") == 0 ? 1.0 : 0.01;
    if (n > 1 && isdigit((unsigned char)text[n - 2]) && ends_in(text, "b")) return 1.0;
    if (drop_own(text, unit)) return 1.0;
    for (size_t k = 0; k < sizeof units / sizeof units[0]; k++)
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

/* "1.5KiB": a rate may have the suffix of a whole number, and a fraction. */
static bool read_number(char *text, double *value)
{
    char *slash = strchr(text, '/');
    if (slash) *slash = '\0';
    mend_suffix(text);
    if (!zero_quantity_rate(text, value)) return false;
    if (!slash) return true;
    double below;
    if (!zero_quantity_rate(slash + 1, &below) || below == 0.0) return false;
    *value /= below;
    return isfinite(*value);
}

static bool parse_number(zero_answer_kind kind, const char *unit, const char *text,
                         zero_answer *answer)
{
    char bare[ZERO_ANSWER_BYTES];
    if (strlen(text) >= sizeof bare || !strip(text, kind != ZERO_ANSWER_WHOLE, bare))
        return false;
    bool is_plain = bare[strspn(bare, "+-0123456789")] == '\0';
    if (kind == ZERO_ANSWER_SECONDS && zero_quantity_seconds(bare, &answer->value)) {
        answer->is_rounded = true;
        return true;
    }
    double factor = drop_unit(bare, unit);
    is_plain |= factor == 1.0 && bare[strspn(bare, "+-0123456789")] == '\0';
    if (!read_number(bare, &answer->value)) return false;
    answer->value *= factor;
    answer->is_rounded = !is_plain;
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

/* ---- grades ---- */

bool zero_grade_is_right(const zero_question *q, double right, const zero_answer *answer)
{
    bool is_exact =
        q->kind == ZERO_ANSWER_WORD ||
        (q->kind == ZERO_ANSWER_WHOLE && !answer->is_rounded && right == floor(right));
    if (is_exact) return answer->value == right;
    double tolerance = q->kind == ZERO_ANSWER_FINE ? 5e-4 : 0.01;
    return fabs(answer->value - right) <= tolerance * fabs(right);
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

/* Mistakes of units, which no question needs to list. */
static const char *find_unit_mistake(const zero_question *q, const zero_course_world *w,
                                     double right, double value)
{
    double n = (double)w->numbers->ranks;
    if (q->kind != ZERO_ANSWER_WHOLE || strcmp(q->unit, "bytes") != 0 || right == 0.0)
        return NULL;
    bool is_eightfold = is_near(value, 8.0 * right),
         is_quarter = is_near(4.0 * value, right);
    if (is_eightfold && n == 8.0)
        return "That is 8 times too much. Are these bits? Or is it for all ranks?";
    if (is_eightfold) return "That is 8 times too much. Are these bits, not bytes?";
    if (is_near(value, n * right))
        return "That is {N} times too much: one rank is asked for.";
    if (is_near(n * value, right))
        return "That is right divided by {N}. Is it divided by the ranks once too often?";
    if (is_quarter) return "That is a quarter of it. Are these numbers, not bytes?";
    if (is_near(2.0 * value, right)) return "That is half of it.";
    if (is_near(value, 2.0 * right)) return "That is twice as much.";
    return NULL;
}

static const char *find_mistake(const zero_question *q, const zero_course_world *w,
                                const zero_answer *answer, double right)
{
    for (int k = 0; k < ZERO_MISTAKES && q->mistakes[k].value; k++) {
        double value = q->mistakes[k].value(w);
        if (!isnan(value) && zero_grade_is_right(q, value, answer))
            return q->mistakes[k].why;
    }
    return find_unit_mistake(q, w, right, answer->value);
}

zero_graded zero_grade_answer(const zero_question *q, const zero_course_world *w,
                              const zero_answer_line *line)
{
    zero_answer answer;
    double right = q->answer(w);
    if (line->text[0] == '\0' && line->is_whole)
        return (zero_graded){ZERO_GRADE_MISSING, NULL};
    if (!line->is_whole || !zero_answer_parse(q->kind, q->unit, line->text, &answer))
        return (zero_graded){ZERO_GRADE_UNREADABLE, NULL};
    if (zero_grade_is_right(q, right, &answer))
        return (zero_graded){ZERO_GRADE_RIGHT, NULL};
    const char *why = find_mistake(q, w, &answer, right);
    return (zero_graded){why ? ZERO_GRADE_MISTAKE : ZERO_GRADE_WRONG, why};
}
