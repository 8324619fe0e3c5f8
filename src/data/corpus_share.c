#include "data/corpus_share.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/grow.h"
#include "base/number.h"
#include "data/tokenizer_file.h"

#define ALIGN 64

/* The form in which a tokenizer travels. Our own are made again from their tables. */
typedef enum { NO_TOKENIZER, MERGES, CHARACTERS, TEXT } form;

typedef struct {
    zero_corpus corpus; /* without its pointers */
    form form;
    char name[sizeof(((zero_tokenizer *)0)->name)];
    size_t len;       /* bytes of the tokenizer, after the head */
    size_t tokens_at; /* bytes from the head */
} head;

size_t zero_corpus_token_bytes(const zero_corpus *c)
{
    return (size_t)c->n_tokens * (size_t)c->width;
}

static form form_of(const zero_tokenizer *tok)
{
    if (!tok) return NO_TOKENIZER;
    if (tok->is_foreign) return TEXT;
    return tok->characters ? CHARACTERS : MERGES;
}

static zero_status append_tokenizer(const zero_tokenizer *tok, zero_bytes *out)
{
    switch (form_of(tok)) {
    case TEXT: return zero_tokenizer_write(tok, out);
    case CHARACTERS:
        return zero_bytes_append(out, tok->characters,
                                 (size_t)tok->vocab * sizeof *tok->characters);
    case MERGES:
        return zero_bytes_append(out, tok->merges,
                                 (size_t)(tok->vocab - ZERO_VOCAB_BYTES) *
                                     sizeof *tok->merges);
    default: return ZERO_OK;
    }
}

zero_status zero_corpus_pack(const zero_corpus *corpus, zero_bytes *packed)
{
    static const char zeros[ALIGN];
    head h = {.corpus = *corpus, .form = form_of(corpus->tokenizer)};
    h.corpus.tokens = h.corpus.tokenizer = NULL;
    if (corpus->tokenizer) memcpy(h.name, corpus->tokenizer->name, sizeof h.name);
    ZERO_TRY(zero_bytes_append(packed, &h, sizeof h));
    ZERO_TRY(append_tokenizer(corpus->tokenizer, packed));
    h.len = packed->len - sizeof h;
    h.tokens_at = zero_round_up_size(packed->len, ALIGN);
    ZERO_TRY(zero_bytes_append(packed, zeros, h.tokens_at - packed->len));
    memcpy(packed->bytes, &h, sizeof h);
    return ZERO_OK;
}

void zero_corpus_move(zero_corpus *corpus, const zero_bytes *packed, char *shared)
{
    memcpy(shared, packed->bytes, packed->len);
    memcpy(shared + packed->len, corpus->tokens, zero_corpus_token_bytes(corpus));
    if (!corpus->borrows_tokens) free(corpus->tokens);
    corpus->tokens = shared + packed->len;
    corpus->borrows_tokens = true;
}

static zero_status make_tokenizer(const head *h, const char *bytes, zero_tokenizer *tok)
{
    zero_status st = ZERO_OK;
    if (h->form == TEXT)
        st = zero_tokenizer_parse_file("the node's tokenizer", bytes, h->len, tok);
    else if (h->form == CHARACTERS)
        st = zero_tokenizer_from_characters(tok, (const uint32_t *)bytes,
                                            (int32_t)(h->len / sizeof(uint32_t)));
    else
        st = zero_tokenizer_from_merges(tok, (const zero_merge *)bytes,
                                        (int32_t)(h->len / sizeof(zero_merge)));
    if (st == ZERO_OK) memcpy(tok->name, h->name, sizeof tok->name);
    return st;
}

zero_status zero_corpus_unpack(char *shared, zero_corpus *corpus)
{
    const head *h = (const head *)(const void *)shared;
    zero_corpus made = h->corpus;
    if (h->form != NO_TOKENIZER) {
        zero_tokenizer *tok;
        ZERO_TRY(zero_new(&tok, 1, "a tokenizer"));
        zero_status st = make_tokenizer(h, shared + sizeof *h, tok);
        if (st == ZERO_OK)
            made.tokenizer = tok;
        else
            free(tok);
        if (st != ZERO_OK) return st;
    }
    made.tokens = shared + h->tokens_at;
    made.borrows_tokens = true;
    *corpus = made;
    return ZERO_OK;
}
