#include "base/tree.h"

#include "base/number.h"
#include "base/stream.h"
#include "base/type.h"
#include "base/vector.h"

int64_t zero_tree_left(int64_t n)
{
    return INT64_C(1) << (63 - __builtin_clzll((unsigned long long)n - 1));
}

/* Elements [at, at + len) of every term. */
typedef struct {
    const zero_vector_kernels *kernels;
    int64_t at, len;
} slice;

/* The number of n >= 2 terms in the left subtree. */
static int left_terms(int n, const zero_tree_term *terms)
{
    int begin = terms[0].first, end = terms[n - 1].first + terms[n - 1].count;
    int middle = begin + (int)zero_tree_left(end - begin);
    int low = 1, high = n - 1;
    while (low < high) {
        int k = low + (high - low) / 2;
        if (terms[k].first < middle)
            low = k + 1;
        else
            high = k;
    }
    assert(terms[low].first == middle && "a term crosses the middle of a subtree");
    return low;
}

static const void *elements(const slice *s, const zero_tree_term *term)
{
    return zero_type_at(term->type, term->data, s->at);
}

/* out[len] = the sum of these terms and of those pending to their left. Streaming callers
 * sum large arrays, so prefetch too. */
static void sum_slice(const slice *s, int n, const zero_tree_term *terms,
                      zero_vector_sum *sum, zero_type type, void *out, bool stream)
{
    bool pair = n == 2 && terms[0].type == terms[1].type;
    if (n == 1 || pair) {
        sum->type = terms[0].type;
        sum->a = elements(s, &terms[0]);
        sum->b = pair ? elements(s, &terms[1]) : NULL;
        s->kernels->sum(sum, s->len, type, out, stream);
        return;
    }
    float partial[ZERO_VECTOR_TILE];
    int left = left_terms(n, terms);
    zero_vector_sum left_sum = {.read_ahead = sum->read_ahead};
    sum_slice(s, left, terms, &left_sum, ZERO_FP32, partial, false);
    sum->pending[sum->depth++] = partial;
    sum_slice(s, n - left, terms + left, sum, type, out, stream);
}

static void sum_out(const slice *s, int n, const zero_tree_term *terms, zero_type type,
                    void *out, bool stream)
{
    zero_vector_sum sum = {.read_ahead = stream};
    void *to = (char *)out + (size_t)s->at * zero_type_size(type);
    sum_slice(s, n, terms, &sum, type, to, stream);
}

void zero_tree_sum(int n, const zero_tree_term *terms, int64_t len, zero_type type,
                   void *out, bool stream)
{
    slice s = {.kernels = zero_vector_kernels_best()};
    if (stream) { /* the elements before the first aligned line of 64 bytes */
        int64_t head = (int64_t)(-(uintptr_t)out % 64 / zero_type_size(type));
        s.len = zero_min(head, len);
        sum_out(&s, n, terms, type, out, false);
    }
    for (s.at = s.len; s.at < len; s.at += s.len) {
        s.len = zero_min(len - s.at, ZERO_VECTOR_TILE);
        sum_out(&s, n, terms, type, out, stream);
    }
    if (stream) zero_stream_fence();
}

void zero_tree_mean(int n, const zero_tree_term *terms, int64_t len, int divisor,
                    zero_type type, void *out)
{
    float mean[ZERO_VECTOR_TILE];
    slice s = {.kernels = zero_vector_kernels_best()};
    for (; s.at < len; s.at += s.len) {
        zero_vector_sum sum = {0};
        s.len = zero_min(len - s.at, ZERO_VECTOR_TILE);
        sum_slice(&s, n, terms, &sum, ZERO_FP32, mean, false);
        for (int64_t i = 0; i < s.len; i++) mean[i] /= (float)divisor;
        zero_convert(ZERO_FP32, type, s.len, mean, zero_type_to(type, out, s.at));
    }
}

static int cover(zero_tree_term subtree, int first, int end, zero_tree_term *terms)
{
    int subtree_end = subtree.first + subtree.count;
    if (subtree_end <= first || end <= subtree.first) return 0;
    if (first <= subtree.first && subtree_end <= end) {
        terms->first = subtree.first;
        terms->count = subtree.count;
        return 1;
    }
    int left = (int)zero_tree_left(subtree.count);
    zero_tree_term right = {.first = subtree.first + left, .count = subtree.count - left};
    subtree.count = left;
    int n = cover(subtree, first, end, terms);
    return n + cover(right, first, end, terms + n);
}

int zero_tree_cover(int size, int first, int count, zero_tree_term *terms)
{
    assert(0 <= first && 0 <= count && count <= size - first);
    return cover((zero_tree_term){.count = size}, first, first + count, terms);
}

double zero_tree_sum_scalars(int64_t n, const double *x)
{
    if (n == 1) return x[0];
    int64_t left = zero_tree_left(n);
    return zero_tree_sum_scalars(left, x) + zero_tree_sum_scalars(n - left, x + left);
}

double zero_tree_sum_squares(zero_type type, int64_t n, const void *x)
{
    if (n <= ZERO_VECTOR_SQUARES) return zero_vector_kernels_best()->squares(type, n, x);
    int64_t left = zero_tree_left(n);
    return zero_tree_sum_squares(type, left, x) +
           zero_tree_sum_squares(type, n - left, zero_type_at(type, x, left));
}

/* ---- spans ---- */

int64_t zero_tree_blocks(int64_t elements)
{
    return elements / ZERO_TREE_BLOCK + (elements % ZERO_TREE_BLOCK > 0);
}

int64_t zero_tree_span_next(int64_t first, int64_t count)
{
    int64_t size = 1;
    while (size <= count / 2 && first % (2 * size) == 0) size *= 2;
    return size;
}

/* A right child finds its sibling, if the span has it, as the last term: a larger term
 * would end elsewhere, and a smaller one would have been merged already. */
void zero_tree_span_append(zero_tree_span *span, int64_t size, double x)
{
    int64_t at = span->first + span->count;
    assert(at % size == 0 && at + size <= span->blocks);
    span->count += size;
    for (; at & size && at - size >= span->first; size *= 2) {
        x = span->term[--span->n] + x;
        at -= size;
    }
    assert(span->n < ZERO_TREE_SPAN_TERMS);
    span->term[span->n++] = x;
}

bool zero_tree_span_merge(zero_tree_span *left, const zero_tree_span *right)
{
    if (left->blocks != right->blocks) return false;
    if (right->count == 0) return true;
    if (left->count == 0)
        *left = (zero_tree_span){.blocks = right->blocks, .first = right->first};
    if (left->first + left->count != right->first) return false;
    int64_t at = right->first, end = at + right->count;
    for (int t = 0; t < right->n; t++) {
        int64_t size = zero_tree_span_next(at, end - at);
        zero_tree_span_append(left, size, right->term[t]);
        at += size;
    }
    return true;
}

bool zero_tree_span_is_whole(const zero_tree_span *span)
{
    return span->first == 0 && span->count == span->blocks;
}

/* The tree splits at the largest power of two, so subtrees get smaller from left to right,
 * and all that is right of one is its sibling. */
double zero_tree_span_sum(const zero_tree_span *span)
{
    assert(zero_tree_span_is_whole(span));
    if (span->n == 0) return 0.0;
    double sum = span->term[span->n - 1];
    for (int t = span->n - 2; t >= 0; t--) sum = span->term[t] + sum;
    return sum;
}
