#include "verify/verify.h"

#include "base/fail.h"
#include "base/grow.h"
#include "base/number.h"
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

static json_t *tell_tensor(const zero_judge *j, int t)
{
    static const char *const links[] = {"gradient", "momentum", "variance", "weight"};
    const zero_tensor *of = &j->model->tensors[t];
    const zero_found *f = &j->found[t];
    const int64_t wide = of->whole_rows > 1 ? of->whole_cols : 1;
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:f, s:f}", "name", of->name,
                     "what", links[(int)f->link], "unit", wide > 1 ? "row" : "element",
                     "first", (json_int_t)f->first / wide, "last",
                     (json_int_t)f->last / wide, "wrong", (json_int_t)f->wrong, "at",
                     (json_int_t)f->at / wide, "error", f->error, "tolerance", f->limit);
}

static zero_status tell(const zero_judge *j, json_t *cause, json_t **found, bool *is_right)
{
    const zero_step_file *f = j->file;
    const double rough = f->type == ZERO_FP32 ? 0x1p-20 : 0x1p-7;
    const grade loss = grade_number(f->loss, j->out.loss, j->loss_deviation, rough);
    const grade norm = grade_number(f->norm, j->out.grad_norm, j->norm_deviation, rough);
    int n[3] = {0};
    grade worst = loss > norm ? loss : norm;
    json_t *wrong = json_array();
    for (int t = 0; t < j->model->n_tensors; t++) {
        const grade g = grade_tensor(&j->found[t]);
        n[g]++;
        if (g > worst) worst = g;
        if (g == WRONG) json_array_append_new(wrong, tell_tensor(j, t));
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

static zero_status judge(zero_judge *j, json_t **cause)
{
    bool is_wrong = false;
    ZERO_TRY(zero_judge_measure(j));
    ZERO_TRY(zero_judge_all(j));
    for (int t = 0; t < j->model->n_tensors; t++) is_wrong |= j->found[t].wrong > 0.0;
    return is_wrong ? zero_judge_explain(j, cause) : ZERO_OK;
}

static zero_status allocate(zero_judge *j)
{
    const zero_schedule *s = &j->e->schedule;
    int64_t own = 1;
    for (int g = 0; g < j->model->n_groups; g++)
        own += zero_range_len(zero_partition_shard(&s->groups[g].partition, s->shard.rank));
    ZERO_TRY(zero_new(&j->gradient, own, "gradients"));
    ZERO_TRY(zero_new(&j->part, own, "gradients"));
    ZERO_TRY(zero_new(&j->shares, j->file->ranks, "norms of ranks"));
    ZERO_TRY(zero_new(&j->deviation, j->model->n_tensors, "deviations"));
    ZERO_TRY(zero_new(&j->found, j->model->n_tensors, "numbers of tensors"));
    ZERO_TRY(zero_new(&j->is_read, j->file->shape.vocab, "words"));
    ZERO_TRY(zero_new(&j->room, ZERO_STEP_PARTS * ZERO_JUDGE_AT_ONCE, "numbers of a file"));
    for (int64_t i = 0; i < zero_step_samples(j->file) * j->file->seq; i++)
        j->is_read[j->file->tokens[i]] = true;
    return ZERO_OK;
}

static void release(zero_judge *j)
{
    free(j->gradient);
    free(j->part);
    free(j->shares);
    free(j->deviation);
    free(j->found);
    free(j->is_read);
    free(j->room);
}

zero_status zero_step_verify(zero_step_file *file, zero_engine *e, json_t **found,
                             bool *is_right)
{
    ZERO_AT_END(release)
    zero_judge j = {.file = file, .e = e, .model = e->schedule.model};
    json_auto_t *cause = NULL;
    ZERO_TRY(zero_agree(e->runner.comm, allocate(&j)));
    ZERO_TRY(zero_step_load(file, e));
    ZERO_TRY(compute(&j));
    ZERO_TRY(zero_judge_bits(&j));
    if (!is_equal(&j)) ZERO_TRY(judge(&j, &cause));
    return zero_agree(e->runner.comm, tell(&j, cause, found, is_right));
}
