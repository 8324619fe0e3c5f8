/* run_memory.h - when buffers are in use: for the address sanitizer, and for the memory
 * ledger.
 *
 * In builds with the sanitizer a buffer is usable from its first instruction to its last,
 * and begins as NaN: reading or writing it at any other time is an error there. Other
 * builds do nothing. Memory that lies once per node is left out, since neighbours write
 * it. */
#pragma once

#include "state/runner.h"

void zero_lifetimes_open(const zero_runner *r,
                         zero_program_kind program); /* before a walk: nothing is in use */
void zero_lifetimes_close(const zero_runner *r);     /* the memory may be given back */
/* Before and after the execution of the instruction r->at: the lives of its operands that
 * begin or end with it. */
void zero_lifetimes_change(const zero_runner *r, const zero_instruction *i, bool ends);

/* The memory ledger of the programs walked so far. Measured is from an instruction's first
 * real use of a buffer to the last; persistent buffers always count. Allocates. Local;
 * ZERO_ERR_NOMEM. */
zero_status zero_runner_memory(const zero_runner *r, zero_peak *planned,
                               zero_peak *measured);
