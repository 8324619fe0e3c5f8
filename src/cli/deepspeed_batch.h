/* deepspeed_batch.h - the batches of a DeepSpeed configuration.
 *
 *     train_batch_size = train_micro_batch_size_per_gpu * gradient_accumulation_steps * ranks
 *
 * DeepSpeed works out what is missing; zero does so from the global batch and the micro batch. */
#pragma once

#include "cli/deepspeed_input.h"

ZERO_NODISCARD zero_status zero_deepspeed_take_batches(const zero_deepspeed_input *in);
