/* check_metrics RANKS STEPS FILE: is this the metrics file of a whole run?
 *
 * One JSON object per line; written again with 17 digits each is the same text, so no digit was
 * lost; and what metrics.txt says is true of them. Prints what must not depend on time: step, loss,
 * rate, norm and validation loss as bits, then the digest.
 *
 * check_metrics config FILE: prints the configuration in the first line, as a --config file.
 *
 * check_metrics step PLAN BEFORE AFTER: AFTER is the run BEFORE with one step more. Does that step
 * move what the plan says in each of its collectives, in all and between nodes (metrics_step.txt)?
 *
 * check_metrics json: is stdin one JSON value after the other? */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "facts/facts.h"

enum { LINE_BYTES = 1 << 18 };

static _Noreturn void fail(const char *what, const char *line)
{
    fprintf(stderr, "check_metrics: %s: %s\n", what, line);
    exit(1);
}

/* ---- laws ---- */

static void check_law(const char *law, const json_t *tree)
{
    const zero_scope scope = {.node = tree};
    zero_fact fact;
    if (!*law || *law == '#' || *law == '\n') return;
    if (zero_fact_of(law, strlen(law), &scope, &fact) != ZERO_OK)
        fail(zero_last_error(), law);
    if (!zero_fact_is_true(&fact)) fail("is not so", law);
}

/* Each line of the file is true of the tree. One that begins with a blank goes on. */
static void check_laws(const char *name, const json_t *tree)
{
    char path[512], line[256], law[4096] = "";
    snprintf(path, sizeof path, TEST_SOURCE_DIR "/tests/program/%s", name);
    FILE *file = fopen(path, "r");
    if (!file) fail("no such file", path);
    while (fgets(line, sizeof line, file)) {
        size_t used = *line == ' ' ? strlen(law) : 0;
        if (used == 0) check_law(law, tree);
        snprintf(law + used, sizeof law - used, "%s", line);
    }
    check_law(law, tree);
    fclose(file);
}

/* ---- a run ---- */

static json_t *read_line(char *line)
{
    json_error_t at;
    line[strcspn(line, "\n")] = '\0';
    json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &at);
    if (!json_is_object(object)) fail("not a JSON object", line);
    char *again = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (!again || strcmp(again, line) != 0) fail("not written with 17 digits", line);
    free(again);
    return object;
}

/* The first line, steps, and the final one. */
static json_t *read_run(FILE *file)
{
    char line[LINE_BYTES];
    if (!fgets(line, sizeof line, file)) fail("the file is empty", "");
    json_t *tree = read_line(line), *steps = json_array(), *object;
    while (fgets(line, sizeof line, file)) {
        if (json_object_get(tree, "final")) fail("more than a final line", line);
        object = read_line(line);
        if (json_object_get(object, "final"))
            json_object_set_new(tree, "final", object);
        else
            json_array_append_new(steps, object);
    }
    json_object_set_new(tree, "steps", steps);
    return tree;
}

static double real(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_real(value)) fail("not a real number", key);
    return json_real_value(value);
}

static void print_step(const json_t *object)
{
    static const char *const keys[] = {"loss_scale", "step_seconds", "tokens_per_second",
                                       "elapsed"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) real(object, keys[i]);
    printf("%d %a %a %a", (int)json_integer_value(json_object_get(object, "step")),
           real(object, "loss"), real(object, "lr"), real(object, "grad_norm"));
    if (json_object_get(object, "val_loss")) printf(" %a", real(object, "val_loss"));
    printf("\n");
}

static const char *text_at(const json_t *tree, const char *path)
{
    const char *text = json_string_value(zero_fact_at(tree, path));
    return text ? text : "";
}

/* Texts that have a form. */
static void check_texts(const json_t *tree)
{
    const char *digest = text_at(tree, "final/digest");
    const json_t *code = zero_fact_at(tree, "run/schedule/instructions");
    if (strlen(text_at(tree, "run/started")) != strlen("2026-11-22T08:18:50Z"))
        fail("not a time", text_at(tree, "run/started"));
    if (strlen(digest) != 32 || strspn(digest, "0123456789abcdef") != 32)
        fail("not a digest of 128 bits", digest);
    for (size_t i = 0; i < json_array_size(code); i++) {
        const char *op = text_at(json_array_get(code, i), "op"),
                   *name = text_at(json_array_get(code, i), "name");
        if (strncmp(name, op, strlen(op)) != 0) fail("another instruction's name", name);
    }
}

static void check_run(FILE *file, long ranks, long steps)
{
    static const char *const exchanges[] = {"reduce", "gather", "all_reduce"};
    json_t *tree = read_run(file), *of = json_object(), *step;
    const json_t *moved = zero_fact_at(tree, "final/communication");
    for (size_t i = 0; i < 3; i++)
        if (json_object_get(moved, exchanges[i]))
            json_object_set(of, exchanges[i], json_object_get(moved, exchanges[i]));
    json_object_set_new(tree, "exchanges", of);
    json_object_set_new(tree, "world", json_integer(ranks));
    json_object_set_new(tree, "n", json_integer(steps));
    json_t *all = json_object_get(tree, "steps");
    json_object_set(tree, "last", json_array_get(all, json_array_size(all) - 1));
    size_t i;
    json_array_foreach(all, i, step) print_step(step);
    check_laws("metrics.txt", tree);
    check_texts(tree);
    printf("digest %s\n", text_at(tree, "final/digest"));
    json_decref(tree);
}

static void print_config(FILE *file)
{
    char line[LINE_BYTES];
    if (!fgets(line, sizeof line, file)) fail("the file is empty", "");
    json_t *tree = read_line(line), *value;
    json_t *config = json_object_get(json_object_get(tree, "run"), "config");
    const char *name;
    void *next;
    json_object_foreach_safe(config, next, name, value)
    {
        if (json_is_null(value)) json_object_del(config, name);
    }
    if (json_dumpf(config, stdout, JSON_INDENT(2)) != 0) fail("no configuration", "");
    json_decref(tree);
}

/* ---- a step of a run beside its plan ---- */

static json_t *final_line(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file) fail("no such file", path);
    json_t *tree = read_run(file), *final = json_incref(json_object_get(tree, "final"));
    fclose(file);
    json_decref(tree);
    return final;
}

/* Prints each collective's bytes sent, in all and to other nodes. */
static void compare_step(const char *plan_path, const char *before, const char *after)
{
    json_error_t at;
    json_t *file = json_load_file(plan_path, 0, &at), *op;
    json_t *plan = (json_t *)zero_fact_at(file, "stages/0");
    json_t *tree = json_pack("{s:O, s:o, s:o}", "plan", plan, "before", final_line(before),
                             "after", final_line(after));
    const char *name;
    if (!tree) fail("not a plan", plan_path);
    check_laws("metrics_step.txt", tree);
    json_object_foreach(json_object_get(plan, "communication"), name, op)
    {
        const json_t *sent = json_object_get(op, "bytes_sent_across");
        if (!sent || !json_object_get(zero_fact_at(tree, "after/communication"), name))
            continue;
        printf("%s %" JSON_INTEGER_FORMAT " %" JSON_INTEGER_FORMAT "\n", name,
               json_integer_value(json_object_get(op, "bytes_sent")),
               json_integer_value(sent));
    }
    json_decref(tree);
    json_decref(file);
}

static void check_json(void)
{
    json_error_t at;
    int n = 0, c;
    while ((c = getchar()) != EOF) {
        if (c == '\n' || c == ' ') continue;
        ungetc(c, stdin);
        json_t *object = json_loadf(stdin, JSON_DISABLE_EOF_CHECK, &at);
        if (!json_is_object(object)) fail("not JSON", at.text);
        json_decref(object);
        n++;
    }
    if (n == 0) fail("empty", "stdin");
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "json") == 0) {
        check_json();
        return 0;
    }
    if (argc == 5 && strcmp(argv[1], "step") == 0) {
        compare_step(argv[2], argv[3], argv[4]);
        return 0;
    }
    bool is_config = argc == 3 && strcmp(argv[1], "config") == 0;
    FILE *file = argc == 4 || is_config ? fopen(argv[argc - 1], "r") : NULL;
    if (!file) fail("usage: check_metrics RANKS STEPS FILE", argc > 3 ? argv[3] : "");
    if (is_config)
        print_config(file);
    else
        check_run(file, strtol(argv[1], NULL, 10), strtol(argv[2], NULL, 10));
    fclose(file);
    return 0;
}
