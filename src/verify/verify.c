#include "verify/verify.h"

#include "base/fail.h"
#include "base/grow.h"
#include "base/range.h"
#include "nn/share.h"

#define AT_ONCE ((int64_t)1 << 16) /* elements that are compared at one time */

/* What was compared of a tensor, as numbers that ranks send each other. */
typedef struct {
    double different; /* elements whose bits differ */
} tensor_bits;

struct verify {
    zero_step_file *file;
    zero_engine *e;
    const zero_model *model; /* this rank's part */
    zero_run_output out;
    tensor_bits *bits; /* [n_tensors] */
    float *room;       /* [AT_ONCE] */
    int group;
};

/* Called for pieces of what a rank owns: each element is owned by one rank, but for tensors
 * that all ranks of a TP group have. */
typedef zero_status piece_fn(struct verify *v, int group, zero_range range);

static zero_status for_own(struct verify *v, piece_fn *fn)
{
    const zero_schedule *s = &v->e->schedule;
    zero_status st = ZERO_OK;
    for (int g = 0; st == ZERO_OK && g < v->model->n_groups; g++) {
        zero_range own = zero_partition_shard(&s->groups[g].partition, s->shard.rank);
        own.end = zero_min(own.end, v->model->groups[g].n_params);
        for (int64_t at = own.begin; st == ZERO_OK && at < own.end; at += AT_ONCE)
            st = fn(v, g, (zero_range){at, zero_min(at + AT_ONCE, own.end)});
    }
    return zero_agree_after_files(v->e->runner.comm, st);
}

/* ---- bits ---- */

static zero_status compare_block(void *arg, const zero_state_block *block)
{
    struct verify *v = arg;
    const int64_t n = zero_range_len(block->range);
    for (int p = 0; p < ZERO_STATES; p++) {
        const zero_weights theirs = zero_step_weights(v->file, ZERO_STEP_AFTER + p);
        zero_range part;
        ZERO_TRY(zero_weights_fill(&theirs, v->model, v->group, block->range, v->room));
        if (memcmp(v->room, block->part[p], (size_t)n * sizeof(float)) == 0) continue;
        for (int t = -1; zero_next_part(v->model, v->group, block->range, &t, &part);)
            for (int64_t i = part.begin; i < part.end; i++) {
                const int64_t k = i - block->range.begin;
                v->bits[t].different +=
                    memcmp(&v->room[k], &block->part[p][k], sizeof(float)) != 0;
            }
    }
    return ZERO_OK;
}

static zero_status compare_piece(struct verify *v, int group, zero_range range)
{
    v->group = group;
    return zero_states_visit(&v->e->runner, group, range, ZERO_VISIT_READ, compare_block,
                             v);
}

static zero_status add_up(struct verify *v)
{
    zero_comm *comm = v->e->runner.comm;
    const int n = v->model->n_tensors, numbers = (int)(sizeof *v->bits / sizeof(double));
    ZERO_FREED tensor_bits *all = NULL;
    ZERO_TRY(zero_agree(comm, zero_new(&all, n * comm->size, "numbers of tensors")));
    ZERO_TRY(zero_comm_all_gather_doubles(comm, n * numbers, (const double *)v->bits,
                                          (double *)all));
    memset(v->bits, 0, (size_t)n * sizeof *v->bits);
    for (int i = 0; i < n * comm->size; i++) v->bits[i % n].different += all[i].different;
    return ZERO_OK;
}

/* ---- the step ---- */

static zero_status compute(struct verify *v)
{
    const zero_step_facts *f = &v->file->facts;
    const zero_source source = {
        .sample = zero_step_sample, .arg = v->file, .counted = v->file->counted};
    const zero_step_input in = {.step = f->step,
                                .lr = f->lr,
                                .beta1 = f->beta1,
                                .beta2 = f->beta2,
                                .eps = f->eps,
                                .weight_decay = f->weight_decay,
                                .clip = f->clip};
    ZERO_TRY(zero_engine_step(v->e, &source, &in, &v->out));
    return zero_engine_settle(v->e);
}

static json_t *tell_number(double theirs, double ours)
{
    if (isnan(theirs))
        return json_pack("{s:n, s:f, s:b}", "file", "computed", ours, "equal", 1);
    return json_pack("{s:f, s:f, s:b}", "file", theirs, "computed", ours, "equal",
                     theirs == ours);
}

static zero_status tell(const struct verify *v, json_t **found, bool *is_right)
{
    const zero_step_file *f = v->file;
    int wrong = 0, first = -1;
    for (int t = v->model->n_tensors - 1; t >= 0; t--)
        if (v->bits[t].different > 0) wrong++, first = t;
    bool is_equal = wrong == 0 && (isnan(f->loss) || f->loss == v->out.loss) &&
                    (isnan(f->norm) || f->norm == v->out.grad_norm);
    *is_right = is_equal;
    *found = json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:i, s:i, s:s?, "
        "s:s}",
        "file", f->file.path, "framework", f->facts.framework, "sharding",
        f->facts.sharding, "dtype", f->facts.dtype, "ranks", (json_int_t)f->ranks,
        "microbatches", (json_int_t)f->microbatches, "sequences", (json_int_t)f->batch,
        "positions", (json_int_t)f->seq, "counted", (json_int_t)f->counted, "update",
        (json_int_t)(f->facts.updates + 1), "loss", tell_number(f->loss, v->out.loss),
        "norm", tell_number(f->norm, v->out.grad_norm), "tensors", v->model->n_tensors,
        "different", wrong, "first", first < 0 ? NULL : v->model->tensors[first].name,
        "verdict", is_equal ? "equal bits" : "wrong");
    return zero_allocated(*found, "no memory for what was found");
}

zero_status zero_step_verify(zero_step_file *file, zero_engine *e, json_t **found,
                             bool *is_right)
{
    struct verify v = {.file = file, .e = e, .model = e->schedule.model};
    ZERO_FREED tensor_bits *bits = NULL;
    ZERO_FREED float *room = NULL;
    zero_status st = zero_new(&bits, v.model->n_tensors, "numbers of tensors");
    if (st == ZERO_OK) st = zero_new(&room, AT_ONCE, "numbers of a file");
    ZERO_TRY(zero_agree(e->runner.comm, st));
    v.bits = bits, v.room = room;
    ZERO_TRY(zero_step_load(file, e));
    ZERO_TRY(compute(&v));
    ZERO_TRY(for_own(&v, compare_piece));
    ZERO_TRY(add_up(&v));
    return zero_agree(e->runner.comm, tell(&v, found, is_right));
}
