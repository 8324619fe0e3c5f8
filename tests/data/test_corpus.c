/* --data: text from files, stories, the program's own sources. */

#include "support/corpus_test.h"

#include <sys/stat.h>

#include "data/self_text.h"
#include "io/bytes.h"
#include "support/encode_test.h"
#include "support/within.h"

/* ---- text ---- */

TEST(a_file_is_its_bytes)
{
    write_text("a.txt", "hello, w\xc3\xb6rld");
    zero_corpus corpus = opened("a.txt", NULL, 0);
    assert_int_equal(corpus.vocab, 256);
    assert_int_equal(corpus.width, 1);
    assert_int_equal(corpus.n_train, 13 - 1);
    assert_string_equal(corpus.tokenizer->name, "byte");
    assert_false(corpus.has_entropy);
    assert_holds(&corpus, "hello, w\xc3\xb6rld");
}

TEST(a_directory_is_its_files_by_path_without_hidden_ones)
{
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

TEST(a_pattern_is_its_matches_by_path)
{
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

TEST(a_text_can_be_read_through_bpe)
{
    char text[200001] = "";
    size_t len = 0;
    for (uint64_t i = 0; len + 20 < sizeof text; i++)
        len += (size_t)snprintf(text + len, 20, "the cat %d \n", (int)(i * i % 97));
    write_text("cats.txt", text);
    zero_corpus corpus = opened("cats.txt", "bpe:300", 0);
    assert_int_equal(corpus.vocab, 300);
    assert_int_equal(corpus.width, 2);
    /* Encoding in blocks gives the tokens of the whole text. */
    int32_t *whole = malloc(len * sizeof *whole), *read = malloc(len * sizeof *read);
    int64_t n = encoded(corpus.tokenizer, (unsigned char *)text, len, whole);
    assert_int_equal(corpus.n_tokens, n);
    zero_corpus_read(&corpus, 0, n, read);
    assert_memory_equal(whole, read, (size_t)n * sizeof *whole);
    free(read);
    free(whole);
    zero_corpus_close(&corpus);
}

TEST(missing_and_empty_texts_are_refused)
{
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

TEST(what_may_not_be_read_is_refused)
{
    if (geteuid() == 0) skip(); /* root may read everything */
    write_text("secret.txt", "x");
    assert_int_equal(chmod("secret.txt", 0), 0);
    assert_refused("secret.txt", NULL, 0, ZERO_ERR_IO, "secret.txt: cannot be opened");
}

/* A pipe would wait for a writer and a device never ends, also with the name of a token file or in
 * a directory. */
TEST(only_regular_files_are_read)
{
    zero_file file;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_int_equal(mkfifo("pipe.bin", 0600), 0);
    assert_int_equal(symlink("/dev/zero", "zeros.bin"), 0);
    assert_int_equal(zero_file_open("/dev/zero", &file), ZERO_ERR_IO);
    assert_refused("pipe", NULL, 0, ZERO_ERR_IO, "pipe: expected a regular file");
    assert_refused("pipe.bin", NULL, 9, ZERO_ERR_IO, "pipe.bin: expected a regular file");
    assert_refused("zeros.bin", NULL, 9, ZERO_ERR_IO, "zeros.bin: expected a regular file");
    assert_refused("/dev/zero", NULL, 0, ZERO_ERR_IO, "/dev/zero: expected a regular file");
    assert_int_equal(mkdir("d", 0700), 0);
    assert_int_equal(mkfifo("d/a", 0600), 0);
    write_text("d/b", "text");
    assert_int_equal(symlink("b", "d/c"), 0); /* links to files are followed */
    zero_corpus corpus = opened("d", NULL, 0);
    assert_holds(&corpus, "texttext");
    assert_int_equal(symlink("nothing", "d/e"), 0);
    assert_refused("d", NULL, 0, ZERO_ERR_IO, "d/e: No such file");
    assert_int_equal(symlink("f", "f"), 0);
    assert_refused("f", NULL, 0, ZERO_ERR_IO, "--data f: Too many levels");
}

/* ---- stories and self ---- */

TEST(stories_come_with_their_entropy)
{
    zero_corpus corpus = opened("stories:300K", NULL, 0);
    assert_string_equal(corpus.tokenizer->name, "bpe:512");
    assert_int_equal(corpus.vocab, 512);
    assert_true(corpus.has_entropy && corpus.entropy.nats_per_token > 0.4);
    print_message("%s\n", corpus.description);
    zero_corpus_close(&corpus);
    corpus = opened("stories:1000", "byte", 512);
    assert_within(corpus.n_tokens, 1000, 3000);
    assert_int_equal(corpus.vocab, 512);
    zero_corpus_close(&corpus);
}

TEST(lessons_have_eight_letters)
{
    const char *text = "abcabcdbcdecdefdefgefghfghaghabhabca";
    zero_corpus corpus = opened("lesson", NULL, 0);
    int32_t tokens[36];
    int64_t vocab;
    const char *why;
    assert_int_equal(corpus.vocab, 8);
    zero_corpus_read(&corpus, 0, 36, tokens);
    for (int i = 0; i < 36; i++) assert_int_equal(tokens[i], text[i] - 'a');
    zero_corpus_close(&corpus);
    assert_ok(zero_corpus_expect_vocab("lesson", NULL, &vocab, &why));
    assert_int_equal(vocab, 8);
}

TEST(stories_by_default_last_the_demo)
{
    zero_corpus corpus = opened("stories", NULL, 0);
    print_message("%s\n", corpus.description);
    assert_within(corpus.n_train, 1300000, 1400000);
    zero_corpus_close(&corpus);
}

static uint64_t print_of(const char *spec)
{
    zero_corpus corpus = opened(spec, "byte", 0);
    uint64_t print = zero_corpus_fingerprint(&corpus);
    zero_corpus_close(&corpus);
    return print;
}

/* KiB is 1024, K and KB are 1000, as everywhere on the command line. */
TEST(sizes_of_stories_have_the_suffixes_of_all_sizes)
{
    assert_true(print_of("stories:64KiB") == print_of("stories:65536"));
    assert_true(print_of("stories:64KB") == print_of("stories:64000"));
    assert_true(print_of("stories:64K") == print_of("stories:64000"));
    assert_true(print_of("stories:0.5MiB") == print_of("stories:512KiB"));
    assert_true(print_of("stories:64KiB") != print_of("stories:64K"));
}

TEST(sizes_of_stories_are_checked)
{
    static const char *const specs[] = {
        "stories:",    "stories:0",  "stories:-1",    "stories:4mib",          "stories:K",
        "stories:4Mb", "stories:2T", "stories:1025G", "stories:99999999999999"};
    for (size_t i = 0; i < COUNT(specs); i++)
        assert_refused(specs[i], NULL, 0, ZERO_ERR_INVALID, "expected stories:SIZE");
}

TEST(self_is_the_source_of_this_program)
{
    zero_corpus corpus = opened("self", NULL, 0);
    assert_int_equal(corpus.n_tokens, zero_self_len);
    assert_non_null(
        strstr(zero_self_text, "zero_corpus_open(const zero_corpus_source *from"));
    assert_non_null(strstr(zero_self_text, "ZERO_ERR_FORMAT, "));
    zero_corpus_close(&corpus);

    /* Byte for byte, with quotes and backslashes: this file is among them. */
    zero_bytes file = {0};
    assert_ok(zero_bytes_read(&file, TEST_SOURCE_DIR "/src/data/corpus.c"));
    assert_ok(zero_bytes_append(&file, "", 1));
    assert_non_null(strstr(zero_self_text, (const char *)file.bytes));
    zero_bytes_destroy(&file);
}

/* ---- memory ---- */

static void has_no_room(zero_corpus_source from, size_t room, const char *text)
{
    zero_corpus corpus;
    from.room = room;
    assert_fails(zero_corpus_open(&from, &corpus), ZERO_ERR_NOMEM, text);
}

static void has_room(zero_corpus_source from, size_t room)
{
    zero_corpus corpus;
    from.room = room;
    if (zero_corpus_open(&from, &corpus) != ZERO_OK)
        fail_msg("%s in %zu: %s", from.data, room, zero_last_error());
    zero_corpus_close(&corpus);
}

/* A machine without memory kills a process without a word. */
TEST(data_beyond_the_room_is_refused_with_both_numbers)
{
    enum { MIB = 1 << 20 };
    char *text = malloc(MIB);
    assert_non_null(text);
    for (int i = 0; i < MIB; i++) text[i] = i % 7 == 6 ? ' ' : (char)('a' + i % 5);
    write_file("a", text, MIB);
    write_file("b", text, MIB);
    text[0] = '\0'; /* no text */
    write_file("t.bin", text, MIB);
    free(text);
    has_no_room((zero_corpus_source){.data = "a"}, MIB - 1,
                "1.0 MiB of tokens need 1.0 MiB of memory, and 1.0 MiB are available");
    has_room((zero_corpus_source){.data = "a"}, MIB + 1);
    has_no_room((zero_corpus_source){.data = "a", .shares = true}, 2 * MIB - 1,
                "need 2.0 MiB of memory, as they are copied once");
    has_room((zero_corpus_source){.data = "a", .shares = true}, 2 * MIB);
    has_no_room((zero_corpus_source){.data = "[ab]"}, 2 * MIB - 1, "2.0 MiB of tokens");
    has_no_room((zero_corpus_source){.data = "a", .validation = "b"}, 2 * MIB - 1,
                "--data a, --val-data b: 2.0 MiB of tokens");
    has_room((zero_corpus_source){.data = "a", .validation = "b"}, 2 * MIB + 1);
    has_no_room((zero_corpus_source){.data = "stories:1G"}, 512 * MIB,
                "--data stories:1G: 953.7 MiB of text need 953.7 MiB");
    has_no_room((zero_corpus_source){.data = "t.bin", .vocab = 65536}, MIB - 1,
                "1.0 MiB of tokens");
    has_room((zero_corpus_source){.data = "t.bin", .vocab = 65536}, MIB + 1);
    /* Tokens of 8 bytes are read as they are and kept in 4. */
    const zero_corpus_source wide = {.data = "t.bin", .vocab = 65536, .token_bytes = 8};
    has_no_room(wide, MIB / 2 - 1, "0.5 MiB of tokens");
    has_no_room(wide, MIB / 2 + 1,
                "t.bin, of 1048576 bytes: no memory for 1.0 MiB of data");
    /* A character has 2 bytes beside the text, by however many threads. */
    for (int threads = 1; threads <= 3; threads += 2) {
        const zero_corpus_source characters = {
            .data = "a", .tokenizer = "char", .threads = threads};
        has_no_room(characters, MIB - 1, "1.0 MiB of text need 1.0 MiB");
        has_no_room(characters, 2 * MIB,
                    "the tokens of 1.0 MiB of text need more than the 1.0 MiB of memory");
        has_room(characters, 4 * MIB);
        /* Parts of threads and the copy of one of them are in memory at once. */
        if (threads == 1)
            has_room(characters, 3 * MIB);
        else
            has_no_room(characters, 3 * MIB, "more than the 2.0 MiB of memory");
    }
}
