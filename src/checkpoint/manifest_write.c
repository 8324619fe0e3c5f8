#include "checkpoint/manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "nn/model.h"

void zero_shard_name(int rank, int n_ranks, char name[64])
{
    snprintf(name, 64, "shard-%05d-of-%05d.safetensors", rank, n_ranks);
}

static zero_status append_text(zero_bytes *out, const char *text)
{
    return zero_bytes_append(out, text, strlen(text));
}

/* Takes over the value; NULL means that there was no memory for it. */
static zero_status append_value(zero_bytes *out, json_t *value)
{
    const size_t flags = JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17);
    char *text = value ? json_dumps(value, flags) : NULL;
    zero_status st = text ? append_text(out, text)
                          : zero_fail(ZERO_ERR_NOMEM, "no memory for a manifest");
    free(text);
    json_decref(value);
    return st;
}

static zero_status append_member(zero_bytes *out, const char *key, json_t *value)
{
    char name[64];
    snprintf(name, sizeof name, " \"%s\": ", key);
    zero_status st = append_text(out, name);
    if (st != ZERO_OK) {
        json_decref(value);
        return st;
    }
    ZERO_TRY(append_value(out, value));
    return append_text(out, ",\n");
}

static json_t *file_value(const zero_manifest_file *file)
{
    return json_pack("{s:o, s:s}", "bytes", json_integer((int64_t)file->bytes), "checksum",
                     file->checksum);
}

static zero_status append_numbers(const zero_manifest *m, zero_bytes *out)
{
    const struct {
        const char *key;
        int64_t value;
    } wholes[] = {{"version", m->kept                                 ? 3
                              : zero_state_table_is_shared(&m->table) ? 2
                                                                      : 1},
                  {"step", m->step},
                  {"samples", m->samples},
                  {"updates", m->updates},
                  {"skipped", m->skipped},
                  {"seed", m->seed}};
    for (size_t i = 0; i < sizeof wholes / sizeof wholes[0]; i++)
        ZERO_TRY(append_member(out, wholes[i].key, json_integer(wholes[i].value)));
    ZERO_TRY(
        append_member(out, "loss_scale",
                      json_pack("{s:f, s:o, s:i}", "scale", (double)m->loss_scale.scale,
                                "clean_steps", json_integer(m->loss_scale.clean_steps),
                                "hysteresis", m->loss_scale.hysteresis)));
    ZERO_TRY(append_member(out, "dtype", json_string(zero_type_name(m->loss_scale.type))));
    ZERO_TRY(append_member(out, "digest", json_string(m->digest)));
    ZERO_TRY(append_member(out, "data", json_string(m->data)));
    return append_member(out, "arithmetic", json_string(m->arithmetic));
}

static zero_status append_choices(const zero_manifest *m, zero_bytes *out)
{
    if (m->has_gpt2)
        ZERO_TRY(append_member(
            out, "gpt2",
            json_pack("{s:o, s:o, s:o, s:o, s:o}", "layers", json_integer(m->gpt2.layers),
                      "hidden", json_integer(m->gpt2.hidden), "heads",
                      json_integer(m->gpt2.heads), "seq", json_integer(m->gpt2.seq),
                      "vocab", json_integer(m->gpt2.vocab))));
    if (m->options) ZERO_TRY(append_member(out, "options", json_incref(m->options)));
    if (m->has_tokenizer)
        ZERO_TRY(append_member(out, "tokenizer", file_value(&m->tokenizer)));
    if (m->kept) ZERO_TRY(append_member(out, "kept", json_incref(m->kept)));
    const zero_state_layout *l = &m->table.layout;
    json_t *partition = json_pack(
        "{s:s, s:i}", "scheme", zero_partition_scheme_name(l->scheme), "ranks", l->n_ranks);
    ZERO_TRY(append_member(out, "partition", partition));
    if (!zero_state_table_is_shared(&m->table)) return ZERO_OK;
    return append_member(out, "tp",
                         json_pack("{s:i, s:i}", "size", l->tp, "slices", l->slices));
}

/* A list with one value per line. */
static zero_status append_list(const zero_manifest *m, zero_bytes *out, const char *key,
                               int n, json_t *(*value)(const zero_manifest *m, int i))
{
    char name[64];
    snprintf(name, sizeof name, " \"%s\": [\n", key);
    ZERO_TRY(append_text(out, name));
    for (int i = 0; i < n; i++) {
        ZERO_TRY(append_text(out, "  "));
        ZERO_TRY(append_value(out, value(m, i)));
        ZERO_TRY(append_text(out, i < n - 1 ? ",\n" : "\n"));
    }
    return append_text(out, " ],\n");
}

static json_t *tensor_value(const zero_manifest *m, int i)
{
    const zero_tensor *t = &m->table.tensors[i];
    if (!zero_state_table_is_shared(&m->table))
        return json_pack("[s, o, o, i]", t->name, json_integer(t->rows),
                         json_integer(t->cols), t->group);
    return json_pack("[s, o, o, i, s, i]", t->name, json_integer(t->rows),
                     json_integer(t->cols), t->group, zero_manifest_cut_name(t->cut),
                     (int)zero_cut_parts(t));
}

static json_t *shard_value(const zero_manifest *m, int i)
{
    return file_value(&m->shards[i]);
}

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

static zero_status write_all(const zero_manifest *m, zero_bytes *out)
{
    char tail[ZERO_MANIFEST_TAIL];
    ZERO_TRY(append_text(out, "{\n"));
    ZERO_TRY(append_member(out, "format", json_string(ZERO_MANIFEST_FORMAT)));
    ZERO_TRY(append_numbers(m, out));
    ZERO_TRY(append_choices(m, out));
    ZERO_TRY(append_list(m, out, "tensors", m->table.n_tensors, tensor_value));
    ZERO_TRY(append_list(m, out, "shards", m->table.layout.n_ranks, shard_value));
    zero_manifest_tail(out->bytes, out->len, tail);
    return append_text(out, tail);
}

zero_status zero_manifest_write(const zero_manifest *m, zero_bytes *out)
{
    *out = (zero_bytes){0};
    zero_status st = write_all(m, out);
    if (st != ZERO_OK) zero_bytes_destroy(out);
    return st;
}
