/* flat.c - calls of the fake device on flat ranges: how each is recorded and executed. */
#include "fake/arrays.h"
#include "fake/calls.h"
#include "math/cpu_flat.h"

static void execute_clear(zero_fake *f, zero_fake_args *a)
{
    zero_cpu_clear(&f->math, a->flat.n, a->flat.out);
}

void zero_fake_clear(const zero_math *math, int64_t n, float *x)
{
    arrays of = begin(math, "clear", execute_clear);
    of.args->flat.n = n;
    of.args->flat.out = floats(of, x, n);
    zero_fake_commit(math);
}

static void execute_adamw(zero_fake *f, zero_fake_args *a)
{
    zero_cpu_adamw(&f->math, &a->adamw.recipe, &a->adamw.arrays);
}

void zero_fake_adamw(const zero_math *math, const zero_adamw *h, const zero_adamw_arrays *a)
{
    arrays of = begin(math, "adamw", execute_adamw);
    of.args->adamw.recipe = *h;
    zero_adamw_arrays *to = &of.args->adamw.arrays;
    *to = *a;
    to->grad = typed(of, a->type, a->grad, a->n);
    to->master = floats(of, a->master, a->n);
    to->m = floats(of, a->m, a->n);
    to->v = floats(of, a->v, a->n);
    to->param = a->type == ZERO_FP32 ? NULL : typed(of, a->type, a->param, a->n);
    if (a->changed)
        to->changed = zero_fake_at(of.fake, of.name, a->changed, sizeof *a->changed);
    zero_fake_commit(math);
}

static void execute_sum_squares(zero_fake *f, zero_fake_args *a)
{
    zero_cpu_sum_squares(&f->math, a->flat.type, a->flat.n, a->flat.in, a->flat.out);
}

void zero_fake_sum_squares(const zero_math *math, zero_type type, int64_t n, const void *x,
                           double *sum)
{
    arrays of = begin(math, "sum_squares", execute_sum_squares);
    of.args->flat.n = n, of.args->flat.type = type;
    of.args->flat.in = typed(of, type, x, n);
    of.args->flat.out = zero_fake_at(of.fake, of.name, sum, sizeof *sum);
    zero_fake_commit(math);
}

static void execute_round(zero_fake *f, zero_fake_args *a)
{
    zero_cpu_round(&f->math, a->flat.type, a->flat.n, a->flat.in, a->flat.out);
}

void zero_fake_round(const zero_math *math, zero_type type, int64_t n, const float *in,
                     void *out)
{
    arrays of = begin(math, "round", execute_round);
    of.args->flat.n = n, of.args->flat.type = type;
    of.args->flat.in = floats(of, in, n);
    of.args->flat.out = typed(of, type, out, n);
    zero_fake_commit(math);
}

static void execute_accumulate(zero_fake *f, zero_fake_args *a)
{
    zero_cpu_accumulate(&f->math, a->flat.type, a->flat.n, a->flat.in, a->flat.leaf,
                        a->flat.out);
}

void zero_fake_accumulate(const zero_math *math, zero_type type, int64_t n,
                          const float *sum, const float *leaf, float *out)
{
    arrays of = begin(math, "accumulate", execute_accumulate);
    of.args->flat.n = n, of.args->flat.type = type;
    of.args->flat.in = sum ? floats(of, sum, n) : NULL;
    of.args->flat.leaf = floats(of, leaf, n);
    of.args->flat.out = floats(of, out, n);
    zero_fake_commit(math);
}
