/* Launchers of all operations: near the oracle or with its bits, alike in both orders of
 * threads and wherever arrays lie; on 16 bits with the bits of fp32, rounded once. And what
 * is special. */
#include "gpu/launchers.h"

#include "base/number.h"

/* ---- all operations ---- */

static const char flat[] = "clear adamw round accumulate sum_squares exact_squares";
static const char rows_and_sums[] =
    "add_bias bias_backward bias_gelu bias_gelu_backward bias_exact_gelu "
    "bias_exact_gelu_backward add_branch layernorm layernorm_backward swiglu "
    "swiglu_backward "
    "dropout embedding embedding_backward";
static const char of_heads[] =
    "turn turn_backward attention attention_backward remember recall";
static const char losses[] = "cross_entropy cross_entropy_backward";

/* B, T, C, H, K, V. */
static const struct {
    const char *of;
    int64_t B, T, C, H, K, V;
} cases[] = {
    {rows_and_sums, 1, 1, 1, 1, 1, 1},
    {rows_and_sums, 1, 2, 17, 1, 1, 3},
    {rows_and_sums, 3, 1, 16, 1, 1, 7},
    {rows_and_sums, 1, 7, 257, 1, 1, 40},
    {rows_and_sums, 2, 32, 48, 1, 1, 2},
    {rows_and_sums, 1, 5, 768, 1, 1, 50},
    {rows_and_sums, 3, 3, 4, 1, 1, 1},
    {rows_and_sums, 1, 131, 36, 1, 1, 40},
    {rows_and_sums, 3, 11, 1025, 1, 1, 4},
    {rows_and_sums, 2, 2, 1344, 1, 1, 9},
    {rows_and_sums, 2, 100, 132, 1, 1, 2},
    {"add_bias bias_gelu bias_backward bias_gelu_backward", 1, 1, 0, 1, 1, 1},
    {"bias_backward bias_gelu_backward layernorm_backward", 1, 1025, 64, 1, 1, 1},
    {"bias_backward bias_gelu_backward", 1, 4100, 7, 1, 1, 1},
    {"embedding embedding_backward", 4, 5, 2060, 1, 1, 1},
    {"embedding embedding_backward", 1, 600, 3, 1, 1, 2},
    {"embedding_backward", 1, 2100, 2, 1, 1, 900},
    {of_heads, 1, 1, 2, 1, 1, 1},
    {of_heads, 2, 5, 6, 2, 1, 1},
    {of_heads, 1, 15, 40, 1, 1, 1},
    {of_heads, 1, 17, 34, 2, 2, 1},
    {of_heads, 1, 67, 64, 1, 1, 1},
    {of_heads, 1, 100, 80, 2, 1, 1},
    {of_heads, 1, 67, 128, 1, 1, 1},
    {of_heads, 1, 20, 300, 1, 1, 1},
    {of_heads, 2, 70, 64, 4, 2, 1},
    {of_heads, 3, 15, 15, 3, 3, 1},
    {"turn turn_backward remember recall", 2, 64, 320, 1, 1, 1},
    {"turn turn_backward", 1, 5, 768, 3, 3, 1},
    {losses, 1, 1, 1, 1, 1, 1},
    {losses, 1, 3, 2, 1, 1, 1},
    {losses, 1, 5, 31, 1, 1, 1},
    {losses, 2, 2, 257, 1, 1, 1},
    {losses, 1, 2, 1023, 1, 1, 1},
    {losses, 1, 3, 1024, 1, 1, 1},
    {losses, 1, 2, 1025, 1, 1, 1},
    {losses, 1, 2, 50257, 1, 1, 1},
};

/* 0 .. 34, longer ones, some beside powers of two, up to 4097: denormals, infinities and
 * NaN, too. */
TEST(flat_ranges_have_the_cpus_bits)
{
    for (int i = 0; i < n_operations; i++)
        for (int64_t n = 0; n < 4100;
             n += n < 34 || (n & (n + 1)) == 0 || (n & (n - 1)) == 0 ? 1 : (n + 2) / 4) {
            void *pool;
            both b;
            if (!is_among(flat, operations[i].name)) continue;
            assert_int_equal(test_pool_make(&pool), 0);
            open_both(&b, pool, n % 2 ? 8 : 65536);
            for (size_t t = 0; t < COUNT(types); t++)
                for (int shift = 0; shift < 2; shift++) {
                    shape s = {.B = 1, .T = 1, .C = n, .type = types[t], .shift = shift};
                    s.is_odd = (n + shift) % 3 > 0, s.in_place = n & 1;
                    s.accumulate = n & 2, s.lacks = n % 5 == 0, s.tells = (int)(n % 3);
                    check(&b, &operations[i], &s);
                }
            test_pool_free(&pool);
        }
}

TEST(all_operations_agree_with_the_oracle_and_round_once)
{
    static const int64_t rooms[] = {16384, 65536, 1 << 20};
    for (size_t k = 0; k < COUNT(cases); k++)
        for (int i = 0; i < n_operations; i++) {
            void *pool;
            both b;
            if (!is_among(cases[k].of, operations[i].name)) continue;
            assert_int_equal(test_pool_make(&pool), 0);
            open_both(&b, pool, rooms[cases[k].C > 2048 ? 1 : k % COUNT(rooms)]);
            for (int variant = 0; variant < 6; variant++) {
                shape s = {.B = cases[k].B, .T = cases[k].T, .C = cases[k].C};
                if (cases[k].of == of_heads && s.T > 60 && variant > 2) continue;
                s.H = cases[k].H, s.K = cases[k].K, s.V = cases[k].V;
                s.in_place = s.accumulate = variant & 1, s.drops = variant / 2 % 2;
                s.lacks = variant % 4 == 3, s.shift = variant % 3 == 1,
                s.is_odd = variant == 5;
                s.numbers = types[variant % 3];
                if (s.numbers == ZERO_FP32) s.type = types[variant / 2];
                if (cases[k].of == of_heads && ((size_t)variant + k) % 2)
                    s.factors = s.numbers;
                check(&b, &operations[i], &s);
            }
            test_pool_free(&pool);
        }
}

/* Parameters lie where their group puts them, and 16-bit ones are widened elsewhere:
 * neither may show in a bit. If only one array is not aligned, no other may be taken as if it
 * were, either. */
TEST(alignment_shows_in_no_bit)
{
    static const int64_t widths[] = {4, 36, 768, 1344};
    both b;
    open_both(&b, *state, 65536);
    for (int i = 0; i < n_operations; i++)
        for (size_t k = 0; k < COUNT(widths); k++) {
            shape s = {.B = 1, .T = 5, .C = widths[k], .H = 2, .K = 1, .V = 9};
            s.ways = FEW_ROWS, s.type = s.rows = types[k % 2];
            call want = make_call(&b.gpu, &operations[i], &s);
            for (int way = 1; way < 9; way++) {
                s.shift = way < 4 ? way : 1, s.only = way < 4 ? 0 : way - 3;
                call got = make_call(&b.gpu, &operations[i], &s);
                compare_calls(&got, &want, 0.0);
                drop_call(&got);
            }
            drop_call(&want);
        }
}

/* ---- what is special ---- */

TEST(gelu_is_right_far_from_zero)
{
    static const float numbers[] = {-1e30f, -1e4f, 1e4f, 1e30f, 0, 0, 0, 0, 1, 1, 1, 1};
    static const float values[] = {0, 0, 1e4f, 1e30f}, slopes[] = {0, 0, 1, 1};
    static const char *const names[][2] = {{"bias_gelu", "bias_gelu_backward"},
                                           {"bias_exact_gelu", "bias_exact_gelu_backward"}};
    const call given = {.n_arrays = 3,
                        .arrays = {{"x", "x", 0, ZERO_FP32, READ, 4, 0},
                                   {"bias", "bias", 0, ZERO_FP32, READ, 4, 16},
                                   {"dy", "dy", 0, ZERO_FP32, READ, 4, 32}},
                        .after = (char *)numbers};
    const shape s = {.B = 1, .T = 1, .C = 4};
    both b;
    open_both(&b, *state, 65536);
    for (int is_exact = 0; is_exact < 2; is_exact++) {
        const operation *op = operation_named(names[is_exact][0]);
        call y = make_call_given(&b.gpu, op, &s, &given);
        op = operation_named(names[is_exact][1]);
        call dx = make_call_given(&b.gpu, op, &s, &given);
        float *value = floats_of(&y, array_named(&y, "y"), false);
        float *slope = floats_of(&dx, array_named(&dx, "dx"), false);
        for (int i = 0; i < 4; i++)
            assert_true(value[i] == values[i] &&
                        fabsf(slope[i] - slopes[i]) < (is_exact ? 1e-20f : 1e-30f));
        drop_call(&y), drop_call(&dx);
        free(value), free(slope);
    }
}

/* T rows of C logits, V floats apart, whose gradient has weights' type. */
static void spread_head(call *c)
{
    const shape *s = &c->s;
    const zero_cross_entropy e = {s->T,
                                  s->C,
                                  s->V,
                                  tokens(c, s->T, s->C),
                                  0.5f,
                                  s->type,
                                  floats(c, "logits", s->T * s->V, BOTH),
                                  floats(c, "loss", s->T, WRITTEN)};
    MAKE(c, cross_entropy, &e);
}

/* Between rows nothing changes but what a gradient of 16 bits leaves of logits. */
static void check_spread_head(test_pool *pool, int64_t V, int64_t apart, zero_type type)
{
    const operation op = {
        .name = "spread head", .make = spread_head, .near = "logits loss"};
    shape s = {.B = 1, .T = 3, .C = V, .V = apart};
    both b;
    open_both(&b, pool, 65536);
    s.type = type;
    call got = make_call(&b.gpu, &op, &s);
    const array *x = array_named(&got, "logits");
    const float *is = (float *)(void *)(got.after + x->at);
    const float *was = (float *)(void *)(got.before + x->at);
    float *dense = test_floats(pool, 3 * V), *wide = test_floats(pool, V);
    for (int64_t i = 0; i < 3 * V; i++) dense[i] = was[i / V * apart + i % V];
    const call given = {.n_arrays = 1,
                        .arrays = {{"logits", "logits", 0, ZERO_FP32, READ, 3 * V, 0}},
                        .after = (char *)dense};
    s.type = ZERO_FP32, s.V = V;
    call want = make_call_given(&b.oracle, &op, &s, &given);
    const float *be = (float *)(void *)(want.after + array_named(&want, "logits")->at);
    float *loss = floats_of(&got, array_named(&got, "loss"), false),
          *wanted = floats_of(&want, array_named(&want, "loss"), false);
    assert_true(test_error(3, loss, wanted) < TOLERANCE);
    for (int64_t r = 0; r < 3; r++, is += apart, was += apart, be += V) {
        const int64_t kept = zero_divide_up(V * (int64_t)zero_type_size(type), 4);
        zero_convert(type, ZERO_FP32, V, is, wide);
        assert_true(test_error(V, wide, be) < (type == ZERO_FP32 ? TOLERANCE : 1.0 / 256));
        assert_same(apart - kept, is + kept, was + kept);
    }
    drop_call(&want), drop_call(&got);
    free(loss), free(wanted);
}

/* Rows that begin at multiples of 4 floats, and others; shorter and longer than a turn of a
 * block. */
TEST(rows_of_logits_may_lie_apart)
{
    static const int64_t sizes[][2] = {{1, 4},        {31, 32},     {257, 320},
                                       {257, 259},    {2048, 2048}, {5000, 5056},
                                       {20000, 20032}};
    for (size_t c = 0; c < COUNT(sizes); c++)
        for (int type = ZERO_FP32; type <= ZERO_FP16; type++)
            check_spread_head(*state, sizes[c][0], sizes[c][1], (zero_type)type);
}

static void check_logits(both *b, int64_t rows, int64_t V, const float *x)
{
    const call given = {.n_arrays = 1,
                        .arrays = {{"logits", "logits", 0, ZERO_FP32, READ, rows * V, 0}},
                        .after = (char *)x};
    const shape s = {.B = 1, .T = rows, .C = V};
    compare_given(b, "cross_entropy", &s, &given);
    compare_given(b, "cross_entropy_backward", &s, &given);
}

/* Huge logits, rows of one value, logits of probability 0, and NaN in every place. */
TEST(odd_logits_agree)
{
    enum { V = 300 };
    float x[6 * V], finite[3 * V];
    both b;
    open_both(&b, *state, 65536);
    for (int i = 0; i < V; i++) {
        x[i] = 3e38f, x[V + i] = -3e38f;
        x[2 * V + i] = i % 2 ? -INFINITY : (float)i;
        x[3 * V + i] = i < 299 ? -INFINITY : 1.0f;
        x[4 * V + i] = i == 150 ? INFINITY : 0.0f;
        x[5 * V + i] = -INFINITY;
    }
    for (int i = 0; i < 3 * V; i++)
        finite[i] = isinf(x[i])          ? -1e30f
                    : fabsf(x[i]) > 1e9f ? copysignf(1e9f, x[i])
                                         : x[i];
    check_logits(&b, 3, V, finite);
    check_logits(&b, 6, V, x);
    for (int at = 0; at < V; at += 23) {
        float *nan = test_floats(*state, 2 * V);
        nan[at] = NAN;
        check_logits(&b, 2, V, nan);
    }
}

/* More rows, columns, samples or numbers than all blocks take at once. Last:
 * on CPUs without protection keys the emulator protects all memory that was ever used. */
TEST(large_tables_take_several_turns)
{
    static const struct {
        const char *of;
        int64_t B, T, C;
    } large[] = {{"add_bias", 1, 8 * 8192 + 9, 1},
                 {"add_bias", 1, 1, 32 * 8192 + 5},
                 {"layernorm layernorm_backward", 1, 8 * 2048 + 11, 4},
                 {"cross_entropy cross_entropy_backward", 1, 2048 + 5, 3},
                 {"dropout", 2500, 1, 3},
                 {"dropout", 1, 1, 2048 * 2048 + 4100},
                 {"round", 1, 1, (8192 + 77) * 1024 + 3},
                 {"sum_squares", 1, 1, 300001}};
    for (size_t k = 0; k < COUNT(large); k++)
        for (int i = 0; i < n_operations; i++) {
            void *pool;
            both b;
            if (!is_among(large[k].of, operations[i].name)) continue;
            assert_int_equal(test_pool_make(&pool), 0);
            open_both(&b, pool, 65536);
            shape s = {
                .B = large[k].B, .T = large[k].T, .C = large[k].C, .V = 1, .drops = true};
            if (strcmp(operations[i].name, "round") == 0) s.type = ZERO_BF16;
            check(&b, &operations[i], &s);
            test_pool_free(&pool);
        }
}
