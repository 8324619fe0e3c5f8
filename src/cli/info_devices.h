/* info_devices.h - the devices of this build and this machine, for zero info. */
#pragma once

#include <jansson.h>

/* Sets "devices", the names on which this build can run; "cuda", whether this machine has a GPU for
 * it; "cuda_about": versions, or why this machine has no GPU; and "gpus", one object each. */
void zero_info_put_devices(json_t *info);

/* One GPU in a line. */
void zero_info_print_gpu(json_t *gpu);
