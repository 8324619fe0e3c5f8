/* run_host.h - optimizer states in the host's memory beside a device (offload_host).
 *
 *     device   gradient ------FETCH_GRAD-----.            .--STORE_PARAM--> parameters
 *     host                                   v            |
 *                                  host_grad -> UPDATE -> host_param (fp32: masters)
 *
 * The CPU executes NORM and UPDATE in the host's memory, and has finished when they return. NORM waits
 * for the gradient of its group; nothing else waits. UPDATE overwrites what the last step's STORE_PARAM
 * copied: that copy has ended, because the gradients that NORM waited for were computed after it.
 * Visitors that write states wait for it (visit.h). */
#pragma once

#include "engine/runner.h"

/* Waits until the host may write the masters of group g, and their rounded copy. */
void zero_host_await(zero_runner *r, int g);
/* Begins to copy the new parameters of group g to the device. Calls and copies made there later see
 * them. */
void zero_host_store(zero_runner *r, int g);
/* The same, made of the masters. */
void zero_host_round(zero_runner *r, int g);
