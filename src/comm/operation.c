#include "comm/operation.h"

#include <stdarg.h>

#include "base/hash.h"
#include "lists/algorithm.h"

_Static_assert(sizeof(zero_operation) == 4 * 8 + 12 * 4 + ZERO_OPERATION_GROUP,
               "no padding: operations travel, and are compared, as bytes");

zero_operation zero_operation_collective(const zero_collective_spec *spec, int64_t sequence)
{
    bool has_root = zero_collective_has_root(spec->kind);
    return (zero_operation){.sequence = sequence,
                            .count = spec->count,
                            .stride = has_root ? spec->count : spec->stride,
                            .max_chunk = spec->max_chunk,
                            .kind = (int32_t)spec->kind,
                            .unit = spec->unit,
                            .type = (int32_t)spec->type,
                            .result = (int32_t)spec->result,
                            .algorithm = (int32_t)spec->algorithm,
                            .root = has_root ? spec->root : -1,
                            .on_device = spec->on_device + spec->direct,
                            .in_place = spec->in_place};
}

zero_operation zero_operation_control(zero_operation_kind kind, int64_t sequence,
                                      int64_t bytes, int root)
{
    return (zero_operation){.sequence = sequence,
                            .count = bytes,
                            .kind = (int32_t)kind,
                            .unit = ZERO_NO_UNIT,
                            .root = root};
}

void zero_operation_set_group(zero_operation *op, const char *name)
{
    strncpy(op->group, name, sizeof op->group - 1);
}

uint32_t zero_operation_group_hash(const char *name)
{
    return (uint32_t)XXH3_64bits(name, strlen(name));
}

bool zero_operation_equal(const zero_operation *a, const zero_operation *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static const char *const control_names[] = {
    "agreement",        "vote",           "gathering of numbers",
    "or of words",      "maximum",        "sum",
    "merging of spans", "message to all", "barrier",
    "exchange",         "opening",        "the end of the group",
    "the start"};
_Static_assert(ZERO_COUNT(control_names) == ZERO_OPERATION_NONE + 1 - ZERO_COLLECTIVE_KINDS,
               "a name for each kind");

__attribute__((format(printf, 2, 3))) static void add(char text[ZERO_OPERATION_TEXT],
                                                      const char *fmt, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, fmt);
    vsnprintf(text + used, ZERO_OPERATION_TEXT - used, fmt, args);
    va_end(args);
}

static void add_numbers(const zero_operation *op, char text[ZERO_OPERATION_TEXT])
{
    const char *unit = op->member.part == ZERO_TP_GROUP     ? "JOIN"
                       : op->member.part == ZERO_PIPE_GROUP ? "message"
                                                            : "group";
    text[0] = '\0';
    add(text, "%s",
        op->kind < ZERO_COLLECTIVE_KINDS
            ? zero_collective_kind_name((zero_collective_kind)op->kind)
            : control_names[op->kind - ZERO_COLLECTIVE_KINDS]);
    bool is_numbered = op->kind != ZERO_OPERATION_NONE && op->kind != ZERO_OPERATION_END &&
                       op->kind != ZERO_OPERATION_OPENING;
    if (is_numbered) add(text, " %" PRId64, op->sequence);
    if (is_numbered && op->unit != ZERO_NO_UNIT)
        add(text, " of %s %d", unit, (int)op->unit);
    if (op->group[0] == '\0') return;
    if (op->kind < ZERO_COLLECTIVE_KINDS)
        add(text, " of %" PRId64 " %s", op->count,
            op->type == ZERO_NUMBER_UINT8 ? "bytes"
                                          : zero_number_name((zero_number)op->type));
    if (op->kind == ZERO_REDUCE || op->kind == ZERO_BROADCAST)
        add(text, " %s rank %d", op->kind == ZERO_REDUCE ? "to" : "from", (int)op->root);
    add(text, " in group '%s'", op->group);
}

static void add_place(const zero_operation *op, char text[ZERO_OPERATION_TEXT])
{
    char member[ZERO_MEMBER_TEXT];
    zero_member_name(&op->member, member);
    add(text, "%s", member);
}

void zero_operation_name(const zero_operation *op, char text[ZERO_OPERATION_TEXT])
{
    add_numbers(op, text);
    add_place(op, text);
}

void zero_operation_describe(const zero_operation *op, char text[ZERO_OPERATION_TEXT])
{
    bool is_control = op->kind >= ZERO_COLLECTIVE_KINDS;
    add_numbers(op, text);
    if (is_control && op->count > 0) {
        add(text, " (%" PRId64 " bytes", op->count);
    } else if (!is_control) {
        add(text, " (%s, %s", zero_algorithm_name((zero_algorithm)op->algorithm),
            zero_number_name((zero_number)op->type));
        if (op->result != op->type)
            add(text, " to %s", zero_type_name((zero_type)op->result));
        add(text, ", %" PRId64 " elements", op->count);
        if (op->stride != op->count) add(text, " %" PRId64 " apart", op->stride);
        if (op->max_chunk > 0) add(text, " in chunks of %" PRId64, op->max_chunk);
    }
    if (op->root >= 0 && (!is_control || op->count > 0))
        add(text, "%s %s rank %d", is_control ? "" : ",",
            op->kind == ZERO_REDUCE ? "to" : "from",
            zero_member_rank(&op->member, op->root));
    if (op->on_device) add(text, ", on a device%s", op->in_place ? " in member" : "");
    if (op->on_device > 1) add(text, " that neighbours reach");
    if (!is_control || op->count > 0) add(text, ")");
    add_place(op, text);
}
