/* Collectives whose sends are posted in turn (lists/spec.h, in_turn). */
#include "support/collective_shapes.h"

#define POLLS 300
#define LONG  8000 /* elements: more chunks than are in flight at once */

static zero_collective_spec long_sum(bool in_turn)
{
    return (zero_collective_spec){.count = LONG,
                                  .stride = LONG,
                                  .max_chunk = 64,
                                  .in_turn = in_turn,
                                  .unit = ZERO_NO_UNIT};
}

static zero_collective_spec short_gather(bool in_turn)
{
    return (zero_collective_spec){.kind = ZERO_ALL_GATHER,
                                  .count = 300,
                                  .stride = 320,
                                  .max_chunk = 64,
                                  .in_turn = in_turn,
                                  .unit = ZERO_NO_UNIT};
}

static int64_t sent(const job *j)
{
    return zero_traffic_total(&j->op.traffic).messages_sent;
}

static int64_t to_send(const job *j)
{
    int64_t n = 0;
    for (int64_t i = 0; i < j->op.steps.n; i++)
        n += j->op.steps.list[i].kind == ZERO_STEP_SEND;
    return n;
}

/* Messages are counted where they are posted. */
static bool is_in_turn(const job *first, const job *second)
{
    return sent(second) == 0 || sent(first) == to_send(first);
}

static field open_field(void)
{
    return field_open(arrange(ALONE), (size_t)world.size * LONG * sizeof(float));
}

/* Rank 0 is late. The others have posted as many messages of the first as may be in flight, and would
 * have posted the second's. */
static void begin_without_rank_0(job *first, job *second)
{
    if (test_rank == 0) return;
    job_begin(first);
    job_begin(second);
    for (int i = 0; i < POLLS; i++) {
        assert_ok(zero_collective_poll(&first->f->comm));
        if (first->spec.in_turn && second->spec.in_turn)
            assert_true(is_in_turn(first, second));
    }
}

/* True if the second collective had sent something while the first could not. */
static bool overtakes(bool first_in_turn, bool second_in_turn)
{
    field f = open_field();
    job first = job_init(&f, long_sum(first_in_turn), 1, false, 0);
    job second = job_init(&f, short_gather(second_in_turn), 2, false, 1);
    job_fill(&first);
    job_fill(&second);
    begin_without_rank_0(&first, &second);
    bool overtaken = test_rank > 0 && sent(&second) > 0;
    assert_true(test_rank == 0 || sent(&first) < to_send(&first));
    MPI_Barrier(MPI_COMM_WORLD);
    if (test_rank == 0) {
        job_begin(&first);
        job_begin(&second);
    }
    assert_ok(zero_collective_wait(&second.op));
    assert_ok(zero_collective_wait(&first.op));
    assert_all(job_is_right(&first) && job_is_right(&second));
    job_destroy(&first);
    job_destroy(&second);
    field_close(&f);
    return overtaken;
}

TEST(a_later_one_sends_nothing_before_the_first_has_sent_all)
{
    assert_all(!overtakes(true, true));
}

TEST(others_are_not_held_up)
{
    assert_all(overtakes(true, false) || test_rank == 0);
    assert_all(overtakes(false, true) || test_rank == 0);
}

/* A caller that looks at the second alone moves the first as well. */
TEST(progress_of_a_later_one_moves_the_first)
{
    field f = open_field();
    job first = job_init(&f, long_sum(true), 1, false, 0);
    job second = job_init(&f, short_gather(true), 2, false, 1);
    job_fill(&first);
    job_fill(&second);
    job_begin(&first);
    job_begin(&second);
    for (bool done = false; !done;) {
        assert_ok(zero_collective_progress(&second.op, &done));
        assert_true(is_in_turn(&first, &second));
    }
    assert_ok(zero_collective_wait(&first.op));
    assert_all(job_is_right(&first) && job_is_right(&second));
    job_destroy(&first);
    job_destroy(&second);
    field_close(&f);
}
