#include "io/json_input.h"

#include <stdarg.h>

#include "base/legible.h"
#include "base/utf8.h"
#include "io/bytes.h"

/* Memory of jansson 2.14's tree (measured): an empty object is 2 bytes of text and 235 of
 * memory. Headers of safetensors take 13 to 18 times their size. */
enum {
    OBJECT_BYTES = 240,
    LIST_BYTES = 144,
    STRING_BYTES = 48,
    VALUE_BYTES = 48,
    MEMBER_BYTES = 56
};
#define MEMORY_TIMES 24
#define MEMORY_FREE  ((uint64_t)16 << 20)
#define MOST_TEXT    ((size_t)1 << 30) /* jansson counts bytes in an int */

const char *zero_json_shown(const char *text, char shown[ZERO_JSON_SHOWN])
{
    size_t len = strlen(text);
    if (zero_legible(text, len, shown, ZERO_JSON_SHOWN) < len) {
        zero_legible(text, len, shown, ZERO_JSON_SHOWN - 3);
        strcat(shown, "...");
    }
    return shown;
}

/* ---- checks before jansson parses ---- */

typedef struct {
    const char *path;
    const unsigned char *text;
    size_t len;
} input;

__attribute__((format(printf, 3, 4))) static zero_status refuse(const input *in, size_t at,
                                                                const char *fmt, ...)
{
    char reason[400];
    int line = 1;
    size_t begin = 0;
    for (size_t i = 0; i < at && i < in->len; i++)
        if (in->text[i] == '\n') {
            line++;
            begin = i + 1;
        }
    va_list args;
    va_start(args, fmt);
    vsnprintf(reason, sizeof reason, fmt, args);
    va_end(args);
    return zero_fail(ZERO_ERR_FORMAT, "%.500s:%d:%zu: at byte %zu of the JSON: %s",
                     in->path, line, at - begin + 1, at, reason);
}

static uint64_t memory_of(unsigned char c)
{
    switch (c) {
    case '{': return OBJECT_BYTES;
    case '[': return LIST_BYTES;
    case '"': return STRING_BYTES;
    case ',': return VALUE_BYTES;
    case ':': return MEMBER_BYTES;
    }
    return 0;
}

zero_status zero_json_parse(const char *path, const void *text, size_t len, json_t **root)
{
    input in = {path, text, len};
    json_error_t error;
    char shown[ZERO_JSON_SHOWN];
    uint64_t memory = 0;
    if (in.len == 0)
        return refuse(&in, 0, "expected a value, found nothing: the file is empty");
    ZERO_FORMAT_IF(in.len > MOST_TEXT,
                   "%.500s: expected at most %zu bytes of JSON, found %zu", in.path,
                   MOST_TEXT, in.len);
    if (in.len >= 3 && memcmp(in.text, "\xef\xbb\xbf", 3) == 0)
        return refuse(&in, 0, "expected a value, found a byte order mark");
    for (size_t at = 0, n; at < in.len; at += n) {
        n = zero_utf8_length(in.text + at, in.len - at);
        if (n == 0)
            return refuse(&in, at, "expected UTF-8, found the byte 0x%02x", in.text[at]);
        if (in.text[at] == '\0') return refuse(&in, at, "expected text, found a NUL byte");
    }
    /* jansson recurses at each bracket, and deep input would overflow our stack.
     * `memory` grows by what its tree will take. */
    int depth = 0;
    for (size_t at = 0; at < in.len; at++) {
        unsigned char c = in.text[at];
        memory += memory_of(c);
        if (c == '"')
            for (at++; at < in.len && in.text[at] != '"'; at++)
                if (in.text[at] == '\\') at++;
        if (c == ']' || c == '}') depth--;
        if ((c == '[' || c == '{') && ++depth > ZERO_JSON_DEPTH)
            return refuse(&in, at,
                          "expected lists and objects nested at most %d deep, found more",
                          ZERO_JSON_DEPTH);
    }
    ZERO_FORMAT_IF(!(memory <= MEMORY_FREE + (uint64_t)in.len * MEMORY_TIMES),
                   "%.500s: %zu bytes of JSON with this many values would take %" PRIu64
                   " MB of memory, more than %d times its size",
                   in.path, in.len, memory / 1000000, MEMORY_TIMES);
    json_t *read = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (read) {
        *root = read;
        return ZERO_OK;
    }
    if (error.text[0] == '\0') /* jansson gives no reason when memory runs out */
        return zero_fail(ZERO_ERR_NOMEM, "%.500s: no memory for %zu bytes of JSON", path,
                         len);
    /* jansson's position counts the bytes read; it stopped at the last one. */
    return refuse(&in, error.position > 0 ? (size_t)error.position - 1 : 0, "%s",
                  zero_json_shown(error.text, shown));
}

zero_status zero_json_parse_wide(const char *path, const void *text, size_t len,
                                 json_t **root)
{
    const char *from = text;
    ZERO_AT_END(zero_bytes_destroy) zero_bytes wide = {0};
    bool is_text = false;
    size_t digits = 0, done = 0; /* of the number so far; bytes that were copied */
    for (size_t i = 0; i < len; i++) {
        const char c = from[i];
        const bool is_digit = !is_text && c >= '0' && c <= '9';
        if (digits >= 19 && !is_digit && !strchr(".eE", c) &&
            !(i > digits && from[i - digits - 1] == '.')) {
            ZERO_TRY(zero_bytes_append(&wide, from + done, i - done));
            ZERO_TRY(zero_bytes_append(&wide, ".0", 2));
            done = i;
        }
        digits = is_digit ? digits + 1 : 0;
        if (c == '"') is_text = !is_text;
        if (c == '\\' && is_text) i++; /* what it escapes */
    }
    ZERO_TRY(zero_bytes_append(&wide, from + done, len - done));
    return zero_json_parse(path, wide.bytes, wide.len, root);
}
