#include "data/tokenizer.h"

#include "base/grow.h"
#include "data/piece.h"

bool zero_tokenizer_is_name(const char *spec)
{
    return zero_same_text(spec, "byte") || zero_same_text(spec, "char") ||
           strncmp(spec, "bpe:", 4) == 0;
}

zero_status zero_tokenizer_parse(const char *spec, int32_t *vocab)
{
    if (zero_same_text(spec, "byte")) {
        *vocab = ZERO_VOCAB_BYTES;
        return ZERO_OK;
    }
    if (zero_same_text(spec, "char")) {
        *vocab = 0;
        return ZERO_OK;
    }
    const char *digits = strncmp(spec, "bpe:", 4) == 0 ? spec + 4 : "";
    size_t n_digits = strspn(digits, "0123456789");
    ZERO_INVALID_IF(n_digits == 0 || digits[n_digits] != '\0',
                    "unknown tokenizer '%s': expected byte, char or bpe:N, as in "
                    "bpe:512, or the path of a tokenizer.json or its folder",
                    spec);
    long n = n_digits > 6 ? ZERO_VOCAB_MAX + 1L : strtol(digits, NULL, 10);
    ZERO_INVALID_IF(n <= ZERO_VOCAB_BYTES || n > ZERO_VOCAB_MAX,
                    "tokenizer '%s': the vocabulary must have %d to %d tokens (the "
                    "256 bytes are among them)",
                    spec, ZERO_VOCAB_BYTES + 1, ZERO_VOCAB_MAX);
    *vocab = (int32_t)n;
    return ZERO_OK;
}

static uint32_t token_length(const zero_tokenizer *tok, int32_t token)
{
    return tok->starts[token + 1] - tok->starts[token];
}

zero_status zero_tokenizer_from_merges(zero_tokenizer *tok, const zero_merge *merges,
                                       int32_t n)
{
    ZERO_FORMAT_IF(n < 0 || n > ZERO_VOCAB_MAX - ZERO_VOCAB_BYTES,
                   "a tokenizer has 0 to %d merges, not %d",
                   ZERO_VOCAB_MAX - ZERO_VOCAB_BYTES, n);
    ZERO_AT_END(zero_tokenizer_destroy)
    zero_tokenizer made = {.vocab = ZERO_VOCAB_BYTES + n, .end_of_text = -1};
    for (int i = 0; i < ZERO_VOCAB_BYTES; i++) made.byte_ids[i] = i;
    zero_print(made.name, n > 0 ? "bpe:%d" : "byte", made.vocab);
    ZERO_TRY(zero_merges_init(&made.table, n));
    ZERO_TRY(zero_new(&made.merges, n, "merges"));
    ZERO_TRY(zero_new(&made.starts, made.vocab + 1, "tokens"));
    if (n > 0) memcpy(made.merges, merges, (size_t)n * sizeof *merges);
    for (int32_t i = 0; i < ZERO_VOCAB_BYTES; i++) made.starts[i + 1] = made.starts[i] + 1;
    for (int32_t i = 0; i < n; i++) {
        zero_merge pair = made.merges[i];
        int32_t token = ZERO_VOCAB_BYTES + i;
        ZERO_FORMAT_IF(pair.left < 0 || pair.left >= token || pair.right < 0 ||
                           pair.right >= token,
                       "merge %d of the tokenizer joins tokens %d and %d, but only 0 to %d "
                       "exist before it",
                       i, pair.left, pair.right, token - 1);
        uint32_t left = token_length(&made, pair.left),
                 right = token_length(&made, pair.right);
        bool is_long = left + right > ZERO_PIECE_MAX;
        ZERO_FORMAT_IF(is_long || !zero_merges_add(&made.table, pair, i, token),
                       "merge %d of the tokenizer joins tokens %d and %d, %s", i, pair.left,
                       pair.right,
                       is_long ? "which is longer than any piece of text"
                               : "which an earlier merge already joins");
        made.starts[token + 1] = made.starts[token] + left + right;
    }
    ZERO_TRY(zero_new(&made.bytes, made.starts[made.vocab], "bytes of tokens"));
    for (int32_t token = 0; token < made.vocab; token++) {
        unsigned char *out = made.bytes + made.starts[token];
        if (token < ZERO_VOCAB_BYTES) {
            *out = (unsigned char)token;
            continue;
        }
        zero_merge pair = made.merges[token - ZERO_VOCAB_BYTES];
        uint32_t left = token_length(&made, pair.left);
        memcpy(out, made.bytes + made.starts[pair.left], left);
        memcpy(out + left, made.bytes + made.starts[pair.right],
               token_length(&made, pair.right));
    }
    /* Training never makes a text twice: a text becomes one token in one way only. */
    ZERO_TRY(zero_tokenizer_index_texts(&made, NULL));
    ZERO_GIVE(tok, made);
    return ZERO_OK;
}

zero_status zero_tokenizer_init(int threads, zero_tokenizer *tok, const char *spec,
                                const unsigned char *text, size_t len)
{
    int32_t vocab = 0, n_found = 0;
    ZERO_TRY(zero_tokenizer_parse(spec, &vocab));
    if (vocab == 0) return zero_tokenizer_learn_characters(tok, text, len);
    if (vocab == ZERO_VOCAB_BYTES) return zero_tokenizer_from_merges(tok, NULL, 0);

    int32_t n_wanted = vocab - ZERO_VOCAB_BYTES;
    ZERO_FREED zero_merge *merges = NULL;
    ZERO_TRY(zero_new(&merges, n_wanted, "merges"));
    ZERO_TRY(zero_bpe_train(text, len, threads, n_wanted, merges, &n_found));
    ZERO_INVALID_IF(n_found == 0,
                    "tokenizer '%s': the text of %zu bytes has no pair to merge; give "
                    "more text, or use byte",
                    spec, len);
    ZERO_INVALID_IF(n_found < n_wanted,
                    "tokenizer '%s': the text of %zu bytes yields only %d merges; give "
                    "more text, or ask for at most bpe:%d",
                    spec, len, n_found, ZERO_VOCAB_BYTES + n_found);
    return zero_tokenizer_from_merges(tok, merges, n_found);
}

void zero_tokenizer_destroy(zero_tokenizer *tok)
{
    zero_merges_destroy(&tok->table);
    for (int i = 0; i < tok->n_patterns; i++) zero_pattern_destroy(tok->patterns[i]);
    for (int k = 0; k < 2; k++) {
        for (int64_t i = 0; i < tok->added[k].n; i++) free(tok->added[k].tokens[i].text);
        free(tok->added[k].tokens);
    }
    zero_bytes_destroy(&tok->file);
    zero_free(tok->texts, tok->starts, tok->bytes, tok->merges);
    *tok = (zero_tokenizer){0};
}

bool zero_tokenizer_is_bytes(const zero_tokenizer *tok)
{
    return tok->merges && !tok->is_foreign && tok->vocab == ZERO_VOCAB_BYTES;
}

const unsigned char *zero_tokenizer_decode(const zero_tokenizer *tok, int32_t token,
                                           size_t *len)
{
    assert(token >= 0 && token < tok->vocab);
    *len = token_length(tok, token);
    return tok->bytes + tok->starts[token];
}

bool zero_tokenizer_same_texts(const zero_tokenizer *a, const zero_tokenizer *b,
                               int32_t *token)
{
    int32_t n = a->vocab < b->vocab ? a->vocab : b->vocab;
    for (*token = 0; *token < n; ++*token) {
        size_t n_a, n_b;
        const unsigned char *text_a = zero_tokenizer_decode(a, *token, &n_a);
        const unsigned char *text_b = zero_tokenizer_decode(b, *token, &n_b);
        if (n_a != n_b || memcmp(text_a, text_b, n_a) != 0) return false;
    }
    return a->vocab == b->vocab;
}
