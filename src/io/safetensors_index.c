/* Tensors in several files, and the index that says which file has which. */

#include "base/grow.h"
#include "io/json_input.h"
#include "io/safetensors.h"

/* ---- the index ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static zero_status take_files(const char *path, zero_safetensors_index *index)
{
    const char *tensor, *name;
    json_t *value;
    json_t *map = json_object_get(index->root, "weight_map");
    json_object_foreach(map, tensor, value)
    {
        ZERO_TRY(zero_json_text(path, map, tensor, &name));
        /* A name within the index' own directory. */
        ZERO_FORMAT_IF(strlen(name) - 1 >= ZERO_SAFETENSORS_FILE ||
                           zero_same_text(name, ".") || zero_same_text(name, "..") ||
                           strchr(name, '/'),
                       "%.500s: \"weight_map\": expected the name of a file beside the "
                       "index, of at most %d bytes, found \"%s\"",
                       path, ZERO_SAFETENSORS_FILE, ZERO_SHOWN_SHORT(name));
        index->files[index->n_files++] = name;
    }
    /* Sorts the names, and keeps one of each. */
    int n = 0;
    zero_sort(index->files, index->n_files, by_name);
    for (int i = 0; i < index->n_files; i++)
        if (n == 0 || !zero_same_text(index->files[n - 1], index->files[i]))
            index->files[n++] = index->files[i];
    index->n_files = n;
    ZERO_FORMAT_IF(!(index->n_files > 0 && index->n_files <= ZERO_SAFETENSORS_FILES),
                   "%.500s: \"weight_map\": expected 1 to %d files, found %d", path,
                   ZERO_SAFETENSORS_FILES, index->n_files);
    return ZERO_OK;
}

zero_status zero_safetensors_read_index(const char *path, const zero_bytes *text,
                                        zero_safetensors_index *index)
{
    ZERO_AT_END(zero_safetensors_destroy_index) zero_safetensors_index read = {0};
    const json_t *map;
    ZERO_TRY(zero_json_parse(path, text->bytes, text->len, &read.root));
    ZERO_TRY(zero_json_object(path, read.root, "weight_map", &map));
    ZERO_TRY(zero_new(&read.files, json_object_size(map), "files of an index"));
    ZERO_TRY(take_files(path, &read));
    ZERO_GIVE(index, read);
    return ZERO_OK;
}

void zero_safetensors_destroy_index(zero_safetensors_index *index)
{
    free(index->files);
    json_decref(index->root);
    *index = (zero_safetensors_index){0};
}

/* ---- one table of several files ---- */

zero_status zero_safetensors_add(const char *path, const zero_safetensors *part, int file,
                                 zero_safetensors *all)
{
    size_t n = (size_t)all->n + (size_t)part->n + 1;
    zero_safetensors_entry *entries = realloc(all->entries, n * sizeof *entries);
    if (entries) all->entries = entries;
    if (!all->root) all->root = json_object();
    ZERO_FAIL_IF(!entries || !all->root, ZERO_ERR_NOMEM,
                 "no memory for a table of %zu tensors", n);
    for (int i = 0; i < part->n; i++) {
        const zero_safetensors_entry *e = &part->entries[i];
        json_t *tensor = json_object_get(part->root, e->name);
        ZERO_FORMAT_IF(json_object_get(all->root, e->name),
                       "%.500s: tensor \"%s\" is in another file, too", path,
                       ZERO_SHOWN_SHORT(e->name));
        bool is_set =
            json_object_set(all->root, e->name, tensor) == 0 &&
            json_object_set_new(tensor, ZERO_SAFETENSORS_PLACE, json_integer(all->n)) == 0;
        ZERO_FAIL_IF(!is_set, ZERO_ERR_NOMEM, "no memory for a table of %d tensors",
                     all->n + 1);
        zero_safetensors_entry *to = &all->entries[all->n++];
        *to = *e;
        to->name = json_object_iter_key(json_object_iter_at(all->root, e->name));
        to->file = file;
    }
    return ZERO_OK;
}

zero_status zero_safetensors_under(const zero_safetensors *all, const char *prefix,
                                   zero_safetensors *part)
{
    ZERO_AT_END(zero_safetensors_destroy) zero_safetensors t = {.root = json_object()};
    const size_t len = strlen(prefix);
    ZERO_TRY(zero_new(&t.entries, all->n + 1, "tensors of a file"));
    for (int i = 0; i < all->n; i++) {
        zero_safetensors_entry *to = &t.entries[t.n];
        *to = all->entries[i];
        if (strncmp(to->name, prefix, len) != 0) continue;
        to->name += len;
        json_t *place = json_pack("{s:i}", ZERO_SAFETENSORS_PLACE, t.n++);
        ZERO_TRY(zero_allocated(json_object_set_new(t.root, to->name, place) == 0,
                                "no memory for a table of %d tensors", t.n));
    }
    ZERO_GIVE(part, t);
    return ZERO_OK;
}

zero_status zero_safetensors_check_index(const char *path,
                                         const zero_safetensors_index *index,
                                         const zero_safetensors *all)
{
    const char *name;
    json_t *value;
    json_t *map = json_object_get(index->root, "weight_map");
    json_object_foreach(map, name, value)
    {
        const zero_safetensors_entry *e = zero_safetensors_find(all, name);
        if (e && zero_same_text(index->files[e->file], json_string_value(value))) continue;
        return zero_fail(
            ZERO_ERR_FORMAT,
            "%.500s: \"weight_map\": the file \"%s\" does not have the tensor \"%s\"", path,
            ZERO_SHOWN_SHORT(json_string_value(value)), ZERO_SHOWN_SHORT(name));
    }
    ZERO_FORMAT_IF(
        (size_t)all->n != json_object_size(map),
        "%.500s: \"weight_map\": expected the %d tensors of its files, found %zu of them",
        path, all->n, json_object_size(map));
    return ZERO_OK;
}
