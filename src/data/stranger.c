#include "data/stranger.h"

#include "base/number.h"
#include "base/text.h"

#define UNPACK(tool) "unpack it (" tool ")"
#define ITS_TEXTS    "write its texts to a file, one after the other"
#define ITS_NUMBERS \
    ".astype('<u4').tofile('tokens.bin') writes its numbers alone; give tokens.bin and " \
    "--token-bytes 4"
#define WEIGHTS        "weights are not data; --init-from takes model.safetensors"
#define TO_UTF_8(from) "turn it into UTF-8: iconv -f " from " -t UTF-8"
#define TO_JSON \
    "transformers writes a tokenizer.json of it: " \
    "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(OUT)"
#define LLM_C  "training needs a token file, which begins with 20240520"
#define TURNED "its numbers begin with the high byte: turn them round"

#define BYTES(text) (text), sizeof(text) - 1

/* The first row that fits decides. */
typedef struct {
    const char *bytes;
    uint16_t n, at; /* bytes, and their place in the file */
    bool of_text;   /* they count in a text alone: numbers may begin with them, too */
    const char *what, *remedy;
} stranger;

/* clang-format off */
static const stranger rows[] = {
    {BYTES("\x1f\x8b\x08\0"), 0, false, "a gzip file", UNPACK("gunzip -k")},
    {BYTES("\x1f\x8b\x08\x08"), 0, false, "a gzip file", UNPACK("gunzip -k")},
    {BYTES("\x1f\x8b"), 0, true, "a gzip file", UNPACK("gunzip -k")},
    {BYTES("\x28\xb5\x2f\xfd"), 0, false, "a zstd file", UNPACK("unzstd")},
    {BYTES("\xfd" "7zXZ\0"), 0, false, "an xz file", UNPACK("unxz -k")},
    {BYTES("1AY&SY"), 4, false, "a bzip2 file", UNPACK("bunzip2 -k")},
    {BYTES("\x04\x22\x4d\x18"), 0, false, "an lz4 file", UNPACK("unlz4")},
    {BYTES("7z\xbc\xaf\x27\x1c"), 0, false, "a 7-zip file", UNPACK("7z x")},
    {BYTES("ustar"), 257, false, "a tar file", UNPACK("tar -xf")},
    {BYTES("PK\3\4"), 0, false, "a zip file (so are .npz, and PyTorch's .pt and .bin)",
     UNPACK("unzip") "; of an .npz of tokens, numpy.load(FILE)['NAME']" ITS_NUMBERS},
    {BYTES("\x93NUMPY"), 0, false, "a NumPy array", "numpy.load(FILE)" ITS_NUMBERS},
    {BYTES("PAR1\x15"), 0, false, "a Parquet table", ITS_TEXTS},
    {BYTES("ARROW1"), 0, false, "an Arrow table", ITS_TEXTS},
    {BYTES("\xff\xff\xff\xff"), 0, true, "an Arrow table", ITS_TEXTS},
    {BYTES("SQLite format 3\0"), 0, false, "an SQLite database", ITS_TEXTS},
    {BYTES("\x89HDF\r\n\x1a\n"), 0, false, "an HDF5 file",
     "write its texts, or its numbers, to a file"},
    {BYTES("%PDF-"), 0, true, "a PDF", "take its text, as pdftotext does"},
    {BYTES("MMIDIDX\0\0"), 0, false, "Megatron's index of a token file",
     "give the .bin alone; the index beside it says how many bytes a token has"},
    {BYTES("TNTIDX\0\0"), 0, false, "fairseq's index of a token file",
     "give the .bin alone, with --token-bytes"},
    {BYTES("\0\0\0\0{\""), 4, false, "a safetensors file", WEIGHTS},
    {BYTES("\x80\x02\x8a\x0a"), 0, false, "a PyTorch file", WEIGHTS},
    {BYTES("GGUF\2\0\0\0"), 0, false, "a GGUF file", WEIGHTS},
    {BYTES("GGUF\3\0\0\0"), 0, false, "a GGUF file", WEIGHTS},
    {BYTES("\x80\x02"), 0, true, "a pickle of Python", ITS_TEXTS},
    {BYTES("\x80\x03"), 0, true, "a pickle of Python", ITS_TEXTS},
    {BYTES("\x80\x04\x95"), 0, true, "a pickle of Python", ITS_TEXTS},
    {BYTES("\x80\x05\x95"), 0, true, "a pickle of Python", ITS_TEXTS},
    {BYTES("\xff\xfe\0\0"), 0, true, "text in UTF-32", TO_UTF_8("UTF-32")},
    {BYTES("\0\0\xfe\xff"), 0, true, "text in UTF-32", TO_UTF_8("UTF-32")},
    {BYTES("\xff\xfe"), 0, true, "text in UTF-16", TO_UTF_8("UTF-16")},
    {BYTES("\xfe\xff"), 0, true, "text in UTF-16", TO_UTF_8("UTF-16")},
    {BYTES("\n\x05<unk>"), 2, true, "a SentencePiece model", TO_JSON},
    {BYTES("\n\x05<pad>"), 2, true, "a SentencePiece model", TO_JSON},
    {BYTES("IQ== 0\n"), 0, true, "a tiktoken vocabulary", TO_JSON},
    {BYTES("\x8a\xd8\x34\x01"), 0, false, "an llm.c evaluation set", LLM_C},
    {BYTES("\xc6\xd7\x34\x01"), 0, false, "an llm.c model checkpoint", LLM_C},
    {BYTES("\x8f\xd8\x34\x01"), 0, false, "an llm.c optimizer state", LLM_C},
    {BYTES("\xc7\xd7\x34\x01"), 0, false, "an llm.c debug state", LLM_C},
    {BYTES("\xc8\xd7\x34\x01"), 0, false, "an llm.c tokenizer", LLM_C},
    {BYTES("\x01\x34\xd8\x88"), 0, false, "an llm.c token file of a big-endian machine",
     TURNED},
    {BYTES("\x01\x34\xd9\xa1"), 0, false, "an llm.c token file of a big-endian machine",
     TURNED},
};
/* clang-format on */

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
    ZERO_FAIL_IF(found, ZERO_ERR_FORMAT, "%.500s: this is %s, not %s: %s", path,
                 found->what, expected, found->remedy);
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
