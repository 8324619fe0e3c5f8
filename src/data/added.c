#include "data/added.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/grow.h"
#include "base/number.h"

zero_status zero_added_add(zero_added *a, zero_added_token token)
{
    if (!zero_grow(a->tokens, a->n, &a->capacity))
        return zero_fail(ZERO_ERR_NOMEM, "no memory for %" PRId64 " added tokens", a->n);
    a->tokens[a->n++] = token;
    a->begins[token.text[0]] = true;
    return ZERO_OK;
}

static int compare(const void *left, const void *right)
{
    const zero_added_token *a = left, *b = right;
    int order = memcmp(a->text, b->text, zero_min_size(a->len, b->len));
    return order != 0 ? order : (a->len > b->len) - (a->len < b->len);
}

void zero_added_sort(zero_added *added)
{
    if (added->n > 0)
        qsort(added->tokens, (size_t)added->n, sizeof *added->tokens, compare);
}

void zero_added_destroy(zero_added *added)
{
    free(added->tokens);
    *added = (zero_added){0};
}

/* The first of the tokens [low, high), which agree before byte k, whose byte k is `least`
 * or more; a token that ends there counts as less than any byte. */
static int64_t bound(const zero_added *a, int64_t low, int64_t high, uint32_t k, int least)
{
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        const zero_added_token *t = &a->tokens[middle];
        int byte = t->len > k ? t->text[k] : -1;
        if (byte < least)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The longest token that the text begins with. */
static const zero_added_token *longest(const zero_added *a, const unsigned char *text,
                                       size_t len)
{
    const zero_added_token *best = NULL;
    int64_t low = 0, high = a->n;
    for (uint32_t k = 0; k < len && low < high; k++) {
        low = bound(a, low, high, k, text[k]);
        high = bound(a, low, high, k, text[k] + 1);
        if (low < high && a->tokens[low].len == k + 1) best = &a->tokens[low];
    }
    return best;
}

const zero_added_token *zero_added_find(const zero_added *added, const unsigned char *text,
                                        size_t len, size_t from, size_t *at)
{
    if (added->n == 0) return NULL;
    for (*at = from; *at < len; (*at)++) {
        const zero_added_token *found =
            added->begins[text[*at]] ? longest(added, text + *at, len - *at) : NULL;
        if (found) return found;
    }
    return NULL;
}
