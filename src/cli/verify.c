/* zero verify: a training step of any framework, computed again. */
#include "cli/step_files.h"

#include "base/legible.h"
#include "cli/session.h"
#include "facts/form.h"
#include "report/json_put.h"
#include "verify/verify.h"

extern const zero_embedded zero_cli_forms[];

static const zero_option own[] = {
#include "cli/options/verify.rows"
};

static const zero_option_table tables[] = {
    {.rows = own},
    {.rows = zero_run_options, .shown = ZERO_OPTION_PLACED},
};

zero_status zero_step_files_check(const zero_options *given)
{
    for (const zero_option *row = zero_run_options; row->name; row++)
        ZERO_INVALID_IF(
            !(row->is & ZERO_OPTION_PLACED) && zero_options_is_set(given, row->name),
            "--%s: the step file says what is computed; only where and how can be "
            "chosen",
            row->name);
    return ZERO_OK;
}

static zero_status check(ZERO_UNUSED void *options, const zero_options *given)
{
    ZERO_INVALID_IF(given->n_operands != 1,
                    "expected one step file: zero verify FILE; zero compare takes two");
    return zero_step_files_check(given);
}

/* Configures a run that makes this step again on n_ranks. A microbatch is as large as the
 * file's, or the largest that divides a rank's sequences. If the ranks do not divide the
 * step's sequences, sequences are added whose targets do not count. */
static void configure(zero_config *c, const zero_step_file *f, int n_ranks)
{
    const zero_step_facts *s = &f->facts;
    const int64_t N = n_ranks / zero_max(c->tp.ranks, 1);
    const int64_t each = zero_divide_up(zero_step_samples(f), zero_max(N, 1));
    c->base = f->shape;
    c->dropout = s->dropout;
    c->seed = s->seed;
    c->steps = s->step + 1;
    c->lr = s->lr;
    c->beta1 = s->beta1;
    c->beta2 = s->beta2;
    c->eps = s->eps;
    c->weight_decay = s->weight_decay;
    c->clip = s->clip;
    c->global_batch = each * N;
    c->plan.micro_batch = f->batch;
    while (each % c->plan.micro_batch != 0) c->plan.micro_batch--;
    c->plan.type = f->type;
    if (!c->activations && s->activations[0]) c->activations = s->activations;
    if (c->tp.slices == 0 && s->slices > 1) c->tp.slices = (int)s->slices;
    const int64_t M = each / c->plan.micro_batch;
    const bool is_alike = N == f->ranks && M == f->microbatches;
    const bool is_own = strncmp(s->framework, "zero ", 5) == 0;
    c->plan.reproducible = is_alike && is_own
                               ? s->reproducible
                               : zero_is_power_of_two(N) && zero_is_power_of_two(M);
}

/* One file, or two that are compared. */
struct steps {
    zero_step_file *file, *other;
};

/* The model keeps which tensors decay by the first file. */
static zero_status take(void *arg, zero_model *model)
{
    const struct steps *steps = arg;
    if (steps->other) ZERO_TRY(zero_step_match(steps->other, model));
    return zero_step_match(steps->file, model);
}

static zero_status print(const char *section, json_t *found)
{
    zero_status st = zero_form_print(zero_embedded_text(zero_cli_forms, "verify"), section,
                                     found, zero_legible_print, stdout);
    json_decref(found);
    return st;
}

static zero_status run_session(zero_session *s, const struct steps *steps, bool json)
{
    json_t *found = NULL;
    zero_step_file *a = steps->file, *b = steps->other;
    bool is_right;
    ZERO_TRY(zero_session_start(s, zero_run_options_fingerprint(&s->config), ""));
    const bool is_larger = b && zero_step_samples(b) > zero_step_samples(a);
    configure(&s->config, is_larger ? b : a, s->world.size);
    ZERO_TRY(zero_agree(&s->world, zero_config_check(&s->config)));
    ZERO_TRY(zero_session_build(s));
    json_auto_t *memory = json_pack(
        "{s:I, s:I}", "planned", (json_int_t)zero_plan_needed(&s->engine.schedule), "more",
        (json_int_t)zero_step_judge_bytes(&s->engine) * (b ? 2 : 1));
    const bool is_root = zero_comm_is_root(&s->world);
    ZERO_TRY(zero_agree(&s->world,
                        is_root && !json ? print("memory", json_incref(memory)) : ZERO_OK));
    ZERO_TRY(b ? zero_step_compare(a, b, &s->engine, &found, &is_right)
               : zero_step_verify(a, &s->engine, &found, &is_right));
    zero_status st = ZERO_OK;
    zero_put_whole(memory, "resident", (int64_t)zero_metrics_resident_peak());
    json_object_set(found, "memory", memory);
    if (!is_root)
        json_decref(found);
    else if (json)
        st = zero_json_print(found, JSON_INDENT(2) | JSON_REAL_PRECISION(17), stdout);
    else
        st = print(b ? "steps" : "step", found);
    ZERO_TRY(zero_agree(&s->world, st));
    ZERO_TRY(zero_session_close(s));
    if (is_right) return ZERO_OK;
    return b ? zero_fail(ZERO_ERR_DIFFERENT, "%.200s and %.200s differ", a->file.path,
                         b->file.path)
             : zero_fail(ZERO_ERR_DIFFERENT, "%s: the step is wrong", a->file.path);
}

zero_status zero_step_files_run(const zero_verify_options *o, const zero_options *given)
{
    zero_step_file files[2] = {{.root = NULL}, {.root = NULL}};
    struct steps steps = {&files[0], given->n_operands > 1 ? &files[1] : NULL};
    const zero_session_own mine = {take, &steps};
    zero_session s = {.config = o->config, .given = given, .own = &mine};
    zero_status st = zero_step_open(given->operands[0], &files[0]);
    if (st == ZERO_OK && steps.other) st = zero_step_open(given->operands[1], &files[1]);
    if (st == ZERO_OK && steps.other) st = zero_step_same_model(&files[0], &files[1]);
    if (st == ZERO_OK) st = run_session(&s, &steps, o->json);
    zero_deadline_close(&s.deadline); /* its thread looks into this frame */
    for (int i = 0; i < 2; i++) zero_step_close(&files[i]);
    return st;
}

static zero_status run(void *options, const zero_options *given)
{
    return zero_step_files_run(options, given);
}

const zero_command zero_command_verify = {
#include "cli/options/verify.command"
    .tables = tables,
    .n_tables = ZERO_COUNT(tables),
    .size = sizeof(zero_verify_options),
    .check = check,
    .run = run,
};
