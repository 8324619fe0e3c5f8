/* study_parts.h - the two files of a study, as rows. */
#pragma once

#include "pages/study.h"

typedef struct {
    int stage;
    zero_study_point point;
} zero_study_row;

typedef struct {
    const char *path;
    bool is_strong;
    zero_study_row *rows; /* [n], owned */
    int64_t n, room;
} zero_study_rows;

#define ZERO_STUDY_POINTS 4096 /* at most */

/* Adds a row in which all is unknown. */
ZERO_NODISCARD zero_status zero_study_add(zero_study_rows *rows, zero_study_row **row);
/* From the text of study.json and of study.csv. */
ZERO_NODISCARD zero_status zero_study_read_json(zero_study_rows *rows, const void *text,
                                                size_t len);
ZERO_NODISCARD zero_status zero_study_read_csv(zero_study_rows *rows, char *text);
