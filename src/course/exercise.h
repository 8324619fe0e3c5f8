/* exercise.h - the text of an exercise (homework.h), and the calls that it asks for. */
#pragma once

#include "course/judge.h"

/* The numbers that a buffer begins with. */
typedef enum {
    ZERO_FILL_NAN,
    ZERO_FILL_SUM, /* nan, where a sum of digits is expected */
    ZERO_FILL_DIGITS,
    ZERO_FILL_RANDOM,
    ZERO_FILL_SAME,
    ZERO_FILLS
} zero_fill;

typedef struct {
    char name[32], length[200];
    bool is_result;
    zero_fill fill;
} zero_buffer;

/* Rank r's numbers in a sum of digits are 1, 2 or 3 times this to the power r. */
#define ZERO_DIGIT 8.0

/* The sections of a text, by name, and the name of its file. */
json_t *zero_exercise_sections(const char *name, const char *text);
/* A section; "" if it is missing. */
const char *zero_section(const json_t *exercise, const char *name);

/* The next line of a text; false after the last. */
bool zero_next_line(const char **text, char *line, size_t size);

/* Its *n buffers. ZERO_ERR_FORMAT names a wrong line. */
zero_status zero_exercise_buffers(const json_t *exercise,
                                  zero_buffer buffers[ZERO_JUDGE_BUFFERS], int *n);

/* Case `i` of all, on *size ranks: its numbers, new. False after the last. */
bool zero_exercise_case(const json_t *exercise, int i, int *size, json_t **numbers);

/* The tree, new, over which its expressions are: N, the rank, the numbers, `piece`. */
json_t *zero_exercise_scope(int size, const json_t *numbers, int rank);

/* The call of a case, with filled buffers. */
zero_status zero_exercise_call(const json_t *exercise, int64_t seed, int size,
                               const json_t *numbers, zero_judge_call *call);
