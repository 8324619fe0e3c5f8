/* What lies beside a tokenizer: ids are those of transformers, or the reason is named. */

#include "data/tokenizer_file.h"
#include "data/tokenizer_find.h"
#include "support/corpus_test.h"
#include "support/encode_test.h"
#include "support/table.h"

#define GOLDEN TEST_SOURCE_DIR "/tests/golden/tokenizers/"

static void copy(const char *from, const char *to)
{
    zero_bytes text = {0};
    char path[500];
    snprintf(path, sizeof path, GOLDEN "%s", from);
    assert_ok(zero_bytes_read(&text, path));
    write_file(to, text.bytes, text.len);
    zero_bytes_destroy(&text);
}

/* "pair": GPT-2's two files; else a tokenizer.json of that name. */
static void put_tokenizer(const char *base)
{
    if (strcmp(base, "pair") == 0) {
        copy("vocab.json", "vocab.json");
        copy("merges.txt", "merges.txt");
        return;
    }
    char name[32];
    snprintf(name, sizeof name, "%s.json", base);
    copy(name, "tokenizer.json");
}

static const char *const names[] = {"tokenizer_config.json", "added_tokens.json",
                                    "special_tokens_map.json"};

/* Leaves an empty folder. */
static void remove_all(void)
{
    for (int i = 0; i < 3; i++) unlink(names[i]);
    unlink("tokenizer.json");
    unlink("vocab.json");
    unlink("merges.txt");
}

static zero_tokenizer open_here(void)
{
    zero_tokenizer tok;
    assert_ok(zero_tokenizer_open(".", &tok));
    return tok;
}

/* ---- ids ---- */

static void check_ids(const zero_tokenizer *tok, const char *text, const char *ids,
                      const char *line)
{
    static int32_t tokens[1000];
    int64_t n = encoded(tok, (const unsigned char *)text, strlen(text), tokens);
    char *next;
    for (int64_t i = 0; i < n; i++, ids = next) {
        const long id = strtol(ids, &next, 10);
        if (next == ids || id != tokens[i])
            fail_msg("%.200s: token %" PRId64 " is %d", line, i, (int)tokens[i]);
    }
    if (strtol(ids, &next, 10) != 0 || next != ids)
        fail_msg("%.200s: tokens are missing after %" PRId64, line, n);
}

/* The file that a checkpoint gets gives the same ids without what lay beside it. */
static void check_written(const zero_tokenizer *tok, const char *text, const char *ids,
                          const char *line)
{
    zero_bytes file = {0};
    zero_tokenizer back;
    assert_ok(zero_tokenizer_write(tok, &file));
    assert_ok(zero_tokenizer_parse_file("f", file.bytes, file.len, &back));
    check_ids(&back, text, ids, line);
    assert_int_equal(back.vocab, tok->vocab);
    zero_tokenizer_destroy(&back);
    zero_bytes_destroy(&file);
}

TEST(ids_are_those_of_transformers)
{
    static char text[1000], line[10000], parts[10000];
    int n = 0;
    FILE *file = fopen(GOLDEN "beside.txt", "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    text[strcspn(text, "\n")] = '\0';
    for (; fgets(line, sizeof line, file); n++) {
        memcpy(parts, line, sizeof parts);
        put_tokenizer(strtok(parts, "\t"));
        for (int i = 0; i < 3; i++) {
            const char *part = strtok(NULL, "\t");
            if (strcmp(part, "-") != 0) write_text(names[i], part);
        }
        const char *ids = strtok(NULL, "\t");
        zero_tokenizer tok = open_here();
        check_ids(&tok, text, ids, line);
        check_written(&tok, text, ids, line);
        zero_tokenizer_destroy(&tok);
        remove_all();
    }
    assert_true(n >= 16);
    fclose(file);
}

/* ---- byte for byte ---- */

TEST(a_file_to_which_nothing_is_added_stays_as_it_is)
{
    zero_bytes before = {0};
    put_tokenizer("gpt2");
    write_text(names[0],
               "{\"eos_token\": \"<|endoftext|>\", \"model_max_length\": 1024, "
               "\"add_prefix_space\": false, \"added_tokens_decoder\": {\"0\": "
               "{\"content\": \"<|endoftext|>\", \"single_word\": false, \"lstrip\": "
               "false, \"rstrip\": false, \"normalized\": false, \"special\": true}}}");
    zero_tokenizer tok = open_here();
    assert_ok(zero_bytes_read(&before, "tokenizer.json"));
    assert_int_equal(before.len, tok.file.len);
    assert_memory_equal(before.bytes, tok.file.bytes, before.len);
    zero_bytes_destroy(&before);
    zero_tokenizer_destroy(&tok);
}

/* ---- refusals ---- */

static void refused(const char *base, const char *name, const char *text, zero_status code,
                    const char *reason)
{
    zero_tokenizer tok = {.vocab = 42};
    put_tokenizer(base);
    write_text(name, text);
    const zero_status st = zero_tokenizer_open(".", &tok);
    if (st != code || !strstr(zero_last_error(), reason))
        fail_msg("%s: '%s' (%d) lacks '%s'", text,
                 st == ZERO_OK ? "accepted" : zero_last_error(), st, reason);
    assert_int_equal(tok.vocab, 42);
    remove_all();
}

TEST(flags_that_change_ids_are_refused_by_their_names)
{
    static const char *const flags[] = {"add_prefix_space", "add_bos_token",
                                        "add_eos_token",    "do_lower_case",
                                        "strip_accents",    "split_special_tokens"};
    for (size_t i = 0; i < COUNT(flags); i++)
        for (int k = 0; k < 2; k++) {
            char text[60];
            snprintf(text, sizeof text, "{\"%s\": true}", flags[i]);
            refused(k ? "pair" : "gpt2", names[0], text, ZERO_ERR_UNSUPPORTED, flags[i]);
        }
    static const char *const strips[] = {"lstrip", "rstrip", "single_word"};
    for (size_t i = 0; i < 3; i++) {
        char text[200];
        snprintf(
            text, sizeof text,
            "{\"added_tokens_decoder\": {\"0\": {\"content\": \"<|endoftext|>\", \"%s\": "
            "true}}}",
            strips[i]);
        refused("gpt2", names[0], text, ZERO_ERR_UNSUPPORTED, strips[i]);
        snprintf(text, sizeof text,
                 "{\"mask_token\": {\"content\": \"<m>\", \"%s\": true}}", strips[i]);
        refused("pair", names[2], text, ZERO_ERR_UNSUPPORTED, "special_tokens_map.json");
    }
    refused("pair", names[0], "{\"tokenizer_class\": \"Qwen2Tokenizer\"}",
            ZERO_ERR_UNSUPPORTED, "Qwen2Tokenizer");
}

/* What the tokenizer.json does itself may be said beside it. */
TEST(flags_that_change_nothing_are_read)
{
    static const char flags[] = "{\"add_prefix_space\": true, \"add_eos_token\": false}";
    static const char *const bases[] = {"llama2", "mistral"};
    for (int i = 0; i < 2; i++) {
        put_tokenizer(bases[i]);
        write_text(names[0], flags);
        zero_tokenizer tok = open_here();
        assert_string_equal(tok.around, "");
        zero_tokenizer_destroy(&tok);
        remove_all();
        refused(bases[i], names[0], "{\"add_bos_token\": true}", ZERO_ERR_UNSUPPORTED,
                "add_bos_token");
    }
    zero_bytes text = {0};
    char made[20000];
    assert_ok(zero_bytes_read(&text, GOLDEN "llama2.json"));
    assert_ok(zero_bytes_append(&text, "", 1));
    const char *whole = (const char *)text.bytes, *null = "\"post_processor\": null";
    const char *at = strstr(whole, null);
    assert_non_null(at);
    snprintf(made, sizeof made,
             "%.*s\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": "
             "[{\"SpecialToken\": {\"id\": \"<s>\"}}]}%s",
             (int)(at - whole), whole, at + strlen(null));
    write_text("tokenizer.json", made);
    write_text(names[0], "{\"add_bos_token\": true}");
    zero_tokenizer tok = open_here();
    assert_string_equal(tok.around, "<s>");
    zero_tokenizer_destroy(&tok);
    zero_bytes_destroy(&text);
}

TEST(what_contradicts_itself_is_refused)
{
    for (test_table t = table_open("data/refused_beside.txt"); table_next(&t);) {
        refused("pair", t.field[0], t.field[1], ZERO_ERR_FORMAT, t.field[2]);
        refused("gpt2", t.field[0], t.field[1], ZERO_ERR_FORMAT, t.field[2]);
    }
}

/* ---- what else is there ---- */

static void named_beside(const char *name, const char *bytes, size_t len,
                         const char *reason)
{
    char named[ZERO_TOKENIZER_NAMED];
    zero_tokenizer tok;
    write_file(name, bytes, len);
    assert_fails(zero_tokenizer_open(".", &tok), ZERO_ERR_INVALID, reason);
    zero_tokenizer_name_stranger("./model.safetensors", named);
    assert_non_null(strstr(named, reason));
    assert_int_equal(unlink(name), 0);
}

#define BYTES(text) (text), sizeof(text) - 1

TEST(tokenizers_of_other_programs_are_named)
{
    zero_tokenizer tok;
    named_beside("tokenizer.model", BYTES("\n\x0e\n\x05<unk>\x15\0\0\0\0"),
                 "this is a SentencePiece model");
    named_beside("tokenizer.model", BYTES("IQ== 0\nIg== 1\n"),
                 "this is a tiktoken vocabulary");
    named_beside("tekken.json", BYTES("{}"), "Mistral's tekken");
    named_beside("vocab.txt", BYTES("[PAD]\n"), "WordPiece");
    named_beside("vocab.json", BYTES("{}"), "its merges.txt is missing");
    named_beside("merges.txt", BYTES("a b\n"), "its vocab.json is missing");
    write_file("cl100k_base.tiktoken", BYTES("IQ== 0\nIg== 1\n"));
    assert_fails(zero_tokenizer_open("cl100k_base.tiktoken", &tok), ZERO_ERR_FORMAT,
                 "save_pretrained");
}

/* ---- around a text ---- */

TEST(what_a_post_processor_adds_is_said)
{
    static const char *const cases[][2] = {
        {"{\"type\": \"ByteLevel\", \"trim_offsets\": false}", ""},
        {"{\"type\": \"TemplateProcessing\", \"single\": [{\"Sequence\": {\"id\": "
         "\"A\"}}]}",
         ""},
        {"{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": "
         "\"<s>\"}}, "
         "{\"Sequence\": {\"id\": \"A\"}}]}",
         "<s>"},
        {"{\"type\": \"Sequence\", \"processors\": [{\"type\": \"ByteLevel\"}, {\"type\": "
         "\"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"<s>\"}}]}]}",
         "<s>"},
        {"{\"type\": \"RobertaProcessing\", \"sep\": [\"</s>\", 2]}", "RobertaProcessing"},
    };
    zero_bytes text = {0};
    assert_ok(zero_bytes_read(&text, GOLDEN "gpt2.json"));
    assert_ok(zero_bytes_append(&text, "", 1));
    const char *whole = (const char *)text.bytes, *null = "\"post_processor\": null";
    const char *at = strstr(whole, null);
    assert_non_null(at);
    for (size_t i = 0; i < COUNT(cases); i++) {
        static char made[10000];
        zero_tokenizer tok;
        const int len = snprintf(made, sizeof made, "%.*s\"post_processor\": %s%s",
                                 (int)(at - whole), whole, cases[i][0], at + strlen(null));
        assert_ok(zero_tokenizer_parse_file("f", made, (size_t)len, &tok));
        assert_string_equal(tok.around, cases[i][1]);
        zero_tokenizer_destroy(&tok);
    }
    zero_bytes_destroy(&text);
}

/* ---- alphabets with holes ---- */

/* GPT-2's letters and one merge, but for `missing`. */
static void write_alphabet(const char *missing)
{
    FILE *file = fopen("tokenizer.json", "w");
    assert_non_null(file);
    fprintf(file, "{\"model\": {\"type\": \"BPE\", \"vocab\": {");
    int id = 0;
    for (char c = 'a'; c <= 'z'; c++)
        if (!strchr(missing, c)) fprintf(file, "\"%c\": %d, ", c, id++);
    fprintf(file,
            "\"\xc4\xa0\": %d, \"th\": %d}, \"merges\": [\"t h\"]}, \"pre_tokenizer\": "
            "{\"type\": \"ByteLevel\", \"add_prefix_space\": false}}",
            id, id + 1);
    assert_int_equal(fclose(file), 0);
}

TEST(an_alphabet_may_lack_bytes_that_do_not_occur)
{
    static const int32_t expected[] = {25, 4, 24, 5, 14};
    int32_t tokens[5];
    write_alphabet("xz");
    write_text("text", "the fo");
    zero_corpus corpus = opened("text", ".", 0);
    assert_int_equal(corpus.vocab, 26);
    assert_int_equal(corpus.n_tokens, 5);
    zero_corpus_read(&corpus, 0, 5, tokens);
    assert_memory_equal(tokens, expected, sizeof expected);
    zero_corpus_close(&corpus);
}

TEST(a_byte_that_the_alphabet_lacks_is_named_with_its_place)
{
    write_alphabet("xz");
    write_text("text", "the fox");
    assert_refused("text", ".", 0, ZERO_ERR_INVALID,
                   "no token for the byte 0x78 (x), at byte 6");
    write_text("text", "x");
    assert_refused("text", ".", 0, ZERO_ERR_INVALID, "(x), at byte 0");
    write_text("text", "the\nfo");
    assert_refused("text", ".", 0, ZERO_ERR_INVALID, "the byte 0x0a, at byte 3");
    write_text("text", "the fo");
    write_text("val", "th x");
    zero_corpus corpus;
    const zero_corpus_source from = {.data = "text", .validation = "val", .tokenizer = "."};
    assert_fails(zero_corpus_open(&from, &corpus), ZERO_ERR_INVALID,
                 "--val-data: the text: the tokenizer");
    assert_told("(x), at byte 3");
}

/* Far into a long text, by one thread and by several. */
TEST(the_place_does_not_depend_on_threads)
{
    enum { LEN = 400000 };
    char *text = malloc(LEN);
    assert_non_null(text);
    for (int i = 0; i < LEN; i++) text[i] = "the fog "[i % 8];
    text[LEN - 100] = 'z';
    write_file("text", text, LEN);
    free(text);
    write_alphabet("xz");
    for (int threads = 1; threads <= 3; threads++) {
        zero_corpus corpus;
        const zero_corpus_source from = {
            .data = "text", .tokenizer = ".", .threads = threads};
        assert_fails(zero_corpus_open(&from, &corpus), ZERO_ERR_INVALID,
                     "(z), at byte 399900");
    }
}

/* ---- tokens that come with their tokenizer ---- */

static void write_ids(int32_t last)
{
    uint16_t ids[40];
    for (int i = 0; i < 40; i++) ids[i] = (uint16_t)(i * 7 % 330);
    ids[39] = (uint16_t)last;
    write_file("t.bin", ids, sizeof ids);
}

static void remember(void *arg, const char *text)
{
    snprintf(arg, 600, "%s", text);
}

TEST(tokens_keep_their_tokenizer)
{
    char heard[600] = "";
    zero_corpus corpus;
    zero_corpus_source from = {.data = "t.bin", .listener = {remember, heard}};
    write_ids(329);
    put_tokenizer("gpt2");
    /* By the option, without --vocab and with a larger one. */
    for (int64_t vocab = 0; vocab <= 512; vocab += 512) {
        from.tokenizer = "tokenizer.json";
        from.vocab = vocab;
        assert_ok(zero_corpus_open(&from, &corpus));
        assert_int_equal(corpus.vocab, vocab ? vocab : 330);
        assert_int_equal(corpus.tokenizer->vocab, 330);
        assert_int_equal(corpus.n_tokens, 40);
        zero_corpus_close(&corpus);
    }
    /* Beside imported weights. */
    from.tokenizer = NULL;
    from.imported = "tokenizer.json";
    assert_ok(zero_corpus_open(&from, &corpus));
    assert_int_equal(corpus.tokenizer->vocab, 330);
    zero_corpus_close(&corpus);
    assert_string_equal(heard, "");
    /* A model that has fewer tokens has another tokenizer. */
    write_ids(319);
    from.vocab = 329;
    assert_ok(zero_corpus_open(&from, &corpus));
    assert_null(corpus.tokenizer);
    assert_int_equal(corpus.vocab, 329);
    assert_non_null(strstr(heard, "it has more tokens than the model"));
    zero_corpus_close(&corpus);
    /* One that cannot be read is not needed. */
    write_text("tokenizer.json", "{\"model\": {\"type\": \"Unigram\"}}");
    assert_ok(zero_corpus_open(&from, &corpus));
    assert_null(corpus.tokenizer);
    assert_non_null(strstr(heard, "Unigram is not supported"));
    zero_corpus_close(&corpus);
    from.tokenizer = "tokenizer.json"; /* but who asks for it gets it */
    assert_int_equal(zero_corpus_open(&from, &corpus), ZERO_ERR_UNSUPPORTED);
    from = (zero_corpus_source){.data = "t.bin", .imported = "", .vocab = 512};
    assert_ok(zero_corpus_open(&from, &corpus));
    assert_null(corpus.tokenizer);
    zero_corpus_close(&corpus);
}

TEST(tokens_of_another_tokenizer_are_refused)
{
    write_ids(330);
    put_tokenizer("gpt2");
    assert_refused(
        "t.bin", "tokenizer.json", 512, ZERO_ERR_FORMAT,
        "token 39 has the id 330, but the tokenizer tokenizer.json has only 330");
    assert_refused("t.bin", "tokenizer.json", 300, ZERO_ERR_INVALID, "too small");
    assert_refused("t.bin", "bpe:300", 512, ZERO_ERR_INVALID, "cannot be honoured");
}
