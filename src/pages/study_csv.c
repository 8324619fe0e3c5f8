/* study.csv, as report/sweep_csv.c writes it: columns are found by their names. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/quantity.h"
#include "pages/record.h"
#include "pages/study_parts.h"
#include "report/sweep.h"

#define COLUMNS 100 /* at most */

typedef struct {
    zero_study_rows *rows;
    char *at; /* the next row */
    int64_t row;
    char *fields[COLUMNS];
    int n_fields, n_names;
    char *names[COLUMNS];
} reader;

/* ---- rows as fields ---- */

/* Takes a field in quotes; doubled quotes stand for one. Returns the byte after it; NULL: it has no
 * end. */
static char *take_quoted(char *at, char **field)
{
    char *to = at;
    *field = at;
    for (; *at; at++) {
        if (*at == '"' && at[1] != '"') break;
        if (*at == '"') at++;
        *to++ = *at;
    }
    if (*at != '"') return NULL;
    *to = '\0';
    return at + 1;
}

static char *take_field(char *at, char **field)
{
    if (*at == '"') return take_quoted(at + 1, field);
    *field = at;
    return at + strcspn(at, ",\n");
}

static zero_status broken(const reader *r, const char *why)
{
    return zero_fail(ZERO_ERR_FORMAT, "%.500s, row %" PRId64 ": %s", r->rows->path, r->row,
                     why);
}

/* The fields of the next row; none at the end. */
static zero_status take_row(reader *r)
{
    r->row++;
    r->n_fields = 0;
    for (bool is_last = *r->at == '\0'; !is_last;) {
        if (r->n_fields == COLUMNS) return broken(r, "more than 100 fields");
        char *end = take_field(r->at, &r->fields[r->n_fields++]);
        if (!end) return broken(r, "a quote has no end");
        if (*end && *end != ',' && *end != '\n')
            return broken(r, "expected a comma or the end of the row after a quote");
        is_last = *end != ',';
        r->at = *end ? end + 1 : end;
        *end = '\0';
    }
    return ZERO_OK;
}

/* ---- fields as numbers ---- */

static zero_status find(const reader *r, const char *name, const char **field)
{
    for (int c = 0; c < r->n_names; c++)
        if (strcmp(r->names[c], name) == 0) {
            *field = r->fields[c];
            return ZERO_OK;
        }
    return zero_fail(ZERO_ERR_FORMAT, "%.500s: the column \"%s\" is missing", r->rows->path,
                     name);
}

static zero_status read_whole(const reader *r, const char *name, int64_t least,
                              int64_t most, int *value)
{
    const char *field = "";
    int64_t number;
    ZERO_TRY(find(r, name, &field));
    if (!zero_quantity_whole(field, &number) || number < least || number > most)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%.500s, row %" PRId64
                         ": %s: expected a whole number from %" PRId64 " to %" PRId64
                         ", found %.60s",
                         r->rows->path, r->row, name, least, most, field);
    *value = (int)number;
    return ZERO_OK;
}

/* An empty field is unknown. */
static zero_status read_real(const reader *r, const char *name, double *value)
{
    const char *field = "";
    ZERO_TRY(find(r, name, &field));
    if (!*field) return ZERO_OK;
    if (zero_quantity_real(field, value) && *value >= 0.0) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "%.500s, row %" PRId64 ": %s: expected a number of at least 0, found "
                     "%.60s",
                     r->rows->path, r->row, name, field);
}

/* One of two words; *is_second tells which. */
static zero_status read_word(const reader *r, const char *name, const char *first,
                             const char *second, bool *is_second)
{
    const char *field = "";
    ZERO_TRY(find(r, name, &field));
    *is_second = strcmp(field, second) == 0;
    if (*is_second || strcmp(field, first) == 0) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "%.500s, row %" PRId64 ": %s: expected %s or %s, found %.60s",
                     r->rows->path, r->row, name, first, second, field);
}

static zero_status read_state(const reader *r, bool *measured)
{
    const char *field = "";
    ZERO_TRY(find(r, "state", &field));
    for (int s = ZERO_SWEEP_MISSING; s <= ZERO_SWEEP_MEASURED; s++)
        if (strcmp(field, zero_sweep_state_name((zero_sweep_state)s)) == 0) {
            *measured = s == ZERO_SWEEP_MEASURED;
            return ZERO_OK;
        }
    return zero_fail(ZERO_ERR_FORMAT,
                     "%.500s, row %" PRId64
                     ": state: expected measured, missing or failed, found %.60s",
                     r->rows->path, r->row, field);
}

/* ---- a point ---- */

static zero_status read_point(const reader *r, zero_study_point *p)
{
    ZERO_TRY(read_whole(r, "ranks", 1, ZERO_RECORD_RANKS, &p->ranks));
    ZERO_TRY(read_real(r, "step_seconds", &p->step));
    ZERO_TRY(read_real(r, "lower_quartile", &p->lower));
    ZERO_TRY(read_real(r, "upper_quartile", &p->upper));
    ZERO_TRY(read_real(r, "tokens_per_second", &p->tokens_per_second));
    ZERO_TRY(read_real(r, "efficiency", &p->efficiency));
    ZERO_TRY(read_real(r, "exposed_share", &p->exposed));
    ZERO_TRY(read_real(r, "planned_seconds", &p->planned));
    return read_real(r, "simulated_seconds", &p->simulated);
}

static zero_status read_row(const reader *r)
{
    zero_study_row *row;
    if (r->n_fields != r->n_names)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%.500s, row %" PRId64 ": expected %d fields, found %d",
                         r->rows->path, r->row, r->n_names, r->n_fields);
    ZERO_TRY(zero_study_add(r->rows, &row));
    ZERO_TRY(read_word(r, "scaling", "weak", "strong", &r->rows->is_strong));
    ZERO_TRY(read_whole(r, "stage", 0, 3, &row->stage));
    ZERO_TRY(read_point(r, &row->point));
    ZERO_TRY(read_state(r, &row->point.measured));
    if (!row->point.measured) return ZERO_OK;
    return read_word(r, "fake_nodes", "false", "true", &row->point.fake_nodes);
}

zero_status zero_study_read_csv(zero_study_rows *rows, char *text)
{
    reader r = {.rows = rows, .at = text};
    ZERO_TRY(take_row(&r));
    memcpy(r.names, r.fields, sizeof r.names);
    r.n_names = r.n_fields;
    for (;;) {
        ZERO_TRY(take_row(&r));
        if (r.n_fields == 0) return ZERO_OK;
        ZERO_TRY(read_row(&r));
    }
}
