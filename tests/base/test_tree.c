/* The typed tree sum against its definition, the cover of a range by subtrees, and copies
 * past the caches. */

#include "support/test.h"

#include "base/rng.h"
#include "base/stream.h"
#include "base/tree.h"
#include "base/vector.h"
#include "support/tree_oracle.h"

#define LEAVES 64
#define LEN    2100 /* two tiles and a rest */
#define ROOM   (LEN + 64)

static const zero_rng stream = {.purpose = ZERO_RNG_TEST, .seed = 7};

/* Leaves as floats, and the same leaves as stored. */
typedef struct {
    float x[LEAVES][LEN];
    _Alignas(64) char stored[LEAVES][ROOM * 4];
    _Alignas(64) char out[ROOM * 4];
    zero_tree_term terms[LEAVES];
} leaves;

/* The definition: left half is the largest power of two below n. */
static float tree(const leaves *l, int first, int n, int64_t i)
{
    if (n == 1) return l->x[first][i];
    int left = 1;
    while (2 * left < n) left *= 2;
    return tree(l, first, left, i) + tree(l, first + left, n - left, i);
}

/* Leaves of a trial of the oracle. */
static leaves *make_leaves_of(uint64_t types, size_t offset, uint64_t trial)
{
    leaves *l = aligned_alloc(64, (sizeof *l + 63) / 64 * 64);
    assert_non_null(l);
    for (int k = 0; k < LEAVES; k++) {
        const zero_type type = (zero_type)((types >> k % 32 * 2 & 3) % 3);
        char *data = l->stored[k] + (offset * (size_t)k) % 33 * zero_type_size(type);
        for (int i = 0; i < LEN; i++) l->x[k][i] = oracle_leaf(type, trial, k, i);
        zero_convert(ZERO_FP32, type, LEN, l->x[k], data);
        l->terms[k] = (zero_tree_term){data, type, k, 1};
    }
    return l;
}

static leaves *make_leaves(uint64_t types, size_t offset)
{
    return make_leaves_of(types, offset, 7);
}

static void check_sum(leaves *l, int first, int n, int64_t len, zero_type type,
                      size_t offset, bool past_caches)
{
    char *out = l->out + offset * zero_type_size(type);
    memset(l->out, 0x55, sizeof l->out);
    zero_tree_sum(n, l->terms + first, len, type, out, past_caches);
    for (int64_t i = 0; i < len; i++)
        assert_true(oracle_same(type, out, i, tree(l, first, n, i)));
    for (const char *p = l->out; p < out; p++) assert_int_equal(*p, 0x55);
    for (const char *p = out + (size_t)len * zero_type_size(type);
         p < l->out + sizeof l->out; p++)
        assert_int_equal(*p, 0x55);
}

/* 0x0: all fp32, 0x5..: all bf16, 0xa..: all fp16, the others are mixed. */
static const uint64_t type_patterns[] = {0, 0x5555555555555555, 0xaaaaaaaaaaaaaaaa,
                                         0x1444444444444441, 0x6186a92489261849};
#define PATTERNS (sizeof type_patterns / sizeof type_patterns[0])

TEST(sums_of_all_types_follow_the_tree)
{
    for (size_t p = 0; p < PATTERNS; p++) {
        leaves *l = make_leaves(type_patterns[p], 0);
        for (int n = 1; n <= 18; n++)
            for (int type = ZERO_FP32; type <= ZERO_FP16; type++)
                check_sum(l, 0, n <= 17 ? n : LEAVES, LEN, (zero_type)type, 0, n % 2);
        free(l);
    }
}

TEST(sums_depend_on_neither_place_nor_length_nor_streaming)
{
    static const int64_t lengths[] = {0,  1,  15, 16,   17,   31, 33,
                                      63, 64, 65, 1023, 1057, LEN};
    for (size_t p = 0; p < PATTERNS; p++) {
        leaves *l = make_leaves(type_patterns[p], 1 + 2 * p);
        for (size_t k = 0; k < 3 * COUNT(lengths); k++)
            for (size_t offset = 0; offset < 34; offset += 1 + offset % 3)
                for (int n = 1; n <= 5; n += 1 + n % 2)
                    for (int past_caches = 0; past_caches < 2; past_caches++)
                        check_sum(l, (int)(k % 7), n, lengths[k / 3], (zero_type)(k % 3),
                                  offset, past_caches);
        free(l);
    }
}

TEST(the_output_may_be_any_of_the_terms)
{
    for (size_t p = 0; p < PATTERNS; p++) {
        for (int n = 1; n <= 9; n++) {
            for (int k = 0; k < n; k++) {
                leaves *l = make_leaves(type_patterns[p], 3);
                zero_type type = l->terms[k].type;
                void *out = l->stored[k] + ((const char *)l->terms[k].data - l->stored[k]);
                zero_tree_sum(n, l->terms, LEN, type, out, (n + k) % 2);
                for (int64_t i = 0; i < LEN; i++)
                    assert_true(oracle_same(type, out, i, tree(l, 0, n, i)));
                free(l);
            }
        }
    }
}

/* Cuts the tree over [first, first + n) into subtrees at random; a subtree's term holds its
 * sum, in fp32. Returns the number of terms. */
static int cut(leaves *l, leaves *parts, int first, int n, uint64_t seed, int used)
{
    uint64_t bits = zero_rng_bits(&stream, seed + (uint64_t)(first * LEAVES + n));
    if (n == 1 || bits % 3 == 0) {
        float *data = (float *)parts->stored[used];
        for (int64_t i = 0; i < LEN; i++) data[i] = tree(l, first, n, i);
        parts->terms[used] = (zero_tree_term){data, ZERO_FP32, first, n};
        if (n == 1) parts->terms[used] = l->terms[first];
        return used + 1;
    }
    int left = 1;
    while (2 * left < n) left *= 2;
    used = cut(l, parts, first, left, seed, used);
    return cut(l, parts, first + left, n - left, seed, used);
}

TEST(whoever_sums_a_subtree_first_changes_no_bit)
{
    leaves *l = make_leaves(type_patterns[4], 0), *parts = make_leaves(0, 0);
    for (uint64_t seed = 0; seed < 300; seed++) {
        int first = (int)(seed % 5), n = 1 + (int)(seed % 59);
        zero_type type = (zero_type)(seed % 3);
        int terms = cut(l, parts, first, n, seed * LEAVES * LEAVES, 0);
        zero_tree_sum(terms, parts->terms, LEN, type, parts->out, seed % 2);
        for (int64_t i = 0; i < LEN; i += 3)
            assert_true(oracle_same(type, parts->out, i, tree(l, first, n, i)));
    }
    free(parts);
    free(l);
}

/* Like a hierarchy of nodes: each sums its own subtrees, and one sums the results. */
TEST(sums_of_covers_make_the_sum_of_the_whole)
{
    leaves *l = make_leaves(type_patterns[3], 0), *parts = make_leaves(0, 0);
    for (int size = 1; size <= LEAVES; size += 1 + size / 8) {
        for (int node = 1; node <= size; node += 1 + node / 3) {
            int n = 0;
            for (int at = 0; at < size; at += node)
                n += zero_tree_cover(size, at, size - at < node ? size - at : node,
                                     parts->terms + n);
            for (int k = 0; k < n; k++) {
                zero_tree_term *t = &parts->terms[k];
                zero_tree_sum(t->count, l->terms + t->first, LEN, ZERO_FP32,
                              parts->stored[k], false);
                t->data = parts->stored[k];
                t->type = ZERO_FP32;
            }
            zero_tree_sum(n, parts->terms, LEN, ZERO_BF16, parts->out, true);
            zero_tree_sum(size, l->terms, LEN, ZERO_BF16, l->out, false);
            assert_memory_equal(parts->out, l->out, LEN * 2);
        }
    }
    free(parts);
    free(l);
}

TEST(nan_and_infinity_pass_through)
{
    for (int type = ZERO_FP32; type <= ZERO_FP16; type++) {
        leaves *l = make_leaves_of(type_patterns[type], 0, ORACLE_SPECIAL);
        for (int n = 1; n <= 5; n++)
            for (int out = ZERO_FP32; out <= ZERO_FP16; out++)
                check_sum(l, 0, n, LEN, (zero_type)out, 0, n % 2);
        free(l);
    }
}

TEST(a_million_terms_need_little_stack)
{
    enum { MILLION = 1 << 20 };
    const float two[2] = {2.0f, -0.5f};
    float sum[2];
    zero_tree_term *terms = malloc(MILLION * sizeof *terms);
    assert_non_null(terms);
    for (int k = 0; k < MILLION; k++) terms[k] = (zero_tree_term){two, ZERO_FP32, k, 1};
    zero_tree_sum(MILLION, terms, 2, ZERO_FP32, sum, false);
    assert_true(sum[0] == 0x1p21f && sum[1] == -0x1p19f);
    free(terms);
}

/* pending[0] + (pending[1] + (a + b)), or without b, or without pending terms. */
TEST(every_instruction_set_adds_as_defined)
{
    const zero_vector_kernels *kernels;
    assert_ptr_equal(zero_vector_kernels_at(0), zero_vector_kernels_best());
    for (int type = ZERO_FP32; type <= ZERO_FP16; type++) {
        leaves *l = make_leaves(type_patterns[type], 5);
        for (int k = 0; (kernels = zero_vector_kernels_at(k / 36)); k++) {
            int depth = k % 3, to = k / 6 % 3;
            bool pair = k / 3 % 2, past_caches = k / 18 % 2;
            zero_vector_sum sum = {.type = (zero_type)type,
                                   .a = l->terms[2].data,
                                   .depth = depth,
                                   .pending = {l->x[0], l->x[1]},
                                   .read_ahead = past_caches};
            if (pair) sum.b = l->terms[3].data;
            kernels->sum(&sum, LEN, (zero_type)to, l->out, past_caches);
            zero_stream_fence();
            for (int64_t i = 0; i < LEN; i++) {
                float x = pair ? l->x[2][i] + l->x[3][i] : l->x[2][i];
                if (depth == 2) x = l->x[1][i] + x;
                if (depth >= 1) x = l->x[0][i] + x;
                assert_true(oracle_same((zero_type)to, l->out, i, x));
            }
        }
        free(l);
    }
}

/* The tree over blocks of 64, whose squares are added by halves, one by one. */
static double squares(int64_t n, const float *x)
{
    if (n <= ZERO_TREE_BLOCK) {
        double s[ZERO_TREE_BLOCK] = {0};
        for (int64_t i = 0; i < n; i++) s[i] = (double)x[i] * (double)x[i];
        for (int half = ZERO_TREE_BLOCK / 2; half > 0; half /= 2)
            for (int i = 0; i < half; i++) s[i] += s[i + half];
        return s[0];
    }
    int64_t left = ZERO_TREE_BLOCK;
    while (2 * left < n) left *= 2;
    return squares(left, x) + squares(n - left, x + left);
}

TEST(every_instruction_set_adds_squares_along_the_tree)
{
    const int64_t lengths[] = {0,   1,    63,   64,    65,    129,   256,   320,
                               448, 1000, 4097, 16384, 40001, 65472, 65535, 65536};
    const zero_vector_kernels *kernels;
    float *x = malloc(ZERO_VECTOR_SQUARES * sizeof *x);
    uint16_t *half = malloc((ZERO_VECTOR_SQUARES + 1) * sizeof *half);
    assert_true(x && half);
    for (int type = ZERO_FP32; type <= ZERO_FP16; type++) {
        zero_rng_normal(&stream, 0, ZERO_VECTOR_SQUARES, x);
        const void *stored = type == ZERO_FP32 ? (void *)x : half + 1;
        if (type != ZERO_FP32) {
            zero_convert(ZERO_FP32, (zero_type)type, ZERO_VECTOR_SQUARES, x, half + 1);
            zero_convert((zero_type)type, ZERO_FP32, ZERO_VECTOR_SQUARES, half + 1, x);
        }
        for (size_t i = 0; i < COUNT(lengths); i++)
            for (int k = 0; (kernels = zero_vector_kernels_at(k)); k++)
                assert_true(kernels->squares((zero_type)type, lengths[i], stored) ==
                            squares(lengths[i], x));
    }
    free(half);
    free(x);
}

TEST(every_instruction_set_adds_what_it_has_rounded)
{
    const zero_vector_kernels *kernels;
    leaves *l = make_leaves(type_patterns[ZERO_FP32], 3);
    float out[LEN];
    for (int k = 0; (kernels = zero_vector_kernels_at(k / 6)); k++) {
        zero_type type = (zero_type)(k % 3);
        const float *sum = k / 3 % 2 ? l->x[1] : NULL;
        kernels->add_rounded(type, LEN, sum, l->x[0], out);
        for (int64_t i = 0; i < LEN; i++) {
            uint16_t half;
            float x = l->x[0][i];
            if (type != ZERO_FP32) oracle_store(type, &half, 0, x);
            if (type != ZERO_FP32) x = oracle_load(type, &half, 0);
            assert_true(oracle_same(ZERO_FP32, out, i, sum ? sum[i] + x : x));
        }
    }
    free(l);
}

typedef struct {
    int first, count;
} node;

#define MOST_NODES 128

/* All subtrees of the tree over [first, first + n), the largest first. */
static int list_nodes(int first, int n, node *nodes)
{
    nodes[0] = (node){first, n};
    if (n == 1) return 1;
    int left = 1;
    while (2 * left < n) left *= 2;
    int used = 1 + list_nodes(first, left, nodes + 1);
    return used + list_nodes(first + left, n - left, nodes + used);
}

/* The least number of subtrees that tile [first, end), by trying all. */
static int fewest(const node *nodes, int n_nodes, int first, int end)
{
    int least[64] = {0}; /* from a leaf to the end */
    for (int at = end - 1; at >= first; at--) {
        least[at] = end;
        for (int k = 0; k < n_nodes; k++) {
            int next = nodes[k].first + nodes[k].count;
            if (nodes[k].first == at && next <= end && 1 + least[next] < least[at])
                least[at] = 1 + least[next];
        }
    }
    return least[first];
}

static bool contains(node outer, int first, int end)
{
    return outer.first <= first && end <= outer.first + outer.count;
}

static void check_cover(const node *nodes, int n_nodes, int size, int first, int count)
{
    zero_tree_term terms[ZERO_TREE_COVER_MAX];
    int n = zero_tree_cover(size, first, count, terms), at = first;
    for (int k = 0; k < n; k++) {
        bool is_subtree = false;
        assert_int_equal(terms[k].first, at);
        at += terms[k].count;
        for (int j = 0; j < n_nodes; j++) {
            bool equal =
                nodes[j].first == terms[k].first && nodes[j].count == terms[k].count;
            is_subtree |= equal;
            if (!equal && contains(nodes[j], terms[k].first, at)) /* so it sticks out */
                assert_false(contains((node){first, count}, nodes[j].first,
                                      nodes[j].first + nodes[j].count));
        }
        assert_true(is_subtree);
    }
    assert_int_equal(at, first + count);
    assert_int_equal(n, fewest(nodes, n_nodes, first, first + count));
}

TEST(a_cover_is_the_fewest_and_largest_subtrees)
{
    for (int size = 1; size <= 40; size++) {
        node nodes[MOST_NODES];
        int n_nodes = list_nodes(0, size, nodes);
        for (int first = 0; first <= size; first++)
            for (int count = 0; first + count <= size; count++)
                check_cover(nodes, n_nodes, size, first, count);
    }
    zero_tree_term terms[ZERO_TREE_COVER_MAX];
    assert_int_equal(zero_tree_cover(INT32_MAX, 1, INT32_MAX - 2, terms), 59);
}

TEST(copies_past_the_caches_copy_and_touch_nothing_else)
{
    enum { MOST = 700 };
    _Alignas(64) char from[MOST + 64], to[MOST + 128], want[MOST + 128];
    for (int i = 0; i < MOST + 64; i++) from[i] = (char)(i * i + i / 7);
    for (size_t bytes = 0; bytes <= MOST; bytes += 1 + bytes / 5) {
        for (size_t to_offset = 0; to_offset < 65; to_offset++) {
            size_t from_offset = to_offset * 13 % 64;
            memset(to, 0x55, sizeof to);
            memset(want, 0x55, sizeof want);
            memcpy(want + to_offset, from + from_offset, bytes);
            zero_stream_copy(to + to_offset, from + from_offset, bytes);
            assert_memory_equal(to, want, sizeof to);
        }
    }
}
