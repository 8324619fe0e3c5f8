#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rng.h"
#include "data/corpus.h"
#include "data/loader.h"
#include "data/self_text.h"
#include "data/tokens.h"

/* ---- a directory of files for each test ---- */

static int enter_new_directory(void **state)
{
    char *path = strdup("/tmp/zero_test_data_XXXXXX");
    *state = path;
    return path && mkdtemp(path) && chdir(path) == 0 ? 0 : -1;
}

static int remove_directory(void **state)
{
    char command[100];
    int failed = chdir("/");
    snprintf(command, sizeof command, "rm -r '%s'", (const char *)*state);
    failed |= system(command);
    free(*state);
    return failed;
}

static void write_file(const char *path, const void *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static void write_text(const char *path, const char *text)
{
    write_file(path, text, strlen(text));
}

/* A token file as its format describes it, byte by byte; magic 0: without a header. */
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

static zero_corpus opened(const char *spec, const char *tokenizer, int64_t vocab)
{
    zero_corpus corpus;
    if (zero_corpus_open(spec, tokenizer, 1, vocab, &corpus) != ZERO_OK)
        fail_msg("%s: %s", spec, zero_last_error());
    return corpus;
}

/* The corpus cannot be opened, and the message holds this text. */
static void assert_refused(const char *spec, const char *tokenizer, int64_t vocab,
                           zero_status status, const char *text)
{
    zero_corpus corpus = {.vocab = 42};
    assert_int_equal(zero_corpus_open(spec, tokenizer, 1, vocab, &corpus), status);
    if (!strstr(zero_last_error(), text))
        fail_msg("'%s' lacks '%s'", zero_last_error(), text);
    assert_int_equal(corpus.vocab, 42);
}

static void assert_holds(zero_corpus *corpus, const char *text)
{
    size_t len = strlen(text);
    assert_int_equal(corpus->n_tokens, len);
    for (size_t i = 0; i < len; i++) {
        int32_t token;
        zero_corpus_read(corpus, (int64_t)i, 1, &token);
        assert_int_equal(token, (unsigned char)text[i]);
    }
    zero_corpus_close(corpus);
}

/* ---- text ---- */

static void a_file_is_its_bytes(void **state)
{
    (void)state;
    write_text("a.txt", "hello, w\xc3\xb6rld");
    zero_corpus corpus = opened("a.txt", NULL, 0);
    assert_int_equal(corpus.vocab, 256);
    assert_int_equal(corpus.width, 1);
    assert_int_equal(corpus.n_train, 13 - 1);
    assert_string_equal(corpus.tokenizer->name, "byte");
    assert_false(corpus.has_entropy);
    assert_holds(&corpus, "hello, w\xc3\xb6rld");
}

static void a_directory_is_its_files_by_path_without_hidden_ones(void **state)
{
    (void)state;
    assert_int_equal(mkdir("d", 0700), 0);
    assert_int_equal(mkdir("d/m", 0700), 0);
    assert_int_equal(mkdir("d/.git", 0700), 0);
    write_text("d/z", "4");
    write_text("d/B", "1");
    write_text("d/a", "2");
    write_text("d/m/x", "3");
    write_text("d/.hidden", "no");
    write_text("d/.git/x", "no");
    assert_int_equal(symlink(".", "d/loop"), 0);
    zero_corpus corpus = opened("d", NULL, 0);
    assert_holds(&corpus, "1234");
    corpus = opened("d/", NULL, 0);
    assert_holds(&corpus, "1234");
}

static void a_pattern_is_its_matches_by_path(void **state)
{
    (void)state;
    write_text("p2.txt", "second ");
    write_text("p10.txt", "first ");
    write_text("p3.txt", "third");
    write_text("q.txt", "no");
    zero_corpus corpus = opened("p*.txt", NULL, 0);
    assert_holds(&corpus, "first second third");
    write_text("odd[1].txt", "a name, no pattern");
    corpus = opened("odd[1].txt", NULL, 0);
    assert_holds(&corpus, "a name, no pattern");
}

static void a_text_can_be_read_through_bpe(void **state)
{
    (void)state;
    char text[200001] = "";
    size_t len = 0;
    for (uint64_t i = 0; len + 20 < sizeof text; i++)
        len += (size_t)snprintf(text + len, 20, "the cat %d \n", (int)(i * i % 97));
    write_text("cats.txt", text);
    zero_corpus corpus = opened("cats.txt", "bpe:300", 0);
    assert_int_equal(corpus.vocab, 300);
    assert_int_equal(corpus.width, 2);
    /* Encoded in blocks, but the tokens are those of the whole. */
    int32_t *whole = malloc(len * sizeof *whole), *read = malloc(len * sizeof *read);
    int64_t n = zero_tokenizer_encode(corpus.tokenizer, (unsigned char *)text, len, whole);
    assert_int_equal(corpus.n_tokens, n);
    zero_corpus_read(&corpus, 0, n, read);
    assert_memory_equal(whole, read, (size_t)n * sizeof *whole);
    free(read);
    free(whole);
    zero_corpus_close(&corpus);
}

static void missing_and_empty_texts_are_refused(void **state)
{
    (void)state;
    assert_int_equal(mkdir("empty", 0700), 0);
    write_text("empty/.hidden", "x");
    write_text("void.txt", "");
    write_text("void2.txt", "");
    write_text("a.txt", "aaaa");
    assert_refused("nothing", NULL, 0, ZERO_ERR_IO, "--data nothing: No such file");
    assert_refused("nothing*", NULL, 0, ZERO_ERR_IO, "no file matches");
    assert_refused("empty", NULL, 0, ZERO_ERR_IO, "no regular file below");
    assert_refused("void.txt", NULL, 0, ZERO_ERR_FORMAT, "the file is empty");
    assert_refused("void*.txt", NULL, 0, ZERO_ERR_FORMAT, "all of its files are empty");
    assert_refused("/dev/null", NULL, 0, ZERO_ERR_IO, "expected a regular file");
    assert_refused("a.txt", "bpe:400", 0, ZERO_ERR_INVALID, "at most bpe:");
    assert_refused("a.txt", "gpt2", 0, ZERO_ERR_INVALID, "unknown tokenizer 'gpt2'");
    assert_refused("a.txt", NULL, 100, ZERO_ERR_INVALID, "--vocab 100 is too small");
    assert_refused("a.txt", NULL, -1, ZERO_ERR_INVALID, "--vocab -1");
}

static void what_may_not_be_read_is_refused(void **state)
{
    (void)state;
    if (geteuid() == 0) skip(); /* root may read everything */
    write_text("secret.txt", "x");
    assert_int_equal(chmod("secret.txt", 0), 0);
    assert_refused("secret.txt", NULL, 0, ZERO_ERR_IO, "secret.txt: cannot be opened");
}

/* ---- stories and self ---- */

static void stories_come_with_their_entropy(void **state)
{
    (void)state;
    zero_corpus corpus = opened("stories:300K", NULL, 0);
    assert_string_equal(corpus.tokenizer->name, "bpe:512");
    assert_int_equal(corpus.vocab, 512);
    assert_true(corpus.has_entropy && corpus.entropy.nats_per_token > 0.4);
    print_message("%s\n", corpus.description);
    zero_corpus_close(&corpus);
    corpus = opened("stories:1000", "byte", 512);
    assert_in_range(corpus.n_tokens, 1000, 3000);
    assert_int_equal(corpus.vocab, 512);
    zero_corpus_close(&corpus);
}

static void stories_by_default_last_the_demo(void **state)
{
    (void)state;
    zero_corpus corpus = opened("stories", NULL, 0);
    print_message("%s\n", corpus.description);
    assert_in_range(corpus.n_train, 1300000, 1400000);
    zero_corpus_close(&corpus);
}

static uint64_t print_of(const char *spec)
{
    zero_corpus corpus = opened(spec, "byte", 0);
    uint64_t print = zero_corpus_fingerprint(&corpus);
    zero_corpus_close(&corpus);
    return print;
}

/* As everywhere on the command line: KiB is 1024, K and KB are 1000. */
static void sizes_of_stories_have_the_suffixes_of_all_sizes(void **state)
{
    (void)state;
    assert_true(print_of("stories:64KiB") == print_of("stories:65536"));
    assert_true(print_of("stories:64KB") == print_of("stories:64000"));
    assert_true(print_of("stories:64K") == print_of("stories:64000"));
    assert_true(print_of("stories:0.5MiB") == print_of("stories:512KiB"));
    assert_true(print_of("stories:64KiB") != print_of("stories:64K"));
}

static void sizes_of_stories_are_checked(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "stories:",    "stories:0",  "stories:-1",    "stories:4mib",          "stories:K",
        "stories:4Mb", "stories:2T", "stories:1025G", "stories:99999999999999"};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
        assert_refused(specs[i], NULL, 0, ZERO_ERR_INVALID, "expected stories:SIZE");
}

static void self_is_the_source_of_this_program(void **state)
{
    (void)state;
    zero_corpus corpus = opened("self", NULL, 0);
    assert_int_equal(corpus.n_tokens, zero_self_len);
    assert_non_null(strstr(zero_self_text, "zero_corpus_open(const char *spec"));
    assert_non_null(strstr(zero_self_text, "ZERO_ERR_FORMAT, "));
    zero_corpus_close(&corpus);

    /* Byte for byte, quotes and backslashes included: this file is one of them. */
    zero_bytes file = {0};
    assert_int_equal(zero_bytes_read(&file, TEST_SOURCE_DIR "/src/data/corpus.c"), ZERO_OK);
    assert_int_equal(zero_bytes_append(&file, "", 1), ZERO_OK);
    assert_non_null(strstr(zero_self_text, (const char *)file.bytes));
    zero_bytes_destroy(&file);
}

/* ---- token files ---- */

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

/* A file that somebody changes between the look at its first bytes and the reading. */
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
    assert_changed("shard.bin", kind, "expected a file of llm.c, as it was a moment ago");
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

/* A pipe would wait for a writer, a device gives for ever: both at once, and also where they
 * have the name of a token file, or lie in a directory. */
static void only_regular_files_are_read(void **state)
{
    (void)state;
    zero_tokens_kind kind;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_int_equal(mkfifo("pipe.bin", 0600), 0);
    assert_int_equal(symlink("/dev/zero", "zeros.bin"), 0);
    assert_int_equal(zero_tokens_detect("/dev/zero", &kind), ZERO_ERR_IO);
    assert_refused("pipe", NULL, 0, ZERO_ERR_IO, "pipe: expected a regular file");
    assert_refused("pipe.bin", NULL, 9, ZERO_ERR_IO, "pipe.bin: expected a regular file");
    assert_refused("zeros.bin", NULL, 9, ZERO_ERR_IO, "zeros.bin: expected a regular file");
    assert_refused("/dev/zero", NULL, 0, ZERO_ERR_IO, "/dev/zero: expected a regular file");
    assert_int_equal(mkdir("d", 0700), 0);
    assert_int_equal(mkfifo("d/a", 0600), 0);
    write_text("d/b", "text");
    assert_int_equal(symlink("b", "d/c"), 0); /* links to files are what they point to */
    zero_corpus corpus = opened("d", NULL, 0);
    assert_holds(&corpus, "texttext");
    assert_int_equal(symlink("nothing", "d/e"), 0);
    assert_refused("d", NULL, 0, ZERO_ERR_IO, "d/e: No such file");
    assert_int_equal(symlink("f", "f"), 0);
    assert_refused("f", NULL, 0, ZERO_ERR_IO, "--data f: Too many levels");
}

static void names_in_messages_do_not_paint_the_terminal(void **state)
{
    (void)state;
    write_text("\033[2J.bin", "odd");
    assert_refused("\033[2J.bin", NULL, 9, ZERO_ERR_FORMAT, "?[2J.bin: expected nanoGPT");
    assert_null(strchr(zero_last_error(), '\033'));
    write_text("x\nzero: all is well.bin", "odd");
    assert_refused("x\nzero: all is well.bin", NULL, 9, ZERO_ERR_FORMAT,
                   "x?zero: all is well.bin: expected nanoGPT");
}

/* ---- the loader, against its contract ---- */

enum { N = 1000, N_TRAIN = 900, N_VAL = 100 };

/* Token k is k, so that a window shows where it begins. */
static zero_corpus counting_corpus(int64_t n)
{
    zero_corpus corpus = {.width = 4, .n_tokens = n, .n_train = n - n / 10, .vocab = n};
    corpus.tokens = calloc((size_t)n, 4);
    assert_non_null(corpus.tokens);
    for (int64_t i = 0; i < n; i++) ((uint32_t *)corpus.tokens)[i] = (uint32_t)i;
    return corpus;
}

static zero_loader loader_of(const zero_corpus *corpus, int64_t T, int64_t B, bool shuffle)
{
    zero_loader loader;
    assert_int_equal(zero_loader_init(&loader, corpus, T, B, 9, shuffle), ZERO_OK);
    return loader;
}

static void check_window(int64_t start, int64_t T, const int32_t *inputs,
                         const int32_t *targets)
{
    for (int64_t t = 0; t < T; t++) {
        assert_int_equal(inputs[t], start + t);
        assert_int_equal(targets[t], start + t + 1);
    }
}

static void windows_follow_the_contract(void **state)
{
    (void)state;
    zero_corpus corpus = counting_corpus(N);
    for (int64_t T = 1; T < N_VAL; T += 7)
        for (int64_t B = 1; B <= 5; B += 2) {
            zero_loader loader = loader_of(&corpus, T, B, false);
            int32_t inputs[N_VAL], targets[N_VAL];
            for (int64_t s = 0; s < 3 * N_TRAIN / (B * T) + 3;
                 s++) /* past the end, thrice */
                for (int64_t i = 0; i < B; i++) {
                    int64_t start = ((s * B + i) * T) % (N_TRAIN - T);
                    zero_loader_train_sample(&loader, s, i, inputs, targets);
                    check_window(start, T, inputs, targets);
                    start = N_TRAIN + (i * T) % (N_VAL - T);
                    zero_loader_validation_sample(&loader, i, inputs, targets);
                    check_window(start, T, inputs, targets);
                }
        }
    zero_corpus_close(&corpus);
}

static void a_long_run_does_not_overflow(void **state)
{
    (void)state;
    zero_corpus corpus = counting_corpus(N);
    zero_loader loader = loader_of(&corpus, 64, 2, false);
    /* j = 2^62 + 1: j mod m by halves, with m = 900 - 64. */
    int64_t m = N_TRAIN - 64, j = 1;
    for (int i = 0; i < 62; i++) j = j * 2 % m;
    assert_int_equal(zero_loader_train_start(&loader, INT64_C(1) << 61, 1),
                     (j + 1) * 64 % m);
    zero_corpus_close(&corpus);
}

static void samples_do_not_depend_on_how_a_batch_is_cut(void **state)
{
    (void)state;
    zero_corpus corpus = counting_corpus(N);
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        zero_loader all = loader_of(&corpus, 16, 12, shuffle);
        zero_loader some = loader_of(&corpus, 16, 4, shuffle);
        for (int64_t j = 0; j < 500; j++)
            assert_int_equal(zero_loader_train_start(&all, j / 12, j % 12),
                             zero_loader_train_start(&some, j / 4, j % 4));
    }
    zero_corpus_close(&corpus);
}

/* P_e as the header of the loader tells it. */
static int64_t walk(uint64_t epoch, uint64_t W, uint64_t x)
{
    uint64_t h = 1;
    while (UINT64_C(1) << (2 * h) < W) h++;
    uint64_t side = UINT64_C(1) << h, L = x / side, R = x % side;
    for (uint64_t round = 0; round < 4; round++) {
        zero_rng rng = {
            .seed = 9, .purpose = ZERO_RNG_ORDER, .step = epoch, .tensor = round};
        uint64_t next = L ^ (zero_rng_bits(&rng, R) % side);
        L = R;
        R = next;
    }
    return L * side + R < W ? (int64_t)(L * side + R) : walk(epoch, W, L * side + R);
}

static void each_epoch_visits_each_window_once(void **state)
{
    (void)state;
    zero_corpus corpus = counting_corpus(N);
    for (int64_t T = 1; T < N_VAL; T += 7) {
        zero_loader loader = loader_of(&corpus, T, 1, true);
        int64_t W = (N_TRAIN - 1) / T, moved = 0;
        for (int64_t e = 0; e < 3; e++) {
            unsigned char seen[N_TRAIN] = {0};
            for (int64_t k = 0; k < W; k++) {
                int64_t start = zero_loader_train_start(&loader, e * W + k, 0);
                assert_int_equal(start, walk((uint64_t)e, (uint64_t)W, (uint64_t)k) * T);
                assert_true(start % T == 0 && start / T < W);
                assert_int_equal(seen[start / T]++, 0);
                moved += start != zero_loader_train_start(&loader, k, 0);
            }
        }
        assert_true(moved > 0);
    }
    zero_corpus_close(&corpus);
}

static void one_window_can_be_shuffled(void **state)
{
    (void)state;
    zero_corpus corpus = counting_corpus(20);
    zero_loader loader = loader_of(&corpus, 1, 1, true);
    loader.T = 17;
    for (int64_t s = 0; s < 20; s++)
        assert_int_equal(zero_loader_train_start(&loader, s, 0), 0);
    zero_corpus_close(&corpus);
}

static void splits_too_short_for_a_sample_are_refused(void **state)
{
    (void)state;
    zero_corpus corpus = counting_corpus(N);
    zero_loader loader = {.T = 42};
    loader_of(&corpus, N_VAL - 1, 1, false);
    assert_int_equal(zero_loader_init(&loader, &corpus, N_VAL, 1, 0, false),
                     ZERO_ERR_INVALID);
    assert_non_null(strstr(zero_last_error(), "validation split has 100 tokens"));
    assert_int_equal(zero_loader_init(&loader, &corpus, N_TRAIN, 1, 0, false),
                     ZERO_ERR_INVALID);
    assert_non_null(strstr(zero_last_error(), "needs 901"));
    assert_int_equal(zero_loader_init(&loader, &corpus, 0, 1, 0, false), ZERO_ERR_INVALID);
    assert_int_equal(zero_loader_init(&loader, &corpus, 1, 0, 0, false), ZERO_ERR_INVALID);
    assert_int_equal(loader.T, 42);
    zero_corpus_close(&corpus);
}

#define in_directory(f) \
    cmocka_unit_test_setup_teardown(f, enter_new_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_directory(a_file_is_its_bytes),
        in_directory(a_directory_is_its_files_by_path_without_hidden_ones),
        in_directory(a_pattern_is_its_matches_by_path),
        in_directory(a_text_can_be_read_through_bpe),
        in_directory(missing_and_empty_texts_are_refused),
        in_directory(what_may_not_be_read_is_refused),
        in_directory(token_shards_are_read_in_order),
        in_directory(llama_3_shards_have_wide_tokens),
        in_directory(nanogpt_files_need_a_vocabulary),
        in_directory(broken_token_files_are_refused),
        in_directory(token_files_that_change_under_us_are_refused),
        in_directory(headers_that_promise_too_much_are_refused),
        in_directory(only_regular_files_are_read),
        in_directory(names_in_messages_do_not_paint_the_terminal),
        cmocka_unit_test(stories_come_with_their_entropy),
        cmocka_unit_test(stories_by_default_last_the_demo),
        cmocka_unit_test(sizes_of_stories_have_the_suffixes_of_all_sizes),
        cmocka_unit_test(sizes_of_stories_are_checked),
        cmocka_unit_test(self_is_the_source_of_this_program),
        cmocka_unit_test(windows_follow_the_contract),
        cmocka_unit_test(a_long_run_does_not_overflow),
        cmocka_unit_test(samples_do_not_depend_on_how_a_batch_is_cut),
        cmocka_unit_test(each_epoch_visits_each_window_once),
        cmocka_unit_test(one_window_can_be_shuffled),
        cmocka_unit_test(splits_too_short_for_a_sample_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
