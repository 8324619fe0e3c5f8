/* paper_tree.h - the paper's tables and figures, as tests look at them. CMocka's header comes before this
 * one. */
#pragma once

#include "support/test.h"

#include "facts/facts.h"
#include "paper/paper.h"
#include "paper/runs.h"

#define TERA 1e12
static inline zero_machine_file dgx2(void)
{
    zero_machine_file m;
    assert_ok(zero_machine_file_find(ZERO_PAPER_MACHINE, &m));
    return m;
}

/* The tree of a table or figure, which the caller releases. */
static inline json_t *tree_of(const char *name)
{
    json_t *tree;
    assert_ok(zero_paper_facts(name, &tree));
    return tree;
}

/* ---- runs, as tests change them ---- */

typedef enum { KEEP_WHOLE, KEEP_PIECE, KEEP_IN_CPU } paper_keep;

typedef struct {
    zero_shape shape; /* layers, hidden, heads, seq and vocab are read */
    int model_parallel, n_ranks;
    int64_t batch;
    int stage;
    bool checkpoints;
    paper_keep keep;
    bool fused_buffer;
} paper_setup;

static inline json_t *row_of(const paper_setup *s, bool overlaps)
{
    static const char *const kept[] = {"whole", "piece", "cpu"};
    return json_pack("{sI sI sI sI sI si si sI si sb ss sb sb}", "layers",
                     (json_int_t)s->shape.layers, "hidden", (json_int_t)s->shape.hidden,
                     "heads", (json_int_t)s->shape.heads, "seq", (json_int_t)s->shape.seq,
                     "vocab", (json_int_t)s->shape.vocab, "model_parallel",
                     s->model_parallel, "ranks", s->n_ranks, "batch", (json_int_t)s->batch,
                     "stage", s->stage, "recomputes", s->checkpoints, "keep", kept[s->keep],
                     "fused_buffer", s->fused_buffer, "overlaps", overlaps);
}

static inline paper_setup setup_of_row(const json_t *row)
{
    char keep = json_string_value(json_object_get(row, "keep"))[0];
    return (paper_setup){zero_paper_shape(row),
                         (int)zero_fact_number(row, "model_parallel"),
                         (int)zero_fact_number(row, "ranks"),
                         (int64_t)zero_fact_number(row, "batch"),
                         (int)zero_fact_number(row, "stage"),
                         true,
                         keep == 'w'   ? KEEP_WHOLE
                         : keep == 'p' ? KEEP_PIECE
                                       : KEEP_IN_CPU,
                         false};
}

typedef struct {
    double states, checkpoints, activations, logits, buffers, all;
} paper_memory;

static inline paper_memory memory_of(const paper_setup *setup)
{
    json_t *row = row_of(setup, false), *run = zero_paper_run(row, NULL);
    paper_memory m = {
        zero_fact_number(run, "states"),      zero_fact_number(run, "checkpoints"),
        zero_fact_number(run, "activations"), zero_fact_number(run, "logits"),
        zero_fact_number(run, "buffers"),     zero_fact_number(run, "all")};
    json_decref(run);
    json_decref(row);
    return m;
}

static inline int64_t most_of(const paper_setup *setup, const char *key, double bytes)
{
    json_t *row = row_of(setup, false);
    int64_t most = zero_paper_most(row, key, bytes);
    json_decref(row);
    return most;
}

typedef struct {
    double flops, compute, tensor, host, update, data, data_all, step, rate, replica_flops;
} paper_time;

static inline paper_time time_of_row(const json_t *row, const zero_machine_file *m)
{
    json_t *run = zero_paper_run(row, m);
    paper_time t = {
        zero_fact_number(run, "flops"),      zero_fact_number(run, "compute"),
        zero_fact_number(run, "tensor"),     zero_fact_number(run, "host"),
        zero_fact_number(run, "update"),     zero_fact_number(run, "data"),
        zero_fact_number(run, "data_links"), zero_fact_number(run, "step"),
        zero_fact_number(run, "rate"),       zero_fact_number(run, "replica_flops")};
    json_decref(run);
    return t;
}

static inline void show(const char *name, bool json, char *text, size_t size)
{
    FILE *out = fmemopen(text, size, "w");
    assert_non_null(out);
    assert_ok(zero_paper_show(name, json, out));
    assert_int_equal(fclose(out), 0);
    assert_true(strlen(text) < size - 1);
}

/* No line is wider than 100 columns or ends in a blank. */
static inline void assert_fits_a_terminal(const char *text)
{
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        size_t width = strcspn(line, "\n");
        if (width > 100 || (width > 0 && line[width - 1] == ' '))
            fail_msg("%.*s", (int)width, line);
    }
}
