/* damage_test.h - checkpoints to be damaged: all ranks write them, then rank 0 changes files
 * and reads. */
#pragma once

#include "support/checkpoint_test.h"
#include <fcntl.h>
#include <time.h>

#include "base/fail.h"
#include "io/bytes.h"
#include "support/share.h"

/* About every n-th byte is damaged; all of them with EVERY=1 in the environment (ctest -L long).
 * Reading takes a hundred times as long with sanitizers. */
static inline uint64_t every(void)
{
    const char *text = getenv("EVERY");
    return text ? strtoull(text, NULL, 10) : 4 * TEST_SHARE(4);
}

/* Steps 5 and 10 of a run; of one with another seed; of the first on one rank. */
static test_place run_place, other_place, single_place;
static uint64_t random_state = 11;

static inline uint64_t draw(uint64_t n)
{
    zero_rng rng = {.purpose = ZERO_RNG_TEST, .step = random_state++};
    return zero_rng_bits(&rng, 0) % n;
}

/* ---- files ---- */

typedef struct {
    char path[500];
    int name; /* where the name begins in path */
    zero_bytes good;
} victim;

static inline void put(const char *path, const void *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_true(write(fd, bytes, len) == (ssize_t)len);
    assert_int_equal(close(fd), 0);
}

static inline victim choose(const test_place *place, int64_t step, const char *name)
{
    char dir[400];
    victim v = {.path = ""};
    test_step_path(place, step, dir);
    v.name = (int)strlen(dir) + 1;
    snprintf(v.path, sizeof v.path, "%s/%s", dir, name);
    assert_ok(zero_bytes_read(&v.good, v.path));
    return v;
}

static inline victim choose_shard(const test_place *place, int64_t step, int rank,
                                  int n_ranks)
{
    char name[64];
    zero_shard_name(rank, n_ranks, name);
    return choose(place, step, name);
}

static inline const char *name_of(const victim *v)
{
    return v->path + v->name;
}

static inline void restore(const victim *v)
{
    put(v->path, v->good.bytes, v->good.len);
}

static inline void release(victim *v)
{
    restore(v);
    zero_bytes_destroy(&v->good);
}

/* Replaces a byte in place: much faster than writing the file again. */
static inline void put_byte(int fd, size_t at, unsigned char byte)
{
    assert_true(pwrite(fd, &byte, 1, (off_t)at) == 1);
}

/* ---- verdicts ---- */

static inline zero_status verify(const char *path)
{
    zero_checkpoint c;
    ZERO_TRY(zero_checkpoint_open(path, NULL, &c));
    zero_status st = zero_checkpoint_verify(&c);
    zero_checkpoint_close(&c);
    return st;
}

static inline zero_status verify_step(const test_place *place, int64_t step)
{
    char path[400];
    test_step_path(place, step, path);
    return verify(path);
}

static inline void check_sound(const test_place *place, int64_t step)
{
    assert_ok(verify_step(place, step));
}

/* Step 5 of the run is refused, and the message has both texts; NULL is any. */
static inline void check_refused(const char *what, const char *a, const char *b)
{
    zero_status st = verify_step(&run_place, 5);
    if (st != ZERO_ERR_FORMAT && st != ZERO_ERR_IO)
        fail_msg("%s: status %d (%s), expected a refusal", what, (int)st,
                 zero_last_error());
    if ((a && !strstr(zero_last_error(), a)) || (b && !strstr(zero_last_error(), b)))
        fail_msg("%s: expected '%s' and '%s' in: %s", what, a ? a : "", b ? b : "",
                 zero_last_error());
}

static inline size_t header_end(const victim *shard)
{
    uint64_t n = 0;
    for (int i = 7; i >= 0; i--) n = n << 8 | shard->good.bytes[i];
    return 8 + (size_t)n;
}

/* ---- the checkpoints ---- */

static inline void write_step(test_run *run, const test_place *place, int64_t step)
{
    static const unsigned char text[] = "to be or not to be that is the question to be";
    zero_tokenizer tokenizer;
    uint64_t bytes;
    all_ok(zero_tokenizer_init(1, &tokenizer, "bpe:260", text, sizeof text - 1));
    json_t *options = json_pack("{s:s, s:s}", "stage", "1", "lr", "0.001");
    zero_checkpoint_input in = {.step = step,
                                .samples = 6 * step,
                                .arithmetic = "a test's",
                                .data = "0123456789abcdef0123456789abcdef",
                                .shape = run->model.shape,
                                .tokenizer = &tokenizer,
                                .options = options};
    zero_status st = ZERO_OK;
    if (test_run_member(run))
        st = zero_checkpoint_save(&run->engine, &place->dir, &in, &bytes);
    all_ok(st);
    json_decref(options);
    zero_tokenizer_destroy(&tokenizer);
}

static inline void write_run(int64_t seed, int n, const test_place *place)
{
    test_run run;
    test_setup setup = test_standard;
    setup.shape = (zero_shape){
        .layers = 1, .hidden = 8, .heads = 2, .seq = 4, .vocab = 16, .seed = seed};
    setup.seed = seed;
    setup.plan.stage = 1;
    setup.plan.type = ZERO_BF16;
    test_run_open(&run, &setup, n);
    test_run_steps(&run, 0, 2);
    write_step(&run, place, 5);
    test_run_steps(&run, 2, 1);
    write_step(&run, place, 10);
    test_run_close(&run);
}

/* The others leave the machine to rank 0. */
static inline void wait_for_rank_0(void)
{
    MPI_Request all;
    int here = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    while (MPI_Test(&all, &here, MPI_STATUS_IGNORE) == MPI_SUCCESS && !here)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

static inline void damage_begin(void)
{
    test_place_open(&run_place);
    test_place_open(&other_place);
    test_place_open(&single_place);
    write_run(5, test_size, &run_place);
    write_run(6, test_size, &other_place);
    write_run(5, 1, &single_place);
}

static inline void damage_end(void)
{
    wait_for_rank_0();
    test_place_close(&single_place);
    test_place_close(&other_place);
    test_place_close(&run_place);
}
