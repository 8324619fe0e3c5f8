/* device_steps.h - the copies between a device and the mirrors, as steps of a finished list. */
#pragma once

#include "comm/step.h"

/* Adds FETCH and STORE steps to a list that its algorithm has written for the mirrors. `stride`:
 * elements between pieces of the device's arrays. A failure is kept in steps->failed. */
void zero_steps_add_copies(zero_steps *steps, int64_t stride);
