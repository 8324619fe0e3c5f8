#include "verify/states.h"

#include "nn/share.h"

#define AT_ONCE ((int64_t)1 << 18) /* elements of a tensor that are written at one time */

/* ---- from a file ---- */

struct loading {
    const zero_model *model;
    zero_weights weights[ZERO_STATES];
    int group;
};

static zero_status load_block(void *arg, const zero_state_block *block)
{
    const struct loading *l = arg;
    for (int p = 0; p < ZERO_STATES; p++)
        ZERO_TRY(zero_weights_fill(&l->weights[p], l->model, l->group, block->range,
                                   block->part[p]));
    return ZERO_OK;
}

zero_status zero_step_load(zero_step_file *file, zero_engine *e)
{
    const zero_schedule *s = &e->schedule;
    struct loading l = {.model = s->model};
    zero_status st = ZERO_OK;
    for (int p = 0; p < ZERO_STATES; p++) l.weights[p] = zero_step_weights(file, p);
    ZERO_TRY(zero_engine_settle(e));
    for (; st == ZERO_OK && l.group < s->model->n_groups; l.group++)
        st = zero_states_visit(&e->runner, l.group, zero_states_held(s, l.group),
                               ZERO_VISIT_FILL, load_block, &l);
    ZERO_TRY(zero_agree_after_files(e->runner.comm, st));
    e->adam_steps = file->facts.updates;
    e->loss_scale.scale = (float)file->facts.loss_scale;
    return zero_engine_publish(e);
}

/* ---- into a file ---- */

/* A piece of a whole tensor: what this rank holds of it. */
struct piece {
    const zero_tensor *tensor; /* this rank's part */
    int part;
    int64_t begin; /* in the whole tensor */
    int64_t local; /* of the block's first element: where it is in the whole tensor */
    float *out;
};

static zero_status take_block(void *arg, const zero_state_block *block)
{
    const struct piece *p = arg;
    const int64_t at = block->range.begin - p->tensor->offset;
    const zero_stretch run =
        zero_share_run(p->tensor, at, at + zero_range_len(block->range));
    memcpy(p->out + (run.whole - p->begin), block->part[p->part],
           (size_t)run.n * sizeof(float));
    return ZERO_OK;
}

/* out[] = elements [begin, end) of a whole tensor as far as this rank has them. */
static zero_status read_held(zero_engine *e, int tensor, struct piece *p, int64_t end)
{
    const zero_tensor *t = p->tensor = &e->schedule.model->tensors[tensor];
    const zero_range held = zero_states_held(&e->schedule, t->group);
    for (int64_t at = p->begin; at < end;) {
        const zero_stretch run = zero_share_run_of_whole(t, at, end);
        if (run.n == 0) break;
        const int64_t first = t->offset + run.local;
        const zero_range has = zero_range_overlap((zero_range){first, first + run.n}, held);
        if (!zero_range_is_empty(has))
            ZERO_TRY(zero_states_visit(&e->runner, t->group, has, ZERO_VISIT_READ,
                                       take_block, p));
        at = run.whole + run.n;
    }
    return ZERO_OK;
}

static zero_status write_bytes(zero_step_record *r, const void *data, size_t bytes)
{
    zero_comm *comm = r->e->runner.comm;
    return zero_agree_after_files(comm, zero_comm_is_root(comm)
                                            ? zero_whole_file_write(&r->file, data, bytes)
                                            : ZERO_OK);
}

/* All ranks' numbers are put together bit by bit: what a rank does not have is zeros, and
 * copies are equal. */
static zero_status write_states(zero_step_record *r)
{
    zero_comm *comm = r->e->runner.comm;
    ZERO_FREED float *values = NULL;
    ZERO_TRY(zero_engine_settle(r->e));
    ZERO_TRY(zero_agree(comm, zero_new(&values, AT_ONCE, "numbers of a step file")));
    for (int part = 0; part < ZERO_STATES; part++)
        for (int t = 0; t < r->model->n_tensors; t++) {
            const int64_t all = r->model->tensors[t].rows * r->model->tensors[t].cols;
            for (int64_t at = 0; at < all; at += AT_ONCE) {
                const int64_t n = zero_min(AT_ONCE, all - at);
                const size_t bytes = (size_t)n * sizeof *values;
                struct piece p = {.part = part, .begin = at, .out = values};
                zero_clear(values, zero_round_up(n, 2));
                ZERO_TRY(zero_agree(comm, read_held(r->e, t, &p, at + n)));
                ZERO_TRY(
                    zero_comm_or(comm, zero_divide_up(n, 2), (uint64_t *)(void *)values));
                ZERO_TRY(write_bytes(r, values, bytes));
            }
        }
    return ZERO_OK;
}

static zero_status begin(zero_step_record *r, const zero_step_outline *o,
                         const zero_source *source)
{
    ZERO_AT_END(zero_bytes_destroy) zero_bytes header = {0};
    ZERO_TRY(zero_step_write_header(o, &header));
    ZERO_TRY(zero_whole_file_write(&r->file, header.bytes, header.len));
    const int64_t T = ((const zero_shape *)o->model->shape)->seq;
    const int64_t n = o->ranks * o->microbatches * o->batch;
    ZERO_FREED int32_t *inputs = NULL, *targets = NULL;
    ZERO_TRY(zero_new(&inputs, n * T, "tokens"));
    ZERO_TRY(zero_new(&targets, n * T, "targets"));
    for (int64_t i = 0; i < n; i++)
        source->sample(source->arg, o->facts->step, i, T, inputs + i * T, targets + i * T);
    const size_t bytes = (size_t)(n * T) * sizeof *inputs;
    ZERO_TRY(zero_whole_file_write(&r->file, inputs, bytes));
    return zero_whole_file_write(&r->file, targets, bytes);
}

zero_status zero_step_record_open(zero_step_record *r, const char *path, zero_engine *e)
{
    zero_comm *comm = e->runner.comm;
    *r = (zero_step_record){.e = e};
    return zero_agree(
        comm, zero_comm_is_root(comm)
                  ? zero_whole_file_begin(&r->file, path, ZERO_WHOLE_FILE_ALONE, NULL)
                  : ZERO_OK);
}

zero_status zero_step_record_begin(zero_step_record *r, const zero_step_outline *o,
                                   const zero_source *source)
{
    zero_comm *comm = r->e->runner.comm;
    r->model = o->model;
    zero_status st = zero_comm_is_root(comm) ? begin(r, o, source) : ZERO_OK;
    ZERO_TRY(zero_agree_after_files(comm, st));
    return write_states(r);
}

zero_status zero_step_record_end(zero_step_record *r, double loss, double norm)
{
    zero_comm *comm = r->e->runner.comm;
    const double numbers[] = {loss, norm};
    ZERO_TRY(write_states(r));
    ZERO_TRY(write_bytes(r, numbers, sizeof numbers));
    ZERO_TRY(zero_agree_after_files(
        comm, zero_comm_is_root(comm) ? zero_whole_file_end(&r->file) : ZERO_OK));
    r->is_written = true;
    return ZERO_OK;
}

void zero_step_record_abandon(zero_step_record *r)
{
    zero_whole_file_abandon(&r->file);
}
