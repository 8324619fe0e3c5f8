/* GPT-2's two files and what lies beside them, in one: vocabulary, merges, a text to encode, and then
 * tokenizer_config.json, added_tokens.json and special_tokens_map.json, with a line "%" between them.
 * The last ones may be missing. */
#include <string.h>

#include "data/tokenizer_file.h"
#include "data/tokenizer_json.h"
#include "fuzz.h"

/* Cuts *rest at the next line "%"; the last part has all that is left. */
static zero_bytes take_part(zero_bytes *rest)
{
    zero_bytes part = *rest;
    for (size_t i = 0; i + 3 <= rest->len; i++)
        if (memcmp(rest->bytes + i, "\n%\n", 3) == 0) {
            part.len = i + 1;
            *rest = (zero_bytes){.bytes = rest->bytes + i + 3, .len = rest->len - i - 3};
            return part;
        }
    *rest = (zero_bytes){.bytes = rest->bytes + rest->len};
    return part;
}

static void check_text_comes_back(const zero_tokenizer *tok, const zero_bytes *text)
{
    int32_t *tokens = malloc((text->len + 1) * sizeof *tokens);
    int64_t n = 0;
    size_t at = 0, len = 0;
    FUZZ_LAW(tokens != NULL);
    FUZZ_LAW(zero_tokenizer_encode(tok, text->bytes, text->len, tokens, &n) == ZERO_OK);
    for (int64_t i = 0; i < n; i++, at += len) {
        len = 1; /* a byte that the tokenizer lacks */
        if (tokens[i] < 0) continue;
        FUZZ_LAW(tokens[i] >= 0 && tokens[i] < tok->vocab);
        const unsigned char *bytes = zero_tokenizer_decode(tok, tokens[i], &len);
        FUZZ_LAW(len <= text->len - at && memcmp(bytes, text->bytes + at, len) == 0);
    }
    FUZZ_LAW(at == text->len);
    free(tokens);
}

/* They become a tokenizer.json, which is read as well. */
static void check_round_trip(const zero_tokenizer *tok)
{
    zero_tokenizer back = {0};
    FUZZ_LAW(zero_tokenizer_parse_file("f", tok->file.bytes, tok->file.len, &back) ==
             ZERO_OK);
    FUZZ_LAW(back.vocab == tok->vocab && back.end_of_text == tok->end_of_text);
    zero_tokenizer_destroy(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zero_bytes rest = {.bytes = (unsigned char *)data, .len = size};
    zero_bytes vocab = take_part(&rest), merges = take_part(&rest);
    zero_bytes text = take_part(&rest);
    zero_tokenizer tok = {0};
    zero_beside beside = {.is_pair = true};
    for (int i = 0; i < ZERO_BESIDE_FILES; i++) {
        beside.files[i].text = take_part(&rest); /* borrowed */
        beside.files[i].exists = beside.files[i].text.len > 0;
        snprintf(beside.files[i].path, sizeof beside.files[i].path, "b");
    }
    zero_status st = zero_tokenizer_from_gpt2("v", &vocab, "m", &merges, &beside, &tok);
    fuzz_check_refusal(st);
    if (st != ZERO_OK) return 0;
    check_text_comes_back(&tok, &text);
    check_round_trip(&tok);
    zero_tokenizer_destroy(&tok);
    return 0;
}
