/* lesson_plans.h - plans and runs of a lesson: those that `zero plan` and `zero train`
 * make from the same words. */
#pragma once

#include "course/course.h"

extern const zero_course_planner zero_lesson_planner;
