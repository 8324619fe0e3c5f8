#include "pages/study.h"

#include <stdlib.h>

void zero_study_destroy(zero_study *study)
{
    for (int i = 0; i < study->n_series; i++) free(study->series[i].points);
    free(study->series);
    *study = (zero_study){0};
}
