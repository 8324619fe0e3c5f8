/* checkpoint_model.h - the model in a checkpoint, without its training: to generate with, and to
 * give away. Nothing here is collective. */
#pragma once

#include "checkpoint/read.h"
#include "engine/weights.h"

/* The model that the checkpoint's tensors are those of; the caller destroys it.
 * ZERO_ERR_UNSUPPORTED if the run's was not described as a GPT-2, ZERO_ERR_FORMAT if its
 * tensors are others than that has. */
ZERO_NODISCARD zero_status zero_checkpoint_describe(const zero_checkpoint *c,
                                                    zero_model *model);

/* The values of its parameters: fp32 masters. Cheapest in whole blocks of ZERO_EXTENT_MAX. */
zero_weights zero_checkpoint_weights(zero_checkpoint *c);

/* Writes the model as Hugging Face's library reads it to the new directory `to`
 * (hugging_face.h). */
ZERO_NODISCARD zero_status zero_checkpoint_export(zero_checkpoint *c, const char *to);
