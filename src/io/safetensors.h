/* safetensors.h - tensors in a file, after a header in JSON.
 *
 *     8 bytes    N, the length of the header, little-endian; at most 10^8
 *     N bytes    {"__metadata__": {"key": "text"}, "name": {"dtype": "F32", "shape": [2,
 *                3],
 *                 "data_offsets": [begin, end]}, ...} and spaces up to a multiple of 8
 *     data       the tensors end to end: no hole, no overlap, nothing after the last
 *
 * Numbers are little-endian, arrays row-major. Headers come from outside: they are checked
 * against the file's size before they are used. Nothing here is collective. Source:
 * huggingface/safetensors, README, "Format". */
#pragma once

#include <jansson.h>

#include "io/bytes.h"

#define ZERO_SAFETENSORS_HEADER 100000000 /* bytes, at most */
#define ZERO_SAFETENSORS_DIMS   8
#define ZERO_SAFETENSORS_FILES  1000 /* that share the tensors of a model, at most */
#define ZERO_SAFETENSORS_FILE   200  /* bytes of the name of one, at most */

typedef struct {
    const char *name;
    const char *type; /* "F32", "BF16", ... */
    int n_dims;
    int64_t dims[ZERO_SAFETENSORS_DIMS];
    int64_t n;           /* elements */
    uint64_t begin, end; /* bytes, from the start of the file */
    int file;            /* of those that share the tensors; 0 if there is one */
} zero_safetensors_entry;

typedef struct {
    zero_safetensors_entry *entries; /* in the order of the data; owned */
    int n;
    json_t *root; /* owned; names live in it */
} zero_safetensors;

/* Appends the 8 + N bytes of an open file to *header. ZERO_ERR_FORMAT if the file is too
 * short for them or N is out of range; ZERO_ERR_IO. */
zero_status zero_safetensors_read_header(const zero_file *file, zero_bytes *header);

/* The table that such bytes describe. ZERO_ERR_FORMAT, naming file, tensor and reason. */
zero_status zero_safetensors_parse(const char *path, uint64_t file_bytes,
                                   const zero_bytes *header, zero_safetensors *table);
void zero_safetensors_destroy(zero_safetensors *table); /* accepts a zeroed one */

/* The entry of that name, or NULL. */
const zero_safetensors_entry *zero_safetensors_find(const zero_safetensors *table,
                                                    const char *name);
/* A text of "__metadata__", or NULL. */
const char *zero_safetensors_metadata(const zero_safetensors *table, const char *key);

/* ---- tensors in several files (safetensors_index.c) ----
 *
 *     model.safetensors.index.json    {"weight_map": {"wte.weight":
 *                                     "model-00001-of-00002.safetensors", ...}, "metadata":
 *                                     {...}}; other members say nothing that is needed */
typedef struct {
    const char **files; /* [n_files] by their names, ascending; owned */
    int n_files;
    json_t *root; /* owned; names live in it */
} zero_safetensors_index;

/* The files of an index, which lie beside it. ZERO_ERR_FORMAT. */
zero_status zero_safetensors_read_index(const char *path, const zero_bytes *text,
                                        zero_safetensors_index *index);
/* Accepts a zeroed one. */
void zero_safetensors_destroy_index(zero_safetensors_index *index);

/* Adds the tensors of files[file] to a table of all; a zeroed one is empty. Nothing is
 * found in `part` any more: destroy it. ZERO_ERR_FORMAT for a tensor that the table has
 * already. `path` is the file's. */
zero_status zero_safetensors_add(const char *path, const zero_safetensors *part, int file,
                                 zero_safetensors *all);

/* A table of the tensors whose names begin with `prefix`, without it. `all` outlives it. */
zero_status zero_safetensors_under(const zero_safetensors *all, const char *prefix,
                                   zero_safetensors *part);

/* ZERO_ERR_FORMAT unless the files have the tensors that the index says, and no others. */
zero_status zero_safetensors_check_index(const char *path,
                                         const zero_safetensors_index *index,
                                         const zero_safetensors *all);

/* Appends the 8 + N bytes for tensors in the order given. Of each entry name, type, n_dims
 * and dims are read; n, begin and end are set, as a reader will find them. `texts` is an
 * object of texts, the "__metadata__"; NULL: none. */
zero_status zero_safetensors_write_header(int n, zero_safetensors_entry *entries,
                                          const json_t *texts, zero_bytes *header);

/* ---- for the files of this folder ---- */

#define ZERO_SAFETENSORS_PREFIX   8 /* bytes that hold N */
#define ZERO_SAFETENSORS_METADATA "__metadata__"
/* The key, in each tensor's object, of its place in entries[]. No file can have it there: a
 * tensor has three keys and no other. */
#define ZERO_SAFETENSORS_PLACE "#"

/* Sets n, and *bytes of the data, from type and dims. Returns what is wrong, or NULL. */
const char *zero_safetensors_measure(zero_safetensors_entry *entry, uint64_t *bytes);
