/* machine_texts.h - the files of machines/ as strings. The build writes their C file. */
#pragma once

typedef struct {
    const char *name; /* of the file, without .machine */
    const char *text;
} zero_machine_text;

extern const zero_machine_text zero_machine_texts[]; /* ends with a NULL name */
