#include "cli/lesson_plans.h"

#include "cli/plan_options.h"
#include "cli/words.h"
#include "course/machine.h"
#include "course/narrate.h"
#include "report/plan_program.h"

/* The plan's text and its facts, with the members of its stage beside them, and the groups
 * of parameters: {name, parameters, padded, shard, own: padding included, of this rank;
 * shards: the parameters of each rank}. */
static zero_status make_plan(const char *words, char **text, json_t **facts)
{
    ZERO_AT_END(zero_words_destroy) zero_words cut = {0};
    ZERO_AT_END(zero_options_destroy) zero_options given = {0};
    ZERO_AT_END(zero_plan_report_destroy) zero_plan_report report = {0};
    zero_plan_options options;
    size_t n;
    ZERO_TRY(zero_words_split(&cut, "lesson", words));
    ZERO_TRY(
        zero_options_read(&zero_command_plan, (int)cut.n, cut.words, &options, &given));
    ZERO_TRY(zero_plan_report_make(&report, &options.request));
    FILE *out = open_memstream(text, &n);
    ZERO_FAIL_IF(!out, ZERO_ERR_NOMEM, "no memory for a plan of the lesson");
    zero_status st = options.request.show_schedule ? zero_plan_show_programs(&report, out)
                                                   : zero_plan_show(&report, out);
    fclose(out);
    ZERO_TRY(st);
    const zero_schedule *s = &report.stages[0].schedule;
    json_t *plan = zero_plan_facts(&report), *groups = json_array();
    json_object_update_missing(plan, json_array_get(json_object_get(plan, "stages"), 0));
    for (int g = 0; g < s->input.model->n_groups; g++) {
        const zero_partition *p = &s->groups[g].partition;
        json_t *shards = json_array();
        for (int r = 0; r < p->n_ranks; r++)
            json_array_append_new(shards,
                                  json_integer(zero_range_len(zero_partition_shard(p, r))));
        zero_put_item(
            groups, "{s:s,s:I,s:I,s:I,s:I,s:o}", "name", s->input.model->groups[g].name,
            "parameters", p->n_params, "padded", p->padded, "shard", p->shard_len, "own",
            zero_range_len(zero_partition_piece(p, s->input.rank)), "shards", shards);
    }
    json_object_set_new(plan, "groups", groups);
    *facts = plan;
    return plan ? ZERO_OK : zero_fail(ZERO_ERR_NOMEM, "no memory for a plan's facts");
}

/* ---- runs ---- */

static zero_status walk(zero_lesson_machine *m, int steps, json_t **facts)
{
    zero_lesson_step last = {.step = 0};
    char digest[33];
    zero_narrator narrator = {&zero_lesson_show(m)->model,
                              zero_lesson_show(m)->corpus.tokenizer};
    json_t *list = json_array();
    zero_status st = ZERO_OK;
    for (int k = 0; k < steps && st == ZERO_OK; k++) {
        st = zero_lesson_walk(m, &last);
        zero_put_item(list, "{s:I,s:f,s:f,s:b}", "step", last.step, "loss", last.loss,
                      "loss_scale", last.loss_scale, "skipped", last.skipped);
    }
    json_t *step = zero_narrate_tree(&narrator, &zero_lesson_show(m)->tale);
    if (st == ZERO_OK) st = zero_lesson_digest(m, digest);
    *facts =
        json_pack("{s:f,s:f,s:s,s:o,s:o,s:o}", "loss", last.loss, "loss_scale",
                  last.loss_scale, "digest", st == ZERO_OK ? digest : "", "begins",
                  json_stringn(digest, st == ZERO_OK ? 8 : 0), "steps", list, "step", step);
    return st;
}

static zero_status make_run(const char *words, int ranks, int steps, json_t **facts)
{
    ZERO_AT_END(zero_words_destroy) zero_words cut = {0};
    ZERO_AT_END(zero_options_destroy) zero_options given = {0};
    zero_config config;
    ZERO_AT_END(zero_lesson_close) zero_lesson_machine *machine = NULL;
    ZERO_TRY(zero_words_split(&cut, "lesson", words));
    ZERO_TRY(
        zero_options_read(&zero_command_train, (int)cut.n, cut.words, &config, &given));
    ZERO_TRY(zero_lesson_open(&config, ranks, &machine));
    return walk(machine, steps, facts);
}

const zero_course_planner zero_lesson_planner = {.plan = make_plan, .run = make_run};
