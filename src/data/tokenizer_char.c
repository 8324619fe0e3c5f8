#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/grow.h"
#include "data/characters.h"
#include "data/tokenizer.h"

zero_status zero_tokenizer_from_characters(zero_tokenizer *tok, const uint32_t *characters,
                                           int32_t n)
{
    if (n < 1 || n > ZERO_VOCAB_MAX)
        return zero_fail(ZERO_ERR_FORMAT,
                         "a tokenizer has 1 to %d characters, not %" PRId32, ZERO_VOCAB_MAX,
                         n);
    for (int32_t i = 0; i < n; i++) {
        bool follows = i == 0 || characters[i] > characters[i - 1];
        if (follows && zero_character_is_valid(characters[i])) continue;
        return zero_fail(ZERO_ERR_FORMAT,
                         "character %" PRId32 " of the tokenizer is U+%04" PRIX32 ", %s", i,
                         characters[i],
                         follows ? "which is not a character"
                                 : "but characters stand in ascending order");
    }
    zero_tokenizer made = {.name = "char", .vocab = n, .end_of_text = -1};
    zero_status st = zero_new(&made.characters, n, "characters");
    if (st == ZERO_OK) st = zero_new(&made.starts, n + 1, "characters");
    if (st == ZERO_OK) st = zero_new(&made.bytes, 4 * n, "bytes of characters");
    if (st != ZERO_OK) {
        zero_tokenizer_destroy(&made);
        return st;
    }
    memcpy(made.characters, characters, (size_t)made.vocab * sizeof *characters);
    for (int32_t i = 0; i < made.vocab; i++)
        made.starts[i + 1] =
            made.starts[i] +
            (uint32_t)zero_character_write(characters[i], made.bytes + made.starts[i]);
    *tok = made;
    return ZERO_OK;
}

zero_status zero_tokenizer_learn_characters(zero_tokenizer *tok, const unsigned char *text,
                                            size_t len)
{
    uint32_t *characters = NULL;
    int32_t n = 0;
    ZERO_TRY(zero_characters_learn(text, len, ZERO_VOCAB_MAX, &characters, &n));
    zero_status st = zero_tokenizer_from_characters(tok, characters, n);
    free(characters);
    return st;
}

zero_status zero_tokenizer_encode_characters(const zero_tokenizer *tok,
                                             const unsigned char *text, size_t len,
                                             zero_token_sink take, void *arg)
{
    enum { AT_ONCE = 512 };
    int32_t tokens[AT_ONCE];
    int64_t n = 0;
    for (size_t at = 0; at < len;) {
        uint32_t c = 0;
        size_t bytes = zero_character_read(text + at, len - at, &c);
        tokens[n++] = bytes > 0 ? zero_characters_find(tok->characters, tok->vocab, c) : -1;
        at += bytes > 0 ? bytes : 1;
        if (n < AT_ONCE) continue;
        ZERO_TRY(take(arg, n, tokens));
        n = 0;
    }
    return take(arg, n, tokens);
}
