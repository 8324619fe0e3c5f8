/* Every optimizer against PyTorch's numbers, which optimizers.py wrote once; and the laws of an
 * update: any cut between elements, or between matrices, any number of threads and any
 * backend give the same bits. */
#include <stdio.h>

#include "support/math_test.h"

#include "math/backends.h"
#include "math/threads.h"
#include "sharding/update.h"

enum { STEPS = 20, TENSORS = 7, ALL = 80 + 12 + 3 * 240 + 256 + 12, ROOM = 4096 };

static zero_tensor tensors[TENSORS] = {
    {.name = "table", .rows = 10, .cols = 8, .decays = true},
    {.name = "gain", .rows = 1, .cols = 12},
    {.name = "wide", .rows = 12, .cols = 20, .decays = true, .is_hidden = true},
    {.name = "tall", .rows = 20, .cols = 12, .decays = true, .is_hidden = true},
    {.name = "turned",
     .rows = 20,
     .cols = 12,
     .decays = true,
     .is_hidden = true,
     .out_in = true},
    {.name = "square", .rows = 16, .cols = 16, .decays = true, .is_hidden = true},
    {.name = "bias", .rows = 1, .cols = 12},
};
static zero_group group = {.n_tensors = TENSORS, .n_params = ALL};
static const zero_model model = {.tensors = tensors,
                                 .groups = &group,
                                 .n_tensors = TENSORS,
                                 .n_groups = 1,
                                 .n_params = ALL};

static const struct {
    const char *name;
    float beta1, beta2;
    zero_muon_scale scale;
} runs[] = {{"adamw", 0.9f, 0.95f, ZERO_MUON_RMS},
            {"lion", 0.9f, 0.99f, ZERO_MUON_RMS},
            {"sgd", 0.9f, 0.95f, ZERO_MUON_RMS},
            {"muon", 0.95f, 0.95f, ZERO_MUON_RMS},
            {"muon", 0.95f, 0.95f, ZERO_MUON_ORIGINAL}};

/* As in optimizers.py. */
static void fill(int64_t n, uint64_t seed, float *x)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t word = (uint32_t)((uint64_t)i * 2654435761u + seed * 40503u);
        x[i] = ((float)(word >> 21) - 1024.0f) / 1024.0f;
    }
}

static void fill_all(uint64_t seed, float *x)
{
    for (int i = 0; i < TENSORS; i++)
        fill(tensors[i].rows * tensors[i].cols, seed + (uint64_t)i, x + tensors[i].offset);
}

typedef struct {
    const zero_backend *backend;
    zero_type type;
    int threads;
    int64_t cut; /* updates are made in two parts, [0, cut) and the rest; 0: in one */
    float master[ALL], momentum[ALL], variance[ALL];
    uint16_t param[ALL];
} trial;

static void set_up(void)
{
    int64_t at = 0;
    for (int i = 0; i < TENSORS; at += tensors[i].rows * tensors[i].cols, i++)
        tensors[i].offset = at;
    assert_int_equal(at, ALL);
}

/* The first of the elements before `at` that keep a second state. */
static int64_t kept_before(int optimizer, int64_t at)
{
    int64_t n = 0;
    for (int i = 0; i < TENSORS && tensors[i].offset < at; i++)
        if (zero_rule_states(optimizer, &tensors[i]) > 1)
            n += zero_min(at - tensors[i].offset, tensors[i].rows * tensors[i].cols);
    return n;
}

static void step(trial *t, int r, int optimizer, int at, const zero_math *math,
                 uint64_t *changed)
{
    float grad[ALL], room[ROOM];
    uint16_t halves[ALL];
    const zero_range parts[] = {{0, t->cut}, {t->cut, ALL}};
    fill_all(17 * (uint64_t)at, grad);
    bool is_exact = t->type == ZERO_FP32;
    if (!is_exact) zero_convert(ZERO_FP32, t->type, ALL, grad, halves);
    const zero_adamw h = {.lr = 0.02f,
                          .beta1 = runs[r].beta1,
                          .beta2 = runs[r].beta2,
                          .eps = 1e-8f,
                          .weight_decay = 0.1f,
                          .grad_scale = 1.0f,
                          .step = at + 1};
    assert_true(zero_update_room(optimizer, &model, 0, parts[1]) <= ROOM);
    for (int k = 0; k < 2; k++) {
        const int64_t from = parts[k].begin;
        zero_update_apply(
            t->backend, math, &model, 0, parts[k], &h,
            &(zero_update_state){
                .optimizer = optimizer,
                .how = {runs[r].scale, ZERO_FP32},
                .room = room,
                .type = t->type,
                .grad = is_exact ? (void *)(grad + from) : (void *)(halves + from),
                .param = is_exact ? NULL : t->param + from,
                .master = t->master + from,
                .state = {t->momentum + from, t->variance + kept_before(optimizer, from)},
                .changed = changed});
    }
}

/* *t, of which backend, type, threads and cut are given, after n steps of a run. */
static void run(trial *t, int r, int n, uint64_t *changed)
{
    static float scratch[3 << 19];
    zero_math math = {.threads = t->threads, .scratch = scratch};
    int optimizer;
    assert_true(zero_rule_find(runs[r].name, &optimizer));
    assert_ok(t->backend->open(&math));
    memset(t->momentum, 0, sizeof t->momentum);
    memset(t->variance, 0, sizeof t->variance);
    fill_all(1000, t->master);
    zero_convert(ZERO_FP32, t->type == ZERO_FP32 ? ZERO_BF16 : t->type, ALL, t->master,
                 t->param);
    for (int at = 0; at < n; at++) step(t, r, optimizer, at, &math, changed);
    if (t->backend->close) t->backend->close(&math);
}

/* Muon's variance is of the tensors that AdamW moves, one after the other. */
TEST(a_state_that_matrices_do_without_takes_no_room)
{
    static trial t;
    set_up();
    t = (trial){.backend = &zero_backend_cpu, .type = ZERO_FP32, .threads = 1};
    run(&t, 3, 1, NULL);
    for (int64_t i = 0; i < ALL; i++)
        if (!(i < 80 + 12 + 12) && t.variance[i] != 0.0f) fail_msg("element %d", (int)i);
    assert_true(t.variance[80 + 12] != 0.0f);
}

static void read_golden(float golden[COUNT(runs)][ALL])
{
    FILE *file = fopen(GOLDEN_DIR "/optimizers.f32", "rb");
    assert_non_null(file);
    assert_int_equal(fread(golden, sizeof **golden, COUNT(runs) * ALL, file),
                     COUNT(runs) * ALL);
    assert_int_equal(fgetc(file), EOF);
    fclose(file);
}

TEST(twenty_steps_end_where_those_of_pytorch_do)
{
    static float golden[COUNT(runs)][ALL];
    static trial t;
    set_up();
    read_golden(golden);
    for (size_t r = 0; r < COUNT(runs); r++)
        for (int b = 0; zero_backend_name_at(b); b++) {
            t = (trial){.type = ZERO_FP32, .threads = 1};
            assert_ok(zero_backend_find(zero_backend_name_at(b), &t.backend));
            run(&t, (int)r, STEPS, NULL);
            double most = 0.0;
            for (int i = 0; i < ALL; i++)
                most = fmax(most, fabs((double)t.master[i] - (double)golden[r][i]));
            if (!(most < 1e-5))
                fail_msg("%s on %s: %g away from PyTorch", runs[r].name, t.backend->name,
                         most);
        }
}

static void check_same(const trial *got, const trial *want, const char *what)
{
    bool same = memcmp(got->master, want->master, sizeof got->master) == 0 &&
                memcmp(got->momentum, want->momentum, sizeof got->momentum) == 0 &&
                memcmp(got->variance, want->variance, sizeof got->variance) == 0 &&
                memcmp(got->param, want->param, sizeof got->param) == 0;
    if (!same) fail_msg("%s: other bits", what);
}

TEST(no_cut_and_no_thread_changes_a_bit)
{
    static trial one, other;
    const zero_type types[] = {ZERO_FP32, ZERO_BF16, ZERO_FP16};
    set_up();
    for (size_t r = 0; r < COUNT(runs); r++)
        for (size_t k = 0; k < COUNT(types); k++) {
            const bool is_muon = strcmp(runs[r].name, "muon") == 0;
            one = (trial){.backend = &zero_backend_cpu, .type = types[k], .threads = 1};
            run(&one, (int)r, 3, NULL);
            other = (trial){.backend = &zero_backend_cpu, .type = types[k], .threads = 3};
            run(&other, (int)r, 3, NULL);
            if (zero_cpu_has_threads()) check_same(&other, &one, runs[r].name);
            const int64_t cuts[] = {7, 80, 92, 92 + 240, is_muon ? 92 : 500, ALL};
            for (size_t c = 0; c < COUNT(cuts); c++) {
                other = (trial){.backend = &zero_backend_cpu,
                                .type = types[k],
                                .threads = 1,
                                .cut = cuts[c]};
                run(&other, (int)r, 3, NULL);
                check_same(&other, &one, runs[r].name);
            }
        }
}

/* A parameter that is not its master, rounded, is told by the least number. */
TEST(flipped_parameters_are_told)
{
    static trial t;
    set_up();
    for (size_t r = 0; r < COUNT(runs); r++) {
        uint64_t changed = 0;
        t = (trial){.backend = &zero_backend_cpu, .type = ZERO_BF16, .threads = 1};
        run(&t, (int)r, 2, &changed);
        assert_true(changed == 0);
        int optimizer;
        int64_t element;
        const zero_math math = test_opened(&zero_backend_cpu);
        assert_true(zero_rule_find(runs[r].name, &optimizer));
        t.param[100] ^= 1;
        t.param[600] ^= 1;
        step(&t, (int)r, optimizer, 2, &math, &changed);
        assert_true(changed != 0);
        assert_int_equal(zero_update_changed(&model, changed, &element), 2);
        assert_int_equal(element, 8);
        zero_backend_cpu.close ? zero_backend_cpu.close((zero_math *)&math) : (void)0;
    }
}

/* Singular values of 0.68 to 1.13, as the first source's figure has them: so X X' x is near x. */
TEST(muon_moves_along_a_matrix_that_is_nearly_orthogonal)
{
    static trial t, before;
    set_up();
    t = (trial){.backend = &zero_backend_cpu, .type = ZERO_FP32, .threads = 1};
    before = t;
    run(&before, 4, 0, NULL);
    run(&t, 4, 1, NULL);
    const zero_tensor *m = &tensors[2]; /* [12, 20] in, out: the scale is sqrt(20 / 12) */
    double least = INFINITY, most = 0.0;
    for (int64_t i = 0; i < m->rows; i++) {
        double squares = 0.0;
        for (int64_t k = 0; k < m->cols; k++) {
            int64_t at = m->offset + i * m->cols + k;
            double old = (double)before.master[at] * (1.0 - 0.02 * 0.1);
            double x = (old - (double)t.master[at]) / 0.02 / sqrt(20.0 / 12.0);
            squares += x * x;
        }
        least = fmin(least, squares);
        most = fmax(most, squares);
    }
    assert_true(least > 0.4 && most < 1.4);
}

TEST(an_unknown_optimizer_is_refused_with_those_there_are)
{
    int found = 7;
    assert_ok(zero_rule_read(NULL, &found));
    assert_int_equal(found, 0);
    assert_fails(zero_rule_read("lamb", &found), ZERO_ERR_INVALID,
                 "optimizer 'lamb': expected one of adamw, muon, lion, sgd");
}
