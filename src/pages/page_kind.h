/* page_kind.h - the colours of instructions, the same in all pictures of the page. */
#pragma once

typedef enum {
    ZERO_KIND_FORWARD,
    ZERO_KIND_BACKWARD, /* and what is computed again for it */
    ZERO_KIND_WAIT,     /* for a collective, or for a file or a device */
    ZERO_KIND_ALL,      /* for all ranks: LOSS, OVERFLOW, ... */
    ZERO_KIND_REST,
    ZERO_KINDS
} zero_page_kind;

/* The kind of an instruction by its name, as "BACKWARD block 3, microbatch 0". */
zero_page_kind zero_kind_of(const char *name);
const char *zero_kind_class(zero_page_kind kind); /* "forward": a word of the style */
const char *zero_kind_name(zero_page_kind kind);  /* "waits for data" */

/* "F3" for FORWARD block 3, "B3", "Be" for BACKWARD embedding; empty for the others. */
#define ZERO_KIND_SHORT 16
void zero_kind_shorten(const char *name, char text[ZERO_KIND_SHORT]);
