#include "data/opening.h"

#include "base/grow.h"
#include "data/tokenizer_find.h"

zero_status zero_opening_begin(zero_opening *o, zero_tokens_format format, uint64_t bytes,
                               bool are_tokens)
{
    const zero_corpus_source *r = o->from;
    if (r->validation)
        ZERO_TRY(zero_material_list("--val-data", "", r->validation, r->token_bytes,
                                    &r->listener, &o->validation));
    const zero_tokens_format own = o->validation.format;
    ZERO_FORMAT_IF(o->from->validation &&
                       !(own.kind == format.kind && own.bytes == format.bytes),
                   "--val-data: %.400s is %s data, but --data %.400s is %s data; both take "
                   "files of one kind",
                   o->validation.files.paths[0], zero_tokens_name(own), o->from->data,
                   zero_tokens_name(format));
    /* A system whose memory ends kills a process without a word, so sizes are compared
     * before the first read. Tokens that ranks share are copied once. How many tokens a
     * text has is not known yet: reading and encoding go no further than the room. */
    const bool copies = are_tokens && r->shares;
    const uint64_t all = bytes + o->validation.bytes, needed = copies ? 2 * all : all;
    o->read.all.most = r->room;
    ZERO_FAIL_IF(
        !(r->room == 0 || needed <= r->room), ZERO_ERR_NOMEM,
        "--data %.200s%s%.200s: %.1f MiB of %s need %.1f MiB of memory%s, and %.1f MiB are "
        "available; give less data, or start on nodes with more memory",
        r->data, r->validation ? ", --val-data " : "", r->validation ? r->validation : "",
        (double)all / 0x1p20, are_tokens ? "tokens" : "text", (double)needed / 0x1p20,
        copies ? ", as they are copied once for all ranks of the node" : "",
        (double)r->room / 0x1p20);
    return ZERO_OK;
}

zero_status zero_opening_learn(const zero_opening *o, const char *name, zero_corpus *corpus)
{
    const zero_material *text = &o->read;
    size_t len = text->is_split ? text->n_train : text->all.len - text->all.len / 10;
    /* Characters of validation data need tokens, too. */
    if (zero_same_text(name, "char")) len = text->all.len;
    ZERO_TRY(zero_new(&corpus->tokenizer, 1, "a tokenizer"));
    ZERO_TRY(zero_tokenizer_is_name(name)
                 ? zero_tokenizer_init(o->from->threads, corpus->tokenizer, name,
                                       text->all.bytes, len)
                 : zero_tokenizer_open(name, corpus->tokenizer));
    corpus->vocab = corpus->tokenizer->vocab;
    return ZERO_OK;
}

zero_status zero_opening_widen(const zero_opening *o, zero_corpus *corpus)
{
    const int64_t vocab = o->from->vocab;
    const zero_tokenizer *tok = corpus->tokenizer;
    size_t len;
    if (vocab > 0 && vocab < corpus->vocab) {
        const char *last = (const char *)zero_tokenizer_decode(tok, tok->vocab - 1, &len);
        return zero_fail(ZERO_ERR_INVALID,
                         "--vocab %" PRId64
                         " is too small for the tokenizer %s, which has %" PRId64
                         " tokens, the last of them '%.*s'; leave --vocab out, choose "
                         "another --tokenizer, or give --data lesson for --model lesson",
                         vocab, tok->name, corpus->vocab, len < 40 ? (int)len : 40, last);
    }
    if (vocab > 0) corpus->vocab = vocab;
    return ZERO_OK;
}

zero_status zero_opening_read_validation(zero_opening *o, zero_tokens_limit limit)
{
    const zero_files *files = &o->validation.files;
    zero_material *m = &o->read;
    if (!o->from->validation) return ZERO_OK;
    m->is_split = true;
    ZERO_TRY(zero_material_read(m, &o->validation, 0, files->n, limit));
    ZERO_FORMAT_IF(m->all.len <= m->n_train,
                   "--val-data %s: nothing to validate on: %s empty", o->from->validation,
                   files->n == 1 ? "the file is" : "all of its files are");
    return ZERO_OK;
}

void zero_opening_adopt(const zero_opening *o, zero_material *m, int width,
                        zero_corpus *corpus)
{
    const char *validation = o->from->validation;
    corpus->tokens = m->all.bytes;
    corpus->width = width;
    corpus->n_tokens = (int64_t)(m->all.len / (size_t)width);
    corpus->has_validation = m->is_split;
    corpus->n_train = m->is_split ? (int64_t)(m->n_train / (size_t)width)
                                  : corpus->n_tokens - corpus->n_tokens / 10;
    *m = (zero_material){.is_split = false};
    if (!corpus->has_validation) return;
    zero_print(corpus->validation, "%.100s, %" PRId64 " tokens",
               validation ? validation : "the files named val",
               corpus->n_tokens - corpus->n_train);
}
