#include "cli/deepspeed_training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"

#define OPTIMIZER(name) "optimizer.params." name
#define SCHEDULER(name) "scheduler.params." name

typedef zero_deepspeed_input input;

/* ---- optimizer ---- */

static zero_status put_real(const input *in, const char *option, double value)
{
    return zero_deepspeed_put(in, option, json_real(value));
}

/* A number of the optimizer; "auto" leaves zero's default. Sets *value if it is a number. */
static zero_status take_real(const input *in, const char *key, const char *option,
                             double standard, double *value)
{
    double number = standard;
    ZERO_TRY(zero_deepspeed_real(in, key, &number));
    if (zero_deepspeed_is_auto(in, key)) return ZERO_OK;
    if (value) *value = number;
    return put_real(in, option, number);
}

static zero_status take_betas(const input *in)
{
    const char *key = OPTIMIZER("betas");
    const json_t *list = zero_deepspeed_value(in, key);
    double betas[2] = {0.9, 0.999};
    if (zero_deepspeed_is_auto(in, key)) return ZERO_OK;
    if (list && (!json_is_array(list) || json_array_size(list) != 2))
        return zero_deepspeed_type_error(in, key, "a list of two numbers");
    for (size_t i = 0; list && i < 2; i++) {
        const json_t *beta = json_array_get(list, i);
        if (!json_is_number(beta))
            return zero_deepspeed_type_error(in, key, "a list of two numbers");
        betas[i] = json_number_value(beta);
    }
    ZERO_TRY(put_real(in, "beta1", betas[0]));
    return put_real(in, "beta2", betas[1]);
}

static zero_status take_decay(const input *in)
{
    const char *key = OPTIMIZER("weight_decay");
    bool decoupled = true, torch = false;
    double decay = 0.0;
    const char *type = "";
    ZERO_TRY(zero_deepspeed_text(in, "optimizer.type", &type));
    ZERO_TRY(zero_deepspeed_flag(in, OPTIMIZER("adam_w_mode"), &decoupled));
    ZERO_TRY(zero_deepspeed_flag(in, OPTIMIZER("torch_adam"), &torch));
    decoupled = decoupled || strcasecmp(type, "adamw") == 0;
    ZERO_TRY(take_real(in, key, "weight-decay", torch && decoupled ? 0.01 : 0.0, &decay));
    if (decay == 0.0) return ZERO_OK;
    if (!decoupled)
        return zero_deepspeed_refuse(in, OPTIMIZER("adam_w_mode"),
                                     "zero decays weights apart from the gradient, as in "
                                     "AdamW");
    return zero_deepspeed_note(
        in, key,
        "zero decays matrices and embeddings, as trainers of GPT-2 "
        "do; DeepSpeed decays what the script lists, biases, too, if "
        "it lists them");
}

/* Sets *lr if the file decides it. */
static zero_status take_optimizer(const input *in, double *lr)
{
    const char *type = NULL;
    ZERO_TRY(zero_deepspeed_text(in, "optimizer.type", &type));
    if (!type)
        return zero_deepspeed_note(in, "optimizer",
                                   "no type is given: zero's AdamW has its own defaults; "
                                   "give --lr and the others as the script has them");
    if (strcasecmp(type, "adam") != 0 && strcasecmp(type, "adamw") != 0)
        return zero_deepspeed_refuse(in, "optimizer.type", "zero has AdamW alone");
    ZERO_TRY(take_real(in, OPTIMIZER("lr"), "lr", 1e-3, lr));
    ZERO_TRY(take_betas(in));
    ZERO_TRY(take_real(in, OPTIMIZER("eps"), "eps", 1e-8, NULL));
    return take_decay(in);
}

/* ---- scheduler ---- */

static zero_status no_scheduler(const input *in, double lr)
{
    if (zero_deepspeed_is_auto(in, "scheduler.type") || isnan(lr))
        return zero_deepspeed_note(
            in, "scheduler",
            "not given: zero warms up and follows a cosine; see --lr, "
            "--lr-min and --warmup");
    ZERO_TRY(zero_deepspeed_put(in, "lr-decay", json_string("none")));
    ZERO_TRY(zero_deepspeed_put(in, "warmup", json_integer(0)));
    return zero_deepspeed_note(in, "scheduler",
                               "not given: the learning rate is constant, as in DeepSpeed "
                               "if the script has no scheduler either");
}

/* DeepSpeed's default is "log", a curve that zero does not have. */
static zero_status take_warmup(const input *in)
{
    const char *type = "log", *key = SCHEDULER("warmup_type");
    int64_t steps = 1000;
    ZERO_TRY(zero_deepspeed_text(in, key, &type));
    ZERO_TRY(zero_deepspeed_whole(in, SCHEDULER("warmup_num_steps"), 0, &steps));
    if (zero_deepspeed_is_auto(in, SCHEDULER("warmup_num_steps")))
        return zero_deepspeed_note(in, "scheduler",
                                   "its warm-up is left to --warmup; zero's is linear, and "
                                   "DeepSpeed's is logarithmic unless warmup_type is "
                                   "\"linear\"");
    if (strcmp(type, "linear") != 0)
        return zero_deepspeed_refuse(in, key,
                                     "zero's warm-up is linear, and DeepSpeed's is "
                                     "logarithmic unless this is \"linear\"");
    ZERO_TRY(zero_deepspeed_put(in, "warmup", json_integer(steps)));
    return zero_deepspeed_note(in, "scheduler",
                               "zero's rates are two steps ahead in the warm-up: "
                               "DeepSpeed's first two updates have rate 0");
}

/* WarmupLR and WarmupDecayLR have a peak of their own; `peak` is DeepSpeed's default. */
static zero_status take_peak(const input *in, double peak)
{
    double least = 0.0;
    ZERO_TRY(zero_deepspeed_real(in, SCHEDULER("warmup_min_lr"), &least));
    ZERO_TRY(zero_deepspeed_real(in, SCHEDULER("warmup_max_lr"), &peak));
    if (least != 0.0)
        ZERO_TRY(zero_deepspeed_refuse(in, SCHEDULER("warmup_min_lr"),
                                       "zero's warm-up begins near 0"));
    ZERO_TRY(take_warmup(in));
    if (isnan(peak) || zero_deepspeed_is_auto(in, SCHEDULER("warmup_max_lr")))
        return ZERO_OK;
    return put_real(in, "lr", peak);
}

static zero_status take_constant(const input *in, double lr)
{
    ZERO_TRY(take_peak(in, lr));
    return zero_deepspeed_put(in, "lr-decay", json_string("none"));
}

static zero_status take_total(const input *in)
{
    int64_t steps = 0;
    ZERO_TRY(zero_deepspeed_whole(in, SCHEDULER("total_num_steps"), 1, &steps));
    return steps > 0 ? zero_deepspeed_put(in, "steps", json_integer(steps)) : ZERO_OK;
}

static zero_status take_line(const input *in, double lr)
{
    (void)lr; /* the scheduler's peak replaces the optimizer's rate */
    ZERO_TRY(take_total(in));
    ZERO_TRY(take_peak(in, 0.001));
    ZERO_TRY(put_real(in, "lr-min", 0.0));
    ZERO_TRY(zero_deepspeed_note(in, "scheduler",
                                 "zero's line reaches 0 in the last step, DeepSpeed's "
                                 "after it"));
    return zero_deepspeed_put(in, "lr-decay", json_string("linear"));
}

/* A product of two decimal numbers without its last binary digits: 3e-4 x 0.1 is 3e-05. */
static double decimal(double product)
{
    char text[32];
    snprintf(text, sizeof text, "%.12g", product);
    return strtod(text, NULL);
}

static zero_status take_cosine(const input *in, double lr)
{
    double ratio = 0.0001;
    ZERO_TRY(take_total(in));
    ZERO_TRY(zero_deepspeed_real(in, SCHEDULER("cos_min_ratio"), &ratio));
    if (ratio < 0.0 || ratio > 1.0)
        return zero_deepspeed_type_error(in, SCHEDULER("cos_min_ratio"),
                                         "a number from 0 to 1");
    ZERO_TRY(take_warmup(in));
    return isnan(lr) ? ZERO_OK : put_real(in, "lr-min", decimal(lr * ratio));
}

static const struct {
    const char *type;
    zero_status (*take)(const input *in, double lr);
} schedulers[] = {{"WarmupLR", take_constant},
                  {"WarmupDecayLR", take_line},
                  {"WarmupCosineLR", take_cosine}};

static zero_status take_scheduler(const input *in, double lr)
{
    const char *type = NULL;
    ZERO_TRY(zero_deepspeed_text(in, "scheduler.type", &type));
    if (!type) return no_scheduler(in, lr);
    for (size_t i = 0; i < sizeof schedulers / sizeof schedulers[0]; i++)
        if (strcmp(type, schedulers[i].type) == 0) return schedulers[i].take(in, lr);
    return zero_deepspeed_refuse(in, "scheduler.type",
                                 "zero has WarmupLR, WarmupDecayLR and "
                                 "WarmupCosineLR alone");
}

/* ---- clipping ---- */

static zero_status take_clipping(const input *in)
{
    const char *key = "gradient_clipping";
    double clip = 0.0;
    ZERO_TRY(zero_deepspeed_real(in, key, &clip));
    if (zero_deepspeed_is_auto(in, key)) return ZERO_OK;
    ZERO_TRY(put_real(in, "clip", clip));
    if (zero_deepspeed_value(in, key)) return ZERO_OK;
    return zero_deepspeed_note(in, key,
                               "not given: clip is 0, which is DeepSpeed's default");
}

zero_status zero_deepspeed_take_training(const input *in)
{
    double lr = NAN;
    ZERO_TRY(take_clipping(in));
    ZERO_TRY(take_optimizer(in, &lr));
    return take_scheduler(in, lr);
}
