/* claim.h - numbers that at most one process of a machine has, in whatever containers they
 * run.
 *
 * A claim is a lock on a byte of a file that the kernel has once for the whole machine:
 * that of the time namespace, which containers share even if they have networks, processes,
 * users and files of their own. It ends with the descriptor, so with the process, however
 * that ends, and nothing stays behind. */
#pragma once

#include <stdbool.h>

/* A descriptor for claims, to be closed. One process at a time has one that is not settled.
 * -1: this process and others on its machine may not see each other's claims, for it has a
 * time of its own, or the system has no such file. */
int zero_claims_open(void);

/* True if nobody else had this number. It is taken until the descriptor is closed. */
bool zero_claims_take(int claims, int number);

/* No more numbers are taken, and others may take theirs. */
void zero_claims_settle(int claims);
