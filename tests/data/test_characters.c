/* --tokenizer char. */

#include "support/test.h"

#include "base/utf8.h"
#include "data/encode.h"
#include "support/encode_test.h"

TEST(every_code_point_is_written_and_read_alike)
{
    int64_t n_valid = 0;
    for (uint32_t c = 0; c < 0x110000; c++) {
        unsigned char text[4] = {0};
        uint32_t back = 0;
        size_t n = zero_utf8_write(c, text), read = zero_utf8_read(text, n, &back);
        n_valid += read > 0;
        assert_true(c >= 0xd800 && c < 0xe000 ? read == 0 : read == n && back == c);
        if (n > 1) assert_int_equal(zero_utf8_length(text, n - 1), 0);
    }
    assert_int_equal(n_valid, 0x110000 - 0x800);
}

/* Each character has one spelling, so decoding gives back the text. */
TEST(other_spellings_are_not_read)
{
    static const char *const wrong[] = {"\x80",
                                        "\xbf",
                                        "\xc0\x80",
                                        "\xc1\xbf",
                                        "\xe0\x9f\xbf",
                                        "\xf0\x8f\xbf\xbf",
                                        "\xed\xa0\x80",
                                        "\xf4\x90\x80\x80",
                                        "\xf8\x88\x80\x80\x80",
                                        "\xff",
                                        "\xc3("};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        uint32_t c = 42;
        assert_int_equal(
            zero_utf8_read((const unsigned char *)wrong[i], strlen(wrong[i]), &c), 0);
        assert_int_equal(c, 42);
    }
}

static zero_tokenizer learn(const char *text)
{
    zero_tokenizer tok;
    if (zero_tokenizer_init(1, &tok, "char", (const unsigned char *)text, strlen(text)) !=
        ZERO_OK)
        fail_msg("%s", zero_last_error());
    return tok;
}

/* As nanoGPT's sorted(set("hello, w\u00f6rld\n")). */
TEST(tokens_are_places_in_the_sorted_set_of_characters)
{
    static const int32_t expected[] = {5, 4, 6, 6, 7, 2, 1, 9, 10, 8, 6, 3, 0};
    const char *text = "hello, w\xc3\xb6rld\n";
    zero_tokenizer tok = learn(text);
    int32_t tokens[16];
    assert_int_equal(tok.vocab, 11);
    int64_t n = encoded(&tok, (const unsigned char *)text, 14, tokens);
    assert_int_equal(n, 13);
    assert_memory_equal(tokens, expected, sizeof expected);
    size_t len;
    assert_memory_equal(zero_tokenizer_decode(&tok, 10, &len), "\xc3\xb6", 2);
    assert_int_equal(len, 2);
    n = encoded(&tok, (const unsigned char *)"hx\xc3", 3, tokens);
    assert_true(n == 3 && tokens[0] == 5 && tokens[1] == -1 && tokens[2] == -1);
    zero_tokenizer_destroy(&tok);
}

/* Long texts are encoded in blocks, none of which may cut a character. */
TEST(long_texts_come_back)
{
    enum { N = 100001 };
    unsigned char *text = malloc(3 * N), *at = text;
    assert_non_null(text);
    for (int i = 0; i < N; i++, at += 3)
        memcpy(at, i % 2 ? "\xe2\x82\xac" : "\xe2\x82\xad", 3);
    zero_bytes bytes = {.bytes = text, .len = 3 * N}, tokens = {0};
    zero_tokenizer tok;
    assert_ok(zero_tokenizer_init(1, &tok, "char", text, 3 * N));
    assert_ok(zero_encode_text(&tok, &bytes, 1, &tokens));
    assert_int_equal(tokens.len, 2 * N);
    for (int i = 0; i < N; i++) assert_int_equal(((uint16_t *)tokens.bytes)[i], 1 - i % 2);
    zero_tokenizer_destroy(&tok);
    zero_bytes_destroy(&tokens);
    free(text);
}

/* A tokenizer from a file may lack characters of a text. */
TEST(a_text_of_other_characters_is_refused)
{
    zero_tokenizer tok = learn("ab");
    zero_bytes text = {.bytes = (unsigned char *)"abca", .len = 4}, tokens = {0};
    assert_fails(zero_encode_text(&tok, &text, 1, &tokens), ZERO_ERR_INVALID,
                 "character 3 of the text");
    zero_bytes_destroy(&tokens);
    zero_tokenizer_destroy(&tok);
}

TEST(texts_without_characters_are_refused)
{
    zero_tokenizer tok;
    assert_fails(zero_tokenizer_init(1, &tok, "char", (const unsigned char *)"ab\xff", 3),
                 ZERO_ERR_FORMAT, "not UTF-8 at byte 2 (0xff)");
    assert_fails(zero_tokenizer_init(1, &tok, "char", (const unsigned char *)"ab\0", 3),
                 ZERO_ERR_FORMAT, "a NUL at byte 2");
    enum { MANY = 65537 };
    unsigned char *text = malloc(4 * MANY);
    size_t len = 0;
    assert_non_null(text);
    for (uint32_t c = 0x10000; c < 0x10000 + MANY; c++)
        len += zero_utf8_write(c, text + len);
    assert_fails(zero_tokenizer_init(1, &tok, "char", text, len), ZERO_ERR_FORMAT,
                 "65537 different characters");
    assert_ok(zero_tokenizer_init(1, &tok, "char", text, len - 4));
    assert_int_equal(tok.vocab, 65536);
    zero_tokenizer_destroy(&tok);
    free(text);
}
