/* Files of tokens that other programs have made. */
#include "support/corpus_test.h"

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

static void token_shards_are_read_in_order(void **state)
{
    (void)state;
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

static void llama_3_shards_have_wide_tokens(void **state)
{
    (void)state;
    int32_t tokens[3];
    write_tokens("l.bin", 20240801, 7, 20, 20, 4, 128236);
    zero_corpus corpus = opened("l.bin", NULL, 0);
    assert_int_equal(corpus.vocab, 128256);
    zero_corpus_read(&corpus, 17, 3, tokens);
    assert_int_equal(tokens[2], 128255);
    zero_corpus_close(&corpus);
    assert_refused("l.bin", NULL, 128255, ZERO_ERR_FORMAT, "token 19 has the id 128255");
}

static void nanogpt_files_need_a_vocabulary(void **state)
{
    (void)state;
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

static void broken_token_files_are_refused(void **state)
{
    (void)state;
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
    assert_refused("odd.bin", NULL, 9, ZERO_ERR_FORMAT, "5 bytes, an odd number");
    assert_refused("void.bin", NULL, 9, ZERO_ERR_FORMAT, "nothing to train on");
    assert_refused("eval.bin", NULL, 0, ZERO_ERR_FORMAT, "llm.c evaluation set");
    assert_refused("[st]*t.*", NULL, 0, ZERO_ERR_FORMAT, "files of one kind");
}

/* A file that changes between its detection and its reading. */
static void assert_changed(const char *path, zero_tokens_kind kind, const char *text)
{
    zero_bytes tokens = {0};
    assert_int_equal(zero_bytes_append(&tokens, "ab", 2), ZERO_OK);
    assert_int_equal(zero_tokens_read(path, kind, 50257, &tokens), ZERO_ERR_FORMAT);
    if (!strstr(zero_last_error(), text))
        fail_msg("'%s' lacks '%s'", zero_last_error(), text);
    assert_int_equal(tokens.len, 2);
    zero_bytes_destroy(&tokens);
}

static void token_files_that_change_under_us_are_refused(void **state)
{
    (void)state;
    zero_tokens_kind kind;
    write_tokens("shard.bin", 20240520, 1, 10, 10, 2, 0);
    assert_int_equal(zero_tokens_detect("shard.bin", &kind), ZERO_OK);
    assert_int_equal(kind, ZERO_TOKENS_LLMC);
    assert_int_equal(truncate("shard.bin", 1043), 0);
    assert_changed("shard.bin", kind, "but it has 1043");
    assert_int_equal(truncate("shard.bin", 1045), 0);
    assert_changed("shard.bin", kind, "but it has 1045");
    assert_int_equal(truncate("shard.bin", 3), 0);
    assert_changed("shard.bin", kind, "expected a file of llm.c, found");
    write_tokens("shard.bin", 20240801, 7, 5, 5, 4, 0);
    assert_changed("shard.bin", kind, "found Llama-3");
    assert_changed("shard.bin", ZERO_TOKENS_NANOGPT, "found Llama-3");
    write_tokens("shard.bin", 20240328, 1, 10, 10, 2, 0);
    assert_changed("shard.bin", kind, "this is an llm.c tokenizer");
}

static void headers_that_promise_too_much_are_refused(void **state)
{
    (void)state;
    write_tokens("wraps.bin", 20240801, 7, UINT32_C(1) << 30, 0, 4, 0);
    write_tokens("turned.bin", 0x88d83401u, 1, 10, 10, 2, 0);
    write_tokens("wide.bin", 20240801, 7, 2, 2, 4, UINT32_MAX - 1);
    assert_refused("wraps.bin", NULL, 0, ZERO_ERR_FORMAT, "a file of 4294968320 bytes");
    assert_refused("turned.bin", NULL, 0, ZERO_ERR_INVALID, "pass --vocab N");
    assert_refused("wide.bin", NULL, 0, ZERO_ERR_FORMAT, "has the id 4294967294");
}

static void names_in_messages_do_not_paint_the_terminal(void **state)
{
    (void)state;
    write_text("\033[2J.bin", "odd");
    assert_refused("\033[2J.bin", NULL, 9, ZERO_ERR_FORMAT,
                   "\\u{1B}[2J.bin: expected nanoGPT");
    assert_null(strchr(zero_last_error(), '\033'));
    write_text("x\nzero: all is well.bin", "odd");
    assert_refused("x\nzero: all is well.bin", NULL, 9, ZERO_ERR_FORMAT,
                   "x\\u{A}zero: all is well.bin: expected nanoGPT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_directory(token_shards_are_read_in_order),
        in_directory(llama_3_shards_have_wide_tokens),
        in_directory(nanogpt_files_need_a_vocabulary),
        in_directory(broken_token_files_are_refused),
        in_directory(token_files_that_change_under_us_are_refused),
        in_directory(headers_that_promise_too_much_are_refused),
        in_directory(names_in_messages_do_not_paint_the_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
