#include "verify/verify.h"

#include "verify/judge.h"

static zero_status compute(zero_judge *j)
{
    const zero_step_facts *f = &j->file->facts;
    const zero_source source = {
        .sample = zero_step_sample, .arg = j->file, .counted = j->file->counted};
    const zero_step_input in = {.step = f->step,
                                .lr = f->lr,
                                .beta1 = f->beta1,
                                .beta2 = f->beta2,
                                .eps = f->eps,
                                .weight_decay = f->weight_decay,
                                .clip = f->clip};
    ZERO_TRY(zero_step_load(j->file, j->e));
    ZERO_TRY(zero_engine_step(j->e, &source, &in, &j->out));
    return zero_engine_settle(j->e);
}

/* ---- what was found ---- */

typedef enum { EQUAL, WITHIN, WRONG } grade;
static const char *const grades[] = {"equal bits", "within tolerance", "wrong"};

/* A number that the file may not have, whose deviation was measured. */
static grade grade_number(double theirs, double ours, double deviation, double rough)
{
    if (isnan(theirs) || theirs == ours) return EQUAL;
    const double limit = ZERO_JUDGE_FACTOR * deviation + rough * fabs(ours);
    return fabs(theirs - ours) <= limit ? WITHIN : WRONG;
}

static json_t *tell_number(double theirs, double ours, grade g)
{
    return json_pack("{s:o, s:f, s:s}", "file",
                     isnan(theirs) ? json_null() : json_real(theirs), "computed", ours,
                     "verdict", grades[g]);
}

static grade grade_tensor(const zero_found *f)
{
    return f->wrong > 0.0 ? WRONG : f->different > 0.0 ? WITHIN : EQUAL;
}

/* Tells which rows of a tensor are wrong, or different, and by how much. */
static json_t *tell_tensor(const zero_tensor *of, const char *what, const zero_found *f)
{
    const int64_t wide = of->whole_rows > 1 ? of->whole_cols : 1;
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:f, s:f}", "name", of->name,
                     "what", what, "unit", wide > 1 ? "row" : "element", "first",
                     (json_int_t)f->first / wide, "last", (json_int_t)f->last / wide,
                     "wrong", (json_int_t)f->wrong, "at", (json_int_t)f->at / wide, "error",
                     f->error, "tolerance", f->limit);
}

static zero_status tell(const zero_judge *j, json_t *cause, json_t **found, bool *is_right)
{
    static const char *const links[] = {"gradient", "momentum", "variance", "weight"};
    const zero_step_file *f = j->file;
    const double rough = zero_judge_roughness(f);
    const grade loss = grade_number(f->loss, j->out.loss, j->loss_deviation, rough);
    const grade norm = grade_number(f->norm, j->out.grad_norm, j->norm_deviation, rough);
    int n[3] = {0};
    grade worst = loss > norm ? loss : norm;
    json_t *wrong = json_array();
    for (int t = 0; t < j->model->n_tensors; t++) {
        const grade g = grade_tensor(&j->found[t]);
        n[g]++;
        if (g > worst) worst = g;
        const zero_found *at = &j->found[t];
        if (g == WRONG)
            json_array_append_new(
                wrong, tell_tensor(&j->model->tensors[t], links[(int)at->link], at));
    }
    *is_right = worst != WRONG;
    *found = json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:i, s:i, s:i, s:o, "
        "s:O?, s:s}",
        "file", f->file.path, "framework", f->facts.framework, "sharding",
        f->facts.sharding, "dtype", f->facts.dtype, "ranks", (json_int_t)f->ranks,
        "microbatches", (json_int_t)f->microbatches, "sequences", (json_int_t)f->batch,
        "positions", (json_int_t)f->seq, "counted", (json_int_t)f->counted, "update",
        (json_int_t)(f->facts.updates + 1), "loss", tell_number(f->loss, j->out.loss, loss),
        "norm", tell_number(f->norm, j->out.grad_norm, norm), "equal", n[EQUAL], "within",
        n[WITHIN], "n_wrong", n[WRONG], "wrong", wrong, "cause", cause, "verdict",
        grades[worst]);
    return zero_allocated(*found, "no memory for what was found");
}

/* ---- all of it ---- */

static bool is_equal(const zero_judge *j)
{
    const zero_step_file *f = j->file;
    bool equal = (isnan(f->loss) || f->loss == j->out.loss) &&
                 (isnan(f->norm) || f->norm == j->out.grad_norm);
    for (int t = 0; t < j->model->n_tensors; t++) equal &= j->found[t].different == 0.0;
    return equal;
}

/* Elements of what this rank owns. */
static int64_t count_own(const zero_engine *e)
{
    const zero_schedule *s = &e->schedule;
    int64_t own = 0;
    for (int g = 0; g < s->model->n_groups; g++)
        own += zero_range_len(zero_partition_shard(&s->groups[g].partition, s->shard.rank));
    return own;
}

int64_t zero_step_judge_bytes(const zero_engine *e)
{
    return 2 * (int64_t)sizeof(float) * count_own(e);
}

static zero_status allocate(zero_judge *j)
{
    const int64_t own = zero_max(count_own(j->e), 1);
    ZERO_TRY(zero_new(&j->gradient, own, "gradients"));
    ZERO_TRY(zero_new(&j->part, own, "gradients"));
    ZERO_TRY(zero_new(&j->shares, j->file->ranks, "norms of ranks"));
    ZERO_TRY(zero_new(&j->deviation, j->model->n_tensors, "deviations"));
    ZERO_TRY(zero_new(&j->found, j->model->n_tensors, "numbers of tensors"));
    j->threads = (int)zero_max(1, j->e->runner.math.threads);
    ZERO_TRY(zero_new(&j->noted, j->threads * ZERO_STEP_PARTS * j->model->n_tensors,
                      "numbers of tensors"));
    ZERO_TRY(zero_new(&j->is_read, j->file->shape.vocab, "words"));
    ZERO_TRY(zero_new(&j->room, ZERO_STEP_PARTS * ZERO_JUDGE_AT_ONCE, "numbers of a file"));
    for (int64_t i = 0; i < zero_step_samples(j->file) * j->file->seq; i++)
        j->is_read[j->file->tokens[i]] = true;
    return ZERO_OK;
}

static void release(zero_judge *j)
{
    zero_free(j->gradient, j->part, j->shares, j->deviation, j->found, j->noted, j->is_read,
              j->room);
}

zero_status zero_step_verify(zero_step_file *file, zero_engine *e, json_t **found,
                             bool *is_right)
{
    ZERO_AT_END(release)
    zero_judge j = {.file = file, .e = e, .model = e->schedule.model};
    json_auto_t *cause = NULL;
    ZERO_TRY(zero_agree(e->runner.comm, allocate(&j)));
    ZERO_TRY(compute(&j));
    ZERO_TRY(zero_judge_bits(&j));
    if (!is_equal(&j)) {
        ZERO_TRY(zero_judge_measure(&j));
        ZERO_TRY(zero_judge_all(&j));
        bool is_wrong = grade_number(j.file->norm, j.out.grad_norm, j.norm_deviation,
                                     zero_judge_roughness(j.file)) == WRONG;
        for (int t = 0; t < j.model->n_tensors; t++) is_wrong |= j.found[t].wrong > 0.0;
        ZERO_TRY(is_wrong ? zero_judge_explain(&j, &cause) : ZERO_OK);
    }
    return zero_agree(e->runner.comm, tell(&j, cause, found, is_right));
}

/* ---- two files ---- */

zero_status zero_step_same_model(const zero_step_file *a, const zero_step_file *b)
{
    const zero_shape x = zero_shape_complete(&a->shape), y = zero_shape_complete(&b->shape);
    ZERO_FAIL_IF(x.kind != y.kind, ZERO_ERR_DIFFERENT,
                 "%.200s and %.200s are steps of two models: %s and %s", a->file.path,
                 b->file.path, x.kind->name, y.kind->name);
    for (int i = 0; i < ZERO_SHAPE_FIELDS; i++) {
        const zero_shape_field *f = &zero_shape_fields[i];
        const double own = zero_shape_get(&x, f), other = zero_shape_get(&y, f);
        ZERO_FAIL_IF(own != other, ZERO_ERR_DIFFERENT,
                     "%.200s and %.200s are steps of two models: %s is %.9g and %.9g",
                     a->file.path, b->file.path, f->name, own, other);
    }
    return ZERO_OK;
}

/* A sequence and its targets. */
struct sample {
    const int32_t *tokens, *targets;
    size_t bytes; /* of each */
};

static int order(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    const int by = memcmp(x->tokens, y->tokens, x->bytes);
    return by != 0 ? by : memcmp(x->targets, y->targets, x->bytes);
}

static zero_status sort(const zero_step_file *f, struct sample **samples)
{
    const int64_t n = zero_step_samples(f);
    ZERO_TRY(zero_new(samples, n, "samples of a step"));
    for (int64_t i = 0; i < n; i++)
        (*samples)[i] = (struct sample){f->tokens + i * f->seq, f->targets + i * f->seq,
                                        (size_t)f->seq * sizeof(int32_t)};
    zero_sort(*samples, n, order);
    return ZERO_OK;
}

static zero_status compare_samples(const zero_step_file *a, const zero_step_file *b,
                                   bool *same)
{
    ZERO_FREED struct sample *x = NULL, *y = NULL;
    const int64_t n = zero_step_samples(a);
    ZERO_TRY(sort(a, &x));
    ZERO_TRY(sort(b, &y));
    *same = n == zero_step_samples(b) && a->seq == b->seq;
    for (int64_t i = 0; *same && i < n; i++) *same = order(&x[i], &y[i]) == 0;
    return ZERO_OK;
}

struct pair {
    zero_judge of[2];
    zero_found *found; /* [ZERO_STEP_PARTS][n_tensors] */
    bool same_samples;
    bool is_computed; /* some bits differ */
    int n_wrong[2];   /* tensors that are wrong by the computed step */
};

/* Computes a file's step, and what is wrong in it. */
static zero_status compute_pair(zero_judge *j, int *n_wrong)
{
    ZERO_TRY(compute(j));
    ZERO_TRY(zero_judge_measure(j));
    ZERO_TRY(zero_judge_all(j));
    for (int t = 0; t < j->model->n_tensors; t++) *n_wrong += j->found[t].wrong > 0.0;
    return ZERO_OK;
}

static zero_status compare_all(struct pair *p)
{
    zero_judge *a = &p->of[0], *b = &p->of[1];
    ZERO_TRY(zero_judge_pair(a, b, false, p->found));
    p->is_computed = a->file->loss != b->file->loss || a->file->norm != b->file->norm;
    for (int i = 0; i < ZERO_STEP_PARTS * a->model->n_tensors; i++)
        p->is_computed |= p->found[i].different > 0.0;
    if (!p->is_computed) return ZERO_OK;
    ZERO_TRY(compute_pair(a, &p->n_wrong[0]));
    ZERO_TRY(compute_pair(b, &p->n_wrong[1]));
    return zero_judge_pair(a, b, true, p->found);
}

/* Adds what is different of one part; gradients as backward makes them. */
static void tell_part(const struct pair *p, int part, const char *what, json_t *all)
{
    const zero_model *m = p->of[0].model;
    for (int k = 0; k < m->n_tensors; k++) {
        const int t = part == ZERO_STEP_GRADIENT ? m->n_tensors - 1 - k : k;
        const zero_found *f = &p->found[part * m->n_tensors + t];
        if (f->wrong > 0.0)
            json_array_append_new(all, tell_tensor(&m->tensors[t], what, f));
    }
}

/* The distances from what was computed are compared. */
static json_t *tell_both(const struct pair *p, const char *what, const double theirs[2],
                         const double ours[2], const double deviation[2], json_t *all)
{
    const double expected = theirs[0] - ours[0] + ours[1]; /* of the second file */
    const bool is_said = !isnan(theirs[0]) && !isnan(theirs[1]);
    grade g = EQUAL;
    if (is_said && theirs[0] != theirs[1])
        g = zero_max(WITHIN, grade_number(theirs[1], expected, deviation[0] + deviation[1],
                                          2.0 * zero_judge_roughness(p->of[1].file)));
    if (g == WRONG) zero_put_item(all, "{s:s}", "what", what);
    json_t *told = json_pack("{s:s}", "verdict", g == WRONG ? "different" : grades[g]);
    for (int i = 0; i < 2; i++)
        json_object_set_new(told, i ? "y" : "x",
                            isnan(theirs[i]) ? json_null() : json_real(theirs[i]));
    return told;
}

static zero_status tell_pair(const struct pair *p, json_t **found, bool *is_same)
{
    const zero_judge *a = &p->of[0], *b = &p->of[1];
    const int n_tensors = a->model->n_tensors;
    json_t *inputs = json_array(), *all = json_array(), *files = json_array();
    bool are_alike;
    json_t *facts = zero_step_compare_facts(a->file, b->file, &are_alike);
    int n[3] = {0};
    grade worst = EQUAL;
    tell_part(p, ZERO_STEP_BEFORE, "weight", inputs);
    tell_part(p, ZERO_STEP_MOMENTUM_BEFORE, "momentum", inputs);
    tell_part(p, ZERO_STEP_VARIANCE_BEFORE, "variance", inputs);
    json_t *loss = tell_both(p, "loss", (double[]){a->file->loss, b->file->loss},
                             (double[]){a->out.loss, b->out.loss},
                             (double[]){a->loss_deviation, b->loss_deviation}, all);
    tell_part(p, ZERO_STEP_GRADIENT, "gradient", all);
    json_t *norm = tell_both(p, "norm", (double[]){a->file->norm, b->file->norm},
                             (double[]){a->out.grad_norm, b->out.grad_norm},
                             (double[]){a->norm_deviation, b->norm_deviation}, all);
    tell_part(p, ZERO_STEP_MOMENTUM_AFTER, "momentum", all);
    tell_part(p, ZERO_STEP_VARIANCE_AFTER, "variance", all);
    tell_part(p, ZERO_STEP_AFTER, "weight", all);
    for (int t = 0; t < n_tensors; t++) {
        grade g = EQUAL;
        for (int part = ZERO_STEP_AFTER; part < ZERO_STEP_PARTS; part++)
            g = zero_max(g, grade_tensor(&p->found[part * n_tensors + t]));
        n[g]++;
        worst = zero_max(worst, g);
    }
    if (json_array_size(all) > 0) worst = WRONG;
    are_alike &= json_array_size(inputs) == 0 && p->same_samples;
    *is_same = worst != WRONG && are_alike;
    for (int i = 0; i < 2; i++) {
        const zero_step_file *f = p->of[i].file;
        zero_put_item(files, "{s:s, s:s, s:s, s:i}", "file", f->file.path, "framework",
                      f->facts.framework, "sharding", f->facts.sharding, "n_wrong",
                      p->n_wrong[i]);
    }
    *found = json_pack("{s:o, s:o, s:b, s:o, s:b, s:o, s:o, s:i, s:i, s:i, s:o, s:b, s:s}",
                       "files", files, "facts", facts, "same_samples", p->same_samples,
                       "inputs", inputs, "computed", p->is_computed, "loss", loss, "norm",
                       norm, "equal", n[EQUAL], "within", n[WITHIN], "n_different",
                       n[WRONG], "different", all, "same", *is_same, "verdict",
                       worst == WRONG ? "different" : grades[worst]);
    return zero_allocated(*found, "no memory for what was found");
}

zero_status zero_step_compare(zero_step_file *a, zero_step_file *b, zero_engine *e,
                              json_t **found, bool *is_same)
{
    const zero_model *m = e->schedule.model;
    ZERO_FREED zero_found *all = NULL;
    struct pair p = {
        .of = {{.file = a, .e = e, .model = m}, {.file = b, .e = e, .model = m}}};
    zero_status st = zero_new(&all, ZERO_STEP_PARTS * m->n_tensors, "numbers of tensors");
    p.found = all;
    for (int i = 0; st == ZERO_OK && i < 2; i++) st = allocate(&p.of[i]);
    if (st == ZERO_OK) st = compare_samples(a, b, &p.same_samples);
    st = zero_agree(e->runner.comm, st);
    if (st == ZERO_OK) st = compare_all(&p);
    if (st == ZERO_OK) st = zero_agree(e->runner.comm, tell_pair(&p, found, is_same));
    for (int i = 0; i < 2; i++) release(&p.of[i]);
    return st;
}
