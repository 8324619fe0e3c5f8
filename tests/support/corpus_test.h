/* corpus_test.h - corpora from files that a test writes to a directory of its own. */
#pragma once

#include "support/test.h"

#include <unistd.h>

#include "data/corpus.h"

static inline int enter_new_directory(void **state)
{
    char *path = strdup("/tmp/zero_test_data_XXXXXX");
    *state = path;
    return path && mkdtemp(path) && chdir(path) == 0 ? 0 : -1;
}

static inline int remove_directory(void **state)
{
    char command[100];
    int failed = chdir("/");
    snprintf(command, sizeof command, "rm -r '%s'", (const char *)*state);
    failed |= system(command);
    free(*state);
    return failed;
}

static inline void write_file(const char *path, const void *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static inline void write_text(const char *path, const char *text)
{
    write_file(path, text, strlen(text));
}

static inline zero_corpus opened(const char *spec, const char *tokenizer, int64_t vocab)
{
    zero_corpus corpus;
    zero_corpus_source from = {
        .data = spec, .tokenizer = tokenizer, .seed = 1, .vocab = vocab};
    if (zero_corpus_open(&from, &corpus) != ZERO_OK)
        fail_msg("%s: %s", spec, zero_last_error());
    return corpus;
}

/* The corpus cannot be opened, and the message has this text. */
static inline void assert_refused(const char *spec, const char *tokenizer, int64_t vocab,
                                  zero_status status, const char *text)
{
    zero_corpus corpus = {.vocab = 42};
    zero_corpus_source from = {
        .data = spec, .tokenizer = tokenizer, .seed = 1, .vocab = vocab};
    assert_int_equal(zero_corpus_open(&from, &corpus), status);
    assert_told(text);
    assert_int_equal(corpus.vocab, 42);
}

static inline void assert_holds(zero_corpus *corpus, const char *text)
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

__attribute__((constructor)) static void test_has_a_directory(void)
{
    around.before = enter_new_directory;
    around.after = remove_directory;
}
