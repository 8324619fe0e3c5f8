/* info_products.h - how products of each type are computed here, for zero info. */
#pragma once

#include <jansson.h>

#include "zero/status.h"

/* Sets "fp32_products" and "bf16_products", the instruction sets of the library's own kernels, or null;
 * and "bf16_over_fp16": how many times as fast as a product of fp16 numbers, which CPUs widen and
 * multiply in fp32, one of bf16 numbers is, measured in about 20 ms; null without kernels for it.
 * ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_info_put_products(json_t *info);
