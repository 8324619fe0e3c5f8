/* The model of time against values computed by hand, and against a second paper. */

#include "support/test.h"

#include <jansson.h>

#include "paper/paper_tree.h"

/* Psi = 12 L h^2 + 13 L h + (V + s) h + 2 h = 1536 + 208 + 160 + 16 = 1920. */
#define PSI 1920.0

static paper_setup setup_of(int parts, int ranks, int stage)
{
    return (paper_setup){
        .shape = {.layers = 2, .hidden = 8, .heads = 2, .seq = 4, .vocab = 16},
        .model_parallel = parts,
        .n_ranks = ranks,
        .batch = 3,
        .stage = stage,
        .checkpoints = true};
}

/* 12 tokens reach a quarter of the peak: 250 flop/s. */
static zero_machine_file machine_of(double devices)
{
    return (zero_machine_file){.devices = devices,
                               .memory = 1e9,
                               .memory_bandwidth = 1000.0,
                               .peak = {0.0, 0.0, 1000.0},
                               .share = 0.5,
                               .tokens = 12.0,
                               .unaligned_every = 4.0,
                               .unaligned_share = 0.5,
                               .inside = {0.5, 100.0},
                               .between = {2.0, 40.0},
                               .host = 64.0};
}

static void assert_near(double found, double expected)
{
    if (fabs(found - expected) > 1e-9 * fabs(expected) + 1e-12)
        fail_msg("%.12g, expected %.12g", found, expected);
}

static paper_time time_on(const paper_setup *setup, bool overlaps,
                          const zero_machine_file *m)
{
    json_t *row = row_of(setup, overlaps);
    paper_time t = time_of_row(row, m);
    json_decref(row);
    return t;
}

static paper_time time_of(paper_setup setup, bool overlaps, double devices)
{
    zero_machine_file m = machine_of(devices);
    paper_time t = time_on(&setup, overlaps, &m);
    assert_near(t.step, t.compute + t.tensor + t.data + t.host + t.update);
    assert_near(t.rate, t.flops / t.step);
    return t;
}

/* ---- flops ---- */

/* 96 b s L h^2 (1 + s/6h + V/16Lh) = 96 * 1536 * (1 + 1/12 + 1/16); without recomputing
 * 72 * 1536 * (1 + 1/12 + 1/12). */
TEST(flops_are_those_of_the_formulas)
{
    paper_setup setup = setup_of(1, 1, 0);
    assert_near(time_of(setup, true, 4).replica_flops, 168960.0);
    setup.checkpoints = false;
    assert_near(time_of(setup, true, 4).replica_flops, 129024.0);
    setup.batch = 6;
    assert_near(time_of(setup, true, 4).replica_flops, 258048.0);
}

TEST(products_reach_half_of_their_share_at_tokens)
{
    paper_setup setup = setup_of(1, 1, 0);
    zero_machine_file m = machine_of(4);
    assert_near(zero_machine_products(&m, ZERO_FP16, &setup.shape, 12.0), 250.0);
    assert_near(zero_machine_products(&m, ZERO_FP16, &setup.shape, 36.0), 375.0);
    assert_near(zero_machine_products(&m, ZERO_FP32, &setup.shape, 12.0), 0.0);
}

/* Attention is (1/12) / (1 + 1/12 + 1/16) = 4/55 of the flops, and takes twice as long if 8 does not
 * divide the head's 4. */
TEST(unaligned_heads_slow_down_attention_alone)
{
    paper_setup setup = setup_of(1, 1, 0);
    zero_machine_file m = machine_of(4);
    m.unaligned_every = 8.0;
    assert_near(zero_machine_products(&m, ZERO_FP16, &setup.shape, 12.0),
                250.0 / (1.0 + 4.0 / 55.0));
}

/* ---- the parts of a step ---- */

TEST(one_device_computes_and_updates)
{
    paper_time t = time_of(setup_of(1, 1, 0), true, 4);
    assert_near(t.flops, 168960.0);
    assert_near(t.compute, 168960.0 / 250.0);
    assert_near(t.tensor + t.data + t.host, 0.0);
    assert_near(t.update, 28.0 * PSI / 1000.0);
}

/* b s h = 96 elements. T = 2: 12 messages of 96 bytes per block, two blocks. */
TEST(tensor_parallel_sums_wait_for_their_link)
{
    paper_setup setup = setup_of(2, 1, 0);
    assert_near(time_of(setup, true, 4).tensor, 2 * 12 * (0.5 + 96.0 / 100.0));
    assert_near(time_of(setup, true, 1).tensor, 2 * 12 * (2.0 + 96.0 / 40.0));
    assert_near(time_of(setup, true, 4).flops, 168960.0 / 2);
    setup.checkpoints = false;
    assert_near(time_of(setup, true, 4).tensor, 2 * 8 * (0.5 + 96.0 / 100.0));
}

/* T = 4: 12 b s h (T - 1)/T elements of 2 bytes per block; P_a a twelfth more, in bytes and
 * messages. */
TEST(partitioned_activations_add_a_twelfth)
{
    paper_setup setup = setup_of(4, 1, 0);
    double base = time_of(setup, true, 4).tensor;
    assert_near(base, 2 * (12 * 3 * 0.5 + 12 * 96 * 0.75 * 2 / 100.0));
    setup.keep = KEEP_PIECE;
    assert_near(time_of(setup, true, 4).tensor, base * 13 / 12);
    assert_near(time_of(setup, true, 4).host, 0.0);
}

/* A device's pieces, 2 b s h L / T = 192 bytes, go and come; 2 devices share 64 bytes/s. */
TEST(activations_on_the_host_take_its_link_twice)
{
    paper_setup setup = setup_of(2, 1, 0);
    setup.keep = KEEP_IN_CPU;
    assert_near(time_of(setup, true, 4).host, 2 * 192.0 * 2 / 64.0);
    setup.n_ranks = 8; /* 4 devices on a node */
    assert_near(time_of(setup, true, 4).host, 2 * 192.0 * 4 / 64.0);
}

/* One exchange: 2 Psi (N - 1)/N bytes on a device's link, or with T groups sharing a node's. */
TEST(exchanges_share_the_link_of_a_node)
{
    double bytes = 2 * PSI * 3 / 4;
    assert_near(time_of(setup_of(1, 4, 2), true, 4).data_all, 2 * bytes / 100.0);
    assert_near(time_of(setup_of(1, 4, 2), true, 2).data_all, 2 * bytes / 40.0);
    assert_near(time_of(setup_of(2, 4, 2), true, 4).data_all, 2 * (bytes / 2) * 2 / 40.0);
    assert_near(time_of(setup_of(4, 4, 2), true, 2).data_all, 2 * (bytes / 4) * 2 / 40.0);
    assert_near(time_of(setup_of(1, 4, 3), true, 4).data_all, 3 * bytes / 100.0);
    assert_near(time_of(setup_of(1, 1, 2), true, 4).data_all, 0.0);
}

/* Computing takes 675.84 s: forward a quarter. A slow link makes an exchange of 28.8 s last 288. */
TEST(only_what_no_pass_hides_is_exposed)
{
    const double compute = 168960.0 / 250.0, backward = 0.75 * compute;
    zero_machine_file slow = machine_of(4);
    slow.inside.bandwidth = 4.0;
    double one = 2 * PSI * 3 / 4 / 4.0; /* 720: longer than any pass */
    static const int stages[] = {0, 1, 2, 3};
    const double exposed[] = {2 * one - backward, 2 * one - backward, 2 * one - backward,
                              3 * one - compute};
    for (int k = 0; k < 4; k++) {
        paper_setup setup = setup_of(1, 4, stages[k]);
        assert_near(time_on(&setup, true, &slow).data, exposed[k]);
        assert_near(time_on(&setup, false, &slow).data, (stages[k] == 3 ? 3 : 2) * one);
    }
    one = 2 * PSI * 3 / 4 / 100.0; /* 28.8: shorter */
    assert_near(time_of(setup_of(1, 4, 0), true, 4).data, 0.0);
    assert_near(time_of(setup_of(1, 4, 1), true, 4).data, one);
    assert_near(time_of(setup_of(1, 4, 2), true, 4).data, one);
    assert_near(time_of(setup_of(1, 4, 3), true, 4).data, 0.0);
}

TEST(sharded_states_are_updated_in_shards)
{
    assert_near(time_of(setup_of(2, 4, 0), true, 4).update, 28.0 * PSI / 2 / 1000.0);
    for (int stage = 1; stage <= 3; stage++)
        assert_near(time_of(setup_of(2, 4, stage), true, 4).update,
                    28.0 * PSI / 8 / 1000.0);
}

/* ---- a second paper ---- */

/* Narayanan et al. 2021, table 1, the rows without pipeline: heads, hidden, layers, tensor-parallel
 * ranks, GPUs, batch, Tflop/s of a GPU. s 2048, V 51200, A100. Only the share of the peak is fitted to
 * them; that it is flat in width and model parallelism is the model's. */
TEST(another_machine_is_met_by_one_fitted_number)
{
    static const int rows[][7] = {{24, 2304, 24, 1, 32, 512, 137},
                                  {32, 3072, 30, 1, 64, 512, 138},
                                  {32, 4096, 36, 4, 128, 512, 142},
                                  {48, 6144, 40, 8, 256, 1024, 135}};
    zero_machine_file m;
    assert_ok(zero_machine_file_find("a100-dgx", &m));
    for (size_t i = 0; i < COUNT(rows); i++) {
        const int *r = rows[i];
        paper_setup setup = {.shape = {.layers = r[2],
                                       .hidden = r[1],
                                       .heads = r[0],
                                       .seq = 2048,
                                       .vocab = 51200},
                             .model_parallel = r[3],
                             .n_ranks = r[4] / r[3],
                             .batch = (int64_t)r[5] * r[3] / r[4],
                             .checkpoints = true};
        double ours = time_on(&setup, false, &m).rate / 1e12, ratio = ours / r[6];
        print_message("%d x %d, T %d: %.1f Tflop/s, paper %d\n", r[2], r[1], r[3], ours,
                      r[6]);
        if (fabs(ratio - 1.0) > 0.08) fail_msg("%d x %d: ratio %.3f", r[2], r[1], ratio);
    }
}
