#include "data/cuts.h"

#include "base/number.h"
#include "data/ascii.h"

size_t zero_cut_at(const unsigned char *text, size_t len, size_t from)
{
    for (size_t at = zero_max_size(from, 1); at < len; at++)
        if ((text[at] == ' ' || text[at] == '\n') &&
            zero_ascii_class_of(text[at - 1]) == ZERO_ASCII_LETTER)
            return at;
    return len;
}

static bool are_without_border(const zero_added *added)
{
    for (int64_t i = 0; i < added->n; i++) {
        const zero_added_token *t = &added->tokens[i];
        if (zero_cut_at(t->text, t->len, 0) < t->len) return false;
    }
    return true;
}

bool zero_tokenizer_may_cut(const zero_tokenizer *tok)
{
    if (!tok->is_foreign) return true;
    for (int i = 0; i < tok->n_patterns; i++)
        if (!zero_pattern_is_known(tok->patterns[i])) return false;
    const bool has_pieces = tok->n_patterns > 0 || tok->cuts_as_own;
    return has_pieces && are_without_border(&tok->added[0]) &&
           are_without_border(&tok->added[1]);
}
