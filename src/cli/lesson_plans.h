/* lesson_plans.h - plans of a lesson: those that `zero plan` makes from the same words. */
#pragma once

#include "lesson/question.h"

extern const zero_course_planner zero_lesson_planner;
