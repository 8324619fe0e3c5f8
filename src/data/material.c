#include "data/material.h"

#include <string.h>

#include "base/fail.h"
#include "data/encode.h"
#include "data/tokenizer_find.h"
#include "io/file_list.h"

typedef zero_material material;

/* ---- --val-data ---- */

static zero_status check_kind(const char *data, const zero_files *files,
                              zero_tokens_kind kind)
{
    for (int64_t i = 0; i < files->n; i++) {
        zero_tokens_kind other;
        ZERO_TRY(zero_tokens_detect(files->paths[i], &other));
        if (other != kind)
            return zero_fail(ZERO_ERR_FORMAT,
                             "--val-data: %s is %s data, but --data %s is %s data; both "
                             "take files of one kind",
                             files->paths[i], zero_tokens_name(other), data,
                             zero_tokens_name(kind));
    }
    return ZERO_OK;
}

static zero_status read_files(material *m, const char *validation, const zero_files *files,
                              zero_tokens_kind kind, int64_t vocab)
{
    for (int64_t i = 0; i < files->n; i++)
        ZERO_TRY(kind == ZERO_TOKENS_TEXT
                     ? zero_bytes_read(&m->all, files->paths[i])
                     : zero_tokens_read(files->paths[i], kind, vocab, &m->all));
    if (m->all.len > m->n_train) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT, "--val-data %s: nothing to validate on: %s empty",
                     validation, files->n == 1 ? "the file is" : "all of its files are");
}

zero_status zero_material_add_validation(material *m, const char *data,
                                         const char *validation, zero_tokens_kind kind,
                                         int64_t vocab)
{
    zero_files files;
    ZERO_TRY(zero_files_list("--val-data", "", validation, &files));
    m->is_split = true;
    zero_status st = check_kind(data, &files, kind);
    if (st == ZERO_OK) st = read_files(m, validation, &files, kind, vocab);
    zero_files_destroy(&files);
    return st;
}

/* ---- text to tokens ---- */

/* Characters of validation data need tokens, too. */
static size_t bytes_to_learn_from(const char *name, const material *m)
{
    if (strcmp(name, "char") == 0) return m->all.len;
    return m->is_split ? m->n_train : m->all.len - m->all.len / 10;
}

zero_status zero_material_learn(const material *text, const char *name, int threads,
                                zero_tokenizer *tokenizer)
{
    if (!zero_tokenizer_is_name(name)) return zero_tokenizer_open(name, tokenizer);
    return zero_tokenizer_init_by(threads, tokenizer, name, text->all.bytes,
                                  bytes_to_learn_from(name, text));
}

zero_status zero_material_encode(const material *text, const zero_tokenizer *tokenizer,
                                 int threads, material *tokens)
{
    zero_bytes first = {.bytes = text->all.bytes, .len = text->n_train};
    zero_bytes rest = {.bytes = text->all.bytes + text->n_train,
                       .len = text->all.len - text->n_train};
    *tokens = (material){.is_split = text->is_split};
    ZERO_TRY(zero_encode_text(tokenizer, &first, threads, &tokens->all));
    tokens->n_train = tokens->all.len;
    return zero_encode_text(tokenizer, &rest, threads, &tokens->all);
}
