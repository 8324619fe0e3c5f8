/* world.h - what values of lessons read from their plans. */
#pragma once

#include "lesson/question.h"

const zero_plan_report *zero_world_report(const zero_course_world *w, int plan);
const zero_schedule *zero_world_schedule(const zero_course_world *w, int plan);
const zero_plan_ledger *zero_world_ledger(const zero_course_world *w, int plan);

/* Values that all lessons share, of their first plan. */
double zero_world_psi(const zero_course_world *w);    /* parameters */
double zero_world_padded(const zero_course_world *w); /* with padding */
double zero_world_ranks(const zero_course_world *w);
double zero_world_element(const zero_course_world *w); /* bytes of a parameter */

/* Bytes that this rank sends. */
double zero_world_reduced(const zero_course_world *w, int plan);
double zero_world_gathered(const zero_course_world *w, int plan);

/* The first instruction of the step with this operation and, unless it is -1, this group or unit;
 * its number, from 1; 0 without one. */
int zero_world_find(const zero_course_world *w, int plan, zero_op op, int operand);
int zero_world_count(const zero_course_world *w, int plan, zero_op op);

/* The first event of machine 0 with this operation and operand, in its last step; NULL without one. */
const zero_told *zero_world_told(const zero_course_world *w, int rank, zero_op op,
                                 int operand);
