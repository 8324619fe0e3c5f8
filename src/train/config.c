#include "train/config.h"

#include "data/tokenizer.h"
#include "data/tokens.h"
#include "math/device.h"
#include "sharding/stages.h"

/* With --reproducible the micro batch is the same on all numbers of ranks. It leaves this
 * many ranks something to do where the global batch allows it. */
enum { REPRODUCIBLE_RANKS = 16, REPRODUCIBLE_MOST = 8 };

/* The training of a preset if the user says nothing. Rates are those of GPT-3's table 2.1;
 * the tiny model's numbers are measured (bench/results). */
typedef struct {
    const char *model;
    int64_t steps, global_batch, micro_batch;
    double lr;
    int64_t eval_every, eval_batches, log_every, sample;
} zero_recipe;

static const zero_recipe recipes[] = {
    {"tiny", 360, 48, 0, 4e-3, 120, 8, 20, 240},
    {"gpt2", 100, 0, 4, 6e-4, 50, 2, 1, 20},
    {"gpt2-medium", 100, 0, 4, 3e-4, 50, 2, 1, 20},
    {"gpt2-large", 100, 0, 2, 2.5e-4, 50, 2, 1, 20},
    {"gpt2-xl", 100, 0, 1, 2e-4, 50, 2, 1, 20},
};

/* An imported model is never taken for this one. */
static const zero_recipe lesson_recipe = {"lesson", 5, 0, 1, 1e-2, 0, 1, 1, 0};

/* The other presets take a few steps of the smallest batch, at a rate that the size
 * decides. */
static const zero_recipe other_recipe = {NULL, 100, 0, 1, 0.0, 50, 2, 1, 20};

static const struct {
    double n_params, lr;
} rates[] = {{125e6, 6e-4},   {350e6, 3e-4},   {760e6, 2.5e-4}, {1.3e9, 2e-4},
             {2.7e9, 1.6e-4}, {6.7e9, 1.2e-4}, {13e9, 1e-4},    {175e9, 0.6e-4}};

/* How far two sizes are apart, by factor. */
static double distance(double a, double b)
{
    return fabs(log(a / b));
}

#define RANKS_TEXT 96

/* "8 ranks", or "2 (8 ranks / --pp 2 / --tp 2)" */
static void name_ranks(const zero_config *c, int N, char text[RANKS_TEXT])
{
    const int P = zero_plan_stages(&c->plan), T = zero_tp_ranks(&c->tp), all = N * P * T;
    char by[48] = "";
    if (P > 1) zero_print(by, " / --pp %d", P);
    if (T > 1) snprintf(by + strlen(by), sizeof by - strlen(by), " / --tp %d", T);
    snprintf(text, RANKS_TEXT, "%d rank%s", N, N == 1 ? "" : "s");
    if (all > N) snprintf(text, RANKS_TEXT, "%d (%d ranks%s)", N, all, by);
}

static void take_default(int64_t *value, int64_t unset, int64_t standard)
{
    if (*value == unset) *value = standard;
}

static zero_status find_recipe(const zero_config *c, zero_recipe *recipe)
{
    zero_shape shape;
    ZERO_TRY(zero_model_preset(c->model, &shape));
    /* Tiny models of all architectures train alike. */
    const char *name = strncmp(c->model, "tiny-", 5) == 0 ? "tiny" : c->model;
    double n_params = (double)zero_shape_count(&shape), apart = INFINITY;
    *recipe = other_recipe;
    /* The rate of the model in GPT-3's table 2.1 that is nearest in size. */
    for (int i = 0; i < ZERO_COUNT(rates); i++) {
        double d = distance(rates[i].n_params, n_params);
        if (d >= apart) continue;
        apart = d;
        recipe->lr = rates[i].lr;
    }
    for (int i = 0; i < ZERO_COUNT(recipes); i++)
        if (zero_same_text(recipes[i].model, name)) *recipe = recipes[i];
    if (zero_same_text(lesson_recipe.model, name)) *recipe = lesson_recipe;
    return ZERO_OK;
}

static zero_status complete_numbers(zero_config *c)
{
    zero_recipe r;
    ZERO_TRY(find_recipe(c, &r));
    take_default(&c->steps, -1, r.steps);
    take_default(&c->eval_every, -1, r.eval_every);
    take_default(&c->eval_batches, 0, r.eval_batches);
    take_default(&c->log_every, 0, r.log_every);
    take_default(&c->sample, -1, r.sample);
    take_default(&c->warmup, -1, c->steps / 5);
    if (c->plan.bucket == 0) c->bucket_grows = true;
    take_default(&c->plan.bucket, 0, ZERO_CONFIG_BUCKET);
    take_default(&c->keep, 0, 2);
    if (c->save_minutes < 0.0)
        c->save_minutes = c->checkpoint && c->save_every == 0 ? 10.0 : 0.0;
    const zero_rule *rule = zero_rule_at(c->plan.optimizer);
    if (c->beta1 < 0.0) c->beta1 = rule->beta1;
    if (c->beta2 < 0.0) c->beta2 = rule->beta2;
    if (c->lr < 0.0) c->lr = r.lr * rule->rate;
    if (c->lr_min < 0.0) c->lr_min = c->lr / 10.0;
    ZERO_INVALID_IF(c->lr_min > c->lr, "--lr-min %g is above --lr %g", c->lr_min, c->lr);
    ZERO_INVALID_IF(c->warmup > c->steps,
                    "--warmup %" PRId64 " is longer than the run of --steps %" PRId64,
                    c->warmup, c->steps);
    return ZERO_OK;
}

/* If the data decide the vocabulary, it is checked when they are open. */
static zero_status take_shares(zero_config *c)
{
    zero_shape shape;
    ZERO_TRY(zero_config_shape(c, ZERO_VOCAB_BYTES, &shape));
    zero_tp_take_defaults(&c->tp, c->plan.reproducible, shape.heads);
    return zero_tp_check(&c->tp, &shape);
}

zero_status zero_config_complete(zero_config *c, int n_ranks)
{
    zero_recipe r;
    ZERO_TRY(complete_numbers(c));
    ZERO_TRY(find_recipe(c, &r));
    ZERO_TRY(take_shares(c));
    ZERO_TRY(zero_tp_check_ranks(&c->tp, n_ranks));
    ZERO_TRY(zero_config_check_shard_ranks(c, n_ranks));
    c->plan.n_ranks = n_ranks / zero_tp_ranks(&c->tp) / zero_plan_stages(&c->plan);
    int N = c->plan.n_ranks;
    bool is_open = c->global_batch == 0 && c->plan.micro_batch == 0;
    bool is_fixed = c->plan.reproducible && zero_is_power_of_two(N);
    if (c->global_batch == 0) c->grows_with_ranks = !is_open || r.micro_batch > 0;
    if (is_open && is_fixed) c->global_batch = r.global_batch;
    if (c->global_batch > 0 && c->plan.micro_batch == 0 && is_fixed) {
        /* Bits follow how a batch is cut, so the cut depends on the batch and the preset
         * alone. Every number of ranks has a power of two of microbatches. */
        int64_t most = r.micro_batch > 0 ? r.micro_batch : REPRODUCIBLE_MOST;
        int64_t micro = c->global_batch;
        while (micro % 2 == 0) micro /= 2;
        while (2 * micro <= most && c->global_batch % (2 * micro * REPRODUCIBLE_RANKS) == 0)
            micro *= 2;
        c->plan.micro_batch = micro;
    } else if (is_open)
        /* The preset's, or what comes nearest to its global batch on so many ranks. */
        c->plan.micro_batch =
            r.micro_batch > 0 ? r.micro_batch : zero_max((r.global_batch + N / 2) / N, 1);
    if (c->global_batch == 0) c->global_batch = c->plan.micro_batch * N;
    if (c->plan.micro_batch == 0)
        c->plan.micro_batch = c->global_batch % N == 0 ? c->global_batch / N : 1;
    if (c->global_batch % (c->plan.micro_batch * N) != 0) {
        /* Suggests another micro batch only where the ranks divide the global batch. */
        int64_t at_once = c->plan.micro_batch * c->plan.n_ranks;
        int64_t below = c->global_batch / at_once * at_once;
        char lower[32] = "", ranks[RANKS_TEXT];
        if (below > 0) zero_print(lower, "%" PRId64 " or ", below);
        name_ranks(c, N, ranks);
        return zero_fail(
            ZERO_ERR_INVALID,
            "--global-batch %" PRId64 " is not a multiple of --micro-batch %" PRId64
            " x %s = %" PRId64 ": give a global batch of %s%" PRId64 "%s",
            c->global_batch, c->plan.micro_batch, ranks, at_once, lower, below + at_once,
            c->global_batch % c->plan.n_ranks == 0 ? ", or another micro batch" : "");
    }
    const int64_t M = c->global_batch / (c->plan.micro_batch * N);
    c->plan.accumulation = (int)M;
    ZERO_INVALID_IF(M > ZERO_CONFIG_ACCUMULATION,
                    "--global-batch %" PRId64 " with --micro-batch %" PRId64
                    " makes %" PRId64 " microbatches per rank and step, more than %" PRId64
                    ": give a larger micro batch",
                    c->global_batch, c->plan.micro_batch, M, ZERO_CONFIG_ACCUMULATION);
    return ZERO_OK;
}

zero_status zero_config_take_preset(zero_config *c)
{
    zero_recipe r;
    zero_shape shape;
    ZERO_TRY(complete_numbers(c));
    ZERO_TRY(find_recipe(c, &r));
    ZERO_TRY(zero_config_shape(c, 0, &shape));
    c->shape = shape;
    if (c->global_batch > 0 || c->plan.micro_batch > 0) return ZERO_OK;
    c->global_batch = r.global_batch;
    c->plan.micro_batch = r.micro_batch;
    return ZERO_OK;
}

/* ---- imported weights ---- */

zero_status zero_config_take_shape(zero_config *c, const zero_shape *found, bool has_model)
{
    zero_shape preset;
    bool is_open =
        !has_model && c->shape.layers == 0 && c->shape.hidden == 0 && c->shape.heads == 0;
    ZERO_TRY(zero_model_preset(c->model, &preset));
    if (!has_model || preset.vocab == 0) take_default(&c->shape.vocab, 0, found->vocab);
    if (has_model) return ZERO_OK;
    /* Tensors do not show heads. The preset's are taken only for a model of its
     * size. */
    bool is_preset = found->layers == preset.layers && found->hidden == preset.hidden;
    ZERO_INVALID_IF(
        found->heads <= 0 && c->shape.heads <= 0 && !is_preset,
        "--init-from %s: the number of heads is not known, without a config.json "
        "beside the weights that says it (n_head): give --heads N, or --model NAME",
        c->init_from);
    if (is_open && found->heads > 0) {
        double n_params = (double)zero_shape_count(found);
        const char **model = &c->model;
        double least = INFINITY;
        for (int i = 0; i < ZERO_COUNT(recipes); i++) {
            zero_shape shape;
            ZERO_TRY(zero_model_preset(recipes[i].model, &shape));
            double d = distance((double)zero_shape_count(&shape), n_params);
            if (d >= least) continue;
            least = d;
            *model = recipes[i].model;
        }
    }
    if (found->kind && found->kind != zero_architectures) {
        c->base = *found; /* not all of its numbers are options */
        return ZERO_OK;
    }
    zero_shape shape = *found;
    zero_shape_overlay(&shape, &c->shape);
    c->shape = shape;
    return ZERO_OK;
}

double zero_config_scratch_rate(const zero_config *c)
{
    zero_recipe r = other_recipe;
    return find_recipe(c, &r) == ZERO_OK ? r.lr : 0.0;
}

/* ---- checks ---- */

bool zero_config_resumes(const zero_config *c)
{
    return c->resume || c->resume_older;
}

static zero_status refuse_shard_ranks(const zero_config *c, int N, const char *why)
{
    const int64_t R = c->plan.shard_ranks;
    char ranks[RANKS_TEXT], remedy[48] = "";
    int good = 1; /* the largest power of two up to R that divides N */
    while (2 * good <= R && zero_can_shard(N, 2 * good)) good *= 2;
    name_ranks(c, N, ranks);
    if (good < N) zero_print(remedy, "%d, or ", good);
    return zero_fail(ZERO_ERR_INVALID,
                     "--shard-ranks %" PRId64 " of %s: %s; give %s%d (all)", R, ranks, why,
                     remedy, N);
}

zero_status zero_config_check_shard_ranks(const zero_config *c, int n_ranks)
{
    const int P = zero_plan_stages(&c->plan), T = zero_tp_ranks(&c->tp),
              N = n_ranks / T / P;
    char by[32] = "";
    if (T > 1) zero_print(by, " x --tp %d", T);
    ZERO_INVALID_IF(P > 1 && n_ranks != N * T * P,
                    "--pp %d%s does not divide %d rank%s: start %d ranks, or give a number "
                    "that divides %d",
                    P, by, n_ranks, n_ranks == 1 ? "" : "s", (int)zero_max(N, 1) * T * P,
                    n_ranks);
    int64_t R = c->plan.shard_ranks;
    char why[128];
    if (R == 0 || zero_can_shard(N, R)) return ZERO_OK;
    if (R > N)
        return refuse_shard_ranks(c, N, "there are not that many ranks to shard over");
    if (N % R != 0) {
        zero_print(why, "it does not divide them (%" PRId64 " x %" PRId64 " + %" PRId64 ")",
                   R, N / R, N % R);
        return refuse_shard_ranks(c, N, why);
    }
    return refuse_shard_ranks(c, N,
                              "it is not a power of two, so replicas would add gradients "
                              "in another order than a run that shards over all ranks");
}

#define DIGEST_DIGITS 32

zero_status zero_config_check_given(const zero_config *c)
{
    const char *digest = c->expect_digest;
    zero_algorithm given;
    ZERO_INVALID_IF(digest && !(strlen(digest) == DIGEST_DIGITS &&
                                strspn(digest, "0123456789abcdefABCDEF") == DIGEST_DIGITS),
                    "--expect-digest %.80s: expected %d hexadecimal digits, as a run "
                    "prints them at its end",
                    digest, DIGEST_DIGITS);
    if (!c->plan.node_parameters) return ZERO_OK;
    ZERO_INVALID_IF(zero_stage_at(c->plan.stage)->parameters == ZERO_HOLD_WHOLE,
                    "--node-parameters with --stage %d: below stage 3 parameters are "
                    "not sharded; give --stage 3, or leave it out",
                    c->plan.stage);
    if (!zero_algorithm_find(c->collectives, &given) ||
        zero_algorithm_get(given)->works_in_window)
        return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "--node-parameters with --collectives %s, which has no memory of a "
                     "node: use --collectives auto, shm or hier",
                     c->collectives);
}

zero_status zero_config_check(const zero_config *config)
{
    zero_config c = *config;
    zero_shape shape;
    zero_type activations;
    zero_device_choice choice;
    char where[128];
    int32_t vocab;
    ZERO_TRY(zero_config_check_given(config));
    zero_print(where, "--device %s", c.device);
    ZERO_TRY(zero_device_read(c.device, where, &choice));
    ZERO_TRY(complete_numbers(&c));
    ZERO_TRY(zero_activations_choose(c.activations, c.plan.type, c.device, &activations));
    if (c.tokenizer && zero_tokenizer_is_name(c.tokenizer))
        ZERO_TRY(zero_tokenizer_parse(c.tokenizer, &vocab));
    ZERO_TRY(zero_tokens_check_bytes(c.token_bytes));
    if (c.init_from) return ZERO_OK; /* its files have the shape */
    ZERO_TRY(zero_config_shape(&c, ZERO_VOCAB_BYTES, &shape));
    ZERO_TRY(zero_shape_check(&shape));
    return take_shares(&c);
}

zero_status zero_config_shape(const zero_config *c, int64_t data_vocab, zero_shape *shape)
{
    zero_shape s = c->base;
    if (!s.kind) ZERO_TRY(zero_model_preset(c->model, &s));
    if (c->architecture) ZERO_TRY(zero_architecture_find(c->architecture, &s.kind));
    zero_shape_overlay(&s, &c->shape);
    if (c->tied) s.tied = zero_same_text(c->tied, "on");
    ZERO_INVALID_IF(c->tied && !s.tied &&
                        !(zero_shape_complete(&s).kind->has & ZERO_HAS_MORE),
                    "--tied off: the words of a %s's head are the embedding's; leave "
                    "it out, or give another --architecture",
                    zero_architecture_name(s.kind));
    if (s.vocab == 0) s.vocab = data_vocab;
    s.dropout = (float)c->dropout;
    s.seed = c->seed;
    *shape = s;
    return ZERO_OK;
}

const char *zero_config_model(const zero_config *c)
{
    zero_shape preset = {0};
    const bool is_found = zero_model_preset(c->model, &preset) == ZERO_OK;
    const char *of_preset = zero_architecture_name(preset.kind),
               *own = zero_architecture_name(c->base.kind);
    return is_found && c->base.kind && !zero_same_text(own, of_preset) ? own : c->model;
}
