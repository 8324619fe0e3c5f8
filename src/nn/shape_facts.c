#include "io/json_input.h"
#include "nn/shape.h"

/* A complete shape has this field. */
static bool has_field(const zero_shape *s, const zero_shape_field *f)
{
    return (zero_shape_has(s) & f->needs) == f->needs;
}

json_t *zero_shape_facts(const zero_shape *shape)
{
    const zero_shape s = zero_shape_complete(shape);
    json_t *object = json_object();
    if (s.kind && s.kind != zero_architectures)
        zero_put_string(object, "architecture", s.kind->name);
    for (const zero_shape_field *f = zero_shape_fields;
         f < zero_shape_fields + ZERO_SHAPE_FIELDS; f++) {
        const double value = zero_shape_get(&s, f);
        if (!has_field(&s, f)) continue;
        json_object_set_new(object, f->name,
                            f->kind == ZERO_SHAPE_FLAG    ? json_boolean(value != 0.0)
                            : f->kind == ZERO_SHAPE_WHOLE ? json_integer((json_int_t)value)
                                                          : json_real(value));
    }
    return object;
}

zero_status zero_shape_read(const char *path, const json_t *object, bool only,
                            zero_shape *shape)
{
    const json_t *named = json_object_get(object, "architecture");
    const char *name = named ? json_string_value(named) : zero_architectures->name;
    zero_shape s = {0};
    ZERO_FORMAT_IF(zero_architecture_find(name, &s.kind) != ZERO_OK,
                   "%s: \"architecture\": %s", path, zero_last_error());
    const char *keys[ZERO_SHAPE_FIELDS + 1] = {"architecture"};
    int n_keys = named ? 1 : 0;
    for (int i = 0; i < ZERO_SHAPE_FIELDS; i++)
        if (has_field(&s, &zero_shape_fields[i])) {
            keys[n_keys++] = zero_shape_fields[i].name;
            const zero_shape_field *f = &zero_shape_fields[i];
            int64_t whole = 0;
            double real = 0.0;
            bool flag = false;
            switch (f->kind) {
            case ZERO_SHAPE_WHOLE:
                ZERO_TRY(zero_json_whole(path, object, f->name, (int64_t)f->least,
                                         (int64_t)f->most, &whole));
                break;
            case ZERO_SHAPE_REAL:
                ZERO_TRY(zero_json_real(path, object, f->name, &real));
                break;
            case ZERO_SHAPE_FLAG:
                ZERO_TRY(zero_json_flag(path, object, f->name, &flag));
                break;
            }
            zero_shape_set(&s, f, f->kind == ZERO_SHAPE_REAL ? real : (double)whole + flag);
        }
    if (only) ZERO_TRY(zero_json_only(path, object, n_keys, keys));
    ZERO_FORMAT_IF(zero_shape_check(&s) != ZERO_OK, "%s: %s", path, zero_last_error());
    *shape = zero_shape_complete(&s);
    return ZERO_OK;
}
