/* host_copies.h - updates by the host's CPU beside a device (offload).
 *
 *     device   gradient ------FETCH_GRAD-----.            .--STORE_PARAM--> parameters
 *     host                                   v            |
 *                                  host_grad -> UPDATE -> host_param (fp32: masters)
 *                                                 ^|
 *     file, without offload_host            FETCH ||  STORE: masters (fp32: none) and
 *                                                     moments
 *
 * The CPU executes NORM and UPDATE in the host's memory, and has finished when they return.
 * NORM waits for the gradient of its group. UPDATE waits for it, too, since with `backward`
 * it stands before NORM. It also waits for the last STORE_PARAM, whose memory it
 * overwrites: with `delayed` that copy may be on its way when the next step begins. The
 * stream does not begin an UPDATE that would wait (run_offload.c). Visitors that write
 * states wait for the copy of parameters (visit.h). */
#pragma once

#include "state/runner.h"

/* Waits until the host may write the masters of group g, and their rounded copy. */
void zero_host_await(zero_runner *r, int g);
/* True if UPDATE of group g needs to wait for no copy; and the wait. */
bool zero_host_may_update(zero_runner *r, int g);
void zero_host_await_update(zero_runner *r, int g);
/* Begins to copy the new parameters of group g to the device, once the calls before the
 * place have been executed; 0: all calls. Calls and copies made later see them. */
void zero_host_store(zero_runner *r, int g, zero_call_place place);
