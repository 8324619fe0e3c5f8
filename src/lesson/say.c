#include "lesson/say.h"

#include <stdlib.h>
#include <string.h>

#include "lesson/narrate.h"
#include "report/text.h"

/* ---- text ---- */

/* One line of a text, from column `indent` on. */
static void wrap(const char *line, size_t length, int indent, FILE *out)
{
    bool is_table = length > 2 && line[0] == ' ' && line[1] == ' ';
    const char *end = line + length;
    int column = fprintf(out, "%*s", indent, "");
    if (is_table && indent + (int)length <= ZERO_SAY_COLUMNS) {
        fprintf(out, "%.*s\n", (int)length, line);
        return;
    }
    if (is_table) column += fprintf(out, "  ");
    for (bool is_first = true; line < end; is_first = false) {
        while (line < end && *line == ' ') line++;
        int word = (int)strcspn(line, " \n");
        if (!is_first && column + 1 + word > ZERO_SAY_COLUMNS)
            column = fprintf(out, "\n%*s", indent + (is_table ? 6 : 0), "") - 1;
        else if (!is_first && line < end)
            column += fprintf(out, " ");
        column += fprintf(out, "%.*s", word, line);
        line += word;
    }
    fputc('\n', out);
}

void zero_say(const zero_speaker *s, int indent, const char *template)
{
    char text[ZERO_COURSE_TEXT];
    (void)zero_course_expand(s->lesson, s->question, s->world, template, text);
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        wrap(line, length, indent, s->out);
        line += length + (line[length] == '\n');
    }
}

void zero_say_screen(const zero_speaker *s)
{
    const zero_question *q = s->question;
    if (q->screen) zero_say(s, 0, q->screen);
    if (q->show) q->show(s->world, s->out);
    if (q->screen || q->show) fputc('\n', s->out);
    zero_say(s, 0, q->ask);
}

/* ---- a line of a plan ---- */

/* Runs of blanks become two, so that a line of 100 columns fits a terminal. */
static void squeeze(const char *line, size_t length, char to[ZERO_COURSE_WORDS])
{
    size_t n = 0, blanks = 0;
    for (size_t i = 0; i < length && n + 1 < ZERO_COURSE_WORDS; i++) {
        blanks = line[i] == ' ' ? blanks + 1 : 0;
        if (blanks <= 2 && !(n == 0 && blanks > 0)) to[n++] = line[i];
    }
    to[n] = '\0';
}

/* A line of a plan's text, as it is and squeezed. */
typedef struct {
    char raw[ZERO_COURSE_WORDS], line[ZERO_COURSE_WORDS];
} plan_line;

/* The first line with the text, the head of the table that it stands in, and what is taken off. */
typedef struct {
    plan_line row, head;
    char less[ZERO_COURSE_WORDS];
} found_line;

static void take_line(const char *text, size_t length, plan_line *line)
{
    snprintf(line->raw, sizeof line->raw, "%.*s", (int)length, text);
    squeeze(text, length, line->line);
}

/* Heads are not indented, but for that of programs. */
static bool is_head(const char *line, const char *squeezed)
{
    return line[0] != ' ' || strstr(squeezed, "bytes live");
}

static bool find_line(const char *text, const char *wanted, found_line *found)
{
    *found = (found_line){.less = ""};
    while (*text) {
        size_t length = strcspn(text, "\n");
        take_line(text, length, &found->row);
        text += length + (text[length] == '\n');
        if (strstr(found->row.line, wanted)) {
            bool is_row = found->row.raw[0] == ' ';
            if (!is_row) found->head = (plan_line){.raw = ""};
            if (!is_row) squeeze(text, strcspn(text, "\n"), found->less);
            if (strncmp(found->less, "- ", 2) != 0) found->less[0] = '\0';
            return true;
        }
        if (is_head(found->row.raw, found->row.line)) found->head = found->row;
    }
    return false;
}

#define CELLS 12

/* The cells of a squeezed line, and their lengths. */
static int split(const char *line, const char *cells[CELLS], int lengths[CELLS])
{
    int n = 0;
    while (*line && n < CELLS) {
        const char *end = strstr(line, "  ");
        cells[n] = line;
        lengths[n++] = end ? (int)(end - line) : (int)strlen(line);
        line = end ? end + 2 : "";
    }
    return *line ? CELLS + 1 : n;
}

/* Head and row with cells below each other; false if they do not match, or are too wide. */
static bool say_cells(const found_line *f, FILE *out)
{
    const char *above[CELLS], *below[CELLS];
    int wide[CELLS], room[CELLS], columns = 0;
    int n = split(f->head.line, above, wide);
    if (n > CELLS || n != split(f->row.line, below, room)) return false;
    for (int k = 0; k < n; k++) columns += 2 + (wide[k] > room[k] ? wide[k] : room[k]);
    if (columns > ZERO_SAY_COLUMNS) return false;
    for (int line = 0; line < 2; line++) {
        fprintf(out, "%*s", columns + 2 <= ZERO_SAY_COLUMNS ? 2 : 0, "");
        for (int k = 0; k < n; k++) {
            int column = wide[k] > room[k] ? wide[k] : room[k];
            int length = line == 0 ? wide[k] : room[k];
            const char *cell = line == 0 ? above[k] : below[k];
            int before = k == 0 ? 0 : column - length; /* names left, numbers right */
            fprintf(out, "  %*s%.*s%*s", before, "", length, cell,
                    k == 0 ? column - length : 0, "");
        }
        fputc('\n', out);
    }
    return true;
}

static void say_one(const char *line, FILE *out)
{
    if (strlen(line) + 4 <= ZERO_SAY_COLUMNS)
        fprintf(out, "    %s\n", line);
    else
        wrap(line, strlen(line), 4, out);
}

static void say_found(const found_line *f, FILE *out)
{
    bool has_columns = strstr(f->row.line, "  ") && strstr(f->head.line, "  ");
    bool is_program = has_columns && f->head.raw[0] == ' ' &&
                      strlen(f->head.raw) <= ZERO_SAY_COLUMNS &&
                      strlen(f->row.raw) <= ZERO_SAY_COLUMNS;
    if (is_program) {
        fprintf(out, "%s\n%s\n", f->head.raw, f->row.raw);
        return;
    }
    if (has_columns && say_cells(f, out)) return;
    if (has_columns) fprintf(out, "    %.76s\n", f->head.line);
    say_one(f->row.line, out);
    if (f->less[0]) say_one(f->less, out);
}

/* The words of the command, broken between options. */
static void say_command(const zero_speaker *s, const char *words)
{
    int column = fprintf(s->out, "  zero plan");
    while (*words) {
        const char *end = strstr(words, " --");
        int length = end ? (int)(end - words) : (int)strlen(words);
        if (column + 3 + length > ZERO_SAY_COLUMNS)
            column = fprintf(s->out, " \\\n     ") - 3;
        column += fprintf(s->out, " %.*s", length, words);
        words += length + (end ? 1 : 0);
    }
    fputc('\n', s->out);
}

static void say_line(const zero_speaker *s)
{
    const zero_question *q = s->question;
    char *text = NULL, wanted[ZERO_COURSE_TEXT];
    size_t size = 0;
    found_line found;
    (void)zero_course_expand(s->lesson, q, s->world, q->line, wanted);
    say_command(s, s->world->words[q->plan]);
    FILE *memory = open_memstream(&text, &size);
    if (!memory) return;
    zero_status st = s->world->planner->show(s->world->plans[q->plan], memory);
    bool is_shown = fclose(memory) == 0 && st == ZERO_OK;
    if (!is_shown) fprintf(s->out, "    (not shown: no memory for the plan's text)\n");
    if (is_shown && find_line(text, wanted, &found)) say_found(&found, s->out);
    free(text);
}

#define TOLD_LINES 9

/* The first lines of a narration: those of eight ranks would scroll the answer away. */
static void say_some(const char *text, FILE *out)
{
    fputc('\n', out);
    for (int n = 0; *text && n < TOLD_LINES; n++) {
        int length = (int)strcspn(text, "\n");
        fprintf(out, "%.*s\n", length, text);
        text += length + (text[length] == '\n');
    }
    if (*text) fputs("      ... (all of it: zero lesson N --no-questions)\n", out);
}

static zero_narrator narrator_of(const zero_lesson_machine *m)
{
    return (zero_narrator){zero_lesson_model(m), zero_lesson_corpus(m)->tokenizer};
}

/* The instruction in the words of the narrator. */
static void say_told(const zero_speaker *s)
{
    const zero_lesson_machine *m = s->world->machines[0].machine;
    zero_narrator n = narrator_of(m);
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory) return;
    zero_narrate_instruction(&n, zero_lesson_tale(m), s->question->told(s->world), memory);
    if (fclose(memory) == 0) say_some(text, s->out);
    free(text);
}

/* "bytes", "byte"; but "1 times as many" */
static int unit_length(const char *unit, double value)
{
    int n = (int)strlen(unit);
    bool is_plural = n > 1 && unit[n - 1] == 's' && strcmp(unit, "times") != 0;
    return value == 1.0 && is_plural ? n - 1 : n;
}

/* "4800 bytes (4.69 KiB)" */
static void say_value(const zero_question *q, double right, FILE *out)
{
    char value[32], bytes[ZERO_PLAN_TEXT];
    bool has_unit = q->kind != ZERO_ANSWER_WORD && q->unit[0];
    zero_course_answer(q, right, value);
    fputs(value, out);
    if (has_unit) fprintf(out, " %.*s", unit_length(q->unit, right), q->unit);
    if (!has_unit || strcmp(q->unit, "bytes") != 0 || right < 1024.0) return;
    zero_text_bytes(right, bytes);
    fprintf(out, " (%s)", bytes);
}

void zero_say_answer(const zero_speaker *s, const char *words)
{
    const zero_question *q = s->question;
    fprintf(s->out, "  %s ", words);
    say_value(q, q->answer(s->world), s->out);
    fputs(".\n", s->out);
    zero_say(s, 2, q->because);
    if (q->line) say_line(s);
    if (q->told) say_told(s);
}

void zero_say_step(const zero_speaker *s)
{
    const zero_lesson_machine *m = s->world->machines[0].machine;
    zero_narrator n = narrator_of(m);
    if (zero_narrate_check(n.model, zero_lesson_ranks(m)) == ZERO_OK)
        zero_narrate_step(&n, zero_lesson_tale(m), s->out);
    else
        fprintf(s->out, "The step is not told: %s\n", zero_last_error());
}
