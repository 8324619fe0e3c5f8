/* run_host.h - optimizer states in the host's memory beside a device (offload_host).
 *
 *     device   gradient ------FETCH_GRAD-----.            .--STORE_PARAM--> parameters
 *     host                                   v            |
 *                                  host_grad -> UPDATE -> host_param (fp32: masters)
 *
 * The CPU makes NORM and UPDATE on the host's memory, where their results are when they return. NORM
 * waits for the gradient of its group, and nothing else waits. UPDATE writes over what the last step's
 * STORE_PARAM copied: that has ended, because the gradients that NORM waited for were computed after
 * it. Others who write states wait for it (visit.h). */
#pragma once

#include "engine/runner.h"

/* Waits until the host may write the masters of group g, and their rounded copy. */
void zero_host_await(zero_runner *r, int g);
/* Begins to copy the new parameters of group g to the device. What is computed there from now on, and
 * what is copied from there, sees them. */
void zero_host_store(zero_runner *r, int g);
/* The same, made of the masters. */
void zero_host_round(zero_runner *r, int g);
