/* page_style.h - page.css as strings. The build writes their C file. */
#pragma once

extern const char *const zero_page_style[]; /* lines; ends with NULL */
