/* Attention and products on rows of 16 bits have the bits of the same calls on these numbers widened to
 * fp32, their results rounded once. */
#include "support/rows_test.h"

#include "math/backends.h"

static void attention(call *c)
{
    const int64_t n = rows_of(c) * c->cols, H = heads_of(c), n_lse = rows_of(c) * H;
    for (int with = 0; with < 2; with++) {
        zero_attention a = {.B = c->B, .T = c->T, .H = H, .K = H, .D = c->cols / H};
        numbers qkv = rows(c, 3 * n), out = rows(c, n), dout = rows(c, n),
                dqkv = rows(c, 3 * n);
        float *lse[2] = {test_floats(c->pool, n_lse), test_floats(c->pool, n_lse)};
        a.dropout = dropout_of(with);
        for (int half = 0; half < 2; half++) {
            a.rows_type = type_at(c, half), a.lse = lse[half];
            a.work = test_floats(c->pool, 3 * zero_attention_workspace(&a));
            a.out = at(&out, half), a.dout = at(&dout, half);
            zero_attention_rows(&a, at(&qkv, half), at(&dqkv, half));
            c->m->ops->attention(&c->m->math, &a);
            if (!half) round_wide(&out, n); /* backward reads what is stored */
            c->m->ops->attention_backward(&c->m->math, &a);
        }
        check_rows(c, &out, n);
        check_floats(c, n_lse, lse[1], lse[0]);
        check_rows(c, &dqkv, 3 * n);
    }
}

/* Sums that are added to are fp32. */
static void gemm(call *c)
{
    const int64_t m = rows_of(c), n = c->cols, k = 13;
    for (int flags = 0; flags < 8; flags++) {
        numbers a = rows(c, m * k), b = weights(c, k * n), out = rows(c, m * n);
        float *sum[2] = {test_floats(c->pool, m * n)};
        sum[1] = test_copy(c->pool, m * n, sum[0]);
        zero_gemm g = {.m = m, .n = n, .k = k, .b = b.half, .b_type = c->type};
        g.transpose_a = flags & 1, g.transpose_b = flags & 2, g.accumulate = flags & 4;
        for (int half = 0; half < 2; half++) {
            g.a_type = type_at(c, half), g.a = at(&a, half);
            g.c_type = g.accumulate ? ZERO_FP32 : g.a_type;
            g.c = g.accumulate ? sum[half] : at(&out, half);
            c->m->ops->gemm(&c->m->math, &g);
        }
        if (g.accumulate)
            check_floats(c, m * n, sum[1], sum[0]);
        else
            check_rows(c, &out, m * n);
    }
}

TEST(the_oracle_rounds_results_once)
{
    machine m[MACHINES];
    make_machines(*state, m);
    check_operation(*state, attention, m, 1);
    check_operation(*state, gemm, m, 1);
}
