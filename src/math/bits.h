/* bits.h - which bits products have. */
#pragma once

#include <stdbool.h>

/* Of the cpu backend (README.md).
 *
 *     auto      fp32: every CPU's bits are equal; bf16: those of the fastest kernels
 *     portable  bf16, too: factors are widened, and multiplied as in fp32
 *     fastest   also fp32: BLAS where it is faster than our kernels */
typedef enum { ZERO_BITS_AUTO, ZERO_BITS_PORTABLE, ZERO_BITS_FASTEST, ZERO_BITS } zero_bits;

/* "auto", "portable" or "fastest"; false if it is none of them. */
bool zero_bits_find(const char *name, zero_bits *bits);
