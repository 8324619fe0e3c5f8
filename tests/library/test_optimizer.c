/* The sharded optimizer alone against the trainer: equal gradients, equal bits. */
#include "support/mpi_cmocka.h"

#include "support/library_models.h"

#include <zero/optimizer.h>

enum { STEPS = 5, ROWS = 3 };

static const zero_step_input hyper = {
    .lr = 3e-2, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .clip = 1.0};

static zero_optimizer_input input_of(double divisor)
{
    return (zero_optimizer_input){.lr = hyper.lr,
                                  .beta1 = hyper.beta1,
                                  .beta2 = hyper.beta2,
                                  .eps = hyper.eps,
                                  .weight_decay = hyper.weight_decay,
                                  .clip = hyper.clip,
                                  .divisor = divisor};
}

static zero_comm *open_world(void)
{
    zero_comm *comm;
    all_ok(zero_comm_open(MPI_COMM_WORLD, 60.0, &comm));
    return comm;
}

static void read_all(zero_trainer *t, int64_t n, float *values)
{
    all_ok(zero_trainer_read(t, "w", values));
    all_ok(zero_trainer_read(t, "b", values + n - 1));
}

/* The masters that the trainer begins and ends with, in stage 1. */
static void by_trainer(int64_t n, zero_type type, float *first, float *last,
                       zero_step_result results[STEPS])
{
    const zero_source source = {.sample = flat_sample, .arg = &n};
    zero_model model;
    zero_trainer *t;
    zero_comm *comm = open_world();
    all_ok(flat_describe(&n, &model));
    zero_trainer_spec spec = {
        .model = &model, .stage = 1, .type = type, .micro_batch = ROWS, .seed = 3};
    all_ok(zero_trainer_open(&spec, comm, &t));
    read_all(t, n, first);
    for (int step = 0; step < STEPS; step++) {
        zero_step_input in = hyper;
        in.step = step;
        all_ok(zero_trainer_step(t, &source, &in, &results[step]));
    }
    read_all(t, n, last);
    zero_trainer_close(&t);
    zero_comm_close(&comm);
    zero_model_destroy(&model);
}

/* A training loop of the program's own. */
struct loop {
    int64_t n;
    zero_type type;
    zero_comm *comm;
    zero_optimizer *optimizer;
    char *params, *grads;           /* [n] of type */
    float *x, *target, *wide, *sum; /* [ROWS][n], [ROWS], [n], [n] */
};

static void open_loop(struct loop *l, int64_t n, zero_type type, const float *masters)
{
    size_t bytes = (size_t)n * sizeof(float);
    zero_range last = {n - 1, n};
    zero_optimizer_spec spec = {
        .n_params = n, .type = type, .no_decay = &last, .n_no_decay = 1};
    *l = (struct loop){.n = n,
                       .type = type,
                       .comm = open_world(),
                       .params = malloc((size_t)n * zero_type_size(type)),
                       .grads = malloc((size_t)n * zero_type_size(type)),
                       .x = malloc(ROWS * bytes),
                       .target = malloc(ROWS * sizeof(float)),
                       .wide = malloc(bytes),
                       .sum = malloc(bytes)};
    zero_convert(ZERO_FP32, type, n, masters, l->params);
    all_ok(zero_optimizer_open(&spec, l->comm, l->params, &l->optimizer));
    /* The trainer's masters have more bits than its parameters. */
    zero_optimizer_part parts[2];
    zero_optimizer_parts(l->optimizer, parts);
    for (int i = 0; i < 2 && type != ZERO_FP32; i++)
        memcpy(parts[i].master, masters + parts[i].span.begin,
               (size_t)(parts[i].span.end - parts[i].span.begin) * sizeof *masters);
}

static void close_loop(struct loop *l)
{
    zero_optimizer_close(&l->optimizer);
    zero_comm_close(&l->comm);
    free(l->params);
    free(l->grads);
    free(l->x);
    free(l->target);
    free(l->wide);
    free(l->sum);
}

static void find_gradient(struct loop *l, int64_t step, double loss_scale)
{
    float loss[ROWS];
    for (int r = 0; r < ROWS; r++)
        flat_sample(&l->n, step, test_rank * ROWS + r, 1, l->x + r * l->n, l->target + r);
    zero_convert(l->type, ZERO_FP32, l->n, l->params, l->wide);
    flat_gradient(l->n, ROWS, l->wide, l->x, l->target,
                  (float)(loss_scale / (ROWS * test_size)), l->sum, loss);
    zero_convert(ZERO_FP32, l->type, l->n, l->sum, l->grads);
}

/* This rank's masters are the trainer's; its parameters are those, rounded. */
static bool has_reached(const struct loop *l, const float *masters)
{
    zero_optimizer_part parts[2];
    bool equal = true;
    zero_optimizer_parts(l->optimizer, parts);
    for (int i = 0; i < 2 && l->type != ZERO_FP32; i++)
        equal = equal && memcmp(parts[i].master, masters + parts[i].span.begin,
                                (size_t)(parts[i].span.end - parts[i].span.begin) * 4) == 0;
    zero_convert(ZERO_FP32, l->type, l->n, masters, l->grads);
    size_t bytes = (size_t)l->n * zero_type_size(l->type);
    return equal && memcmp(l->params, l->grads, bytes) == 0;
}

static void compare(int64_t n, zero_type type)
{
    float *first = malloc((size_t)n * 4), *last = malloc((size_t)n * 4);
    zero_step_result results[STEPS];
    struct loop l;
    by_trainer(n, type, first, last, results);
    open_loop(&l, n, type, first);
    for (int step = 0; step < STEPS; step++) {
        zero_optimizer_result out;
        zero_optimizer_input in = input_of(results[step].loss_scale);
        find_gradient(&l, step, results[step].loss_scale);
        zero_status st = zero_optimizer_step(l.optimizer, l.params, l.grads, &in, &out);
        assert_all(st == ZERO_OK && out.overflow == results[step].skipped);
        assert_all(out.overflow || (out.grad_norm <= results[step].grad_norm &&
                                    out.grad_norm >= results[step].grad_norm));
    }
    assert_all(has_reached(&l, last));
    close_loop(&l);
    free(first);
    free(last);
}

TEST(equal_gradients_give_the_bits_of_stage_1)
{
    const int64_t lengths[] = {
        2, 63, 64, 129, 64 * (int64_t)test_size, 64 * (int64_t)test_size + 1, 5000};
    for (size_t i = 0; i < COUNT(lengths); i++)
        for (zero_type type = ZERO_FP32; type <= ZERO_FP16; type++)
            compare(lengths[i], type);
}

TEST(the_parts_of_all_ranks_tile_the_flat_space)
{
    const int64_t n = 777;
    float *params = calloc((size_t)n, sizeof *params);
    int owners[777] = {0}, all[777];
    zero_optimizer_part parts[2];
    zero_optimizer *o;
    zero_comm *comm = open_world();
    zero_optimizer_spec spec = {.n_params = n, .updates = 5};
    all_ok(zero_optimizer_open(&spec, comm, params, &o));
    zero_optimizer_parts(o, parts);
    for (int i = 0; i < 2; i++)
        for (int64_t k = parts[i].span.begin; k < parts[i].span.end; k++) owners[k]++;
    MPI_Allreduce(owners, all, (int)n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int64_t k = 0; k < n; k++) assert_int_equal(all[k], 1);
    assert_int_equal(zero_optimizer_count(o), 5);
    zero_optimizer_close(&o);
    zero_comm_close(&comm);
    free(params);
}

TEST(one_rank_with_a_nan_keeps_all_from_updating)
{
    enum { N = 200 };
    float params[N], before[N], grads[N];
    zero_optimizer_spec spec = {.n_params = N};
    zero_optimizer_input in = input_of(1.0);
    zero_optimizer_result out;
    zero_optimizer *o;
    zero_comm *comm = open_world();
    for (int i = 0; i < N; i++) params[i] = before[i] = (float)i;
    for (int i = 0; i < N; i++) grads[i] = 1.0f;
    if (test_rank == test_size - 1) grads[3] = NAN;
    all_ok(zero_optimizer_open(&spec, comm, params, &o));
    all_ok(zero_optimizer_step(o, params, grads, &in, &out));
    assert_all(out.overflow && memcmp(params, before, sizeof params) == 0);
    assert_int_equal(zero_optimizer_count(o), 0);
    for (int i = 0; i < N; i++) grads[i] = 1.0f;
    all_ok(zero_optimizer_step(o, params, grads, &in, &out));
    assert_all(!out.overflow && params[N - 1] < before[N - 1]);
    assert_int_equal(zero_optimizer_count(o), 1);
    in.divisor = 0.0;
    assert_all(zero_optimizer_step(o, params, grads, &in, &out) == ZERO_ERR_INVALID);
    zero_optimizer_close(&o);
    zero_comm_close(&comm);
}

static void assert_refused(const zero_optimizer_spec *spec, const float *params,
                           zero_status expected, const char *text)
{
    zero_optimizer *o = NULL;
    zero_comm *comm = open_world();
    zero_status st = zero_optimizer_open(spec, comm, params, &o);
    assert_all(st == expected && !o);
    all_told(text);
    zero_comm_close(&comm);
}

TEST(a_spec_that_cannot_be_is_refused)
{
    const float params[4] = {0};
    const zero_range crossed[] = {{0, 2}, {1, 3}}, beyond[] = {{2, 5}};
    zero_optimizer_spec s = {.n_params = 4};
    assert_refused(&(zero_optimizer_spec){0}, params, ZERO_ERR_INVALID, "n_params 0");
    assert_refused(&s, NULL, ZERO_ERR_INVALID, "NULL");
    s.collectives = "shm";
    assert_refused(&s, params, ZERO_ERR_UNSUPPORTED, "'p2p'");
    s.collectives = "what";
    assert_refused(&s, params, ZERO_ERR_INVALID, "'what'");
    s.collectives = NULL, s.no_decay = crossed, s.n_no_decay = 2;
    assert_refused(&s, params, ZERO_ERR_INVALID, "no_decay[1] is [1, 3)");
    s.no_decay = beyond, s.n_no_decay = 1;
    assert_refused(&s, params, ZERO_ERR_INVALID, "[2, 5)");
    s.n_no_decay = 0, s.n_params = 4 - (test_rank == 1);
    if (test_size > 1)
        assert_refused(&s, params, ZERO_ERR_INVALID, "rank 1: the spec's n_params is 3");
}
