/* A training loop of your own, with the library's sharded optimizer alone: linear regression,
 * y = w x, with fp32 or bf16 weights, each rank on samples of its own.
 *
 * The optimizer sees one flat array of weights and one of gradients, and nothing else. */
#include <stdio.h>
#include <stdlib.h>

#include <zero/optimizer.h>

enum { N = 1000, SAMPLES = 16, STEPS = 120 };

static float *weights_as_floats(zero_type type, const void *params, float room[N])
{
    zero_convert(type, ZERO_FP32, N, params, room);
    return room;
}

/* The weights to be learned, and sample `number`, in which only some inputs are not 0. */
static float true_weight(int i)
{
    return (float)(i % 7 - 3) * 0.25f;
}

static float input(int number, int i)
{
    return (float)((number * 31 + i * 17) % 5 - 2) * 0.05f;
}

/* This rank's mean loss, and the gradient of it. */
static float backward(zero_comm *comm, int step, const float w[N], float grad[N])
{
    float loss = 0.0f;
    for (int i = 0; i < N; i++) grad[i] = 0.0f;
    for (int s = 0; s < SAMPLES; s++) {
        int number = (step * zero_comm_size(comm) + zero_comm_rank(comm)) * SAMPLES + s;
        float error = 0.0f;
        for (int i = 0; i < N; i++) error += (w[i] - true_weight(i)) * input(number, i);
        for (int i = 0; i < N; i++) grad[i] += error * input(number, i) / SAMPLES;
        loss += 0.5f * error * error / SAMPLES;
    }
    return loss;
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

/* Each rank's gradient is a mean over its own samples, so their sum is divided by N_d. */
static void loop(zero_optimizer *optimizer, zero_comm *comm, zero_type type, void *params,
                 void *grads, float loss[2])
{
    zero_optimizer_input in = {.lr = 0.01,
                               .beta1 = 0.9,
                               .beta2 = 0.95,
                               .eps = 1e-8,
                               .clip = 1.0,
                               .divisor = zero_comm_size(comm)};
    zero_optimizer_result out;
    float w[N], grad[N];
    for (int step = 0; step < STEPS; step++) {
        loss[step > 0] = backward(comm, step, weights_as_floats(type, params, w), grad);
        zero_convert(ZERO_FP32, type, N, grad, grads);
        check(zero_optimizer_step(optimizer, params, grads, &in, &out));
    }
}

static void train(zero_comm *comm, zero_type type)
{
    zero_optimizer_spec spec = {.n_params = N, .type = type};
    zero_optimizer *optimizer;
    float loss[2];
    void *params = calloc(N, zero_type_size(type)), *grads = malloc(N * sizeof(float));
    if (!params || !grads) end("out of memory");
    check(zero_optimizer_open(&spec, comm, params, &optimizer));
    loop(optimizer, comm, type, params, grads, loss);
    zero_optimizer_close(&optimizer);
    free(params);
    free(grads);
    if (zero_comm_rank(comm) == 0)
        printf("%s: loss %.5f, then %.5f\n", zero_type_name(type), (double)loss[0],
               (double)loss[1]);
    if (!(loss[1] < 0.2f * loss[0])) end("the loss did not fall enough");
}

int main(int argc, char **argv)
{
    zero_comm *comm = NULL;
    MPI_Init(&argc, &argv);
    check(zero_comm_open(MPI_COMM_WORLD, 60.0, &comm));
    train(comm, ZERO_FP32);
    train(comm, ZERO_BF16);
    zero_comm_close(&comm);
    return MPI_Finalize();
}
