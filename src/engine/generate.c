/* generate.c - texts, token by token.
 *
 *     GENERATE    a whole text: its first tokens, whose keys and values go to the cache
 *     TOKEN       the last token of each text; the cache has those before
 *
 * The model knows positions 0 .. T - 1 and sees the last T tokens. As long as a text has
 * at most T, a token's position stays the same, so what the cache has stays right. In a
 * longer one every token moves down by one position with each token that is added: it is
 * computed whole then, each time. */

#include "engine/engine.h"

/* Texts that are generated at one time. */
struct batch {
    zero_engine *e;
    const zero_sampling *how;
    zero_text *texts;
    int64_t n; /* texts, at most ZERO_TEXTS */
    zero_rng rng;
};

/* The length of a text, and what the model sees of it. */
static int64_t length_of(const struct batch *b, int64_t text)
{
    return b->texts[text].n_known + b->texts[text].n_drawn;
}

static int64_t seen_of(const struct batch *b, int64_t text)
{
    int64_t seq = b->e->schedule.input.seq, length = length_of(b, text);
    return length < seq ? length : seq;
}

static bool is_cached(const struct batch *b, int64_t text)
{
    const zero_schedule *s = &b->e->schedule;
    return b->texts[text].n_drawn > 0 && zero_schedule_has_cache(s) &&
           length_of(b, text) <= s->input.seq;
}

static int32_t draw(const struct batch *b, int64_t text, const float *logits)
{
    if (!logits) return 0; /* the last stage of a pipeline has them */
    uint64_t at = (uint64_t)length_of(b, text);
    return zero_sampling_draw(b->how, logits, zero_rng_uniform(&b->rng, at));
}

static zero_status run(const struct batch *b, const zero_run_input *in,
                       zero_run_output *out)
{
    ZERO_TRY(zero_runner_run(&b->e->runner, in, out));
    return zero_engine_check_parameters(b->e);
}

/* A text's next token from all that the model sees of it. */
static zero_status compute_whole(const struct batch *b, int64_t text, int32_t *next)
{
    int64_t T = seen_of(b, text);
    const zero_run_input in = {.program = ZERO_PROGRAM_GENERATE,
                               .prompt = b->texts[text].tokens + length_of(b, text) - T,
                               .T = T,
                               .text = zero_schedule_has_cache(&b->e->schedule) ? text : 0,
                               .loss_scale = 1.0};
    zero_run_output out;
    ZERO_TRY(run(b, &in, &out));
    *next = draw(b, text, out.logits);
    return ZERO_OK;
}

static zero_status add_tokens(const struct batch *b)
{
    int32_t next[ZERO_TEXTS] = {0};
    for (int64_t t = 0; t < b->n; t++)
        if (!b->texts[t].has_ended && !is_cached(b, t))
            ZERO_TRY(compute_whole(b, t, &next[t]));
    /* The next tokens of all texts that the cache has; the places of others compute
     * what nobody reads. */
    int32_t last[ZERO_TEXTS] = {0};
    int64_t past[ZERO_TEXTS] = {0}, n = 0;
    for (int64_t t = 0; t < b->n; t++) {
        if (b->texts[t].has_ended || !is_cached(b, t)) continue;
        past[t] = length_of(b, t) - 1;
        last[t] = b->texts[t].tokens[past[t]];
        n++;
    }
    if (n != 0) {
        const zero_run_input in = {
            .program = ZERO_PROGRAM_TOKEN, .prompt = last, .past = past, .loss_scale = 1.0};
        const int64_t vocab = b->e->schedule.model->vocab;
        zero_run_output out;
        ZERO_TRY(run(b, &in, &out));
        for (int64_t t = 0; t < b->n; t++)
            if (!b->texts[t].has_ended && is_cached(b, t) && out.logits)
                next[t] = draw(b, t, out.logits + t * vocab);
    }
    /* Equal machines compute equal bits; on unequal ones the first rank that has logits
     * decides. */
    const zero_schedule *s = &b->e->schedule;
    const int first = (s->pipe.n_stages - 1) * zero_schedule_stage_ranks(s);
    ZERO_TRY(
        zero_comm_broadcast(b->e->runner.comm, first, next, (size_t)b->n * sizeof next[0]));
    for (int64_t t = 0; t < b->n; t++) {
        zero_text *text = &b->texts[t];
        if (text->has_ended) continue;
        ZERO_FAIL_IF(
            next[t] < 0, ZERO_ERR_DIVERGED,
            "the model's logits after %" PRId64
            " tokens are not finite: its weights are not finite, or too large for %s",
            seen_of(b, t), zero_type_name(b->e->schedule.input.type));
        text->tokens[length_of(b, t)] = next[t];
        text->n_drawn++;
        text->has_ended = zero_sampling_ends(b->how, next[t]);
    }
    return ZERO_OK;
}

static bool have_ended(const struct batch *b)
{
    for (int64_t t = 0; t < b->n; t++)
        if (!b->texts[t].has_ended) return false;
    return true;
}

zero_status zero_engine_generate_texts(zero_engine *e, const zero_sampling *how, int64_t n,
                                       zero_text *texts, int64_t n_texts)
{
    int64_t together = zero_schedule_has_cache(&e->schedule) ? e->schedule.input.texts : 1;
    ZERO_TRY(zero_engine_settle_update(e));
    for (int64_t t = 0; t < n_texts; t++) {
        texts[t].n_drawn = 0;
        texts[t].has_ended = false;
    }
    for (int64_t first = 0; first < n_texts; first += together) {
        const struct batch b = {.e = e,
                                .how = how,
                                .texts = texts + first,
                                .n = zero_min(n_texts - first, together),
                                .rng = {.seed = (uint64_t)how->seed,
                                        .purpose = ZERO_RNG_SAMPLING,
                                        .step = (uint64_t)how->step}};
        for (int64_t made = 0; made < n && !have_ended(&b); made++)
            ZERO_TRY(add_tokens(&b));
    }
    return ZERO_OK;
}
