/* The fake device computes what the cpu backend does, in any order of its queues, on memory that
 * the host cannot touch. */
#include "support/device_test.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/type.h"
#include "math/backends.h"

enum { ORDERS = 20 };

/* ---- memory ---- */

static void touch(volatile char *memory, bool writes)
{
    signal(SIGSEGV, SIG_DFL); /* sanitizers catch it */
    signal(SIGBUS, SIG_DFL);
    if (writes) *memory = 1;
    _exit(memory[1] == 0 ? 0 : 1);
}

TEST(the_host_cannot_touch_memory_of_the_device)
{
    device d = device_open(1, 65536);
    for (int i = 0; i < 4; i++) {
        int status = 0;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) touch(d.memory + (i / 2 ? d.bytes - 2 : 0), i % 2);
        assert_true(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGSEGV);
    }
    device_close(&d);
}

TEST(system_calls_cannot_touch_it)
{
    int ends[2];
    device d = device_open(1, 65536);
    assert_int_equal(pipe(ends), 0);
    assert_true(write(ends[1], d.memory, 16) == -1 && errno == EFAULT);
    assert_int_equal(write(ends[1], d.host, 16), 16);
    assert_true(read(ends[0], d.memory, 16) == -1 && errno == EFAULT);
    close(ends[0]), close(ends[1]);
    device_close(&d);
}

TEST(memory_is_zeroed_aligned_and_comes_in_pieces)
{
    device d = device_open(1, 65536);
    void *piece[8];
    zero_ticket ticket;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 8; i++) {
            assert_ok(fake->memory->take(&d.math, (size_t)(1 + 5000 * i), &piece[i]));
            assert_true((uintptr_t)piece[i] % ZERO_MEMORY_ALIGN == 0);
            memset(d.host, 1, d.bytes);
            assert_ok(fake->memory->fetch(&d.math, d.host, piece[i], 4096, &ticket));
            device_wait(&d, ticket);
            for (int k = 0; k < 4096; k++) assert_true(d.host[k] == 0);
            memset(d.host, 1, d.bytes);
            assert_ok(fake->memory->store(&d.math, piece[i], d.host, 4096, &ticket));
            device_wait(&d, ticket);
        }
        for (int i = 0; i < 8; i++) fake->memory->give_back(&d.math, piece[i]);
    }
    device_close(&d);
}

/* Mappings of this process that are memory of a device; -1: this system does not list them. */
static int count_mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    int n = 0;
    if (!maps) return -1;
    while (fgets(line, sizeof line, maps)) n += strstr(line, "zero-fake-device") != NULL;
    fclose(maps);
    return n;
}

TEST(closing_gives_back_all_memory)
{
    void *piece;
    const int before = count_mappings();
    device d = device_open(1, 65536);
    for (int i = 0; i < 5; i++) assert_ok(fake->memory->take(&d.math, 4096, &piece));
    fake->memory->give_back(&d.math, piece);
    if (before >= 0) assert_int_equal(count_mappings(), before + 2 * 5);
    device_close(&d);
    assert_int_equal(count_mappings(), before);
}

/* Calls and copies that use the memory would fault if they ran later. */
TEST(what_is_queued_runs_before_memory_goes)
{
    for (int order = 0; order <= ORDERS; order++) {
        device d = device_open(order, 65536);
        void *piece;
        assert_ok(fake->memory->take(&d.math, 4096, &piece));
        zero_ticket stored = device_store(&d, 0, d.bytes);
        fake->round(&d.math, ZERO_FP32, 64, piece, device_floats(&d, 64));
        fake->memory->give_back(&d.math, piece);
        assert_ok(fake->sync(&d.math));
        stored = device_store(&d, 0, d.bytes);
        fake->memory->unpin(&d.math, d.host);
        munmap(d.host, d.bytes);
        device_wait(&d, stored);
        fake->close(&d.math);
    }
}

/* ---- arithmetic ---- */

/* Arrays one after the other in the host's memory or the device's. */
typedef struct {
    char *at;
} space;

static void *take(space *s, size_t bytes)
{
    void *array = s->at;
    s->at += (bytes + ZERO_MEMORY_ALIGN - 1) / ZERO_MEMORY_ALIGN * ZERO_MEMORY_ALIGN;
    return array;
}

static float *floats(space *s, int64_t n)
{
    return take(s, (size_t)n * sizeof(float));
}

/* B samples of T rows; a table of V words. */
enum { B = 2, T = 19, ROWS = B * T, C = 24, H = 3, V = 40, N = ROWS * C };
static const size_t lab_bytes = 1 << 18;

typedef struct {
    const zero_backend *ops;
    const zero_math *math;
    zero_dropout d;
    zero_type type, rows;
    int32_t *tokens;
    float *wide;   /* 3 N random numbers, of which `weights` are made */
    void *weights; /* [V, 3C] of `type` */
    /* [N], big [ROWS, 3C]: of the type `rows`, but for the logits */
    float *x, *y, *z, *dx, *logits, *big;
    float *small[6]; /* [ROWS], [3C] */
    double *sum;
    float *work;
} lab;

static lab make_lab(const zero_backend *ops, const zero_math *math, zero_type type,
                    zero_type rows, char *memory)
{
    space s = {memory};
    const zero_attention shape = {.B = B, .T = T, .H = H, .K = H, .D = C / H};
    lab l = {.ops = ops, .math = math, .type = type, .rows = rows};
    l.d = (zero_dropout){{.seed = 5, .purpose = ZERO_RNG_TEST}, 0.25f};
    l.tokens = take(&s, ROWS * sizeof(int32_t));
    l.wide = floats(&s, 3 * V * C);
    l.weights = floats(&s, 3 * V * C);
    float **arrays[] = {&l.x, &l.y, &l.z, &l.dx, &l.logits};
    for (size_t i = 0; i < COUNT(arrays); i++) *arrays[i] = floats(&s, N);
    l.big = floats(&s, 3 * N);
    for (int i = 0; i < 6; i++) l.small[i] = floats(&s, ROWS > 3 * C ? ROWS : 3 * C);
    l.sum = take(&s, 2 * sizeof(double));
    l.work = floats(&s, zero_attention_workspace(&shape));
    assert_true(s.at <= memory + lab_bytes);
    return l;
}

static const void *weight(const lab *l, int64_t i)
{
    return zero_type_at(l->type, l->weights, i);
}

static zero_attention attention_of(const lab *l)
{
    zero_attention a = {.B = B, .T = T, .H = H, .K = H, .D = C / H, .rows_type = l->rows};
    a.dropout = l->d, a.lse = l->small[2], a.work = l->work;
    zero_attention_rows(&a, l->big, l->wide);
    return a;
}

static void compute_forward(const lab *l)
{
    const zero_backend *ops = l->ops;
    ops->round(l->math, l->type, 3 * V * C, l->wide, l->weights);
    zero_embedding e = {B,         T,       C,       0,          0,
                        l->tokens, l->type, l->rows, l->weights, weight(l, V * C),
                        l->x,      NULL};
    ops->embedding(l->math, &e);
    ops->dropout(l->math, &l->d, l->rows, B, T * C, l->x, l->x);
    zero_layernorm_args n = {ROWS,  C,           l->type,      l->rows,
                             1e-5f, l->x,        weight(l, 7), weight(l, 70),
                             l->y,  l->small[0], l->small[1]};
    ops->layernorm(l->math, &n);
    zero_gemm g = {.m = ROWS, .n = 3 * C, .k = C, .a = l->y, .b = l->weights};
    g.b_type = l->type, g.c = l->big, g.factors = l->type;
    g.a_type = g.c_type = l->rows;
    ops->gemm(l->math, &g);
    ops->add_bias(l->math, &(zero_bias){.rows = ROWS,
                                        .cols = 3 * C,
                                        .type = l->type,
                                        .rows_type = l->rows,
                                        .bias = weight(l, 9),
                                        .x = l->big});
    zero_attention a = attention_of(l);
    a.first_head = 1, a.factors = g.factors, a.out = l->z;
    ops->attention(l->math, &a);
    zero_branch b = {l->d, B, T, C, l->type, l->rows, weight(l, 3), l->x, l->z, l->y};
    ops->add_branch(l->math, &b);
    b.out = l->z;
    ops->add_branch(l->math, &b);
    e.first = 2, e.words = 3; /* others are another rank's */
    e.out = l->y;
    ops->embedding(l->math, &e);
    ops->bias_gelu(l->math, &(zero_bias){.rows = ROWS,
                                         .cols = C,
                                         .type = l->type,
                                         .rows_type = l->rows,
                                         .bias = weight(l, 5),
                                         .x = l->z,
                                         .y = l->dx});
}

/* What blocks of other architectures call: q and k of `big` turn, where v is left. */
static void compute_others(const lab *l)
{
    const zero_backend *ops = l->ops;
    zero_attention a = attention_of(l);
    zero_turn t = {.B = B, .T = T, .H = H, .K = 1, .D = C / H, .R = 6, .type = l->type};
    t.rows_type = l->rows, t.eps = 1e-6f, t.frequency[0] = 1.0f, t.frequency[1] = 0.25f;
    t.gain_q = weight(l, 11), t.gain_k = weight(l, 30);
    a.K = 1, a.out = l->y;
    t.q = t.dq = a.q, t.k = t.dk = a.k, t.rstd = l->work;
    t.to_q = zero_heads_of(l->rows, l->z, 0, C, C / H);
    t.to_k = zero_heads_of(l->rows, l->dx, 0, C, C / H);
    ops->turn(l->math, &t);
    t.slices = 1, t.sums = l->small[4];
    ops->turn_backward(l->math, &t);
    a.q = t.to_q, a.k = t.to_k;
    ops->attention(l->math, &a);
    const zero_layernorm_args n = {.rows = ROWS,
                                   .C = C,
                                   .type = l->type,
                                   .rows_type = l->rows,
                                   .eps = 1e-6f,
                                   .x = l->y,
                                   .gain = weight(l, 7),
                                   .y = l->x,
                                   .rstd = l->small[1]};
    ops->layernorm(l->math, &n);
    const zero_layernorm_grad_args d = {.rows = ROWS,
                                        .C = C,
                                        .type = l->type,
                                        .rows_type = l->rows,
                                        .x = l->y,
                                        .gain = weight(l, 7),
                                        .rstd = l->small[1],
                                        .dy = l->z,
                                        .dx = l->dx,
                                        .dgain = l->small[5]};
    ops->layernorm_backward(l->math, &d);
    const zero_swiglu s = {
        .rows = ROWS, .F = C, .rows_type = l->rows, .x = l->big, .y = l->y};
    ops->swiglu(l->math, &s);
    zero_swiglu back = s;
    back.y = NULL, back.d = l->wide;
    ops->swiglu_backward(l->math, &back);
    const zero_branch b = {.B = B,
                           .T = T,
                           .cols = C,
                           .type = l->type,
                           .rows_type = l->rows,
                           .residual = l->x,
                           .in = l->y,
                           .out = l->y};
    ops->add_branch(l->math, &b);
}

/* Not the backward pass of a model: every call once more, on what is there. */
static void compute_backward(const lab *l)
{
    const zero_backend *ops = l->ops;
    zero_attention a = attention_of(l);
    a.out = l->y, a.dout = l->dx;
    ops->attention(l->math, &a);
    ops->attention_backward(l->math, &a);
    ops->cross_entropy(l->math, &(zero_cross_entropy){.rows = ROWS,
                                                      .V = C,
                                                      .targets = l->tokens,
                                                      .dscale = 0.5f,
                                                      .logits = l->logits,
                                                      .loss = l->small[3]});
    ops->bias_gelu_backward(l->math, &(zero_bias_grad){.rows = ROWS,
                                                       .rows_type = l->rows,
                                                       .cols = C,
                                                       .x = l->z,
                                                       .dy = l->dx,
                                                       .dx = l->dx,
                                                       .accumulate = true,
                                                       .dbias = l->small[4]});
    ops->bias_backward(l->math, &(zero_bias_grad){.rows = ROWS,
                                                  .rows_type = l->rows,
                                                  .cols = C,
                                                  .dy = l->dx,
                                                  .accumulate = true,
                                                  .dbias = l->small[5]});
    zero_layernorm_grad_args n = {ROWS,         C,           l->type,     l->rows, l->x,
                                  weight(l, 7), l->small[0], l->small[1], l->dx,   l->y,
                                  true,         l->small[4], l->small[5]};
    ops->layernorm_backward(l->math, &n);
    zero_embedding_grad e = {B,         T,       C,    0,       0,
                             l->tokens, l->rows, l->y, l->wide, l->wide + V * C};
    ops->embedding_backward(l->math, &e);
    e.first = 2, e.words = 3;
    ops->embedding_backward(l->math, &e);
    zero_gemm g = {.m = ROWS, .n = C, .k = C, .a = l->dx, .b = l->wide, .c = l->z};
    g.transpose_b = true, g.accumulate = l->rows == ZERO_FP32;
    g.a_type = g.c_type = l->rows;
    ops->gemm(l->math, &g);
    g.accumulate = false, g.slices = 2, g.slice_parts = C / 8, g.c = l->x;
    ops->gemm(l->math, &g);
}

static void compute_update(const lab *l)
{
    const zero_backend *ops = l->ops;
    const zero_adamw recipe = test_recipe();
    ops->sum_squares(l->math, ZERO_FP32, N, l->dx, &l->sum[0]);
    ops->sum_squares(l->math, l->type, V * C, l->weights, &l->sum[1]);
    ops->clear(l->math, N, l->x);
    ops->clear(l->math, N, l->y);
    ops->accumulate(l->math, l->type, N, NULL, l->dx, l->dx);
    ops->accumulate(l->math, l->type, N, l->big, l->dx, l->big);
    zero_adamw_arrays moved = {N, l->type, l->weights, l->z, l->x, l->y, NULL, 0, NULL};
    if (l->type != ZERO_FP32) moved.param = l->big;
    ops->adamw(l->math, &recipe, &moved);
}

static void compute_all(const lab *l)
{
    compute_forward(l);
    compute_backward(l);
    compute_others(l);
    compute_update(l);
}

static void fill(char *memory, size_t bytes)
{
    const zero_rng rng = {.seed = 7, .purpose = ZERO_RNG_TEST};
    zero_rng_normal(&rng, 0, (int64_t)(bytes / sizeof(float)), (float *)memory);
    for (int i = 0; i < ROWS; i++) ((int32_t *)memory)[i] = i * 7 % C; /* C < V */
}

/* Stored in four pieces and fetched in two. */
static void compute_on_device(const device *d, zero_type type, zero_type rows)
{
    const lab l = make_lab(fake, &d->math, type, rows, d->memory);
    zero_ticket last = 0;
    for (size_t i = 0; i < 4; i++) last = device_store(d, i * d->bytes / 4, d->bytes / 4);
    assert_ok(fake->memory->after(&d->math, last));
    compute_all(&l);
    device_wait(d, last); /* the host's end is used again */
    last = device_fetch(d, 0, d->bytes / 2);
    last = device_fetch(d, d->bytes / 2, d->bytes / 2);
    device_wait(d, last);
}

static void check_types(zero_type type, zero_type rows)
{
    const size_t bytes = lab_bytes;
    char *want = device_host(bytes);
    fill(want, bytes);
    zero_math math = test_opened(&zero_backend_cpu);
    const lab l = make_lab(&zero_backend_cpu, &math, type, rows, want);
    compute_all(&l);
    assert_true(isfinite(l.sum[0]) && isfinite(l.small[3][0]) && isfinite(l.z[N - 1]));
    for (int order = 0; order <= ORDERS; order++) {
        device d = device_open(order, bytes);
        fill(d.host, bytes);
        compute_on_device(&d, type, rows);
        assert_memory_equal(d.host, want, bytes);
        assert_int_equal(zero_fake_counted(&d.math).bytes_fetched, bytes);
        assert_int_equal(zero_fake_counted(&d.math).bytes_stored, bytes);
        device_close(&d);
    }
    munmap(want, bytes);
}

TEST(all_calls_have_the_bits_of_the_cpu_backend_in_any_order)
{
    check_types(ZERO_FP32, ZERO_FP32);
    check_types(ZERO_BF16, ZERO_FP32);
    check_types(ZERO_FP16, ZERO_FP32);
    check_types(ZERO_BF16, ZERO_BF16);
    check_types(ZERO_FP16, ZERO_FP16);
}

TEST(devices_of_one_process_are_apart)
{
    device a = device_open(1, 65536), b = device_open(2, 65536);
    zero_ticket ticket;
    memset(a.host, 1, a.bytes);
    device_wait(&a, device_store(&a, 0, a.bytes));
    device_wait(&b, device_fetch(&b, 0, b.bytes));
    assert_int_equal(b.host[5], 0);
    assert_int_equal(fake->memory->fetch(&b.math, b.host, a.memory, 16, &ticket),
                     ZERO_ERR_INVALID);
    assert_int_not_equal(fake->sync(&b.math), ZERO_OK);
    device_wait(&a, device_fetch(&a, 0, a.bytes));
    assert_int_equal(a.host[5], 1);
    device_close(&b);
    device_close(&a);
}
