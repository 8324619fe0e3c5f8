#include "pages/record_read.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/type.h"
#include "io/json_input.h"
#include "pages/fields.h"
#include "pages/record_parts.h"

#define MOST_TOKENS (INT64_C(1) << 53) /* exact as a double */

void zero_record_line_name(const zero_record *record, int64_t line,
                           zero_record_where *where)
{
    snprintf(where->text, sizeof where->text, "%.500s, line %" PRId64, record->file.path,
             line);
}

/* ---- the first line ---- */

static zero_status read_small(const char *where, const json_t *object, const char *key,
                              int least, int most, int *value)
{
    int64_t number;
    ZERO_TRY(zero_json_whole(where, object, key, least, most, &number));
    *value = (int)number;
    return ZERO_OK;
}

static zero_status read_layout(zero_record *r, const char *where, const json_t *run)
{
    const json_t *nodes, *tp;
    ZERO_TRY(read_small(where, run, "ranks", 1, ZERO_RECORD_RANKS, &r->ranks));
    ZERO_TRY(read_small(where, run, "stage", 0, 3, &r->stage));
    ZERO_TRY(zero_json_object(where, run, "nodes", &nodes));
    ZERO_TRY(read_small(where, nodes, "count", 1, r->ranks, &r->nodes));
    ZERO_TRY(zero_json_flag(where, nodes, "fake", &r->fake_nodes));
    ZERO_TRY(zero_json_object(where, run, "tp", &tp));
    return read_small(where, tp, "ranks", 1, r->ranks, &r->tp);
}

static zero_status read_names(zero_record *r, const char *where, const json_t *run)
{
    const json_t *model;
    zero_type type;
    ZERO_TRY(zero_json_object(where, run, "model", &model));
    ZERO_TRY(zero_field_text(where, model, "name", r->model, sizeof r->model));
    ZERO_TRY(zero_json_whole(where, model, "parameters", 1, INT64_MAX, &r->parameters));
    ZERO_TRY(zero_field_text(where, run, "started", r->started, sizeof r->started));
    ZERO_TRY(
        zero_field_text(where, run, "collectives", r->collectives, sizeof r->collectives));
    ZERO_TRY(zero_field_text(where, run, "dtype", r->dtype, sizeof r->dtype));
    if (zero_type_find(r->dtype, &type)) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "%.500s: \"dtype\": expected fp32, bf16 or fp16, found %s", where,
                     r->dtype);
}

zero_status zero_record_read_run(zero_record *record)
{
    const json_t *run = record->file.run, *part;
    zero_record_where where;
    zero_record_line_name(record, record->file.run_line, &where);
    record->has_run = run != NULL;
    if (!run) return ZERO_OK;
    ZERO_TRY(read_layout(record, where.text, run));
    ZERO_TRY(read_names(record, where.text, run));
    ZERO_TRY(zero_json_object(where.text, run, "options", &part));
    ZERO_TRY(zero_json_object(where.text, run, "config", &part));
    ZERO_TRY(zero_json_whole(where.text, run, "resumed_step", 0, INT64_MAX,
                             &record->resumed_step));
    if (json_object_get(run, "id"))
        ZERO_TRY(zero_json_whole(where.text, run, "id", 0, INT64_MAX, &record->id));
    if (!json_object_get(run, "schedule")) return ZERO_OK;
    ZERO_TRY(zero_json_object(where.text, run, "schedule", &part));
    return zero_record_read_schedule(record, where.text, part);
}

/* ---- steps ---- */

static zero_status read_times(const char *where, const json_t *line, zero_record_step *s)
{
    int64_t tokens;
    ZERO_TRY(zero_field_real_or_null(where, line, "step_seconds", 0.0, &s->seconds));
    ZERO_TRY(zero_field_real_or_null(where, line, "exposed_seconds", 0.0, &s->exposed));
    ZERO_TRY(zero_json_whole(where, line, "tokens", 0, MOST_TOKENS, &tokens));
    ZERO_TRY(zero_field_real_or_null(where, line, "tokens_per_second", 0.0,
                                     &s->tokens_per_second));
    s->tokens = (double)tokens;
    return zero_field_real_or_null(where, line, "elapsed", 0.0, &s->elapsed);
}

static zero_status read_step(const char *where, const json_t *line, zero_record_step *s)
{
    ZERO_TRY(zero_field_real_or_null(where, line, "loss", -INFINITY, &s->loss));
    ZERO_TRY(zero_field_real_or_null(where, line, "lr", 0.0, &s->lr));
    ZERO_TRY(zero_field_real_or_null(where, line, "grad_norm", 0.0, &s->grad_norm));
    ZERO_TRY(zero_field_real_or_null(where, line, "loss_scale", 0.0, &s->loss_scale));
    ZERO_TRY(read_times(where, line, s));
    s->skipped = false;
    if (json_object_get(line, "skipped"))
        ZERO_TRY(zero_json_flag(where, line, "skipped", &s->skipped));
    s->has_val_loss = json_object_get(line, "val_loss") != NULL;
    s->val_loss = NAN;
    if (!s->has_val_loss) return ZERO_OK;
    return zero_field_real_or_null(where, line, "val_loss", -INFINITY, &s->val_loss);
}

zero_status zero_record_read_steps(zero_record *record)
{
    const zero_metrics_file *file = &record->file;
    record->steps = calloc((size_t)file->n, sizeof *record->steps);
    if (!record->steps)
        return zero_fail(ZERO_ERR_NOMEM, "%.500s: no memory for %" PRId64 " steps",
                         file->path, file->n);
    for (int64_t i = 0; i < file->n; i++) {
        zero_record_where where;
        json_t *line;
        zero_record_step *s = &record->steps[i];
        zero_record_line_name(record, file->steps[i].line, &where);
        ZERO_TRY(zero_metrics_step_at(file, i, &line));
        zero_status st = read_step(where.text, line, s);
        json_decref(line);
        ZERO_TRY(st);
        s->step = file->steps[i].step;
        record->n_steps++;
    }
    return ZERO_OK;
}

/* ---- all lines ---- */

static zero_status read_lines(zero_record *record)
{
    record->path = record->file.path;
    record->cut = record->file.cut;
    record->lost_lines = record->file.lost_lines;
    record->ended = record->file.final != NULL;
    record->peak_at = -1;
    ZERO_TRY(zero_record_read_run(record));
    ZERO_TRY(zero_record_read_steps(record));
    return zero_record_read_final(record);
}

static zero_status finish(zero_record *record, zero_record *new, zero_status st)
{
    if (st == ZERO_OK) st = read_lines(new);
    if (st == ZERO_OK)
        *record = *new;
    else
        zero_record_destroy(new);
    return st;
}

zero_status zero_record_read(zero_record *record, const char *path)
{
    zero_record new = {.path = path};
    return finish(record, &new, zero_metrics_read(&new.file, path));
}

zero_status zero_record_parse(zero_record *record, const char *path, const void *text,
                              size_t len)
{
    zero_record new = {.path = path};
    return finish(record, &new, zero_metrics_parse(&new.file, path, text, len));
}
