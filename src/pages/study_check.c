/* What is expected of study.csv and study.json from outside. */

#include "base/fail.h"
#include "pages/expect.h"
#include "pages/run.h"
#include "pages/study.h"

static const zero_expected study_rows[] = {
    {"study", ZERO_EXPECT_WHOLE, ZERO_STUDY_FORMAT, ZERO_STUDY_FORMAT, NULL},
    {"scaling", ZERO_EXPECT_TEXT, 0, INT64_MAX, NULL},
    {"points", ZERO_EXPECT_LIST, 0, 0, NULL},
};
static const zero_expected point_rows[] = {
    {"stage", ZERO_EXPECT_WHOLE, 0, 3, NULL},
    {"ranks", ZERO_EXPECT_WHOLE, 1, ZERO_RUN_RANKS, NULL},
    {"state", ZERO_EXPECT_TEXT, 0, INT64_MAX, NULL},
};
static const zero_expected measured_rows[] = {
    {"step_seconds/median,lower_quartile,upper_quartile", ZERO_EXPECT_NUMBER, 0, 0, NULL},
    {"tokens_per_second,efficiency,exposed_share", ZERO_EXPECT_NUMBER, 0, 0, NULL},
    {"nodes/fake", ZERO_EXPECT_FLAG, 0, 0, NULL},
    {"cores_per_rank?", ZERO_EXPECT_NUMBER, 0, 0, NULL},
    {"run?/model?/parameters?", ZERO_EXPECT_NUMBER, 0, 0, NULL},
};
static const zero_expected model_rows[][1] = {
    {{"planned/step_seconds", ZERO_EXPECT_NUMBER, 0, 0, NULL}},
    {{"simulated/step_seconds", ZERO_EXPECT_NUMBER, 0, 0, NULL}},
};

zero_status zero_study_check(const char *path, const json_t *study, const char *row)
{
    ZERO_TRY(zero_expect(path, study, study_rows, ZERO_COUNT(study_rows)));
    const char *scaling = json_string_value(json_object_get(study, "scaling"));
    json_t *points = json_object_get(study, "points"), *point;
    size_t i, first = row[0] == 'r' ? 2 : 1; /* row 1 of CSV has the names */
    if (strcmp(scaling, "weak") != 0 && strcmp(scaling, "strong") != 0)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%.500s: \"scaling\": expected weak or strong, found %.60s", path,
                         scaling);
    if (json_array_size(points) == 0 || json_array_size(points) > ZERO_STUDY_POINTS)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%.500s: expected a study of at most %d points, found %zu", path,
                         ZERO_STUDY_POINTS, json_array_size(points));
    json_array_foreach(points, i, point)
    {
        char where[600];
        snprintf(where, sizeof where, "%.500s, %s %zu", path, row, i + first);
        static const char *const models[] = {"planned", "simulated"};
        ZERO_TRY(zero_expect(where, point, point_rows, ZERO_COUNT(point_rows)));
        if (zero_point_is(point, "measured"))
            ZERO_TRY(zero_expect(where, point, measured_rows, ZERO_COUNT(measured_rows)));
        else if (!zero_point_is(point, "missing") && !zero_point_is(point, "failed"))
            return zero_fail(
                ZERO_ERR_FORMAT,
                "%.500s: \"state\": expected measured, missing or failed, found %.60s",
                where, json_string_value(json_object_get(point, "state")));
        for (int k = 0; k < 2; k++)
            if (!json_is_null(json_object_get(point, models[k])))
                ZERO_TRY(zero_expect(where, point, model_rows[k], 1));
    }
    return ZERO_OK;
}
