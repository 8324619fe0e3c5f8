/* piece.h - text cut into the pieces within which tokens are joined.
 *
 *     [ ]letters   ASCII letters and bytes from 128 up, so that UTF-8 words stay together
 *     [ ]digits    0-9
 *     [ ]others    neither of these, nor white space
 *     spaces       white space; a last blank belongs to the piece after it, if that is one
 *                  of the above
 *
 * A piece ends after ZERO_PIECE_MAX bytes in any case. */
#pragma once

#include <stddef.h>

enum { ZERO_PIECE_MAX = 64 };

/* The end of the piece that begins at `at` < len. */
size_t zero_piece_end(const unsigned char *text, size_t len, size_t at);
