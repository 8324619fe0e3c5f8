#include "data/tokens.h"

#include "base/number.h"
#include "base/text.h"
#include "base/utf8.h"
#include "data/stranger.h"
#include "io/little_endian.h"

enum {
    HEADER_BYTES = 1024,
    MAGIC_LLMC = 20240520,
    MAGIC_LLAMA3 = 20240801,
    MOST_ASSUMED = 65536, /* words of a vocabulary, by ids of 2 bytes */
};

const char *zero_tokens_name(zero_tokens_format f)
{
    static const char *const names[] = {"text", "llm.c", "Llama-3"};
    if (f.kind != ZERO_TOKENS_RAW) return names[f.kind];
    return f.bytes == 1   ? "uint8"
           : f.bytes == 2 ? "nanoGPT"
           : f.bytes == 4 ? "uint32"
                          : "uint64";
}

int zero_tokens_width(zero_tokens_format format)
{
    return format.bytes == 8 ? 4 : format.bytes;
}

zero_status zero_tokens_check_bytes(int64_t n)
{
    ZERO_INVALID_IF(n != 0 && n != 1 && n != 2 && n != 4 && n != 8,
                    "--token-bytes %" PRId64 ": expected 1, 2, 4 or 8", n);
    return ZERO_OK;
}

/* ---- formats ---- */

static zero_status contradicts(const char *path, int token_bytes, const char *says,
                               int bytes)
{
    return zero_fail(ZERO_ERR_FORMAT,
                     "%.500s: %s says that its tokens have %d byte%s, and --token-bytes "
                     "says %d; leave --token-bytes out",
                     path, says, bytes, bytes == 1 ? "" : "s", token_bytes);
}

zero_status zero_tokens_recognise(const char *path, const unsigned char *bytes, size_t len,
                                  int token_bytes, zero_tokens_format *format)
{
    uint64_t magic = len >= 4 ? zero_little_endian(bytes, 4) : 0;
    if (magic == MAGIC_LLMC || magic == MAGIC_LLAMA3) {
        bool is_wide = magic == MAGIC_LLAMA3;
        *format = (zero_tokens_format){is_wide ? ZERO_TOKENS_LLAMA3 : ZERO_TOKENS_LLMC,
                                       is_wide ? 4 : 2, false};
        if (token_bytes == 0 || token_bytes == format->bytes) return ZERO_OK;
        return contradicts(path, token_bytes, "llm.c's number at byte 0", format->bytes);
    }
    bool is_raw = token_bytes > 0 || zero_ends_in(path, ".bin");
    ZERO_TRY(
        zero_stranger_check(path, bytes, len, !is_raw, is_raw ? "tokens" : "plain text"));
    *format = is_raw ? (zero_tokens_format){ZERO_TOKENS_RAW, token_bytes ? token_bytes : 2,
                                            token_bytes == 0}
                     : (zero_tokens_format){ZERO_TOKENS_TEXT, 1, false};
    return ZERO_OK;
}

/* ---- Megatron's index ---- */

/* 9 bytes MMIDIDX, 8 the version, 1 the type of a token, and much that is not needed
 * here. */
enum { INDEX_TYPE_AT = 17, INDEX_BYTES = 18 };

zero_status zero_tokens_read_index(const char *path, const unsigned char *bytes, size_t len,
                                   int *token_bytes)
{
    static const int bytes_of[] = {0, 1, 1, 2, 4, 8, 0, 0, 2}; /* 0: not whole numbers */
    bool is_index = len >= INDEX_BYTES && memcmp(bytes, "MMIDIDX\0\0", 9) == 0 &&
                    zero_little_endian(bytes + 9, 8) == 1;
    unsigned type = is_index ? bytes[INDEX_TYPE_AT] : 0;
    if (type < (unsigned)ZERO_COUNT(bytes_of) && bytes_of[type] > 0) {
        *token_bytes = bytes_of[type];
        return ZERO_OK;
    }
    return zero_fail(ZERO_ERR_FORMAT,
                     "%.500s: expected Megatron's index (MMIDIDX, version 1, a type of "
                     "whole numbers at byte %d), which says how many bytes the tokens of "
                     "the .bin beside it have; give --token-bytes if it is something else",
                     path, INDEX_TYPE_AT);
}

zero_status zero_tokens_detect(const zero_file *file, int token_bytes,
                               zero_tokens_format *format, bool *is_binary)
{
    unsigned char bytes[ZERO_STRANGER_BYTES];
    size_t len = 0;
    ZERO_TRY(zero_file_read_some(file, 0, bytes, sizeof bytes, &len));
    ZERO_TRY(zero_tokens_recognise(file->path, bytes, len, token_bytes, format));
    *is_binary = format->kind == ZERO_TOKENS_TEXT && zero_stranger_is_binary(bytes, len);
    if (format->kind != ZERO_TOKENS_RAW || !zero_ends_in(file->path, ".bin"))
        return ZERO_OK;
    /* The index beside X.bin, if there is one, says how many bytes its tokens have.
     * With --token-bytes something else of that name is not in the way; without, it is
     * not passed over: the tokens would be read by an assumption. */
    char name[ZERO_STORAGE_FILE_PATH];
    unsigned char index[INDEX_BYTES];
    ZERO_AT_END(zero_file_close) zero_file beside = {0};
    size_t n = 0;
    int indexed = 0;
    zero_print(name, "%.*s.idx", (int)strlen(file->path) - 4, file->path);
    if (zero_path_look(name) == ZERO_PATH_OF_NOTHING) return ZERO_OK;
    zero_status st = zero_file_open(name, &beside);
    if (st == ZERO_OK) st = zero_file_read_some(&beside, 0, index, sizeof index, &n);
    if (st == ZERO_OK) st = zero_tokens_read_index(name, index, n, &indexed);
    if (st != ZERO_OK) return token_bytes > 0 ? ZERO_OK : st;
    if (token_bytes > 0 && token_bytes != indexed)
        return contradicts(file->path, token_bytes, "the index beside it", indexed);
    format->bytes = indexed;
    format->is_assumed = false;
    return ZERO_OK;
}

zero_status zero_tokens_vocab(zero_tokens_format f, const char *path, int64_t given,
                              int64_t *vocab)
{
    ZERO_INVALID_IF(
        given == 0 && f.kind == ZERO_TOKENS_RAW && f.bytes > 1,
        "%.500s: a file of raw tokens, such as nanoGPT's, does not say how many words its "
        "vocabulary has; pass --vocab N (50257 for GPT-2's, 65 for nanoGPT's Shakespeare "
        "in characters), or the tokens' tokenizer as --tokenizer PATH",
        path);
    ZERO_INVALID_IF(
        f.is_assumed && given > MOST_ASSUMED,
        "%.500s: tokens of 2 bytes, as in nanoGPT's files, reach %d, and the vocabulary "
        "has %" PRId64
        " words; give --token-bytes 4 if that is what these have, or --token-bytes 2",
        path, MOST_ASSUMED - 1, given);
    int64_t makers = f.kind == ZERO_TOKENS_LLAMA3 ? 128256 : f.bytes == 1 ? 256 : 50257;
    *vocab = given > 0 ? given : makers;
    return ZERO_OK;
}

/* ---- tokens ---- */

/* Token i of some that have `width` bytes each, with the low or the high byte first. Known
 * widths are single loads. */
static inline uint64_t token_at(const unsigned char *bytes, int width, bool is_turned,
                                size_t i)
{
    const unsigned char *at = bytes + i * (size_t)width;
    uint64_t token = 0;
    for (int k = 0; is_turned && k < width; k++) token = token << 8 | at[k];
    if (is_turned) return token;
    return width == 2   ? zero_little_endian(at, 2)
           : width == 4 ? zero_little_endian(at, 4)
                        : zero_little_endian(at, width);
}

/* The first token that is not below vocab; n if all are. */
static size_t first_beyond(const unsigned char *bytes, int width, bool is_turned, size_t n,
                           int64_t vocab)
{
    size_t i = 0;
    while (i < n && token_at(bytes, width, is_turned, i) < (uint64_t)vocab) i++;
    return i;
}

/* Raw tokens are beyond the limit: advises another reading in which none is. All bytes are
 * below 256, which shows nothing. The widest reading is the right one: half of a number is
 * a small number, too. */
static void find_reading(zero_tokens_format f, zero_tokens_limit limit,
                         const unsigned char *bytes, size_t size, char advice[200])
{
    snprintf(advice, 200, limit.whose ? "" : "; see --vocab");
    if (f.kind != ZERO_TOKENS_RAW) return;
    for (int width = 8; width > (limit.vocab < 256 ? 0 : 1); width /= 2)
        for (int is_turned = 0; is_turned < (width > 1 ? 2 : 1); is_turned++) {
            const size_t n = size / (size_t)width;
            if (size % (size_t)width != 0 || (width == f.bytes && !is_turned) ||
                first_beyond(bytes, width, is_turned, n, limit.vocab) < n)
                continue;
            if (is_turned)
                snprintf(advice, 200,
                         "; with the high byte first (big-endian) its numbers of %d bytes "
                         "all are below it: turn them, as numpy.fromfile(FILE, "
                         "'>u%d').astype('<u%d').tofile(NEW) does",
                         width, width, width);
            else
                snprintf(
                    advice, 200,
                    "; as numbers of %d byte%s all are below it: give --token-bytes %d",
                    width, width == 1 ? "" : "s", width);
            return;
        }
}

static zero_status check_ids(const char *path, zero_tokens_format f,
                             zero_tokens_limit limit, const unsigned char *bytes,
                             size_t size)
{
    char advice[200];
    const size_t n = size / (size_t)f.bytes;
    const size_t i = first_beyond(bytes, f.bytes, false, n, limit.vocab);
    if (i == n) return ZERO_OK;
    find_reading(f, limit, bytes, size, advice);
    return zero_fail(ZERO_ERR_FORMAT,
                     "%.500s: token %zu has the id %" PRIu64
                     ", but %.100s has only %" PRId64 " words (0 to %" PRId64 ")%s",
                     path, i, token_at(bytes, f.bytes, false, i),
                     limit.whose ? limit.whose : "the vocabulary", limit.vocab,
                     limit.vocab - 1, advice);
}

/* ---- bytes that are assumed ---- */

typedef struct {
    size_t even, odd; /* numbers at even and odd places that are not zero */
} parity;

static parity count_parity(const unsigned char *bytes, int width, size_t size)
{
    parity p = {0, 0};
    for (size_t i = 0; i < size / (size_t)width; i++)
        *(i % 2 ? &p.odd : &p.even) += token_at(bytes, width, false, i) != 0;
    return p;
}

enum { TEXT_LEAST = 64 }; /* bytes of a text that tokens of 2 bytes are by no chance */

/* The beginning of the file is legible UTF-8. */
static bool looks_like_text(const unsigned char *bytes, size_t size)
{
    const size_t len = zero_min_size(size, ZERO_STRANGER_BYTES);
    for (size_t at = 0, n; at + 4 <= len; at += n) { /* the last character may be cut */
        n = zero_utf8_length(bytes + at, len - at);
        const bool is_legible =
            bytes[at] >= ' ' || (bytes[at] >= '\t' && bytes[at] <= '\r');
        if (n == 0 || !is_legible) return false;
    }
    return len >= TEXT_LEAST;
}

/* If a token of 4 bytes is read as two of 2, the second is nearly always zero. Among tokens
 * of 2 bytes both places are alike. */
static zero_status check_assumed(const char *path, zero_tokens_format f,
                                 const unsigned char *bytes, size_t size)
{
    int width = f.bytes;
    if (!f.is_assumed) return ZERO_OK;
    ZERO_FORMAT_IF(looks_like_text(bytes, size),
                   "%.500s: this is text, and a file named .bin is read as tokens of 2 "
                   "bytes; give it another name, or --token-bytes 2 if these are tokens",
                   path);
    const parity found = count_parity(bytes, width, size);
    for (parity p = found; width < 8 && 2 * p.odd < p.even;)
        p = count_parity(bytes, width *= 2, size);
    ZERO_FORMAT_IF(
        width != f.bytes,
        "%.500s: of its %zu numbers of %d bytes %zu at even places and %zu at odd "
        "ones are not 0: these seem to be tokens of %d bytes; give --token-bytes "
        "%d, or --token-bytes %d if they are not",
        path, size / (size_t)f.bytes, f.bytes, found.even, found.odd, width, width,
        f.bytes);
    return ZERO_OK;
}

/* ---- whole files ---- */

zero_status zero_tokens_take(const char *path, zero_tokens_format f,
                             zero_tokens_limit limit, size_t begin, zero_bytes *tokens)
{
    unsigned char *file = tokens->bytes + begin;
    size_t size = tokens->len - begin;
    /* A file may be replaced between its detection and its reading. */
    zero_tokens_format now;
    const bool is_raw = f.kind == ZERO_TOKENS_RAW;
    ZERO_TRY(zero_tokens_recognise(path, file, size, is_raw ? f.bytes : 0, &now));
    ZERO_FORMAT_IF(
        now.kind != f.kind,
        "%s: at byte 0: expected a file of %s, found %s: the file changed while being read",
        path, zero_tokens_name(f), zero_tokens_name(now));
    if (f.kind != ZERO_TOKENS_RAW) {
        ZERO_FORMAT_IF(size < HEADER_BYTES,
                       "%s: the header of %d bytes is cut off: the file has only %zu", path,
                       HEADER_BYTES, size);
        uint64_t version = zero_little_endian(file + 4, 4);
        uint64_t n = zero_little_endian(file + 8, 4);
        uint64_t known = f.kind == ZERO_TOKENS_LLMC ? 1 : 7;
        ZERO_FORMAT_IF(version != known,
                       "%s: at byte 4: expected version %" PRIu64
                       " of a %s token file, found %" PRIu64,
                       path, known, zero_tokens_name(f), version);
        uint64_t expected = HEADER_BYTES + (uint64_t)f.bytes * n;
        ZERO_FORMAT_IF(expected != size,
                       "%s: the header (at byte 8) promises %" PRIu64
                       " tokens of %d bytes, which makes a file of %" PRIu64
                       " bytes, but it has %zu",
                       path, n, f.bytes, expected, size);
        size -= HEADER_BYTES;
        memmove(file, file + HEADER_BYTES, size);
    } else if (size % (size_t)f.bytes != 0) {
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: expected tokens of %d bytes%s, but the file has %zu bytes, "
                         "which is not a multiple; see --token-bytes",
                         path, f.bytes,
                         f.is_assumed ? ", as nanoGPT's (the name ends in .bin)" : "",
                         size);
    }
    ZERO_TRY(check_assumed(path, f, file, size));
    ZERO_TRY(check_ids(path, f, limit, file, size));
    /* Changes n tokens from the file's bytes to the machine's. */
    size_t n = size / (size_t)f.bytes;
    const uint16_t one = 1;
    const size_t width = (size_t)zero_tokens_width(f);
    const bool is_little = *(const unsigned char *)&one == 1;
    if (width != 1 && !(is_little && f.bytes <= 4)) { /* they are the same */
        for (size_t i = 0; i < n; i++) {
            const uint32_t wide = (uint32_t)token_at(file, f.bytes, false, i);
            const uint16_t narrow = (uint16_t)wide;
            memcpy(file + i * width, width == 2 ? (const void *)&narrow : &wide, width);
        }
    }
    tokens->len = begin + size / (size_t)f.bytes * (size_t)zero_tokens_width(f);
    return ZERO_OK;
}

zero_status zero_tokens_read(const char *path, zero_tokens_format format,
                             zero_tokens_limit limit, zero_bytes *tokens)
{
    size_t begin = tokens->len;
    ZERO_TRY(zero_bytes_read(tokens, path));
    zero_status st = zero_tokens_take(path, format, limit, begin, tokens);
    if (st != ZERO_OK) tokens->len = begin;
    return st;
}
