/* lessons.h - the lessons, a file each. */
#pragma once

#include "lesson/question.h"

extern const zero_lesson zero_lesson_holds, zero_lesson_step_of_3, zero_lesson_sends,
    zero_lesson_same, zero_lesson_precision, zero_lesson_batches, zero_lesson_prefetch,
    zero_lesson_partitions, zero_lesson_tensor, zero_lesson_offload,
    zero_lesson_checkpoints;
