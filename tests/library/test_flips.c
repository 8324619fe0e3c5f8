/* A program of others whose memory loses a bit: its trainer says where, and saves nothing. */
#define _POSIX_C_SOURCE 200809L
#include "support/mpi_cmocka.h"

#include "support/library_models.h"

#include <dirent.h>
#include <unistd.h>

/* The first unit flips a bit of its parameters in one step of one rank. */
typedef struct {
    int64_t step;
    bool is_mine;
} fault;

static void flipping_forward(const zero_unit *u, const zero_call *c)
{
    const fault *f = u->shape;
    if (f->is_mine && c->batch->step == f->step) {
        unsigned char *bytes = (unsigned char *)(uintptr_t)c->param[0];
        bytes[4 * 7 + 2] ^= 0x10; /* element 7 of A */
    }
    tied_in_forward(u, c);
}

static void describe(const fault *f, zero_model *model)
{
    tied_model tied;
    tied_init(&tied);
    tied.units[0].shape = f;
    tied.units[0].forward = flipping_forward;
    all_ok(zero_model_describe(&tied.tables, model));
}

static zero_status step(zero_trainer *t, int64_t number)
{
    const zero_source source = {.sample = tied_sample};
    const zero_step_input in = {
        .step = number, .lr = 2e-2, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8};
    zero_step_result out;
    return zero_trainer_step(t, &source, &in, &out);
}

/* Counts the checkpoints in the directory, published or temporary. */
static int count_steps(const char *path)
{
    DIR *dir = opendir(path);
    int n = 0;
    if (!dir) return 0;
    for (struct dirent *e = readdir(dir); e; e = readdir(dir))
        n += strncmp(e->d_name, "step-", 5) == 0 || strncmp(e->d_name, ".tmp-", 5) == 0;
    closedir(dir);
    return n;
}

static void expect_place(void)
{
    const char *who = test_size > 2 ? "rank 1 holds other bits than the other ranks in "
                                    : "rank 0 and rank 1 hold different bits in ";
    all_told(who);
    all_told("the parameters of A, element 7 (0x");
}

/* Trains over the flip in step 1; returns the first status that is not ZERO_OK, of the steps or
 * of the save after them. */
static zero_status train_and_save(int check_replicas, const char *path, int64_t *done)
{
    zero_model model;
    zero_comm *comm;
    zero_trainer *t;
    fault f = {.step = 1, .is_mine = test_rank == 1};
    describe(&f, &model);
    zero_trainer_spec spec = {
        .model = &model, .micro_batch = 4, .check_replicas = check_replicas};
    all_ok(zero_comm_open(MPI_COMM_WORLD, 60.0, &comm));
    all_ok(zero_trainer_open(&spec, comm, &t));
    zero_status st = ZERO_OK;
    for (*done = 0; *done < 3 && st == ZERO_OK; ++*done) st = step(t, *done);
    if (st == ZERO_OK) st = zero_trainer_save(t, path, 3);
    if (st != ZERO_OK) expect_place();
    zero_trainer_close(&t);
    zero_comm_close(&comm);
    zero_model_destroy(&model);
    return st;
}

TEST(a_flipped_bit_ends_a_step_or_a_save)
{
    char path[] = "/tmp/zero-flips-XXXXXX", command[64];
    int64_t done;
    if (test_size == 1) return; /* nothing is held twice */
    if (test_rank == 0) assert_non_null(mkdtemp(path));
    MPI_Bcast(path, (int)sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);

    assert_all(train_and_save(1, path, &done) == ZERO_ERR_CORRUPTED);
    assert_all(done == 2); /* the step in which it flipped was the last */
    assert_all(train_and_save(0, path, &done) == ZERO_ERR_CORRUPTED);
    assert_all(done == 3 && count_steps(path) == 0); /* the default: noticed by the save */
    assert_all(zero_exit_code(ZERO_ERR_CORRUPTED) == 1);
    all_ok(train_and_save(-1, path, &done)); /* never */
    assert_all(count_steps(path) == 1);

    snprintf(command, sizeof command, "rm -r %s", path);
    if (test_rank == 0) assert_int_equal(system(command), 0);
}
