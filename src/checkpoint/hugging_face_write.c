#include "checkpoint/hugging_face.h"
#include "checkpoint/manifest.h"
#include "data/tokenizer_file.h"

/* ---- the tensors ---- */

static int64_t elements_of(const zero_model *model, int tensor)
{
    return model->tensors[tensor].rows * model->tensors[tensor].cols;
}

/* One past the last tensor of the file that begins with tensor `first`: it is full when
 * the next one would exceed the limit, as transformers deals tensors out. */
static int file_end(const zero_hugging_face_export *e, int first)
{
    const int64_t bytes = e->file_bytes > 0 ? e->file_bytes : ZERO_HUGGING_FACE_FILE_BYTES;
    const int64_t most = bytes / (int64_t)zero_type_size(e->type);
    int64_t n = elements_of(e->model, first++);
    while (first < e->model->n_tensors && n + elements_of(e->model, first) <= most)
        n += elements_of(e->model, first++);
    return first;
}

/* The metadata of transformers' files are {"format": "pt"}. Adds the names of tensors
 * [first, end) to `map`. */
static zero_status write_header(const zero_hugging_face_export *e, int first, int end,
                                const char *name, json_t *map, zero_bytes *header,
                                uint64_t *bytes)
{
    const zero_shape *shape = e->model->shape;
    ZERO_FREED zero_safetensors_entry *entries = NULL;
    json_auto_t *texts = json_pack("{s:s}", "format", "pt");
    ZERO_TRY(zero_new(&entries, end - first, "tensors of a file"));
    ZERO_TRY(zero_allocated(texts, "no memory for the header of %s", name));
    for (int i = first; i < end; i++) {
        const zero_tensor *t = &e->model->tensors[i];
        zero_safetensors_entry *entry = &entries[i - first];
        char theirs[ZERO_HUGGING_FACE_NAME];
        zero_hugging_face_name(shape->kind, t->name, theirs);
        ZERO_TRY(zero_allocated(json_object_set_new(map, theirs, json_string(name)) == 0,
                                "no memory for the header of %s", name));
        *entry = (zero_safetensors_entry){
            .name = json_object_iter_key(json_object_iter_at(map, theirs)),
            .type = zero_hugging_face_types[e->type].file};
        entry->n_dims = zero_hugging_face_dims(t, entry->dims);
    }
    ZERO_TRY(zero_safetensors_write_header(end - first, entries, texts, header));
    *bytes = entries[end - first - 1].end;
    return ZERO_OK;
}

/* out[n]: the numbers in the file's type. */
static zero_status round_to(const zero_hugging_face_export *e, int tensor, int64_t n,
                            const float *in, void *out)
{
    for (int64_t i = 0; e->type == ZERO_FP16 && i < n; i++)
        if (fabsf(in[i]) >= 65520.0f) /* it would become infinite */
            return zero_fail(ZERO_ERR_INVALID,
                             "%s has %g, which fp16 cannot hold: export it in bf16 or fp32",
                             e->model->tensors[tensor].name, (double)in[i]);
    zero_convert(ZERO_FP32, e->type, n, in, out);
    return ZERO_OK;
}

/* Blocks are those of a checkpoint, which reads each as a whole. */
static zero_status write_file(const zero_storage_dir *dir,
                              const zero_hugging_face_export *e, int first, int end,
                              const char *name, json_t *map)
{
    const int64_t most = ZERO_EXTENT_MAX;
    ZERO_AT_END(zero_bytes_destroy) zero_bytes header = {0};
    ZERO_AT_END(zero_storage_close_file) zero_storage_file file = {0};
    ZERO_FREED float *block = NULL;
    uint64_t bytes = 0;
    ZERO_TRY(zero_new(&block, 2 * most, "numbers of a file"));
    ZERO_TRY(write_header(e, first, end, name, map, &header, &bytes));
    ZERO_TRY(zero_storage_create(dir, name, bytes, &file));
    ZERO_TRY(zero_storage_write(&file, header.bytes, header.len));
    for (int i = first; i < end; i++)
        for (int64_t at = 0, stop, n = elements_of(e->model, i); at < n; at = stop) {
            stop = zero_min(at + most, n);
            ZERO_TRY(e->weights->fill(e->weights->arg, i, at, stop, block));
            ZERO_TRY(round_to(e, i, stop - at, block, block + most));
            ZERO_TRY(zero_storage_write(&file, block + most,
                                        (size_t)(stop - at) * zero_type_size(e->type)));
        }
    return zero_storage_finish(&file);
}

/* The file with all tensors, or several and the index of them. */
static zero_status write_weights(const zero_storage_dir *dir,
                                 const zero_hugging_face_export *e)
{
    const zero_model *m = e->model;
    char name[64] = ZERO_HUGGING_FACE_MODEL;
    const int64_t size = (int64_t)zero_type_size(e->type);
    int n = 0, k = 0;
    json_auto_t *map = json_object();
    ZERO_AT_END(zero_bytes_destroy) zero_bytes text = {0};
    ZERO_TRY(zero_allocated(map, "no memory for the names of tensors"));
    for (int first = 0; first < m->n_tensors; first = file_end(e, first)) n++;
    for (int first = 0, end; first < m->n_tensors; first = end) {
        end = file_end(e, first);
        if (n > 1) zero_print(name, "model-%05d-of-%05d.safetensors", ++k, n);
        ZERO_TRY(write_file(dir, e, first, end, name, map));
    }
    if (n == 1) return ZERO_OK;
    json_t *index = json_pack("{s:{s:I, s:I}, s:O}", "metadata", "total_parameters",
                              (json_int_t)m->n_params, "total_size",
                              (json_int_t)(m->n_params * size), "weight_map", map);
    ZERO_TRY(zero_hugging_face_print(ZERO_HUGGING_FACE_INDEX, index, &text));
    return zero_storage_put(dir, ZERO_HUGGING_FACE_INDEX, text.bytes, text.len);
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

enum { N_MADE = ZERO_COUNT(made) };

/* Without a tokenizer its kept description is written as it was. */
static zero_status write_others(const zero_storage_dir *dir,
                                const zero_hugging_face_export *e)
{
    const char *name;
    json_t *value;
    for (int i = 0; i < N_MADE; i++) {
        ZERO_AT_END(zero_bytes_destroy) zero_bytes text = {0};
        if (made[i].is_tokenizers && !e->tokenizer) continue;
        ZERO_TRY(made[i].make(e, &text));
        ZERO_TRY(zero_storage_put(dir, made[i].name, text.bytes, text.len));
    }
    json_object_foreach((json_t *)e->kept, name, value)
    {
        bool is_made = false;
        for (int i = 0; i < N_MADE; i++)
            is_made |= zero_same_text(made[i].name, name) &&
                       (!made[i].is_tokenizers || e->tokenizer);
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
    ZERO_INVALID_IF(n == 0 || n > NAME_MAX_BYTES || is_dots ||
                        begin + 1 >= ZERO_STORAGE_PATH,
                    "%.200s: expected the name of a directory to make, of at most %d bytes",
                    path, NAME_MAX_BYTES);
    snprintf(name, NAME_MAX_BYTES + 1, "%.*s", (int)n, path + begin);
    if (begin > 1) begin--; /* without its slash */
    snprintf(parent, ZERO_STORAGE_PATH, "%.*s", (int)begin, path);
    if (begin == 0) snprintf(parent, ZERO_STORAGE_PATH, ".");
    return ZERO_OK;
}

static zero_status stop_at(void *arg, ZERO_UNUSED const char *name)
{
    *(bool *)arg = true;
    return ZERO_OK;
}

/* A name that is taken is found before gigabytes are written. */
static zero_status check_free(const zero_storage_dir *parent, const char *name,
                              const char *path)
{
    ZERO_AT_END(zero_storage_close) zero_storage_dir dir = {0};
    bool has_files = false;
    if (!zero_storage_has(parent, name)) return ZERO_OK;
    if (zero_storage_enter(parent, name, &dir) == ZERO_OK &&
        zero_storage_list(&dir, stop_at, &has_files) == ZERO_OK && !has_files)
        return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "%s exists: remove it, or give the export another name", path);
}

static zero_status lock_alone(const zero_storage_dir *dir)
{
    zero_lock lock;
    ZERO_TRY(zero_lock_take(dir->fd, dir->path, &lock));
    ZERO_FAIL_IF(lock == ZERO_LOCK_BUSY, ZERO_ERR_ENV,
                 "%s: another process writes this export", dir->path);
    return ZERO_OK;
}

/* Removes the leftovers of a crash. Files of a process that is at work stay. */
static zero_status begin(const zero_storage_dir *parent, const char *temporary,
                         zero_storage_dir *dir)
{
    if (zero_storage_has(parent, temporary)) {
        ZERO_AT_END(zero_storage_close) zero_storage_dir old = {0};
        ZERO_TRY(zero_storage_check_removable(parent, temporary));
        ZERO_TRY(zero_storage_enter(parent, temporary, &old));
        ZERO_TRY(lock_alone(&old));
        ZERO_TRY(zero_storage_remove(parent, temporary));
    }
    ZERO_TRY(zero_storage_make_public(parent, temporary, dir));
    return lock_alone(dir);
}

static zero_status write_all(const zero_storage_dir *parent, const char *temporary,
                             const char *name, const zero_storage_dir *dir,
                             const zero_hugging_face_export *e)
{
    ZERO_TRY(write_weights(dir, e));
    ZERO_TRY(write_others(dir, e));
    ZERO_TRY(zero_storage_sync(dir));
    ZERO_TRY(zero_storage_rename(parent, temporary, name));
    return zero_storage_sync(parent);
}

zero_status zero_hugging_face_write(const char *path, const zero_hugging_face_export *e)
{
    char folder[ZERO_STORAGE_PATH], name[NAME_MAX_BYTES + 1];
    char temporary[NAME_MAX_BYTES + 8];
    ZERO_AT_END(zero_storage_close) zero_storage_dir parent = {0}, dir = {0};
    ZERO_TRY(split(path, folder, name));
    zero_print(temporary, ".tmp-%s", name);
    ZERO_TRY(zero_storage_open(folder, &parent));
    ZERO_TRY(check_free(&parent, name, path));
    ZERO_TRY(begin(&parent, temporary, &dir));
    zero_failure failure = zero_failure_keep(write_all(&parent, temporary, name, &dir, e));
    /* The message is the original failure, even if the clean-up fails, too. */
    if (failure.status == ZERO_OK || zero_storage_remove(&parent, temporary) == ZERO_OK)
        return zero_failure_restore(&failure);
    return zero_fail(failure.status, "%s (and %s/%s remains)", failure.text, parent.path,
                     temporary);
}
