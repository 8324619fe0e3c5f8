#include "checkpoint/manifest_fields.h"

#include "nn/shape.h"

/* Values are NULL without memory. */
static json_t *object_of(const field *fields, const void *from, const zero_manifest *m);

static json_t *tensor_value(const zero_manifest *m, int i)
{
    const zero_tensor *t = &m->table.tensors[i];
    json_int_t rows = t->rows, cols = t->cols;
    json_t *value = zero_state_table_is_shared(&m->table)
                        ? json_pack("[s, I, I, i, s, i]", t->name, rows, cols, t->group,
                                    zero_manifest_cuts[t->cut], (int)zero_cut_parts(t))
                        : json_pack("[s, I, I, i]", t->name, rows, cols, t->group);
    if (zero_rule_at(m->table.layout.optimizer)->moves_matrices)
        json_array_append_new(value, json_integer(t->is_hidden));
    if (m->table.layout.pp > 1)
        json_array_append_new(value, json_integer(m->table.stage[t->group]));
    return value;
}

static json_t *value_of(const field *f, const void *base, const zero_manifest *m)
{
    const void *from = (const char *)base + f->at;
    int n = f->kind == TENSORS ? m->table.n_tensors : m->table.layout.n_ranks;
    bool is_made = true;
    json_t *list;
    switch (f->kind) {
    case WHOLE: return json_integer(*(const int64_t *)from);
    case INT: return json_integer(*(const int *)from);
    case SCALE: return json_real((double)*(const float *)from);
    case TYPE: return json_string(zero_type_name(*(const zero_type *)from));
    case SCHEME:
        return json_string(
            zero_partition_scheme_name(*(const zero_partition_scheme *)from));
    case RULE: return json_string(zero_rule_name_at(*(const int *)from));
    case CHECKSUM:
    case DATA:
    case TEXT: return json_string(from);
    case SHAPE: return zero_shape_facts(from);
    case OBJECT: return object_of(f->fields, from, m);
    case OPTIONS:
    case KEPT: return json_incref(*(json_t *const *)from);
    case TENSORS:
    case SHARDS: break;
    }
    list = json_array();
    for (int i = 0; is_made && i < n; i++)
        is_made = json_array_append_new(
                      list, f->kind == TENSORS ? tensor_value(m, i)
                                               : object_of(of_file, &m->shards[i], m)) == 0;
    if (is_made) return list;
    json_decref(list);
    return NULL;
}

static json_t *object_of(const field *fields, const void *from, const zero_manifest *m)
{
    json_t *object = json_object();
    bool is_made = true;
    for (const field *f = fields; f->key && is_made; f++)
        is_made = json_object_set_new(object, f->key, value_of(f, from, m)) == 0;
    if (is_made) return object;
    json_decref(object);
    return NULL;
}

/* NULL means that there was no memory for the value. */
static zero_status append_value(zero_bytes *out, const json_t *value, const char *end)
{
    const size_t flags = JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17);
    ZERO_FREED char *text = value ? json_dumps(value, flags) : NULL;
    ZERO_TRY(zero_allocated(text, "no memory for a manifest"));
    ZERO_TRY(zero_bytes_append(out, text, strlen(text)));
    return zero_bytes_append(out, end, strlen(end));
}

/* A member per line, and of a list a value per line. */
static zero_status append_member(zero_bytes *out, const char *key, const json_t *value)
{
    char name[64];
    size_t n = json_array_size(value);
    int len = zero_print(name, n > 0 ? " \"%s\": [\n" : " \"%s\": ", key);
    ZERO_TRY(zero_bytes_append(out, name, (size_t)len));
    if (n == 0) return append_value(out, value, ",\n");
    for (size_t i = 0; i < n; i++) {
        ZERO_TRY(zero_bytes_append(out, "  ", 2));
        ZERO_TRY(append_value(out, json_array_get(value, i), i + 1 < n ? ",\n" : "\n"));
    }
    return zero_bytes_append(out, " ],\n", 4);
}

zero_status zero_manifest_write(const zero_manifest *m, zero_bytes *out)
{
    const bool is_shared = zero_state_table_is_shared(&m->table);
    const bool is_gpt2 = m->has_shape && m->shape.kind == &zero_architectures[ZERO_GPT2];
    const bool is_other = m->has_shape && !is_gpt2;
    const bool is_there[N_IFS] = {[ALWAYS] = true,
                                  [IF_GPT2] = is_gpt2,
                                  [IF_SHAPE] = is_other,
                                  [IF_OPTIONS] = m->options != NULL,
                                  [IF_TOKENIZER] = m->has_tokenizer,
                                  [IF_SHARED] = is_shared,
                                  [IF_KEPT] = m->kept != NULL,
                                  [IF_OPTIMIZER] = m->table.layout.optimizer != 0,
                                  [IF_STAGES] = m->table.layout.pp > 1};
    char text[128];
    ZERO_AT_END(zero_bytes_destroy) zero_bytes made = {0};
    int n = zero_print(text, "{\n \"format\": \"%s\",\n \"version\": %d,\n",
                       ZERO_MANIFEST_FORMAT,
                       is_there[IF_STAGES]      ? 6
                       : is_there[IF_OPTIMIZER] ? 5
                       : is_other               ? 4
                       : m->kept                ? 3
                       : is_shared              ? 2
                                                : 1);
    ZERO_TRY(zero_bytes_append(&made, text, (size_t)n));
    for (const field *f = members; f->key; f++) {
        json_auto_t *value = is_there[f->when] ? value_of(f, m, m) : NULL;
        if (is_there[f->when]) ZERO_TRY(append_member(&made, f->key, value));
    }
    zero_manifest_tail(made.bytes, made.len, text);
    ZERO_TRY(zero_bytes_append(&made, text, strlen(text)));
    ZERO_GIVE(out, made);
    return ZERO_OK;
}

void zero_manifest_destroy(zero_manifest *m)
{
    zero_state_table_destroy(&m->table);
    free(m->shards);
    json_decref(m->options);
    json_decref(m->kept);
    *m = (zero_manifest){0};
}
