/* svg.h - marks of a picture, as parts of an HTML page: inline <svg>, which needs no
 * namespace.
 *
 * Colours are classes of the page's style, never here, so that one file serves light, dark
 * and paper. A picture has a name for those who cannot see it; a mark may have a title,
 * which browsers show when the pointer rests on it. All texts are escaped here. Nothing
 * here allocates. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "pages/svg_axis.h"

/* A picture of this size; `wide`: on a narrow window it scrolls instead of shrinking. */
typedef struct {
    const char *label; /* in one sentence */
    double width, height;
    bool wide;
} zero_svg_frame;

void zero_svg_begin(const zero_svg_frame *frame, FILE *out);
void zero_svg_end(const zero_svg_frame *frame, FILE *out);

typedef enum { ZERO_SVG_LEFT, ZERO_SVG_MIDDLE, ZERO_SVG_RIGHT } zero_svg_anchor;

/* `class` is a word of the style; NULL: none. */
void zero_svg_text(double x, double y, zero_svg_anchor anchor, const char *class,
                   const char *text, FILE *out);
void zero_svg_line(double x1, double y1, double x2, double y2, const char *class,
                   FILE *out);
/* A box; title NULL: none. */
void zero_svg_box(double x, double y, double width, double height, const char *class,
                  const char *title, FILE *out);
void zero_svg_dot(double x, double y, double radius, const char *class, const char *title,
                  FILE *out);

/* An item of a legend: a square of the class; with run >= 0 the line of that run. */
void zero_svg_key(const char *class, int run, const char *name, FILE *out);

/* Lines, ticks and their labels: upright on the left of `x`, level below `y`. */
void zero_svg_left_axis(const zero_axis *y, double left, double right, FILE *out);
void zero_svg_bottom_axis(const zero_axis *x, double bottom, FILE *out);

/* A line through points, thinned; it has a gap where a value is not finite, and a lonely
 * point is a dot. kept[n] is room for the work. */
typedef struct {
    const double *at, *value;
    int64_t n;
    int64_t *kept;
} zero_svg_points;
void zero_svg_curve(const zero_axis *x, const zero_axis *y, const zero_svg_points *points,
                    const char *class, FILE *out);
