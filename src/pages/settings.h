/* settings.h - the settings in which runs differ: their options, and what they were made with. */
#pragma once

#include "pages/record.h"

typedef struct {
    char name[64]; /* "--stage", "commit" */
    /* [n_runs]; "open": left open, "unknown": the file has no first line */
    const char **values;
} zero_setting;

typedef struct {
    zero_setting *settings; /* [n], owned */
    int64_t n, room;
    int n_runs;
    char **texts; /* of the values; owned */
    int64_t n_texts, text_room;
} zero_settings;

/* Options that are only names of files of the runs are left out. ZERO_ERR_NOMEM; release it with
 * _destroy. */
ZERO_NODISCARD zero_status zero_settings_compare(zero_settings *settings,
                                                 const zero_record *records, int n_records);
void zero_settings_destroy(zero_settings *settings); /* accepts all zeros */
