/* The profile's clock on a device: marks of a stopwatch whose time this test tells. */

#include "support/test.h"

#include "base/fail.h"
#include "state/device_times.h"

#define MARKS 12

/* The device's clock, and the time of each mark. */
typedef struct {
    double now, at[MARKS];
    int n_set, n_read, fails_at; /* fails_at: the reading that fails, from 1; 0: none */
} device;

static device *device_of(const zero_math *math)
{
    return (device *)math->poll_arg;
}

static void set(const zero_math *math, int mark)
{
    device *d = device_of(math);
    assert_in_range(mark, 0, MARKS - 1);
    d->at[mark] = d->now;
    d->n_set++;
}

static zero_status between(const zero_math *math, int from, int to, double *seconds)
{
    device *d = device_of(math);
    if (++d->n_read == d->fails_at) return zero_fail(ZERO_ERR_ENV, "the device is gone");
    assert_true(d->at[to] >= d->at[from]);
    *seconds = d->at[to] - d->at[from];
    return ZERO_OK;
}

static const zero_stopwatch watch = {.marks = MARKS, .set = set, .between = between};

typedef struct {
    device device;
    zero_math math;
    zero_link link;
    zero_profile profile;
    zero_device_times times;
} fixture;

static zero_unit units[] = {
    {.name = "embedding"}, {.name = "block 0"}, {.name = "block 1"}};
static const zero_model model = {.n_units = 3, .units = units};

static const zero_backend backend = {.stopwatch = &watch};

static void open_fixture(fixture *f)
{
    *f = (fixture){.math.poll_arg = &f->device};
    assert_ok(zero_profile_init(&f->profile, &model));
    zero_status st =
        zero_device_times_init(&f->times, &backend, &f->math, &f->link, &f->profile);
    assert_ok(st);
}

static void close_fixture(fixture *f)
{
    zero_device_times_destroy(&f->times);
    zero_profile_destroy(&f->profile);
}

/* One instruction that the device takes `seconds` for. */
static void takes(fixture *f, const zero_instruction *i, double seconds)
{
    zero_device_times_next(&f->times, i);
    f->device.now += seconds;
}

static double seconds_of(const fixture *f, zero_op op, int column)
{
    return zero_profile_at(&f->profile, ZERO_PROGRAM_STEP, op, column)->seconds;
}

static const zero_instruction forward_0 = {.op = ZERO_OP_FORWARD, .unit = 1},
                              forward_1 = {.op = ZERO_OP_FORWARD, .unit = 2},
                              first = {.op = ZERO_OP_FORWARD, .unit = 0},
                              reduce_wait = {.op = ZERO_OP_REDUCE_WAIT, .unit = -1},
                              load = {.op = ZERO_OP_LOAD, .unit = -1},
                              overflow = {.op = ZERO_OP_OVERFLOW, .unit = -1},
                              update = {.op = ZERO_OP_UPDATE, .unit = -1};

static void walk(fixture *f)
{
    f->times.program = ZERO_PROGRAM_STEP;
    takes(f, &first, 1.0);
    takes(f, &forward_0, 2.0);
    takes(f, &forward_1, 4.0);
    takes(f, &overflow, 8.0);
    takes(f, &update, 16.0);
    zero_device_times_end(&f->times);
    f->device.now += 100.0; /* between walks */
}

TEST(time_belongs_to_the_class_that_began_at_a_mark)
{
    fixture f;
    open_fixture(&f);
    walk(&f);
    assert_int_equal(f.device.n_set, 5); /* both blocks are of one class */
    assert_int_equal(f.device.n_read,
                     2); /* the walk has waited for what stands before OVERFLOW */
    assert_true(seconds_of(&f, ZERO_OP_FORWARD, 1) == 1.0);
    assert_true(seconds_of(&f, ZERO_OP_OVERFLOW, ZERO_ALL_UNITS) == 0.0);
    walk(&f); /* reads the rest of the first one, and nothing of the time between */
    assert_int_equal(f.device.n_read, 6);
    assert_true(seconds_of(&f, ZERO_OP_UPDATE, ZERO_ALL_UNITS) == 16.0);
    walk(&f);
    zero_device_times_read(&f.times);
    assert_true(seconds_of(&f, ZERO_OP_FORWARD, 1) == 3.0);
    assert_true(seconds_of(&f, ZERO_OP_FORWARD, 2) == 18.0);
    assert_true(seconds_of(&f, ZERO_OP_FORWARD, ZERO_ALL_UNITS) == 21.0);
    assert_true(seconds_of(&f, ZERO_OP_OVERFLOW, ZERO_ALL_UNITS) == 24.0);
    assert_true(seconds_of(&f, ZERO_OP_UPDATE, ZERO_ALL_UNITS) == 48.0);
    zero_device_times_read(&f.times); /* nothing is left */
    assert_true(seconds_of(&f, ZERO_OP_UPDATE, ZERO_ALL_UNITS) == 48.0);
    close_fixture(&f);
}

TEST(a_long_walk_reads_its_own_marks)
{
    fixture f;
    open_fixture(&f);
    f.times.program = ZERO_PROGRAM_STEP;
    for (int n = 0; n < 50; n++) {
        takes(&f, &first, 1.0);
        takes(&f, &forward_0, 2.0);
    }
    zero_device_times_end(&f.times);
    zero_device_times_read(&f.times);
    assert_true(seconds_of(&f, ZERO_OP_FORWARD, 1) == 50.0);
    assert_true(seconds_of(&f, ZERO_OP_FORWARD, 2) == 100.0);
    close_fixture(&f);
}

/* Waits for messages and for copies, as far as the device had nothing to do, and nothing else. */
TEST(what_the_device_waited_for_is_exposed)
{
    fixture f;
    open_fixture(&f);
    f.times.program = ZERO_PROGRAM_STEP;
    takes(&f, &load, 0.5);
    takes(&f, &forward_0, 2.0);
    takes(&f, &reduce_wait, 4.0);
    takes(&f, &overflow, 8.0);
    takes(&f, &update, 16.0);
    assert_true(zero_profile_exposed(&f.profile, ZERO_PROGRAM_STEP) == 4.5);
    assert_true(zero_profile_exposed(&f.profile, ZERO_PROGRAM_EVALUATE) == 0.0);
    assert_true(zero_profile_computing(&f.profile, ZERO_PROGRAM_STEP) == 2.0);
    f.profile.is_of_device = false; /* a host's LOAD is work */
    assert_true(zero_profile_exposed(&f.profile, ZERO_PROGRAM_STEP) == 4.0);
    close_fixture(&f);
}

TEST(a_failure_is_kept_and_ends_the_reading)
{
    fixture f;
    open_fixture(&f);
    f.device.fails_at = 2;
    walk(&f);
    zero_device_times_read(&f.times);
    assert_int_equal(f.device.n_read, 2);
    assert_true(seconds_of(&f, ZERO_OP_FORWARD, 1) == 1.0);
    assert_int_equal(zero_link_status(&f.link), ZERO_ERR_ENV);
    walk(&f);
    zero_device_times_read(&f.times);
    assert_int_equal(f.device.n_read, 2);
    close_fixture(&f);
}
