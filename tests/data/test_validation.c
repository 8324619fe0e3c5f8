/* Validation data of their own: --val-data, and the names of llm.c's and nanoGPT's files. */
#include "support/corpus_test.h"

#include <sys/stat.h>

static zero_corpus opened_with(const char *data, const char *validation,
                               const char *tokenizer, int64_t vocab)
{
    zero_corpus corpus;
    zero_corpus_source from = {.data = data,
                               .validation = validation,
                               .tokenizer = tokenizer,
                               .seed = 1,
                               .vocab = vocab};
    if (zero_corpus_open(&from, &corpus) != ZERO_OK)
        fail_msg("%s: %s", data, zero_last_error());
    return corpus;
}

static void refused_with(const char *data, const char *validation, const char *text)
{
    zero_corpus corpus;
    zero_corpus_source from = {
        .data = data, .validation = validation, .seed = 1, .vocab = 300};
    assert_int_not_equal(zero_corpus_open(&from, &corpus), ZERO_OK);
    assert_told(text);
}

TEST(text_for_validation_follows_the_training_text)
{
    write_text("t", "0123456789abcdefghij");
    write_text("v", "ABC");
    zero_corpus corpus = opened_with("t", "v", NULL, 0);
    assert_true(corpus.has_validation);
    assert_int_equal(corpus.n_train, 20);
    assert_non_null(strstr(corpus.validation, "v, 3 tokens"));
    assert_non_null(strstr(corpus.description, "20 tokens"));
    assert_holds(&corpus, "0123456789abcdefghijABC");
    corpus = opened_with("t", NULL, NULL, 0);
    assert_false(corpus.has_validation);
    assert_int_equal(corpus.n_train, 18);
    zero_corpus_close(&corpus);
}

TEST(no_token_crosses_into_the_validation_data)
{
    write_text("t", "ab1ab1ab1ab1a");
    write_text("v", "b1ab");
    zero_corpus corpus = opened_with("t", "v", "bpe:257", 0);
    int32_t border[2];
    zero_corpus_read(&corpus, corpus.n_train - 1, 2, border);
    assert_true(border[0] == 'a' && border[1] == 'b');
    zero_corpus_close(&corpus);
}

TEST(characters_of_the_validation_data_have_tokens)
{
    write_text("t", "cabcabcab");
    write_text("v", "\xc3\xa4z");
    zero_corpus corpus = opened_with("t", "v", "char", 0);
    int32_t tokens[11];
    assert_int_equal(corpus.vocab, 5); /* a b c z and a letter of two bytes */
    assert_int_equal(corpus.n_train, 9);
    zero_corpus_read(&corpus, 0, 11, tokens);
    assert_true(tokens[0] == 2 && tokens[1] == 0 && tokens[9] == 4 && tokens[10] == 3);
    zero_corpus_close(&corpus);
}

/* Two tokens of 16 bits that name the file. */
static void write_token_file(const char *path, char which)
{
    char bytes[4] = {which, 0, which, 0};
    write_file(path, bytes, sizeof bytes);
}

TEST(names_say_what_is_for_validation)
{
    static const char *const names[] = {"d/a_val_000001.bin",   "d/b_train_000002.bin",
                                        "d/c_train_000001.bin", "d/d_val.bin",
                                        "d/train.bin",          "d/val.bin",
                                        "d/x_interval.bin"};
    assert_int_equal(mkdir("d", 0700), 0);
    for (int i = 0; i < 7; i++) write_token_file(names[i], (char)('0' + i));
    zero_corpus corpus = opened_with("d", NULL, NULL, 256);
    assert_true(corpus.has_validation);
    assert_int_equal(corpus.n_train, 8); /* "interval" is another word */
    assert_holds(&corpus, "11224466003355");

    /* The last tenth, where all files are of one kind. */
    corpus = opened_with("d/*val*.bin", NULL, NULL, 256);
    assert_false(corpus.has_validation);
    zero_corpus_close(&corpus);
    corpus = opened_with("d/*train*.bin", NULL, NULL, 256);
    assert_false(corpus.has_validation);
    zero_corpus_close(&corpus);
    corpus = opened_with("d/train.bin", "d/val.bin", NULL, 256);
    assert_int_equal(corpus.n_train, 2);
    assert_holds(&corpus, "4455");
}

TEST(mistakes_are_refused)
{
    write_text("t", "some text");
    write_text("empty", "");
    write_token_file("train.bin", 'a');
    write_token_file("val.bin", 'b');
    refused_with("t", "val.bin",
                 "--val-data: val.bin is nanoGPT data, but --data t is text");
    refused_with("train.bin", "t",
                 "--val-data: t is text data, but --data train.bin is nanoGPT");
    refused_with("t", "empty", "--val-data empty: nothing to validate on");
    refused_with("t", "nothing", "--val-data nothing: No such file");
    refused_with("t", "stories:4K", "--val-data stories:4K");
    refused_with("*.bin", "val.bin", "leave --val-data out");
}

TEST(checksums_follow_the_training_data)
{
    char own[ZERO_CHECKSUM], other[ZERO_CHECKSUM], tenth[ZERO_CHECKSUM];
    write_text("t", "0123456789abcdefghij");
    write_text("v", "ABC");
    zero_corpus a = opened_with("t", "v", NULL, 0), b = opened_with("t", "t", NULL, 0);
    zero_corpus c = opened_with("t", NULL, NULL, 0);
    zero_corpus_checksum(&a, own);
    zero_corpus_checksum(&b, other);
    zero_corpus_checksum(&c, tenth);
    assert_string_equal(own, other);     /* other validation data: the same training */
    assert_string_not_equal(own, tenth); /* a tenth is not trained on */
    assert_true(zero_corpus_fingerprint(&a) != zero_corpus_fingerprint(&b));
    zero_corpus_close(&a);
    zero_corpus_close(&b);
    zero_corpus_close(&c);
}
