#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/number.h"
#include "checkpoint/hugging_face.h"
#include "checkpoint/manifest.h"
#include "data/tokenizer_file.h"

/* ---- the tensors ---- */

/* Blocks are those of a checkpoint, which reads each as a whole; fp32 as the file has it:
 * little-endian. */
#define BLOCK ZERO_EXTENT_MAX

struct block {
    float values[BLOCK];
    unsigned char bytes[BLOCK * sizeof(float)];
};

static zero_status write_tensor(zero_storage_file *file, const zero_weights *weights,
                                int tensor, int64_t n, struct block *block)
{
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t end = zero_min(at + BLOCK, n);
        ZERO_TRY(weights->fill(weights->arg, tensor, at, end, block->values));
        for (int64_t i = 0; i < end - at; i++) {
            uint32_t bits;
            memcpy(&bits, &block->values[i], sizeof bits);
            for (int k = 0; k < 4; k++)
                block->bytes[4 * i + k] = (unsigned char)(bits >> (8 * k));
        }
        ZERO_TRY(
            zero_storage_write(file, block->bytes, (size_t)(end - at) * sizeof(float)));
    }
    return ZERO_OK;
}

/* The metadata of transformers' files are {"format": "pt"}. */
static zero_status write_header(const zero_model *model, zero_bytes *header,
                                uint64_t *bytes)
{
    static const char *const texts[][2] = {{"format", "pt"}};
    int n = model->n_tensors;
    char(*names)[96] = calloc((size_t)n, sizeof *names);
    zero_safetensors_entry *entries = calloc((size_t)n, sizeof *entries);
    zero_status st = zero_allocated(names && entries, "no memory for %d tensors", n);
    for (int i = 0; st == ZERO_OK && i < n; i++) {
        const zero_tensor *t = &model->tensors[i];
        snprintf(names[i], sizeof names[i], "%s%s", ZERO_HUGGING_FACE_PREFIX, t->name);
        entries[i] = (zero_safetensors_entry){.name = names[i], .type = "F32"};
        if (t->decays) entries[i].dims[entries[i].n_dims++] = t->rows;
        entries[i].dims[entries[i].n_dims++] = t->cols;
    }
    if (st == ZERO_OK) st = zero_safetensors_write_header(n, entries, 1, texts, header);
    if (st == ZERO_OK) *bytes = entries[n - 1].end;
    free(names);
    free(entries);
    return st;
}

static zero_status write_model(const zero_storage_dir *dir, const zero_model *model,
                               const zero_weights *weights)
{
    zero_bytes header = {0};
    zero_storage_file file = {0};
    uint64_t bytes;
    struct block *block = malloc(sizeof *block);
    zero_status st =
        zero_allocated(block, "no memory for blocks of %zu bytes", sizeof *block);
    if (st == ZERO_OK) st = write_header(model, &header, &bytes);
    if (st == ZERO_OK) st = zero_storage_create(dir, ZERO_HUGGING_FACE_MODEL, bytes, &file);
    if (st == ZERO_OK) st = zero_storage_write(&file, header.bytes, header.len);
    for (int i = 0; st == ZERO_OK && i < model->n_tensors; i++)
        st = write_tensor(&file, weights, i,
                          model->tensors[i].rows * model->tensors[i].cols, block);
    if (st == ZERO_OK) st = zero_storage_finish(&file);
    zero_storage_close_file(&file);
    zero_bytes_destroy(&header);
    free(block);
    return st;
}

/* ---- the other files ---- */

static zero_status tokenizer_itself(const zero_hugging_face_export *e, zero_bytes *out)
{
    return zero_tokenizer_write(e->tokenizer, out);
}

/* Files that are made, and what they need. */
static const struct {
    const char *name;
    zero_status (*make)(const zero_hugging_face_export *e, zero_bytes *out);
    bool is_tokenizers;
} made[] = {{ZERO_HUGGING_FACE_CONFIG, zero_hugging_face_write_config, false},
            {ZERO_HUGGING_FACE_GENERATION, zero_hugging_face_write_generation, false},
            {ZERO_TOKENIZER_NAME, tokenizer_itself, true},
            {ZERO_HUGGING_FACE_TOKENIZER, zero_hugging_face_write_tokenizer, true}};

enum { N_MADE = sizeof made / sizeof made[0] };

/* Without a tokenizer its kept description is written as it was. */
static zero_status write_others(const zero_storage_dir *dir,
                                const zero_hugging_face_export *e)
{
    const char *name;
    json_t *value;
    for (int i = 0; i < N_MADE; i++) {
        zero_bytes text = {0};
        if (made[i].is_tokenizers && !e->tokenizer) continue;
        zero_status st = made[i].make(e, &text);
        if (st == ZERO_OK) st = zero_storage_put(dir, made[i].name, text.bytes, text.len);
        zero_bytes_destroy(&text);
        ZERO_TRY(st);
    }
    json_object_foreach((json_t *)e->kept, name, value)
    {
        bool is_made = false;
        for (int i = 0; i < N_MADE; i++)
            is_made |=
                strcmp(made[i].name, name) == 0 && (!made[i].is_tokenizers || e->tokenizer);
        if (!is_made)
            ZERO_TRY(zero_storage_put(dir, name, json_string_value(value),
                                      json_string_length(value)));
    }
    return ZERO_OK;
}

/* ---- the directory ---- */

#define NAME_MAX_BYTES 200

/* "a/b/c/" is c in a/b. */
static zero_status split(const char *path, char parent[ZERO_STORAGE_PATH],
                         char name[NAME_MAX_BYTES + 1])
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/') begin--;
    size_t n = end - begin;
    bool is_dots = n <= 2 && strncmp(path + begin, "..", n) == 0;
    if (n == 0 || n > NAME_MAX_BYTES || is_dots || begin + 1 >= ZERO_STORAGE_PATH)
        return zero_fail(
            ZERO_ERR_INVALID,
            "%.200s: expected the name of a directory to make, of at most %d bytes", path,
            NAME_MAX_BYTES);
    snprintf(name, NAME_MAX_BYTES + 1, "%.*s", (int)n, path + begin);
    if (begin > 1) begin--; /* without its slash */
    snprintf(parent, ZERO_STORAGE_PATH, "%.*s", (int)begin, path);
    if (begin == 0) snprintf(parent, ZERO_STORAGE_PATH, ".");
    return ZERO_OK;
}

static zero_status stop_at(void *arg, const char *name)
{
    (void)name;
    *(bool *)arg = true;
    return ZERO_OK;
}

/* A name that is taken is found before gigabytes are written. */
static zero_status check_free(const zero_storage_dir *parent, const char *name,
                              const char *path)
{
    zero_storage_dir dir;
    bool has_files = false;
    if (!zero_storage_has(parent, name)) return ZERO_OK;
    zero_status st = zero_storage_enter(parent, name, &dir);
    if (st == ZERO_OK) {
        st = zero_storage_list(&dir, stop_at, &has_files);
        zero_storage_close(&dir);
    }
    if (st == ZERO_OK && !has_files) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "%s exists: remove it, or give the export another name", path);
}

static zero_status lock_alone(const zero_storage_dir *dir)
{
    zero_lock lock;
    ZERO_TRY(zero_lock_take(dir->fd, dir->path, &lock));
    if (lock != ZERO_LOCK_BUSY) return ZERO_OK;
    return zero_fail(ZERO_ERR_ENV, "%s: another process writes this export", dir->path);
}

/* Removes the leftovers of a crash. Files of a process that is at work stay. */
static zero_status begin(const zero_storage_dir *parent, const char *temporary,
                         zero_storage_dir *dir)
{
    zero_status st = ZERO_OK;
    if (zero_storage_has(parent, temporary)) {
        ZERO_TRY(zero_storage_check_removable(parent, temporary));
        ZERO_TRY(zero_storage_enter(parent, temporary, dir));
        st = lock_alone(dir);
        if (st == ZERO_OK) st = zero_storage_remove(parent, temporary);
        zero_storage_close(dir);
    }
    ZERO_TRY(st);
    ZERO_TRY(zero_storage_make_public(parent, temporary, dir));
    st = lock_alone(dir);
    if (st != ZERO_OK) zero_storage_close(dir);
    return st;
}

zero_status zero_hugging_face_write(const char *path, const zero_hugging_face_export *e)
{
    char folder[ZERO_STORAGE_PATH], name[NAME_MAX_BYTES + 1];
    char temporary[NAME_MAX_BYTES + 8];
    zero_storage_dir parent, dir;
    ZERO_TRY(split(path, folder, name));
    snprintf(temporary, sizeof temporary, ".tmp-%s", name);
    ZERO_TRY(zero_storage_open(folder, &parent));
    zero_status st = check_free(&parent, name, path);
    if (st == ZERO_OK) st = begin(&parent, temporary, &dir);
    if (st == ZERO_OK) {
        st = write_model(&dir, e->model, e->weights);
        if (st == ZERO_OK) st = write_others(&dir, e);
        if (st == ZERO_OK) st = zero_storage_sync(&dir);
        if (st == ZERO_OK) st = zero_storage_rename(&parent, temporary, name);
        if (st == ZERO_OK) st = zero_storage_sync(&parent);
        /* The message is the original failure, even if the clean-up fails, too. */
        zero_failure failure = zero_failure_keep(st);
        if (st != ZERO_OK && zero_storage_remove(&parent, temporary) != ZERO_OK)
            (void)zero_fail(st, "%s (and %s/%s remains)", failure.text, parent.path,
                            temporary);
        else
            st = zero_failure_restore(&failure);
        zero_storage_close(&dir);
    }
    zero_storage_close(&parent);
    return st;
}
