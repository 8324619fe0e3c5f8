/* Models of all architectures beside those of transformers: losses, gradients, frequencies. */
#include "support/unit_machine.h"

/* The parameters of a run of tensors that lie end to end, as the list of golden numbers counts them: q, k
 * and v are one, and so are gate and up. */
static int64_t golden_run(const machine *m, int *tensor)
{
    static const char *const followers[] = {"k_proj.weight", "v_proj.weight", "k_proj.bias",
                                            "v_proj.bias", "up_proj.weight"};
    const zero_tensor *t = &m->model.tensors[*tensor];
    int64_t n = t->rows * t->cols;
    for (bool follows = true; follows && ++*tensor < m->model.n_tensors;) {
        const char *name = m->model.tensors[*tensor].name;
        follows = false;
        for (size_t i = 0; i < COUNT(followers); i++)
            follows |= strstr(name, followers[i]) != NULL;
        t = &m->model.tensors[*tensor];
        if (follows) n += t->rows * t->cols;
    }
    return n;
}

/* Element i of golden tensor t is 0.3 sin(0.37 (i + 1) + t), of a gain 1 more; token j of sample b is
 * (7 j + 3 + 5 b + j^2) mod 40. Loss and gradient norm are those of transformers' models in float64. */
static void check_golden(test_pool *pool, const zero_backend *backend,
                         const zero_shape *shape, double loss, double norm)
{
    machine m;
    make_machine(pool, &m, shape, 2, 9);
    if (backend != &zero_backend_naive) open_backend(pool, &m, backend);
    int32_t *inputs = (int32_t *)(uintptr_t)m.batch.inputs,
            *targets = (int32_t *)(uintptr_t)m.batch.targets;
    for (int b = 0; b < 2; b++)
        for (int j = 0; j <= 9; j++) {
            const int32_t token = (7 * j + 3 + 5 * b + j * j) % 40;
            if (j < 9) inputs[b * 9 + j] = token;
            if (j > 0) targets[b * 9 + j - 1] = token;
        }
    for (int i = 0, number = 0; i < m.model.n_tensors; number++) {
        const zero_tensor *t = &m.model.tensors[i];
        const int64_t n = golden_run(&m, &i);
        for (int64_t k = 0; k < n; k++)
            m.param[t->group][t->offset + k] =
                (float)(0.3 * sin(0.37 * (double)(k + 1) + number) +
                        (t->init == ZERO_INIT_ONES ? 1.0 : 0.0));
    }
    gradient(&m);
    double sum = 0.0;
    for (int g = 0; g < m.model.n_groups; g++)
        for (int64_t k = 0; k < m.model.groups[g].n_params; k++)
            sum += (double)m.grad[g][k] * (double)m.grad[g][k];
    if (!(fabs(mean_loss(&m) / loss - 1.0) < 1e-6 && fabs(sqrt(sum) / norm - 1.0) < 1e-5))
        fail_msg("%s, %s: loss %.9f, gradient norm %.9f", shape->kind->name, backend->name,
                 mean_loss(&m), sqrt(sum));
    zero_model_destroy(&m.model);
}

TEST(losses_and_gradients_are_those_of_transformers)
{
    static const struct {
        zero_shape shape;
        double loss, norm;
    } golden[] = {
        {{OTHER(ZERO_LLAMA, 16, 4, 2, 4, 24), .seq = 9, .vocab = 40, .theta = 5e5,
          .scaling = {8, 1, 4, 16}},
         4.637789488,
         1.766899763},
        {{OTHER(ZERO_QWEN2, 16, 4, 2, 4, 24), .seq = 9, .vocab = 40, .tied = true},
         4.115257310,
         1.676406858},
        {{OTHER(ZERO_QWEN3, 16, 4, 2, 6, 24), .seq = 9, .vocab = 40},
         3.772203896,
         1.189027504},
        {{OTHER(ZERO_NEOX, 16, 4, 4, 4, 64), .seq = 9, .vocab = 40, .rotary = 0.5},
         4.182436526,
         1.563464708},
    };
    for (size_t i = 0; i < COUNT(golden); i++) {
        check_golden(*state, &zero_backend_naive, &golden[i].shape, golden[i].loss,
                     golden[i].norm);
        check_golden(*state, &zero_backend_cpu, &golden[i].shape, golden[i].loss,
                     golden[i].norm);
    }
}

/* Llama 3.1: of 64 frequencies the 29 fastest stay, six lie between, and the others are divided. */
TEST(long_wavelengths_are_stretched)
{
    zero_shape shape;
    float plain[64], stretched[64];
    int stay = 0, divided = 0;
    assert_ok(zero_model_preset("llama3.1-405b", &shape));
    shape = zero_shape_complete(&shape);
    zero_shape_frequencies(&shape, stretched);
    shape.scaling.factor = 0.0;
    zero_shape_frequencies(&shape, plain);
    for (int i = 0; i < 64; i++) {
        stay += stretched[i] == plain[i];
        divided += stretched[i] == plain[i] / 8.0f;
        assert_true(stretched[i] <= plain[i] && stretched[i] >= plain[i] / 8.0f);
    }
    assert_int_equal(stay, 29);
    assert_int_equal(divided, 29);
}
