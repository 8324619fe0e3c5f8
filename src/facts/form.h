/* form.h - what is printed of a tree of facts, as text with holes.
 *
 * A form is a file of sections. A line "=== NAME" begins one. Its text is printed as it
 * stands, but for
 *
 *   {x}  {x:unit}  {x:unit>20}  {x:unit<20}   an expression (facts.h), its unit, and in how
 *                                             many columns (an expression) it is set to the
 *                                             right or left;
 *                                             ":=y": the unit that y says
 *   {if x}...{elif y}...{else}...{end}
 *   {each path}...{end}       for all items of an array or members of an object; names
 *                             inside are those of the item, then those outside
 *   {with path}...{end}       names inside are those of the object, then those outside
 *   {pad <N}...{end}          with > or < as above
 *   {trim}...{end}            blanks at the ends of lines are left out
 *   {wrap N}...{end}          its lines are broken between words before column 80, and go
 *                             on after N blanks; {wrap N W}: before they have more than W
 *   {let NAME = x}            the value has a name from here to the end of what is around
 *   {show NAME}               another section of the file, in which such names are known
 *   {{                        a brace
 *   \ at the end of a line    the line goes on: its end, and the blanks that begin the next
 *                             line, are left out
 *
 * A line that has nothing but one of the words above prints no line. */
#pragma once

#include "facts/facts.h"

/* How texts of the tree are written, which may come from a stranger's file: NULL: as they
 * are. */
typedef void zero_put_text(const char *text, FILE *out);

/* Prints a section of the forms. ZERO_ERR_FORMAT names the section, its line, and what is
 * wrong. */
zero_status zero_form_print(const char *forms, const char *section, const json_t *tree,
                            zero_put_text *put, FILE *out);

/* The same in memory, for free(), whatever the status. */
zero_status zero_form_text(const char *forms, const char *section, const json_t *tree,
                           zero_put_text *put, char **text);

/* The same for a text without sections; `name` is for messages. */
zero_status zero_form_print_text(const char *name, const char *text,
                                 const zero_scope *scope, zero_put_text *put, FILE *out);
