/* loss_scale.h - dynamic loss scaling: keeps the gradients of fp16 in its narrow range.
 *
 * The loss is multiplied by the scale before the backward pass, and gradients are divided
 * by it afterwards. The scale is found by trial. It doubles after 1000 clean steps. A step
 * with an overflow is skipped on all ranks (parameters, moments, Adam's count and learning
 * rate stay), and the scale halves. One overflow per growth is forgiven (hysteresis 2):
 *
 *     step          scale    gradients   afterwards
 *     1             65536    overflow    skipped, forgiven
 *     2             65536    overflow    skipped, halved
 *     3             32768    overflow    skipped, halved
 *     4 ... 1003    16384    clean       doubled after the last, the 1000th
 *     1004          32768    clean
 *     1005          32768    overflow    skipped, forgiven
 *     1006          32768    overflow    skipped, halved
 *
 *   - Clean steps count from the last overflow or growth.
 *   - Forgiveness is restored when the scale grows, not before.
 *   - The scale is a power of two from 1 to 2^32, so scaling changes no mantissa. Above
 *     2^32 it
 *     does not grow: gradients that are all zeros would take it to infinity.
 *   - The scale does not fall below 1: an overflow there ends the run.
 *
 * Order within a step: gradients are divided by the scale they were made with, norm and
 * update follow, and only then zero_loss_scale_update() makes the next step's scale.
 * (DeepSpeed updates the scale first, and halves the gradient of each step at which it
 * grows.)
 *
 * bf16 and fp32 have the range they need: their scale is always 1, and an overflow ends the
 * run. The state is plain data, which checkpoints keep. It is equal on all ranks, since
 * ranks agree on every overflow. Source: Micikevicius et al. 2018, arXiv:1710.03740,
 * section 3.2; DeepSpeed's documented defaults. */
#pragma once

#include "base/fail.h"
#include "base/half.h"

#define ZERO_LOSS_SCALE_FIRST  65536.0f
#define ZERO_LOSS_SCALE_LEAST  1.0f
#define ZERO_LOSS_SCALE_MOST   4294967296.0f
#define ZERO_LOSS_SCALE_WINDOW 1000 /* clean steps until the scale doubles */
/* The first overflow since growth that halves the scale. */
#define ZERO_LOSS_SCALE_HYSTERESIS 2

typedef struct {
    zero_type type;
    float scale;         /* of the next step */
    int64_t clean_steps; /* since the last overflow or growth */
    int hysteresis;      /* overflows until the scale halves; at least 1 */
} zero_loss_scale;

zero_loss_scale zero_loss_scale_init(zero_type type);

/* Call it after each step; `overflow`: a gradient of any rank was not finite. Not
 * collective. ZERO_ERR_DIVERGED, with *s unchanged, if no smaller scale can help. */
zero_status zero_loss_scale_update(zero_loss_scale *s, bool overflow);
