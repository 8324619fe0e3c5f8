#include "course/hold.h"

#include "base/legible.h"
#include "course/narrate.h"
#include "facts/facts.h"

#define COLUMNS 78
#define LINE    256 /* bytes of a plan's line that are looked at */

/* ---- text ---- */

void zero_say(const char *text, int indent, FILE *out)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        bool is_table = length > 2 && strncmp(text, "  ", 2) == 0;
        if (is_table && indent + (int)length <= COLUMNS)
            fprintf(out, "%*s%.*s\n", indent, "", (int)length, text);
        else if (is_table)
            zero_wrap(text, length, fprintf(out, "%*s", indent + 2, ""), indent + 6,
                      COLUMNS, out);
        else {
            const char *next = text + length;
            for (; *next == '\n' && strncmp(next, "\n  ", 3) != 0;
                 length = (size_t)(next - text))
                next += 1 + strcspn(next + 1, "\n");
            fprintf(out, "%*s", indent, "");
            zero_wrap(text, length, indent, indent, COLUMNS, out);
        }
        text += length + (text[length] == '\n');
    }
}

void zero_say_screen(const json_t *question, FILE *out)
{
    const char *screen = zero_said(question, "screen");
    if (screen) zero_say(screen, 0, out);
    if (screen) fputc('\n', out);
    zero_say(zero_said(question, "ask"), 0, out);
}

/* ---- a line of a plan ---- */

/* Runs of blanks become two, so that a line of 100 columns fits a terminal. */
static void squeeze(const char *line, size_t length, char to[LINE])
{
    size_t n = 0, blanks = 0;
    for (size_t i = 0; i < length && n + 1 < LINE; i++) {
        blanks = line[i] == ' ' ? blanks + 1 : 0;
        if (blanks <= 2 && !(n == 0 && blanks > 0)) to[n++] = line[i];
    }
    to[n] = '\0';
}

/* A line of a plan's text, as it is and squeezed. */
typedef struct {
    char raw[LINE], line[LINE];
} plan_line;

/* The first line with the text, the head of the table that it stands in, and what is taken
 * off. */
typedef struct {
    plan_line row, head;
    char less[LINE];
} found_line;

static bool find_line(const char *text, const char *wanted, found_line *found)
{
    *found = (found_line){.less = ""};
    while (*text) {
        size_t length = strcspn(text, "\n");
        plan_line *row = &found->row;
        zero_print(row->raw, "%.*s", (int)length, text);
        squeeze(text, length, row->line);
        text += length + (text[length] == '\n');
        bool is_row = row->raw[0] == ' ';
        if (strstr(row->line, wanted)) {
            if (!is_row) found->head = (plan_line){.raw = ""};
            if (!is_row) squeeze(text, strcspn(text, "\n"), found->less);
            if (strncmp(found->less, "- ", 2) != 0) found->less[0] = '\0';
            return true;
        }
        /* Heads are not indented, but for that of programs. */
        if (!is_row || strstr(row->line, "bytes live")) found->head = *row;
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
    const char *cells[2][CELLS];
    int lengths[2][CELLS], columns = 0, n = split(f->head.line, cells[0], lengths[0]);
    if (n > CELLS || n != split(f->row.line, cells[1], lengths[1])) return false;
    int wide[CELLS];
    for (int k = 0; k < n; k++) {
        wide[k] = lengths[0][k] > lengths[1][k] ? lengths[0][k] : lengths[1][k];
        columns += 2 + wide[k];
    }
    if (columns > COLUMNS) return false;
    for (int line = 0; line < 2; line++) {
        fprintf(out, "%*s", columns + 2 <= COLUMNS ? 2 : 0, "");
        for (int k = 0; k < n; k++) /* names left, numbers right */
            fprintf(out, "  %*.*s", k == 0 ? -wide[k] : wide[k], lengths[line][k],
                    cells[line][k]);
        fputc('\n', out);
    }
    return true;
}

static void say_found(const found_line *f, FILE *out)
{
    const char *lines[] = {f->row.line, f->less};
    bool has_columns = strstr(f->row.line, "  ") && strstr(f->head.line, "  ");
    bool is_program = has_columns && f->head.raw[0] == ' ' &&
                      strlen(f->head.raw) <= COLUMNS && strlen(f->row.raw) <= COLUMNS;
    if (is_program) {
        fprintf(out, "%s\n%s\n", f->head.raw, f->row.raw);
        return;
    }
    if (has_columns && say_cells(f, out)) return;
    if (has_columns) fprintf(out, "    %.76s\n", f->head.line);
    for (int k = 0; k < 2 && lines[k][0]; k++) {
        fprintf(out, "    ");
        if (strlen(lines[k]) + 4 <= COLUMNS)
            fprintf(out, "%s\n", lines[k]);
        else
            zero_wrap(lines[k], strlen(lines[k]), 4, 4, COLUMNS, out);
    }
}

bool zero_plan_line(const json_t *shows, FILE *out)
{
    found_line found;
    if (!find_line(zero_said(shows, "text"), zero_said(shows, "line"), &found))
        return false;
    if (out) say_found(&found, out);
    return true;
}

/* The words of a command, broken between options. */
static void say_command(const char *program, const char *words, size_t n, FILE *out)
{
    const char *end = words + n;
    int column = fprintf(out, "  %s", program);
    while (words < end) {
        const char *next = strstr(words, " --");
        int length = (int)((next && next < end ? next : end) - words);
        if (column + 3 + length > COLUMNS) column = fprintf(out, " \\\n     ") - 3;
        column += fprintf(out, " %.*s", length, words);
        words += length + (words + length < end);
    }
    fputc('\n', out);
}

#define TOLD_LINES 9

/* The instruction in the words of the narrator: its first lines, since those of eight
 * ranks would scroll the answer away. */
static zero_status say_told(const json_t *instruction, FILE *out)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory) return ZERO_OK;
    zero_status st = zero_narrate_instruction(instruction, memory);
    fclose(memory);
    fputc('\n', out);
    const char *line = text;
    for (int n = 0; *line && n < TOLD_LINES; n++) {
        int length = (int)strcspn(line, "\n");
        fprintf(out, "%.*s\n", length, line);
        line += length + (line[length] == '\n');
    }
    if (*line) fputs("      ... (all of it: zero lesson N --no-questions)\n", out);
    free(text);
    return st;
}

/* ---- questions ---- */

/* A lesson in progress. */
typedef struct {
    const zero_course_options *options;
    const json_t *lesson;
    FILE *out;
    int number;
    zero_course_tally tally;
} hour;

/* The right answer, "4800 bytes (4.69 KiB)", after words such as "The answer is"; why;
 * what shows it. */
static zero_status say_answer(const hour *h, const json_t *q, const char *words)
{
    char value[ZERO_ANSWER_BYTES], bytes[40];
    double right = zero_question_answer(q);
    const char *unit = zero_said(q, "unit"), *command = zero_said(q, "command");
    const json_t *shows = json_object_get(q, "shows"), *tells = json_object_get(q, "tells");
    size_t length = strlen(unit);
    bool has_unit = zero_question_kind(q) != ZERO_ANSWER_WORD && unit[0];
    /* "1 byte"; but "1 times as many" */
    bool is_singular = right == 1.0 && length > 1 && unit[length - 1] == 's' &&
                       !zero_same_text(unit, "times");
    zero_course_answer(q, right, value);
    fprintf(h->out, "  %s %s", words, value);
    if (has_unit) fprintf(h->out, " %.*s", (int)length - is_singular, unit);
    if (has_unit && zero_same_text(unit, "bytes") && right >= 1024.0) {
        zero_unit_write(&(zero_fact){.kind = ZERO_FACT_NUMBER, .number = right}, "bytes",
                        bytes, sizeof bytes);
        fprintf(h->out, " (%s)", bytes);
    }
    fputs(".\n", h->out);
    zero_say(zero_said(q, "because"), 2, h->out);
    if (shows) {
        const char *plan = zero_said(shows, "words");
        say_command("zero plan", plan, strlen(plan), h->out);
        (void)zero_plan_line(shows, h->out);
    }
    while (command && *command) {
        size_t n = strcspn(command, "\n"), word = strcspn(command, " \n");
        char program[20];
        zero_print(program, "%.*s", (int)word, command);
        if (word < n) say_command(program, command + word + 1, n - word - 1, h->out);
        command += n + (command[n] == '\n');
    }
    if (!tells) return ZERO_OK;
    const json_t *step = zero_fact_at(h->lesson, "facts/run/step");
    return say_told(json_array_get(step, (size_t)json_number_value(tells)), h->out);
}

static bool is_command(const zero_answer_line *line, const char *a, const char *b)
{
    return zero_same_text(line->text, a) || zero_same_text(line->text, b);
}

/* Asks question k up to as many times as the options say. *goes_on: more can be asked. */
static zero_status ask(hour *h, int k, const json_t *q, bool *goes_on)
{
    const zero_course_options *o = h->options;
    const char *words = "The answer is", *unit = zero_said(q, "unit");
    zero_answer_line line = {.is_whole = true}, last = line;
    int tries = o->tries, choices = 0;
    for (const char *c = unit; *c; c++) choices += *c == '|';
    /* After n - 1 wrong ones of n words the answer is plain. */
    if (zero_question_kind(q) == ZERO_ANSWER_WORD && choices < tries) tries = choices;
    *goes_on = false;
    for (int try = 0; try < tries;) {
        fprintf(h->out, "%d.%d %s%s%s= ", h->number, k + 1, unit[0] ? "(" : "", unit,
                unit[0] ? ") " : "");
        fflush(h->out);
        if (!zero_answer_read(o->in, &line)) return ZERO_OK;
        if (!o->waits) fprintf(h->out, "%.60s\n", ZERO_SHOWN(line.text));
        if (is_command(&line, "quit", "q")) return ZERO_OK;
        if (is_command(&line, "?", "help")) break;
        zero_graded graded = zero_grade_answer(q, &line);
        zero_answer answer;
        bool is_word = zero_question_kind(q) == ZERO_ANSWER_WORD;
        switch (graded.grade) {
        case ZERO_GRADE_RIGHT: break;
        case ZERO_GRADE_MISTAKE:
            fputs("  Not this.\n", h->out);
            zero_say(graded.why, 2, h->out);
            break;
        case ZERO_GRADE_WRONG:
            fputs("  Not this", h->out);
            if (!is_word && zero_answer_parse(zero_question_kind(q), zero_said(q, "unit"),
                                              line.text, &answer))
                fputs(answer.value > zero_question_answer(q) ? ": too large"
                                                             : ": too small",
                      h->out);
            fputs(".\n", h->out);
            break;
        case ZERO_GRADE_MISSING: fputs("  No answer.\n", h->out); break;
        default:
            fprintf(h->out, "  '%.40s' is not ", ZERO_SHOWN(line.text));
            if (is_word)
                fprintf(h->out, "one of these words: %s.\n", zero_said(q, "unit"));
            else
                fputs("a number, such as 4800 or 4.7 KiB.\n", h->out);
        }
        last = line;
        if (graded.grade == ZERO_GRADE_RIGHT) {
            h->tally.right++;
            h->tally.second += try > 0;
            words = "Right:";
            break;
        }
        /* At a terminal a key that was hit by mistake costs no try. */
        try += !o->waits || (graded.grade != ZERO_GRADE_MISSING &&
                             graded.grade != ZERO_GRADE_UNREADABLE);
    }
    if (o->save && last.text[0])
        fprintf(o->save, "%d.%d = %s\n", h->number, k + 1, ZERO_SHOWN(last.text));
    *goes_on = true;
    return say_answer(h, q, words);
}

/* ---- the lesson ---- */

/* *goes_on: false if the lesson ends here. */
static zero_status hold_question(hour *h, int k, int n, bool *goes_on)
{
    const zero_course_options *o = h->options;
    const json_t *q = json_array_get(json_object_get(h->lesson, "questions"), (size_t)k);
    char place[32];
    int column =
        fprintf(h->out, "---- lesson %d: %s ", h->number, zero_said(h->lesson, "title"));
    int length = zero_print(place, " %d of %d ----", k + 1, n);
    for (; column + length < COLUMNS; column++) fputc('-', h->out);
    fprintf(h->out, "%s\n", place);
    zero_say_screen(q, h->out);
    *goes_on = true;
    if (o->mode == ZERO_COURSE_NARRATE)
        ZERO_TRY(
            say_answer(h, q, zero_question_kind(q) == ZERO_ANSWER_WORD ? "So:" : "It is"));
    else if (o->mode == ZERO_COURSE_TELL) {
        /* For teachers: the answer, and what the usual wrong ones mean. */
        char value[ZERO_ANSWER_BYTES], before[ZERO_ANSWER_BYTES] = "";
        const char *against = zero_said(q, "against");
        json_t *mistake;
        size_t i;
        zero_course_answer(q, zero_question_answer(q), value);
        fprintf(h->out, "%d.%d = %s\n", h->number, k + 1, value);
        ZERO_TRY(say_answer(h, q, "The answer is"));
        json_array_foreach(json_object_get(q, "mistakes"), i, mistake)
        {
            const json_t *number = json_object_get(mistake, "value");
            zero_answer wrong = {.value = json_number_value(number)};
            if (!number || zero_grade_is(q, zero_question_answer(q), &wrong)) continue;
            zero_course_answer(q, wrong.value, value);
            if (!zero_same_text(value, before))
                fprintf(h->out, "  If the answer is %s:\n", value);
            memcpy(before, value, sizeof before);
            zero_say(zero_said(mistake, "why"), 6, h->out);
        }
        if (against) {
            fputs("  It corrects:\n", h->out);
            zero_say(against, 6, h->out);
        }
    } else
        ZERO_TRY(ask(h, k, q, goes_on));
    if (!*goes_on) {
        fprintf(h->out,
                "\nThe answers end here: question %d.%d and those after it are open.\n",
                h->number, k + 1);
        h->tally.open = k + 1;
        return ZERO_OK;
    }
    if (o->mode == ZERO_COURSE_ASK && o->waits && k + 1 < n) {
        zero_answer_line line;
        fputs("\n[Enter goes on, q ends]", h->out);
        fflush(h->out);
        *goes_on = zero_answer_read(o->in, &line) && !is_command(&line, "quit", "q");
        if (!*goes_on) h->tally.open = k + 2;
    }
    fputc('\n', h->out);
    return ZERO_OK;
}

zero_status zero_course_hold(int number, const json_t *lesson,
                             const zero_course_options *options, zero_course_tally *tally)
{
    hour h = {.options = options, .lesson = lesson, .out = options->out, .number = number};
    int n = (int)json_array_size(json_object_get(lesson, "questions"));
    bool goes_on = true;
    h.tally.asked = n - options->from + 1;
    for (int k = options->from - 1; k < n && goes_on; k++)
        ZERO_TRY(hold_question(&h, k, n, &goes_on));
    *tally = h.tally;
    if (options->mode != ZERO_COURSE_NARRATE || !zero_said(lesson, "tells-step"))
        return ZERO_OK;
    fputs("The whole step, with numbers of all ranks:\n", h.out);
    return zero_narrate_step(zero_fact_at(lesson, "facts/run/step"), h.out);
}
