/* schedule_device.h - spaces, and what the host keeps beside a device.
 *
 * With `device` the backend computes in memory that the host cannot touch. The rank's own
 * buffers (ZERO_SPACE_OWN) lie there, and nothing of the model lies in the node's window.
 * The host has the other side of each copy, which an instruction names as `host`:
 *
 *     LOAD         a slot for tokens                             -> tokens
 *     the head     row losses of all microbatches, until LOSS    <- row_loss
 *     GENERATE     logits of the last position                   <- logits, the first
 *     OVERFLOW     squares of all groups                         <- in, which NORM writes
 *     FETCH_GRAD   the gradient that NORM and UPDATE read        <- in
 *     STORE_PARAM  masters, rounded, as UPDATE writes them       -> buffer
 *
 * The head's instruction is BACKWARD in a step and FORWARD in an evaluation. Microbatch m's
 * row begins at m times the bytes of row_loss. All microbatches write the same row_loss, so
 * a copy of it has to end before the next head begins. Collectives stage in the window
 * where the algorithm works there, else in the host's memory; with device_messages in the
 * device's.
 *
 * The last two are there with `offload`, ZeRO-Offload's placement: the CPU makes NORM and
 * UPDATE (on_host) beside the device. Masters and moments lie in the host's memory with
 * `offload_host`, else blocks of them pass through its slots from and to a file
 * (offload.h). A gradient is fetched as soon as it is final, during the backward pass;
 * parameters are stored while the next group is updated. UPDATE and STORE_PARAM are a
 * stream that may run ahead, as `offload` says: with LAZY beside the next forward pass.
 * Only the elements whose states this rank holds are copied. Then OVERFLOW has no squares
 * to fetch: NORM has waited for the gradient of its group. Sources: Ren et al.,
 * ZeRO-Offload, arXiv:2101.06840, sections 3 and 4; Rajbhandari et al., ZeRO-Infinity,
 * arXiv:2104.07857, section 5.
 *
 * Without a device none of these buffers exist. */
#pragma once

#include "sharding/schedule.h"

#define ZERO_HOST_TOKENS 2 /* slots: one is filled while the other is copied */
#define ZERO_HOST_CHUNKS 2

/* The space of a buffer that the rank does not share, by its class. */
zero_space zero_schedule_space(const zero_schedule *s, zero_class cls);

/* Adds the buffers that live for the whole run: slots for tokens, chunks of states of 3
 * times ZERO_OFFLOAD_BLOCK floats each, and unless forward_only squares. All groups are
 * held. */
void zero_device_hold(zero_schedule *s);

/* The bytes that a program copies between the host and the device, beside those of
 * collectives: whole buffers, as the list above pairs them, or of the last two their
 * ranges. */
typedef struct {
    size_t tokens;                      /* to the device */
    size_t row_losses, squares, logits; /* from it */
    size_t gradients;                   /* with offload: from it */
    size_t parameters;                  /* with offload: to it, if there is an update */
} zero_copied_bytes;
zero_copied_bytes zero_schedule_copies(const zero_schedule *s, zero_program_kind program);

/* The byte of the word in `squares` and `squares_host` in which UPDATE notes changed
 * parameters: OVERFLOW fetches both. */
size_t zero_schedule_changed_at(const zero_schedule *s);
