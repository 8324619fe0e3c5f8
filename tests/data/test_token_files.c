/* Files of tokens that other programs have made. */

#include "support/corpus_test.h"

#include <sys/stat.h>

#include "data/tokens.h"

/* Writes a token file byte by byte; magic 0: without a header. */
static void write_tokens(const char *path, uint32_t magic, uint32_t version,
                         uint32_t promised, uint32_t n, int width, uint32_t first)
{
    unsigned char bytes[4096] = {0};
    size_t len = magic ? 1024 : 0;
    const uint32_t header[] = {magic, version, promised};
    for (size_t i = 0; magic && i < 12; i++)
        bytes[i] = (unsigned char)(header[i / 4] >> (8 * (i % 4)));
    for (uint32_t i = 0; i < n; i++)
        for (int b = 0; b < width; b++)
            bytes[len++] = (unsigned char)((first + i) >> (8 * b));
    write_file(path, bytes, len);
}

TEST(token_shards_are_read_in_order)
{
    int32_t tokens[30];
    write_tokens("s_2.bin", 20240520, 1, 10, 10, 2, 1010);
    write_tokens("s_1.bin", 20240520, 1, 20, 20, 2, 990);
    zero_corpus corpus = opened("s_*.bin", NULL, 0);
    assert_int_equal(corpus.vocab, 50257);
    assert_int_equal(corpus.n_tokens, 30);
    assert_null(corpus.tokenizer);
    zero_corpus_read(&corpus, 0, 30, tokens);
    for (int i = 0; i < 30; i++) assert_int_equal(tokens[i], 990 + i);
    zero_corpus_close(&corpus);
}

TEST(llama_3_shards_have_wide_tokens)
{
    int32_t tokens[3];
    write_tokens("l.bin", 20240801, 7, 20, 20, 4, 128236);
    zero_corpus corpus = opened("l.bin", NULL, 0);
    assert_int_equal(corpus.vocab, 128256);
    zero_corpus_read(&corpus, 17, 3, tokens);
    assert_int_equal(tokens[2], 128255);
    zero_corpus_close(&corpus);
    assert_refused("l.bin", NULL, 128255, ZERO_ERR_FORMAT, "token 19 has the id 128255");
}

TEST(nanogpt_files_need_a_vocabulary)
{
    int32_t tokens[2];
    write_tokens("train.bin", 0, 0, 0, 50, 2, 0);
    zero_corpus corpus = opened("train.bin", NULL, 65);
    assert_int_equal(corpus.vocab, 65);
    assert_int_equal(corpus.n_tokens, 50);
    zero_corpus_read(&corpus, 48, 2, tokens);
    assert_int_equal(tokens[1], 49);
    zero_corpus_close(&corpus);
    assert_refused("train.bin", NULL, 0, ZERO_ERR_INVALID, "pass --vocab");
    assert_refused("train.bin", NULL, 49, ZERO_ERR_FORMAT,
                   "train.bin: token 49 has the id 49, but the vocabulary has only 49");
    assert_refused("train.bin", "byte", 65, ZERO_ERR_INVALID, "--tokenizer byte");
}

/* ---- bytes per token ---- */

static void write_numbers(const char *path, int n, int width, bool is_turned,
                          uint64_t (*number)(int i))
{
    static unsigned char bytes[8000];
    for (int i = 0; i < n; i++)
        for (int b = 0; b < width; b++)
            bytes[i * width + (is_turned ? width - 1 - b : b)] =
                (unsigned char)(number(i) >> (8 * b));
    write_file(path, bytes, (size_t)(n * width));
}

static uint64_t some_ids(int i)
{
    return (uint64_t)(i * 7919 % 300);
}

static uint64_t even_ids(int i)
{
    return i % 2 ? 0 : 7;
}

static uint64_t padded_ids(int i)
{
    return i % 3 ? 0 : 7;
}

static uint64_t masked_ids(int i)
{
    return i < 3 ? (uint64_t)-100 : 7;
}

static zero_status open_as(const char *path, int token_bytes, int64_t vocab,
                           zero_corpus *corpus)
{
    const zero_corpus_source from = {
        .data = path, .token_bytes = token_bytes, .vocab = vocab};
    return zero_corpus_open(&from, corpus);
}

static void refused_as(const char *path, int token_bytes, int64_t vocab, zero_status status,
                       const char *text)
{
    zero_corpus corpus;
    assert_int_equal(open_as(path, token_bytes, vocab, &corpus), status);
    assert_told(text);
}

static void taken_as(const char *path, int token_bytes, int64_t vocab, int64_t n_tokens)
{
    zero_corpus corpus;
    if (open_as(path, token_bytes, vocab, &corpus) != ZERO_OK)
        fail_msg("%s: %s", path, zero_last_error());
    assert_int_equal(corpus.n_tokens, n_tokens);
    zero_corpus_close(&corpus);
}

static void holds_some_ids(const char *path, int token_bytes, int width)
{
    zero_corpus corpus;
    if (open_as(path, token_bytes, 300, &corpus) != ZERO_OK)
        fail_msg("%s: %s", path, zero_last_error());
    assert_int_equal(corpus.width, width);
    assert_int_equal(corpus.n_tokens, 1000);
    for (int i = 0; i < 1000; i++) {
        int32_t token;
        zero_corpus_read(&corpus, i, 1, &token);
        assert_int_equal(token, some_ids(i));
    }
    zero_corpus_close(&corpus);
}

TEST(tokens_have_the_bytes_that_the_option_gives)
{
    for (int width = 2; width <= 8; width *= 2) {
        write_numbers("t.bin", 1000, width, false, some_ids);
        write_numbers("tokens", 1000, width, false, some_ids); /* whatever it is called */
        holds_some_ids("t.bin", width, width == 8 ? 4 : width);
        holds_some_ids("tokens", width, width == 8 ? 4 : width);
    }
    zero_corpus corpus;
    write_text("bytes", "any bytes");
    assert_ok(open_as("bytes", 1, 0, &corpus));
    assert_int_equal(corpus.vocab, 256);
    assert_null(corpus.tokenizer);
    assert_holds(&corpus, "any bytes");
    refused_as("bytes", 2, 300, ZERO_ERR_FORMAT, "9 bytes, which is not a multiple");
    refused_as("bytes", 3, 300, ZERO_ERR_INVALID, "expected 1, 2, 4 or 8");
    refused_as("self", 2, 300, ZERO_ERR_INVALID, "--data self is text");
}

/* Read as 2 bytes, every second token is 0, and a model soon knows that. */
TEST(wider_tokens_are_not_read_as_two_bytes)
{
    for (int width = 4; width <= 8; width *= 2) {
        char advice[40];
        snprintf(advice, sizeof advice, "give --token-bytes %d", width);
        write_numbers("t.bin", 1000, width, false, some_ids);
        refused_as("t.bin", 0, 300, ZERO_ERR_FORMAT, advice);
        write_numbers("padded.bin", 1000, width, false, padded_ids);
        refused_as("padded.bin", 0, 300, ZERO_ERR_FORMAT, advice);
    }
    write_numbers("t.bin", 1000, 4, false, some_ids);
    refused_as(
        "t.bin", 0, 300, ZERO_ERR_FORMAT,
        "of its 2000 numbers of 2 bytes 996 at even places and 0 at odd ones are not 0");
    refused_as("t.bin", 0, 65537, ZERO_ERR_INVALID, "tokens of 2 bytes");
    refused_as("t.bin", 0, 65537, ZERO_ERR_INVALID, "reach 65535");
    taken_as("t.bin", 2, 300, 2000); /* the option decides */
    write_numbers("even.bin", 1000, 2, false, even_ids);
    refused_as("even.bin", 0, 300, ZERO_ERR_FORMAT, "or --token-bytes 2 if they are not");
    taken_as("even.bin", 2, 300, 1000);
    write_numbers("padded.bin", 999, 2, false, padded_ids);
    taken_as("padded.bin", 0, 300, 999);
}

/* Every two letters would be a token of GPT-2's vocabulary. */
TEST(a_text_named_bin_is_not_tokens)
{
    char text[200] = "";
    while (strlen(text) < 80) strcat(text, "the f\xc3\xb6x saw.\n");
    write_text("t.bin", text);
    refused_as("t.bin", 0, 65536, ZERO_ERR_FORMAT, "t.bin: this is text");
    taken_as("t.bin", 2, 65536, (int64_t)strlen(text) / 2);
    text[40] = '\1';
    write_text("t.bin", text);
    taken_as("t.bin", 0, 65536, (int64_t)strlen(text) / 2);
}

TEST(another_reading_that_fits_is_named)
{
    for (int width = 2; width <= 8; width *= 2) {
        char advice[80];
        snprintf(advice, sizeof advice, "its numbers of %d bytes all are below it", width);
        write_numbers("t.bin", 1000, width, true, some_ids);
        refused_as("t.bin", 0, 300, ZERO_ERR_FORMAT, advice);
        refused_as("t.bin", width, 300, ZERO_ERR_FORMAT, "big-endian");
    }
    write_numbers("t.bin", 1000, 2, false, some_ids);
    refused_as("t.bin", 4, 300, ZERO_ERR_FORMAT, "give --token-bytes 2");
    write_text("b.bin", "bytes below 128 ");
    refused_as("b.bin", 0, 128, ZERO_ERR_FORMAT, "give --token-bytes 1");
    refused_as("b.bin", 0, 256, ZERO_ERR_FORMAT,
               "see --vocab"); /* all bytes are below it */
    write_numbers("m.bin", 1000, 8, false, masked_ids);
    refused_as("m.bin", 8, 300, ZERO_ERR_FORMAT,
               "token 0 has the id 18446744073709551516, but the vocabulary has only 300");
}

/* The type of Megatron's tokens is in the index beside them. */
TEST(an_index_says_what_bytes_tokens_have)
{
    static const struct {
        char type;
        int width;
    } types[] = {{8, 2}, {3, 2}, {4, 4}, {5, 8}};
    unsigned char index[40] = "MMIDIDX\0\0\1";
    for (size_t i = 0; i < COUNT(types); i++) {
        const int width = types[i].width;
        index[17] = (unsigned char)types[i].type;
        write_file("t.idx", index, sizeof index);
        write_numbers("t.bin", 1000, width, false, some_ids);
        holds_some_ids("t.bin", 0, width == 8 ? 4 : width);
        holds_some_ids("t.bin", width, width == 8 ? 4 : width);
        refused_as("t.bin", width == 2 ? 4 : 2, 300, ZERO_ERR_FORMAT,
                   "the index beside it says that its tokens have");
    }
    index[17] = 6; /* floats */
    write_file("t.idx", index, sizeof index);
    refused_as("t.bin", 0, 300, ZERO_ERR_FORMAT, "t.idx: expected Megatron's index");
    write_text("t.idx", "a list of words");
    refused_as("t.bin", 0, 300, ZERO_ERR_FORMAT, "t.idx: expected Megatron's index");
    holds_some_ids("t.bin", 8, 4);
    assert_int_equal(unlink("t.idx") | mkdir("t.idx", 0700), 0);
    refused_as("t.bin", 0, 300, ZERO_ERR_IO, "t.idx: expected a regular file");
    holds_some_ids("t.bin", 8, 4);
    write_tokens("l.bin", 20240520, 1, 10, 10, 2, 0);
    refused_as("l.bin", 4, 300, ZERO_ERR_FORMAT, "llm.c's number at byte 0 says");
}

TEST(files_of_one_corpus_have_tokens_of_equal_bytes)
{
    unsigned char index[40] = "MMIDIDX\0\0\1";
    index[17] = 4;
    write_file("a.idx", index, sizeof index);
    write_numbers("a.bin", 1000, 4, false, some_ids);
    write_numbers("b.bin", 1000, 2, false, some_ids);
    assert_refused("?.bin", NULL, 300, ZERO_ERR_FORMAT,
                   "a.bin is uint32 data, but b.bin is nanoGPT data");
    zero_corpus corpus;
    const zero_corpus_source from = {.data = "b.bin", .validation = "a.bin", .vocab = 300};
    assert_fails(zero_corpus_open(&from, &corpus), ZERO_ERR_FORMAT,
                 "a.bin is uint32 data, but --data b.bin is");
}

TEST(broken_token_files_are_refused)
{
    write_tokens("version.bin", 20240520, 3, 10, 10, 2, 0);
    write_tokens("short.bin", 20240520, 1, 11, 10, 2, 0);
    write_tokens("long.bin", 20240520, 1, 9, 10, 2, 0);
    write_tokens("huge.bin", 20240520, 1, UINT32_MAX, 10, 2, 0);
    write_tokens("none.bin", 20240520, 1, 0, 0, 2, 0);
    write_file("cut.bin", "\x88\xd8\x34\x01\x01", 5);
    write_file("odd.bin", "abcde", 5);
    write_file("void.bin", "", 0);
    write_tokens("eval.bin", 20240522, 1, 10, 10, 2, 0);
    write_text("text.txt", "text");
    assert_refused("version.bin", NULL, 0, ZERO_ERR_FORMAT, "expected version 1");
    assert_refused("short.bin", NULL, 0, ZERO_ERR_FORMAT, "promises 11 tokens");
    assert_refused("long.bin", NULL, 0, ZERO_ERR_FORMAT,
                   "a file of 1042 bytes, but it has 1044");
    assert_refused("huge.bin", NULL, 0, ZERO_ERR_FORMAT, "promises 4294967295 tokens");
    assert_refused("none.bin", NULL, 0, ZERO_ERR_FORMAT, "nothing to train on");
    assert_refused("cut.bin", NULL, 0, ZERO_ERR_FORMAT, "header of 1024 bytes is cut off");
    assert_refused("odd.bin", NULL, 9, ZERO_ERR_FORMAT, "5 bytes, which is not a multiple");
    assert_refused("void.bin", NULL, 9, ZERO_ERR_FORMAT, "nothing to train on");
    assert_refused("eval.bin", NULL, 0, ZERO_ERR_FORMAT, "llm.c evaluation set");
    assert_refused("[st]*t.*", NULL, 0, ZERO_ERR_FORMAT, "files of one kind");
}

/* A file that changes between its detection and its reading. */
static void assert_changed(const char *path, zero_tokens_format format, const char *text)
{
    zero_bytes tokens = {0};
    const zero_tokens_limit limit = {50257, NULL};
    assert_ok(zero_bytes_append(&tokens, "ab", 2));
    assert_fails(zero_tokens_read(path, format, limit, &tokens), ZERO_ERR_FORMAT, text);
    assert_int_equal(tokens.len, 2);
    zero_bytes_destroy(&tokens);
}

TEST(token_files_that_change_under_us_are_refused)
{
    zero_tokens_format format;
    const zero_tokens_format raw = {ZERO_TOKENS_RAW, 2, true};
    zero_file file;
    bool is_binary;
    write_tokens("shard.bin", 20240520, 1, 10, 10, 2, 0);
    assert_ok(zero_file_open("shard.bin", &file));
    assert_ok(zero_tokens_detect(&file, 0, &format, &is_binary));
    zero_file_close(&file);
    assert_int_equal(format.kind, ZERO_TOKENS_LLMC);
    assert_int_equal(format.bytes, 2);
    assert_int_equal(truncate("shard.bin", 1043), 0);
    assert_changed("shard.bin", format, "but it has 1043");
    assert_int_equal(truncate("shard.bin", 1045), 0);
    assert_changed("shard.bin", format, "but it has 1045");
    assert_int_equal(truncate("shard.bin", 3), 0);
    assert_changed("shard.bin", format, "expected a file of llm.c, found");
    write_tokens("shard.bin", 20240801, 7, 5, 5, 4, 0);
    assert_changed("shard.bin", format, "found Llama-3");
    assert_changed("shard.bin", raw, "tokens have 4 bytes");
    write_tokens("shard.bin", 20240328, 1, 10, 10, 2, 0);
    assert_changed("shard.bin", format, "this is an llm.c tokenizer");
}

TEST(headers_that_promise_too_much_are_refused)
{
    write_tokens("wraps.bin", 20240801, 7, UINT32_C(1) << 30, 0, 4, 0);
    write_tokens("turned.bin", 0x88d83401u, 1, 10, 10, 2, 0);
    write_tokens("wide.bin", 20240801, 7, 2, 2, 4, UINT32_MAX - 1);
    assert_refused("wraps.bin", NULL, 0, ZERO_ERR_FORMAT, "a file of 4294968320 bytes");
    assert_refused("turned.bin", NULL, 0, ZERO_ERR_FORMAT, "of a big-endian machine");
    assert_refused("wide.bin", NULL, 0, ZERO_ERR_FORMAT, "has the id 4294967294");
}

TEST(names_in_messages_do_not_paint_the_terminal)
{
    write_text("\033[2J.bin", "odd");
    assert_refused("\033[2J.bin", NULL, 9, ZERO_ERR_FORMAT,
                   "\\u{1B}[2J.bin: expected tokens of 2");
    assert_null(strchr(zero_last_error(), '\033'));
    write_text("x\nzero: all is well.bin", "odd");
    assert_refused("x\nzero: all is well.bin", NULL, 9, ZERO_ERR_FORMAT,
                   "x\\u{A}zero: all is well.bin: expected tokens of 2");
}
