#include "report/plan_batch_show.h"

#include <inttypes.h>

#include "report/json_put.h"
#include "report/text.h"

zero_config zero_plan_batch_config(const zero_plan_report *r, const zero_plan_stage *stage)
{
    const zero_plan_batch *b = &stage->batch;
    zero_config c = r->config;
    c.micro_batch = b->micro_batch;
    c.accumulation = b->accumulation;
    c.global_batch = c.data_ranks * b->accumulation * b->micro_batch;
    c.grows_with_ranks = zero_plan_batch_grows(r);
    return c;
}

static void show_next(const zero_plan_batch *b, FILE *out)
{
    char needed[ZERO_PLAN_TEXT];
    zero_text_continue(out);
    zero_text_bytes((double)b->next_needed, needed);
    if (b->next > 0)
        fprintf(out, "%" PRId64 " would need %s (%zu bytes)", b->next, needed,
                b->next_needed);
    else
        fputs("no larger one is possible", out);
}

static void show_step(const zero_config *c, int64_t seq, FILE *out)
{
    char batch[2 * ZERO_PLAN_TEXT];
    zero_text_batch(c, batch);
    zero_text_continue(out);
    fprintf(out, "%s; %" PRId64 " tokens per step", batch, c->global_batch * seq);
    zero_text_continue(out);
    fprintf(out, "%s", zero_text_scaling(c));
}

void zero_plan_show_batch(const zero_plan_report *r, const zero_plan_stage *stage,
                          FILE *out)
{
    const zero_plan_batch *b = &stage->batch;
    char room[ZERO_PLAN_TEXT], needed[ZERO_PLAN_TEXT];
    if (!r->request.fit_batch) return;
    zero_config c = zero_plan_batch_config(r, stage);
    zero_text_bytes((double)r->request.fit_memory, room);
    zero_text_bytes((double)b->needed, needed);
    zero_text_row("fits", out);
    fprintf(out, "%s (%" PRId64 " bytes): --micro-batch %" PRId64 " needs %s (%zu bytes)",
            room, r->request.fit_memory, b->micro_batch, needed, b->needed);
    show_next(b, out);
    show_step(&c, r->shape.seq, out);
    if (stage->schedule.input.partition == ZERO_PARTITION_OWNER) {
        zero_text_continue(out);
        fprintf(out, "for rank %d alone: owners need more than other ranks",
                r->request.rank);
    }
    fputc('\n', out);
}

json_t *zero_plan_batch_json(const zero_plan_report *r, const zero_plan_stage *stage)
{
    const zero_plan_batch *b = &stage->batch;
    zero_config c = zero_plan_batch_config(r, stage);
    json_t *object = json_object();
    put_whole(object, "bytes", r->request.fit_memory);
    put_whole(object, "micro_batch", b->micro_batch);
    put_whole(object, "needed", (int64_t)b->needed);
    if (b->next > 0) {
        put_whole(object, "next_micro_batch", b->next);
        put_whole(object, "next_needed", (int64_t)b->next_needed);
    }
    put_whole(object, "accumulation", b->accumulation);
    put_whole(object, "global_batch", c.global_batch);
    put_whole(object, "tokens_per_step", c.global_batch * r->shape.seq);
    json_object_set_new(object, "grows_with_ranks", json_boolean(c.grows_with_ranks));
    return object;
}
