#include "checkpoint/hugging_face.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/fail.h"
#include "base/half.h"
#include "base/number.h"
#include "io/file.h"

#define AT_ONCE 16384 /* elements or bytes of a buffer on the stack */

/* ---- values ---- */

/* Element i of little-endian bytes. */
static float value_at(const unsigned char *bytes, zero_type type, int64_t i)
{
    const unsigned char *at = bytes + i * (int64_t)zero_type_size(type);
    uint32_t low = at[0] | (uint32_t)at[1] << 8;
    if (type == ZERO_BF16) return zero_from_bf16((uint16_t)low);
    if (type == ZERO_FP16) return zero_from_fp16((uint16_t)low);
    uint32_t bits = low | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static zero_status not_finite(const zero_hugging_face *f, const zero_tensor *t,
                              int64_t element, float value)
{
    if (!t->decays)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: %s[%" PRId64 "] is %g: expected finite numbers", f->file.path,
                         t->name, element, (double)value);
    return zero_fail(
        ZERO_ERR_FORMAT, "%s: %s[%" PRId64 ", %" PRId64 "] is %g: expected finite numbers",
        f->file.path, t->name, element / t->cols, element % t->cols, (double)value);
}

/* Reads n <= AT_ONCE elements of a tensor, from `begin` on. */
static zero_status read_some(const zero_hugging_face *f, int tensor, int64_t begin,
                             int64_t n, float *out)
{
    unsigned char bytes[AT_ONCE * sizeof(float)];
    const zero_hugging_face_place *place = &f->places[tensor];
    size_t size = zero_type_size(place->type);
    ZERO_TRY(zero_file_read(&f->file, place->at + (uint64_t)begin * size, bytes,
                            (size_t)n * size));
    for (int64_t i = 0; i < n; i++) {
        out[i] = value_at(bytes, place->type, i);
        if (!isfinite(out[i]))
            return not_finite(f, &f->model->tensors[tensor], begin + i, out[i]);
    }
    return ZERO_OK;
}

static zero_status fill(void *arg, int tensor, int64_t begin, int64_t end, float *out)
{
    for (int64_t at = begin; at < end; at += AT_ONCE) {
        int64_t n = zero_min(end - at, AT_ONCE);
        ZERO_TRY(read_some(arg, tensor, at, n, out + (at - begin)));
    }
    return ZERO_OK;
}

zero_weights zero_hugging_face_weights(zero_hugging_face *file)
{
    return (zero_weights){.fill = fill, .arg = file};
}

zero_status zero_hugging_face_fingerprint(const zero_hugging_face *f, uint64_t *hash)
{
    unsigned char first[4096];
    uint64_t sum = XXH3_64bits(&f->file.bytes, sizeof f->file.bytes);
    for (int i = 0; i < f->model->n_tensors; i++) {
        const zero_tensor *t = &f->model->tensors[i];
        const uint64_t place[] = {f->places[i].at, (uint64_t)f->places[i].type};
        size_t all = (size_t)(t->rows * t->cols) * zero_type_size(f->places[i].type);
        size_t bytes = zero_min_size(all, sizeof first);
        ZERO_TRY(zero_file_read(&f->file, place[0], first, bytes));
        sum = XXH3_64bits_withSeed(place, sizeof place, sum);
        sum = XXH3_64bits_withSeed(first, bytes, sum);
    }
    *hash = sum;
    return ZERO_OK;
}

/* ---- opening ---- */

/* A head may be stored beside the embedding, and must be equal to it. */
static zero_status check_head(const zero_hugging_face *f, zero_hugging_face_place head)
{
    const zero_tensor *wte = &f->model->tensors[ZERO_WTE];
    zero_hugging_face_place own = f->places[ZERO_WTE];
    size_t bytes = (size_t)(wte->rows * wte->cols) * zero_type_size(own.type);
    bool same = head.type == own.type;
    for (size_t k = 0; same && k < bytes; k += AT_ONCE) {
        unsigned char a[AT_ONCE], b[AT_ONCE];
        size_t n = zero_min_size(bytes - k, AT_ONCE);
        ZERO_TRY(zero_file_read(&f->file, own.at + k, a, n));
        ZERO_TRY(zero_file_read(&f->file, head.at + k, b, n));
        same = memcmp(a, b, n) == 0;
    }
    if (same) return ZERO_OK;
    return zero_fail(ZERO_ERR_UNSUPPORTED,
                     "%s: lm_head.weight is not wte.weight: this program's models have one "
                     "matrix for both",
                     f->file.path);
}

/* The shape in the config.json beside the file; all zeros without one. */
static zero_status read_config(const char *path, zero_gpt2_shape *shape)
{
    zero_bytes text = {0};
    *shape = (zero_gpt2_shape){0};
    if (zero_path_look(path) == ZERO_PATH_OF_NOTHING) return ZERO_OK;
    zero_status st = zero_bytes_read(&text, path);
    if (st == ZERO_OK) st = zero_hugging_face_read_config(path, &text, shape);
    zero_bytes_destroy(&text);
    return st;
}

/* The path of the config.json beside a file. */
static void config_beside(const char *path, char config[ZERO_STORAGE_PATH])
{
    const char *slash = strrchr(path, '/');
    snprintf(config, ZERO_STORAGE_PATH, "%.*s%s", slash ? (int)(slash + 1 - path) : 0, path,
             ZERO_HUGGING_FACE_CONFIG);
}

/* Tensors are compared first. They do not show the number of heads, so that is config.json's. */
static zero_status compare_shape(const char *path, const zero_safetensors *table,
                                 const zero_model *model)
{
    char config[ZERO_STORAGE_PATH];
    zero_gpt2_shape said, found = zero_hugging_face_shape(table);
    config_beside(path, config);
    ZERO_TRY(read_config(config, &said));
    found.heads = said.heads;
    ZERO_TRY(zero_hugging_face_compare(path, &found, model->shape));
    return zero_hugging_face_compare(config, &said, model->shape);
}

static zero_status check(zero_hugging_face *f, const zero_safetensors *table)
{
    zero_hugging_face_place head;
    ZERO_TRY(compare_shape(f->file.path, table, f->model));
    ZERO_TRY(zero_hugging_face_match(f->file.path, table, f->model, f->places, &head));
    return head.at > 0 ? check_head(f, head) : ZERO_OK;
}

static zero_status read_table(const zero_file *file, zero_safetensors *table)
{
    zero_bytes header = {0};
    zero_status st = zero_safetensors_read_header(file, &header);
    if (st == ZERO_OK) st = zero_safetensors_parse(file->path, file->bytes, &header, table);
    zero_bytes_destroy(&header);
    return st;
}

static zero_status find_places(zero_hugging_face *f)
{
    zero_safetensors table = {0};
    f->places = calloc((size_t)f->model->n_tensors, sizeof *f->places);
    if (!f->places)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for %d tensors", f->model->n_tensors);
    zero_status st = read_table(&f->file, &table);
    if (st == ZERO_OK) st = check(f, &table);
    zero_safetensors_destroy(&table);
    return st;
}

static zero_status open_file(const char *path, zero_file *file)
{
    char inner[ZERO_STORAGE_PATH];
    if (zero_path_look(path) != ZERO_PATH_OF_DIRECTORY) return zero_file_open(path, file);
    snprintf(inner, sizeof inner, "%s/%s", path, ZERO_HUGGING_FACE_MODEL);
    return zero_file_open(inner, file);
}

zero_status zero_hugging_face_open(const char *path, const zero_model *model,
                                   zero_hugging_face *file)
{
    zero_hugging_face f = {.model = model};
    zero_status st = open_file(path, &f.file);
    if (st == ZERO_OK) st = find_places(&f);
    if (st == ZERO_OK)
        *file = f;
    else
        zero_hugging_face_close(&f);
    return st;
}

void zero_hugging_face_close(zero_hugging_face *file)
{
    zero_file_close(&file->file);
    free(file->places);
    *file = (zero_hugging_face){0};
}

zero_status zero_hugging_face_find_shape(const char *path, zero_gpt2_shape *shape)
{
    char config[ZERO_STORAGE_PATH];
    zero_file file = {0};
    zero_safetensors table = {0};
    zero_gpt2_shape said = {0};
    zero_status st = open_file(path, &file);
    if (st == ZERO_OK) st = read_table(&file, &table);
    config_beside(file.path, config);
    if (st == ZERO_OK) st = read_config(config, &said);
    if (st == ZERO_OK) {
        *shape = zero_hugging_face_shape(&table);
        shape->heads = said.heads;
    }
    zero_safetensors_destroy(&table);
    zero_file_close(&file);
    return st;
}
