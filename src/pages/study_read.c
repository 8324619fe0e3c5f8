#include "pages/study_read.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/grow.h"
#include "io/bytes.h"
#include "io/file.h"
#include "io/json_input.h"
#include "pages/study_parts.h"
#include "train/metrics_read.h"

#define CSV_BEGINNING  "scaling,stage,ranks,"
#define JSON_BEGINNING "\"study\""

/* ---- which file it is ---- */

/* Bytes of the path's directory, with the slash at its end; 0: this directory. */
static int directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash - path) + 1 : 0;
}

/* study.json of a directory, or the file itself. */
static zero_status file_of(const char *path, char file[ZERO_STORAGE_FILE_PATH])
{
    bool is_whole = zero_path_look(path) == ZERO_PATH_OF_DIRECTORY;
    int n =
        snprintf(file, ZERO_STORAGE_FILE_PATH, "%s%s", path, is_whole ? "/study.json" : "");
    if (n >= ZERO_STORAGE_FILE_PATH)
        return zero_fail(ZERO_ERR_IO, "%.100s...: the path is too long", path);
    if (!is_whole || zero_path_look(file) != ZERO_PATH_OF_NOTHING) return ZERO_OK;
    return zero_fail(ZERO_ERR_IO,
                     "%.500s: expected the directory of a study, as zero sweep --out makes "
                     "it, or the metrics of a run, found a directory without study.json",
                     path);
}

static bool is_csv(const unsigned char *text, size_t len)
{
    const size_t n = strlen(CSV_BEGINNING);
    return len >= n && memcmp(text, CSV_BEGINNING, n) == 0;
}

/* study.json begins with an object whose first key is "study". */
static bool is_json(const unsigned char *text, size_t len)
{
    const char *white = " \t\r\n";
    const size_t n = strlen(JSON_BEGINNING);
    size_t at = 0;
    while (at < len && text[at] && strchr(white, text[at])) at++;
    if (at == len || text[at++] != '{') return false;
    while (at < len && text[at] && strchr(white, text[at])) at++;
    return len - at >= n && memcmp(text + at, JSON_BEGINNING, n) == 0;
}

static zero_status look(const zero_file *file, bool *is)
{
    unsigned char begin[256];
    size_t n;
    ZERO_TRY(zero_file_read_some(file, 0, begin, sizeof begin, &n));
    *is = is_csv(begin, n) || is_json(begin, n);
    return ZERO_OK;
}

zero_status zero_study_is(const char *path, bool *is)
{
    zero_file file;
    if (zero_path_look(path) == ZERO_PATH_OF_DIRECTORY) {
        *is = true;
        return ZERO_OK;
    }
    ZERO_TRY(zero_file_open(path, &file));
    zero_status st = look(&file, is);
    zero_file_close(&file);
    return st;
}

/* ---- rows ---- */

zero_status zero_study_add(zero_study_rows *rows, zero_study_row **row)
{
    if (rows->n == ZERO_STUDY_POINTS)
        return zero_fail(ZERO_ERR_FORMAT, "%.500s: expected at most %d points, found more",
                         rows->path, ZERO_STUDY_POINTS);
    zero_study_row *larger = zero_grow(rows->rows, rows->n, &rows->room, sizeof *larger);
    if (!larger)
        return zero_fail(ZERO_ERR_NOMEM, "%.500s: no memory for its points", rows->path);
    rows->rows = larger;
    *row = &larger[rows->n++];
    **row = (zero_study_row){.point = {.tokens_per_second = NAN,
                                       .efficiency = NAN,
                                       .step = NAN,
                                       .lower = NAN,
                                       .upper = NAN,
                                       .exposed = NAN,
                                       .planned = NAN,
                                       .simulated = NAN}};
    return ZERO_OK;
}

static int compare_rows(const void *a, const void *b)
{
    const zero_study_row *x = a, *y = b;
    if (x->stage != y->stage) return x->stage < y->stage ? -1 : 1;
    return (x->point.ranks > y->point.ranks) - (x->point.ranks < y->point.ranks);
}

static zero_status sort_rows(zero_study_rows *rows)
{
    if (rows->n == 0)
        return zero_fail(ZERO_ERR_FORMAT, "%.500s: expected a study, found no points",
                         rows->path);
    qsort(rows->rows, (size_t)rows->n, sizeof *rows->rows, compare_rows);
    for (int64_t i = 1; i < rows->n; i++)
        if (compare_rows(&rows->rows[i - 1], &rows->rows[i]) == 0)
            return zero_fail(ZERO_ERR_FORMAT,
                             "%.500s: expected each point once, found stage %d on %d ranks "
                             "twice",
                             rows->path, rows->rows[i].stage, rows->rows[i].point.ranks);
    return ZERO_OK;
}

/* ---- the memory of a point, which only the metrics of its run have ---- */

static zero_status take_memory(const char *path, zero_study_point *point)
{
    zero_metrics_file file;
    const json_t *memory;
    ZERO_TRY(zero_metrics_read(&file, path));
    zero_status st = ZERO_OK;
    if (file.final) st = zero_json_object(path, file.final, "memory", &memory);
    if (file.final && st == ZERO_OK)
        st = zero_json_whole(path, memory, "measured_peak_bytes", 0, INT64_MAX,
                             &point->memory);
    zero_metrics_file_destroy(&file);
    return st;
}

/* Metrics that are not beside the study, as when only its files were copied, are no mistake. */
static zero_status take_memories(const zero_study_rows *rows, const char *file)
{
    char path[ZERO_STORAGE_FILE_PATH];
    for (int64_t i = 0; i < rows->n; i++) {
        zero_study_row *row = &rows->rows[i];
        int n = snprintf(path, sizeof path, "%.*spoints/stage%d-ranks%d.jsonl",
                         directory_of(file), file, row->stage, row->point.ranks);
        if (n >= (int)sizeof path || !row->point.measured ||
            zero_path_look(path) == ZERO_PATH_OF_NOTHING)
            continue;
        ZERO_TRY(take_memory(path, &row->point));
    }
    return ZERO_OK;
}

/* ---- series ---- */

static zero_status add_series(zero_study *study, const zero_study_row *rows, int n)
{
    zero_study_series *s = &study->series[study->n_series];
    s->points = calloc((size_t)n, sizeof *s->points);
    if (!s->points)
        return zero_fail(ZERO_ERR_NOMEM, "%.500s: no memory for %d points", study->path, n);
    s->stage = rows->stage;
    s->n = n;
    for (int i = 0; i < n; i++) s->points[i] = rows[i].point;
    study->n_series++;
    return ZERO_OK;
}

static zero_status make_series(zero_study *study, const zero_study_rows *rows)
{
    study->series = calloc((size_t)rows->n, sizeof *study->series);
    if (!study->series)
        return zero_fail(ZERO_ERR_NOMEM, "%.500s: no memory for its points", study->path);
    for (int64_t begin = 0, end; begin < rows->n; begin = end) {
        for (end = begin;
             end < rows->n && rows->rows[end].stage == rows->rows[begin].stage;)
            end++;
        ZERO_TRY(add_series(study, &rows->rows[begin], (int)(end - begin)));
    }
    return ZERO_OK;
}

static zero_status read_text(zero_study_rows *rows, zero_bytes *text)
{
    ZERO_TRY(zero_bytes_append(text, "", 1)); /* for the reader of CSV */
    if (!is_csv(text->bytes, text->len))
        return zero_study_read_json(rows, text->bytes, text->len - 1);
    const unsigned char *nul = memchr(text->bytes, '\0', text->len);
    if (nul < text->bytes + text->len - 1)
        return zero_fail(ZERO_ERR_FORMAT, "%.500s: expected text, found a NUL at byte %td",
                         rows->path, nul - text->bytes);
    return zero_study_read_csv(rows, (char *)text->bytes);
}

static zero_status read_rows(zero_study_rows *rows, zero_bytes *text)
{
    ZERO_TRY(read_text(rows, text));
    return sort_rows(rows);
}

static zero_status read_file(zero_study_rows *rows, const char *file)
{
    zero_bytes text = {0};
    zero_status st = zero_bytes_read(&text, file);
    if (st == ZERO_OK) st = read_rows(rows, &text);
    zero_bytes_destroy(&text);
    return st == ZERO_OK ? take_memories(rows, file) : st;
}

/* Takes over the rows. */
static zero_status finish(zero_study *study, zero_study_rows *rows, zero_status st)
{
    zero_study new = {.path = rows->path, .is_strong = rows->is_strong};
    if (st == ZERO_OK) st = make_series(&new, rows);
    free(rows->rows);
    if (st == ZERO_OK)
        *study = new;
    else
        zero_study_destroy(&new);
    return st;
}

zero_status zero_study_read(zero_study *study, const char *path)
{
    char file[ZERO_STORAGE_FILE_PATH];
    zero_study_rows rows = {.path = path};
    ZERO_TRY(file_of(path, file));
    return finish(study, &rows, read_file(&rows, file));
}

zero_status zero_study_parse(zero_study *study, const char *path, const void *text,
                             size_t len)
{
    zero_study_rows rows = {.path = path};
    zero_bytes copy = {0};
    zero_status st = zero_bytes_append(&copy, text, len);
    if (st == ZERO_OK) st = read_rows(&rows, &copy);
    zero_bytes_destroy(&copy);
    return finish(study, &rows, st);
}
