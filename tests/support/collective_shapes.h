/* collective_shapes.h - jobs of every kind and shape, one after the other, on pretended nodes. With
 * ON_DEVICE their data is a device's. */
#pragma once

#ifndef ON_DEVICE
#define ON_DEVICE false
#endif

#include "support/collective_job.h"
#include "support/test_world.h"

#include <unistd.h>

#include "comm/signal.h"
#include "support/collective_cases.h"
#include "support/collective_nodes.h"

/* The arrays of a job; with a device the mirrors and what the algorithms stage, too. */
static inline size_t room(int64_t stride)
{
    size_t bytes = (size_t)(world.size * stride + MAX_TAIL) * sizeof(float);
    return ON_DEVICE ? 2 * bytes + ((size_t)1 << 19) : bytes;
}

/* Devices do not reduce to all. */
#define SHAPE_KINDS (ON_DEVICE ? (int)ZERO_ALL_REDUCE : ZERO_COLLECTIVE_KINDS)

/* A job of this kind whose shape follows from the trial. */
static inline job vary(field *f, zero_algorithm algorithm, zero_collective_kind kind,
                       uint64_t trial, int slot)
{
    uint64_t random = oracle_mix(1000 * trial + 10 * (uint64_t)kind + (uint64_t)algorithm);
    zero_collective_spec spec = vary_spec(algorithm, kind, f->comm.size, &random);
    bool in_place = spec.result == spec.type && toss(&random);
    bool any_order = !zero_algorithm_get(algorithm)->adds_along_tree;
    spec.on_device =
        ON_DEVICE && slot % 3 != 2; /* some of those in flight are the host's */
    if (spec.on_device) spec.one_out = false;
    spec.in_turn = !ON_DEVICE && kind != ZERO_ALL_REDUCE && toss(&random);
    spec.in_place =
        spec.on_device && in_place && !zero_collective_sums(kind) && toss(&random);
    if (any_order && zero_collective_sums(kind))
        trial += ORACLE_SMALL;
    else if (toss(&random))
        trial += ORACLE_SPECIAL;
    return job_init(f, spec, trial, in_place, slot);
}

static inline zero_collective_spec small_sum(zero_algorithm algorithm)
{
    return (zero_collective_spec){.algorithm = algorithm,
                                  .count = 300,
                                  .stride = 320,
                                  .max_chunk = 64,
                                  .on_device = ON_DEVICE,
                                  .unit = ZERO_NO_UNIT};
}

static inline void assert_copied_as_planned(const job *j, const zero_traffic *planned)
{
    assert_int_equal(planned->bytes_fetched, j->device ? j->device->bytes[FAKE_FETCH] : 0);
    assert_int_equal(planned->bytes_stored, j->device ? j->device->bytes[FAKE_STORE] : 0);
}

/* True if the result is right. What is planned is what moves. */
static inline bool run_job(job *j)
{
    const zero_comm *comm = &j->f->comm;
    zero_traffic moved = comm->traffic[j->spec.kind], planned;
    job_fill(j);
    job_begin(j);
    assert_ok(zero_collective_wait(&j->op));
    assert_ok(zero_collective_traffic(&j->spec, &comm->layout, comm->rank, &planned));
    assert_copied_as_planned(j, &planned);
    zero_traffic_add(&moved, 1, &planned);
    assert_memory_equal(&moved, &comm->traffic[j->spec.kind], sizeof moved);
    bool right = job_is_right(j);
    job_destroy(j);
    return right;
}

/* Sleeps for up to 0.3 ms, or not at all. */
static inline void dawdle(uint64_t random)
{
    if (random % 2 == 0) usleep((useconds_t)((random >> 32) % 300));
}

/* Runs every kind once. The next trial reuses the node's counters, with the old values in them. */
static inline bool run_kinds(field *f, zero_algorithm algorithm, uint64_t trial)
{
    bool right = true;
    for (int kind = 0; kind < SHAPE_KINDS; kind++) {
        job j = vary(f, algorithm, (zero_collective_kind)kind, trial, 0);
        dawdle(oracle_bits(trial, test_rank, kind));
        right = run_job(&j) && right;
    }
    f->comm.sequence += ZERO_SIGNALS - SHAPE_KINDS;
    return right;
}

/* Runs the trials on every arrangement of nodes. */
static inline void run_shapes(zero_algorithm algorithm, uint64_t trials)
{
    for (int a = 0; a < ARRANGEMENTS; a++) {
        if (!is_possible(a)) continue;
        bool right = true;
        field f = field_open(arrange(a), room(MAX_STRIDE));
        for (uint64_t trial = 0; trial < trials && fits(algorithm, &f.comm.layout); trial++)
            right = run_kinds(&f, algorithm, trial + trials * (uint64_t)a) && right;
        assert_all(right);
        field_close(&f);
    }
}

/* Chunks of the algorithms' own size, in arrays large enough to be stored past the caches. */
static inline void run_full_chunks(int64_t count, int64_t stride)
{
    for (int a = ONE_NODE; a <= TWO_NODES; a++) {
        if (!is_possible(a)) continue;
        bool right = true;
        field f = field_open(arrange(a),
                             room(stride) + (ON_DEVICE ? ZERO_COLLECTIVE_STAGING : 0));
        zero_collective_spec spec = {
            .count = count, .stride = stride, .unit = ZERO_NO_UNIT, .on_device = ON_DEVICE};
        for (int way = 0; way < SHAPE_KINDS * ZERO_ALGORITHMS; way++) {
            spec.kind = (zero_collective_kind)(way % SHAPE_KINDS);
            spec.algorithm = (zero_algorithm)(way / SHAPE_KINDS);
            bool exact = zero_algorithm_get(spec.algorithm)->adds_along_tree;
            spec.stride = exact || spec.kind != ZERO_ALL_REDUCE ? stride : count;
            if (!fits(spec.algorithm, &f.comm.layout)) continue;
            job j = job_init(&f, spec, exact ? 3 : ORACLE_SMALL, way % 2, 0);
            right = run_job(&j) && right;
        }
        assert_all(right);
        field_close(&f);
    }
}

/* ---- several in flight ---- */

/* One of the algorithms that fit; *random goes on. */
static inline zero_algorithm draw_algorithm(const field *f, uint64_t *random)
{
    zero_algorithm algorithm;
    do {
        *random = oracle_mix(*random);
        algorithm = (zero_algorithm)(*random % ZERO_ALGORITHMS);
    } while (!fits(algorithm, &f->comm.layout));
    return algorithm;
}

/* Each rank waits for the jobs in an order of its own. True if all results are right. */
static inline bool end_jobs(job *jobs, int n)
{
    bool right = true;
    for (int i = 0; i < n; i++)
        assert_ok(zero_collective_wait(&jobs[(i + test_rank) % n].op));
    assert_true(jobs[0].f->comm.active == NULL);
    for (int i = 0; i < n; i++) {
        right = job_is_right(&jobs[i]) && right;
        job_destroy(&jobs[i]);
    }
    return right;
}

/* Runs the trials of a whole test on every arrangement of nodes. */
static inline void run_trials(bool (*run)(field *f, uint64_t trial), uint64_t trials)
{
    for (int a = 0; a < ARRANGEMENTS; a++) {
        if (!is_possible(a)) continue;
        bool right = true;
        field f = field_open(arrange(a), room(MAX_STRIDE));
        for (uint64_t trial = 0; trial < trials; trial++)
            right = run(&f, trial + 100 * (uint64_t)a) && right;
        assert_all(right);
        field_close(&f);
    }
}

/* Ranks begin in the same order, poll and sleep at random, and wait in different orders. */
static inline bool run_at_once(field *f, uint64_t trial)
{
    enum { JOBS = FIELD_JOBS };
    job jobs[JOBS];
    bool done;
    uint64_t random = oracle_mix(trial * 64 + (uint64_t)test_rank),
             shared = oracle_mix(trial);
    for (int i = 0; i < JOBS; i++) {
        zero_algorithm algorithm = draw_algorithm(f, &shared);
        zero_collective_kind kind = (zero_collective_kind)((shared >> 8) % SHAPE_KINDS);
        jobs[i] = vary(f, algorithm, kind, 10 * trial + (uint64_t)i, i);
        job_fill(&jobs[i]);
    }
    for (int i = 0; i < JOBS; i++) {
        dawdle(random = oracle_mix(random));
        job_begin(&jobs[i]);
    }
    for (int i = 0; i < 20; i++) {
        random = oracle_mix(random);
        if (random % 3 == 0)
            assert_ok(zero_collective_poll(&f->comm));
        else
            assert_ok(zero_collective_progress(&jobs[random % JOBS].op, &done));
        dawdle(random);
    }
    return end_jobs(jobs, JOBS);
}

/* Ten times, with numbers of its own each time. */
static inline void run_again_and_again(int tag_limit)
{
    field f = field_open(arrange(is_possible(PAIRS) ? PAIRS : ALONE), room(MAX_STRIDE));
    static const zero_algorithm both[] = {ZERO_ALGORITHM_P2P, ZERO_ALGORITHM_HIER};
    if (tag_limit > 0) f.comm.tag_limit = tag_limit;
    for (int i = 0; i < 2; i++) {
        job j = job_init(&f, small_sum(both[i]), 4, true, 0);
        for (int again = 0; again < 10; again++) {
            bool done = false;
            job_fill(&j);
            job_begin(&j);
            assert_ok(zero_collective_wait(&j.op));
            assert_ok(zero_collective_progress(&j.op, &done));
            assert_true(done);
            assert_all(job_is_right(&j));
        }
        job_destroy(&j);
    }
    field_close(&f);
}
