/* The program of a training step, which the first line has: what the staircase of memory needs. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "io/json_input.h"
#include "pages/fields.h"
#include "pages/record_parts.h"

#define MOST_BYTES  (INT64_MAX / (2 * ZERO_CLASSES)) /* so that sums do not overflow */
#define MOST_LENGTH 1000000000

/* The classes of memory that "live" lists, and the instructions that a long program leaves out. */
typedef struct {
    zero_record *record;
    const char *where;
    zero_class classes[ZERO_CLASSES];
    size_t n_classes;
    int64_t length, peak, after, left_out;
} schedule;

static zero_status find_class(const schedule *s, const json_t *name, zero_class *found)
{
    const char *text = json_string_value(name);
    char shown[ZERO_JSON_SHOWN];
    for (int c = 0; c < ZERO_CLASSES; c++)
        if (text && strcmp(text, zero_class_name((zero_class)c)) == 0) {
            *found = (zero_class)c;
            return ZERO_OK;
        }
    return zero_fail(ZERO_ERR_FORMAT,
                     "%.500s: \"classes\": expected classes of memory, found %s", s->where,
                     text ? zero_json_shown(text, shown) : "no text");
}

static zero_status read_classes(schedule *s, const json_t *object)
{
    const json_t *names;
    bool has[ZERO_CLASSES] = {false};
    ZERO_TRY(zero_json_array(s->where, object, "classes", &names));
    for (size_t i = 0; i < json_array_size(names); i++) {
        zero_class c = ZERO_CLASS_PARAMETERS;
        ZERO_TRY(find_class(s, json_array_get(names, i), &c));
        if (has[c])
            return zero_fail(ZERO_ERR_FORMAT,
                             "%.500s: \"classes\": expected each class once, found \"%s\" "
                             "twice",
                             s->where, zero_class_name(c));
        has[c] = true;
        s->classes[s->n_classes++] = c;
    }
    return ZERO_OK;
}

static zero_status read_live(const schedule *s, const json_t *object,
                             zero_record_instruction *to)
{
    const json_t *live;
    ZERO_TRY(zero_json_array(s->where, object, "live", &live));
    if (json_array_size(live) != s->n_classes)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%.500s: \"live\" of instruction %d: expected %zu numbers, found "
                         "%zu",
                         s->where, to->number, s->n_classes, json_array_size(live));
    for (size_t i = 0; i < s->n_classes; i++) {
        const json_t *value = json_array_get(live, i);
        json_int_t bytes = json_integer_value(value);
        if (!json_is_integer(value) || bytes < 0 || bytes > MOST_BYTES)
            return zero_fail(ZERO_ERR_FORMAT,
                             "%.500s: \"live\" of instruction %d: expected whole numbers "
                             "from 0 to %" PRId64,
                             s->where, to->number, MOST_BYTES);
        to->live[s->classes[i]] = bytes;
        to->live_bytes += bytes;
    }
    return ZERO_OK;
}

static zero_status read_instruction(schedule *s, const json_t *object, int64_t number)
{
    zero_record *r = s->record;
    zero_record_instruction *to = &r->program[r->n_program];
    *to = (zero_record_instruction){.number = (int)number, .bytes = -1};
    ZERO_TRY(zero_field_text(s->where, object, "name", to->name, sizeof to->name));
    ZERO_TRY(zero_field_text(s->where, object, "op", to->op, sizeof to->op));
    if (json_object_get(object, "bytes"))
        ZERO_TRY(zero_json_whole(s->where, object, "bytes", 0, MOST_BYTES, &to->bytes));
    ZERO_TRY(read_live(s, object, to));
    if (number == s->peak) r->peak_at = r->n_program;
    r->n_program++;
    return ZERO_OK;
}

static zero_status read_left_out(schedule *s, const json_t *object)
{
    const json_t *left_out;
    if (!json_object_get(object, "left_out")) return ZERO_OK;
    ZERO_TRY(zero_json_object(s->where, object, "left_out", &left_out));
    ZERO_TRY(zero_json_whole(s->where, left_out, "after", 0, s->length, &s->after));
    return zero_json_whole(s->where, left_out, "count", 0, s->length - s->after,
                           &s->left_out);
}

/* The peak may be among the instructions that are left out; then it stands alone. */
static zero_status read_peak(schedule *s, const json_t *object)
{
    const json_t *peak;
    bool is_left_out = s->peak > s->after && s->peak <= s->after + s->left_out;
    if (!is_left_out) return ZERO_OK;
    ZERO_TRY(zero_json_object(s->where, object, "peak_instruction", &peak));
    return read_instruction(s, peak, s->peak);
}

static zero_status read_instructions(schedule *s, const json_t *object)
{
    const json_t *list;
    ZERO_TRY(zero_json_array(s->where, object, "instructions", &list));
    int64_t n = (int64_t)json_array_size(list);
    if (n != s->length - s->left_out || s->after > n)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%.500s: \"instructions\": expected %" PRId64 ", found %" PRId64,
                         s->where, s->length - s->left_out, n);
    s->record->program = calloc((size_t)n + 1, sizeof *s->record->program);
    if (!s->record->program)
        return zero_fail(ZERO_ERR_NOMEM, "%.500s: no memory for %" PRId64 " instructions",
                         s->where, n);
    for (int64_t i = 0; i < n; i++) {
        if (i == s->after) ZERO_TRY(read_peak(s, object));
        ZERO_TRY(read_instruction(s, json_array_get(list, (size_t)i),
                                  i < s->after ? i + 1 : i + 1 + s->left_out));
    }
    return s->after == n ? read_peak(s, object) : ZERO_OK;
}

static zero_status check_peak(const schedule *s)
{
    const zero_record *r = s->record;
    for (int i = 0; i < r->n_program; i++)
        if (r->program[i].live_bytes > r->program[r->peak_at].live_bytes)
            return zero_fail(ZERO_ERR_FORMAT,
                             "%.500s: \"peak\": expected the instruction with the most "
                             "bytes, found %" PRId64 ", and more at %d",
                             s->where, s->peak, r->program[i].number);
    return ZERO_OK;
}

zero_status zero_record_read_schedule(zero_record *record, const char *where,
                                      const json_t *object)
{
    schedule s = {.record = record, .where = where};
    ZERO_TRY(zero_json_whole(where, object, "length", 1, MOST_LENGTH, &s.length));
    ZERO_TRY(zero_json_whole(where, object, "peak", 1, s.length, &s.peak));
    s.after = s.length;
    ZERO_TRY(read_left_out(&s, object));
    ZERO_TRY(read_classes(&s, object));
    record->program_length = (int)s.length;
    ZERO_TRY(read_instructions(&s, object));
    return check_peak(&s);
}
