/* encode_texts TOKENIZER: for compare_tokenizers.py, which compares ids with the reference
 * implementation.
 *
 * Standard input holds texts, each after its length as an int32; standard output gets for each the
 * number of its tokens and the tokens, all int32 in the machine's byte order. Each text is decoded
 * again and compared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "data/tokenizer_find.h"

static void check(zero_status st)
{
    if (st == ZERO_OK) return;
    fprintf(stderr, "encode_texts: %s\n", zero_last_error());
    exit(1);
}

static void check_round_trip(const zero_tokenizer *tok, const unsigned char *text,
                             size_t len, const int32_t *tokens, int64_t n)
{
    size_t at = 0, part;
    for (int64_t i = 0; i < n; i++, at += part) {
        const unsigned char *bytes = zero_tokenizer_decode(tok, tokens[i], &part);
        if (part > len - at || memcmp(bytes, text + at, part) != 0) break;
    }
    if (at != len) check(zero_fail(ZERO_ERR_FORMAT, "a text of %zu bytes changed", len));
}

static void encode(const zero_tokenizer *tok, int32_t len)
{
    unsigned char *text = malloc((size_t)len + 1);
    int32_t *tokens = malloc(((size_t)len + 1) * sizeof *tokens);
    int64_t n = 0;
    if (!text || !tokens || fread(text, 1, (size_t)len, stdin) != (size_t)len)
        check(zero_fail(ZERO_ERR_IO, "no memory, or standard input ends too early"));
    check(zero_tokenizer_encode(tok, text, (size_t)len, tokens, &n));
    check_round_trip(tok, text, (size_t)len, tokens, n);
    int32_t count = (int32_t)n;
    fwrite(&count, sizeof count, 1, stdout);
    fwrite(tokens, sizeof *tokens, (size_t)n, stdout);
    free(text);
    free(tokens);
}

int main(int argc, char **argv)
{
    zero_tokenizer tok;
    int32_t len;
    if (argc != 2) check(zero_fail(ZERO_ERR_INVALID, "give a tokenizer's path"));
    check(zero_tokenizer_open(argv[1], &tok));
    while (fread(&len, sizeof len, 1, stdin) == 1) encode(&tok, len);
    zero_tokenizer_destroy(&tok);
    return fflush(stdout) == 0 ? 0 : 1;
}
