/* page_html.h - small parts that all sections of the page share: headings, tables, bars. Texts are
 * escaped here. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#define ZERO_HTML_TEXT 64

/* As zero_cell_number, but whole numbers and large ones in groups of three digits: "42 189". */
void zero_html_number(double value, char text[ZERO_HTML_TEXT]);

/* A section with its heading, and a sentence that says how to read it (NULL: none). */
void zero_html_section(const char *title, const char *lead, FILE *out);
void zero_html_section_end(FILE *out);
/* A paragraph in place of a picture: why there is no data, and what would bring it. */
void zero_html_missing(const char *why, FILE *out);

/* A table: the first column is text, the others are numbers. */
void zero_html_table(const char *caption, const char *const heads[], int n, FILE *out);
void zero_html_row(const char *name, FILE *out);
void zero_html_cell(const char *text, FILE *out);
/* A bar of `share` of the column's width, of this class of colours. */
void zero_html_bar(double share, const char *class, FILE *out);
/* "=" or DIFFERS. */
void zero_html_equal(bool is_equal, FILE *out);
void zero_html_row_end(FILE *out);
void zero_html_table_end(FILE *out);
/* A table that is closed at first: the numbers of a picture. */
void zero_html_details(const char *summary, FILE *out);
void zero_html_details_end(FILE *out);

/* Keys of colours: a square of the class and its name. */
void zero_html_legend(FILE *out);
void zero_html_key(const char *class, const char *name, FILE *out);
void zero_html_legend_end(FILE *out);
