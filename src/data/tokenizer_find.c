#include "data/tokenizer_find.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "data/tokenizer_file.h"
#include "data/tokenizer_json.h"
#include "io/file.h"

#define WHOLE "tokenizer.json"

static const struct {
    const char *vocab, *merges;
} pairs[] = {{"vocab.json", "merges.txt"}, {"encoder.json", "vocab.bpe"}};

enum { N_PAIRS = sizeof pairs / sizeof pairs[0] };

/* "DIR/NAME", where DIR is the directory `path` or that of the file `path`. */
static void beside(const char *path, const char *name, char out[ZERO_STORAGE_PATH])
{
    const char *slash = strrchr(path, '/');
    int n = slash ? (int)(slash - path) + 1 : 0;
    bool is_dir = zero_path_look(path) == ZERO_PATH_OF_DIRECTORY;
    if (is_dir) n = (int)strlen(path);
    snprintf(out, ZERO_STORAGE_PATH, "%.*s%s%.30s", n, path, is_dir ? "/" : "", name);
}

bool zero_tokenizer_beside(const char *path, char found[ZERO_STORAGE_PATH])
{
    beside(path, WHOLE, found);
    if (zero_path_look(found) != ZERO_PATH_OF_NOTHING) return true;
    for (int i = 0; i < N_PAIRS; i++) {
        beside(path, pairs[i].merges, found);
        bool has_merges = zero_path_look(found) != ZERO_PATH_OF_NOTHING;
        beside(path, pairs[i].vocab, found);
        if (has_merges && zero_path_look(found) != ZERO_PATH_OF_NOTHING) return true;
    }
    return false;
}

/* The pair that a file belongs to; -1: none. */
static int pair_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (int i = 0; i < N_PAIRS; i++)
        if (strcmp(name, pairs[i].vocab) == 0 || strcmp(name, pairs[i].merges) == 0)
            return i;
    return -1;
}

static zero_status open_whole(const char *path, zero_tokenizer *out)
{
    zero_bytes text = {0};
    zero_status st = zero_bytes_read_at_most(&text, path, ZERO_TOKENIZER_FILE_MAX);
    if (st == ZERO_OK) st = zero_tokenizer_parse_file(path, text.bytes, text.len, out);
    zero_bytes_destroy(&text);
    return st;
}

static zero_status open_pair(const char *path, int pair, zero_tokenizer *out)
{
    char vocab_path[ZERO_STORAGE_PATH], merges_path[ZERO_STORAGE_PATH];
    zero_bytes vocab = {0}, merges = {0};
    beside(path, pairs[pair].vocab, vocab_path);
    beside(path, pairs[pair].merges, merges_path);
    zero_status st = zero_bytes_read_at_most(&vocab, vocab_path, ZERO_TOKENIZER_FILE_MAX);
    if (st == ZERO_OK)
        st = zero_bytes_read_at_most(&merges, merges_path, ZERO_TOKENIZER_FILE_MAX);
    if (st == ZERO_OK)
        st = zero_tokenizer_from_gpt2(vocab_path, &vocab, merges_path, &merges, out);
    zero_bytes_destroy(&vocab);
    zero_bytes_destroy(&merges);
    return st;
}

zero_status zero_tokenizer_check_path(const char *path)
{
    ZERO_TRY(zero_storage_check_length(path, ZERO_STORAGE_PATH - 32));
    if (zero_path_look(path) != ZERO_PATH_OF_NOTHING) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_INVALID,
        "unknown tokenizer '%s': expected byte, char or bpe:N, as in bpe:512, or the "
        "path of " ZERO_TOKENIZER_FILES ", and there is no such path",
        path);
}

zero_status zero_tokenizer_open(const char *path, zero_tokenizer *out)
{
    char found[ZERO_STORAGE_PATH];
    const char *file = path;
    ZERO_TRY(zero_tokenizer_check_path(path));
    if (zero_path_look(path) == ZERO_PATH_OF_DIRECTORY) {
        if (!zero_tokenizer_beside(path, found))
            return zero_fail(ZERO_ERR_INVALID,
                             "tokenizer '%s': expected " ZERO_TOKENIZER_FILES
                             " in this directory",
                             path);
        file = found;
    }
    int pair = pair_of(file);
    return pair >= 0 ? open_pair(file, pair, out) : open_whole(file, out);
}
