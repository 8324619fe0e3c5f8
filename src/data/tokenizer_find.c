#include "data/tokenizer_find.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "data/stranger.h"
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

/* Other programs' tokenizers and halves of a pair. Without words the first bytes say what
 * it is. */
static const struct {
    const char *name, *words;
} strangers[] = {
    {"tokenizer.model", NULL},
    {"tiktoken.model", NULL},
    {"spiece.model", NULL},
    {"sentencepiece.bpe.model", NULL},
    {"qwen.tiktoken", NULL},
    {"tekken.json", "this is Mistral's tekken: transformers makes a tokenizer.json of it"},
    {"vocab.txt", "this is a vocabulary of WordPiece, which this program does not read"},
    {"vocab.json", "its merges.txt is missing"},
    {"encoder.json", "its vocab.bpe is missing"},
    {"merges.txt", "its vocab.json is missing"},
};

static zero_status look_at(const char *path)
{
    zero_file file;
    unsigned char bytes[ZERO_STRANGER_BYTES];
    size_t len = 0;
    ZERO_TRY(zero_file_open(path, &file));
    zero_status st = zero_file_read_some(&file, 0, bytes, sizeof bytes, &len);
    zero_file_close(&file);
    ZERO_TRY(st);
    return zero_stranger_check(path, bytes, len, true, "a tokenizer.json");
}

void zero_tokenizer_name_stranger(const char *path, char named[ZERO_TOKENIZER_NAMED])
{
    char found[ZERO_STORAGE_PATH];
    named[0] = '\0';
    for (size_t i = 0; !named[0] && i < sizeof strangers / sizeof strangers[0]; i++) {
        const char *words = strangers[i].words;
        beside(path, strangers[i].name, found);
        if (zero_path_look(found) == ZERO_PATH_OF_NOTHING) continue;
        if (words)
            snprintf(named, ZERO_TOKENIZER_NAMED, "; %.250s: %s", found, words);
        else if (look_at(found) != ZERO_OK)
            snprintf(named, ZERO_TOKENIZER_NAMED, "; %.390s", zero_last_error());
    }
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

/* Reads the files beside the tokenizer `path`. The caller destroys them, also after a
 * failure. */
static zero_status read_beside(const char *path, bool is_pair, zero_beside *b)
{
    static const char *const names[ZERO_BESIDE_FILES] = {
        "tokenizer_config.json", "added_tokens.json", "special_tokens_map.json"};
    *b = (zero_beside){.is_pair = is_pair};
    for (int i = 0; i < ZERO_BESIDE_FILES; i++) {
        beside(path, names[i], b->files[i].path);
        b->files[i].exists = zero_path_look(b->files[i].path) != ZERO_PATH_OF_NOTHING;
        if (b->files[i].exists)
            ZERO_TRY(zero_bytes_read_at_most(&b->files[i].text, b->files[i].path,
                                             ZERO_TOKENIZER_FILE_MAX));
    }
    return ZERO_OK;
}

static zero_status open_whole(const char *path, const zero_beside *b, zero_tokenizer *out)
{
    zero_bytes text = {0};
    zero_status st = zero_bytes_read_at_most(&text, path, ZERO_TOKENIZER_FILE_MAX);
    if (st == ZERO_OK)
        st = zero_stranger_check(path, text.bytes, text.len, true, "a tokenizer.json");
    if (st == ZERO_OK) st = zero_tokenizer_parse_beside(path, text.bytes, text.len, b, out);
    zero_bytes_destroy(&text);
    return st;
}

static zero_status open_pair(const char *path, int pair, const zero_beside *b,
                             zero_tokenizer *out)
{
    char vocab_path[ZERO_STORAGE_PATH], merges_path[ZERO_STORAGE_PATH];
    zero_bytes vocab = {0}, merges = {0};
    beside(path, pairs[pair].vocab, vocab_path);
    beside(path, pairs[pair].merges, merges_path);
    zero_status st = zero_bytes_read_at_most(&vocab, vocab_path, ZERO_TOKENIZER_FILE_MAX);
    if (st == ZERO_OK)
        st = zero_bytes_read_at_most(&merges, merges_path, ZERO_TOKENIZER_FILE_MAX);
    if (st == ZERO_OK)
        st = zero_tokenizer_from_gpt2(vocab_path, &vocab, merges_path, &merges, b, out);
    zero_bytes_destroy(&vocab);
    zero_bytes_destroy(&merges);
    return st;
}

zero_status zero_tokenizer_check_path(const char *path)
{
    ZERO_TRY(zero_storage_check_length(path, ZERO_STORAGE_PATH - 32));
    if (zero_path_look(path) != ZERO_PATH_OF_NOTHING) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "unknown tokenizer '%s': expected byte, char or bpe:N, as in bpe:512, "
                     "or the path of " ZERO_TOKENIZER_FILES ", and there is no such path",
                     path);
}

zero_status zero_tokenizer_open(const char *path, zero_tokenizer *out)
{
    char found[ZERO_STORAGE_PATH];
    const char *file = path;
    ZERO_TRY(zero_tokenizer_check_path(path));
    if (zero_path_look(path) == ZERO_PATH_OF_DIRECTORY) {
        char named[ZERO_TOKENIZER_NAMED];
        if (!zero_tokenizer_beside(path, found)) {
            zero_tokenizer_name_stranger(path, named);
            return zero_fail(ZERO_ERR_INVALID,
                             "tokenizer '%s': expected " ZERO_TOKENIZER_FILES
                             " in this directory%s",
                             path, named);
        }
        file = found;
    }
    const int pair = pair_of(file);
    zero_beside b;
    zero_status st = read_beside(file, pair >= 0, &b);
    if (st == ZERO_OK)
        st = pair >= 0 ? open_pair(file, pair, &b, out) : open_whole(file, &b, out);
    zero_beside_destroy(&b);
    return st;
}
