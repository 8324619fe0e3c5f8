/* Files that --data does not take: each is named, with what to do, and none is trained on as text. */

#include "support/corpus_test.h"
#include "support/table.h"

#include <sys/stat.h>

#include "data/stranger.h"

#define BYTES(text) (text), sizeof(text) - 1

TEST(each_is_named_with_what_to_do)
{
    write_text("text.txt", "some text");
    for (test_table t = table_open("data/strangers.txt"); table_next(&t);) {
        const char *path = t.field[0], *bytes = t.field[1], *what = t.field[2];
        zero_corpus corpus;
        const zero_corpus_source validation = {.data = "text.txt", .validation = path};
        write_file(path, bytes, (size_t)(what - bytes) - 1);
        assert_refused(path, NULL, 0, ZERO_ERR_FORMAT, what);
        assert_told(path);
        assert_refused(path, NULL, 0, ZERO_ERR_FORMAT, t.field[3]);
        assert_fails(zero_corpus_open(&validation, &corpus), ZERO_ERR_FORMAT, what);
    }
}

TEST(tar_has_its_mark_far_inside)
{
    char tar[512] = "name";
    memcpy(tar + 257, "ustar", 5);
    write_file("a.tar", tar, sizeof tar);
    assert_refused("a.tar", NULL, 0, ZERO_ERR_FORMAT, "a tar file");
}

/* A name that says tokens does not help a packed file. */
TEST(packed_tokens_are_not_tokens)
{
    write_file("a.bin", BYTES("\x93NUMPY\1\0v\0{}  "));
    assert_refused("a.bin", NULL, 300, ZERO_ERR_FORMAT, "a NumPy array, not tokens");
    write_file("b.bin", BYTES("\x1f\x8b\x08\0packed"));
    assert_refused("b.bin", NULL, 65536, ZERO_ERR_FORMAT, "a gzip file, not tokens");
    /* These tokens are 65279 and 256: of a text they would be UTF-16's mark. */
    write_file("c.bin", BYTES("\xff\xfe\0\1\0\2\0\1"));
    zero_corpus corpus = opened("c.bin", NULL, 65536);
    assert_int_equal(corpus.n_tokens, 4);
    zero_corpus_close(&corpus);
}

/* One zero in a thousand bytes may stand in a text that was collected somewhere. */
TEST(bytes_that_are_no_text_are_refused)
{
    static char text[20000];
    memset(text, 'a', sizeof text);
    for (size_t i = 0; i < sizeof text; i += 1025) text[i] = '\0';
    write_file("few", text, sizeof text);
    zero_corpus corpus = opened("few", NULL, 0);
    assert_int_equal(corpus.n_tokens, sizeof text);
    zero_corpus_close(&corpus);
    text[1] = '\0';
    write_file("many", text, sizeof text);
    assert_refused("many", NULL, 0, ZERO_ERR_FORMAT, "many: this is not text");
    write_file("16le", BYTES("t\0e\0x\0t\0"));
    assert_refused("16le", NULL, 0, ZERO_ERR_FORMAT, "iconv turns UTF-16 into UTF-8");
    write_file("latin", BYTES("Fuchs, m\xfcrrisch"));
    corpus = opened("latin", NULL, 0);
    assert_int_equal(corpus.n_tokens, 15);
    zero_corpus_close(&corpus);
}

/* ---- directories ---- */

static void remember(void *arg, const char *text)
{
    snprintf(arg, 300, "%s", text);
}

TEST(a_directory_gives_its_texts_and_says_what_it_left_out)
{
    char heard[300] = "";
    zero_corpus corpus;
    const zero_corpus_source from = {.data = "d", .listener = {remember, heard}};
    assert_int_equal(mkdir("d", 0700), 0);
    write_text("d/b.c", "int b;");
    write_text("d/d.c", "int d;");
    assert_ok(zero_corpus_open(&from, &corpus));
    assert_string_equal(heard, "");
    assert_holds(&corpus, "int b;int d;");
    write_file("d/a.png", BYTES("\x89PNG\r\n\x1a\n\0\0\0\rIHDR"));
    write_file("d/c.o", BYTES("\x7f"
                              "ELF\2\1\1\0\0\0\0"));
    assert_ok(zero_corpus_open(&from, &corpus));
    assert_string_equal(heard,
                        "--data d: 2 of its files are not text and are left out, the "
                        "first: d/a.png");
    assert_holds(&corpus, "int b;int d;");
    /* What somebody names is not left out; nor is what may be the data. */
    assert_refused("d/*.o", NULL, 0, ZERO_ERR_FORMAT, "d/c.o: this is not text");
    write_file("d/e.gz", BYTES("\x1f\x8b\x08\0 packed"));
    assert_refused("d", NULL, 0, ZERO_ERR_FORMAT, "d/e.gz: this is a gzip file");
    assert_int_equal(unlink("d/b.c") | unlink("d/d.c") | unlink("d/e.gz"), 0);
    assert_refused("d", NULL, 0, ZERO_ERR_FORMAT, "d/a.png: this is not text");
}

/* ---- text that stays text ---- */

TEST(a_byte_order_mark_is_not_a_part_of_the_text)
{
    write_text("a", "\xef\xbb\xbfone ");
    write_text("b", "\xef\xbb\xbftwo\xef\xbb\xbf");
    zero_corpus corpus = opened("[ab]", NULL, 0);
    assert_holds(&corpus, "one two\xef\xbb\xbf");
    write_text("c", "\xef\xbb\xbf");
    assert_refused("c", NULL, 0, ZERO_ERR_FORMAT, "nothing to train on");
}

TEST(sources_that_look_alike_stay_text)
{
    static const char *const texts[][2] = {
        {"one.json", "{\n \"a\": 1\n}\n"},
        {"line.json", "{\"a\": 1}\n"},
        {"lines.txt", "{\"a\": 1}\n{\"a\": 2}\n"},
        {"list.jsonl", "[1]\n"},
        {"x.js", "var x = {\"a\": 1};"},
        {"parity", "PAR1 is a name"},
        {"BZh", "BZh91 packs"},
        {"short", "P"},
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        write_text(texts[i][0], texts[i][1]);
        zero_corpus corpus = opened(texts[i][0], NULL, 0);
        assert_holds(&corpus, texts[i][1]);
    }
}
