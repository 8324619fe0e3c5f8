#include "cli/info_products.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/type.h"
#include "math/backend.h"
#include "math/backends.h"

/* Tokens, and a square weight: large enough that packing counts as it does in a step. */
#define ROWS   192
#define SIDE   768
#define ROUNDS 5

typedef struct {
    zero_math math;
    float *a, *c; /* [ROWS,SIDE] */
    void *b;      /* [SIDE,SIDE] of 2 bytes; zeros in both types */
} trial;

static double seconds(const trial *t, zero_type type)
{
    const zero_gemm g = {.factors = type,
                         .m = ROWS,
                         .n = SIDE,
                         .k = SIDE,
                         .a = t->a,
                         .b = t->b,
                         .b_type = type,
                         .c = t->c};
    const double begin = zero_clock_seconds();
    zero_backend_cpu.gemm(&t->math, &g);
    return zero_clock_seconds() - begin;
}

/* The least of several, in turns: another program on this machine disturbs both alike. */
static double measure(const trial *t)
{
    double fp16 = seconds(t, ZERO_FP16), bf16 = seconds(t, ZERO_BF16);
    for (int i = 0; i < ROUNDS; i++) {
        fp16 = fmin(fp16, seconds(t, ZERO_FP16));
        bf16 = fmin(bf16, seconds(t, ZERO_BF16));
    }
    return fp16 / bf16;
}

/* In whole cache lines, as kernels expect. */
static void *zeros(int64_t n, size_t bytes)
{
    const size_t all = (size_t)zero_round_up(n * (int64_t)bytes, 64);
    void *memory = aligned_alloc(64, all);
    return memory ? memset(memory, 0, all) : NULL;
}

static zero_status try_products(double *ratio)
{
    trial t = {.a = zeros(ROWS * SIDE, sizeof(float)),
               .b = zeros(SIDE * SIDE, 2),
               .c = zeros(ROWS * SIDE, sizeof(float))};
    t.math.scratch = zeros(zero_math_scratch(), sizeof(float));
    zero_status st = ZERO_OK;
    if (!t.a || !t.b || !t.c || !t.math.scratch)
        st = zero_fail(ZERO_ERR_NOMEM, "no memory to try products");
    if (st == ZERO_OK) st = zero_backend_cpu.open(&t.math);
    if (st == ZERO_OK) {
        *ratio = measure(&t);
        if (zero_backend_cpu.close) zero_backend_cpu.close(&t.math);
    }
    free(t.math.scratch);
    free(t.c);
    free(t.b);
    free(t.a);
    return st;
}

static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

zero_status zero_info_put_products(json_t *info)
{
    double ratio = 0.0;
    if (zero_cpu_bf16_name()) ZERO_TRY(try_products(&ratio));
    json_object_set_new(info, "fp32_products", text_or_null(zero_cpu_fp32_name()));
    json_object_set_new(info, "bf16_products", text_or_null(zero_cpu_bf16_name()));
    json_object_set_new(info, "bf16_over_fp16",
                        ratio > 0.0 ? json_real(ratio) : json_null());
    return ZERO_OK;
}
