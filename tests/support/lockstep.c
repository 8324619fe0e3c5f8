#include "support/lockstep.h"

#include "base/number.h"
#include "base/tree.h"
#include "nn/mark.h"
#include "support/model_writers.h"

/* ---- memory ---- */

/* Floats that start as marks. */
static float *marked(test_pool *pool, int64_t n)
{
    float *x = test_bytes(pool, n * (int64_t)sizeof *x);
    zero_mark_fill(x, n);
    return x;
}

static zero_unit_sizes sizes_of(const lockstep *l, const zero_model *m, int u)
{
    return m->units[u].sizes(&m->units[u], l->batch.B, l->batch.T);
}

/* A rank's elements of a whole tensor. */
static void deal_tensor(const zero_tensor *t, const float *whole, float *part)
{
    for (int64_t at = 0, end = t->rows * t->cols; at < end;) {
        zero_run run = zero_share_run(t, at, end);
        memcpy(part + run.local, whole + run.whole, (size_t)run.n * sizeof *part);
        at += run.n;
    }
}

static void deal_group(lockstep *l, test_pool *pool, lockstep_rank *r, int group,
                       const float *whole)
{
    const zero_group *g = &r->part.groups[group];
    float *floats = marked(pool, g->n_params);
    for (int i = g->first_tensor; i < g->first_tensor + g->n_tensors; i++)
        deal_tensor(&r->part.tensors[i], whole + l->whole->tensors[i].offset,
                    floats + r->part.tensors[i].offset);
    r->param[group] = test_bytes(pool, g->n_params * (int64_t)zero_type_size(l->type));
    zero_convert(ZERO_FP32, l->type, g->n_params, floats, r->param[group]);
    r->grad[group] = marked(pool, g->n_params);
}

static int64_t longest_joint(const lockstep *l, const zero_unit *u)
{
    int64_t most = 0;
    for (zero_pass pass = ZERO_PASS_FORWARD; pass <= ZERO_PASS_GENERATE; pass++) {
        zero_unit_part p = {.is_last = false};
        for (int64_t i = 0; !p.is_last; i++) {
            p = u->part(u, pass, l->batch.B, l->batch.T, i);
            most = zero_max(most, p.count);
        }
    }
    return most;
}

static void open_units(lockstep *l, test_pool *pool, lockstep_rank *r)
{
    int64_t work = 0, logits = 0, stream = 0;
    const int units = r->part.n_units;
    for (int u = 0; u < units; u++) {
        zero_unit_sizes n = sizes_of(l, &r->part, u);
        r->out[u] = marked(pool, n.out);
        r->saved[u] = marked(pool, n.saved);
        work = zero_max(work, zero_max(n.forward_work, n.backward_work));
        logits = zero_max(logits, n.logits);
        stream = zero_max(stream, n.out);
        if (zero_share_has_parts(&l->share))
            l->joint_floats =
                zero_max(l->joint_floats, longest_joint(l, &r->part.units[u]));
    }
    r->stream = marked(pool, stream);
    r->work = marked(pool, work);
    r->logits = marked(pool, logits);
    r->row_loss = marked(pool, sizes_of(l, &r->part, units - 1).row_loss);
}

void lockstep_open(lockstep *l, test_pool *pool, float *const *param)
{
    assert_true(l->share.ranks <= LOCKSTEP_RANKS && l->whole->n_units <= LOCKSTEP_UNITS);
    l->math = test_opened(l->backend);
    l->joint_floats = 0;
    for (int i = 0; i < l->share.ranks; i++) {
        lockstep_rank *r = &l->ranks[i];
        l->share.rank = i;
        assert_ok(zero_model_share(l->whole, l->share, &r->part));
        for (int g = 0; g < r->part.n_groups; g++) deal_group(l, pool, r, g, param[g]);
        open_units(l, pool, r);
    }
    for (int i = 0; i < l->share.ranks; i++) {
        l->ranks[i].joint = marked(pool, l->joint_floats);
        l->ranks[i].sent = marked(pool, l->joint_floats);
        l->ranks[i].joined = marked(pool, l->joint_floats * l->share.ranks);
    }
}

void lockstep_close(lockstep *l)
{
    for (int i = 0; i < l->share.ranks; i++) zero_model_destroy(&l->ranks[i].part);
    if (l->backend->close) l->backend->close(&l->math);
}

/* ---- calls ---- */

static zero_call make_call(const lockstep *l, const lockstep_rank *r, zero_pass pass, int u)
{
    const zero_unit *unit = &r->part.units[u];
    const bool is_last = u == r->part.n_units - 1, back = pass == ZERO_PASS_BACKWARD;
    const bool again = pass == ZERO_PASS_RECOMPUTE && unit->recompute_without_out;
    zero_call c = {.backend = l->backend,
                   .math = &l->math,
                   .batch = &l->batch,
                   .training = pass <= ZERO_PASS_BACKWARD,
                   .type = l->type,
                   .in = u > 0 ? r->out[u - 1] : NULL,
                   .out = back || again ? NULL : r->out[u],
                   .saved = r->saved[u],
                   .stream = back ? r->stream : NULL,
                   .work = r->work,
                   .part = ZERO_PART_ALL};
    if (is_last && (back || !c.training)) c.logits = r->logits;
    if (is_last && (back || pass == ZERO_PASS_EVALUATE)) c.row_loss = r->row_loss;
    for (int k = 0; k < unit->n_groups; k++) {
        int g = unit->groups[k];
        if (!back || !unit->backward_without_params) c.param[k] = r->param[g];
        if (back) c.grad[k] = r->grad[g];
        c.accumulate[k] = back && u != first_writer(&r->part, g);
    }
    return c;
}

static void call_unit(const zero_unit *unit, zero_pass pass, const zero_call *c)
{
    (pass == ZERO_PASS_BACKWARD ? unit->backward : unit->forward)(unit, c);
}

/* ---- joins ---- */

/* In flight, or not: ZERO_JOIN_NONE. */
typedef struct {
    zero_join kind;
    int64_t count;
} flight;

/* One description, on which all ranks agree. */
static zero_unit_part describe_part(const lockstep *l, zero_pass pass, int u, int64_t index)
{
    zero_unit_part first = {.is_last = false};
    for (int i = 0; i < l->share.ranks; i++) {
        const zero_unit *unit = &l->ranks[i].part.units[u];
        zero_unit_part p = unit->part(unit, pass, l->batch.B, l->batch.T, index);
        if (i == 0) first = p;
        assert_true(p.waits == first.waits && p.join == first.join &&
                    p.count == first.count && p.is_last == first.is_last);
    }
    assert_true((first.count > 0) == (first.join != ZERO_JOIN_NONE));
    if (first.join == ZERO_JOIN_SUM) assert_true(first.count % l->share.ranks == 0);
    return first;
}

static void begin_join(lockstep *l, const zero_unit *unit, const zero_unit_part *p)
{
    for (int i = 0; i < l->share.ranks; i++) {
        lockstep_rank *r = &l->ranks[i];
        if (zero_mark_find(r->joint, p->count) >= 0)
            fail_msg("%s: rank %d leaves element %d of %d undefined", unit->name, i,
                     (int)zero_mark_find(r->joint, p->count), (int)p->count);
        memcpy(r->sent, r->joint, (size_t)p->count * sizeof *r->sent);
    }
}

static void sum(lockstep *l, int64_t n, float *out)
{
    zero_tree_term terms[LOCKSTEP_RANKS];
    for (int i = 0; i < l->share.ranks; i++)
        terms[i] = (zero_tree_term){l->ranks[i].sent, ZERO_FP32, i, 1};
    zero_tree_sum(l->share.ranks, terms, n, ZERO_FP32, out, false);
}

/* The place of a join's result. */
static float *place(const lockstep *l, lockstep_rank *r, zero_join kind)
{
    bool is_one = l->share.ranks == 1 || kind == ZERO_JOIN_SUM;
    return l->in_place && is_one ? r->joint : r->joined;
}

static void end_join(lockstep *l, const flight *f)
{
    const size_t bytes = (size_t)f->count * sizeof(float);
    for (int i = 0; i < l->share.ranks; i++) {
        lockstep_rank *r = &l->ranks[i];
        float *out = place(l, r, f->kind);
        assert_memory_equal(r->joint, r->sent, bytes);
        if (out != r->joint) zero_mark_fill(r->joint, f->count);
        if (f->kind == ZERO_JOIN_SUM) sum(l, f->count, out);
        for (int k = 0; k < l->share.ranks && f->kind == ZERO_JOIN_GATHER; k++)
            memcpy(out + k * f->count, l->ranks[k].sent, bytes);
    }
}

/* ---- passes ---- */

static void call_part(lockstep *l, zero_pass pass, int u, int64_t index,
                      const zero_unit_part *p, const flight *f)
{
    for (int i = 0; i < l->share.ranks; i++) {
        lockstep_rank *r = &l->ranks[i];
        zero_call c = make_call(l, r, pass, u);
        c.part = index;
        if (p->join != ZERO_JOIN_NONE) c.joint = r->joint;
        if (p->waits) c.joined = place(l, r, f->kind);
        call_unit(&r->part.units[u], pass, &c);
        if (p->waits && c.joined != r->joint)
            zero_mark_fill(r->joined,
                           f->count * (f->kind == ZERO_JOIN_GATHER ? l->share.ranks : 1));
    }
}

static void pass_in_parts(lockstep *l, zero_pass pass, int u)
{
    const zero_unit *unit = &l->ranks[0].part.units[u];
    flight f = {ZERO_JOIN_NONE, 0};
    zero_unit_part p = {.is_last = false};
    for (int64_t i = 0; !p.is_last; i++) {
        p = describe_part(l, pass, u, i);
        assert_true(!p.waits || f.kind != ZERO_JOIN_NONE);
        if (p.waits) end_join(l, &f);
        call_part(l, pass, u, i, &p, &f);
        if (p.waits) f.kind = ZERO_JOIN_NONE;
        if (p.join == ZERO_JOIN_NONE) continue;
        assert_true(f.kind == ZERO_JOIN_NONE);
        begin_join(l, unit, &p);
        f = (flight){p.join, p.count};
    }
    assert_true(f.kind == ZERO_JOIN_NONE);
    for (int i = 0; i < l->share.ranks; i++)
        zero_mark_fill(l->ranks[i].joint, l->joint_floats);
}

static void mark_work(lockstep *l, zero_pass pass, int u)
{
    for (int i = 0; i < l->share.ranks; i++) {
        lockstep_rank *r = &l->ranks[i];
        zero_unit_sizes n = sizes_of(l, &r->part, u);
        zero_mark_fill(r->work,
                       pass == ZERO_PASS_BACKWARD ? n.backward_work : n.forward_work);
        if (u == r->part.n_units - 1) zero_mark_fill(r->logits, n.logits);
    }
}

void lockstep_pass(lockstep *l, zero_pass pass, int u)
{
    mark_work(l, pass, u);
    if (zero_share_has_parts(&l->share)) {
        pass_in_parts(l, pass, u);
        return;
    }
    zero_call c = make_call(l, &l->ranks[0], pass, u);
    call_unit(&l->ranks[0].part.units[u], pass, &c);
}

static void compute_again(lockstep *l, int u)
{
    float *was[LOCKSTEP_RANKS];
    const size_t size = sizeof(float);
    for (int i = 0; i < l->share.ranks; i++) {
        lockstep_rank *r = &l->ranks[i];
        int64_t n = sizes_of(l, &r->part, u).saved;
        was[i] = malloc((size_t)n * size + 1);
        assert_non_null(was[i]);
        memcpy(was[i], r->saved[u], (size_t)n * size);
        zero_mark_fill(r->saved[u], n);
    }
    lockstep_pass(l, ZERO_PASS_RECOMPUTE, u);
    for (int i = 0; i < l->share.ranks; i++) {
        int64_t n = sizes_of(l, &l->ranks[i].part, u).saved;
        assert_memory_equal(l->ranks[i].saved[u], was[i], (size_t)n * size);
        free(was[i]);
    }
}

void lockstep_walk(lockstep *l, zero_pass pass)
{
    for (int u = 0; u < l->whole->n_units; u++) lockstep_pass(l, pass, u);
}

void lockstep_train(lockstep *l, bool recompute)
{
    const int last = l->whole->n_units - 1;
    for (int i = 0; i < l->share.ranks; i++)
        for (int g = 0; g < l->whole->n_groups; g++)
            zero_mark_fill(l->ranks[i].grad[g], l->ranks[i].part.groups[g].n_params);
    lockstep_walk(l, ZERO_PASS_FORWARD);
    for (int u = last; u >= 0; u--) {
        if (recompute && u < last) compute_again(l, u);
        lockstep_pass(l, ZERO_PASS_BACKWARD, u);
    }
}

void lockstep_gradient(const lockstep *l, int tensor, float *whole)
{
    const zero_tensor *t = &l->whole->tensors[tensor];
    zero_mark_fill(whole, t->rows * t->cols);
    for (int i = 0; i < l->share.ranks; i++) {
        const lockstep_rank *r = &l->ranks[i];
        const zero_tensor *own = &r->part.tensors[tensor];
        const float *grad = r->grad[own->group] + own->offset;
        for (int64_t at = 0, end = own->rows * own->cols; at < end;) {
            zero_run run = zero_share_run(own, at, end);
            if (i > 0 && zero_tensor_is_replicated(own))
                assert_same(run.n, grad + run.local, whole + run.whole);
            memcpy(whole + run.whole, grad + run.local, (size_t)run.n * sizeof *whole);
            at += run.n;
        }
    }
    if (zero_mark_find(whole, t->rows * t->cols) >= 0)
        fail_msg("%s: part of the gradient is undefined", t->name);
}
