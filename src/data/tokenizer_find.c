#include "data/tokenizer_find.h"

#include "base/number.h"
#include "data/stranger.h"
#include "data/tokenizer_file.h"
#include "data/tokenizer_json.h"

static const struct {
    const char *vocab, *merges;
} pairs[] = {{"vocab.json", "merges.txt"}, {"encoder.json", "vocab.bpe"}};

enum { N_PAIRS = ZERO_COUNT(pairs) };

/* "DIR/NAME", where DIR is the directory `path` or that of the file `path`, and whether it
 * is there. */
static bool beside(const char *path, const char *name, char out[ZERO_STORAGE_PATH])
{
    const char *slash = strrchr(path, '/');
    int n = slash ? (int)(slash - path) + 1 : 0;
    bool is_dir = zero_path_look(path) == ZERO_PATH_OF_DIRECTORY;
    if (is_dir) n = (int)strlen(path);
    snprintf(out, ZERO_STORAGE_PATH, "%.*s%s%.30s", n, path, is_dir ? "/" : "", name);
    return zero_path_look(out) != ZERO_PATH_OF_NOTHING;
}

bool zero_tokenizer_beside(const char *path, char found[ZERO_STORAGE_PATH])
{
    if (beside(path, "tokenizer.json", found)) return true;
    for (int i = 0; i < N_PAIRS; i++)
        if (beside(path, pairs[i].merges, found) && beside(path, pairs[i].vocab, found))
            return true;
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
    ZERO_AT_END(zero_file_close) zero_file file = {0};
    unsigned char bytes[ZERO_STRANGER_BYTES];
    size_t len = 0;
    ZERO_TRY(zero_file_open(path, &file));
    ZERO_TRY(zero_file_read_some(&file, 0, bytes, sizeof bytes, &len));
    return zero_stranger_check(path, bytes, len, true, "a tokenizer.json");
}

void zero_tokenizer_name_stranger(const char *path, char named[ZERO_TOKENIZER_NAMED])
{
    char found[ZERO_STORAGE_PATH];
    named[0] = '\0';
    for (int i = 0; !named[0] && i < ZERO_COUNT(strangers); i++) {
        const char *words = strangers[i].words;
        if (!beside(path, strangers[i].name, found)) continue;
        if (words)
            snprintf(named, ZERO_TOKENIZER_NAMED, "; %.250s: %s", found, words);
        else if (look_at(found) != ZERO_OK)
            snprintf(named, ZERO_TOKENIZER_NAMED, "; %.390s", zero_last_error());
    }
}

zero_status zero_tokenizer_check_path(const char *path)
{
    ZERO_TRY(zero_storage_check_length(path, ZERO_STORAGE_PATH - 32));
    ZERO_INVALID_IF(
        zero_path_look(path) == ZERO_PATH_OF_NOTHING,
        "unknown tokenizer '%s': expected byte, char or bpe:N, as in bpe:512, or "
        "the path of " ZERO_TOKENIZER_FILES ", and there is no such path",
        path);
    return ZERO_OK;
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
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    int pair = N_PAIRS - 1; /* that the file belongs to; -1: none */
    while (pair >= 0 && !zero_same_text(name, pairs[pair].vocab) &&
           !zero_same_text(name, pairs[pair].merges))
        pair--;
    ZERO_AT_END(zero_beside_destroy) zero_beside b = {.is_pair = pair >= 0};
    static const char *const names[ZERO_BESIDE_FILES] = {
        "tokenizer_config.json", "added_tokens.json", "special_tokens_map.json"};
    for (int i = 0; i < ZERO_BESIDE_FILES; i++) {
        b.files[i].exists = beside(file, names[i], b.files[i].path);
        if (b.files[i].exists)
            ZERO_TRY(zero_bytes_read_at_most(&b.files[i].text, b.files[i].path,
                                             ZERO_TOKENIZER_FILE_MAX));
    }
    /* Reads a tokenizer.json, or the two files of a pair. */
    char first[ZERO_STORAGE_PATH], second[ZERO_STORAGE_PATH];
    ZERO_AT_END(zero_bytes_destroy) zero_bytes text = {0};
    ZERO_AT_END(zero_bytes_destroy) zero_bytes merges = {0};
    if (pair < 0) {
        ZERO_TRY(zero_bytes_read_at_most(&text, file, ZERO_TOKENIZER_FILE_MAX));
        ZERO_TRY(zero_stranger_check(file, text.bytes, text.len, true, "a tokenizer.json"));
        return zero_tokenizer_parse_beside(file, text.bytes, text.len, &b, out);
    }
    beside(file, pairs[pair].vocab, first);
    beside(file, pairs[pair].merges, second);
    ZERO_TRY(zero_bytes_read_at_most(&text, first, ZERO_TOKENIZER_FILE_MAX));
    ZERO_TRY(zero_bytes_read_at_most(&merges, second, ZERO_TOKENIZER_FILE_MAX));
    return zero_tokenizer_from_gpt2(first, &text, second, &merges, &b, out);
}
