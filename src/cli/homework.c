/* zero homework: exercises that students program. It needs no MPI. */
#include "course/homework.h"
#include "base/embedded.h"
#include "base/legible.h"
#include "cli/options.h"
#include "facts/form.h"
#include "io/file_list.h"
#include "report/json_put.h"

extern const zero_embedded zero_cli_forms[];

#define LINES 12 /* that are shown of what a compiler or a program has printed */

typedef struct {
    const char *compiler, *python;
    int64_t seed;
    bool json;
} homework_options;

typedef struct {
    const homework_options *options;
    zero_homework homework;
    int wrong, all;
} checking;

static zero_status show(const char *section, const json_t *tree)
{
    return zero_form_print(zero_embedded_text(zero_cli_forms, "homework"), section, tree,
                           zero_legible_print, stdout);
}

static zero_status check_file(checking *c, const char *path)
{
    json_auto_t *verdict = NULL;
    ZERO_TRY(zero_homework_check(&c->homework, path, &verdict));
    c->all++;
    c->wrong += !json_is_true(json_object_get(verdict, "passed"));
    if (c->options->json)
        return zero_json_print(json_incref(verdict), JSON_COMPACT, stdout);
    ZERO_TRY(show("check", verdict));
    const char *printed = zero_get_string(verdict, "said");
    for (int i = 0; printed && *printed && i < LINES; i++) {
        char shown[ZERO_SHOWN_BYTES];
        const size_t n = strcspn(printed, "\n");
        zero_legible(printed, n, shown, sizeof shown);
        printf("  | %s\n", shown);
        printed += n + (printed[n] == '\n');
    }
    return ZERO_OK;
}

/* A file, or the .c and .py files of a directory. */
static zero_status check_path(checking *c, const char *path)
{
    ZERO_AT_END(zero_files_destroy) zero_files files = {0};
    ZERO_TRY(zero_files_list("FILE", "", path, &files));
    for (int64_t i = 0; i < files.n; i++) {
        const char *dot = strrchr(files.paths[i], '.');
        bool is_code = dot && (zero_same_text(dot, ".c") || zero_same_text(dot, ".py"));
        if (is_code || !files.has_directory) ZERO_TRY(check_file(c, files.paths[i]));
    }
    return ZERO_OK;
}

static zero_status check_all(const homework_options *o, const json_t *exercise, int n,
                             const char *const paths[])
{
    checking c = {.options = o,
                  .homework = {.exercise = exercise,
                               .seed = o->seed,
                               .compiler = o->compiler,
                               .python = o->python}};
    zero_status st = zero_homework_open(&c.homework);
    for (int i = 0; st == ZERO_OK && i < n; i++) st = check_path(&c, paths[i]);
    zero_homework_close(&c.homework);
    ZERO_TRY(st);
    ZERO_INVALID_IF(c.all == 0, "no .c and no .py file there");
    return c.wrong == 0
               ? ZERO_OK
               : zero_fail(ZERO_ERR_DIFFERENT, "%d of %d files: wrong", c.wrong, c.all);
}

static zero_status run(void *options, const zero_options *given)
{
    const char *const *words = given->operands;
    const bool starts = given->n_operands > 0 && zero_same_text(words[0], "start");
    json_auto_t *exercises = NULL;
    ZERO_TRY(zero_homework_read(&exercises));
    if (given->n_operands == 0) {
        json_auto_t *tree = json_pack("{s:O}", "exercises", exercises);
        return show("list", tree);
    }
    ZERO_INVALID_IF(!starts && !zero_same_text(words[0], "check"),
                    "homework %.40s: expected start or check", ZERO_SHOWN(words[0]));
    ZERO_INVALID_IF(given->n_operands < 3 || (starts && given->n_operands > 3),
                    "expected zero homework %s N %s", words[0], starts ? "DIR" : "FILE...");
    char *end;
    const long number = strtol(words[1], &end, 10);
    const json_t *exercise =
        number > 0 && !*end ? json_array_get(exercises, (size_t)number - 1) : NULL;
    ZERO_INVALID_IF(
        !exercise, "exercise %.40s: there are exercises 1 to %zu; zero homework lists them",
        ZERO_SHOWN(words[1]), json_array_size(exercises));
    if (!starts) return check_all(options, exercise, given->n_operands - 2, words + 2);
    ZERO_TRY(zero_homework_start(exercise, words[2]));
    printf("%s: exercise.txt says what to do; then: zero homework check %ld %s\n",
           ZERO_SHOWN(words[2]), number, "FILE");
    return ZERO_OK;
}

const zero_command zero_command_homework = {
#include "cli/options/homework.command"
    .run = run,
};
