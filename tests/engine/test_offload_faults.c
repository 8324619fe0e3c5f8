/* A disk that fails under a run: an error, a file that ends, a wrong bit, each on one rank and at
 * some moment. All ranks get the failure, which names rank, block and byte, and no rank waits for
 * ever. Short transfers are continued. Steps without an update write nothing. */
#include "support/faulty_unit.h"
#include "support/gpt2_test.h"
#include "support/job_place.h"

#include "base/range.h"

#include <errno.h>
#include <stdatomic.h>

/* ---- a disk that fails ---- */

typedef enum {
    SOUND,
    ERROR_IN_READ,
    ERROR_IN_WRITE,
    ENDS_IN_READ,
    ENDS_IN_WRITE,
    WRONG_BIT, /* in the bytes that are read */
    SHORT,     /* a page at a time */
} disk_fault;

/* The linker sends our objects' calls here. The fault is on the bytes begin .. end-1 of a file. */
static struct {
    atomic_int fault;
    int fd;
    uint64_t begin, end;
} disk;

typedef ssize_t read_call(int fd, void *data, size_t bytes, off_t at);
typedef ssize_t write_call(int fd, const void *data, size_t bytes, off_t at);
read_call __real_pread, __real_pread64, __wrap_pread, __wrap_pread64;
write_call __real_pwrite, __real_pwrite64, __wrap_pwrite, __wrap_pwrite64;

static disk_fault fault_at(int fd, off_t at)
{
    bool is_there = fd == disk.fd && (uint64_t)at >= disk.begin && (uint64_t)at < disk.end;
    return is_there ? (disk_fault)atomic_load(&disk.fault) : SOUND;
}

static ssize_t fail_with(int error)
{
    errno = error;
    return -1;
}

static size_t page_of(size_t bytes)
{
    return bytes < ZERO_SCRATCH_ALIGN ? bytes : ZERO_SCRATCH_ALIGN;
}

static ssize_t faulty_read(read_call *real, int fd, void *data, size_t bytes, off_t at)
{
    ssize_t n;
    switch (fault_at(fd, at)) {
    case ERROR_IN_READ: return fail_with(EIO);
    case ENDS_IN_READ: return 0;
    case SHORT: return real(fd, data, page_of(bytes), at);
    case WRONG_BIT:
        n = real(fd, data, bytes, at);
        ((char *)data)[n / 2] ^= 1;
        return n;
    default: return real(fd, data, bytes, at);
    }
}

static ssize_t faulty_write(write_call *real, int fd, const void *data, size_t bytes,
                            off_t at)
{
    switch (fault_at(fd, at)) {
    case ERROR_IN_WRITE: return fail_with(EIO);
    case ENDS_IN_WRITE: return 0;
    case SHORT: return real(fd, data, page_of(bytes), at);
    default: return real(fd, data, bytes, at);
    }
}

ssize_t __wrap_pread(int fd, void *data, size_t bytes, off_t at)
{
    return faulty_read(__real_pread, fd, data, bytes, at);
}

ssize_t __wrap_pread64(int fd, void *data, size_t bytes, off_t at)
{
    return faulty_read(__real_pread64, fd, data, bytes, at);
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t bytes, off_t at)
{
    return faulty_write(__real_pwrite, fd, data, bytes, at);
}

ssize_t __wrap_pwrite64(int fd, const void *data, size_t bytes, off_t at)
{
    return faulty_write(__real_pwrite64, fd, data, bytes, at);
}

/* ---- runs ---- */

static test_setup setup_on_disk(int stage, zero_type type, zero_offload when)
{
    test_setup setup = test_setup_of(stage, type);
    setup.directory = test_place;
    if (when == ZERO_OFFLOAD_BACKWARD) setup.clip = 0.0;
    setup.plan.offload = when;
    setup.plan.offload_depth = 2;
    setup.plan.offload_parameters = stage == 3;
    setup.plan.offload_activations = setup.plan.recompute;
    return setup;
}

static uint64_t offset_of(const zero_schedule *s, int buffer)
{
    uint64_t at = 0;
    for (int i = 0; i < buffer; i++)
        if (s->buffers[i].space == ZERO_SPACE_FILE) at += s->buffers[i].bytes;
    return at;
}

/* The fault on one block of this rank's file. */
static void break_block(const test_run *run, int buffer, disk_fault fault)
{
    const zero_runner *r = &run->engine.runner;
    disk.fd = zero_scratch_get_file(r->tier.scratch)->fd;
    disk.begin = offset_of(r->schedule, buffer);
    disk.end = disk.begin + r->schedule->buffers[buffer].bytes;
    atomic_store(&disk.fault, fault);
}

static void mend_disk(void)
{
    atomic_store(&disk.fault, SOUND);
}

/* The states of the last group of which this rank has some; not padding only. */
static int some_states(const test_run *run)
{
    const zero_schedule *s = &run->engine.schedule;
    for (int g = run->model.n_groups - 1; g >= 0; g--)
        if (!zero_range_is_empty(zero_states_held(&run->engine.schedule, g)))
            return s->groups[g].first_block;
    fail_msg("rank %d has no states", test_rank);
    return -1;
}

/* ---- failures ---- */

static int faulty_rank(void)
{
    return test_size - 1;
}

static bool message_has(const char *format, uint64_t number)
{
    char text[64];
    snprintf(text, sizeof text, format, number);
    return strstr(zero_last_error(), text) != NULL;
}

/* Every rank's message names the place, which the faulty rank knows. */
static void expect_place(const test_run *run, int buffer)
{
    uint64_t place[2] = {0};
    if (test_rank == faulty_rank()) {
        place[0] = (uint64_t)run->engine.runner.tier.blocks[buffer].number;
        place[1] = disk.begin;
    }
    MPI_Bcast(place, 2, MPI_UINT64_T, faulty_rank(), MPI_COMM_WORLD);
    bool names_it =
        message_has("block %" PRIu64, place[0]) &&
        message_has("at byte %" PRIu64, place[1]) &&
        (test_size == 1 || message_has("rank %" PRIu64, (uint64_t)faulty_rank()));
    if (!names_it) print_error("%s\n", zero_last_error());
    assert_all(names_it);
}

static zero_status status_of(disk_fault fault)
{
    return fault == WRONG_BIT ? ZERO_ERR_FORMAT : ZERO_ERR_ENV;
}

/* No digest is made from a broken file, so no checkpoint is either. */
static void expect_no_digest(test_run *run, disk_fault fault)
{
    char hex[33];
    assert_all(zero_engine_digest(&run->engine, hex) == status_of(fault));
    assert_all(zero_engine_digest(&run->engine, hex) == status_of(fault));
}

typedef zero_status moment(test_run *run);

/* A transfer may fail after a step's vote. The next one tells. */
static zero_status two_steps(test_run *run)
{
    zero_status st = test_step(run, 2);
    return st == ZERO_OK ? test_step(run, 3) : st;
}

static zero_status step_and_settle(test_run *run)
{
    zero_status st = test_step(run, 2);
    return st == ZERO_OK ? zero_engine_settle(&run->engine) : st;
}

static zero_status digest(test_run *run)
{
    char hex[33];
    return zero_engine_digest(&run->engine, hex);
}

static zero_status rest(void *arg, const zero_state_block *block)
{
    (void)arg, (void)block;
    return ZERO_OK;
}

/* All states are rewritten, as when a checkpoint is loaded. */
static zero_status change(test_run *run)
{
    zero_status st = ZERO_OK;
    for (int g = 0; st == ZERO_OK && g < run->model.n_groups; g++)
        st = zero_states_visit(&run->engine.runner, g,
                               zero_states_held(&run->engine.schedule, g),
                               ZERO_VISIT_CHANGE, rest, NULL);
    return zero_agree(run->comm, st);
}

static zero_status evaluate(test_run *run)
{
    zero_source source = test_words(run);
    double loss;
    return zero_engine_evaluate(&run->engine, &source, &loss);
}

static zero_status generate(test_run *run)
{
    zero_sampling how = {.temperature = 1.0, .known = run->model.vocab};
    int32_t text[1 + TEST_WORDS] = {0};
    return test_generate_text(&run->engine, &how, 1, TEST_WORDS, text);
}

/* The fault comes after two sound steps. */
static void check_failure(const test_setup *setup, disk_fault fault, moment *then)
{
    test_run run;
    int buffer = -1;
    test_run_open(&run, setup, test_size);
    test_run_steps(&run, 0, 2);
    all_ok(zero_engine_settle(&run.engine));
    if (test_rank == faulty_rank()) {
        buffer = then == evaluate || then == generate
                     ? run.engine.schedule.groups[1].first_param_block
                     : some_states(&run);
        break_block(&run, buffer, fault);
    }
    zero_status st = then(&run);
    if (st != status_of(fault))
        print_error("fault %d: status %d, expected %d\n", (int)fault, (int)st,
                    (int)status_of(fault));
    assert_all(st == status_of(fault));
    expect_place(&run, buffer);
    mend_disk();
    expect_no_digest(&run, fault);
    test_run_close(&run);
}

static const disk_fault faults[] = {ERROR_IN_READ, ERROR_IN_WRITE, ENDS_IN_READ,
                                    ENDS_IN_WRITE, WRONG_BIT};
enum { FAULTS = COUNT(faults) };

TEST(a_fault_in_a_step_ends_the_run_on_all_ranks)
{
    for (int when = ZERO_OFFLOAD_END; when <= ZERO_OFFLOAD_BACKWARD; when++)
        for (int i = 0; i < FAULTS; i++) {
            int stage = (when + i) % ZERO_STAGE_COUNT;
            zero_type type = i % 2 == 0 ? ZERO_BF16 : ZERO_FP32;
            test_setup setup = setup_on_disk(stage, type, (zero_offload)when);
            check_failure(&setup, faults[i],
                          (i + when) % 2 == 0 ? two_steps : step_and_settle);
        }
}

static bool is_of_reads(disk_fault fault)
{
    return fault != ERROR_IN_WRITE && fault != ENDS_IN_WRITE;
}

/* In stage 0 each rank looks at some states only. */
TEST(a_fault_while_states_are_visited_ends_the_run_on_all_ranks)
{
    for (int stage = 1; stage < ZERO_STAGE_COUNT; stage += 2)
        for (int i = 0; i < FAULTS; i++) {
            zero_type type = i % 2 == 0 ? ZERO_FP32 : ZERO_BF16;
            test_setup setup = setup_on_disk(stage, type, ZERO_OFFLOAD_LAZY);
            check_failure(&setup, faults[i], is_of_reads(faults[i]) ? digest : change);
        }
}

TEST(a_fault_in_parameters_ends_evaluations_and_texts)
{
    test_setup setup = setup_on_disk(3, ZERO_BF16, ZERO_OFFLOAD_LAZY);
    for (int i = 0; i < FAULTS; i++) {
        if (!is_of_reads(faults[i])) continue;
        check_failure(&setup, faults[i], evaluate);
        check_failure(&setup, faults[i], generate);
    }
}

/* ---- no failures ---- */

TEST(short_transfers_are_continued)
{
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++) {
        test_setup setup = setup_on_disk(stage, ZERO_BF16, ZERO_OFFLOAD_LAZY);
        test_digest want = test_digest_after(&setup, test_size, 3);
        test_run run;
        test_run_open(&run, &setup, test_size);
        break_block(&run, some_states(&run), SHORT);
        test_run_steps(&run, 0, 3);
        assert_all(test_same(test_run_digest(&run), want));
        mend_disk();
        test_run_close(&run);
    }
}

/* ---- steps without an update ---- */

enum { FAULTY_STEP = 2, UNIT = 2 };

static zero_scratch_traffic traffic_of(const test_run *run)
{
    const zero_scratch *scratch = run->engine.runner.tier.scratch;
    return scratch ? zero_scratch_get_traffic(scratch) : (zero_scratch_traffic){0};
}

static void check_overflow(test_run *run)
{
    all_ok(zero_engine_settle(&run->engine));
    zero_scratch_traffic before = traffic_of(run), after;
    assert_all(test_step(run, FAULTY_STEP) == ZERO_OK && run->last.overflow);
    all_ok(zero_engine_settle(&run->engine));
    after = traffic_of(run);
    assert_all(after.bytes_written == before.bytes_written);
    assert_all(run->setup.plan.stage == 3 || after.bytes_read == before.bytes_read);
}

/* A step with an overflow and two without. */
static test_digest digest_after_overflow(const test_setup *setup)
{
    test_run run;
    test_fault f = {.step = FAULTY_STEP, .is_mine = test_rank == 0, .number = INFINITY};
    test_run_open(&run, setup, test_size);
    f.element = run.model.units[UNIT].tensors[0][ZERO_FC_WEIGHT].offset + 5;
    test_plant(&run, UNIT, &f);
    test_run_steps(&run, 0, FAULTY_STEP);
    if (setup->directory) assert_all(traffic_of(&run).bytes_written > 0);
    check_overflow(&run);
    f.step = -1;
    test_run_steps(&run, FAULTY_STEP, 2);
    assert_all(run.engine.skipped == 1);
    test_digest d = test_run_digest(&run);
    test_run_close(&run);
    return d;
}

TEST(a_step_that_overflows_writes_nothing)
{
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++)
        for (int when = ZERO_OFFLOAD_END; when <= ZERO_OFFLOAD_LAZY; when++) {
            test_setup setup = setup_on_disk(stage, ZERO_FP16, (zero_offload)when);
            setup.plan.offload_activations = 0; /* they are written in every step */
            test_setup twin = setup;
            twin.directory = NULL;
            twin.plan.offload = ZERO_OFFLOAD_OFF;
            twin.plan.offload_parameters = 0;
            test_digest want = digest_after_overflow(&twin);
            assert_all(test_same(digest_after_overflow(&setup), want));
        }
}
