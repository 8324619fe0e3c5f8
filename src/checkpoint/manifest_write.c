#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/type.h"
#include "checkpoint/manifest.h"
#include "nn/shape.h"

void zero_shard_name(int rank, int n_ranks, char name[64])
{
    snprintf(name, 64, "shard-%05d-of-%05d.safetensors", rank, n_ranks);
}

const char *const zero_manifest_cuts[ZERO_MANIFEST_CUTS] = {
    [ZERO_CUT_NONE] = "none", [ZERO_CUT_ROWS] = "rows", [ZERO_CUT_COLS] = "cols"};

#define TAIL_BEGIN " \"checksum\": \""
#define TAIL_END   "\"\n}\n"
_Static_assert(sizeof TAIL_BEGIN - 1 + ZERO_CHECKSUM - 1 + sizeof TAIL_END ==
                   ZERO_MANIFEST_TAIL,
               "the last line has a fixed length");

void zero_manifest_tail(const void *bytes, size_t len, char tail[ZERO_MANIFEST_TAIL])
{
    char hex[ZERO_CHECKSUM];
    zero_checksum(bytes, len, hex);
    snprintf(tail, ZERO_MANIFEST_TAIL, TAIL_BEGIN "%s" TAIL_END, hex);
}

static json_t *file_value(const zero_manifest_file *file)
{
    return json_pack("{s:I, s:s}", "bytes", (json_int_t)file->bytes, "checksum",
                     file->checksum);
}

/* [name, rows, columns, group], of a shared model with cut and parts. */
static json_t *tensor_value(const zero_manifest *m, int i)
{
    const zero_tensor *t = &m->table.tensors[i];
    json_int_t rows = t->rows, cols = t->cols;
    if (!zero_state_table_is_shared(&m->table))
        return json_pack("[s, I, I, i]", t->name, rows, cols, t->group);
    return json_pack("[s, I, I, i, s, i]", t->name, rows, cols, t->group,
                     zero_manifest_cuts[t->cut], (int)zero_cut_parts(t));
}

static json_t *shard_value(const zero_manifest *m, int i)
{
    return file_value(&m->shards[i]);
}

/* NULL without memory. */
static json_t *list_of(const zero_manifest *m, int n,
                       json_t *(*value)(const zero_manifest *m, int i))
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        if (json_array_append_new(list, value(m, i)) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* NULL means that there was no memory for the value. */
static zero_status append_value(zero_bytes *out, const json_t *value, const char *end)
{
    const size_t flags = JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17);
    char *text = value ? json_dumps(value, flags) : NULL;
    zero_status st = text ? zero_bytes_append(out, text, strlen(text))
                          : zero_fail(ZERO_ERR_NOMEM, "no memory for a manifest");
    free(text);
    return st == ZERO_OK ? zero_bytes_append(out, end, strlen(end)) : st;
}

/* A member per line, and of a list a value per line. */
static zero_status append_member(zero_bytes *out, const char *key, const json_t *value)
{
    char name[64];
    size_t n = json_array_size(value);
    int len = snprintf(name, sizeof name, n > 0 ? " \"%s\": [\n" : " \"%s\": ", key);
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
    const zero_loss_scale *scale = &m->loss_scale;
    const zero_state_layout *l = &m->table.layout;
    const bool is_gpt2 = m->has_shape && m->shape.kind == zero_architectures;
    json_t *const none = json_null();
    const struct {
        const char *key;
        json_t *value;
    } members[] = {
        {"format", json_string(ZERO_MANIFEST_FORMAT)},
        {"version", json_integer(m->has_shape && !is_gpt2 ? 4
                                 : m->kept                ? 3
                                 : is_shared              ? 2
                                                          : 1)},
        {"step", json_integer(m->step)},
        {"samples", json_integer(m->samples)},
        {"updates", json_integer(m->updates)},
        {"skipped", json_integer(m->skipped)},
        {"seed", json_integer(m->seed)},
        {"loss_scale",
         json_pack("{s:f, s:I, s:i}", "scale", (double)scale->scale, "clean_steps",
                   (json_int_t)scale->clean_steps, "hysteresis", scale->hysteresis)},
        {"dtype", json_string(zero_type_name(scale->type))},
        {"digest", json_string(m->digest)},
        {"data", json_string(m->data)},
        {"arithmetic", json_string(m->arithmetic)},
        {is_gpt2 ? "gpt2" : "shape", m->has_shape ? zero_shape_facts(&m->shape) : none},
        {"options", m->options ? json_incref(m->options) : none},
        {"tokenizer", m->has_tokenizer ? file_value(&m->tokenizer) : none},
        {"kept", m->kept ? json_incref(m->kept) : none},
        {"partition",
         json_pack("{s:s, s:i}", "scheme", zero_partition_scheme_name(l->scheme), "ranks",
                   l->n_ranks)},
        {"tp",
         is_shared ? json_pack("{s:i, s:i}", "size", l->tp, "slices", l->slices) : none},
        {"tensors", list_of(m, m->table.n_tensors, tensor_value)},
        {"shards", list_of(m, l->n_ranks, shard_value)},
    };
    char tail[ZERO_MANIFEST_TAIL];
    *out = (zero_bytes){0};
    zero_status st = zero_bytes_append(out, "{\n", 2);
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (st == ZERO_OK && members[i].value != none)
            st = append_member(out, members[i].key, members[i].value);
        json_decref(members[i].value);
    }
    if (st == ZERO_OK) {
        zero_manifest_tail(out->bytes, out->len, tail);
        st = zero_bytes_append(out, tail, strlen(tail));
    }
    if (st != ZERO_OK) zero_bytes_destroy(out);
    return st;
}
