#include "train/digest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

static int by_name(const void *a, const void *b)
{
    const zero_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static void hash_blocks(XXH3_state_t *list, const float *x, int64_t n)
{
    for (int64_t at = 0; at < n; at += ZERO_DIGEST_BLOCK) {
        int64_t len = n - at < ZERO_DIGEST_BLOCK ? n - at : ZERO_DIGEST_BLOCK;
        XXH128_canonical_t block;
        XXH128_canonicalFromHash(&block, XXH3_128bits(x + at, (size_t)len * sizeof *x));
        XXH3_128bits_update(list, &block, sizeof block);
    }
}

static void hash_tensor(XXH3_state_t *list, const zero_tensor *t, const zero_group_view *g)
{
    int64_t n = t->rows * t->cols;
    hash_blocks(list, g->param + t->offset, n);
    hash_blocks(list, g->momentum + t->offset, n);
    hash_blocks(list, g->variance + t->offset, n);
}

zero_status zero_digest(const zero_model *model, const zero_group_view *groups,
                        char hex[33])
{
    int n = model->n_tensors;
    const zero_tensor **sorted = malloc((size_t)n * sizeof *sorted);
    XXH3_state_t *list = XXH3_createState();
    if (!sorted || !list) {
        free(sorted);
        XXH3_freeState(list);
        return zero_fail(ZERO_ERR_NOMEM, "no memory to hash %d tensors", n);
    }
    for (int i = 0; i < n; i++) sorted[i] = &model->tensors[i];
    qsort(sorted, (size_t)n, sizeof *sorted, by_name);

    XXH3_128bits_reset(list);
    for (int i = 0; i < n; i++) hash_tensor(list, sorted[i], &groups[sorted[i]->group]);
    XXH128_canonical_t digest;
    XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(list));
    for (int i = 0; i < 16; i++) snprintf(hex + 2 * i, 3, "%02x", digest.digest[i]);
    XXH3_freeState(list);
    free(sorted);
    return ZERO_OK;
}
