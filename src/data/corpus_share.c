#include "data/corpus_share.h"

#include "base/number.h"
#include "data/tokenizer_file.h"

#define ALIGN 64

typedef struct {
    zero_corpus corpus;                             /* without its pointers */
    char name[sizeof(((zero_tokenizer *)0)->name)]; /* "": there is no tokenizer */
    size_t len;                                     /* bytes of its file, after the head */
    size_t tokens_at;                               /* bytes from the head */
} head;

size_t zero_corpus_token_bytes(const zero_corpus *c)
{
    return (size_t)c->n_tokens * (size_t)c->width;
}

zero_status zero_corpus_pack(const zero_corpus *corpus, zero_bytes *packed)
{
    static const char zeros[ALIGN];
    head h = {.corpus = *corpus};
    h.corpus.tokens = h.corpus.tokenizer = NULL;
    if (corpus->tokenizer) memcpy(h.name, corpus->tokenizer->name, sizeof h.name);
    ZERO_TRY(zero_bytes_append(packed, &h, sizeof h));
    if (corpus->tokenizer) ZERO_TRY(zero_tokenizer_write(corpus->tokenizer, packed));
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

zero_status zero_corpus_unpack(char *shared, zero_corpus *corpus)
{
    const head *h = (const head *)(const void *)shared;
    ZERO_FREED zero_tokenizer *tokenizer = NULL;
    if (h->name[0]) {
        ZERO_TRY(zero_new(&tokenizer, 1, "a tokenizer"));
        ZERO_TRY(zero_tokenizer_parse_file("the node's tokenizer", shared + sizeof *h,
                                           h->len, tokenizer));
        memcpy(tokenizer->name, h->name, sizeof h->name);
    }
    *corpus = h->corpus;
    corpus->tokenizer = tokenizer;
    corpus->tokens = shared + h->tokens_at;
    corpus->borrows_tokens = true;
    tokenizer = NULL;
    return ZERO_OK;
}
