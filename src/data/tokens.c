#include "data/tokens.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/fail.h"
#include "io/little_endian.h"

enum { HEADER_BYTES = 1024, MAGIC_LLMC = 20240520, MAGIC_LLAMA3 = 20240801 };

/* llm.c's other files, which a user may mistake for training data. */
static const struct {
    uint64_t magic;
    const char *what;
} strangers[] = {{20240522, "evaluation set"},
                 {20240326, "model checkpoint"},
                 {20240527, "optimizer state"},
                 {20240327, "debug state"},
                 {20240328, "tokenizer"}};

const char *zero_tokens_name(zero_tokens_kind kind)
{
    static const char *const names[] = {"text", "llm.c", "Llama-3", "nanoGPT"};
    return names[kind];
}

int zero_tokens_width(zero_tokens_kind kind)
{
    return kind == ZERO_TOKENS_TEXT ? 1 : kind == ZERO_TOKENS_LLAMA3 ? 4 : 2;
}

/* Up to four bytes. */
static zero_status read_first(const char *path, unsigned char bytes[4], size_t *len)
{
    zero_file file;
    ZERO_TRY(zero_file_open(path, &file));
    zero_status st = zero_file_read_some(&file, 0, bytes, 4, len);
    zero_file_close(&file);
    return st;
}

static bool ends_in_bin(const char *path)
{
    size_t len = strlen(path);
    return len >= 4 && strcmp(path + len - 4, ".bin") == 0;
}

zero_status zero_tokens_recognise(const char *path, const unsigned char *bytes, size_t len,
                                  zero_tokens_kind *kind)
{
    uint64_t magic = len >= 4 ? zero_little_endian(bytes, 4) : 0;
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++)
        if (magic == strangers[i].magic)
            return zero_fail(ZERO_ERR_FORMAT,
                             "%s: this is an llm.c %s (it begins with %" PRIu64
                             "); training needs a token file, which begins with %d",
                             path, strangers[i].what, magic, MAGIC_LLMC);
    if (magic == MAGIC_LLMC)
        *kind = ZERO_TOKENS_LLMC;
    else if (magic == MAGIC_LLAMA3)
        *kind = ZERO_TOKENS_LLAMA3;
    else
        *kind = ends_in_bin(path) ? ZERO_TOKENS_NANOGPT : ZERO_TOKENS_TEXT;
    return ZERO_OK;
}

zero_status zero_tokens_detect(const char *path, zero_tokens_kind *kind)
{
    unsigned char bytes[4];
    size_t len = 0;
    ZERO_TRY(read_first(path, bytes, &len));
    return zero_tokens_recognise(path, bytes, len, kind);
}

zero_status zero_tokens_vocab(zero_tokens_kind kind, const char *path, int64_t given,
                              int64_t *vocab)
{
    if (given == 0 && kind == ZERO_TOKENS_NANOGPT)
        return zero_fail(
            ZERO_ERR_INVALID,
            "%s: a nanoGPT token file does not say how many words its vocabulary "
            "has; pass --vocab N (50257 for GPT-2's, 65 for nanoGPT's Shakespeare "
            "in characters)",
            path);
    *vocab = given > 0 ? given : kind == ZERO_TOKENS_LLAMA3 ? 128256 : 50257;
    return ZERO_OK;
}

static zero_status check_header(const char *path, zero_tokens_kind kind,
                                const unsigned char *file, size_t size)
{
    if (size < HEADER_BYTES)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: the header of %d bytes is cut off: the file has only %zu",
                         path, HEADER_BYTES, size);
    uint64_t version = zero_little_endian(file + 4, 4);
    uint64_t n = zero_little_endian(file + 8, 4);
    uint64_t known = kind == ZERO_TOKENS_LLMC ? 1 : 7;
    if (version != known)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: at byte 4: expected version %" PRIu64
                         " of a %s token file, found "
                         "%" PRIu64,
                         path, known, zero_tokens_name(kind), version);
    uint64_t expected = HEADER_BYTES + (uint64_t)zero_tokens_width(kind) * n;
    if (expected != size)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: the header (at byte 8) promises %" PRIu64
                         " tokens of %d bytes, "
                         "which makes a file of %" PRIu64 " bytes, but it has %zu",
                         path, n, zero_tokens_width(kind), expected, size);
    return ZERO_OK;
}

/* Checks n tokens and changes them from the file's byte order to the machine's. */
static zero_status take_tokens(const char *path, int width, int64_t vocab, int64_t n,
                               unsigned char *bytes)
{
    for (int64_t i = 0; i < n; i++) {
        unsigned char *at = bytes + i * width;
        uint32_t token = (uint32_t)zero_little_endian(at, width);
        if (token >= vocab)
            return zero_fail(ZERO_ERR_FORMAT,
                             "%s: token %" PRId64 " has the id %" PRIu32
                             ", but the vocabulary has only %" PRId64
                             " words (0 to %" PRId64 "); see --vocab",
                             path, i, token, vocab, vocab - 1);
        uint16_t narrow = (uint16_t)token;
        memcpy(at, width == 2 ? (void *)&narrow : (void *)&token, (size_t)width);
    }
    return ZERO_OK;
}

/* A file may be replaced between its detection and its reading. */
static zero_status check_kind(const char *path, zero_tokens_kind kind,
                              const unsigned char *file, size_t size)
{
    zero_tokens_kind now;
    ZERO_TRY(zero_tokens_recognise(path, file, size, &now));
    if (now == kind) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_FORMAT,
        "%s: at byte 0: expected a file of %s, found %s: the file changed while being "
        "read",
        path, zero_tokens_name(kind), zero_tokens_name(now));
}

zero_status zero_tokens_take(const char *path, zero_tokens_kind kind, int64_t vocab,
                             size_t begin, zero_bytes *tokens)
{
    unsigned char *file = tokens->bytes + begin;
    size_t size = tokens->len - begin, width = (size_t)zero_tokens_width(kind);
    ZERO_TRY(check_kind(path, kind, file, size));
    if (kind != ZERO_TOKENS_NANOGPT) {
        ZERO_TRY(check_header(path, kind, file, size));
        size -= HEADER_BYTES;
        memmove(file, file + HEADER_BYTES, size);
        tokens->len = begin + size;
    } else if (size % width != 0) {
        return zero_fail(
            ZERO_ERR_FORMAT,
            "%s: expected nanoGPT's tokens of 2 bytes (the name ends in .bin, and "
            "llm.c's number %d is not at byte 0), but the file has %zu bytes, an "
            "odd number",
            path, MAGIC_LLMC, size);
    }
    return take_tokens(path, (int)width, vocab, (int64_t)(size / width), file);
}

zero_status zero_tokens_read(const char *path, zero_tokens_kind kind, int64_t vocab,
                             zero_bytes *tokens)
{
    size_t begin = tokens->len;
    ZERO_TRY(zero_bytes_read(tokens, path));
    zero_status st = zero_tokens_take(path, kind, vocab, begin, tokens);
    if (st != ZERO_OK) tokens->len = begin;
    return st;
}
