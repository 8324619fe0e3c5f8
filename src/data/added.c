#include "data/added.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/grow.h"

zero_status zero_added_add(zero_added *a, const unsigned char *text, size_t len, int32_t id)
{
    char *copy = calloc(len + 1, 1);
    if (!copy || !zero_grow(a->tokens, a->n, &a->capacity)) {
        free(copy);
        return zero_fail(ZERO_ERR_NOMEM, "no memory for %" PRId64 " added tokens", a->n);
    }
    memcpy(copy, text, len);
    a->tokens[a->n++] = (zero_added_token){copy, len, id};
    a->begins[text[0]] = true;
    return ZERO_OK;
}

/* Longer ones first, so that the first that fits is the longest. */
static int compare(const void *left, const void *right)
{
    const zero_added_token *a = left, *b = right;
    return a->len != b->len ? (a->len < b->len) - (a->len > b->len)
                            : memcmp(a->text, b->text, a->len);
}

bool zero_added_sort(zero_added *added)
{
    bool differ = true;
    if (added->n > 0)
        qsort(added->tokens, (size_t)added->n, sizeof *added->tokens, compare);
    for (int64_t i = 1; i < added->n; i++)
        differ = differ && compare(&added->tokens[i - 1], &added->tokens[i]) != 0;
    return differ;
}

void zero_added_destroy(zero_added *added)
{
    for (int64_t i = 0; i < added->n; i++) free(added->tokens[i].text);
    free(added->tokens);
    *added = (zero_added){0};
}

const zero_added_token *zero_added_find(const zero_added *added, const unsigned char *text,
                                        size_t len, size_t from, size_t *at)
{
    if (added->n == 0) return NULL;
    for (*at = from; *at < len; (*at)++)
        for (int64_t i = 0; added->begins[text[*at]] && i < added->n; i++) {
            const zero_added_token *t = &added->tokens[i];
            if (t->len <= len - *at && memcmp(t->text, text + *at, t->len) == 0) return t;
        }
    return NULL;
}
