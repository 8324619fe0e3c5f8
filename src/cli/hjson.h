/* hjson.h - what files of other programs have beyond JSON.
 *
 * DeepSpeed reads its configuration as Hjson, so files have comments (//, #, and the block form) and a
 * comma after the last member. */
#pragma once

#include <stddef.h>

/* Overwrites comments and last commas with blanks. Line ends stay, so that messages name the places
 * of the file. All else is left to the reader of JSON, strings with such characters in them, too. */
void zero_hjson_blank(unsigned char *text, size_t len);
