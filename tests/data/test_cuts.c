/* Parts of a text, cut at borders and encoded by any number of threads, have the tokens of the whole. */

#include "support/test.h"

#include "base/fail.h"
#include "base/rng.h"
#include "data/cuts.h"
#include "data/encode.h"
#include "data/tokenizer_file.h"
#include "data/tokenizer_find.h"
#include "support/encode_test.h"
#include "support/share.h"

#define FILES TEST_SOURCE_DIR "/tests/golden/tokenizers/"

static const char fable[] = "The fox saw the grapes. The grapes hung high, and the fox'd "
                            "jumped 12 or 120 times.\n\n"
                            "Füchse  sehen Trauben   日本語 der fox   \n  and the END.\n";

static zero_tokenizer learned(const char *spec)
{
    zero_tokenizer tok;
    if (zero_tokenizer_init(1, &tok, spec, (const unsigned char *)fable, strlen(fable)) !=
        ZERO_OK)
        fail_msg("%s", zero_last_error());
    return tok;
}

static zero_tokenizer opened_file(const char *name)
{
    char path[500];
    zero_tokenizer tok;
    snprintf(path, sizeof path, FILES "%s", name);
    assert_ok(zero_tokenizer_open(path, &tok));
    return tok;
}

/* A tokenizer of another program, in whose file `old` becomes `new`. */
static zero_tokenizer changed(const char *name, const char *old, const char *new)
{
    char path[500], made[100000];
    zero_bytes text = {0};
    zero_tokenizer tok;
    snprintf(path, sizeof path, FILES "%s", name);
    assert_ok(zero_bytes_read(&text, path));
    assert_ok(zero_bytes_append(&text, "", 1));
    const char *whole = (const char *)text.bytes, *at = strstr(whole, old);
    assert_non_null(at);
    const int len = snprintf(made, sizeof made, "%.*s%s%s", (int)(at - whole), whole, new,
                             at + strlen(old));
    assert_ok(zero_tokenizer_parse_file(path, made, (size_t)len, &tok));
    zero_bytes_destroy(&text);
    return tok;
}

enum { KINDS = 9 };

/* Added tokens with a border inside are changed. */
static void open_all(zero_tokenizer toks[KINDS])
{
    toks[0] = learned("bpe:270");
    toks[1] = learned("char");
    toks[2] = opened_file("vocab.json");
    toks[3] = changed("llama3.json", "\"the end\"", "\"the.end\"");
    toks[4] = opened_file("gpt2.json");
    toks[5] = opened_file("qwen.json");
    toks[6] = opened_file("smollm.json");
    toks[7] = changed("llama2.json", "\"x \\n\",", "");
    toks[8] = changed("mistral.json", "\"x \\n\",", "");
    for (int i = 0; i < KINDS; i++) assert_true(zero_encode_may_cut(&toks[i]));
}

static void close_all(zero_tokenizer toks[KINDS])
{
    for (int i = 0; i < KINDS; i++) zero_tokenizer_destroy(&toks[i]);
}

/* ---- borders ---- */

enum { PARTS = 24, ROOM = 16 * PARTS, TEXTS = 4000 };

static const char *const alphabet[] = {
    "a",       "fox",     "The",    "s",        "'s",     "'",    " ",    " ",
    "  ",      "\n",      "\n\n",   "\r\n",     "\t",     "12",   "3",    ".",
    "!?",      "é",       "日",     "\xc2\xa0", "ſ",      "\xff", "\xe6", "<|endoftext|>",
    " grapes", "the.end", "\u2581", "e\u0301",  "\u0301", "<s>",  "</s>", "\u0958",
    "\u212b",
};

static size_t draw(zero_rng *rng, uint64_t text, unsigned char *out)
{
    size_t len = 0;
    const uint64_t most = zero_rng_bits(rng, text * 64 + 63) % PARTS;
    for (uint64_t i = 0; i < most; i++) {
        const char *next = alphabet[zero_rng_bits(rng, text * 64 + i) % COUNT(alphabet)];
        memcpy(out + len, next, strlen(next));
        len += strlen(next);
    }
    return len;
}

static zero_status append(void *arg, int64_t n, const int32_t *tokens)
{
    int32_t **at = arg;
    memcpy(*at, tokens, (size_t)n * sizeof *tokens);
    *at += n;
    return ZERO_OK;
}

static void check_borders(const zero_tokenizer *tok, const unsigned char *text, size_t len)
{
    int32_t whole[4 * ROOM], parts[4 * ROOM];
    const int64_t n = encoded(tok, text, len, whole);
    for (size_t at = zero_cut_at(text, len, 0); at < len;
         at = zero_cut_at(text, len, at + 1)) {
        const int64_t left = encoded(tok, text, at, parts);
        int32_t *end = parts + left;
        assert_ok(zero_tokenizer_encode_to(tok, true, text + at, len - at, append, &end));
        assert_int_equal(end - parts, n);
        assert_memory_equal(parts, whole, (size_t)n * sizeof *whole);
    }
}

TEST(a_text_cut_at_a_border_has_the_same_tokens)
{
    zero_tokenizer toks[KINDS];
    unsigned char text[ROOM];
    zero_rng rng = {.seed = 3, .purpose = ZERO_RNG_TEST};
    open_all(toks);
    for (uint64_t i = 0; i < TEXTS; i += TEST_SHARE(4)) {
        const size_t len = draw(&rng, i, text);
        for (int k = 0; k < KINDS; k++) check_borders(&toks[k], text, len);
    }
    close_all(toks);
}

TEST(borders_are_after_letters)
{
    const unsigned char text[] = " ab c. d\n";
    assert_int_equal(zero_cut_at(text, 9, 0), 3);
    assert_int_equal(zero_cut_at(text, 9, 3), 3);
    assert_int_equal(zero_cut_at(text, 9, 4), 8);
    assert_int_equal(zero_cut_at(text, 9, 9), 9);
    assert_int_equal(zero_cut_at(text, 0, 0), 0);
}

TEST(what_may_see_past_a_border_is_not_cut)
{
    zero_tokenizer with_border = changed("llama3.json", "\"the end\"", "\"the end\"");
    zero_tokenizer other = changed("llama3.json", "\\\\p{N}{1,3}", "\\\\p{N}{1,2}");
    zero_tokenizer lines = opened_file("mistral.json");
    zero_tokenizer words =
        changed("mistral.json", "\"x \\n\", \"\u2581 \u2581\"", "\"a \u2581o\"");
    /* After the token a part would begin with a blank. */
    zero_tokenizer ends = changed("llama2.json", "\"x \\n\",", "");
    ends.added[0].tokens[0].text[ends.added[0].tokens[0].len - 1] = 's';
    /* Nor into pieces: the merge that has a blank in its middle is applied. */
    int32_t tokens[16];
    assert_int_equal(encoded(&words, (const unsigned char *)"ha o", 4, tokens), 2);
    assert_int_equal(tokens[1], words.vocab - 1);
    assert_false(zero_encode_may_cut(&with_border));
    assert_false(zero_encode_may_cut(&other));
    assert_false(zero_encode_may_cut(&lines));
    assert_false(zero_encode_may_cut(&words));
    assert_false(zero_encode_may_cut(&ends));
    zero_tokenizer_destroy(&lines);
    zero_tokenizer_destroy(&words);
    zero_tokenizer_destroy(&ends);
    zero_tokenizer_destroy(&with_border);
    zero_tokenizer_destroy(&other);
}

/* ---- threads ---- */

/* Words, then blanks without a border, then bytes that are parts of characters. */
static void make_long(zero_bytes *text)
{
    const size_t most = 8 * ZERO_CUT_PART;
    zero_rng rng = {.seed = 4, .purpose = ZERO_RNG_TEST};
    unsigned char some[ROOM];
    for (uint64_t i = 0; text->len < most; i++)
        assert_ok(zero_bytes_append(text, some, draw(&rng, i, some)));
    assert_ok(zero_bytes_reserve(text, 2 * most));
    memset(text->bytes + text->len, ' ', most);
    for (size_t i = 0; i < most; i++)
        text->bytes[text->len + most + i] = (unsigned char)"\xe6\x97\xa5\xc3 a\xff"[i % 7];
    text->len += 2 * most;
}

static void check_threads(const zero_tokenizer *tok, const zero_bytes *text)
{
    static const int threads[] = {2, 3, 7};
    zero_bytes want = {0};
    const zero_status st = zero_encode_text(tok, text, 1, &want);
    char message[200];
    snprintf(message, sizeof message, "%s", zero_last_error());
    for (size_t i = 0; i < COUNT(threads); i++) {
        zero_bytes got = {0};
        assert_int_equal(zero_encode_text(tok, text, threads[i], &got), st);
        if (st != ZERO_OK) assert_non_null(strstr(message, "of the text"));
        if (st != ZERO_OK) assert_string_equal(zero_last_error(), message);
        assert_int_equal(got.len, want.len);
        if (got.len > 0) assert_memory_equal(got.bytes, want.bytes, got.len);
        zero_bytes_destroy(&got);
    }
    zero_bytes_destroy(&want);
}

TEST(any_number_of_threads_makes_the_same_tokens)
{
    zero_tokenizer toks[KINDS];
    zero_bytes text = {0}, empty = {0};
    open_all(toks);
    make_long(&text);
    for (int k = 0; k < KINDS; k++) {
        check_threads(&toks[k], &text); /* char lacks characters: the message is the same */
        check_threads(&toks[k], &empty);
    }
    for (size_t i = 0; i < text.len; i++)
        text.bytes[i] = (unsigned char)"The fox \n"[text.bytes[i] % 9];
    check_threads(&toks[1], &text);
    zero_bytes_destroy(&text);
    close_all(toks);
}

TEST(merges_do_not_depend_on_threads)
{
    static const int threads[] = {2, 3, 7};
    enum { MERGES = 120 };
    zero_merge want[MERGES], got[MERGES];
    zero_bytes text = {0};
    int32_t n_want, n_got;
    make_long(&text);
    assert_ok(zero_bpe_train(text.bytes, text.len, 1, MERGES, want, &n_want));
    for (size_t i = 0; i < COUNT(threads); i++) {
        assert_ok(zero_bpe_train(text.bytes, text.len, threads[i], MERGES, got, &n_got));
        assert_int_equal(n_got, n_want);
        assert_memory_equal(got, want, (size_t)n_want * sizeof *want);
    }
    assert_true(n_want > 20);
    zero_bytes_destroy(&text);
}
