#include "base/type.h"

#include "base/fail.h"
#include "base/vector.h"
#include "zero/number.h"

/* Names and sizes by zero_number, which begins with the values of zero_type. */
static const struct {
    const char *name;
    size_t size;
} types[] = {
    [ZERO_NUMBER_FP32] = {"fp32", 4},   [ZERO_NUMBER_BF16] = {"bf16", 2},
    [ZERO_NUMBER_FP16] = {"fp16", 2},   [ZERO_NUMBER_FP64] = {"fp64", 8},
    [ZERO_NUMBER_INT8] = {"int8", 1},   [ZERO_NUMBER_UINT8] = {"uint8", 1},
    [ZERO_NUMBER_INT16] = {"int16", 2}, [ZERO_NUMBER_INT32] = {"int32", 4},
    [ZERO_NUMBER_INT64] = {"int64", 8},
};
#define NUMBERS (sizeof types / sizeof *types)

static bool is_known(zero_type type)
{
    return (unsigned)type < ZERO_TYPES;
}

size_t zero_number_size(zero_number number)
{
    return (unsigned)number < NUMBERS ? types[number].size : 0;
}

const char *zero_number_name(zero_number number)
{
    return (unsigned)number < NUMBERS ? types[number].name : "unknown";
}

size_t zero_type_size(zero_type type)
{
    return is_known(type) ? types[type].size : 0;
}

const char *zero_type_name(zero_type type)
{
    return is_known(type) ? types[type].name : "unknown";
}

const char *zero_type_name_at(int i)
{
    return i < ZERO_TYPES ? types[i].name : NULL;
}

bool zero_type_find(const char *name, zero_type *type)
{
    for (int i = 0; i < ZERO_TYPES; i++) {
        if (!zero_same_text(types[i].name, name)) continue;
        *type = (zero_type)i;
        return true;
    }
    return false;
}

void zero_convert(zero_type from, zero_type to, int64_t n, const void *in, void *out)
{
    if (n <= 0 || !in || !out || !is_known(from) || !is_known(to)) return;
    zero_vector_sum alone = {.type = from, .a = in};
    if (from == to)
        memmove(out, in, (size_t)n * zero_type_size(to));
    else
        zero_vector_kernels_best()->sum(&alone, n, to, out, false);
}
