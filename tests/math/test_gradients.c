/* Backward against finite differences of forward, operation by operation, on the oracle.
 *
 * The scalar is L = sum(w * y) with random w, summed in double. Along a random direction d
 * the derivative of L is the gradient times d; forward gives it by a central difference of
 * fourth order, (8 (L(h) - L(-h)) - (L(2h) - L(-2h))) / 12h. Array "dx" is the gradient of
 * "x". */
#include "support/calls.h"

#define STEP 0.02f

/* Single-precision outputs limit the difference: 6e-8 of their size divided by h, 1e-5; its
 * error of order h^4 is smaller. A wrong factor or a lost term is 1e-2. */
#define TOLERANCE 2e-4

/* Of the plain product: da = dc b', db = a' dc. */
static void gemm_backward(call *c)
{
    const int64_t m = c->s.B * c->s.T, n = c->s.C, k = c->s.V;
    const float *dc = floats(c, "dc", m * n, READ);
    zero_gemm a = {.m = m, .n = k, .k = n, .transpose_b = true, .a = dc};
    zero_gemm b = {.m = k, .n = n, .k = m, .transpose_a = true, .b = dc};
    a.b = floats(c, "b", k * n, READ), a.c = floats(c, "da", m * k, WRITTEN);
    b.a = floats(c, "a", m * k, READ), b.c = floats(c, "db", k * n, WRITTEN);
    while (next(c)) {
        c->where->ops->gemm(&c->where->math, &a);
        c->where->ops->gemm(&c->where->math, &b);
    }
}

static const array *gradient_of(const call *c, const char *name, bool begins)
{
    char of[32];
    snprintf(of, sizeof of, "d%s", name);
    for (int i = 0; i < c->n_arrays; i++) {
        const array *x = &c->arrays[i];
        if (x->access != (begins ? WRITTEN : READ) &&
            strcmp(begins ? x->from : x->name, of) == 0)
            return x;
    }
    return NULL;
}

/* L, where forward begins with what `at` has. Gradients of a loss have one slope. */
static double scalar(const call *forward, const call *backward, const call *at)
{
    double sum = 0.0;
    call c = make_call_given(forward->where, forward->op, &forward->s, at);
    for (int i = 0; i < c.n_arrays; i++) {
        const array *y = &c.arrays[i], *dy = gradient_of(backward, y->name, true);
        if (y->access == READ || (!dy && strcmp(y->name, "loss") != 0)) continue;
        float *is = floats_of(&c, y, false),
              *slope = dy ? floats_of(backward, dy, true) : NULL;
        const bool is_gate = dy && dy->n == 2 * y->n; /* of the first half of each row */
        for (int64_t k = 0; k < y->n; k++) {
            const int64_t to = is_gate ? k + k / c.s.C * c.s.C : k;
            sum += (slope ? (double)slope[to] : 0.75) * (double)is[k];
        }
        free(is);
        free(slope);
    }
    drop_call(&c);
    return sum;
}

static void check_array(test_pool *pool, const call *forward, const call *backward,
                        const array *x, const array *dx)
{
    float *gradient = floats_of(backward, dx, false), *at = floats_of(forward, x, true);
    for (int trial = 0; trial < 3; trial++) {
        const float *d = test_floats(pool, x->n);
        double along = 0.0, size = 0.0, L[4];
        for (int64_t k = 0; k < x->n; k++) {
            along += (double)gradient[k] * (double)d[k];
            size += (double)gradient[k] * (double)gradient[k];
        }
        for (int i = 0; i < 4; i++) {
            static const float steps[] = {STEP, -STEP, 2 * STEP, -2 * STEP};
            call moved = {.n_arrays = 1, .arrays = {*x}};
            float *numbers = test_floats(pool, x->n);
            for (int64_t k = 0; k < x->n; k++) numbers[k] = at[k] + steps[i] * d[k];
            moved.arrays[0].name = x->from, moved.arrays[0].at = 0;
            moved.after = (char *)numbers;
            L[i] = scalar(forward, backward, &moved);
        }
        const double found = (8.0 * (L[0] - L[1]) - (L[2] - L[3])) / (12.0 * (double)STEP);
        if (!(fabs(along - found) <= TOLERANCE * (sqrt(size) + 1.0)))
            fail_msg("%s, %s: backward %g, difference %g, size %g", forward->op->name,
                     x->name, along, found, sqrt(size));
    }
    free(gradient);
    free(at);
}

/* Returns how many gradients there were. */
static int check_pair(test_pool *pool, const operation *of, const operation *back, shape s)
{
    site w = host_site("naive", &zero_backend_naive, pool, test_bytes(pool, HOST_BYTES), 1);
    int n = 0;
    s.begins_with_zeros = true;
    call forward = make_call(&w, of, &s),
         backward = make_call_given(&w, back, &s, &forward);
    for (int i = 0; i < forward.n_arrays; i++) {
        const array *x = &forward.arrays[i], *dx = gradient_of(&backward, x->from, false);
        if (x->access == WRITTEN || x->access == WORK || !dx) continue;
        check_array(pool, &forward, &backward, x, dx);
        n++;
    }
    drop_call(&forward);
    drop_call(&backward);
    return n;
}

TEST(operations_have_the_gradients_of_their_forward)
{
    static const struct {
        const char *forward, *backward;
        int gradients; /* and without what may be missing */
        int fewer;
    } pairs[] = {
        {"add_bias", "bias_backward", 1, 1},
        {"bias_gelu", "bias_gelu_backward", 2, 2},
        {"bias_exact_gelu", "bias_exact_gelu_backward", 2, 2},
        {"layernorm", "layernorm_backward", 3, 2},
        {"swiglu", "swiglu_backward", 1, 1},
        {"turn", "turn_backward", 2, 1},
        {"attention", "attention_backward", 1, 1},
        {"embedding", "embedding_backward", 2, 1},
        {"cross_entropy", "cross_entropy_backward", 1, 1},
    };
    for (size_t i = 0; i < COUNT(pairs); i++)
        for (int way = 0; way < 6; way++) {
            shape s = {
                .B = 2, .T = 7, .C = 24, .H = 4, .K = way < 3 ? 1 << way : 4, .V = 11};
            s.drops = way & 1, s.lacks = way >= 3;
            assert_int_equal(check_pair(*state, operation_named(pairs[i].forward),
                                        operation_named(pairs[i].backward), s),
                             s.lacks ? pairs[i].fewer : pairs[i].gradients);
        }
}

TEST(products_have_the_gradient_of_their_forward)
{
    const operation back = {.name = "gemm_backward", .make = gemm_backward};
    const shape s = {.B = 2, .T = 5, .C = 9, .V = 7};
    assert_int_equal(check_pair(*state, operation_named("gemm"), &back, s), 2);
}
