/* hugging_face_test.h - a small GPT-2 with known values, and a directory for its files. */
#pragma once

#include "support/built.h"
#include "support/table.h"
#include <unistd.h>

#include "base/fail.h"
#include "checkpoint/hugging_face.h"

static const zero_shape shape = {
    .layers = 2, .hidden = 24, .heads = 3, .seq = 10, .vocab = 71, .dropout = 0.1f};

#define DIR_NAME  "out"
#define FILE_NAME "made.safetensors"

/* The status that a row of a table names. */
static inline zero_status status_of(const char *word)
{
    return strcmp(word, "ok") == 0        ? ZERO_OK
           : strcmp(word, "invalid") == 0 ? ZERO_ERR_INVALID
           : strcmp(word, "format") == 0  ? ZERO_ERR_FORMAT
                                          : ZERO_ERR_UNSUPPORTED;
}

/* Element i of a tensor: exact in bf16, and different from element to element. */
static inline float value_of(int tensor, int64_t i)
{
    return (float)((i * 7 + tensor * 31) % 255 - 127) / 64.0f;
}

static inline zero_status fill(void *arg, int tensor, int64_t begin, int64_t end,
                               float *out)
{
    (void)arg;
    for (int64_t i = begin; i < end; i++) out[i - begin] = value_of(tensor, i);
    return ZERO_OK;
}

static const zero_weights values = {.fill = fill};

/* Writes the model of known values to DIR_NAME or a path below it. */
static inline zero_status write_to(const char *path, const zero_model *model,
                                   const zero_weights *weights, const zero_tokenizer *tok)
{
    return zero_hugging_face_write(
        path, &(zero_hugging_face_export){model, weights, tok, NULL, 0, ZERO_FP32});
}

static inline void check_ok(zero_status st)
{
    assert_ok(st);
}

static inline int64_t size_of(const zero_tensor *t)
{
    return t->rows * t->cols;
}

static inline void assert_values(zero_hugging_face *file, const zero_model *model)
{
    zero_weights weights = zero_hugging_face_weights(file);
    for (int t = 0; t < model->n_tensors; t++) {
        int64_t n = size_of(&model->tensors[t]);
        float *all = malloc((size_t)n * sizeof *all);
        assert_non_null(all);
        for (int64_t cut = 0; cut < n; cut += 1 + n / 3) { /* any cut gives the same */
            check_ok(weights.fill(weights.arg, t, 0, cut, all));
            check_ok(weights.fill(weights.arg, t, cut, n, all + cut));
            for (int64_t i = 0; i < n; i++) assert_true(all[i] == value_of(t, i));
        }
        free(all);
    }
}

/* The table of the written file, and how many bytes follow its header. */
static inline uint64_t read_table(zero_safetensors *table)
{
    zero_file file;
    zero_bytes header = {0};
    check_ok(zero_file_open(DIR_NAME "/model.safetensors", &file));
    check_ok(zero_safetensors_read_header(&file, &header));
    check_ok(zero_safetensors_parse("", file.bytes, &header, table));
    uint64_t data = file.bytes - header.len;
    zero_bytes_destroy(&header);
    zero_file_close(&file);
    return data;
}

/* A tensor of [rows, cols], or [cols] if rows is 0. */
static inline void assert_entry(const zero_safetensors *table, const char *name,
                                int64_t rows, int64_t cols)
{
    const zero_safetensors_entry *e = zero_safetensors_find(table, name);
    if (!e) fail_msg("%s is missing", name);
    if (strcmp(e->type, "F32") != 0 || e->n_dims != 1 + (rows > 0) ||
        e->dims[0] != (rows ? rows : cols) || (rows && e->dims[1] != cols))
        fail_msg("%s has another shape", name);
}

static inline void remove_dir(const char *name)
{
    zero_storage_dir here;
    check_ok(zero_storage_open(".", &here));
    check_ok(zero_storage_remove(&here, name));
    zero_storage_close(&here);
}

static inline bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static char work[] = "/tmp/hugging-face-XXXXXX";

static inline int enter(void **state)
{
    (void)state;
    return mkdtemp(work) && chdir(work) == 0 ? 0 : -1;
}

static inline int leave(void **state)
{
    (void)state;
    unlink(FILE_NAME);
    return chdir("/") == 0 && rmdir(work) == 0 ? 0 : -1;
}
