/* Our counts against MPI's counts.
 *
 * At MPI_Finalize Open MPI's monitoring writes how many messages and bytes this rank sent to
 * each other rank, separately for the user and for MPI's own collectives; ours are all the
 * user's. (Its variables in the tools interface could be read at any time, but Open MPI 4.1
 * loses those of point-to-point messages while it starts.) So the first group of tests
 * communicates, and a second one compares. The second is skipped with other MPIs, and with
 * Open MPI 6.0.0rc, which crashes in MPI_Init if its monitoring is on (tests/README.md). */
#define TEST_HAS_MAIN
#include "support/collective_job.h"

#include <unistd.h>

#include "support/collective_cases.h"

#define TRIALS    24
#define MAX_RANKS 64

#define MONITOR_CRASHES "Open MPI v6.0.0rc"

typedef struct {
    int64_t messages, bytes;
} amount;

static amount sent_to[MAX_RANKS]; /* by the step lists */
static zero_traffic ledger[ZERO_ALGORITHMS];
static int on_my_node[MAX_RANKS];

/* ---- communicate ---- */

/* Two nodes: the first rank, and the rest. */
static field open_field(void)
{
    zero_comm comm;
    int ids[MAX_RANKS];
    for (int r = 0; r < test_size; r++) ids[r] = r > 0;
    assert_ok(zero_comm_world(&comm));
    assert_ok(zero_comm_pretend_nodes(&comm, ids));
    for (int r = 0; r < test_size; r++)
        on_my_node[r] = comm.layout.node_of[r] == comm.layout.node_of[test_rank];
    return field_open(comm, (size_t)test_size * MAX_STRIDE * sizeof(float));
}

static void note_steps(const zero_steps *steps)
{
    for (int64_t i = 0; i < steps->n; i++) {
        const zero_collective_step *step = &steps->list[i];
        if (step->kind != ZERO_STEP_SEND) continue;
        sent_to[step->peer].messages++;
        sent_to[step->peer].bytes += step->len * (int64_t)zero_type_size(step->type);
    }
}

static void communicate(zero_algorithm algorithm, zero_collective_kind kind)
{
    field f = open_field();
    bool right = true;
    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        uint64_t random = oracle_mix(10 * trial + (uint64_t)kind);
        zero_collective_spec spec = vary_spec(algorithm, kind, test_size, &random);
        job j = job_init(&f, spec, trial, false, 0);
        job_fill(&j);
        note_steps(&j.op.steps);
        job_begin(&j);
        assert_ok(zero_collective_wait(&j.op));
        right = job_is_right(&j) && right;
        job_destroy(&j);
    }
    assert_all(right);
    zero_traffic_add(&ledger[algorithm], 1, &f.comm.traffic[kind]);
    field_close(&f);
}

static void pairs_communicate(void **state)
{
    (void)state;
    for (int kind = 0; kind < ZERO_ALL_REDUCE; kind++)
        communicate(ZERO_ALGORITHM_P2P, (zero_collective_kind)kind);
}

static void two_levels_communicate(void **state)
{
    (void)state;
    for (int kind = 0; kind < ZERO_ALL_REDUCE; kind++)
        communicate(ZERO_ALGORITHM_HIER, (zero_collective_kind)kind);
}

/* ---- compare ---- */

/* Lines such as "E <tab> 0 <tab> 1 <tab> 2000 bytes <tab> 5 msgs sent": from 0 to 1. */
static bool read_monitor(const char *prefix, amount monitored[MAX_RANKS])
{
    char path[256], line[4096];
    snprintf(path, sizeof path, "%s.%d.prof", prefix, test_rank);
    FILE *file = fopen(path, "r");
    if (!file) return false;
    while (fgets(line, sizeof line, file)) {
        int from, to;
        amount a;
        if (sscanf(line, "E %d %d %" SCNd64 " bytes %" SCNd64 " msgs", &from, &to, &a.bytes,
                   &a.messages) == 4 &&
            from == test_rank && to < MAX_RANKS)
            monitored[to] = a;
    }
    fclose(file);
    unlink(path);
    return true;
}

static void mpi_and_the_step_lists_agree_on_each_rank(void **state)
{
    const amount *monitored = *state;
    if (!monitored) skip();
    for (int r = 0; r < test_size; r++) {
        assert_int_equal(monitored[r].messages, sent_to[r].messages);
        assert_int_equal(monitored[r].bytes, sent_to[r].bytes);
        assert_true(r == test_rank || test_size == 1 || monitored[r].messages > 0);
    }
}

/* Two levels read windows inside nodes, so all messages there are of pairs. */
static void mpi_and_the_ledger_agree_inside_and_across_nodes(void **state)
{
    const amount *monitored = *state;
    if (!monitored) skip();
    amount sum[ZERO_REACHES] = {{0, 0}};
    for (int r = 0; r < test_size; r++) {
        sum[on_my_node[r] ? ZERO_INSIDE : ZERO_ACROSS].messages += monitored[r].messages;
        sum[on_my_node[r] ? ZERO_INSIDE : ZERO_ACROSS].bytes += monitored[r].bytes;
    }
    const zero_traffic *pairs = &ledger[ZERO_ALGORITHM_P2P];
    const zero_traffic *levels = &ledger[ZERO_ALGORITHM_HIER];
    assert_int_equal(sum[ZERO_INSIDE].messages, pairs->messages_sent[ZERO_INSIDE]);
    assert_int_equal(sum[ZERO_INSIDE].bytes, pairs->bytes_sent[ZERO_INSIDE]);
    assert_int_equal(levels->messages_sent[ZERO_INSIDE], 0);
    assert_int_equal(sum[ZERO_ACROSS].messages, pairs->messages_sent[ZERO_ACROSS] +
                                                    levels->messages_sent[ZERO_ACROSS]);
    assert_int_equal(sum[ZERO_ACROSS].bytes,
                     pairs->bytes_sent[ZERO_ACROSS] + levels->bytes_sent[ZERO_ACROSS]);
}

/* Before MPI starts: makes it write our messages, separated from its own, to a file. */
static void switch_monitor_on(const char *prefix)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int len;
    MPI_Get_library_version(version, &len);
    if (strncmp(version, MONITOR_CRASHES, strlen(MONITOR_CRASHES)) == 0) return;
    setenv("OMPI_MCA_pml_monitoring_enable", "2", 1);
    setenv("OMPI_MCA_pml_monitoring_enable_output", "3", 1);
    setenv("OMPI_MCA_pml_monitoring_filename", prefix, 1);
}

static int compare(const char *prefix)
{
    amount monitored[MAX_RANKS] = {{0, 0}};
    void *state = read_monitor(prefix, monitored) ? monitored : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(mpi_and_the_step_lists_agree_on_each_rank, state),
        cmocka_unit_test_prestate(mpi_and_the_ledger_agree_inside_and_across_nodes, state),
    };
    if (!state) print_message("skipped: this MPI wrote no monitor of its messages\n");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_communicate),
        cmocka_unit_test(two_levels_communicate),
    };
    char place[] = "/tmp/zero-ledger-XXXXXX", prefix[64];
    if (!mkdtemp(place)) return 1;
    snprintf(prefix, sizeof prefix, "%s/sent", place);
    switch_monitor_on(prefix);
    test_begin(&argc, &argv);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    failed += test_end(0);
    failed += compare(prefix);
    rmdir(place);
    return failed != 0;
}
