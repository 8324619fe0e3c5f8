/* checkpoint_test.h - checkpoints of small training runs, in a temporary directory. */
#pragma once

#include "support/engine_test.h"
#include <unistd.h>

#include "base/fail.h"
#include "checkpoint/list.h"
#include "checkpoint/load.h"
#include "checkpoint/save.h"

typedef struct {
    char path[256];
    zero_storage_dir dir; /* open on all ranks */
} test_place;

/* A new, empty directory that all ranks see. Collective over the job. */
static inline void test_place_open(test_place *place)
{
    const char *tmp = getenv("TMPDIR");
    *place = (test_place){.path = ""};
    snprintf(place->path, sizeof place->path, "%s/zero-test-XXXXXX", tmp ? tmp : "/tmp");
    if (test_rank == 0 && !mkdtemp(place->path)) abort();
    MPI_Bcast(place->path, (int)sizeof place->path, MPI_CHAR, 0, MPI_COMM_WORLD);
    all_ok(zero_storage_open(place->path, &place->dir));
}

static inline zero_status test_place_drop(void *arg, const char *name)
{
    return zero_storage_remove(arg, name);
}

/* Removes it with the directories in it. Collective over the job. */
static inline void test_place_close(test_place *place)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (test_rank == 0) {
        assert_ok(zero_storage_list(&place->dir, test_place_drop, &place->dir));
        assert_int_equal(rmdir(place->path), 0);
    }
    zero_storage_close(&place->dir);
}

static inline void test_step_path(const test_place *place, int64_t step, char path[400])
{
    char name[ZERO_CHECKPOINT_NAME];
    zero_checkpoint_name(step, name);
    snprintf(path, 400, "%s/%s", place->path, name);
}

/* The verdict of the run's ranks; ZERO_OK on the others. Collective over the job. */
static inline zero_status test_try_save_so(test_run *run, const test_place *place,
                                           int64_t step, bool beside)
{
    zero_checkpoint_input in = {
        .step = step, .samples = 6 * step, .arithmetic = "a test's"};
    zero_checkpoint_write *write;
    uint64_t bytes;
    if (!test_run_member(run)) return ZERO_OK;
    ZERO_TRY(zero_checkpoint_begin(&run->engine, &place->dir, &in, beside, &write));
    return zero_checkpoint_end(write, &bytes);
}

static inline zero_status test_try_save(test_run *run, const test_place *place,
                                        int64_t step)
{
    return test_try_save_so(run, place, step, false);
}

static inline void test_save(test_run *run, const test_place *place, int64_t step)
{
    zero_status st = test_try_save(run, place, step);
    all_ok(st);
}

static inline zero_status test_try_load(test_run *run, const char *path)
{
    zero_checkpoint c;
    if (!test_run_member(run)) return ZERO_OK;
    ZERO_TRY(zero_checkpoint_open_all(run->comm, path, &c));
    zero_status st = zero_checkpoint_load(&run->engine, &c);
    zero_checkpoint_close(&c);
    return st;
}

static inline void test_load(test_run *run, const test_place *place, int64_t step)
{
    char path[400];
    test_step_path(place, step, path);
    zero_status st = test_try_load(run, path);
    all_ok(st);
}
