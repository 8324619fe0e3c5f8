#include "report/text.h"

#include "facts/facts.h"

const char *zero_text_bytes(double bytes, char text[ZERO_PLAN_TEXT])
{
    zero_fact fact = {.kind = ZERO_FACT_NUMBER, .number = bytes};
    return zero_unit_write(&fact, "bytes", text, ZERO_PLAN_TEXT) ? text : NULL;
}

const char *zero_text_plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

void zero_text_shape(const zero_shape *s, char text[ZERO_PLAN_TEXT])
{
    char keys[48] = "";
    if (s->kv_heads > 0 && s->kv_heads < s->heads)
        zero_print(keys, ", %" PRId64 " of keys", s->kv_heads);
    snprintf(text, ZERO_PLAN_TEXT,
             "%" PRId64 " layer%s, %" PRId64 " hidden, %" PRId64 " head%s%s, T %" PRId64,
             s->layers, zero_text_plural(s->layers), s->hidden, s->heads,
             zero_text_plural(s->heads), keys, s->seq);
}

json_t *zero_batch_facts(const zero_config *c, int64_t seq)
{
    return json_pack("{s:I, s:I, s:i, s:I, s:b, s:i}", "global_batch", c->global_batch,
                     "micro_batch", c->plan.micro_batch, "accumulation",
                     c->plan.accumulation, "tokens_per_step", c->global_batch * seq,
                     "grows_with_ranks", c->grows_with_ranks, "shard_ranks",
                     zero_config_shard_ranks(c));
}
