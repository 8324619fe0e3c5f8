/* device_steps.h - the steps that a device adds to an algorithm's: copies between it and
 * the mirrors, or, if neighbours reach its memory, what signals wait for. */
#pragma once

#include "lists/step.h"

/* Adds FETCH and STORE steps to a list that its algorithm has written for the mirrors.
 * `stride`: elements between pieces of the device's arrays. A failure is kept in
 * steps->failed. */
void zero_steps_add_copies(zero_steps *steps, int64_t stride);

/* Begins the list of a direct collective, before its algorithm writes it. */
void zero_steps_mark(zero_steps *steps);
/* Ends the list of a direct collective. A signal tells neighbours that this rank has read
 * and written all that stands before it; so each signal waits until the device has done
 * that. */
void zero_steps_signal_late(zero_steps *steps);
/* The same where messages reach the device. They wait until it has done all that it was
 * given before the list, as calls made earlier write what is sent and may still read where
 * a message arrives. Staging is free once the sums that stand before the receive have been
 * made. */
void zero_steps_message_late(zero_steps *steps);
