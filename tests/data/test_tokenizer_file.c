

#include "support/table.h"

#include "data/self_text.h"
#include "data/tokenizer_file.h"
#include "support/encode_test.h"
#include "support/share.h"

#define F    "tokenizer.json"
#define SELF ((const unsigned char *)zero_self_text)

static zero_tokenizer learn(const char *spec)
{
    zero_tokenizer tok;
    assert_ok(zero_tokenizer_init(1, &tok, spec, SELF, zero_self_len));
    return tok;
}

static zero_bytes written(const zero_tokenizer *tok)
{
    zero_bytes text = {0};
    assert_ok(zero_tokenizer_write(tok, &text));
    return text;
}

static zero_tokenizer read_back(const zero_bytes *text)
{
    zero_tokenizer tok;
    assert_ok(zero_tokenizer_parse_file(F, text->bytes, text->len, &tok));
    return tok;
}

static void assert_encode_alike(const zero_tokenizer *a, const zero_tokenizer *b,
                                const unsigned char *text, size_t len)
{
    int32_t *x = malloc(len * sizeof *x), *y = malloc(len * sizeof *y);
    assert_true(x && y);
    int64_t n = encoded(a, text, len, x);
    assert_int_equal(encoded(b, text, len, y), n);
    assert_memory_equal(x, y, (size_t)n * sizeof *x);
    free(x);
    free(y);
}

static void assert_decode_alike(const zero_tokenizer *a, const zero_tokenizer *b)
{
    assert_int_equal(a->vocab, b->vocab);
    for (int32_t i = 0; i < a->vocab; i++) {
        size_t len = 0, other = 0;
        const unsigned char *x = zero_tokenizer_decode(a, i, &len);
        const unsigned char *y = zero_tokenizer_decode(b, i, &other);
        assert_int_equal(len, other);
        assert_memory_equal(x, y, len);
    }
}

TEST(what_is_written_reads_back_and_works_alike)
{
    static const char *const specs[] = {"byte", "bpe:257", "bpe:512", "bpe:1000", "char"};
    for (size_t i = 0; i < COUNT(specs); i++) {
        zero_tokenizer tok = learn(specs[i]);
        zero_bytes text = written(&tok);
        zero_tokenizer back = read_back(&text);
        zero_bytes again = written(&back);
        assert_string_equal(back.name, specs[i]);
        assert_decode_alike(&tok, &back);
        assert_encode_alike(&tok, &back, SELF, zero_self_len);
        assert_int_equal(text.len, again.len);
        assert_memory_equal(text.bytes, again.bytes, text.len);
        zero_bytes_destroy(&again);
        zero_bytes_destroy(&text);
        zero_tokenizer_destroy(&back);
        zero_tokenizer_destroy(&tok);
    }
}

/* All tokens of two bytes: the largest file we write. */
TEST(the_largest_vocabulary_fits)
{
    enum { N = ZERO_VOCAB_MAX - ZERO_VOCAB_BYTES };
    zero_merge *merges = malloc(N * sizeof *merges);
    assert_non_null(merges);
    for (int32_t i = 0; i < N; i++) merges[i] = (zero_merge){255 - i % 256, 255 - i / 256};
    zero_tokenizer tok;
    assert_ok(zero_tokenizer_from_merges(&tok, merges, N));
    zero_bytes text = written(&tok);
    zero_tokenizer back = read_back(&text);
    assert_decode_alike(&tok, &back);
    zero_tokenizer_destroy(&back);
    zero_tokenizer_destroy(&tok);
    zero_bytes_destroy(&text);
    free(merges);
}

static void refused(const char *text, size_t len, const char *reason)
{
    zero_tokenizer tok = {.vocab = 42};
    if (zero_tokenizer_parse_file(F, text, len, &tok) != ZERO_ERR_FORMAT)
        fail_msg("%.200s: expected '%s'", text, reason);
    if (!strstr(zero_last_error(), reason) || !strstr(zero_last_error(), F))
        fail_msg("'%s' lacks '%s'", zero_last_error(), reason);
    assert_int_equal(tok.vocab, 42);
}

#define HEAD "{\"format\": \"zero tokenizer\", \"version\": 1, \"name\": "

TEST(attacks_are_refused)
{
    for (test_table t = table_open("data/not_tokenizers.txt"); table_next(&t);)
        refused(t.field[0], strlen(t.field[0]), t.field[1]);
}

/* Each merge joins the last token with itself: 60 of them would make 2^60 bytes. */
TEST(texts_that_double_are_refused)
{
    char text[4096];
    size_t len =
        (size_t)snprintf(text, sizeof text, HEAD "\"bpe:316\", \"merges\": [[0, 0]");
    for (int i = 0; i < 59; i++)
        len +=
            (size_t)snprintf(text + len, sizeof text - len, ", [%d, %d]", 256 + i, 256 + i);
    len += (size_t)snprintf(text + len, sizeof text - len, "]}");
    refused(text, len, "longer than any piece of text");
}

TEST(lists_that_are_no_characters_are_refused)
{
    static const struct {
        const char *from, *to, *text;
        zero_status code;
    } cases[] = {
        {"\"a\": 0", "\"ab\": 0", "\"ab\" does not fit", ZERO_ERR_FORMAT},
        {"\"a\": 0", "\"a\": 1", "does not fit", ZERO_ERR_FORMAT},
        {"\"a\": 0", "\"a\": -1", "does not fit", ZERO_ERR_FORMAT},
        {"\"a\": 0", "\"a\": 2", "does not fit", ZERO_ERR_FORMAT},
        {"\"a\": 0", "\"a\": \"0\"", "does not fit", ZERO_ERR_FORMAT},
        {"\"a\": 0", "\"c\": 0", "ascending order", ZERO_ERR_FORMAT},
        {"\"a\": 0", "\"\": 0", "does not fit", ZERO_ERR_FORMAT},
        {"Isolated", "Removed", "WordLevel is not supported", ZERO_ERR_UNSUPPORTED},
        {"<unk>", "b", "WordLevel is not supported", ZERO_ERR_UNSUPPORTED},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        zero_tokenizer tok, made;
        char file[2000];
        assert_int_equal(zero_tokenizer_init(1, &tok, "char", (unsigned char *)"ab", 2), 0);
        zero_bytes text = written(&tok);
        const char *whole = (const char *)text.bytes, *at = strstr(whole, cases[i].from);
        assert_true(at && text.len < sizeof file - 100);
        int len =
            snprintf(file, sizeof file, "%.*s%s%.*s", (int)(at - whole), whole, cases[i].to,
                     (int)(text.len - (size_t)(at - whole) - strlen(cases[i].from)),
                     at + strlen(cases[i].from));
        assert_int_equal(zero_tokenizer_parse_file(F, file, (size_t)len, &made),
                         cases[i].code);
        assert_told(cases[i].text);
        zero_bytes_destroy(&text);
        zero_tokenizer_destroy(&tok);
    }
}

TEST(huge_files_are_refused_unread)
{
    zero_tokenizer tok;
    assert_fails(zero_tokenizer_parse_file(F, "{", ZERO_TOKENIZER_FILE_MAX + 1, &tok),
                 ZERO_ERR_FORMAT, "at most 67108864 bytes, found 67108865");
}

/* A file that is cut, or has one bit changed, is refused or a tokenizer: never a crash. */
TEST(damaged_files_are_refused_or_sound)
{
    zero_tokenizer tok = learn("bpe:270");
    zero_bytes text = written(&tok);
    for (size_t len = 0; len + 2 < text.len; len += 3 * TEST_SHARE(7)) {
        zero_tokenizer back;
        assert_int_equal(zero_tokenizer_parse_file(F, text.bytes, len, &back),
                         ZERO_ERR_FORMAT);
    }
    for (size_t bit = 0; bit < 8 * text.len; bit += 5 * TEST_SHARE(7)) {
        zero_tokenizer back;
        text.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        if (zero_tokenizer_parse_file(F, text.bytes, text.len, &back) == ZERO_OK) {
            assert_encode_alike(&back, &back, SELF, 200);
            zero_tokenizer_destroy(&back);
        }
        text.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    zero_bytes_destroy(&text);
    zero_tokenizer_destroy(&tok);
}
