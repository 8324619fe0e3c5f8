#include "data/material.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "data/encode.h"
#include "data/stranger.h"
#include "data/tokenizer_find.h"

typedef zero_material material;

/* ---- files ---- */

static zero_status look_into(const char *path, int token_bytes, zero_tokens_format *format,
                             bool *is_binary, uint64_t *bytes)
{
    zero_file file;
    ZERO_TRY(zero_file_open(path, &file));
    zero_status st = zero_tokens_detect(&file, token_bytes, format, is_binary);
    *bytes = file.bytes;
    zero_file_close(&file);
    return st;
}

static zero_status look_into_all(zero_listed *l, const char *option, const char *spec,
                                 int token_bytes, const zero_listener *listener)
{
    zero_files *f = &l->files;
    char first[ZERO_STORAGE_FILE_PATH] = "";
    int64_t n_all = f->n, n = 0;
    for (int64_t i = 0; i < n_all; i++) {
        zero_tokens_format format;
        bool is_binary = false;
        uint64_t bytes = 0;
        char *path = f->paths[i];
        ZERO_TRY(look_into(path, token_bytes, &format, &is_binary, &bytes));
        if (is_binary && !f->has_directory) return zero_stranger_refuse_binary(path);
        if (is_binary && n == i) snprintf(first, sizeof first, "%s", path);
        f->paths[i] = f->paths[n];
        f->paths[n] = path;
        if (is_binary) continue;
        if (n == 0) l->format = format;
        if (format.kind != l->format.kind || format.bytes != l->format.bytes)
            return zero_fail(ZERO_ERR_FORMAT,
                             "%.400s is %s data, but %.400s is %s data; one corpus takes "
                             "files of one kind",
                             l->files.paths[0], zero_tokens_name(l->format), path,
                             zero_tokens_name(format));
        l->format.is_assumed = l->format.is_assumed || format.is_assumed;
        l->bytes += bytes / (uint64_t)format.bytes * (uint64_t)zero_tokens_width(format);
        n++;
    }
    if (n == 0) return zero_stranger_refuse_binary(first);
    int64_t n_left_out = n_all - n;
    if (n_left_out > 0)
        zero_listener_tell(listener,
                           "%s %.200s: %" PRId64
                           " of its files are not text and are left out, the first: %.200s",
                           option, spec, n_left_out, first);
    for (int64_t i = n; i < n_all; i++) free(f->paths[i]);
    f->n = n;
    return ZERO_OK;
}

zero_status zero_material_list(const char *option, const char *others, const char *spec,
                               int token_bytes, const zero_listener *listener,
                               zero_listed *listed)
{
    zero_listed l = {.bytes = 0};
    ZERO_TRY(zero_files_list(option, others, spec, &l.files));
    zero_status st = look_into_all(&l, option, spec, token_bytes, listener);
    if (st != ZERO_OK)
        zero_listed_close(&l);
    else
        *listed = l;
    return st;
}

void zero_listed_close(zero_listed *listed)
{
    zero_files_destroy(&listed->files);
    *listed = (zero_listed){.bytes = 0};
}

static zero_status read_text(zero_bytes *all, const char *path)
{
    const size_t begin = all->len;
    ZERO_TRY(zero_bytes_read(all, path));
    unsigned char *text = all->bytes + begin;
    const size_t mark = zero_stranger_mark(text, all->len - begin);
    all->len -= mark;
    if (mark > 0) memmove(text, text + mark, all->len - begin);
    return ZERO_OK;
}

zero_status zero_material_read(zero_material *m, const zero_listed *listed, int64_t begin,
                               int64_t end, zero_tokens_limit limit)
{
    for (int64_t i = begin; i < end; i++) {
        const char *path = listed->files.paths[i];
        ZERO_TRY(listed->format.kind == ZERO_TOKENS_TEXT
                     ? read_text(&m->all, path)
                     : zero_tokens_read(path, listed->format, limit, &m->all));
    }
    return ZERO_OK;
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

static zero_status encode_both(const material *text, const zero_tokenizer *tokenizer,
                               int threads, material *tokens)
{
    zero_bytes first = {.bytes = text->all.bytes, .len = text->n_train};
    zero_bytes rest = {.bytes = text->all.bytes + text->n_train,
                       .len = text->all.len - text->n_train};
    ZERO_TRY(zero_encode_text(tokenizer, &first, threads, &tokens->all));
    tokens->n_train = tokens->all.len;
    zero_status st = zero_encode_text(tokenizer, &rest, threads, &tokens->all);
    return st == ZERO_ERR_INVALID ? zero_fail(st, "--val-data: %s", zero_last_error()) : st;
}

zero_status zero_material_encode(const material *text, const zero_tokenizer *tokenizer,
                                 int threads, material *tokens)
{
    const size_t len = text->all.len, room = text->all.most;
    const size_t left = room > len ? room - len : 1;
    *tokens = (material){.is_split = text->is_split};
    if (room > 0) tokens->all.most = left;
    zero_status st = encode_both(text, tokenizer, threads, tokens);
    if (st != ZERO_ERR_NOMEM || room == 0) return st;
    return zero_fail(
        ZERO_ERR_NOMEM,
        "the tokens of %.1f MiB of text need more than the %.1f MiB of memory that are "
        "left beside it; give less data, or start on nodes with more memory",
        (double)len / 0x1p20, (double)left / 0x1p20);
}
