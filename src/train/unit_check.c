/* zero/check.h: what a unit promises, tried out, and its gradients against finite
 * differences. */

#include "nn/mark.h"
#include "nn/model.h"
#include "train/unit_probe.h"

/* ---- rules other than the gradient's ---- */

static bool same(const zero_probe_array *a, const zero_probe_array *b)
{
    return !a->at || memcmp(a->at, b->at, (size_t)a->n * sizeof(float)) == 0;
}

static void keep(const zero_probe_array *from, zero_probe_array *to)
{
    if (from->at) zero_copy(to->at, from->at, from->n);
}

static zero_status expect_defined(const zero_probe *p, const zero_probe_array *a,
                                  const char *what)
{
    int64_t at = zero_mark_find(a->at, a->n);
    ZERO_INVALID_IF(at >= 0, "unit '%s' leaves element %" PRId64 " of %s undefined",
                    p->unit->name, at, what);
    return ZERO_OK;
}

/* Tensor t of the unit's group k, or the input. */
typedef struct {
    const char *name;
    float *x;         /* moved by finite differences */
    const float *g;   /* the unit's gradient, kept */
    const float *now; /* and as it is */
    int64_t n;
    int number; /* of the input 0, of tensors in the unit's order from 1 */
    int k, t;
} operand;

/* Moves to the unit's next tensor; false after the last one. Begin with all zeros. */
static bool next_tensor(const zero_probe *p, operand *o)
{
    if (o->number > 0) o->t++;
    for (; o->k < p->unit->n_groups; o->k++, o->t = 0) {
        if (o->t == p->model->groups[p->unit->groups[o->k]].n_tensors) continue;
        const zero_tensor *t = &p->unit->tensors[o->k][o->t];
        *o = (operand){.name = t->name,
                       .x = p->param[o->k].at + t->offset,
                       .g = p->d_param[o->k].at + t->offset,
                       .now = p->grad[o->k].at + t->offset,
                       .n = t->rows * t->cols,
                       .number = o->number + 1,
                       .k = o->k,
                       .t = o->t};
        return true;
    }
    return false;
}

static double largest(int64_t n, const float *x)
{
    double most = 0.0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)x[i]));
    return most;
}

static zero_status check_accumulating(zero_probe *p)
{
    double was[ZERO_UNIT_GROUPS];
    for (int k = 0; k < p->unit->n_groups; k++) {
        double most = largest(p->grad[k].n, p->d_param[k].at);
        was[k] = (double)(float)(most > 0.0 ? most : 1.0);
        for (int64_t i = 0; i < p->grad[k].n; i++) p->grad[k].at[i] = (float)was[k];
    }
    ZERO_TRY(zero_probe_forward(p, true));
    ZERO_TRY(zero_probe_backward(p, true));
    for (operand o = {0}; next_tensor(p, &o);) {
        /* Where a gradient g was already, 2 g or so must be afterwards; sums may round
         * otherwise. */
        double before = was[o.k];
        for (int64_t i = 0; i < o.n; i++)
            ZERO_INVALID_IF(
                !(fabs((double)o.now[i] - (double)o.g[i] - before) <= 1e-3 * before),
                "unit '%s': element %" PRId64
                " of the gradient of '%s' was %g, and a backward call that accumulates "
                "made it %g instead of %g",
                p->unit->name, i, o.name, before, (double)o.now[i],
                before + (double)o.g[i]);
    }
    return ZERO_OK;
}

/* Both calls in all their forms. */
static zero_status check_rules(zero_probe *p)
{
    uint64_t before = zero_probe_hash(p);
    ZERO_TRY(zero_probe_forward(p, true));
    ZERO_TRY(zero_probe_check_guards(p));
    ZERO_TRY(expect_defined(p, &p->out, "its output"));
    keep(&p->out, &p->out_again);
    keep(&p->saved, &p->saved_again);
    ZERO_TRY(zero_probe_forward(p, true));
    ZERO_INVALID_IF(!same(&p->out, &p->out_again) || !same(&p->saved, &p->saved_again),
                    "unit '%s' gives other bits when its forward call is repeated: "
                    "recomputation would change the training",
                    p->unit->name);
    if (p->unit->recompute_without_out) {
        ZERO_TRY(zero_probe_forward(p, false));
        ZERO_TRY(zero_probe_check_guards(p));
        ZERO_INVALID_IF(!same(&p->saved, &p->saved_again),
                        "unit '%s' saves other bits when `out` is NULL, although it says "
                        "recompute_without_out",
                        p->unit->name);
    }
    ZERO_TRY(zero_probe_forward(p, true));
    ZERO_TRY(zero_probe_backward(p, false));
    ZERO_TRY(zero_probe_check_guards(p));
    for (int k = 0; k < p->unit->n_groups; k++) keep(&p->grad[k], &p->d_param[k]);
    if (p->d_in.at) zero_copy(p->d_in.at, p->stream.at, p->d_in.n);
    for (operand o = {0}; next_tensor(p, &o);) {
        int64_t at = zero_mark_find(o.g, o.n);
        ZERO_INVALID_IF(at >= 0,
                        "unit '%s' leaves element %" PRId64
                        " of the gradient of '%s' undefined: a backward call sets every "
                        "element, and adds only where call->accumulate is true",
                        p->unit->name, at, o.name);
    }
    ZERO_TRY(expect_defined(p, &p->row_loss, "its losses"));
    ZERO_TRY(expect_defined(p, &p->d_in, "the gradient of its input"));
    ZERO_INVALID_IF(
        zero_probe_hash(p) != before,
        "unit '%s' writes to its input, its parameters or the batch, which it may "
        "only read",
        p->unit->name);
    return ZERO_OK;
}

/* ---- finite differences ---- */

/* One element, or with element -1 all along a direction of signs. */
typedef struct {
    const operand *o;
    int64_t element;
    zero_rng signs;
} direction;

static float sign_of(const direction *d, int64_t i)
{
    return zero_rng_bits(&d->signs, (uint64_t)i) & 1 ? 1.0f : -1.0f;
}

/* Moves along the direction by h, from `from`, where it is kept. */
static void move(const direction *d, const float *from, float h)
{
    const operand *o = d->o;
    if (d->element >= 0) o->x[d->element] = from[d->element] + h;
    for (int64_t i = 0; d->element < 0 && i < o->n; i++)
        o->x[i] = from[i] + h * sign_of(d, i);
}

/* The unit's gradient along the direction. Sets *scale to the usual size of such a
 * number. */
static double expected(const direction *d, double most, double *scale)
{
    const operand *o = d->o;
    double along = 0.0, squares = 0.0;
    if (d->element >= 0) {
        *scale = fmax(fabs((double)o->g[d->element]), 0.1 * most);
        return (double)o->g[d->element];
    }
    for (int64_t i = 0; i < o->n; i++) {
        along += (double)o->g[i] * (double)sign_of(d, i);
        squares += (double)o->g[i] * (double)o->g[i];
    }
    *scale = fmax(fabs(along), sqrt(squares));
    return along;
}

/* Large steps suffer from curvature, small ones from rounding: a right gradient comes near
 * with one of these, a wrong one with none. */
static const double steps[] = {1e-2, 1e-3, 1e-1, 3e-3, 3e-2};

static zero_status compare(zero_probe *p, const direction *d, const float *from,
                           double size, double most, zero_unit_check_result *found)
{
    double scale, gradient = expected(d, most, &scale);
    *found = (zero_unit_check_result){
        .element = d->element, .gradient = gradient, .deviation = INFINITY};
    for (int i = 0; i < ZERO_COUNT(steps); i++) {
        double up, down, noise;
        float h = (float)(steps[i] * size);
        move(d, from, h);
        ZERO_TRY(zero_probe_objective(p, &up, &noise));
        move(d, from, -h);
        ZERO_TRY(zero_probe_objective(p, &down, &noise));
        move(d, from, 0.0f);
        double difference = (up - down) / (2.0 * (double)h);
        double apart = fmax(fabs(difference - gradient) - noise / (double)h, 0.0);
        double whole = fmax(scale, fabs(difference));
        double deviation = apart > 0.0 ? apart / whole : 0.0;
        if (isnan(difference) || isnan(gradient)) deviation = INFINITY;
        if (i > 0 && !(deviation < found->deviation)) continue;
        found->difference = difference;
        found->deviation = deviation;
        if (deviation < 1e-3) break;
    }
    zero_print(found->tensor, "%s", d->o->name);
    return ZERO_OK;
}

/* The number-th element to compare: the one with the largest gradient, then random ones;
 * all of them if they are few. */
static int64_t element_at(const operand *o, const zero_rng *rng, int64_t elements,
                          int64_t i)
{
    if (o->n <= elements) return i;
    if (i == 0) {
        int64_t at = 0;
        for (int64_t k = 1; k < o->n; k++)
            if (fabsf(o->g[k]) > fabsf(o->g[at])) at = k;
        return at;
    }
    return (int64_t)(zero_rng_bits(rng, (uint64_t)i) % (uint64_t)o->n);
}

static zero_status check_operand(zero_probe *p, const operand *o,
                                 const zero_unit_check_spec *spec,
                                 zero_unit_check_result *worst)
{
    zero_rng rng = {.seed = (uint64_t)spec->seed,
                    .purpose = ZERO_RNG_TEST,
                    .sample = 1 + (uint64_t)o->number};
    double squares = 0.0;
    for (int64_t i = 0; i < o->n; i++) squares += (double)o->x[i] * (double)o->x[i];
    double most = largest(o->n, o->g), size = sqrt(squares / (double)o->n);
    float *from = p->kept.at;
    if (size < 0.1) size = 0.1;
    zero_copy(from, o->x, o->n);
    for (int64_t i = -1; i < zero_min(o->n, spec->elements); i++) {
        direction d = {.o = o, .element = -1, .signs = rng};
        zero_unit_check_result found;
        if (i >= 0) d.element = element_at(o, &rng, spec->elements, i);
        ZERO_TRY(compare(p, &d, from, size, most, &found));
        if (found.deviation >= worst->deviation) *worst = found;
    }
    if (worst->deviation <= spec->tolerance) return ZERO_OK;
    char where[48] = "in a random direction";
    if (worst->element >= 0) zero_print(where, "of element %" PRId64, worst->element);
    return zero_fail(ZERO_ERR_DIFFERENT,
                     "unit '%s': the gradient of '%s' is wrong: %s the unit says %.6g, and "
                     "finite differences say %.6g (%.2g of it apart)",
                     p->unit->name, worst->tensor, where, worst->gradient,
                     worst->difference, worst->deviation);
}

static zero_status check_differences(zero_probe *p, const zero_unit_check_spec *spec,
                                     zero_unit_check_result *worst)
{
    operand input = {.name = "in", .x = p->in.at, .g = p->d_in.at, .n = p->in.n};
    if (input.n > 0) ZERO_TRY(check_operand(p, &input, spec, worst));
    for (operand o = {0}; next_tensor(p, &o);) ZERO_TRY(check_operand(p, &o, spec, worst));
    return ZERO_OK;
}

zero_status zero_unit_check(const zero_model *model, int unit, const zero_source *source,
                            const zero_unit_check_spec *spec, zero_unit_check_result *worst)
{
    zero_unit_check_spec how;
    zero_unit_check_result found = {.element = -1};
    zero_probe p;
    ZERO_TRY(zero_model_check_described(model));
    ZERO_TRY(zero_check_whole("unit", unit, 0, model->n_units - 1));
    ZERO_INVALID_IF(!source || !source->sample,
                    "a check without a source, or one without its function sample");
    how = spec ? *spec : (zero_unit_check_spec){0};
    how.B = zero_or_else(how.B, 2);
    how.T = zero_or_else(how.T, zero_min(model->seq, 4));
    how.elements = zero_or_else(how.elements, 12);
    if (how.tolerance == 0.0) how.tolerance = 0.02;
    if (!how.backend) how.backend = "naive";
    ZERO_TRY(zero_check_whole("B", how.B, 1, 1 << 16));
    ZERO_TRY(zero_check_whole("T", how.T, 1, zero_min(model->seq, 1 << 16)));
    ZERO_TRY(zero_check_whole("elements", how.elements, 1, 1 << 20));
    ZERO_TRY(zero_check_whole("seed", how.seed, 0, INT64_MAX));
    ZERO_INVALID_IF(!(how.tolerance > 0.0 && how.tolerance < 1.0),
                    "tolerance %g: expected more than 0, below 1", how.tolerance);
    zero_status st = zero_probe_init(&p, model, unit, source, &how);
    if (st == ZERO_OK) st = check_rules(&p);
    if (st == ZERO_OK) st = check_differences(&p, &how, &found);
    if (st == ZERO_OK) st = check_accumulating(&p);
    zero_probe_destroy(&p);
    if (worst) *worst = found;
    return st;
}
