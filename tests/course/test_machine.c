/* A lesson's machine: what it tells is what it computed. (same_bits.sh compares it with
 * real runs.) */
#include "support/test.h"

#include "support/options_test.h"

#include "course/machine.h"
#include "course/narrate.h"
#include "sharding/schedule_exchange.h"

#define LESSON "--model lesson --data lesson "

static zero_lesson_machine *begin(const char *line, int ranks, parsed *p)
{
    zero_lesson_machine *m = NULL;
    if (parse(line, p) != ZERO_OK || zero_lesson_open(&p->config, ranks, &m) != ZERO_OK)
        fail_msg("%s: %s", line, zero_last_error());
    return m;
}

static void finish(zero_lesson_machine **m, parsed *p)
{
    zero_lesson_close(m);
    assert_null(*m);
    zero_options_destroy(&p->given);
}

static zero_lesson_step walk(zero_lesson_machine *m)
{
    zero_lesson_step step;
    assert_ok(zero_lesson_walk(m, &step));
    return step;
}

/* ---- events ---- */

/* In fp32 the sum that an owner tells has the bits of (a + b) + c. */
TEST(sums_are_those_of_the_terms)
{
    parsed p;
    zero_lesson_machine *m = begin(LESSON "--stage 2", 3, &p);
    int sums = 0;
    walk(m);
    const zero_tale *tale = &zero_lesson_show(m)->tale;
    for (int at = 0; at < tale->length; at++)
        for (int r = 0; r < 3; r++) {
            const zero_told *t = zero_tale_at(tale, r, at);
            if (t->op != ZERO_OP_REDUCE_WAIT || t->numbers[r].at < 0) continue;
            float term[3];
            for (int q = 0; q < 3; q++) {
                const zero_told *given = zero_tale_reduce(tale, q, t);
                assert_non_null(given);
                assert_true(given->numbers[r].at == t->numbers[r].at);
                term[q] = (float)given->numbers[r].value;
            }
            float sum = (term[0] + term[1]) + term[2];
            assert_true((double)sum == t->numbers[r].value);
            sums++;
        }
    assert_int_equal(sums, 4); /* embedding and final: 1 owner; block 0: 2 */
    finish(&m, &p);
}

static const zero_told *find_group(const zero_tale *tale, int rank, zero_op op, int64_t g)
{
    for (int at = 0; at < tale->length; at++) {
        const zero_told *t = zero_tale_at(tale, rank, at);
        if (t->op == (int64_t)op && t->group == g) return t;
    }
    return NULL;
}

/* Stage 3: the next step gathers what UPDATE wrote. */
TEST(gathers_see_the_updates_of_the_step_before)
{
    parsed p;
    zero_lesson_machine *m = begin(LESSON "--stage 3", 3, &p);
    double after[3][3];
    walk(m);
    for (int g = 0; g < 3; g++)
        for (int r = 0; r < 3; r++) {
            const zero_told *t =
                find_group(&zero_lesson_show(m)->tale, r, ZERO_OP_UPDATE, g);
            after[g][r] = t->numbers[1].at >= 0 ? t->numbers[1].value : 0.0;
            if (t->numbers[1].at >= 0)
                assert_true(t->numbers[0].value != t->numbers[1].value);
        }
    walk(m);
    for (int g = 0; g < 3; g++)
        for (int r = 0; r < 3; r++) {
            const zero_told *t =
                find_group(&zero_lesson_show(m)->tale, r, ZERO_OP_GATHER_WAIT, g);
            for (int k = 0; k < 3; k++)
                if (t->numbers[k].at >= 0) assert_true(t->numbers[k].value == after[g][k]);
        }
    finish(&m, &p);
}

static void check_event(const zero_schedule *s, const zero_told *t, int rank, int at)
{
    const zero_instruction *i = &s->programs[ZERO_PROGRAM_STEP].code[at];
    zero_traffic traffic = zero_instruction_traffic(s, i);
    zero_volume moved = zero_traffic_total(&traffic);
    int64_t sent = 0;
    for (int k = 0; k < ZERO_TOLD_RANKS; k++) sent += t->sent_to[k];
    assert_true(t->op == (int64_t)i->op && t->at == at && t->rank == rank);
    assert_true(t->live_bytes == (int64_t)i->live_bytes);
    assert_true(t->sent == moved.bytes_sent && t->received == moved.bytes_received);
    assert_true(t->sent == sent && t->sent_to[rank] == 0);
}

TEST(events_are_the_schedules_instructions)
{
    static const char *const lines[] = {LESSON "--stage 0", LESSON "--stage 3 --prefetch 0",
                                        LESSON "--stage 1 --partition owner --dtype bf16",
                                        LESSON
                                        "--stage 2 --global-batch 6 --micro-batch 1"};
    for (size_t k = 0; k < COUNT(lines); k++) {
        parsed p;
        zero_lesson_machine *m = begin(lines[k], 3, &p);
        walk(m);
        const zero_tale *tale = &zero_lesson_show(m)->tale;
        for (int r = 0; r < 3; r++) {
            const zero_schedule *s = zero_lesson_schedule(m, r);
            assert_int_equal(tale->length, s->programs[ZERO_PROGRAM_STEP].length);
            for (int at = 0; at < tale->length; at++)
                check_event(s, zero_tale_at(tale, r, at), r, at);
        }
        finish(&m, &p);
    }
}

/* ---- bits ---- */

/* At three ranks, where not everything commutes, and with two machines at a time. */
TEST(all_stages_have_one_digest)
{
    parsed p, q;
    zero_lesson_machine *first = begin(LESSON "--stage 0", 3, &p);
    for (int stage = 1; stage < 4; stage++) {
        char line[64], one[33], other[33];
        snprintf(line, sizeof line, LESSON "--stage %d", stage);
        zero_lesson_machine *m = begin(line, 3, &q);
        if (stage == 1) walk(first);
        walk(m);
        assert_ok(zero_lesson_digest(first, one));
        assert_ok(zero_lesson_digest(m, other));
        assert_string_equal(one, other);
        finish(&m, &q);
    }
    finish(&first, &p);
}

/* ---- what cannot be ---- */

static void refuse(zero_status status, int ranks, const char *line, const char *part)
{
    parsed p;
    zero_lesson_machine *m = NULL;
    assert_ok(parse(line, &p));
    zero_status st = zero_lesson_open(&p.config, ranks, &m);
    if (st != status) fail_msg("%s gave %d: %s", line, st, zero_last_error());
    must_contain(line, part);
    assert_null(m);
    zero_options_destroy(&p.given);
}

TEST(lessons_say_what_they_cannot_run)
{
    refuse(ZERO_ERR_INVALID, 0, LESSON, "expected 1 to 8");
    refuse(ZERO_ERR_INVALID, 9, LESSON, "expected 1 to 8");
    refuse(ZERO_ERR_UNSUPPORTED, 4, LESSON "--shard-ranks 2", "--shard-ranks");
    refuse(ZERO_ERR_UNSUPPORTED, 3, LESSON "--collectives hier", "--collectives");
    refuse(ZERO_ERR_UNSUPPORTED, 3, LESSON "--layers 100", "10000 parameters");
    refuse(ZERO_ERR_INVALID, 3, LESSON "--global-batch 4", "--global-batch 4");
    refuse(ZERO_ERR_INVALID, 3, LESSON "--tp 2 --heads 2", "--tp 2");
    refuse(ZERO_ERR_INVALID, 3, "--model lesson", "--vocab 8");
}

TEST(a_run_ends_with_its_last_step)
{
    parsed p;
    zero_lesson_step step;
    zero_lesson_machine *m = begin(LESSON "--steps 1", 2, &p);
    walk(m);
    assert_int_equal(zero_lesson_walk(m, &step), ZERO_ERR_INVALID);
    must_contain("the second step", "--steps");
    finish(&m, &p);
}

/* Such a decay multiplies weights by -9999 in each step. All ranks have one verdict, and
 * the machine can still be closed. */
TEST(a_lesson_that_diverges_says_so)
{
    parsed p;
    zero_lesson_step step;
    char digest[33];
    zero_lesson_machine *m =
        begin(LESSON "--stage 3 --lr 100 --warmup 0 --weight-decay 100 --steps 50", 3, &p);
    zero_status st = ZERO_OK;
    for (int k = 0; k < 50 && st == ZERO_OK; k++) st = zero_lesson_walk(m, &step);
    assert_int_equal(st, ZERO_ERR_DIVERGED);
    must_contain("a diverging lesson", "not finite");
    assert_int_equal(zero_lesson_digest(m, digest), ZERO_ERR_INVALID);
    finish(&m, &p);
}

/* ---- the narrator ---- */

/* Rank 0 has nothing in its file, so it has no FETCH: its later events are found all the
 * same. */
TEST(programs_of_different_lengths_are_compared)
{
    zero_told list[6] = {{.op = ZERO_OP_LOAD},   {.op = ZERO_OP_LOSS, .rank = 0},
                         {.op = ZERO_TOLD_NONE}, {.op = ZERO_OP_LOAD},
                         {.op = ZERO_OP_FETCH},  {.op = ZERO_OP_LOSS, .rank = 1}};
    zero_tale tale = {list, 2, 3, 0};
    assert_int_equal(zero_tale_leader(&tale), 1);
    assert_null(zero_tale_find(&tale, 1, 0));
    assert_ptr_equal(zero_tale_find(&tale, 2, 0), &list[1]);
    assert_ptr_equal(zero_tale_find(&tale, 2, 1), &list[5]);
}

TEST(every_instruction_has_words)
{
    parsed p;
    zero_lesson_machine *m = begin(LESSON "--dtype bf16", 8, &p);
    zero_narrator n = {&zero_lesson_show(m)->model, NULL};
    for (int op = 0; op < ZERO_OP_KINDS; op++) {
        zero_told t = {.op = op, .unit = -1, .group = 0, .part = ZERO_PART_ALL, .end = 64};
        for (int k = 0; k < ZERO_TOLD_RANKS; k++)
            t.numbers[k] = (zero_told_number){5 + 64 * k, -1.2345e-30};
        zero_tale tale = {&t, 1, 1, 0};
        json_t *step = zero_narrate_tree(&n, &tale);
        char *text = NULL;
        size_t bytes;
        FILE *out = open_memstream(&text, &bytes);
        assert_ok(zero_narrate_step(step, out));
        fclose(out);
        json_decref(step);
        assert_true(strstr(text, zero_op_name((zero_op)op)) != NULL);
        for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
            assert_true(end - line <= ZERO_NARRATE_WIDTH && end[-1] != ' ');
        free(text);
    }
    finish(&m, &p);
}
