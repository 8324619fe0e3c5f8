/* Tokenizers of other programs: ids are theirs, any bytes come back, anything that would change ids
 * and is not supported is refused by its name. */

#include "data/encode.h"
#include "data/tokenizer_file.h"
#include "data/tokenizer_find.h"
#include "support/corpus_test.h"
#include "support/encode_test.h"
#include "support/table.h"

#define FILES TEST_SOURCE_DIR "/tests/golden/tokenizers/"

static zero_tokenizer open_file(const char *name)
{
    char path[500];
    zero_tokenizer tok;
    snprintf(path, sizeof path, FILES "%s", name);
    assert_ok(zero_tokenizer_open(path, &tok));
    return tok;
}

/* ---- ids ---- */

static size_t from_hex(const char *hex, unsigned char *out)
{
    size_t n = 0;
    for (; hex[0] != '-' && hex[2 * n] != '\0'; n++) {
        const char pair[] = {hex[2 * n], hex[2 * n + 1], '\0'};
        out[n] = (unsigned char)strtoul(pair, NULL, 16);
    }
    return n;
}

/* One line of golden.txt: "name hex hex id id ...". */
static void check_line(char *line)
{
    static unsigned char text[20000], expected[20000];
    static int32_t tokens[20000];
    char *name = strtok(line, " \n"), *hex = strtok(NULL, " \n");
    const char *decoded = strtok(NULL, " \n");
    const size_t len = from_hex(hex, text);
    const size_t all = from_hex(*decoded == '=' ? hex : decoded, expected);
    zero_bytes back = {0};
    zero_tokenizer tok = open_file(name);
    int64_t n = encoded(&tok, text, len, tokens);
    for (int64_t i = 0; i <= n; i++) {
        const char *id = strtok(NULL, " \n");
        if (!id != (i == n) || (id && atoi(id) != tokens[i]))
            fail_msg("%s, %.60s: token %" PRId64 " of %" PRId64 " should be %s", name, hex,
                     i, n, id ? id : "the end");
    }
    assert_ok(zero_tokenizer_decode_all(&tok, n, tokens, &back));
    if (back.len != all || (all > 0 && memcmp(back.bytes, expected, all) != 0))
        fail_msg("%s, %.60s: decoded to '%.*s'", name, hex, (int)back.len, back.bytes);
    zero_bytes_destroy(&back);
    zero_tokenizer_destroy(&tok);
}

TEST(ids_are_those_of_the_reference_implementation)
{
    static char line[50000];
    int n = 0;
    FILE *file = fopen(FILES "golden.txt", "r");
    assert_non_null(file);
    for (; fgets(line, sizeof line, file); n++) check_line(line);
    assert_true(n >= 220);
    fclose(file);
}

/* The cache and the heap give what short texts and scans give. */
TEST(a_long_text_encodes_as_its_parts)
{
    static const char line[] = "The fox saw the grapes; 12345 of them'll hang high.\n\n";
    enum { TIMES = 300, LEN = sizeof line - 1 };
    static unsigned char text[TIMES * LEN];
    static int32_t whole[sizeof text], part[LEN];
    zero_tokenizer tok = open_file("llama3.json");
    for (int i = 0; i < TIMES; i++) memcpy(text + i * LEN, line, LEN);
    int64_t n = encoded(&tok, text, sizeof text, whole);
    int64_t m = encoded(&tok, text, LEN, part);
    assert_int_equal(n, TIMES * m);
    for (int64_t i = 0; i < n; i++) assert_int_equal(whole[i], part[i % m]);
    zero_tokenizer_destroy(&tok);
}

TEST(any_bytes_come_back)
{
    enum { LEN = 5000 };
    static unsigned char text[LEN];
    zero_tokenizer tok = open_file("llama3.json");
    uint32_t random = 7;
    for (int i = 0; i < LEN; i++) {
        random = random * 1664525u + 1013904223u;
        text[i] = (unsigned char)(random >> 24);
    }
    assert_round_trip(&tok, text, LEN);
    zero_tokenizer_destroy(&tok);
}

/* ---- files ---- */

TEST(a_folder_and_either_file_of_a_pair_are_the_same_tokenizer)
{
    zero_tokenizer tok = open_file("");
    assert_string_equal(tok.name, "vocab.json and merges.txt");
    zero_tokenizer other = open_file("merges.txt");
    assert_int_equal(tok.vocab, other.vocab);
    zero_tokenizer_destroy(&other);
    assert_int_equal(tok.end_of_text, 0);
    zero_tokenizer back;
    assert_ok(zero_tokenizer_parse_file("f", tok.file.bytes, tok.file.len, &back));
    int32_t a[20], b[20];
    const unsigned char *text = (const unsigned char *)"the grapes";
    int64_t n = encoded(&tok, text, 10, a);
    assert_int_equal(encoded(&back, text, 10, b), n);
    assert_memory_equal(a, b, (size_t)n * sizeof *a);
    zero_tokenizer_destroy(&back);
    zero_tokenizer_destroy(&tok);
}

TEST(a_text_becomes_the_tokens_of_a_file)
{
    int32_t tokens[8];
    write_text("text", "the grapes<|endoftext|>the");
    zero_corpus corpus = opened("text", FILES "gpt2.json", 0);
    assert_int_equal(corpus.vocab, 330);
    assert_int_equal(corpus.width, 2);
    assert_int_equal(corpus.n_tokens, 6);
    zero_corpus_read(&corpus, 0, 6, tokens);
    static const int32_t expected[] = {84, 257, 272, 0, 84, 257};
    assert_memory_equal(tokens, expected, sizeof expected);
    zero_corpus_close(&corpus);
    assert_refused("text", FILES "gpt2.json", 300, ZERO_ERR_INVALID, "too small for");
    assert_refused("text", "nowhere.json", 0, ZERO_ERR_INVALID, "there is no such path");
    assert_refused("text", ".", 0, ZERO_ERR_INVALID, "in this directory");
    int64_t vocab = 0;
    const char *why;
    assert_ok(zero_corpus_expect_vocab("text", FILES "gpt2.json", &vocab, &why));
    assert_int_equal(vocab, 330);
}

/* ---- refusals ---- */

static zero_bytes read_all(const char *name)
{
    char path[500];
    zero_bytes text = {0};
    snprintf(path, sizeof path, FILES "%s", name);
    assert_ok(zero_bytes_read(&text, path));
    assert_ok(zero_bytes_append(&text, "", 1));
    return text;
}

/* The file with its first `from` replaced is refused with a message that has `reason`. */
static void refused(const char *name, const char *from, const char *to, zero_status code,
                    const char *reason)
{
    static char made[100000];
    zero_bytes text = read_all(name);
    zero_tokenizer tok = {.vocab = 42};
    const char *whole = (const char *)text.bytes, *at = strstr(whole, from);
    if (!at) fail_msg("%s lacks %s", name, from);
    int len = snprintf(made, sizeof made, "%.*s%s%s", (int)(at - whole), whole, to,
                       at + strlen(from));
    zero_status st = zero_tokenizer_parse_file("tokenizer.json", made, (size_t)len, &tok);
    if (st != code || !strstr(zero_last_error(), reason))
        fail_msg("%s for %s: '%s' (%d) lacks '%s'", to, from,
                 st == ZERO_OK ? "accepted" : zero_last_error(), st, reason);
    assert_int_equal(tok.vocab, 42);
    zero_bytes_destroy(&text);
}

TEST(what_would_change_ids_is_refused_by_its_name)
{
    for (test_table t = table_open("data/refused_tokenizers.txt"); table_next(&t);)
        refused(t.field[0], t.field[1], t.field[2], ZERO_ERR_UNSUPPORTED, t.field[3]);
    refused("qwen.json", "\"content\":\"\u0958\",\"single_word\":false,",
            "\"content\":\"\u0915\u093c\",\"single_word\":false,\"lstrip\":true,",
            ZERO_ERR_FORMAT, "duplicate");
}

TEST(a_byte_without_a_token_matters_where_it_occurs)
{
    static char made[100000];
    zero_bytes file = read_all("llama2.json"), tokens = {0};
    zero_bytes text = {.bytes = (unsigned char *)"the fox", .len = 7};
    zero_tokenizer tok;
    char *at = strstr((char *)file.bytes, "\"<0xC3>\"");
    assert_non_null(at);
    at[3] = 'Z';
    const int len = snprintf(made, sizeof made, "%s", (char *)file.bytes);
    assert_ok(zero_tokenizer_parse_file("f", made, (size_t)len, &tok));
    assert_ok(zero_encode_text(&tok, &text, 1, &tokens));
    text = (zero_bytes){.bytes = (unsigned char *)"the \u00ff", .len = 6};
    assert_fails(zero_encode_text(&tok, &text, 1, &tokens), ZERO_ERR_INVALID,
                 "has no token for the byte 0xc3: ");
    zero_tokenizer_destroy(&tok);
    zero_bytes_destroy(&tokens);
    zero_bytes_destroy(&file);
}

TEST(what_contradicts_itself_is_refused)
{
    for (test_table t = table_open("data/contradictions.txt"); table_next(&t);)
        refused("gpt2.json", t.field[0], t.field[1], ZERO_ERR_FORMAT, t.field[2]);
}

/* \s*\s*x tries all cuts of the blanks at each of them. */
TEST(a_pattern_that_would_take_hours_gives_up)
{
    enum { LEN = 100000 };
    static char blanks[LEN];
    static int32_t tokens[LEN];
    static char made[100000];
    zero_bytes text = read_all("llama3.json");
    zero_tokenizer tok;
    int64_t n;
    const char *whole = (const char *)text.bytes, *at = strstr(whole, "(?i:'s");
    memset(blanks, ' ', LEN);
    int len = snprintf(made, sizeof made, "%.*s\\\\s*\\\\s*x|\\\\s|%s", (int)(at - whole),
                       whole, at);
    assert_ok(zero_tokenizer_parse_file("f", made, (size_t)len, &tok));
    assert_fails(zero_tokenizer_encode(&tok, (unsigned char *)blanks, LEN, tokens, &n),
                 ZERO_ERR_UNSUPPORTED, "at byte");
    zero_tokenizer_destroy(&tok);
    zero_bytes_destroy(&text);
}
