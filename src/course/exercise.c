#include "course/exercise.h"

#include "base/number.h"
#include "base/rng.h"
#include "facts/facts.h"

#define LONGEST 1e7 /* elements of a buffer */

static const int sizes[] = {2, 3, 5, 8};

const char *zero_section(const json_t *of, const char *key)
{
    const char *text = zero_get_string(of, key);
    return text ? text : "";
}

json_t *zero_exercise_sections(const char *name, const char *text)
{
    json_t *all = json_pack("{s:s}", "name", name);
    while ((text = strstr(text, "=== "))) {
        size_t n = strcspn(text += 4, "\n");
        const char *body = text + n + 1, *end = strstr(text, "\n=== ");
        char key[64];
        zero_print(key, "%.*s", (int)n, text);
        size_t length = end ? (size_t)(end + 1 - body) : strlen(body);
        if (strcspn(body, "\n") + 1 == length) length--; /* a line has no end */
        json_object_set_new(all, key, json_stringn(body, length));
        text = body;
    }
    return all;
}

bool zero_next_line(const char **text, char *line, size_t size)
{
    size_t n = strcspn(*text, "\n");
    if (!**text) return false;
    snprintf(line, size, "%.*s", (int)n, *text);
    *text += n + ((*text)[n] == '\n');
    return true;
}

static const char *const fills[ZERO_FILLS] = {"nan", "sum", "digits", "random", "same"};

/* The index of a word in a list of n; n if it is not there. */
static int place_of(const char *word, int n, const char *const *words)
{
    int i = 0;
    while (i < n && !zero_same_text(words[i], word)) i++;
    return i;
}

zero_status zero_exercise_buffers(const json_t *exercise,
                                  zero_buffer buffers[ZERO_JUDGE_BUFFERS], int *n)
{
    static const char *const roles[] = {"in", "hidden", "out", "both"};
    const char *text = zero_section(exercise, "buffers");
    char line[300], role[16], fill[16];
    for (*n = 0; zero_next_line(&text, line, sizeof line); ++*n) {
        zero_buffer b = {.name = ""};
        bool is_read = *n < ZERO_JUDGE_BUFFERS && sscanf(line, "%31s %15s %15s %199[^\n]",
                                                         b.name, role, fill, b.length) == 4;
        const int r = is_read ? place_of(role, ZERO_COUNT(roles), roles) : 0;
        b.fill = is_read ? (zero_fill)place_of(fill, ZERO_FILLS, fills) : ZERO_FILLS;
        b.is_result = r >= 2;
        ZERO_FORMAT_IF(b.fill == ZERO_FILLS || r == ZERO_COUNT(roles),
                       "exercise %s, buffers: '%s': expected NAME ROLE FILL LENGTH",
                       zero_section(exercise, "name"), line);
        buffers[*n] = b;
    }
    return ZERO_OK;
}

static void fill(const zero_buffer *b, int64_t seed, int k, int rank, int64_t n, float *to)
{
    const zero_rng rng = {.seed = (uint64_t)seed,
                          .purpose = ZERO_RNG_TEST,
                          .tensor = (uint64_t)k,
                          .sample = b->fill == ZERO_FILL_SAME ? 0 : (uint64_t)rank};
    for (int64_t i = 0; i < n; i++) {
        const double x = zero_rng_uniform(&rng, (uint64_t)i);
        to[i] = b->fill <= ZERO_FILL_SUM ? NAN
                : b->fill == ZERO_FILL_DIGITS
                    ? (float)(floor(1.0 + 3.0 * x) * pow(ZERO_DIGIT, rank))
                    : (float)floor(2001.0 * x - 1000.0);
    }
}

json_t *zero_exercise_scope(int size, const json_t *numbers, int rank)
{
    json_t *scope = json_copy((json_t *)numbers);
    const int64_t n = zero_get_whole(numbers, "n");
    zero_put_members(scope, "{s:i, s:i, s:I}", "N", size, "rank", rank, "piece",
                     (rank + 1) * n / size - rank * n / size);
    return scope;
}

zero_status zero_exercise_call(const json_t *exercise, int64_t seed, int size,
                               const json_t *numbers, zero_judge_call *call)
{
    zero_buffer buffers[ZERO_JUDGE_BUFFERS];
    const char *key;
    json_t *value;
    *call = (zero_judge_call){.size = size};
    ZERO_TRY(zero_exercise_buffers(exercise, buffers, &call->n_buffers));
    json_object_foreach((json_t *)numbers, key, value)
    {
        const int64_t number = json_integer_value(value);
        if (zero_same_text(key, "per_node")) call->per_node = (int)number;
        call->numbers[call->n_numbers++] = number;
    }
    for (int r = 0; r < size; r++) {
        json_auto_t *scope = zero_exercise_scope(size, numbers, r);
        for (int b = 0; b < call->n_buffers; b++) {
            const double length = zero_fact_number(scope, buffers[b].length);
            ZERO_FORMAT_IF(!(length >= 0.0 && length < LONGEST),
                           "exercise %s, buffers: the length %s",
                           zero_section(exercise, "name"), buffers[b].length);
            const int64_t n = call->lengths[r][b] = (int64_t)length;
            ZERO_TRY(zero_new(&call->buffers[r][b], n + 1, "a buffer"));
            fill(&buffers[b], seed, b, r, n, call->buffers[r][b]);
        }
    }
    return ZERO_OK;
}

bool zero_exercise_case(const json_t *exercise, int i, int *size, json_t **numbers)
{
    for (int s = 0; s < ZERO_COUNT(sizes); s++) {
        const char *text = zero_section(exercise, "cases");
        char line[300];
        json_auto_t *scope = json_pack("{s:i}", "N", sizes[s]);
        while (zero_next_line(&text, line, sizeof line)) {
            if (i-- > 0) continue;
            json_t *value;
            const char *key;
            *numbers = zero_facts_pick(&(zero_scope){.node = scope}, line);
            *size = sizes[s];
            json_object_foreach(*numbers, key, value)
                zero_put_whole(*numbers, key, (int64_t)json_number_value(value));
            return true;
        }
    }
    return false;
}
