#include "data/corpus.h"

#include "base/hash.h"
#include "data/opening.h"
#include "data/tokenizer_find.h"

bool zero_corpus_is_files(const char *spec)
{
    return !zero_opening_is_stories(spec) && !zero_same_text(spec, "lesson") &&
           !zero_same_text(spec, "self");
}

static void close_opening(zero_opening *o)
{
    zero_bytes_destroy(&o->read.all);
    zero_listed_close(&o->validation);
    zero_listed_close(&o->data);
}

zero_status zero_corpus_open(const zero_corpus_source *from, zero_corpus *corpus)
{
    ZERO_AT_END(zero_corpus_close) zero_corpus made = {0};
    ZERO_AT_END(close_opening) zero_opening o = {.from = from};
    /* Finds mistakes before gigabytes are read. */
    int32_t ignored;
    ZERO_INVALID_IF(from->vocab < 0 || from->vocab > INT32_MAX,
                    "--vocab %" PRId64 ": expected 1 to %d", from->vocab, INT32_MAX);
    ZERO_TRY(zero_tokens_check_bytes(from->token_bytes));
    ZERO_INVALID_IF(
        from->token_bytes > 0 && !zero_corpus_is_files(from->data),
        "--token-bytes %d is for files of tokens, and --data %s is text; leave it out",
        from->token_bytes, from->data);
    ZERO_INVALID_IF(from->validation && zero_opening_is_stories(from->validation),
                    "--val-data %s: the stories of one seed are one text, so these may be "
                    "among the training data; give files, or leave it out",
                    from->validation);
    if (from->tokenizer)
        ZERO_TRY(zero_tokenizer_is_name(from->tokenizer)
                     ? zero_tokenizer_parse(from->tokenizer, &ignored)
                     : zero_tokenizer_check_path(from->tokenizer));
    if (zero_corpus_is_files(from->data))
        ZERO_TRY(zero_material_list("--data", "stories[:SIZE], self, lesson, or ",
                                    from->data, from->token_bytes, &from->listener,
                                    &o.data));
    ZERO_TRY(o.data.format.kind == ZERO_TOKENS_TEXT ? zero_opening_take_text(&o, &made)
                                                    : zero_opening_take_tokens(&o, &made));
    ZERO_GIVE(corpus, made);
    return ZERO_OK;
}

zero_status zero_corpus_expect_vocab(const char *spec, const char *tokenizer,
                                     int64_t *vocab, const char **why)
{
    zero_tokenizer opened = {.vocab = 0};
    const bool stories = zero_opening_is_stories(spec);
    if (!tokenizer && zero_same_text(spec, "lesson")) {
        *vocab = ZERO_LESSON_LETTERS;
        *why = "the lesson's letters";
        return ZERO_OK;
    }
    const char *fallback = stories ? ZERO_STORIES_TOKENIZER : "byte";
    const char *name = tokenizer ? tokenizer : fallback;
    ZERO_TRY(zero_tokenizer_is_name(name) ? zero_tokenizer_parse(name, &opened.vocab)
                                          : zero_tokenizer_open(name, &opened));
    *vocab = opened.vocab;
    zero_tokenizer_destroy(&opened);
    *why = tokenizer ? "--tokenizer's"
           : stories ? "that of the stories' own tokenizer, " ZERO_STORIES_TOKENIZER
                     : "bytes; for token files give theirs by --vocab";
    return ZERO_OK;
}

void zero_corpus_close(zero_corpus *corpus)
{
    if (corpus->tokenizer) zero_tokenizer_destroy(corpus->tokenizer);
    free(corpus->tokenizer);
    if (!corpus->borrows_tokens) free(corpus->tokens);
    *corpus = (zero_corpus){0};
}

uint64_t zero_corpus_fingerprint(const zero_corpus *c)
{
    const zero_tokenizer *tok = c->tokenizer;
    uint64_t border = c->has_validation ? (uint64_t)c->n_train : 0;
    uint64_t sum = XXH3_64bits_withSeed(&c->vocab, sizeof c->vocab, border);
    if (tok) {
        size_t n = (size_t)tok->vocab + 1;
        sum = XXH3_64bits_withSeed(tok->starts, n * sizeof *tok->starts, sum);
        sum = XXH3_64bits_withSeed(tok->bytes, tok->starts[tok->vocab], sum);
    }
    return XXH3_64bits_withSeed(c->tokens, (size_t)c->n_tokens * (size_t)c->width, sum);
}

void zero_corpus_checksum(const zero_corpus *c, char hex[ZERO_CHECKSUM])
{
    int64_t n = c->has_validation ? c->n_train : c->n_tokens;
    zero_checksum(c->tokens, (size_t)n * (size_t)c->width, hex);
    if (!c->has_validation) return;
    char text[ZERO_CHECKSUM + 32];
    zero_print(text, "all for training: %s", hex);
    zero_checksum(text, strlen(text), hex);
}

void zero_corpus_read(const zero_corpus *corpus, int64_t begin, int64_t n, int32_t *tokens)
{
    assert(begin >= 0 && n >= 0 && n <= corpus->n_tokens - begin);
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = begin + i;
        tokens[i] = corpus->width == 1   ? ((const uint8_t *)corpus->tokens)[at]
                    : corpus->width == 2 ? ((const uint16_t *)corpus->tokens)[at]
                                         : ((const int32_t *)corpus->tokens)[at];
    }
}
