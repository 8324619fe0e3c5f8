/* Trainers on a device, the fake one: every number that a program can read is the CPU's. */
#include "support/device_fault.h"
#include "support/library_test.h"

#include <dirent.h>
#include <unistd.h>

#include <zero/gpt2.h>

enum { STEPS = 4, VOCAB = 11, MOST_PARAMS = 2048 };

static const zero_gpt2_shape shape = {
    .layers = 1, .hidden = 8, .heads = 2, .seq = 5, .vocab = VOCAB, .dropout = 0.1f};

static void words(const void *arg, int64_t step, int64_t i, int64_t T, void *inputs,
                  void *targets)
{
    int32_t *x = inputs, *y = targets;
    (void)arg;
    for (int64_t t = 0; t < T; t++) {
        x[t] = (int32_t)((7 * step + 3 * i + t * t) % VOCAB);
        y[t] = (int32_t)((x[t] + i) % VOCAB);
    }
}

static const zero_source source = {.sample = words};

static zero_step_input input_of(int64_t step)
{
    zero_step_input in = tied_input;
    in.step = step;
    return in;
}

static zero_trainer_spec spec_of(const zero_model *model, int stage, zero_type type)
{
    return (zero_trainer_spec){.model = model,
                               .stage = stage,
                               .type = type,
                               .micro_batch = 2,
                               .accumulation = 2,
                               .recompute = stage == 1,
                               .check_replicas = 1,
                               .check_memory = type == ZERO_BF16,
                               .seed = 7};
}

/* ---- what a program reads ---- */

/* Zeroed first, so that it can be compared as bytes. */
typedef struct {
    double loss[STEPS], norm[STEPS], computed, evaluated;
    float gradients[MOST_PARAMS], params[MOST_PARAMS];
    char digest[33];
} outcome;

typedef zero_status read_function(zero_trainer *t, const char *tensor, float *values);

static void read_all(zero_trainer *t, const zero_model *model, read_function *read,
                     float *values)
{
    assert_true(model->n_params <= MOST_PARAMS);
    for (int i = 0; i < model->n_tensors; i++) {
        const zero_tensor *tensor = &model->tensors[i];
        assert_ok(read(t, tensor->name, values));
        values += tensor->rows * tensor->cols;
    }
}

static void look(zero_trainer *t, const zero_model *model, outcome *o)
{
    zero_step_result computed;
    const float values[] = {0.25f, -0.5f};
    all_ok(zero_trainer_compute(t, &source, 9, &computed));
    o->computed = computed.loss;
    read_all(t, model, zero_trainer_gradient, o->gradients);
    all_ok(zero_trainer_write(t, model->tensors[1].name, 3, 5, values));
    read_all(t, model, zero_trainer_read, o->params);
    all_ok(zero_trainer_evaluate(t, &source, &o->evaluated));
}

static void check_ledger(zero_trainer *t)
{
    zero_trainer_ledger l;
    all_ok(zero_trainer_count(t, &l));
    assert_all(l.measured_peak > 0 && l.planned_peak == l.measured_peak &&
               l.planned_sent == l.measured_sent &&
               l.planned_received == l.measured_received);
}

/* The last step is another trainer's, on `second`, which resumes from the first one's checkpoint. */
static void train(const zero_trainer_spec *spec, const char *second, const char *dir,
                  zero_comm *comm, outcome *o)
{
    zero_trainer_spec other = *spec;
    if (!second || strcmp(second, "fake") != 0) other.offload = NULL;
    zero_trainer *t = open_trainer(spec, comm);
    zero_step_result result;
    int64_t step = 0;
    memset(o, 0, sizeof *o);
    for (; step < STEPS; step++) {
        zero_step_input in = input_of(step);
        if (step == STEPS - 2) look(t, spec->model, o);
        if (step == STEPS - 1) {
            int64_t resumed = 0;
            all_ok(zero_trainer_save(t, dir, step));
            zero_trainer_close(&t);
            other.device = second;
            t = open_trainer(&other, comm);
            all_ok(zero_trainer_resume(t, dir, &resumed));
            assert_true(resumed == step);
        }
        if (zero_trainer_step(t, &source, &in, &result) != ZERO_OK)
            fail_msg("step %d: %s", (int)step, zero_last_error());
        o->loss[step] = result.loss;
        o->norm[step] = result.grad_norm;
    }
    all_ok(zero_trainer_digest(t, o->digest));
    check_ledger(t);
    zero_trainer_close(&t);
}

/* ---- directories of checkpoints ---- */

static void remove_all(const char *path)
{
    DIR *dir = opendir(path);
    char inner[512];
    if (!dir) {
        unlink(path);
        return;
    }
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
        remove_all(inner);
    }
    closedir(dir);
    rmdir(path);
}

static void make_directory(char path[32])
{
    snprintf(path, 32, "library_device_XXXXXX");
    if (test_rank == 0) assert_non_null(mkdtemp(path));
    MPI_Bcast(path, 32, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void remove_directory(const char *path)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (test_rank == 0) remove_all(path);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- the bits of the CPU ---- */

static void compare(const zero_trainer_spec *spec, zero_comm *comm)
{
    static const char *const devices[][2] = {
        {NULL, "cpu"}, {"fake", "fake"}, {"fake", NULL}, {"cpu", "fake"}};
    static outcome want, got;
    for (int k = 0; k < 4; k++) {
        zero_trainer_spec placed = *spec;
        char dir[32];
        make_directory(dir);
        placed.device = devices[k][0];
        if (k == 1) placed.offload = "host";
        train(&placed, devices[k][1], dir, comm, k == 0 ? &want : &got);
        remove_directory(dir);
        if (k > 0 && memcmp(&want, &got, sizeof want) != 0 && test_rank == 0)
            print_error("stage %d, type %d, devices %d: digest %s, on the CPU %s\n",
                        spec->stage, (int)spec->type, k, got.digest, want.digest);
        assert_all(k == 0 || memcmp(&want, &got, sizeof want) == 0);
    }
}

TEST(a_device_changes_no_bit)
{
    zero_comm *comm = open_world();
    zero_model model;
    fault_in(0);
    all_ok(zero_gpt2_describe(&shape, &model));
    for (int stage = 0; stage <= 3; stage++) {
        zero_trainer_spec spec = spec_of(&model, stage, (zero_type)(stage % 3));
        compare(&spec, comm);
    }
    zero_model_destroy(&model);
    zero_comm_close(&comm);
}

/* ---- devices that fail ---- */

/* False if a function failed, as it must then on all ranks. */
static bool use(zero_trainer *t, const zero_model *model, const char *dir, int call)
{
    static float values[MOST_PARAMS];
    const char *name = model->tensors[0].name;
    const zero_step_input in = input_of(0);
    zero_step_result result;
    int64_t step;
    double loss;
    return fault_missed("step", call, zero_trainer_step(t, &source, &in, &result)) &&
           fault_missed("gradient", call, zero_trainer_gradient(t, name, values)) &&
           fault_missed("read", call, zero_trainer_read(t, name, values)) &&
           fault_missed("write", call, zero_trainer_write(t, name, 0, VOCAB, values)) &&
           fault_missed("evaluate", call, zero_trainer_evaluate(t, &source, &loss)) &&
           fault_missed("save", call, zero_trainer_save(t, dir, 1)) &&
           fault_missed("resume", call, zero_trainer_resume(t, dir, &step));
}

/* A checkpoint is there if its save succeeded, and then it is whole. */
static bool survives(const zero_trainer_spec *spec, zero_comm *comm, int call)
{
    char dir[32];
    zero_trainer *t = NULL;
    make_directory(dir);
    fault_in(call);
    bool is_well = fault_missed("open", call, zero_trainer_open(spec, comm, &t)) &&
                   use(t, spec->model, dir, call);
    zero_trainer_close(&t);
    remove_directory(dir);
    return is_well;
}

TEST(all_ranks_hear_of_every_failure)
{
    zero_comm *comm = open_world();
    zero_model model;
    all_ok(zero_gpt2_describe(&shape, &model));
    for (int stage = 1; stage <= 3; stage += 2) {
        zero_trainer_spec spec = spec_of(&model, stage, ZERO_FP16);
        int call = stage, failed = 0;
        spec.device = "fake";
        for (; !survives(&spec, comm, call); call += 19) failed++;
        if (test_rank == 0) printf("stage %d: %d failures\n", stage, failed);
        assert_true(failed > 10);
    }
    zero_model_destroy(&model);
    zero_comm_close(&comm);
}

/* ---- misuse ---- */

TEST(wrong_devices_are_refused)
{
    static const struct {
        zero_trainer_spec spec;
        const char *expected;
    } wrong[] = {
        {{.device = "abacus"}, "device 'abacus': expected one of"},
        {{.device = "cuda:"}, "device 'cuda:': expected numbers"},
        {{.device = "fake:0"}, "fake has no numbers"},
        {{.device = "fake", .backend = "naive"}, "backend 'naive' with device 'fake'"},
        {{.device = "fake", .stage = 3, .offload = ".", .offload_parameters = true},
         "--offload-parameters with --device"},
        {{.offload = "host"}, "lie in the host's memory already"},
    };
    zero_comm *comm = open_world();
    zero_trainer *t = NULL;
    zero_model model;
    all_ok(zero_gpt2_describe(&shape, &model));
    for (size_t i = 0; i < COUNT(wrong); i++) {
        zero_trainer_spec spec = wrong[i].spec;
        spec.model = &model;
        zero_status st = zero_trainer_open(&spec, comm, &t);
        refused(st, wrong[i].expected);
    }
    zero_trainer_spec spec = {.model = &model};
    if (test_size > 1) {
        if (test_rank == test_size - 1) spec.device = "fake";
        zero_status st = zero_trainer_open(&spec, comm, &t);
        refused(st, "device");
    }
    zero_model_destroy(&model);
    zero_comm_close(&comm);
}

/* A loop of the program's own would be the host's. */
TEST(units_with_loops_are_refused)
{
    zero_comm *comm = open_world();
    zero_trainer *t = NULL;
    zero_model model;
    describe_tied(&model);
    zero_trainer_spec spec = tied_spec(&model);
    spec.device = "fake";
    zero_status st = zero_trainer_open(&spec, comm, &t);
    refused(st, "unit 'in'");
    refused(st, "computes_by_layers");
    zero_model_destroy(&model);
    zero_comm_close(&comm);
}
