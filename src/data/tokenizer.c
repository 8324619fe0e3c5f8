#include "data/tokenizer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "data/piece.h"

/* Open addressing. Token 0 marks an empty slot: no merge makes the byte 0. */
struct zero_merge_slot {
    zero_merge pair;
    int32_t token;
};

zero_status zero_tokenizer_parse(const char *spec, int32_t *vocab)
{
    if (strcmp(spec, "byte") == 0) {
        *vocab = ZERO_VOCAB_BYTES;
        return ZERO_OK;
    }
    if (strcmp(spec, "char") == 0) {
        *vocab = 0;
        return ZERO_OK;
    }
    const char *digits = strncmp(spec, "bpe:", 4) == 0 ? spec + 4 : "";
    size_t n_digits = strspn(digits, "0123456789");
    if (n_digits == 0 || digits[n_digits] != '\0')
        return zero_fail(
            ZERO_ERR_INVALID,
            "unknown tokenizer '%s': expected byte, char or bpe:N, as in bpe:512", spec);
    long n = n_digits > 6 ? ZERO_VOCAB_MAX + 1L : strtol(digits, NULL, 10);
    if (n <= ZERO_VOCAB_BYTES || n > ZERO_VOCAB_MAX)
        return zero_fail(
            ZERO_ERR_INVALID,
            "tokenizer '%s': the vocabulary must have %d to %d tokens (the 256 "
            "bytes are among them)",
            spec, ZERO_VOCAB_BYTES + 1, ZERO_VOCAB_MAX);
    *vocab = (int32_t)n;
    return ZERO_OK;
}

static uint32_t hash_pair(zero_merge pair)
{
    uint64_t key = (uint64_t)(uint32_t)pair.left << 32 | (uint32_t)pair.right;
    return (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

static struct zero_merge_slot *find_slot(const zero_tokenizer *tok, zero_merge pair)
{
    for (uint32_t i = hash_pair(pair);; i++) {
        struct zero_merge_slot *slot = &tok->table[i & tok->table_mask];
        if (slot->token == 0 ||
            (slot->pair.left == pair.left && slot->pair.right == pair.right))
            return slot;
    }
}

static uint32_t token_length(const zero_tokenizer *tok, int32_t token)
{
    return tok->starts[token + 1] - tok->starts[token];
}

static zero_status add_merge(zero_tokenizer *tok, int32_t i)
{
    zero_merge pair = tok->merges[i];
    int32_t token = ZERO_VOCAB_BYTES + i;
    if (pair.left < 0 || pair.left >= token || pair.right < 0 || pair.right >= token)
        return zero_fail(ZERO_ERR_FORMAT,
                         "merge %" PRId32 " of the tokenizer joins tokens %" PRId32
                         " and %" PRId32 ", but only 0 to %" PRId32 " exist before it",
                         i, pair.left, pair.right, token - 1);
    struct zero_merge_slot *slot = find_slot(tok, pair);
    uint32_t left = token_length(tok, pair.left), right = token_length(tok, pair.right);
    if (slot->token != 0 || left + right > ZERO_PIECE_MAX)
        return zero_fail(ZERO_ERR_FORMAT,
                         "merge %" PRId32 " of the tokenizer joins tokens %" PRId32
                         " and %" PRId32 ", %s",
                         i, pair.left, pair.right,
                         slot->token != 0 ? "which an earlier merge already joins"
                                          : "which is longer than any piece of text");
    *slot = (struct zero_merge_slot){pair, token};
    tok->starts[token + 1] = tok->starts[token] + left + right;
    return ZERO_OK;
}

static void write_token(zero_tokenizer *tok, int32_t token)
{
    unsigned char *out = tok->bytes + tok->starts[token];
    if (token < ZERO_VOCAB_BYTES) {
        *out = (unsigned char)token;
        return;
    }
    zero_merge pair = tok->merges[token - ZERO_VOCAB_BYTES];
    uint32_t left = token_length(tok, pair.left);
    memcpy(out, tok->bytes + tok->starts[pair.left], left);
    memcpy(out + left, tok->bytes + tok->starts[pair.right], token_length(tok, pair.right));
}

static zero_status allocate(zero_tokenizer *tok, int32_t n_merges)
{
    uint32_t n_slots = 2;
    while (n_slots < 2 * (uint32_t)n_merges) n_slots *= 2;
    tok->table_mask = n_slots - 1;
    tok->merges = calloc((size_t)n_merges + 1, sizeof *tok->merges);
    tok->starts = calloc((size_t)tok->vocab + 1, sizeof *tok->starts);
    tok->table = calloc(n_slots, sizeof *tok->table);
    if (tok->merges && tok->starts && tok->table) return ZERO_OK;
    return zero_fail(ZERO_ERR_NOMEM, "no memory for a tokenizer of %" PRId32 " tokens",
                     tok->vocab);
}

static zero_status build(zero_tokenizer *tok, const zero_merge *merges, int32_t n)
{
    ZERO_TRY(allocate(tok, n));
    if (n > 0) memcpy(tok->merges, merges, (size_t)n * sizeof *merges);
    for (int32_t i = 0; i < ZERO_VOCAB_BYTES; i++) tok->starts[i + 1] = tok->starts[i] + 1;
    for (int32_t i = 0; i < n; i++) ZERO_TRY(add_merge(tok, i));
    tok->bytes = malloc(tok->starts[tok->vocab]);
    if (!tok->bytes)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for the texts of %" PRId32 " tokens",
                         tok->vocab);
    for (int32_t i = 0; i < tok->vocab; i++) write_token(tok, i);
    return ZERO_OK;
}

zero_status zero_tokenizer_from_merges(zero_tokenizer *tok, const zero_merge *merges,
                                       int32_t n)
{
    if (n < 0 || n > ZERO_VOCAB_MAX - ZERO_VOCAB_BYTES)
        return zero_fail(ZERO_ERR_FORMAT, "a tokenizer has 0 to %d merges, not %" PRId32,
                         ZERO_VOCAB_MAX - ZERO_VOCAB_BYTES, n);
    zero_tokenizer made = {.vocab = ZERO_VOCAB_BYTES + n};
    snprintf(made.name, sizeof made.name, n > 0 ? "bpe:%" PRId32 : "byte", made.vocab);
    zero_status st = build(&made, merges, n);
    if (st != ZERO_OK)
        zero_tokenizer_destroy(&made);
    else
        *tok = made;
    return st;
}

static zero_status too_few_merges(const char *spec, size_t len, int32_t n_found)
{
    if (n_found == 0)
        return zero_fail(ZERO_ERR_INVALID,
                         "tokenizer '%s': the text of %zu bytes has no pair to merge; give "
                         "more text, or use byte",
                         spec, len);
    return zero_fail(ZERO_ERR_INVALID,
                     "tokenizer '%s': the text of %zu bytes yields only %" PRId32
                     " merges; give more text, or ask for at most bpe:%" PRId32,
                     spec, len, n_found, ZERO_VOCAB_BYTES + n_found);
}

zero_status zero_tokenizer_init(zero_tokenizer *tok, const char *spec,
                                const unsigned char *text, size_t len)
{
    int32_t vocab = 0, n_found = 0;
    ZERO_TRY(zero_tokenizer_parse(spec, &vocab));
    if (vocab == 0) return zero_tokenizer_learn_characters(tok, text, len);
    if (vocab == ZERO_VOCAB_BYTES) return zero_tokenizer_from_merges(tok, NULL, 0);

    int32_t n_wanted = vocab - ZERO_VOCAB_BYTES;
    zero_merge *merges = malloc((size_t)n_wanted * sizeof *merges);
    if (!merges)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for %" PRId32 " merges", n_wanted);
    zero_status st = zero_bpe_train(text, len, n_wanted, merges, &n_found);
    if (st == ZERO_OK && n_found < n_wanted) st = too_few_merges(spec, len, n_found);
    if (st == ZERO_OK) st = zero_tokenizer_from_merges(tok, merges, n_found);
    free(merges);
    return st;
}

void zero_tokenizer_destroy(zero_tokenizer *tok)
{
    free(tok->table);
    free(tok->starts);
    free(tok->bytes);
    free(tok->merges);
    free(tok->characters);
    *tok = (zero_tokenizer){0};
}

/* Joins the pair whose merge was learnt first until none is left; returns the tokens left. */
static int merge_piece(const zero_tokenizer *tok, int n, int32_t *ids)
{
    for (;;) {
        int32_t best = INT32_MAX;
        int at = 0;
        for (int i = 0; i + 1 < n; i++) {
            int32_t token = find_slot(tok, (zero_merge){ids[i], ids[i + 1]})->token;
            if (token != 0 && token < best) {
                best = token;
                at = i;
            }
        }
        if (best == INT32_MAX) return n;
        ids[at] = best;
        memmove(ids + at + 1, ids + at + 2, (size_t)(n - at - 2) * sizeof *ids);
        n--;
    }
}

static int encode_piece(const zero_tokenizer *tok, const unsigned char *piece, size_t len,
                        int32_t *tokens)
{
    int32_t ids[ZERO_PIECE_MAX];
    assert(len <= ZERO_PIECE_MAX);
    for (size_t i = 0; i < len; i++) ids[i] = piece[i];
    int n = merge_piece(tok, (int)len, ids);
    memcpy(tokens, ids, (size_t)n * sizeof *ids);
    return n;
}

/* A cache of pieces by hash; a later piece replaces an earlier one. With it stories are encoded
 * at 79 MB/s instead of 47, sources at 52 instead of 39 (bpe:512, one core). Clearing it is not
 * worth it for texts shorter than CACHE_WORTH. */
enum { CACHE_SLOTS = 1024, CACHE_BYTES = 24, CACHE_WORTH = 4096 };

typedef struct {
    uint8_t len, n; /* len 0: empty */
    unsigned char bytes[CACHE_BYTES];
    uint16_t tokens[CACHE_BYTES];
} cached_piece;

static uint32_t hash_piece(const unsigned char *piece, size_t len)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < len; i++) hash = (hash ^ piece[i]) * 16777619u;
    return hash ^ hash >> 15;
}

static int encode_cached(const zero_tokenizer *tok, cached_piece *cache,
                         const unsigned char *piece, size_t len, int32_t *tokens)
{
    if (len > CACHE_BYTES) return encode_piece(tok, piece, len, tokens);
    cached_piece *slot = &cache[hash_piece(piece, len) % CACHE_SLOTS];
    if (slot->len == len && memcmp(slot->bytes, piece, len) == 0) {
        for (int i = 0; i < slot->n; i++) tokens[i] = slot->tokens[i];
        return slot->n;
    }
    int n = encode_piece(tok, piece, len, tokens);
    slot->len = (uint8_t)len;
    slot->n = (uint8_t)n;
    memcpy(slot->bytes, piece, len);
    for (int i = 0; i < n; i++) slot->tokens[i] = (uint16_t)tokens[i];
    return n;
}

static int64_t encode_long(const zero_tokenizer *tok, const unsigned char *text, size_t len,
                           int32_t *tokens)
{
    cached_piece cache[CACHE_SLOTS];
    int64_t n = 0;
    for (int i = 0; i < CACHE_SLOTS; i++) cache[i].len = 0;
    for (size_t at = 0, end; at < len; at = end) {
        end = zero_piece_end(text, len, at);
        n += encode_cached(tok, cache, text + at, end - at, tokens + n);
    }
    return n;
}

int64_t zero_tokenizer_encode(const zero_tokenizer *tok, const unsigned char *text,
                              size_t len, int32_t *tokens)
{
    int64_t n = 0;
    if (tok->characters) return zero_tokenizer_encode_characters(tok, text, len, tokens);
    if (tok->vocab > ZERO_VOCAB_BYTES && len >= CACHE_WORTH)
        return encode_long(tok, text, len, tokens);
    if (tok->vocab == ZERO_VOCAB_BYTES) {
        for (size_t i = 0; i < len; i++) tokens[i] = text[i];
        return (int64_t)len;
    }
    for (size_t at = 0, end; at < len; at = end) {
        end = zero_piece_end(text, len, at);
        n += encode_piece(tok, text + at, end - at, tokens + n);
    }
    return n;
}

const unsigned char *zero_tokenizer_decode(const zero_tokenizer *tok, int32_t token,
                                           size_t *len)
{
    assert(token >= 0 && token < tok->vocab);
    *len = token_length(tok, token);
    return tok->bytes + tok->starts[token];
}
