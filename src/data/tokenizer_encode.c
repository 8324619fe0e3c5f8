/* Text to tokens: added tokens, normal forms, pieces, merges; and back. */

#include "base/grow.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "data/normal.h"
#include "data/piece.h"

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
    cached_piece *cache; /* [CACHE_SLOTS] owned; NULL: none */
    int32_t *ids;        /* [room] owned: of a piece */
    size_t room;
    bool is_begun; /* a part of the text was before this place */
    bool is_rest;  /* or, if not, what was cut off */
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
        ZERO_FORMAT_IF(slot->after != 0,
                       "tokens %d and %d of the tokenizer have the same text",
                       slot->after - 1, i);
        slot->after = i + 1;
    }
    return ZERO_OK;
}

/* ---- pieces ---- */

/* The tokens of the bytes of a piece, or of its characters; returns how many. */
static int64_t list_symbols(const zero_tokenizer *tok, const unsigned char *piece,
                            size_t len, int32_t *ids)
{
    int64_t n = 0;
    for (size_t at = 0, bytes; at < len; at += bytes) {
        const unsigned char *c = piece + at;
        bytes = tok->has_marks ? zero_utf8_length(c, len - at) : 0;
        const int32_t token = bytes > 0 ? text_slot(tok, c, bytes)->after - 1 : -1;
        if (bytes == 0) bytes = 1;
        if (token >= 0) ids[n++] = token;
        for (size_t i = 0; token < 0 && i < bytes; i++) ids[n++] = tok->byte_ids[c[i]];
    }
    return n;
}

static zero_status encode_piece(void *arg, const unsigned char *piece, size_t len)
{
    encoder *e = arg;
    const zero_tokenizer *tok = e->tok;
    const int32_t token = tok->ignores_merges ? text_slot(tok, piece, len)->after - 1 : -1;
    cached_piece *slot = NULL;
    int64_t n = 0;
    if (token >= 0) return e->take(e->arg, 1, &token);
    if (e->cache && len <= CACHE_BYTES)
        slot = &e->cache[XXH3_64bits(piece, len) % CACHE_SLOTS];
    if (slot && slot->len == len && memcmp(slot->bytes, piece, len) == 0)
        return e->take(e->arg, slot->n, slot->tokens);
    if (len > e->room) {
        free(e->ids);
        e->room = 0;
        ZERO_TRY(zero_new(&e->ids, 2 * len, "bytes of a piece of text"));
        e->room = 2 * len;
    }
    ZERO_TRY(
        zero_merges_apply(&tok->table, list_symbols(tok, piece, len, e->ids), e->ids, &n));
    if (slot) {
        slot->len = (uint8_t)len;
        slot->n = (uint8_t)n;
        memcpy(slot->bytes, piece, len);
        memcpy(slot->tokens, e->ids, (size_t)n * sizeof *e->ids);
    }
    return e->take(e->arg, n, e->ids);
}

/* ---- whole texts ---- */

/* Pieces that begin with blanks, if no merge has one in its middle; else all is one. */
static size_t blank_end(const zero_tokenizer *tok, const zero_bytes *text, size_t at)
{
    if (tok->joins_words && !tok->cuts_at_blanks) return text->len;
    while (++at < text->len && (text->bytes[at] != ' ' ||
                                (text->bytes[at - 1] == ' ' && !tok->cuts_at_blanks))) {
    }
    return at;
}

static zero_status encode_pieces(encoder *e, const zero_bytes *text)
{
    const zero_tokenizer *tok = e->tok;
    if (tok->n_patterns > 0 || (tok->is_foreign && !tok->cuts_as_own && !tok->has_marks))
        return zero_pattern_split(tok->patterns, tok->n_patterns, text->bytes, text->len,
                                  encode_piece, e);
    for (size_t at = 0, end; at < text->len; at = end) {
        end = tok->has_marks ? blank_end(tok, text, at)
                             : zero_piece_end(text->bytes, text->len, at);
        ZERO_TRY(encode_piece(e, text->bytes + at, end - at));
    }
    return ZERO_OK;
}

/* The first token in text[len] from `from` on, which begins at *at; NULL if there is
 * none. */
static const zero_added_token *find_added(const zero_added *added,
                                          const unsigned char *text, size_t len,
                                          size_t from, size_t *at)
{
    if (added->n == 0) return NULL;
    for (*at = from; *at < len; (*at)++)
        for (int64_t i = 0; added->begins[text[*at]] && i < added->n; i++) {
            const zero_added_token *t = &added->tokens[i];
            if (t->len <= len - *at && memcmp(t->text, text + *at, t->len) == 0) return t;
        }
    return NULL;
}

/* Added tokens of level k are found in the text, those of later levels in what is left. */
static zero_status encode_level(encoder *e, int k, const zero_bytes *text)
{
    for (size_t from = 0, at;;) {
        const zero_added_token *found =
            find_added(&e->tok->added[k], text->bytes, text->len, from, &at);
        const size_t end = found ? at : text->len;
        zero_bytes left = {.bytes = text->bytes + from, .len = end - from};
        ZERO_AT_END(zero_bytes_destroy) zero_bytes made = {0};
        const bool begins = e->is_begun ? e->tok->blank != ZERO_BLANK_FIRST : !e->is_rest;
        ZERO_TRY(zero_normal_form(e->tok, k == 0, begins, &left, &made));
        ZERO_TRY(k == 0 ? encode_level(e, 1, &left) : encode_pieces(e, &left));
        e->is_begun = e->is_begun || left.len > 0;
        if (!found) return ZERO_OK;
        ZERO_TRY(e->take(e->arg, 1, &found->id));
        e->is_begun = true;
        from = at + found->len;
    }
}

zero_status zero_tokenizer_encode_to(const zero_tokenizer *tok, bool is_rest,
                                     const unsigned char *text, size_t len,
                                     zero_token_sink take, void *arg)
{
    encoder e = {.tok = tok, .is_rest = is_rest, .take = take, .arg = arg};
    const zero_bytes all = {.bytes = (unsigned char *)text, .len = len};
    if (tok->characters) {
        /* One token per character, or per byte that is not UTF-8. */
        enum { AT_ONCE = 512 };
        int32_t tokens[AT_ONCE];
        int64_t n = 0;
        for (size_t at = 0, bytes; at<len; at += bytes> 0 ? bytes : 1) {
            bytes = zero_utf8_length(text + at, len - at);
            tokens[n++] = bytes > 0 ? text_slot(e.tok, text + at, bytes)->after - 1 : -1;
            if (n < AT_ONCE) continue;
            ZERO_TRY(e.take(e.arg, n, tokens));
            n = 0;
        }
        return e.take(e.arg, n, tokens);
    }
    if (len >= CACHE_WORTH && tok->vocab > ZERO_VOCAB_BYTES)
        ZERO_TRY(zero_new(&e.cache, CACHE_SLOTS, "pieces of a cache"));
    zero_status st = encode_level(&e, 0, &all);
    free(e.ids);
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
    ZERO_TRY(zero_tokenizer_encode_to(tok, false, text, len, append, &p));
    *n = p.at - tokens;
    return ZERO_OK;
}

/* NFC makes a text up to three times as long, and blanks may go before each of its
 * bytes. */
size_t zero_tokenizer_most(const zero_tokenizer *tok, size_t len)
{
    return tok->composes || tok->has_marks ? 4 * len : len;
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
    char place[40] = ""; /* that in a normalized text is not the place in the text */
    if (!tok->composes && !tok->has_marks) zero_print(place, ", at byte %zu", at);
    return zero_fail(
        ZERO_ERR_INVALID,
        "%s: the tokenizer %s has no token for the byte 0x%02x%s%s: its alphabet is that "
        "of another text; give another tokenizer, or leave the byte out",
        where, tok->name, byte, byte > ' ' && byte < 0x7f ? letter : "", place);
}

zero_status zero_tokenizer_decode_all(const zero_tokenizer *tok, int64_t n,
                                      const int32_t *tokens, zero_bytes *text)
{
    for (int64_t i = 0; i < n; i++) {
        size_t len;
        const unsigned char *part = zero_tokenizer_decode(tok, tokens[i], &len);
        const bool strips = i == 0 && tok->strips_blank && len > 0 && part[0] == ' ';
        ZERO_TRY(zero_bytes_append(text, part + strips, len - strips));
    }
    return ZERO_OK;
}
