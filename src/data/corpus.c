#include "data/corpus.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/fail.h"
#include "base/quantity.h"
#include "data/encode.h"
#include "data/material.h"
#include "data/part.h"
#include "data/self_text.h"
#include "data/tokenizer_find.h"
#include "data/tokens.h"
#include "io/checksum.h"
#include "io/file_list.h"

/* 1.3 M training tokens of bpe:512 (2.4 bytes each): more than the demo reads. */
#define STORIES_DEFAULT   ((size_t)3600000)
#define STORIES_MOST      INT64_C(1000000000000)
#define STORIES_TOKENIZER "bpe:512"

/* The corpus of lessons: words of a model with --vocab 8 and --seq 4. */
enum { LESSON_LETTERS = 8, LESSON_WORD = 4, LESSON_TIMES = 32 };
#define LESSON_TOKENIZER "char"

typedef zero_corpus_source source;
typedef zero_material material;

/* ---- text to tokens ---- */

/* The corpus takes the tokens, of `width` bytes each. */
static void adopt(zero_corpus *corpus, material *m, int width)
{
    corpus->tokens = m->all.bytes;
    corpus->width = width;
    corpus->n_tokens = (int64_t)(m->all.len / (size_t)width);
    corpus->has_validation = m->is_split;
    corpus->n_train = m->is_split ? (int64_t)(m->n_train / (size_t)width)
                                  : corpus->n_tokens - corpus->n_tokens / 10;
    *m = (material){.is_split = false};
}

static zero_status learn(zero_corpus *corpus, const char *name, int threads,
                         const material *text)
{
    corpus->tokenizer = calloc(1, sizeof *corpus->tokenizer);
    if (!corpus->tokenizer) return zero_fail(ZERO_ERR_NOMEM, "no memory for a tokenizer");
    ZERO_TRY(zero_material_learn(text, name, threads, corpus->tokenizer));
    corpus->vocab = corpus->tokenizer->vocab;
    return ZERO_OK;
}

static zero_status tokenize(zero_corpus *corpus, const char *name, int threads,
                            material *text)
{
    material tokens;
    ZERO_TRY(learn(corpus, name, threads, text));
    if (zero_tokenizer_is_bytes(corpus->tokenizer)) { /* the bytes are the tokens */
        adopt(corpus, text, 1);
        return ZERO_OK;
    }
    zero_status st = zero_material_encode(text, corpus->tokenizer, threads, &tokens);
    if (st == ZERO_OK)
        adopt(corpus, &tokens, zero_encode_width(corpus->tokenizer));
    else
        zero_bytes_destroy(&tokens.all);
    return st;
}

static zero_status add_validation(const source *r, zero_tokens_kind kind, int64_t vocab,
                                  material *m)
{
    if (!r->validation) return ZERO_OK;
    return zero_material_add_validation(m, r->data, r->validation, kind, vocab);
}

/* The model's vocabulary may be larger than the tokenizer's; the rest is never used. */
static zero_status widen_vocab(zero_corpus *corpus, int64_t vocab)
{
    if (vocab > 0 && vocab < corpus->vocab)
        return zero_fail(ZERO_ERR_INVALID,
                         "--vocab %" PRId64 " is too small for the tokenizer %s, which has "
                         "%" PRId64
                         " tokens; leave --vocab out, choose another --tokenizer, or give "
                         "--data lesson for --model lesson",
                         vocab, corpus->tokenizer->name, corpus->vocab);
    if (vocab > 0) corpus->vocab = vocab;
    return ZERO_OK;
}

/* In words, where the validation data come from if they are not the last tenth. */
static void describe_validation(const source *r, zero_corpus *corpus)
{
    if (!corpus->has_validation) return;
    snprintf(corpus->validation, sizeof corpus->validation, "%.100s, %" PRId64 " tokens",
             r->validation ? r->validation : "the files named val",
             corpus->n_tokens - corpus->n_train);
}

/* Tokens of another tokenizer mean nothing to weights that were imported. */
static zero_status choose_tokenizer(const source *r, const char *fallback,
                                    const char **name)
{
    *name = r->tokenizer ? r->tokenizer : r->imported ? r->imported : fallback;
    if ((*name)[0] != '\0') return ZERO_OK;
    return zero_fail(
        ZERO_ERR_INVALID,
        "--data %s is text, and there is no tokenizer beside the model's weights "
        "(" ZERO_TOKENIZER_FILES
        "), so its tokens would not be the model's: put the model's tokenizer "
        "there, give it as --tokenizer FILE, or give token files",
        r->data);
}

static zero_status finish_text(const source *r, const char *fallback, material *text,
                               zero_corpus *corpus)
{
    size_t bytes = text->n_train = text->all.len;
    const char *name;
    ZERO_TRY(choose_tokenizer(r, fallback, &name));
    ZERO_TRY(add_validation(r, ZERO_TOKENS_TEXT, 0, text));
    ZERO_TRY(tokenize(corpus, name, r->threads, text));
    ZERO_TRY(widen_vocab(corpus, r->vocab));
    describe_validation(r, corpus);
    snprintf(corpus->description, sizeof corpus->description,
             "%.100s, %zu bytes, %" PRId64 " tokens (%s)", r->data, bytes,
             corpus->has_validation ? corpus->n_train : corpus->n_tokens,
             corpus->tokenizer->name);
    return ZERO_OK;
}

/* ---- sources ---- */

static zero_status parse_size(const char *spec, const char *text, size_t *size)
{
    int64_t n;
    if (!zero_quantity_whole(text, &n) || n < 1 || n > STORIES_MOST)
        return zero_fail(ZERO_ERR_INVALID,
                         "--data %s: expected stories:SIZE with a size in bytes from 1 to "
                         "1000G, as in stories:4M or stories:4MiB",
                         spec);
    *size = (size_t)n;
    return ZERO_OK;
}

static zero_status tell_stories(const source *r, size_t size, const zero_stories *stories,
                                material *text, zero_corpus *corpus)
{
    int64_t n_stories;
    double cost;
    ZERO_TRY(zero_stories_fill(stories, size, &text->all, &n_stories, &cost));
    ZERO_TRY(finish_text(r, STORIES_TOKENIZER, text, corpus));
    /* Patterns may join what the measure counts apart, such as a full stop and a line's end. */
    corpus->has_entropy = corpus->tokenizer->n_patterns == 0;
    if (corpus->has_entropy)
        corpus->entropy = zero_stories_measure(stories, corpus->tokenizer);
    snprintf(corpus->description, sizeof corpus->description,
             "%" PRId64 " stories, %" PRId64 " tokens (%s)", n_stories,
             corpus->has_validation ? corpus->n_train : corpus->n_tokens,
             corpus->tokenizer->name);
    return ZERO_OK;
}

static zero_status open_stories(const source *r, material *text, zero_corpus *corpus)
{
    size_t size = STORIES_DEFAULT;
    zero_stories stories;
    const char *colon = strchr(r->data, ':');
    if (colon) ZERO_TRY(parse_size(r->data, colon + 1, &size));
    ZERO_TRY(zero_stories_init(&stories, r->seed));
    zero_status st = tell_stories(r, size, &stories, text, corpus);
    zero_stories_destroy(&stories);
    return st;
}

static zero_status read_texts(const source *r, const zero_files *files, material *text,
                              zero_corpus *corpus)
{
    for (int64_t i = 0; i < files->n; i++)
        ZERO_TRY(zero_bytes_read(&text->all, files->paths[i]));
    if (text->all.len == 0)
        return zero_fail(ZERO_ERR_FORMAT, "%s: nothing to train on: %s empty", r->data,
                         files->n == 1 ? "the file is" : "all of its files are");
    return finish_text(r, "byte", text, corpus);
}

/* Validation files among those of --data follow the training files. */
static zero_status read_parts(const source *r, zero_files *files, zero_tokens_kind kind,
                              zero_corpus *corpus, material *m)
{
    int64_t n_train = zero_part_files(files);
    m->is_split = n_train < files->n;
    if (m->is_split && r->validation)
        return zero_fail(ZERO_ERR_INVALID,
                         "--data %s has validation files by their names, as %s, and "
                         "--val-data is given; leave --val-data out, or name the training "
                         "files alone",
                         r->data, files->paths[n_train]);
    for (int64_t i = 0; i < files->n; i++) {
        ZERO_TRY(zero_tokens_read(files->paths[i], kind, corpus->vocab, &m->all));
        if (i < n_train) m->n_train = m->all.len;
    }
    if (m->n_train == 0)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: nothing to train on: no tokens in %" PRId64 " file(s)",
                         r->data, n_train);
    return add_validation(r, kind, corpus->vocab, m);
}

static zero_status read_token_files(const source *r, zero_files *files,
                                    zero_tokens_kind kind, material *tokens,
                                    zero_corpus *corpus)
{
    if (r->tokenizer)
        return zero_fail(
            ZERO_ERR_INVALID,
            "%s: this %s file holds tokens already, so --tokenizer %s cannot be "
            "honoured; leave it out",
            files->paths[0], zero_tokens_name(kind), r->tokenizer);
    ZERO_TRY(zero_tokens_vocab(kind, files->paths[0], r->vocab, &corpus->vocab));
    ZERO_TRY(read_parts(r, files, kind, corpus, tokens));
    adopt(corpus, tokens, zero_tokens_width(kind));
    describe_validation(r, corpus);
    snprintf(corpus->description, sizeof corpus->description,
             "%.100s, %" PRId64 " tokens (%s), vocabulary %" PRId64, r->data,
             corpus->has_validation ? corpus->n_train : corpus->n_tokens,
             zero_tokens_name(kind), corpus->vocab);
    return ZERO_OK;
}

static zero_status same_kind(const zero_files *files, zero_tokens_kind *kind)
{
    ZERO_TRY(zero_tokens_detect(files->paths[0], kind));
    for (int64_t i = 1; i < files->n; i++) {
        zero_tokens_kind other;
        ZERO_TRY(zero_tokens_detect(files->paths[i], &other));
        if (other != *kind)
            return zero_fail(
                ZERO_ERR_FORMAT,
                "%s is %s data, but %s is %s data; one corpus takes files of one "
                "kind",
                files->paths[0], zero_tokens_name(*kind), files->paths[i],
                zero_tokens_name(other));
    }
    return ZERO_OK;
}

static zero_status open_listed(const source *r, zero_files *files, material *text,
                               zero_corpus *corpus)
{
    zero_tokens_kind kind;
    ZERO_TRY(same_kind(files, &kind));
    if (kind == ZERO_TOKENS_TEXT) return read_texts(r, files, text, corpus);
    return read_token_files(r, files, kind, text, corpus);
}

static zero_status open_files(const source *r, material *text, zero_corpus *corpus)
{
    zero_files files;
    ZERO_TRY(
        zero_files_list("--data", "stories[:SIZE], self, lesson, or ", r->data, &files));
    zero_status st = open_listed(r, &files, text, corpus);
    zero_files_destroy(&files);
    return st;
}

static bool is_stories(const char *spec)
{
    return strcmp(spec, "stories") == 0 || strncmp(spec, "stories:", 8) == 0;
}

static bool is_lesson(const char *spec)
{
    return strcmp(spec, "lesson") == 0;
}

/* "abcabcdbcdecdefd...habh", again and again: each letter, the two after it, and the letter again. */
static zero_status open_lesson(const source *r, material *text, zero_corpus *corpus)
{
    static const int after[LESSON_WORD] = {0, 1, 2, 0};
    unsigned char letters[LESSON_LETTERS * LESSON_WORD];
    for (int i = 0; i < LESSON_LETTERS * LESSON_WORD; i++)
        letters[i] = (unsigned char)('a' + (i / LESSON_WORD + after[i % LESSON_WORD]) %
                                               LESSON_LETTERS);
    for (int i = 0; i < LESSON_TIMES; i++)
        ZERO_TRY(zero_bytes_append(&text->all, letters, sizeof letters));
    return finish_text(r, LESSON_TOKENIZER, text, corpus);
}

static zero_status open_source(const source *r, material *text, zero_corpus *corpus)
{
    if (is_stories(r->data)) return open_stories(r, text, corpus);
    if (is_lesson(r->data)) return open_lesson(r, text, corpus);
    if (strcmp(r->data, "self") != 0) return open_files(r, text, corpus);
    ZERO_TRY(zero_bytes_append(&text->all, zero_self_text, zero_self_len));
    return finish_text(r, "byte", text, corpus);
}

/* Finds mistakes before gigabytes are read. */
static zero_status check(const source *r)
{
    int32_t ignored;
    if (r->vocab < 0 || r->vocab > INT32_MAX)
        return zero_fail(ZERO_ERR_INVALID, "--vocab %" PRId64 ": expected 1 to %" PRId32,
                         r->vocab, INT32_MAX);
    if (r->validation && is_stories(r->validation))
        return zero_fail(
            ZERO_ERR_INVALID,
            "--val-data %s: the stories of one seed are one text, so these may "
            "be among the training data; give files, or leave it out",
            r->validation);
    if (!r->tokenizer) return ZERO_OK;
    return zero_tokenizer_is_name(r->tokenizer)
               ? zero_tokenizer_parse(r->tokenizer, &ignored)
               : zero_tokenizer_check_path(r->tokenizer);
}

zero_status zero_corpus_open(const zero_corpus_source *from, zero_corpus *corpus)
{
    ZERO_TRY(check(from));
    zero_corpus made = {0};
    material text = {.is_split = false};
    zero_status st = open_source(from, &text, &made);
    zero_bytes_destroy(&text.all);
    if (st != ZERO_OK)
        zero_corpus_close(&made);
    else
        *corpus = made;
    return st;
}

static zero_status count_words(const char *tokenizer, int32_t *words)
{
    zero_tokenizer opened;
    if (zero_tokenizer_is_name(tokenizer)) return zero_tokenizer_parse(tokenizer, words);
    ZERO_TRY(zero_tokenizer_open(tokenizer, &opened));
    *words = opened.vocab;
    zero_tokenizer_destroy(&opened);
    return ZERO_OK;
}

zero_status zero_corpus_expect_vocab(const char *spec, const char *tokenizer,
                                     int64_t *vocab, const char **why)
{
    int32_t words;
    bool stories = is_stories(spec);
    if (!tokenizer && is_lesson(spec)) {
        *vocab = LESSON_LETTERS;
        *why = "the lesson's letters";
        return ZERO_OK;
    }
    const char *fallback = stories ? STORIES_TOKENIZER : "byte";
    ZERO_TRY(count_words(tokenizer ? tokenizer : fallback, &words));
    *vocab = words;
    *why = tokenizer ? "--tokenizer's"
           : stories ? "that of the stories' own tokenizer, " STORIES_TOKENIZER
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
    snprintf(text, sizeof text, "all for training: %s", hex);
    zero_checksum(text, strlen(text), hex);
}

void zero_corpus_read(const zero_corpus *corpus, int64_t begin, int64_t n, int32_t *tokens)
{
    assert(begin >= 0 && n >= 0 && n <= corpus->n_tokens - begin);
    if (corpus->width == 1) {
        const uint8_t *from = (const uint8_t *)corpus->tokens + begin;
        for (int64_t i = 0; i < n; i++) tokens[i] = from[i];
    } else if (corpus->width == 2) {
        const uint16_t *from = (const uint16_t *)corpus->tokens + begin;
        for (int64_t i = 0; i < n; i++) tokens[i] = from[i];
    } else {
        const uint32_t *from = (const uint32_t *)corpus->tokens + begin;
        for (int64_t i = 0; i < n; i++) tokens[i] = (int32_t)from[i];
    }
}
