/* Launchers that promise the CPU's bits, on flat ranges: what test_kernels.c has no rows for. */
#include "gpu/launchers.h"

#include "base/type.h"

/* No decay, large eps, late steps, gradients scaled far down. */
TEST(the_optimizer_has_the_cpus_bits_with_other_recipes)
{
    both b;
    open_both(&b, *state, 65536);
    for (int i = 0; i < 12; i++) {
        zero_adamw h = test_recipe();
        const shape s = {.B = 1,
                         .T = 1,
                         .C = 4097,
                         .type = types[i % 3],
                         .shift = i % 2,
                         .is_odd = true,
                         .recipe = &h};
        if (i % 2) h.weight_decay = 0.0f;
        if (i % 3 == 0) h.eps = 0.25f;
        h.step = i < 6 ? 1 + i : 100000 + i;
        h.grad_scale = i % 4 == 0 ? 1e-20f : 1.0f;
        h.beta2 = i % 5 ? 0.999f : 0.95f;
        check(&b, operation_named("adamw"), &s);
    }
}

static void compare_numbers(both *b, const char *op, const char *name, zero_type type,
                            int64_t n, const float *x)
{
    const call given = {.n_arrays = 1,
                        .arrays = {{name, name, 0, ZERO_FP32, READ, n, 0}},
                        .after = (char *)x};
    compare_given(b, op, &(shape){.B = 1, .T = 1, .C = n, .type = type}, &given);
}

/* Every number of 16 bits, and its neighbours among fp32: ties, and what is just beside
 * them. */
TEST(all_numbers_of_16_bits_and_their_borders_are_rounded_alike)
{
    enum { N = 4 * 65536 };
    both b;
    open_both(&b, *state, 65536);
    for (int t = 1; t < 3; t++) {
        float *x = test_floats(*state, N);
        for (int i = 0; i < 65536; i++) {
            const uint16_t half = (uint16_t)i;
            zero_convert(types[t], ZERO_FP32, 1, &half, &x[4 * i]);
            uint32_t bits;
            memcpy(&bits, &x[4 * i], sizeof bits);
            for (uint32_t k = 1; k < 4; k++) {
                const uint32_t beside = bits + (t == 1 ? 0x8000 : 0x1000) + k - 2;
                memcpy(&x[4 * i + (int)k], &beside, sizeof beside);
            }
        }
        compare_numbers(&b, "round", "in", types[t], N, x);
    }
}

TEST(squares_of_denormals_infinities_and_nan_are_summed_alike)
{
    static const float odd[] = {1e-40f, 1e-30f, 3e38f, INFINITY, NAN};
    both b;
    open_both(&b, *state, 65536);
    for (size_t t = 0; t < COUNT(types); t++)
        for (size_t k = 0; k < COUNT(odd); k++) {
            float *x = test_floats(*state, 4000);
            for (int64_t i = 0; k == 0 && i < 4000; i++) x[i] *= 1e-40f;
            x[3001] = odd[k];
            compare_numbers(&b, "sum_squares", "x", types[t], 4000, x);
        }
}

/* ---- convert ---- */

/* T rows of C numbers, V apart, from the type of weights to that of rows; results C or C + 4
 * apart. */
static void convert(call *c)
{
    const shape *s = &c->s;
    const int64_t apart = s->V % 8 == 0 ? s->C + 4 : s->C;
    const void *in = numbers(c, "in", "in", s->type, s->T * s->V, READ);
    void *out = numbers(c, "out", "out", s->rows, s->T * apart, BOTH);
    while (next(c)) {
        if (c->where->is_gpu)
            zero_cuda_convert(gpu.stream, s->T, s->C, s->V, s->type, in, s->rows, apart,
                              out);
        for (int64_t r = 0; r < s->T && !c->where->is_gpu; r++)
            zero_convert(s->type, s->rows, s->C, zero_type_at(s->type, in, r * s->V),
                         zero_type_to(s->rows, out, r * apart));
    }
}

static void check_convert(both *b, zero_type from, zero_type to, const int64_t size[3],
                          int shift)
{
    const operation op = {.name = "convert", .make = convert};
    const shape s = {.B = 1,
                     .T = size[0],
                     .C = size[1],
                     .V = size[2],
                     .type = from,
                     .rows = to,
                     .shift = shift,
                     .only = 1,
                     .is_odd = true};
    call want = make_call(&b->oracle, &op, &s), got = make_call(&b->gpu, &op, &s);
    compare_calls(&got, &want, 0.0);
    drop_call(&want), drop_call(&got);
}

TEST(tables_are_converted_between_all_types)
{
    static const int64_t shapes[][3] = {{1, 1, 1},     {1, 4097, 4097}, {3, 64, 64},
                                        {7, 64, 96},   {9, 20, 22},     {17, 33, 40},
                                        {5, 128, 129}, {130, 12, 12},   {0, 4, 4}};
    both b;
    open_both(&b, *state, 8);
    for (size_t from = 0; from < COUNT(types); from++)
        for (size_t to = 0; to < COUNT(types); to++)
            for (size_t s = 0; s < COUNT(shapes); s++)
                for (int shift = 0; shift < 2; shift++)
                    check_convert(&b, types[from], types[to], shapes[s], shift);
}

/* More rows, and more columns, than all blocks take at once. Last: on CPUs without protection
 * keys the emulator protects all memory that was ever used at each launch. */
TEST(large_tables_take_several_turns)
{
    both b;
    open_both(&b, *state, 8);
    check_convert(&b, ZERO_FP32, ZERO_BF16, (const int64_t[]){8 * 8192 + 9, 1, 2}, 0);
    check_convert(&b, ZERO_FP32, ZERO_FP16,
                  (const int64_t[]){1, 32 * 8192 + 5, 32 * 8192 + 5}, 0);
}

/* Many blocks, and so little room that each takes many turns. */
TEST(long_sums_of_squares_take_several_turns)
{
    static const int64_t sizes[] = {8191, 65537, 131072, 200000, 300001};
    static const int64_t rooms[] = {8, 24, 128, 65536};
    for (size_t k = 0; k < COUNT(sizes) * COUNT(rooms); k++) {
        void *pool;
        both b;
        assert_int_equal(test_pool_make(&pool), 0);
        open_both(&b, pool, rooms[k % COUNT(rooms)]);
        for (size_t t = 0; t < COUNT(types); t++) {
            const shape s = {.B = 1,
                             .T = 1,
                             .C = sizes[k / COUNT(rooms)],
                             .type = types[t],
                             .shift = k % 2};
            check(&b, operation_named("sum_squares"), &s);
        }
        test_pool_free(&pool);
    }
}
