/* model.h - the model in a checkpoint without its training: to generate from and to export.
 * Nothing here is collective. */
#pragma once

#include "checkpoint/read.h"
#include "state/weights.h"

/* The model that the checkpoint's tensors belong to; the caller destroys it.
 * ZERO_ERR_UNSUPPORTED if the run's was not a zero_shape, ZERO_ERR_FORMAT if its
 * tensors are not those of that shape. */
zero_status zero_checkpoint_describe(const zero_checkpoint *c, zero_model *model);

/* The model's parameters: fp32 masters. Reading whole blocks of ZERO_EXTENT_MAX is
 * cheapest. */
zero_weights zero_checkpoint_weights(zero_checkpoint *c);

/* Writes the model, and the tokenizer if the checkpoint has one, to the new directory `to`,
 * in Hugging Face's format, files of up to `file_bytes` with numbers of `type`
 * (hugging_face.h). */
zero_status zero_checkpoint_export(zero_checkpoint *c, const char *to, int64_t file_bytes,
                                   zero_type type);
