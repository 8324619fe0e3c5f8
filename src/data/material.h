/* material.h - the bytes that a corpus is made of: the text or the tokens of --data, and
 * after them those for validation if they are not the last tenth. */
#pragma once

#include "base/listener.h"
#include "data/tokens.h"
#include "io/file_list.h"

/* The files of an option, all of one format. */
typedef struct {
    zero_files files;
    zero_tokens_format format;
    uint64_t bytes; /* that their texts or tokens take in memory */
} zero_listed;

typedef struct {
    zero_bytes all;
    size_t n_train; /* bytes of --data, for training */
    bool is_split;  /* the bytes after them are for validation */
} zero_material;

/* Lists the files that `spec` names, as zero_files_list(), and looks into each: errors are
 * zero_tokens_detect()'s, ZERO_ERR_FORMAT for files of several formats, and for one that is
 * not text. In a directory such a file is left out, and the listener hears of it. */
zero_status zero_material_list(const char *option, const char *others, const char *spec,
                               int token_bytes, const zero_listener *listener,
                               zero_listed *listed);
void zero_listed_close(zero_listed *listed); /* accepts a zeroed one */

/* Appends files begin to end - 1. The byte order mark of a text is left out. */
zero_status zero_material_read(zero_material *m, const zero_listed *listed, int64_t begin,
                               int64_t end, zero_tokens_limit limit);
