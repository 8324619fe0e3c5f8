/* study.json, as report/sweep_json.c writes it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "io/json_input.h"
#include "pages/fields.h"
#include "pages/record.h"
#include "pages/study_parts.h"
#include "report/sweep_file.h"

static zero_status read_measurement(const char *where, const json_t *object,
                                    zero_study_point *p)
{
    const json_t *time, *nodes;
    ZERO_TRY(zero_json_object(where, object, "step_seconds", &time));
    ZERO_TRY(zero_field_real_or_null(where, time, "median", 0.0, &p->step));
    ZERO_TRY(zero_field_real_or_null(where, time, "lower_quartile", 0.0, &p->lower));
    ZERO_TRY(zero_field_real_or_null(where, time, "upper_quartile", 0.0, &p->upper));
    ZERO_TRY(zero_field_real_or_null(where, object, "tokens_per_second", 0.0,
                                     &p->tokens_per_second));
    ZERO_TRY(zero_field_real_or_null(where, object, "efficiency", 0.0, &p->efficiency));
    ZERO_TRY(zero_field_real_or_null(where, object, "exposed_share", 0.0, &p->exposed));
    ZERO_TRY(zero_json_object(where, object, "nodes", &nodes));
    return zero_json_flag(where, nodes, "fake", &p->fake_nodes);
}

/* A model of time, or null. */
static zero_status read_model(const char *where, const json_t *object, const char *key,
                              double *seconds)
{
    const json_t *model;
    if (json_is_null(json_object_get(object, key))) return ZERO_OK;
    ZERO_TRY(zero_json_object(where, object, key, &model));
    return zero_field_real_or_null(where, model, "step_seconds", 0.0, seconds);
}

static zero_status read_state(const char *where, const json_t *object, bool *measured)
{
    const char *state;
    ZERO_TRY(zero_json_text(where, object, "state", &state));
    for (int s = ZERO_SWEEP_MISSING; s <= ZERO_SWEEP_MEASURED; s++)
        if (strcmp(state, zero_sweep_state_name((zero_sweep_state)s)) == 0) {
            *measured = s == ZERO_SWEEP_MEASURED;
            return ZERO_OK;
        }
    return zero_fail(ZERO_ERR_FORMAT,
                     "%.500s: \"state\": expected measured, missing or failed, found %.60s",
                     where, state);
}

static zero_status read_point(zero_study_rows *rows, const json_t *object, size_t i)
{
    char where[600];
    int64_t stage, ranks;
    zero_study_row *row;
    snprintf(where, sizeof where, "%.500s, point %zu", rows->path, i + 1);
    ZERO_TRY(zero_json_whole(where, object, "stage", 0, 3, &stage));
    ZERO_TRY(zero_json_whole(where, object, "ranks", 1, ZERO_RECORD_RANKS, &ranks));
    ZERO_TRY(zero_study_add(rows, &row));
    row->stage = (int)stage;
    row->point.ranks = (int)ranks;
    ZERO_TRY(read_state(where, object, &row->point.measured));
    if (row->point.measured) ZERO_TRY(read_measurement(where, object, &row->point));
    ZERO_TRY(read_model(where, object, "planned", &row->point.planned));
    return read_model(where, object, "simulated", &row->point.simulated);
}

static zero_status read_study(zero_study_rows *rows, const json_t *study)
{
    const json_t *points;
    const char *scaling;
    int64_t format;
    ZERO_TRY(zero_json_whole(rows->path, study, "study", ZERO_SWEEP_FORMAT,
                             ZERO_SWEEP_FORMAT, &format));
    ZERO_TRY(zero_json_text(rows->path, study, "scaling", &scaling));
    rows->is_strong = strcmp(scaling, "strong") == 0;
    if (!rows->is_strong && strcmp(scaling, "weak") != 0)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%.500s: \"scaling\": expected weak or strong, found %.60s",
                         rows->path, scaling);
    ZERO_TRY(zero_json_array(rows->path, study, "points", &points));
    for (size_t i = 0; i < json_array_size(points); i++)
        ZERO_TRY(read_point(rows, json_array_get(points, i), i));
    return ZERO_OK;
}

zero_status zero_study_read_json(zero_study_rows *rows, const void *text, size_t len)
{
    json_t *study;
    ZERO_TRY(zero_json_parse(rows->path, text, len, &study));
    zero_status st = read_study(rows, study);
    json_decref(study);
    return st;
}
