#include "course/homework.h"

#include "base/embedded.h"
#include "base/legible.h"
#include "base/number.h"
#include "facts/form.h"
#include "io/bytes.h"
#include "io/whole_file.h"

extern const zero_embedded zero_homework_texts[], zero_homework_files[],
    zero_homework_joints[];

#define COMMON  "common"
#define SECONDS 20                  /* of a compiler */
#define MOST    ((size_t)256 << 10) /* bytes of a student's file */
#define WORDS   8
#define LINE    1024

/* Command lines, of the shell. */
#define COMPILE \
    "exec %s -std=gnu11 -O1 -g -Werror=implicit-function-declaration " \
    "-Dmalloc=hw_malloc -Dcalloc=hw_calloc -Drealloc=hw_realloc -Dfree=hw_free -orank " \
    "rank.c student.c -lm"
#define FIND_PYTHON \
    "exec %s -c 'import sys; assert sys.version_info >= (3, 9); print(sys.executable, " \
    "end=\"\")'"

zero_status zero_homework_read(json_t **exercises)
{
    json_t *all = json_array();
    for (const zero_embedded *e = zero_homework_texts; e->name; e++)
        if (!zero_same_text(e->name, COMMON))
            json_array_append_new(all, zero_exercise_sections(e->name, e->text));
    *exercises = all;
    return zero_allocated(all, "no memory for exercises");
}

/* ---- programs ---- */

/* The header, or the module, that joins a student's file and the exercise. */
static zero_status write_joint(const zero_homework *h, const zero_jail *jail,
                               const char *name)
{
    json_auto_t *tree = json_copy((json_t *)h->exercise), *numbers = NULL;
    json_t *names = json_array(), *arrays = json_array(), *value;
    ZERO_FREED char *text = NULL;
    size_t bytes;
    const char *key;
    int size;
    FILE *f = open_memstream(&text, &bytes);
    ZERO_FAIL_IF(!f || !zero_exercise_case(tree, 0, &size, &numbers), ZERO_ERR_NOMEM,
                 "no memory for an exercise");
    json_object_foreach(numbers, key, value) json_array_append_new(names, json_string(key));
    for (int b = 0; b < h->n_buffers; b++)
        json_array_append_new(arrays, json_string(h->buffers[b].name));
    json_object_set_new(tree, "numbers", names);
    json_object_set_new(tree, "buffers", arrays);
    zero_status st =
        zero_form_print_text(name, zero_embedded_text(zero_homework_joints, name),
                             &(zero_scope){.node = tree}, NULL, f);
    fclose(f);
    ZERO_TRY(st);
    return zero_jail_write(jail, name, text);
}

static zero_status write_file(const zero_jail *jail, const char *name)
{
    return zero_jail_write(jail, name, zero_embedded_text(zero_homework_files, name));
}

/* Makes the student's program ready in its directory. `words` start it, the first of which
 * may be `path`; *is_made: false if the compiler refused it. */
static zero_status make_program(const zero_homework *h, const zero_jail *jail, bool is_c,
                                const char *source, char *words[WORDS], char path[LINE],
                                bool *is_made)
{
    static char *rank[] = {"./rank", NULL},
                *python[] = {NULL, "-I", "-S", "-B", "homework.py", NULL};
    char line[LINE], *shell[] = {"sh", "-c", line, NULL};
    const char *command = is_c ? h->compiler : h->python;
    int code;
    ZERO_TRY(write_joint(h, jail, is_c ? "exercise.h" : "exercise.py"));
    ZERO_TRY(write_file(jail, is_c ? "rank.c" : "homework.py"));
    ZERO_TRY(write_file(jail, "homework.h"));
    ZERO_TRY(zero_jail_write(jail, is_c ? "student.c" : "student.py", source));
    /* Python's command may be a script that starts processes to find Python. */
    zero_print(line, is_c ? COMPILE : FIND_PYTHON, command);
    ZERO_TRY(zero_jail_run(jail, shell, SECONDS, &code));
    *is_made = code == 0;
    memcpy(words, is_c ? rank : python, is_c ? sizeof rank : sizeof python);
    ZERO_FAIL_IF(code == 127 || (!is_c && code != 0), ZERO_ERR_ENV,
                 "%s: cannot be started%s", command,
                 is_c ? "" : ", or is older than Python 3.9");
    if (is_c) return ZERO_OK;
    ZERO_FREED char *found = zero_jail_take_said(jail);
    snprintf(path, LINE, "%s", found ? found : "");
    words[0] = path;
    return ZERO_OK;
}

/* ---- grading ---- */

/* Finds the rank whose numbers a sum of digits lacks, or has twice. */
static void read_digits(json_t *facts, double got, double expected, int rank)
{
    int64_t g = (int64_t)got, e = (int64_t)expected;
    if (!(got >= 0.0 && got < 1e8)) return;
    for (int r = 0; r < ZERO_JUDGE_RANKS; r++, g /= 8, e /= 8) {
        const char *what = g % 8 == e % 8       ? NULL
                           : g % 8 == 0         ? "lacks"
                           : g % 8 == e % 8 * 2 ? "twice"
                                                : NULL;
        if (what && !json_object_get(facts, what)) zero_put_whole(facts, what, r);
    }
    double own =
        fmod(floor(expected / pow(ZERO_DIGIT, rank)), ZERO_DIGIT) * pow(ZERO_DIGIT, rank);
    if (got == own) json_object_set_new(facts, "alone", json_true());
}

/* The first difference of two calls' results, among the facts. */
static void compare(const zero_homework *h, const zero_judge_call *got,
                    const zero_judge_call *expected, json_t *facts)
{
    const zero_buffer *buffers = h->buffers;
    for (int b = 0; b < h->n_buffers; b++) {
        for (int r = 0; buffers[b].is_result && r < got->size; r++) {
            const float *g = got->buffers[r][b], *e = expected->buffers[r][b];
            const int64_t n = got->lengths[r][b];
            int64_t wrong = 0, first = 0, last = 0;
            for (int64_t i = n; i-- > 0;)
                if (memcmp(&g[i], &e[i], sizeof *g) != 0) {
                    if (wrong++ == 0) last = i;
                    first = i;
                }
            if (wrong == 0) continue;
            zero_put_members(facts, "{s:s, s:s, s:i, s:I, s:f, s:f, s:I, s:I, s:I, s:b}",
                             "fault", "bits", "buffer", buffers[b].name, "rank", r, "index",
                             first, "got", isnan(g[first]) ? 0.0 : (double)g[first],
                             "expected", (double)e[first], "wrong", wrong, "of", n, "last",
                             last, "unset", isnan(g[first]));
            for (int q = 0; q < got->size; q++)
                if (q != r && got->lengths[q][b] == n && n > 0 &&
                    memcmp(g, expected->buffers[q][b], (size_t)n * sizeof *g) == 0)
                    zero_put_whole(facts, "of_rank", q);
            if (buffers[b].fill == ZERO_FILL_SUM || buffers[b].fill == ZERO_FILL_DIGITS)
                read_digits(facts, g[first], e[first], r);
            return;
        }
    }
}

/* The first of the mistakes whose condition holds, as a sentence; NULL: none. */
static zero_status find_mistake(const char *name, const char *text, const json_t *facts,
                                char **why)
{
    const zero_scope scope = {.node = facts};
    char line[1000];
    bool holds = false;
    *why = NULL;
    ZERO_FREED char *form = NULL;
    size_t bytes;
    FILE *f = NULL;
    while (zero_next_line(&text, line, sizeof line)) {
        zero_fact fact;
        const bool is_text = strncmp(line, "    ", 4) == 0;
        if (!is_text && f) break;
        if (!is_text && *line) {
            ZERO_TRY(zero_fact_of(line, strlen(line), &scope, &fact));
            holds = zero_fact_is_true(&fact);
        }
        if (!is_text || !holds) continue;
        ZERO_FAIL_IF(!f && !(f = open_memstream(&form, &bytes)), ZERO_ERR_NOMEM,
                     "no memory for a sentence");
        fprintf(f, "%s%s", ftell(f) > 0 ? " " : "", line + 4);
    }
    if (!f) return ZERO_OK;
    fclose(f);
    ZERO_FAIL_IF(!(f = open_memstream(why, &bytes)), ZERO_ERR_NOMEM,
                 "no memory for a sentence");
    zero_status st = zero_form_print_text(name, form, &scope, NULL, f);
    fclose(f);
    return st;
}

static zero_status explain(const zero_homework *h, json_t *facts, json_t *verdict)
{
    ZERO_FREED char *why = NULL;
    const char *name = zero_section(h->exercise, "name");
    /* A condition may compare what this fault does not have. */
    static const char *const numbers[] = {
        "index",   "last",    "wrong", "of",    "got",      "expected", "used",
        "allowed", "of_rank", "lacks", "twice", "messages", "passed"};
    for (int i = 0; i < ZERO_COUNT(numbers); i++)
        if (!json_object_get(facts, numbers[i])) zero_put_whole(facts, numbers[i], -1);
    if (json_object_get(facts, "N")) /* else it was never called */
        ZERO_TRY(find_mistake(name, zero_section(h->exercise, "mistakes"), facts, &why));
    if (!why) {
        json_auto_t *common =
            zero_exercise_sections(COMMON, zero_embedded_text(zero_homework_texts, COMMON));
        ZERO_TRY(find_mistake(COMMON, zero_section(common, "mistakes"), facts, &why));
    }
    zero_put_string(verdict, "why", why ? why : zero_section(facts, "text"));
    return ZERO_OK;
}

/* Static arrays are memory, too: those that a program has more than the reference. */
static void add_statics(json_t *facts, const json_t *reference)
{
    const int64_t more =
        reference ? zero_get_whole(facts, "statics") - zero_get_whole(reference, "statics")
                  : 0;
    const int64_t ranks = zero_get_whole(facts, "N");
    const int64_t memory = zero_get_whole(facts, "memory");
    zero_put_whole(facts, "memory", memory + (more > 0 ? more / ranks : 0));
}

/* Runs all cases on a program; compares with `expected` if it is given, else keeps the
 * results in `keep`. Ends at the first fault: *failed, borrowed, NULL: none. */
static zero_status run_cases(zero_homework *h, zero_judged ranks[ZERO_JUDGE_RANKS],
                             bool is_python, bool is_reference, json_t *runs,
                             json_t **failed)
{
    int size, last = 0, passed = 0;
    json_t *numbers;
    *failed = NULL;
    for (int i = 0; !*failed && zero_exercise_case(h->exercise, i, &size, &numbers); i++) {
        ZERO_AT_END(zero_judge_call_destroy) zero_judge_call call = {0};
        json_auto_t *own = numbers, *scope = zero_exercise_scope(size, numbers, 0);
        json_t *facts;
        ZERO_TRY(zero_exercise_call(h->exercise, h->seed, size, numbers, &call));
        ZERO_TRY(zero_judge_run(ranks, &call, &facts));
        json_array_append_new(runs, facts);
        passed += last != 0 && size != last;
        last = size;
        json_object_update_missing(facts, scope);
        zero_put_whole(facts, "passed", passed);
        json_object_set(scope, "reference",
                        is_reference ? facts : json_array_get(h->reference, (size_t)i));
        json_t *most = zero_facts_pick(&(zero_scope){.node = scope},
                                       zero_section(h->exercise, "limits"));
        json_object_set_new(facts, "most", most);
        add_statics(facts, json_array_get(h->reference, (size_t)i));
        if (is_reference)
            ZERO_GIVE(&h->expected[i], call);
        else if (!json_object_get(facts, "fault"))
            compare(h, &call, &h->expected[i], facts);
        if (!json_object_get(facts, "fault")) {
            /* The first limit that a call has passed. Python's memory, with its objects
             * beside arrays, has one of its own. */
            const char *key;
            json_t *limit, *held = json_array();
            json_object_set_new(facts, "limits", held);
            json_object_foreach((json_t *)most, key, limit)
            {
                const bool is_pythons = zero_same_text(key, "python");
                if (is_python ? zero_same_text(key, "memory") : is_pythons) continue;
                const char *name = is_pythons ? "memory" : key;
                const double used = zero_get_number(facts, name);
                json_t *row = json_pack("{s:s, s:f, s:f}", "limit", name, "used", used,
                                        "allowed", json_number_value(limit));
                json_array_append_new(held, row);
                if (used <= json_number_value(limit) || json_object_get(facts, "fault"))
                    continue;
                json_object_update(facts, row);
                zero_put_string(facts, "fault", "limit");
            }
        }
        if (json_object_get(facts, "fault")) *failed = facts;
    }
    return ZERO_OK;
}

static zero_status run_program(zero_homework *h, const zero_jail *jail, const char *path,
                               const char *source, bool is_reference, json_t *verdict)
{
    zero_judged ranks[ZERO_JUDGE_RANKS] = {0};
    char path_of[LINE], *words[WORDS];
    const char *dot = strrchr(path, '.');
    const bool is_c = !dot || !zero_same_text(dot, ".py");
    bool is_made;
    json_t *runs = json_array(), *failed = NULL;
    json_object_set_new(verdict, "runs", runs);
    ZERO_TRY(make_program(h, jail, is_c, source, words, path_of, &is_made));
    if (is_made) {
        zero_status st = zero_judge_start(jail, words, ranks);
        if (st == ZERO_OK) st = run_cases(h, ranks, !is_c, is_reference, runs, &failed);
        zero_judge_end(ranks);
        ZERO_TRY(st);
    } else {
        failed = json_pack("{s:s, s:s}", "fault", "compiler", "text", h->compiler);
        json_array_append_new(runs, failed);
    }
    ZERO_FREED char *printed = zero_jail_take_said(jail);
    zero_put_flag(verdict, "passed", !failed);
    if (failed && printed && *printed)
        json_object_set_new(verdict, "said", json_string_nocheck(printed));
    return failed ? explain(h, failed, verdict) : ZERO_OK;
}

zero_status zero_homework_open(zero_homework *h)
{
    ZERO_AT_END(zero_jail_close) zero_jail jail = {0};
    json_auto_t *verdict = json_object();
    ZERO_TRY(zero_exercise_buffers(h->exercise, h->buffers, &h->n_buffers));
    ZERO_TRY(zero_jail_open(&jail));
    ZERO_TRY(run_program(h, &jail, "reference.c", zero_section(h->exercise, "reference"),
                         true, verdict));
    h->reference = json_incref(json_object_get(verdict, "runs"));
    ZERO_FAIL_IF(!json_is_true(json_object_get(verdict, "passed")), ZERO_ERR_ENV,
                 "the reference of %s does not pass: %s %s",
                 zero_section(h->exercise, "name"), zero_section(verdict, "why"),
                 zero_section(verdict, "said"));
    return ZERO_OK;
}

void zero_homework_close(zero_homework *h)
{
    json_decref(h->reference);
    for (int i = 0; i < ZERO_HOMEWORK_CASES; i++) zero_judge_call_destroy(&h->expected[i]);
}

zero_status zero_homework_check(zero_homework *h, const char *path, json_t **verdict)
{
    ZERO_AT_END(zero_jail_close) zero_jail jail = {0};
    ZERO_AT_END(zero_bytes_destroy) zero_bytes source = {0};
    json_auto_t *made = json_pack("{s:o, s:s}", "file", json_string_nocheck(path),
                                  "exercise", zero_section(h->exercise, "name"));
    ZERO_TRY(zero_bytes_read_at_most(&source, path, MOST));
    ZERO_TRY(zero_bytes_append(&source, "", 1));
    ZERO_TRY(zero_jail_open(&jail));
    ZERO_TRY(run_program(h, &jail, path, (const char *)source.bytes, false, made));
    *verdict = json_incref(made);
    return ZERO_OK;
}

zero_status zero_homework_start(const json_t *exercise, const char *dir)
{
    const struct {
        const char *name, *text;
    } files[] = {{"exercise.txt", zero_section(exercise, "text")},
                 {"student.c", zero_section(exercise, "c")},
                 {"student.py", zero_section(exercise, "python")},
                 {"homework.h", zero_embedded_text(zero_homework_files, "homework.h")},
                 {"homework.py", zero_embedded_text(zero_homework_files, "homework.py")}};
    ZERO_AT_END(zero_storage_close) zero_storage_dir place = {0};
    char path[ZERO_STORAGE_FILE_PATH];
    ZERO_TRY(zero_storage_open_or_make_public(dir, &place));
    for (int i = 0; i < ZERO_COUNT(files); i++) {
        ZERO_INVALID_IF(zero_storage_has(&place, files[i].name),
                        "%s: has a file %s already; name another directory",
                        ZERO_SHOWN(dir), files[i].name);
    }
    for (int i = 0; i < ZERO_COUNT(files); i++) {
        zero_storage_path(&place, files[i].name, path);
        ZERO_TRY(zero_whole_file_put(path, files[i].text, strlen(files[i].text)));
    }
    return ZERO_OK;
}
