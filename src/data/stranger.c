#include "data/stranger.h"

#include "base/number.h"
#include "base/text.h"

typedef struct {
    const char *bytes;
    uint16_t n, at; /* bytes, and their place in the file */
    bool of_text;   /* they count in a text alone */
    const char *what, *remedy;
} stranger;

#define STRANGER(bytes, at, of_text, what, remedy) \
    {bytes, sizeof(bytes) - 1, at, of_text, what, remedy},

static const stranger rows[] = {
#include "data/strangers.def"
};

/* True if each line is a JSON object, of which only the texts should be trained on. A name
 * in .jsonl says so. A file named .json may be one object, which is text as any source: its
 * second line decides. Under other names lines of JSON are text. */
static bool is_json_lines(const char *path, const unsigned char *bytes, size_t len)
{
    if (len == 0 || bytes[0] != '{') return false;
    if (zero_ends_in(path, ".jsonl") || zero_ends_in(path, ".ndjson")) return true;
    const unsigned char *end = memchr(bytes, '\n', len);
    if (!zero_ends_in(path, ".json") || !end || end + 1 == bytes + len || end[1] != '{')
        return false;
    return end[-1] == '}' || (end[-1] == '\r' && end[-2] == '}');
}

zero_status zero_stranger_check(const char *path, const unsigned char *bytes, size_t len,
                                bool is_text, const char *expected)
{
    static const stranger lines = {
        .what = "a JSON object in each line",
        .remedy = "take the texts out, as jq -r .text FILE does; to train on the lines as "
                  "they are, name the file .txt"};
    const stranger *found = is_text && is_json_lines(path, bytes, len) ? &lines : NULL;
    for (int i = 0; !found && i < ZERO_COUNT(rows); i++) {
        const stranger *s = &rows[i];
        if ((is_text || !s->of_text) && (size_t)s->at + s->n <= len &&
            memcmp(bytes + s->at, s->bytes, s->n) == 0)
            found = s;
    }
    ZERO_FORMAT_IF(found, "%.500s: this is %s, not %s: %s", path, found->what, expected,
                   found->remedy);
    return ZERO_OK;
}

bool zero_stranger_is_binary(const unsigned char *bytes, size_t len)
{
    size_t zeros = 0;
    for (size_t i = 0; i < len; i++) zeros += bytes[i] == 0;
    return 1000 * zeros > len;
}

zero_status zero_stranger_refuse_binary(const char *path)
{
    return zero_fail(ZERO_ERR_FORMAT,
                     "%.500s: this is not text: more than one byte in a thousand is zero; "
                     "iconv turns UTF-16 into UTF-8; --data takes tokens of N bytes with "
                     "--token-bytes N, and any bytes with --token-bytes 1",
                     path);
}

size_t zero_stranger_mark(const unsigned char *bytes, size_t len)
{
    return len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}
