/* check_lesson ZERO < ANSWERS: compares the answers that `zero lesson --answers` printed with the JSON
 * of the commands beside them, by formulas of its own. Prints how many it compared; questions that no
 * plan answers are named with "-". */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#define WORDS 512

static const char *zero;
static int failed, compared;

/* ---- plans ---- */

static json_t *read_plan(const char *words)
{
    char command[WORDS + 256];
    json_error_t error;
    snprintf(command, sizeof command, "'%s' plan %s --json", zero, words);
    FILE *out = popen(command, "r");
    json_t *plan = out ? json_loadf(out, 0, &error) : NULL;
    if (out) pclose(out);
    if (plan) return plan;
    printf("no JSON from: %s\n", command);
    exit(1);
}

/* "memory.classes.optimizer states.own_peak" of the first stage; with a slash before it, of the plan. */
static json_t *member(const json_t *plan, const char *path)
{
    const json_t *at =
        *path == '/' ? plan : json_array_get(json_object_get(plan, "stages"), 0);
    char name[64];
    for (path += *path == '/'; at && *path;) {
        size_t length = strcspn(path, ".");
        snprintf(name, sizeof name, "%.*s", (int)length, path);
        at = json_object_get(at, name);
        path += length + (path[length] == '.');
    }
    return (json_t *)at;
}

static double number(const char *words, const char *path)
{
    json_t *plan = read_plan(words), *value = member(plan, path);
    if (!json_is_number(value)) {
        printf("no number %s in: %s\n", path, words);
        exit(1);
    }
    double result = json_number_value(value);
    json_decref(plan);
    return result;
}

/* The words with `from` replaced, which must be there. */
static const char *with(const char *words, const char *from, const char *to,
                        char text[WORDS])
{
    const char *at = strstr(words, from);
    if (!at) {
        printf("no %s in: %s\n", from, words);
        exit(1);
    }
    snprintf(text, WORDS, "%.*s%s%s", (int)(at - words), words, to, at + strlen(from));
    return text;
}

static double sent(const char *words)
{
    return number(words, "communication.reduce.bytes_sent") +
           number(words, "communication.gather.bytes_sent");
}

/* ---- programs ---- */

typedef struct {
    int count, first;
    double bytes, first_bytes;
} looked;

static looked look(const char *words, const char *op, const char *operand)
{
    looked l = {0};
    char text[WORDS];
    snprintf(text, sizeof text, "%s%s", words,
             strstr(words, "--show-schedule") ? "" : " --show-schedule");
    json_t *plan = read_plan(text), *step = member(plan, "programs.step");
    for (size_t i = 0; i < json_array_size(step); i++) {
        const json_t *one = json_array_get(step, i);
        const char *name = json_string_value(json_object_get(one, "op"));
        const char *of = json_string_value(json_object_get(one, "operand"));
        if (strcmp(name, op) != 0 || (operand && strcmp(of, operand) != 0)) continue;
        double bytes = json_number_value(json_object_get(one, "bytes"));
        if (l.count++ == 0) l.first = (int)i + 1, l.first_bytes = bytes;
        l.bytes += bytes;
    }
    json_decref(plan);
    return l;
}

/* ---- expected answers ---- */

static const char *last_block(const char *words, char text[32])
{
    snprintf(text, 32, "block %d", (int)number(words, "/model.layers") - 1);
    return text;
}

static double bytes_of_type(const char *words)
{
    return strstr(words, "fp32") || !strstr(words, "--dtype") ? 4.0 : 2.0;
}

/* Elements with padding, in a stage whose parameters are whole. */
static double padded(const char *words)
{
    return number(words, "memory.classes.parameters.own_peak") / bytes_of_type(words);
}

static const char *yes(int is_true)
{
    return is_true ? "yes" : "no";
}

static const char *part(double share)
{
    return share < 0.05     ? "nothing"
           : share < 0.216  ? "tenth"
           : share < 0.4166 ? "third"
                            : "half";
}

static const char *peak_pass(const char *words)
{
    json_t *plan = read_plan(words);
    const char *at = json_string_value(member(plan, "memory.peak.instruction"));
    const char *pass = strncmp(at, "FORWARD", 7) == 0  ? "forward"
                       : strncmp(at, "UPDATE", 6) == 0 ? "update"
                                                       : "backward";
    json_decref(plan);
    return pass;
}

static const char *equal_bounds(const char *words, const char *scheme)
{
    char least[96], most[96];
    snprintf(least, sizeof least, "partitions.%s.bytes_sent.least", scheme);
    snprintf(most, sizeof most, "partitions.%s.bytes_sent.most", scheme);
    return yes(number(words, least) == number(words, most));
}

static const char *reduce_first(const char *w)
{
    char block[32];
    int reduce = look(w, "REDUCE", "final").first;
    return reduce < look(w, "BACKWARD", last_block(w, block)).first ? "REDUCE" : "BACKWARD";
}

/* The blocks' formula is in bytes of 4 b s h (T-1)/T, an all-reduce counting twice. */
static double all_reduces(const char *w)
{
    double t = number(w, "/tp.ranks");
    double once =
        number(w, "/model.seq") * number(w, "/model.hidden") * (t - 1.0) / t * 4.0;
    return number(w, "communication.join.blocks_formula_bytes") /
           (2.0 * once * number(w, "/model.layers"));
}

static double offloaded_peak(const char *w)
{
    char text[WORDS];
    return number(with(w, " --offload .", "", text), "memory.peak.bytes");
}

static const char *expected_word(const char *id, const char *w)
{
    char x[WORDS];
    const char *step = "time.step_seconds",
               *gathered = "memory.classes.gathered parameters.own_peak";
    if (strcmp(id, "2.2") == 0) return reduce_first(w);
    if (strcmp(id, "2.8") == 0) return peak_pass(w);
    if (strcmp(id, "7.3") == 0)
        return part(1.0 - number(w, step) /
                              number(with(w, "--prefetch 1", "--prefetch 0", x), step));
    if (strcmp(id, "7.5") == 0)
        return part(1.0 - number(w, step) /
                              number(with(w, "--prefetch 2", "--prefetch 1", x), step));
    if (strcmp(id, "7.6") == 0)
        return yes(number(w, gathered) >
                   number(with(w, "--prefetch 1", "--prefetch 0", x), gathered));
    if (strcmp(id, "8.3") == 0) return equal_bounds(w, "slice");
    if (strcmp(id, "8.4") == 0) return equal_bounds(w, "owner");
    if (strcmp(id, "9.2") == 0)
        return yes(number(w, "/tp.parameters") * number(w, "/tp.ranks") ==
                   number(w, "/model.parameters"));
    if (strcmp(id, "10.4") == 0)
        return yes(number(w, "memory.peak.bytes") < offloaded_peak(w));
    return NULL;
}

/* NAN: no plan answers it. */
static double expected(const char *id, const char *w)
{
    static const struct {
        const char *ids, *path;
    } direct[] = {
        {"1.1 1.2 1.3 1.4 5.3 9.5 12.1 12.2 12.3 12.4 ", "memory.formula"},
        {"1.5 1.6 10.2 ", "memory.states"},
        {"2.5 ", "communication.gather.collectives"},
        {"3.1 5.4 6.1 6.2 8.2 ", "communication.reduce.bytes_sent"},
        {"3.2 3.3 6.3 ", "communication.gather.bytes_sent"},
        {"6.5 ", "memory.classes.accumulators.own_peak"},
        {"7.1 ", "time.communication_seconds"},
        {"7.2 ", "time.step_seconds"},
        {"8.5 ", "communication.reduce.messages_sent"},
        {"9.1 ", "/tp.data_ranks"},
        {"9.4 ", "communication.join.blocks_formula_bytes"},
        {"13.1 13.3 ", "memory.classes.activations kept.own_peak"},
        {"13.4 ", "communication.collect.formula_bytes"},
        {"14.2 ", "memory.classes.buckets.own_peak"},
        {"14.4 ", "memory.arena"},
    };
    char x[WORDS], y[WORDS], key[16];
    snprintf(key, sizeof key, "%s ", id);
    for (size_t k = 0; k < sizeof direct / sizeof direct[0]; k++) {
        const char *at = strstr(direct[k].ids, key);
        if (at && (at == direct[k].ids || at[-1] == ' ')) return number(w, direct[k].path);
    }
    if (strcmp(id, "1.7") == 0)
        return number(w, "memory.states") / number(w, "memory.formula");
    if (strcmp(id, "2.1") == 0) return look(w, "FORWARD", NULL).count;
    if (strcmp(id, "2.6") == 0) return look(w, "GATHER", "block 0").first_bytes;
    if (strcmp(id, "2.7") == 0)
        return look(w, "UPDATE", "block 0").bytes / bytes_of_type(w);
    if (strcmp(id, "3.4") == 0 || strcmp(id, "3.5") == 0 || strcmp(id, "6.4") == 0)
        return sent(w) / sent(with(w, "--stage 3", "--stage 1", x));
    if (strcmp(id, "3.6") == 0)
        return sent(w) / sent(with(w, "--ranks 64", "--ranks 4", x));
    if (strcmp(id, "4.3") == 0)
        return number(with(w, "--stage 3", "--stage 0", x), "memory.states") /
               number(w, "memory.states");
    if (strcmp(id, "5.1") == 0)
        return number(w, "memory.classes.optimizer states.own_peak") / padded(w);
    if (strcmp(id, "5.2") == 0) return number(w, "memory.states") / padded(w);
    if (strcmp(id, "5.5") == 0)
        return number(with(w, "--stage 1", "--stage 0", x), "memory.formula") /
               (number(w, "memory.formula") -
                number(w, "memory.classes.optimizer states.own_peak") *
                    number(w, "/model.parameters") /
                    padded(with(w, "--stage 1", "--stage 0", y)));
    if (strcmp(id, "7.4") == 0)
        return 100.0 - 100.0 * number(w, "time.exposed_seconds") /
                           number(w, "time.communication_seconds");
    if (strcmp(id, "8.1") == 0)
        return number(w, "memory.states") - number(w, "memory.formula");
    if (strcmp(id, "9.3") == 0) return all_reduces(w);
    if (strcmp(id, "10.1") == 0)
        return number(w, "file.bytes") - number(w, "file.page_padding");
    if (strcmp(id, "10.3") == 0)
        return number(w, "file.step.all.bytes_read") +
               number(w, "file.step.all.bytes_written");
    if (strcmp(id, "11.4") == 0) return look(w, "UPDATE", NULL).bytes / bytes_of_type(w);
    if (strcmp(id, "12.5") == 0)
        return number(w, "memory.formula") /
               number(with(w, "--dtype fp32", "--dtype bf16", x), "memory.formula");
    if (strcmp(id, "13.5") == 0)
        return 100.0 * number(w, "communication.collect.formula_bytes") /
               number(w, "communication.join.blocks_formula_bytes");
    if (strcmp(id, "14.1") == 0) return 4.0 * number(w, "/model.parameters");
    if (strcmp(id, "14.3") == 0)
        return number(w, "memory.classes.buckets.own_peak") /
               number(with(w, "--bucket 524288", "--bucket 1048576", x),
                      "memory.classes.buckets.own_peak");
    return NAN;
}

/* ---- answers ---- */

static void check(const char *id, const char *answer, const char *words)
{
    const char *word = words[0] ? expected_word(id, words) : NULL;
    double value = words[0] && !word ? expected(id, words) : NAN;
    if (!word && isnan(value)) {
        printf("- %s\n", id);
        return;
    }
    compared++;
    /* An answer is printed with 6 digits. */
    int good = word ? strcmp(word, answer) == 0
                    : fabs(strtod(answer, NULL) - value) <= 6e-6 * fabs(value);
    if (good) return;
    if (word) printf("%s: %s, but the plan says %s: %s\n", id, answer, word, words);
    if (!word) printf("%s: %s, but the plan says %.9g: %s\n", id, answer, value, words);
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
