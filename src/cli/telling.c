#include "cli/telling.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "comm/deliver.h"
#include "engine/tell.h"
#include "lesson/narrate.h"
#include "lesson/tale.h"

static zero_status check(const zero_session *s)
{
    ZERO_TRY(zero_narrate_check(&s->model, s->world.size));
    const char *option = s->config.quiet                      ? "quiet"
                         : zero_config_has_device(&s->config) ? "device"
                         : s->engine.runner.replicas          ? "shard-ranks"
                                                              : NULL;
    if (!option) return ZERO_OK;
    return zero_fail(ZERO_ERR_UNSUPPORTED, "--narrate with --%s: give one, not both",
                     option);
}

static zero_status allocate(zero_session *s, int64_t longest)
{
    zero_telling *t = &s->telling;
    size_t all = zero_comm_is_root(&s->world) ? (size_t)(longest * s->world.size) : 0;
    ZERO_TRY(zero_tell_open(&s->engine.schedule, &t->mine));
    t->tale = (zero_tale){.n_ranks = s->world.size, .length = (int)longest};
    t->tale.list = calloc(all + 1, sizeof *t->tale.list);
    if (t->tale.list) return ZERO_OK;
    return zero_fail(ZERO_ERR_NOMEM, "no memory to tell of %d instructions", t->length);
}

zero_status zero_telling_open(zero_session *s)
{
    int64_t longest;
    if (!s->config.narrate) return ZERO_OK;
    ZERO_TRY(zero_agree(&s->world, check(s)));
    s->telling.length = s->engine.schedule.programs[ZERO_PROGRAM_STEP].length;
    ZERO_TRY(zero_comm_most(&s->world, s->telling.length, &longest));
    return zero_agree(&s->world, allocate(s, longest));
}

void zero_telling_close(zero_session *s)
{
    s->engine.runner.told = NULL;
    free(s->telling.mine);
    free(s->telling.tale.list);
    s->telling = (zero_telling){0};
}

void zero_telling_begin(zero_session *s, int64_t step)
{
    bool is_told = step - s->saving.start <= s->config.narrate_steps;
    s->engine.runner.told = is_told ? s->telling.mine : NULL;
}

static zero_status take(void *arg, int rank, const void *data, size_t bytes)
{
    zero_tale_take(arg, rank, data, (int)(bytes / sizeof(zero_told)));
    return ZERO_OK;
}

zero_status zero_telling_end(zero_session *s)
{
    zero_telling *t = &s->telling;
    if (!s->engine.runner.told) return ZERO_OK;
    ZERO_TRY(zero_comm_deliver(&s->world, t->mine, (size_t)t->length * sizeof *t->mine,
                               take, &t->tale));
    zero_narrator narrator = {&s->model, s->dataset.corpus.tokenizer};
    zero_progress_view_erase(&s->progress);
    if (zero_comm_is_root(&s->world)) zero_narrate_step(&narrator, &t->tale, stdout);
    return ZERO_OK;
}
