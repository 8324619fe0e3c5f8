#include "base/tree.h"

#include <string.h>

#define TILE \
    512 /* elements summed at a time: a path of tiles down the tree fits the cache */

int64_t zero_tree_left(int64_t n)
{
    int64_t left = 1;
    while (2 * left < n) left *= 2;
    return left;
}

static void sum_tile(int n, const float *const in[], int64_t at, int len, float *out)
{
    if (n == 1) {
        memcpy(out, in[0] + at, (size_t)len * sizeof *out);
        return;
    }
    if (n == 2) {
        const float *a = in[0] + at, *b = in[1] + at;
        for (int i = 0; i < len; i++) out[i] = a[i] + b[i];
        return;
    }
    float right[TILE];
    int left = (int)zero_tree_left(n);
    sum_tile(left, in, at, len, out);
    sum_tile(n - left, in + left, at, len, right);
    for (int i = 0; i < len; i++) out[i] += right[i];
}

void zero_tree_sum(int n, const float *const in[], int64_t len, float *out)
{
    float sum[TILE]; /* apart from `out`, which may be an input that is still needed */
    for (int64_t at = 0; at < len; at += TILE) {
        int tile = len - at < TILE ? (int)(len - at) : TILE;
        sum_tile(n, in, at, tile, sum);
        memcpy(out + at, sum, (size_t)tile * sizeof *out);
    }
}

double zero_tree_sum_scalars(int64_t n, const double *x)
{
    if (n == 1) return x[0];
    int64_t left = zero_tree_left(n);
    return zero_tree_sum_scalars(left, x) + zero_tree_sum_scalars(n - left, x + left);
}

static double square_block(int64_t n, const float *x)
{
    double s[ZERO_TREE_BLOCK] = {0};
    for (int64_t i = 0; i < n; i++) s[i] = (double)x[i] * (double)x[i];
    for (int half = ZERO_TREE_BLOCK / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) s[i] += s[i + half];
    return s[0];
}

double zero_tree_sum_squares(int64_t n, const float *x)
{
    if (n <= ZERO_TREE_BLOCK) return square_block(n, x);
    int64_t left = ZERO_TREE_BLOCK;
    while (2 * left < n) left *= 2;
    return zero_tree_sum_squares(left, x) + zero_tree_sum_squares(n - left, x + left);
}
