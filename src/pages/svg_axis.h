/* svg_axis.h - from values to places of a picture, with round numbers along the way.
 *
 * An axis covers [least, most] of its data, from place `from` to place `to` in units of the
 * picture; it may run backwards, as upright axes do. Ticks are 1, 2 or 5 times a power of
 * ten. Nothing here allocates. */
#pragma once

#include "io/json_tree.h"

typedef enum {
    ZERO_AXIS_AROUND, /* a little more than the data, from tick to tick */
    ZERO_AXIS_ZERO,   /* from zero to a tick above the data */
    ZERO_AXIS_EXACT,  /* the data and no more: time, steps */
    ZERO_AXIS_LOG,    /* powers of ten; data above zero */
} zero_axis_kind;

typedef struct {
    zero_axis_kind kind;
    double least, most; /* values at both ends; least < most, finite */
    double from, to;    /* their places */
    double step;        /* between ticks; LOG: 1 */
} zero_axis;

#define ZERO_AXIS_TICKS 16

/* The axis of data between least and most, at most `ticks` <= ZERO_AXIS_TICKS - 2 steps
 * apart. Any numbers will do: equal ones get room around them, and those that are not
 * finite become 0 to 1. LOG with data that are not above zero becomes AROUND. */
zero_axis zero_axis_make(zero_axis_kind kind, double least, double most, int ticks,
                         double from, double to);
double zero_axis_at(const zero_axis *axis, double value);
/* Values of the ticks, ascending; returns their number. */
int zero_axis_ticks(const zero_axis *axis, double tick[ZERO_AXIS_TICKS]);
/* "0.5", "2.5k", "1e-7": as many digits as ticks this far apart need. */
#define ZERO_AXIS_LABEL 32
void zero_axis_label(const zero_axis *axis, double value, char text[ZERO_AXIS_LABEL]);
/* {"ticks": [{"at": place, "text"}]}, for the axes of picture.form. */
json_t *zero_axis_facts(const zero_axis *axis);
/* True if values of this range are read better on powers of ten. */
bool zero_axis_prefers_log(double least, double most);

/* The points of n, at places x->at(at[i]), that a line needs to look as if it had all: of
 * those in one unit of the picture the first, the least, the most and the last, and one
 * that is not finite, which ends the line. Their indices ascend in kept[n]; returns their
 * number. `at` ascends. */
int64_t zero_axis_thin(const zero_axis *x, const double *at, const double *value, int64_t n,
                       int64_t *kept);
/* The line through those points: {"points": [{"x", "y", "joined": to the one before}],
 * "lonely": those without a neighbour}. It has a gap where a value is not finite. kept[n]
 * is room for the work. */
json_t *zero_axis_curve(const zero_axis *x, const zero_axis *y, const double *at,
                        const double *value, int64_t n, int64_t *kept);
