/* A model of your own under any stage of ZeRO, with the public headers alone: two layers,
 *     h = tanh(x W1 + b1)                            unit "hidden", group "first"
 *     y = h W2 + b2, loss = (y - target)^2 / 2       unit "output", group "second"
 * on generated samples of one position (T = 1): FEATURES floats in, one float as the target. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <zero/check.h>
#include <zero/layers.h>
#include <zero/train.h>

enum { FEATURES = 8, HIDDEN = 40, STEPS = 60 };

/* The unit's first tensor is a weight, the second its bias. */
static zero_linear layer(const zero_unit *u, const zero_call *c)
{
    return (zero_linear){.unit = u, .call = c, .rows = c->batch->B * c->batch->T};
}

/* The hidden layer saves h, from which the derivative of tanh follows. */
static zero_unit_sizes hidden_sizes(const zero_unit *u, int64_t B, int64_t T)
{
    (void)u;
    return (zero_unit_sizes){.out = B * T * HIDDEN, .saved = B * T * HIDDEN};
}

static void hidden_forward(const zero_unit *u, const zero_call *c)
{
    zero_linear linear = layer(u, c);
    zero_linear_forward(&linear, c->batch->inputs, c->out);
    for (int64_t i = 0; i < linear.rows * HIDDEN; i++)
        c->saved[i] = c->out[i] = tanhf(c->out[i]);
    zero_poll(c); /* longer loops poll about once a millisecond */
}

static void hidden_backward(const zero_unit *u, const zero_call *c)
{
    zero_linear linear = layer(u, c);
    for (int64_t i = 0; i < linear.rows * HIDDEN; i++)
        c->stream[i] *= 1.0f - c->saved[i] * c->saved[i];
    zero_linear_backward(&linear, c->batch->inputs, c->stream, NULL);
}

static zero_unit_sizes output_sizes(const zero_unit *u, int64_t B, int64_t T)
{
    (void)u;
    int64_t rows = B * T;
    return (zero_unit_sizes){.forward_work = rows, .backward_work = rows, .row_loss = rows};
}

static void output_forward(const zero_unit *u, const zero_call *c)
{
    const float *target = c->batch->targets;
    zero_linear linear = layer(u, c);
    if (!c->row_loss) return; /* training: backward finds the loss */
    zero_linear_forward(&linear, c->in, c->work);
    for (int64_t i = 0; i < linear.rows; i++) {
        c->work[i] -= target[i];
        c->row_loss[i] = 0.5f * c->work[i] * c->work[i];
    }
}

static void output_backward(const zero_unit *u, const zero_call *c)
{
    zero_linear linear = layer(u, c);
    output_forward(u, c); /* leaves y - target, the derivative, in work */
    for (int64_t i = 0; i < linear.rows; i++) c->work[i] *= c->batch->loss_seed;
    zero_linear_backward(&linear, c->in, c->work, c->stream);
}

/* Tensors, groups, and the units that read them. */
static zero_status describe(zero_model *model)
{
    const zero_init_kind normal = ZERO_INIT_NORMAL;
    const zero_tensor tensors[] = {
        {"fc1.weight", FEATURES, HIDDEN, .decays = true, .init = normal, .init_std = 0.5f},
        {"fc1.bias", 1, HIDDEN, .group = 0},
        {"fc2.weight", HIDDEN, 1, .group = 1, .init = normal, .init_std = 0.2f},
        {"fc2.bias", 1, 1, .group = 1}};
    const char *const groups[] = {"first", "second"};
    zero_unit units[] = {{"hidden", .n_groups = 1, .groups = {0}, .sizes = hidden_sizes},
                         {"output", .n_groups = 1, .groups = {1}, .sizes = output_sizes}};
    units[0].forward = hidden_forward, units[0].backward = hidden_backward;
    units[1].forward = output_forward, units[1].backward = output_backward;
    zero_model_tables tables = {4, 2, 2, tensors, groups, units, .seq = 1};
    tables.input_bytes = FEATURES * sizeof(float), tables.target_bytes = sizeof(float);
    return zero_model_describe(&tables, model);
}

/* Sample i of a step is the same, whichever rank asks for it. */
static void sample(const void *arg, int64_t step, int64_t i, int64_t T, void *x, void *y)
{
    (void)arg, (void)T;
    float *in = x, *target = y;
    for (int k = 0; k < FEATURES; k++)
        in[k] = sinf((float)(k + 1) * (float)(97 * step + i + 1));
    *target = in[0] * in[1] + sinf(2.0f * in[2]);
}

/* All ranks fail together, with one message. The program ends them. */
static void check(zero_status status)
{
    if (status == ZERO_OK) return;
    fprintf(stderr, "%s\n", zero_last_error());
    MPI_Abort(MPI_COMM_WORLD, zero_exit_code(status));
}

static void end(const char *reason)
{
    fprintf(stderr, "%s\n", reason);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void train(const zero_trainer_spec *spec, zero_comm *comm, char digest[33])
{
    zero_trainer *trainer;
    const zero_source source = {.sample = sample};
    zero_step_input in = {.lr = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8};
    zero_step_result first, last;
    check(zero_trainer_open(spec, comm, &trainer));
    check(zero_trainer_step(trainer, &source, &in, &first));
    for (in.step = 1; in.step < STEPS; in.step++)
        check(zero_trainer_step(trainer, &source, &in, &last));
    check(zero_trainer_digest(trainer, digest));
    zero_trainer_close(&trainer);
    if (zero_comm_rank(comm) == 0)
        printf("%s, stage %d: loss %.4f, then %.4f, digest %s\n",
               zero_type_name(spec->type), spec->stage, first.loss, last.loss, digest);
    if (!(last.loss < 0.5 * first.loss)) end("the loss did not fall enough");
}

/* All stages end with the same bits, in each type. */
static void train_all(zero_comm *comm)
{
    zero_model model;
    char first[33] = "", digest[33];
    const zero_source source = {.sample = sample};
    check(describe(&model));
    for (int u = 0; u < model.n_units;
         u++) /* against finite differences, without a trainer */
        check(zero_unit_check(&model, u, &source, NULL, NULL));
    zero_trainer_spec spec = {.model = &model, .micro_batch = 32, .seed = 1};
    for (spec.type = ZERO_FP32; spec.type <= ZERO_BF16; spec.type++)
        for (spec.stage = 0; spec.stage <= 3; spec.stage++) {
            train(&spec, comm, digest);
            if (spec.stage == 0) memcpy(first, digest, sizeof first);
            if (strcmp(first, digest) != 0) end("a stage has other bits than stage 0");
        }
    zero_model_destroy(&model);
}

int main(int argc, char **argv)
{
    zero_comm *comm = NULL;
    MPI_Init(&argc, &argv);
    check(zero_comm_open(MPI_COMM_WORLD, 60.0, &comm));
    train_all(comm);
    zero_comm_close(&comm);
    return MPI_Finalize();
}
