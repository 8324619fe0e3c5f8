/* Text to tokens: added tokens, pieces, merges. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/fail.h"
#include "base/grow.h"
#include "data/piece.h"
#include "data/tokenizer.h"

/* A cache of pieces by hash; a later piece replaces an earlier one. Clearing it is not
 * worth it for texts shorter than CACHE_WORTH. */
enum { CACHE_SLOTS = 4096, CACHE_BYTES = 24, CACHE_WORTH = 4096 };

typedef struct {
    uint8_t len, n; /* len 0: empty */
    unsigned char bytes[CACHE_BYTES];
    int32_t tokens[CACHE_BYTES];
} cached_piece;

typedef struct {
    const zero_tokenizer *tok;
    cached_piece *cache; /* [CACHE_SLOTS]; NULL: none */
    zero_token_sink take;
    void *arg;
} encoder;

/* ---- tokens by their text ---- */

struct zero_text_slot {
    int32_t after; /* the token + 1; 0: the slot is empty */
};

static struct zero_text_slot *text_slot(const zero_tokenizer *tok,
                                        const unsigned char *text, size_t len)
{
    for (uint32_t i = (uint32_t)XXH3_64bits(text, len);; i++) {
        struct zero_text_slot *slot = &tok->texts[i & tok->text_mask];
        size_t found;
        if (slot->after == 0) return slot;
        const unsigned char *bytes = zero_tokenizer_decode(tok, slot->after - 1, &found);
        if (found == len && memcmp(bytes, text, len) == 0) return slot;
    }
}

zero_status zero_tokenizer_index_texts(zero_tokenizer *tok, const bool *has_text)
{
    uint32_t n_slots = 2;
    while (n_slots < 2 * (uint32_t)tok->vocab) n_slots *= 2;
    tok->text_mask = n_slots - 1;
    ZERO_TRY(zero_new(&tok->texts, n_slots, "texts of tokens"));
    for (int32_t i = 0; i < tok->vocab; i++) {
        size_t len;
        if (has_text && !has_text[i]) continue;
        const unsigned char *text = zero_tokenizer_decode(tok, i, &len);
        struct zero_text_slot *slot = text_slot(tok, text, len);
        if (slot->after != 0)
            return zero_fail(ZERO_ERR_FORMAT,
                             "tokens %" PRId32 " and %" PRId32
                             " of the tokenizer have the same text",
                             slot->after - 1, i);
        slot->after = i + 1;
    }
    return ZERO_OK;
}

/* ---- pieces ---- */

static zero_status merge(const encoder *e, const unsigned char *piece, size_t len,
                         int32_t *ids, int64_t *n)
{
    for (size_t i = 0; i < len; i++) ids[i] = e->tok->byte_ids[piece[i]];
    return zero_merges_apply(&e->tok->table, (int64_t)len, ids, n);
}

static zero_status merge_long(const encoder *e, const unsigned char *piece, size_t len)
{
    int64_t n = 0;
    int32_t *ids;
    ZERO_TRY(zero_new(&ids, len, "bytes of a piece of text"));
    zero_status st = merge(e, piece, len, ids, &n);
    if (st == ZERO_OK) st = e->take(e->arg, n, ids);
    free(ids);
    return st;
}

static uint32_t hash_piece(const unsigned char *piece, size_t len)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < len; i++) hash = (hash ^ piece[i]) * 16777619u;
    return hash ^ hash >> 15;
}

static zero_status encode_piece(void *arg, const unsigned char *piece, size_t len)
{
    const encoder *e = arg;
    if (e->tok->ignores_merges) {
        int32_t token = text_slot(e->tok, piece, len)->after - 1;
        if (token >= 0) return e->take(e->arg, 1, &token);
    }
    if (e->cache && len <= CACHE_BYTES) {
        cached_piece *slot = &e->cache[hash_piece(piece, len) % CACHE_SLOTS];
        if (slot->len != len || memcmp(slot->bytes, piece, len) != 0) {
            int64_t n = 0;
            slot->len = 0;
            ZERO_TRY(merge(e, piece, len, slot->tokens, &n));
            slot->len = (uint8_t)len;
            slot->n = (uint8_t)n;
            memcpy(slot->bytes, piece, len);
        }
        return e->take(e->arg, slot->n, slot->tokens);
    }
    int32_t ids[ZERO_PIECE_MAX];
    int64_t n = 0;
    if (len > ZERO_PIECE_MAX) return merge_long(e, piece, len);
    ZERO_TRY(merge(e, piece, len, ids, &n));
    return e->take(e->arg, n, ids);
}

/* ---- whole texts ---- */

static zero_status encode_pieces(encoder *e, const unsigned char *text, size_t len)
{
    for (size_t at = 0, end; at < len; at = end) {
        end = zero_piece_end(text, len, at);
        ZERO_TRY(encode_piece(e, text + at, end - at));
    }
    return ZERO_OK;
}

/* Added tokens of level k are found in the text, those of later levels in what is left. */
static zero_status encode_foreign(encoder *e, int k, const unsigned char *text, size_t len)
{
    const zero_tokenizer *tok = e->tok;
    if (k == 2 && tok->cuts_as_own) return encode_pieces(e, text, len);
    if (k == 2)
        return zero_pattern_split(tok->patterns, tok->n_patterns, text, len, encode_piece,
                                  e);
    for (size_t from = 0, at;;) {
        const zero_added_token *found =
            zero_added_find(&tok->added[k], text, len, from, &at);
        size_t end = found ? at : len;
        ZERO_TRY(encode_foreign(e, k + 1, text + from, end - from));
        if (!found) return ZERO_OK;
        ZERO_TRY(e->take(e->arg, 1, &found->id));
        from = at + found->len;
    }
}

zero_status zero_tokenizer_encode_to(const zero_tokenizer *tok, const unsigned char *text,
                                     size_t len, zero_token_sink take, void *arg)
{
    encoder e = {.tok = tok, .take = take, .arg = arg};
    if (tok->characters) return zero_tokenizer_encode_characters(tok, text, len, take, arg);
    if (len >= CACHE_WORTH && tok->vocab > ZERO_VOCAB_BYTES) {
        ZERO_TRY(zero_new(&e.cache, CACHE_SLOTS, "pieces of a cache"));
    }
    zero_status st =
        tok->is_foreign ? encode_foreign(&e, 0, text, len) : encode_pieces(&e, text, len);
    free(e.cache);
    return st;
}

typedef struct {
    int32_t *at;
} position;

static zero_status append(void *arg, int64_t n, const int32_t *tokens)
{
    position *p = arg;
    for (int64_t i = 0; i < n; i++) *p->at++ = tokens[i];
    return ZERO_OK;
}

zero_status zero_tokenizer_encode(const zero_tokenizer *tok, const unsigned char *text,
                                  size_t len, int32_t *tokens, int64_t *n)
{
    position p = {tokens};
    ZERO_TRY(zero_tokenizer_encode_to(tok, text, len, append, &p));
    *n = p.at - tokens;
    return ZERO_OK;
}

size_t zero_tokenizer_span(const zero_tokenizer *tok, int64_t n, const int32_t *tokens)
{
    size_t bytes = 0;
    for (int64_t i = 0; i < n; i++)
        bytes += tokens[i] < 0 ? 1 : tok->starts[tokens[i] + 1] - tok->starts[tokens[i]];
    return bytes;
}

zero_status zero_tokenizer_refuse_byte(const zero_tokenizer *tok, const char *where,
                                       unsigned char byte, size_t at)
{
    const char letter[] = {' ', '(', (char)byte, ')', '\0'};
    return zero_fail(
        ZERO_ERR_INVALID,
        "%s: the tokenizer %s has no token for the byte 0x%02x%s, at byte %zu: its "
        "alphabet is that of another text; give another tokenizer, or leave the byte out",
        where, tok->name, byte, byte > ' ' && byte < 0x7f ? letter : "", at);
}
