/* collective_shapes.h - jobs of every kind and shape, one after the other, on pretended nodes. */
#pragma once

#include "support/collective_job.h"
#include "support/test_world.h"

#include <unistd.h>

#include "comm/signal.h"
#include "support/collective_cases.h"
#include "support/collective_nodes.h"

/* A job of this kind whose shape follows from the trial. */
typedef job job_maker(field *f, zero_algorithm algorithm, zero_collective_kind kind,
                      uint64_t trial, int slot);

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
static inline bool run_kinds(field *f, zero_algorithm algorithm, job_maker *make,
                             uint64_t trial)
{
    bool right = true;
    for (int kind = 0; kind < ZERO_COLLECTIVE_KINDS; kind++) {
        job j = make(f, algorithm, (zero_collective_kind)kind, trial, 0);
        dawdle(oracle_bits(trial, test_rank, kind));
        right = run_job(&j) && right;
    }
    f->comm.sequence += ZERO_SIGNALS - ZERO_COLLECTIVE_KINDS;
    return right;
}

/* Runs the trials on every arrangement of nodes; `room`: bytes of a field. */
static inline void run_shapes(zero_algorithm algorithm, job_maker *make, uint64_t trials,
                              size_t room)
{
    for (int a = 0; a < ARRANGEMENTS; a++) {
        if (!is_possible(a)) continue;
        bool right = true;
        field f = field_open(arrange(a), room);
        for (uint64_t trial = 0; trial < trials && fits(algorithm, &f.comm.layout); trial++)
            right = run_kinds(&f, algorithm, make, trial + trials * (uint64_t)a) && right;
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

/* Runs the trials of a whole test on every arrangement of nodes; `room`: bytes of a field. */
static inline void run_trials(bool (*run)(field *f, uint64_t trial), uint64_t trials,
                              size_t room)
{
    for (int a = 0; a < ARRANGEMENTS; a++) {
        if (!is_possible(a)) continue;
        bool right = true;
        field f = field_open(arrange(a), room);
        for (uint64_t trial = 0; trial < trials; trial++)
            right = run(&f, trial + 100 * (uint64_t)a) && right;
        assert_all(right);
        field_close(&f);
    }
}
