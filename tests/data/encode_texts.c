/* encode_texts TOKENIZER: for compare_tokenizers.py, which compares ids with the reference
 * implementation.
 *
 * Standard input holds texts, each after its length as an int32; standard output gets for each the
 * number of its tokens and the tokens, all int32 in the machine's byte order, and the text that they
 * decode to, after its length. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "data/tokenizer_find.h"

static void check(zero_status st)
{
    if (st == ZERO_OK) return;
    fprintf(stderr, "encode_texts: %s\n", zero_last_error());
    exit(1);
}

static void encode(const zero_tokenizer *tok, int32_t len)
{
    zero_bytes text = {0}, back = {0};
    const size_t most = zero_tokenizer_most(tok, (size_t)len);
    int32_t *tokens = malloc((most + 1) * sizeof *tokens);
    int64_t n = 0;
    check(zero_bytes_reserve(&text, (size_t)len + 1));
    if (!tokens || fread(text.bytes, 1, (size_t)len, stdin) != (size_t)len)
        check(zero_fail(ZERO_ERR_IO, "no memory, or standard input ends too early"));
    check(zero_tokenizer_encode(tok, text.bytes, (size_t)len, tokens, &n));
    check(zero_tokenizer_decode_all(tok, n, tokens, &back));
    const int32_t counts[] = {(int32_t)n, (int32_t)back.len};
    fwrite(&counts[0], sizeof *counts, 1, stdout);
    fwrite(tokens, sizeof *tokens, (size_t)n, stdout);
    fwrite(&counts[1], sizeof *counts, 1, stdout);
    fwrite(back.bytes, 1, back.len, stdout);
    zero_bytes_destroy(&text);
    zero_bytes_destroy(&back);
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
