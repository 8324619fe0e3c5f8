/* normal.h - texts as a tokenizer's pieces need them.
 *
 *     NFC       characters are composed, as U+0065 U+0301 to U+00E9 (utf8proc); what is
 *               not UTF-8 stays as it is
 *     marks     SentencePiece's U+2581, in which its vocabulary is written, is a blank
 *     blanks    one is put before a text, as zero_blank says
 *
 * Nothing but that decides whether the parts of a text have the tokens of the whole: an
 * ASCII character begins a composition, and is never joined to what is before it. */
#pragma once

#include "data/tokenizer.h"

/* Turns marks into blanks; `out` has room for len bytes, and may be text. Returns the bytes
 * written. */
size_t zero_normal_unmark(const unsigned char *text, size_t len, unsigned char *out);

/* What a tokenizer's normalizer makes of a text (`early`), or its pre-tokenizer. `begins`:
 * no part of the same text is before it. If it changes the text, that is made in `made`,
 * which the caller destroys, and *text borrows from there. */
zero_status zero_normal_form(const zero_tokenizer *tok, bool early, bool begins,
                             zero_bytes *text, zero_bytes *made);
