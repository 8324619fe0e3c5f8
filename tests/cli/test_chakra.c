/* `zero simulate --chakra`: the files of all ranks, decoded, are the plan's ledger; every
 * message has two ends; and a replay ends. */

#include <stdlib.h>
#include <unistd.h>

#include "support/test.h"

#include "cli/simulate_options.h"
#include "io/bytes.h"
#include "support/plan_words.h"
#include "trace/chakra.h"

enum { RANKS = 8, MOST = 200000 };

/* Types of nodes in et_def.proto. */
enum { MEM_LOAD = 2, SEND = 5, RECEIVE };

typedef struct {
    uint64_t id, type, microseconds, size, from, to, tag;
    int first, n; /* dependencies */
    bool of_window, is_done;
} node;

typedef struct {
    node *nodes;
    uint64_t *dependencies;
    int n, n_dependencies, done;
} trace;

static uint64_t varint(const unsigned char **at)
{
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        unsigned char byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
}

static void take_attribute(const unsigned char *at, const unsigned char *end, node *to)
{
    char name[32] = "";
    while (at < end) {
        uint64_t key = varint(&at), value = varint(&at);
        const unsigned char *text = at;
        if ((key & 7) == 2) at += value;
        if (key >> 3 == 1)
            snprintf(name, sizeof name, "%.*s", (int)value, (const char *)text);
        else if (strcmp(name, "comm_size") == 0 || strcmp(name, "tensor_size") == 0)
            to->size = value;
        else if (strcmp(name, "comm_src") == 0)
            to->from = value;
        else if (strcmp(name, "comm_dst") == 0)
            to->to = value;
        else if (strcmp(name, "comm_tag") == 0)
            to->tag = value;
        else if (strcmp(name, "from") == 0)
            to->of_window = memcmp(text, "window", 6) == 0;
    }
    assert_ptr_equal(at, end);
}

static void take_node(trace *t, const unsigned char *at, const unsigned char *end)
{
    node *n = &t->nodes[t->n++];
    *n = (node){.first = t->n_dependencies};
    assert_true(t->n < MOST);
    while (at < end) {
        uint64_t key = varint(&at), value = varint(&at);
        const unsigned char *inside = at;
        if ((key & 7) == 2) at += value;
        switch (key >> 3) {
        case 1: n->id = value; break;
        case 3: n->type = value; break;
        case 5:
            assert_true(value > 0 && value < n->id);
            assert_true(t->n_dependencies < MOST);
            t->dependencies[t->n_dependencies++] = value;
            n->n++;
            break;
        case 7: n->microseconds = value; break;
        case 10: take_attribute(inside, at, n); break;
        default: break;
        }
    }
    assert_ptr_equal(at, end);
    assert_int_equal(n->id, t->n); /* from 1 on, in order */
}

static void read_trace(const char *directory, int rank, trace *t)
{
    char path[64];
    zero_bytes file = {0};
    snprintf(path, sizeof path, "%s/zero.%d.et", directory, rank);
    assert_ok(zero_bytes_read(&file, path));
    assert_int_equal(unlink(path), 0);
    t->nodes = calloc(MOST, sizeof *t->nodes);
    t->dependencies = calloc(MOST, sizeof *t->dependencies);
    assert_true(t->nodes && t->dependencies);
    const unsigned char *at = file.bytes, *end = at + file.len;
    for (bool is_head = true; at < end; is_head = false) {
        uint64_t length = varint(&at);
        if (!is_head) take_node(t, at, at + length);
        at += length;
    }
    assert_ptr_equal(at, end);
    zero_bytes_destroy(&file);
}

/* Whether the other end has been sent, with these bytes. */
static bool has_arrived(const trace traces[RANKS], const node *n)
{
    const trace *from = &traces[n->from];
    for (int k = 0; k < from->n; k++) {
        const node *s = &from->nodes[k];
        if (s->type == SEND && s->to == n->to && s->tag == n->tag)
            return s->is_done && s->size == n->size;
    }
    fail_msg("a message from %d to %d that nobody sends", (int)n->from, (int)n->to);
    return false;
}

static bool may_run(const trace traces[RANKS], const trace *t, const node *n)
{
    for (int k = 0; k < n->n; k++)
        if (!t->nodes[t->dependencies[n->first + k] - 1].is_done) return false;
    return n->type != RECEIVE || has_arrived(traces, n);
}

static void replay(trace traces[RANKS])
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int rank = 0; rank < RANKS; rank++)
            for (int k = 0; k < traces[rank].n; k++) {
                node *n = &traces[rank].nodes[k];
                if (n->is_done || !may_run(traces, &traces[rank], n)) continue;
                n->is_done = moved = true;
                traces[rank].done++;
            }
    }
    for (int rank = 0; rank < RANKS; rank++)
        assert_int_equal(traces[rank].done, traces[rank].n);
}

static void check(const char *more)
{
    char words[512], line[512], directory[] = "/tmp/zero-chakra-XXXXXX";
    char *argv[48];
    int argc = 0;
    int64_t sent_by_all = 0, planned_of_all = 0;
    double seconds = 0.0, planned_seconds = 0.0;
    static trace traces[RANKS];
    zero_simulate_options o;
    ZERO_AT_END(zero_options_destroy) zero_options given = {0};
    ZERO_AT_END(zero_simulation_report_destroy) zero_simulation_report report = {0};
    snprintf(line, sizeof line,
             "--model gpt2 --layers 2 --hidden 32 --heads 2 --seq 16 --vocab 64 --ranks 8 "
             "--network 1us,1G --flops 1M %s",
             more);
    snprintf(words, sizeof words, "%s", line);
    for (char *w = strtok(words, " "); w; w = strtok(NULL, " ")) argv[argc++] = w;
    assert_ok(zero_options_read(&zero_command_simulate, argc, argv, &o, &given));
    assert_ok(zero_simulation_report_make(&report, &o.request));
    assert_non_null(mkdtemp(directory));
    assert_ok(zero_chakra_write(directory, line, &report));
    memset(traces, 0, sizeof traces);
    for (int rank = 0; rank < RANKS; rank++) {
        zero_plan_rank plan;
        zero_plan_ledger l;
        int64_t sent = 0, received = 0, of_windows = 0;
        read_trace(directory, rank, &traces[rank]);
        for (int k = 0; k < traces[rank].n; k++) {
            const node *n = &traces[rank].nodes[k];
            const int64_t bytes = (int64_t)n->size;
            if (n->type == SEND) sent += bytes;
            if (n->type == RECEIVE) received += bytes;
            if (n->type == MEM_LOAD && n->of_window) of_windows += bytes;
            if (rank == 0) seconds += 1e-6 * (double)n->microseconds;
        }
        assert_ok(zero_plan_rank_open(
            &report.plan, zero_plan_stage_number(&report.plan.stages[0]), rank, &plan));
        zero_plan_add_up(&plan.schedule, &l);
        zero_plan_exchange data = zero_plan_data_of(&l);
        zero_traffic_add(&data.traffic, 1, &l.join.traffic);
        zero_traffic_add(&data.traffic, 1, &l.collect.traffic);
        zero_traffic_add(&data.traffic, 1, &l.send.traffic);
        zero_traffic_add(&data.traffic, 1, &l.receive.traffic);
        zero_volume planned = zero_traffic_total(&data.traffic);
        if (received + of_windows != planned.bytes_received)
            fail_msg("%s: rank %d receives %" PRId64 " + %" PRId64 ", planned %" PRId64,
                     more, rank, received, of_windows, planned.bytes_received);
        sent_by_all += sent + of_windows;
        planned_of_all += planned.bytes_sent;
        zero_plan_rank_close(&plan);
    }
    assert_true(sent_by_all > 0 && sent_by_all == planned_of_all);
    planned_seconds = report.results[0].plan.compute;
    assert_true(fabs(seconds - planned_seconds) < 1e-3 * planned_seconds);
    replay(traces);
    for (int rank = 0; rank < RANKS; rank++) {
        free(traces[rank].nodes);
        free(traces[rank].dependencies);
    }
    assert_int_equal(rmdir(directory), 0);
}

TEST(bytes_of_all_ranks_are_the_ledgers_and_a_replay_ends)
{
    static const char *const jobs[] = {
        "--stage 0",
        "--stage 1",
        "--stage 2 --bucket 2K --global-batch 16 --micro-batch 1",
        "--stage 3 --prefetch 2 --recompute",
        "--stage 3 --partition owner",
        "--stage 3 --fake-nodes 2",
        "--stage 2 --fake-nodes 2 --shard-ranks 4",
        "--stage 3 --fake-nodes 2 --node-parameters",
        "--stage 3 --tp 2 --fake-nodes 2",
        "--stage 3 --offload DIR --disk 1G,1G",
        "--pp 2 --stage 1 --fake-nodes 4 --global-batch 16 --micro-batch 1",
    };
    for (int k = 0; k < ZERO_COUNT(jobs); k++) check(jobs[k]);
}
