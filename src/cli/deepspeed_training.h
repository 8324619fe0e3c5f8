/* deepspeed_training.h - clipping, optimizer and scheduler of a DeepSpeed configuration.
 *
 *   Adam, AdamW      DeepSpeed decays weights apart from the gradient in both, unless
 *                    adam_w_mode is false; weight_decay is 0 if it is not given, but 0.01 with
 *                    torch_adam
 *   no scheduler     the learning rate is constant
 *   WarmupLR         linear warm-up, then constant
 *   WarmupDecayLR    linear warm-up, then a line down to 0
 *   WarmupCosineLR   linear warm-up, then half a cosine down to cos_min_ratio
 *
 * DeepSpeed's rates lag zero's by two steps in the warm-up: its first two updates have rate 0. */
#pragma once

#include "cli/deepspeed_input.h"

ZERO_NODISCARD zero_status zero_deepspeed_take_training(const zero_deepspeed_input *in);
