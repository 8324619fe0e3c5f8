/* shared_checkpoint.h - checkpoints of shared models, written and read by ranks that are all in this
 * process, with states made of numbers. */
#pragma once

#include "support/test.h"
#include <unistd.h>

#include "base/fail.h"
#include "base/range.h"
#include "checkpoint/read.h"
#include "checkpoint/shard.h"
#include "support/cut_model.h"

#define DIGEST "0123456789abcdef0123456789abcdef"

/* ---- states ---- */

/* A rank's part of the model, and how ZeRO shards it. */
struct part {
    zero_model model;
    zero_partition partitions[CUT_GROUPS];
    int d;
    int64_t received; /* elements */
};

static inline void part_open(struct part *part, const zero_model *whole,
                             const zero_state_layout *l, int rank)
{
    int64_t n_params[CUT_GROUPS];
    zero_share share = {l->tp, rank % l->tp, l->slices};
    *part = (struct part){.d = rank / l->tp};
    assert_ok(zero_model_share(whole, share, &part->model));
    for (int g = 0; g < CUT_GROUPS; g++) n_params[g] = part->model.groups[g].n_params;
    assert_ok(zero_partition_cut(l->scheme, l->n_ranks / l->tp, 1, CUT_GROUPS, n_params,
                                 part->partitions));
}

static inline float value(int tensor, int state, int64_t whole)
{
    return (float)((whole * 2654435761 + tensor * 97 + state * 31) % 1000003) / 1024.0f;
}

/* The numbers of a group's elements: out[zero_range_len(range)]. */
static inline void fill(const zero_model *model, int group, zero_range range, int state,
                        float *out)
{
    const zero_group *g = &model->groups[group];
    for (int i = g->first_tensor; i < g->first_tensor + g->n_tensors; i++) {
        const zero_tensor *t = &model->tensors[i];
        zero_range here = zero_range_overlap(zero_range_of_tensor(t), range);
        for (int64_t at = here.begin; at < here.end;) {
            zero_stretch run = zero_share_run(t, at - t->offset, here.end - t->offset);
            for (int64_t k = 0; k < run.n; k++, at++)
                out[at - range.begin] = value(i, state, run.whole + k);
        }
    }
}

static inline zero_status view(void *arg, int group, zero_range range, float *room,
                               zero_state_block *block)
{
    const struct part *part = arg;
    int64_t n = zero_range_len(range);
    zero_range own = zero_partition_shard(&part->partitions[group], part->d);
    assert_true(own.begin <= range.begin && range.end <= own.end);
    for (int state = 0; state < ZERO_STATES; state++)
        fill(&part->model, group, range, state, room + state * n);
    *block = (zero_state_block){range, {{room, room + n, room + 2 * n}}};
    return ZERO_OK;
}

/* ---- writing ---- */

static char place[64], step_path[128];
static zero_storage_dir top;

static inline int open_place(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(place, sizeof place, "%.40s/zero-test-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(place)) return -1;
    snprintf(step_path, sizeof step_path, "%s/step-00000005", place);
    return zero_storage_open(place, &top) == ZERO_OK ? 0 : -1;
}

static inline int close_place(void **state)
{
    (void)state;
    zero_status st = zero_storage_remove(&top, "step-00000005");
    zero_storage_close(&top);
    return st == ZERO_OK && rmdir(place) == 0 ? 0 : -1;
}

static inline void write_shard(const zero_storage_dir *dir, zero_manifest *m,
                               const zero_model *whole, int rank)
{
    struct part part;
    zero_shard_writer shard;
    zero_shard_source source = {rank, view, &part};
    part_open(&part, whole, &m->table.layout, rank);
    assert_ok(zero_shard_prepare(&source, m, &shard));
    assert_ok(zero_shard_write(&shard, dir));
    assert_ok(zero_shard_finish(&shard));
    m->shards[rank] = shard.file;
    zero_shard_forget(&shard);
    zero_model_destroy(&part.model);
}

/* Writes step 5 as the ranks of a layout do, in place of the one before. */
static inline void write_checkpoint(const zero_model *whole,
                                    const zero_state_layout *layout)
{
    zero_storage_dir dir;
    zero_bytes text = {0};
    zero_manifest m = {.step = 5, .digest = DIGEST, .arithmetic = "a test's"};
    m.loss_scale.scale = 1.0f;
    m.loss_scale.hysteresis = 1;
    assert_ok(zero_state_table_init(&m.table, whole->n_tensors, whole->tensors, layout));
    m.shards = calloc((size_t)layout->n_ranks, sizeof *m.shards);
    assert_non_null(m.shards);
    assert_ok(zero_storage_remove(&top, "step-00000005"));
    assert_ok(zero_storage_make(&top, "step-00000005", &dir));
    for (int rank = 0; rank < layout->n_ranks; rank++) write_shard(&dir, &m, whole, rank);
    assert_ok(zero_manifest_write(&m, &text));
    assert_ok(zero_storage_put(&dir, ZERO_MANIFEST_NAME, text.bytes, text.len));
    zero_bytes_destroy(&text);
    zero_manifest_destroy(&m);
    zero_storage_close(&dir);
}

/* ---- reading ---- */

static inline zero_status receive(void *arg, int group, const zero_state_block *states)
{
    struct part *part = arg;
    int64_t n = zero_range_len(states->range);
    float *expected = malloc((size_t)n * sizeof *expected);
    assert_non_null(expected);
    for (int state = 0; state < ZERO_STATES; state++) {
        fill(&part->model, group, states->range, state, expected);
        assert_memory_equal(states->part[state], expected, (size_t)n * sizeof *expected);
    }
    free(expected);
    part->received += n;
    return ZERO_OK;
}

static inline zero_checkpoint open_step(void)
{
    zero_checkpoint c;
    assert_ok(zero_checkpoint_open(step_path, NULL, &c));
    return c;
}

/* A rank of other groups asks for what it holds, or for all of its part as stage 0 does. */
static inline zero_status read_part(const zero_model *whole,
                                    const zero_state_layout *layout, int rank, bool all)
{
    struct part part;
    zero_checkpoint c = open_step();
    zero_range wishes[CUT_GROUPS];
    int64_t wanted = 0;
    part_open(&part, whole, layout, rank);
    for (int g = 0; g < CUT_GROUPS; g++) {
        zero_range held = zero_partition_shard(&part.partitions[g], part.d);
        if (all) held = (zero_range){0, part.model.groups[g].n_params};
        wishes[g] = held;
        wanted += zero_range_len(held);
    }
    zero_status st = zero_checkpoint_fetch(&c, &part.model, wishes,
                                           &(zero_checkpoint_receiver){receive, &part});
    if (st == ZERO_OK) assert_int_equal(part.received, wanted);
    zero_checkpoint_close(&c);
    zero_model_destroy(&part.model);
    return st;
}

static inline void check_part(const zero_model *whole, const zero_state_layout *layout,
                              int rank, bool all)
{
    if (read_part(whole, layout, rank, all) != ZERO_OK)
        fail_msg("rank %d of %d in %d: %s", rank, layout->n_ranks, layout->tp,
                 zero_last_error());
}

static inline void check_sound(void)
{
    zero_checkpoint c = open_step();
    assert_ok(zero_checkpoint_verify(&c));
    zero_checkpoint_close(&c);
}

static const zero_state_layout layouts[] = {
    {ZERO_PARTITION_SLICE, 4, 2, 4, 0, 1, NULL},
    {ZERO_PARTITION_SLICE, 1, 1, 1, 0, 1, NULL},
    {ZERO_PARTITION_OWNER, 4, 4, 4, 0, 1, NULL},
    {ZERO_PARTITION_SLICE, 3, 3, 6, 0, 1, NULL},
    {ZERO_PARTITION_OWNER, 6, 2, 2, 0, 1, NULL},
    {ZERO_PARTITION_SLICE, 3, 1, 1, 0, 1, NULL},
    {ZERO_PARTITION_SLICE, 2, 1, 8, 0, 1, NULL},
};

/* Where a text begins within bytes[len]; NULL: nowhere. */
static inline const unsigned char *find_text(const unsigned char *bytes, size_t len,
                                             const char *text)
{
    size_t n = strlen(text);
    for (size_t at = 0; at + n <= len; at++)
        if (memcmp(bytes + at, text, n) == 0) return bytes + at;
    return NULL;
}
