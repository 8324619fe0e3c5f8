/* emulator.h - how tests steer the emulated device; for C and C++. Each setting has a variable of the
 * environment, too, which is read by the first call of CUDA's (README.md). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Threads of a block, and blocks, begin with the last one from now on: ZERO_EMULATED_THREADS. */
void zero_emulated_threads(bool down);
/* Seed of the order in which queued work is executed, 0: at once: ZERO_EMULATED_ORDER. */
void zero_emulated_order(uint64_t seed);
/* The devices' capability from now on, as 80: ZERO_EMULATED_SM. */
void zero_emulated_capability(int sm);
/* Launches, copies, fills and products that were given to streams until now. With n more the next
 * but n fails: ZERO_EMULATED_FAIL. */
int64_t zero_emulated_works(void);

#ifdef __cplusplus
}
#endif
