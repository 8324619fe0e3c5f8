/* check_lesson ZERO < ANSWERS: compares the answers that `zero lesson --answers` printed with the JSON
 * of the commands beside them, by formulas of its own (lesson.txt). Prints how many it compared;
 * questions that no plan answers are named with "-". */
#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "facts/facts.h"

enum { WORDS = 512, ROW = 1024 };

static const char *zero;
static int failed, compared;

static _Noreturn void fail(const char *what, const char *of)
{
    printf("%s: %s\n", what, of);
    exit(1);
}

/* ---- plans ---- */

/* The words with `from` replaced, which must be there. */
static void replace(const char *words, const char *from, const char *to, char text[WORDS])
{
    const char *at = strstr(words, from);
    if (!at) fail(from, words);
    snprintf(text, WORDS, "%.*s%s%s", (int)(at - words), words, to, at + strlen(from));
}

/* Adds the plan of a command, and its only stage. */
static void add_plan(json_t *tree, const char *all, const char *stage, const char *words,
                     bool has_programs)
{
    char command[WORDS + 256];
    json_error_t error;
    bool adds = has_programs && !strstr(words, "--show-schedule");
    snprintf(command, sizeof command, "'%s' plan %s%s --json", zero, words,
             adds ? " --show-schedule" : "");
    FILE *out = popen(command, "r");
    json_t *plan = out ? json_loadf(out, 0, &error) : NULL;
    if (out) pclose(out);
    if (!plan) fail("no JSON from", command);
    json_object_set_new(tree, all, plan);
    json_object_set(tree, stage, (json_t *)zero_fact_at(plan, "stages/0"));
}

/* The facts of the command that a row may ask for. */
static json_t *facts_of(const char *words, const char *row, const char *from,
                        const char *to)
{
    json_t *tree = json_object();
    char other[WORDS], block[32];
    bool has_programs = strstr(row, "programs") != NULL;
    add_plan(tree, "all", "plan", words, has_programs);
    if (from) {
        replace(words, from, to, other);
        add_plan(tree, "whole_other", "other", other, has_programs);
    }
    const char *peak =
        json_string_value(zero_fact_at(tree, "plan/memory/peak/instruction"));
    if (peak) json_object_set_new(tree, "peak", json_stringn(peak, strcspn(peak, " ")));
    snprintf(block, sizeof block, "block %d",
             (int)zero_fact_number(tree, "all/model/layers") - 1);
    json_object_set_new(tree, "block", json_string(block));
    bool is_wide = strstr(words, "fp32") || !strstr(words, "--dtype");
    json_object_set_new(tree, "type", json_integer(is_wide ? 4 : 2));
    return tree;
}

/* ---- answers ---- */

/* The question's row: its expression, and the replaced words or NULL. */
static bool find_row(const char *id, char row[ROW], const char **from, const char **to)
{
    FILE *file = fopen(TEST_SOURCE_DIR "/tests/program/lesson.txt", "r");
    bool found = false;
    if (!file) fail("no file", "lesson.txt");
    while (!found && fgets(row, ROW, file)) {
        char *bar = strchr(row, '|');
        row[strcspn(row, "\n")] = '\0';
        if (*row == '#' || !bar) continue;
        *bar = '\0';
        for (char *word = strtok(row, " "); word && !found; word = strtok(NULL, " "))
            found = strcmp(word, id) == 0;
        if (found) memmove(row, bar + 1, strlen(bar + 1) + 1);
    }
    fclose(file);
    char *words = found ? strstr(row, " | ") : NULL,
         *arrow = words ? strstr(words, " =>") : NULL;
    *from = *to = NULL;
    if (!arrow) return found;
    *words = *arrow = '\0';
    *from = words + 3;
    *to = arrow[3] ? arrow + 4 : "";
    return true;
}

/* How a share is said in words. */
static const char *part(double share)
{
    return share < 0.05     ? "nothing"
           : share < 0.216  ? "tenth"
           : share < 0.4166 ? "third"
                            : "half";
}

static void check(const char *id, const char *answer, const char *words)
{
    char row[ROW];
    const char *from, *to;
    if (!words[0] || !find_row(id, row, &from, &to)) {
        printf("- %s\n", id);
        return;
    }
    json_t *tree = facts_of(words, row, from, to);
    const zero_scope scope = {.node = tree};
    zero_fact fact;
    if (zero_fact_of(row, strlen(row), &scope, &fact) != ZERO_OK)
        fail(zero_last_error(), id);
    compared++;
    char text[64];
    snprintf(text, sizeof text, "%.9g", fact.number);
    if (fact.kind == ZERO_FACT_TEXT)
        snprintf(text, sizeof text, "%.*s", (int)fact.length, fact.text);
    bool is_number = fact.kind == ZERO_FACT_NUMBER && !isalpha((unsigned char)*answer);
    if (fact.kind == ZERO_FACT_NUMBER && !is_number)
        snprintf(text, sizeof text, "%s", part(fact.number));
    /* An answer is printed with 6 digits. */
    bool good = is_number
                    ? fabs(strtod(answer, NULL) - fact.number) <= 6e-6 * fabs(fact.number)
                    : strcmp(text, answer) == 0;
    json_decref(tree);
    if (good) return;
    printf("%s: %s, but the plan says %s: %s\n", id, answer, text, words);
    failed++;
}

/* "  zero plan A \" and "      B" become "A B". */
static void take_words(const char *line, char words[WORDS])
{
    size_t n = strlen(words);
    line += strspn(line, " ");
    if (strncmp(line, "zero plan ", 10) == 0) line += 10;
    snprintf(words + n, WORDS - n, "%s%s", n ? " " : "", line);
    n = strlen(words);
    while (n > 0 && (words[n - 1] == '\n' || words[n - 1] == '\\' || words[n - 1] == ' '))
        words[--n] = '\0';
}

int main(int argc, char **argv)
{
    char line[1024], id[16] = "", answer[64] = "", words[WORDS] = "";
    int in_words = 0;
    zero = argc > 1 ? argv[1] : "zero";
    while (fgets(line, sizeof line, stdin)) {
        char new_id[16], new_answer[64];
        if (isdigit((unsigned char)line[0]) &&
            sscanf(line, "%15[0-9.] = %63s", new_id, new_answer) == 2) {
            if (id[0]) check(id, answer, words);
            snprintf(id, sizeof id, "%s", new_id);
            snprintf(answer, sizeof answer, "%s", new_answer);
            words[0] = '\0';
        }
        int begins = strncmp(line, "  zero plan ", 12) == 0 && words[0] == '\0';
        if (begins || in_words) take_words(line, words);
        in_words = (begins || in_words) && strchr(line, '\\');
    }
    if (id[0]) check(id, answer, words);
    printf("%d compared\n", compared);
    return failed > 0;
}
