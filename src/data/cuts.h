/* cuts.h - borders between which the parts of a text can be tokenized on their own.
 *
 * A border lies between an ASCII letter and a blank or the end of a line:
 *
 *     "... the fox| saw the grapes|\n\nThey are ..."
 *
 * A piece of text ends there, in our own pieces, in those of GPT-2's and Llama-3's patterns and among
 * characters, whatever comes before it and after it. So the tokens of the parts are those of the
 * whole. Other patterns may see further, and an added token may have such a border inside: their texts
 * are not cut. */
#pragma once

#include "data/tokenizer.h"

bool zero_tokenizer_may_cut(const zero_tokenizer *tok);

/* The first border at `from` or after it, but not 0; len if there is no other. */
size_t zero_cut_at(const unsigned char *text, size_t len, size_t from);
