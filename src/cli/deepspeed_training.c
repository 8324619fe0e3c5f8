/* Keys that decide a run's numbers: batches, the optimizer, the learning rate. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/deepspeed_input.h"

#define OPTIMIZER(name) "optimizer.params." name
#define SCHEDULER(name) "scheduler.params." name

typedef zero_deepspeed_input input;

/* ---- batches ---- */

/* global / (a b), or 0 if that is not a whole number. */
static int64_t divide(int64_t global, int64_t a, int64_t b)
{
    if (a > global || b > global / a) return 0;
    return global % (a * b) == 0 ? global / (a * b) : 0;
}

/* 0 stands for a number that is not given. With gradient_accumulation_steps and one of the
 * batches the other follows from the number of ranks. */
static void take_batches(input *in)
{
    const int64_t most = INT32_MAX, N = in->n_ranks;
    int64_t global = zero_deepspeed_whole(in, "train_batch_size", 1, 0);
    int64_t micro = zero_deepspeed_whole(in, "train_micro_batch_size_per_gpu", 1, 0);
    const int64_t times = zero_deepspeed_whole(in, "gradient_accumulation_steps", 1, 0);
    const int64_t given[] = {global, micro, times};
    const char *ranks = in->tp > 1 ? "ranks / autotp_size" : "ranks";
    bool contradict = false;
    if (global > 0 && micro > 0 && times > 0) {
        const int64_t found = divide(global, micro, times);
        contradict = found == 0 || (N > 0 && found != N);
        if (N == 0 && !contradict)
            zero_deepspeed_note(in, "gradient_accumulation_steps",
                                "it is %" PRId64 " on %" PRId64
                                " %s; zero works it out from both batches and the ranks",
                                times, found, ranks);
    } else if (global > 0 && (micro > 0 || times <= 1)) {
        contradict = divide(global, micro > 0 ? micro : 1, N > 0 ? N : 1) == 0;
    } else if (global > 0 || (micro > 0 && times > 1)) {
        if (N == 0)
            zero_deepspeed_wrong(in,
                                 "with gradient_accumulation_steps %" PRId64
                                 " and one batch size the other follows from the number of "
                                 "ranks: give --ranks N",
                                 times);
        else if (global > 0)
            contradict = (micro = divide(global, times, N)) == 0;
        else if (micro > most / times / N)
            zero_deepspeed_wrong(in,
                                 "%" PRId64 " x %" PRId64 " x %" PRId64
                                 " sequences are more than %" PRId64 " per step",
                                 micro, times, N, most);
        else
            global = micro * times * N;
    } else if (micro == 0 && times > 1) {
        zero_deepspeed_wrong(
            in,
            "gradient_accumulation_steps %" PRId64
            " needs train_batch_size or train_micro_batch_size_per_gpu, as in DeepSpeed",
            times);
    } else if (micro == 0) {
        zero_deepspeed_note(
            in, "train_batch_size",
            "neither batch is given: zero takes its preset's; give --global-batch");
    }
    if (contradict)
        zero_deepspeed_wrong(
            in,
            "train_batch_size %" PRId64
            " is not micro batches x gradient_accumulation_steps x %s, with %" PRId64
            ", %" PRId64 " and %" PRId64 " (0: not given)",
            given[0], ranks, given[1], given[2], N);
    if (global > 0) zero_deepspeed_put(in, "global-batch", json_integer(global));
    if (micro > 0) zero_deepspeed_put(in, "micro-batch", json_integer(micro));
}

/* ---- optimizer ---- */

/* A number of the optimizer, or NaN with "auto", which leaves zero's default. */
static double take_real(input *in, const char *key, const char *option, double standard)
{
    const double number = zero_deepspeed_real(in, key, standard);
    if (zero_deepspeed_is_auto(in, key)) return NAN;
    zero_deepspeed_put(in, option, json_real(number));
    return number;
}

static void take_decay(input *in, const char *type)
{
    const char *key = OPTIMIZER("weight_decay");
    bool decoupled = zero_deepspeed_flag(in, OPTIMIZER("adam_w_mode"), true);
    const bool torch = zero_deepspeed_flag(in, OPTIMIZER("torch_adam"), false);
    decoupled = decoupled || strcasecmp(type, "adamw") == 0;
    const double decay =
        take_real(in, key, "weight-decay", torch && decoupled ? 0.01 : 0.0);
    if (decay == 0.0 || isnan(decay)) return;
    if (!decoupled)
        zero_deepspeed_refuse(in, OPTIMIZER("adam_w_mode"),
                              "zero decays weights apart from the gradient, as in AdamW");
    else
        zero_deepspeed_note(
            in, key,
            "zero decays matrices and embeddings, as trainers of GPT-2 do; DeepSpeed "
            "decays what the script lists, biases, too, if it lists them");
}

/* The rate, if the file decides it, or NaN. */
static double take_optimizer(input *in)
{
    const char *type = zero_deepspeed_text(in, "optimizer.type", NULL);
    double lr = NAN;
    if (!type) {
        zero_deepspeed_note(in, "optimizer",
                            "no type is given: zero's AdamW has its own defaults; give "
                            "--lr and the others as the script has them");
    } else if (strcasecmp(type, "adam") != 0 && strcasecmp(type, "adamw") != 0) {
        zero_deepspeed_refuse(in, "optimizer.type", "zero has AdamW alone");
    } else {
        lr = take_real(in, OPTIMIZER("lr"), "lr", 1e-3);
        const char *key = OPTIMIZER("betas");
        const json_t *list = zero_deepspeed_value(in, key);
        double betas[2] = {0.9, 0.999};
        if (!zero_deepspeed_is_auto(in, key)) {
            bool is_wrong = list && json_array_size(list) != 2;
            for (size_t i = 0; list && !is_wrong && i < 2; i++) {
                betas[i] = json_number_value(json_array_get(list, i));
                is_wrong = !json_is_number(json_array_get(list, i));
            }
            if (is_wrong) zero_deepspeed_expected(in, key, "a list of two numbers");
            zero_deepspeed_put(in, "beta1", json_real(betas[0]));
            zero_deepspeed_put(in, "beta2", json_real(betas[1]));
        }
        take_real(in, OPTIMIZER("eps"), "eps", 1e-8);
        take_decay(in, type);
    }
    return lr;
}

/* ---- scheduler ---- */

/* DeepSpeed's default is "log", a curve that zero does not have. */
static void take_warmup(input *in)
{
    const char *key = SCHEDULER("warmup_type"), *length = SCHEDULER("warmup_num_steps");
    const char *type = zero_deepspeed_text(in, key, "log");
    const int64_t steps = zero_deepspeed_whole(in, length, 0, 1000);
    if (zero_deepspeed_is_auto(in, length)) {
        zero_deepspeed_note(in, "scheduler",
                            "its warm-up is left to --warmup; zero's is linear, and "
                            "DeepSpeed's is logarithmic unless warmup_type is \"linear\"");
    } else if (strcmp(type, "linear") != 0) {
        zero_deepspeed_refuse(in, key,
                              "zero's warm-up is linear, and DeepSpeed's is logarithmic "
                              "unless this is \"linear\"");
    } else {
        zero_deepspeed_put(in, "warmup", json_integer(steps));
        zero_deepspeed_note(in, "scheduler",
                            "zero's rates are two steps ahead in the warm-up: DeepSpeed's "
                            "first two updates have rate 0");
    }
}

/* WarmupLR and WarmupDecayLR have a peak of their own; `peak` is DeepSpeed's default. */
static void take_peak(input *in, double peak)
{
    const double least = zero_deepspeed_real(in, SCHEDULER("warmup_min_lr"), 0.0);
    peak = zero_deepspeed_real(in, SCHEDULER("warmup_max_lr"), peak);
    if (least != 0.0)
        zero_deepspeed_refuse(in, SCHEDULER("warmup_min_lr"),
                              "zero's warm-up begins near 0");
    take_warmup(in);
    if (!isnan(peak) && !zero_deepspeed_is_auto(in, SCHEDULER("warmup_max_lr")))
        zero_deepspeed_put(in, "lr", json_real(peak));
}

static void take_total(input *in)
{
    const int64_t steps = zero_deepspeed_whole(in, SCHEDULER("total_num_steps"), 1, 0);
    if (steps > 0) zero_deepspeed_put(in, "steps", json_integer(steps));
}

void zero_deepspeed_take_training(input *in)
{
    const char *clip = "gradient_clipping";
    take_batches(in);
    take_real(in, clip, "clip", 0.0);
    if (!zero_deepspeed_value(in, clip) && !zero_deepspeed_is_auto(in, clip))
        zero_deepspeed_note(in, clip, "not given: clip is 0, which is DeepSpeed's default");
    double lr = take_optimizer(in);
    const char *type = zero_deepspeed_text(in, "scheduler.type", NULL);
    if (!type && (zero_deepspeed_is_auto(in, "scheduler.type") || isnan(lr))) {
        zero_deepspeed_note(in, "scheduler",
                            "not given: zero warms up and follows a cosine; see --lr, "
                            "--lr-min and --warmup");
    } else if (!type) {
        zero_deepspeed_put(in, "lr-decay", json_string("none"));
        zero_deepspeed_put(in, "warmup", json_integer(0));
        zero_deepspeed_note(in, "scheduler",
                            "not given: the learning rate is constant, as in DeepSpeed if "
                            "the script has no scheduler either");
    } else if (strcmp(type, "WarmupLR") == 0) {
        take_peak(in, lr);
        zero_deepspeed_put(in, "lr-decay", json_string("none"));
    } else if (strcmp(type, "WarmupDecayLR") == 0) {
        /* A line's peak is the scheduler's, which replaces the optimizer's rate. */
        take_total(in);
        take_peak(in, 0.001);
        zero_deepspeed_put(in, "lr-min", json_real(0.0));
        zero_deepspeed_note(in, "scheduler",
                            "zero's line reaches 0 in the last step, DeepSpeed's after it");
        zero_deepspeed_put(in, "lr-decay", json_string("linear"));
    } else if (strcmp(type, "WarmupCosineLR") == 0) {
        const char *key = SCHEDULER("cos_min_ratio");
        char decimal[32];
        take_total(in);
        const double ratio = zero_deepspeed_real(in, key, 0.0001);
        if (ratio < 0.0 || ratio > 1.0)
            zero_deepspeed_expected(in, key, "a number from 0 to 1");
        take_warmup(in);
        if (!isnan(lr)) {
            /* Without the product's last binary digits: 3e-4 x 0.1 is 3e-05. */
            snprintf(decimal, sizeof decimal, "%.12g", lr * ratio);
            zero_deepspeed_put(in, "lr-min", json_real(strtod(decimal, NULL)));
        }
    } else {
        zero_deepspeed_refuse(in, "scheduler.type",
                              "zero has WarmupLR, WarmupDecayLR and WarmupCosineLR alone");
    }
}
