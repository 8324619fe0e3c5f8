/* claim.h - a name that at most one process of this machine has.
 *
 * It ends with the descriptor, so with the process, however that ends; nothing stays behind. On Linux it
 * is the address of a socket that has no file; containers with a network of their own do not see each
 * other's. */
#pragma once

#define ZERO_CLAIM_TAKEN  (-1) /* another has it */
#define ZERO_CLAIM_CANNOT (-2) /* this system has no such names */

/* A descriptor, for close(), or one of the two. */
int zero_claim_take(const char *name);
