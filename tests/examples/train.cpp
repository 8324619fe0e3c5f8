/* GPT-2 in C++17: two blocks learn to count in steps, each rank on samples of its own. The
 * library's handles are closed by unique_ptr. */
#include <cstdio>
#include <memory>

#include <zero/gpt2.h>
#include <zero/train.h>
#include <zero/version.h>

namespace
{
constexpr int vocab = 32, steps = 80;

/* All ranks fail together, with one message. The program ends them. */
void check(zero_status status)
{
    if (status == ZERO_OK) return;
    std::fprintf(stderr, "%s\n", zero_last_error());
    MPI_Abort(MPI_COMM_WORLD, zero_exit_code(status));
}

struct closer {
    void operator()(zero_comm *comm) const
    {
        zero_comm_close(&comm);
    }
    void operator()(zero_trainer *trainer) const
    {
        zero_trainer_close(&trainer);
    }
    void operator()(zero_model *model) const
    {
        zero_model_destroy(model);
        delete model;
    }
};
template <typename T> using owned = std::unique_ptr<T, closer>;

owned<zero_comm> open_world()
{
    zero_comm *comm = nullptr;
    check(zero_comm_open(MPI_COMM_WORLD, 60.0, &comm));
    return owned<zero_comm>(comm);
}

owned<zero_model> describe()
{
    zero_gpt2_shape shape = {};
    shape.layers = 2;
    shape.hidden = 32;
    shape.heads = 2;
    shape.seq = 16;
    shape.vocab = vocab;
    owned<zero_model> model(new zero_model());
    check(zero_gpt2_describe(&shape, model.get()));
    return model;
}

owned<zero_trainer> open_trainer(const zero_trainer_spec &spec, zero_comm *comm)
{
    zero_trainer *trainer = nullptr;
    check(zero_trainer_open(&spec, comm, &trainer));
    return owned<zero_trainer>(trainer);
}

/* Sample i of a step counts from `step` in steps of 1 to 3; the targets are one ahead. */
extern "C" void sample(const void *, int64_t step, int64_t i, int64_t T, void *inputs,
                       void *targets)
{
    auto *in = static_cast<int32_t *>(inputs), *target = static_cast<int32_t *>(targets);
    for (int64_t t = 0; t < T; t++) {
        in[t] = static_cast<int32_t>((step + t * (i % 3 + 1)) % vocab);
        target[t] = static_cast<int32_t>((step + (t + 1) * (i % 3 + 1)) % vocab);
    }
}

/* Whether the loss falls by half. */
bool learns(zero_trainer *trainer, bool shows)
{
    zero_source source = {};
    zero_step_input in = {};
    zero_step_result first = {}, last = {};
    source.sample = sample;
    in.lr = 1e-2, in.beta1 = 0.9, in.beta2 = 0.95, in.eps = 1e-8, in.clip = 1.0;
    check(zero_trainer_step(trainer, &source, &in, &first));
    for (in.step = 1; in.step < steps; in.step++)
        check(zero_trainer_step(trainer, &source, &in, &last));
    if (shows)
        std::printf("zero %s: loss %.4f, then %.4f\n", zero_version(), first.loss,
                    last.loss);
    return last.loss < 0.5 * first.loss;
}

/* All handles are closed when it returns, before MPI ends. */
bool train()
{
    auto comm = open_world();
    auto model = describe();
    zero_trainer_spec spec = {};
    spec.model = model.get();
    spec.stage = 2;
    spec.type = ZERO_BF16;
    spec.micro_batch = 4;
    auto trainer = open_trainer(spec, comm.get());
    return learns(trainer.get(), zero_comm_rank(comm.get()) == 0);
}
} // namespace

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    bool learned = train();
    if (!learned) std::fprintf(stderr, "the loss did not fall enough\n");
    MPI_Finalize();
    return learned ? 0 : 1;
}
