/* digest.h - one number for a model's whole state.
 *
 * XXH3-128 of every fp32 parameter and both moments in canonical order: tensors by name,
 * of each the parameter, the momentum, the variance, in blocks of 2^16 elements by index. The
 * digest is the hash of the list of block hashes (in their canonical big-endian form), so
 * blocks may be hashed wherever they are. Padding is left out: equal states have equal
 * digests whatever stage, rank count or bucket wrote them. */
#pragma once

#include "nn/model.h"

#define ZERO_DIGEST_BLOCK 65536 /* elements */

/* The state of a group, whole: [n_params] each. */
typedef struct {
    const float *param, *momentum, *variance;
} zero_group_view;

/* Writes 32 hexadecimal digits and a zero. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_digest(const zero_model *model,
                                       const zero_group_view *groups, char hex[33]);
