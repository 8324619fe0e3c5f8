/* collective_faults MODE LIMIT - run by collective_faults.sh: the last rank misuses
 * zero/collective.h under a watchdog of LIMIT seconds. Ends with one message and its exit code. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "zero/collective.h"

static zero_comm *world;
static int rank, size;
static float data[4 * 8192], out[8192];

#define TRY(call) \
    do { \
        zero_status st_ = (call); \
        if (st_ != ZERO_OK) return st_; \
    } while (0)

/* In slices, as interpreters wait, so that they hear their user. */
static zero_status end(zero_work *work)
{
    for (bool done = false; !done;) TRY(zero_work_wait(work, 0.1, &done));
    zero_work_close(&work);
    return ZERO_OK;
}

static zero_status all_reduce(zero_comm *comm, zero_number number, int64_t count)
{
    zero_work *work;
    TRY(zero_all_reduce_begin(comm, ZERO_SUM, number, count, data, &work));
    return end(work);
}

static bool am_last(void)
{
    return rank == size - 1;
}

static zero_status skip(void)
{
    for (int i = 0; i < 5; i++)
        if (!am_last() || i != 2) TRY(all_reduce(world, ZERO_NUMBER_FP32, 100));
    return ZERO_OK;
}

static zero_status other_kind(void)
{
    zero_work *work;
    TRY(all_reduce(world, ZERO_NUMBER_FP32, 7));
    if (am_last()) return all_reduce(world, ZERO_NUMBER_FP32, 4096);
    TRY(zero_reduce_scatter_begin(world, ZERO_SUM, ZERO_NUMBER_FP32, 1000, data, out,
                                  &work));
    return end(work);
}

static zero_status other_size(void)
{
    return all_reduce(world, ZERO_NUMBER_FP32, am_last() ? 500 : 1000);
}

/* In memory that neighbours would read. */
static zero_status other_size_in_memory(void)
{
    zero_work *work;
    TRY(zero_comm_share(world, 1 << 20));
    char *memory = zero_comm_allocate(world, 1 << 18);
    if (!memory) return ZERO_ERR_NOMEM;
    TRY(zero_all_gather_begin(world, am_last() ? 40000 : 50000, memory, data, &work));
    return end(work);
}

static zero_status other_type(void)
{
    return all_reduce(world, am_last() ? ZERO_NUMBER_INT32 : ZERO_NUMBER_FP32, 1000);
}

static zero_status other_root(void)
{
    zero_work *work;
    TRY(zero_broadcast_begin(world, 1 << 12, am_last() ? 1 : 0, data, &work));
    return end(work);
}

static void tell(void *arg, char *text, size_t bytes)
{
    snprintf(text, bytes, "load_batch, train.py:%d", *(const int *)arg);
}

static zero_status asleep(void)
{
    static int line = 57;
    TRY(zero_comm_on_question(world, tell, &line));
    TRY(all_reduce(world, ZERO_NUMBER_FP32, 100));
    if (am_last()) sleep(60);
    return all_reduce(world, ZERO_NUMBER_FP32, 100);
}

/* Groups of neighbours, and of the same places in these: all but the last rank wait for each other,
 * or for it. */
static zero_status asleep_in_a_mesh(void)
{
    zero_comm *shard, *replicas;
    const int near[] = {rank / 2 * 2, rank / 2 * 2 + 1}, far[] = {rank % 2, rank % 2 + 2};
    TRY(zero_comm_open_ranks(world, 2, near, rank < 2 ? "shard 0" : "shard 1", &shard));
    TRY(zero_comm_open_ranks(world, 2, far, rank % 2 ? "replicas 1" : "replicas 0",
                             &replicas));
    for (int i = 0; i < 100; i++) {
        if (am_last() && i == 3) sleep(60);
        TRY(all_reduce(shard, ZERO_NUMBER_BF16, 64));
        TRY(all_reduce(replicas, ZERO_NUMBER_BF16, 32));
    }
    return ZERO_OK;
}

static zero_status not_there(void)
{
    zero_comm *group;
    const int all[] = {0, 1, 2, 3};
    if (am_last()) sleep(60);
    return zero_comm_open_ranks(world, size, all, "mesh", &group);
}

static zero_status lonely_receive(void)
{
    zero_work *work;
    zero_message message = {
        .peer = 0, .receives = true, .tag = 3, .data = data, .bytes = 40};
    if (am_last()) message.bytes = 44; /* longer than what is sent */
    if (rank == 0) message = (zero_message){size - 1, false, 3, data, 40};
    if (rank != 0 && !am_last()) return all_reduce(world, ZERO_NUMBER_FP32, 10);
    TRY(zero_exchange_begin(world, 1, &message, &work));
    TRY(end(work));
    return all_reduce(world, ZERO_NUMBER_FP32, 10);
}

static const struct {
    const char *name;
    zero_status (*run)(void);
} modes[] = {
    {"skip", skip},
    {"other-kind", other_kind},
    {"other-size", other_size},
    {"other-size-in-memory", other_size_in_memory},
    {"other-type", other_type},
    {"other-root", other_root},
    {"asleep", asleep},
    {"asleep-in-a-mesh", asleep_in_a_mesh},
    {"not-there", not_there},
    {"lonely-receive", lonely_receive},
};

int main(int argc, char **argv)
{
    if (argc != 3) return 1;
    zero_status st = zero_world_open(1000.0, &world);
    if (st == ZERO_OK) st = zero_world_set_watchdog(world, atof(argv[2]));
    rank = zero_comm_rank(world);
    size = zero_comm_size(world);
    for (size_t i = 0; st == ZERO_OK && i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(argv[1], modes[i].name) == 0) st = modes[i].run();
    if (st == ZERO_OK) st = zero_world_close(&world);
    if (st == ZERO_OK) return 0;
    fprintf(stderr, "faults: rank %d: %s\n", rank, zero_last_error());
    zero_world_abort(zero_exit_code(st));
}
