#include "train/metrics_read.h"

#include "base/grow.h"
#include "base/utf8.h"
#include "io/json_input.h"

#define MOST_STEPS INT64_C(1000000000000)

/* A reader's state between lines. */
typedef struct {
    zero_metrics_file *file;
    int64_t line;      /* its number */
    char where[600];   /* path and number of the line, for messages */
    zero_failure half; /* of the last line, which a killed run may have left half */
} reader;

/* Steps from `step` on are taken again. */
static void forget_from(zero_metrics_file *file, int64_t step)
{
    while (file->n > 0 && file->steps[file->n - 1].step >= step) file->n--;
}

/* Bytes [at, at + length) of the file. A line that is not JSON may be the half line of a
 * killed run: then nothing follows it, or the first line of the resumed run. */
static zero_status take_line(reader *r, size_t at, size_t length)
{
    json_auto_t *object = NULL;
    zero_status st = zero_json_parse(r->where, r->file->text.bytes + at, length, &object);
    if (st == ZERO_OK) {
        const json_t *run = json_object_get(object, "run");
        if (r->half.status != ZERO_OK && !run) return zero_failure_restore(&r->half);
        r->half.status = ZERO_OK;
        if (run) {
            int64_t done;
            ZERO_TRY(zero_json_whole(r->where, run, "resumed_step", 0, MOST_STEPS, &done));
            forget_from(r->file, done + 1);
            json_decref(r->file->run);
            json_decref(r->file->final);
            r->file->run = json_incref((json_t *)run);
            r->file->final = NULL;
            r->file->run_line = r->line;
            r->file->n_runs++;
            r->file->final_line = 0;
        }
        /* Any line may say how many were lost since the one before it. */
        int64_t lost;
        if (json_object_get(object, "lost_lines")) {
            ZERO_TRY(zero_json_whole(r->where, object, "lost_lines", 0,
                                     MOST_STEPS - r->file->lost_lines, &lost));
            r->file->lost_lines += lost;
        }
        if (run) return ZERO_OK;
        if (json_object_get(object, "final")) {
            json_decref(r->file->final);
            r->file->final = json_incref(object);
            r->file->final_line = r->line;
            return ZERO_OK;
        }
        zero_metrics_file *file = r->file;
        int64_t step;
        ZERO_TRY(zero_json_whole(r->where, object, "step", 1, MOST_STEPS, &step));
        forget_from(file, step);
        ZERO_FAIL_IF(!zero_grow(file->steps, file->n, &file->room), ZERO_ERR_NOMEM,
                     "%s: no memory for its steps", r->where);
        file->steps[file->n++] = (zero_metrics_line){step, r->line, at, length};
        return ZERO_OK;
    }
    if (st != ZERO_ERR_FORMAT) return st;
    if (r->half.status != ZERO_OK) return zero_failure_restore(&r->half);
    r->half = zero_failure_keep(st);
    return ZERO_OK;
}

static zero_status take_lines(reader *r)
{
    const zero_bytes *text = &r->file->text;
    for (size_t at = 0, length; at < text->len; at += length + 1) {
        const void *end = memchr(text->bytes + at, '\n', text->len - at);
        length =
            end ? (size_t)((const unsigned char *)end - text->bytes) - at : text->len - at;
        zero_print(r->where, "%.500s, line %" PRId64, r->file->path, ++r->line);
        ZERO_TRY(take_line(r, at, length));
    }
    r->file->cut = r->half.status != ZERO_OK;
    if (r->file->n > 0) return ZERO_OK;
    if (r->half.status != ZERO_OK) return zero_failure_restore(&r->half);
    return zero_fail(ZERO_ERR_FORMAT,
                     "%.500s: expected the metrics of a run, found no line of a step",
                     r->file->path);
}

static bool has_member(const json_t *object, const char *const *keys)
{
    for (; *keys; keys++)
        if (json_object_get(object, *keys)) return true;
    return false;
}

/* Says in words what a file is that has no line of a run; NULL: it may be metrics with a
 * broken line. */
static const char *find_kind(const zero_bytes *t)
{
    static const char *const ours[] = {"run", "step", "final", NULL};
    static const char *const traces[] = {"traceEvents", NULL};
    const char *kind = "one JSON value, such as a configuration or a plan";
    size_t at = 0;
    json_t *value = NULL;
    for (size_t n; at < t->len; at += n) {
        n = zero_utf8_length(t->bytes + at, t->len - at);
        if (n == 0 || t->bytes[at] == '\0') return "a file that is not text";
    }
    for (at = 0; at < t->len && strchr(" \t\r\n", t->bytes[at]); at++) continue;
    if (at == t->len) return "an empty file";
    if (t->bytes[at] != '{' && t->bytes[at] != '[') return "text";
    if (zero_json_parse("", t->bytes, t->len, &value) != ZERO_OK) return NULL;
    if (has_member(value, ours)) kind = NULL;
    if (json_is_array(value) || has_member(value, traces))
        kind = "a list such as a trace, which zero report takes as --trace FILE";
    json_decref(value);
    return kind;
}

/* A file with nothing of a run in it is another file, not one with a broken line. */
static zero_status refuse(const zero_metrics_file *file)
{
    zero_failure broken = zero_failure_keep(ZERO_ERR_FORMAT);
    bool has_lines = file->n > 0 || file->n_runs > 0 || file->final;
    const char *kind = has_lines ? NULL : find_kind(&file->text);
    if (!kind) return zero_failure_restore(&broken);
    return zero_fail(ZERO_ERR_FORMAT,
                     "%.500s: expected the metrics of a run, as zero train --metrics "
                     "writes them, found %s",
                     file->path, kind);
}

/* Takes over new->text. */
static zero_status finish(zero_metrics_file *file, zero_metrics_file *new, zero_status st)
{
    reader r = {.file = new};
    if (st == ZERO_OK) st = take_lines(&r);
    if (st == ZERO_ERR_FORMAT) st = refuse(new);
    if (st == ZERO_OK)
        *file = *new;
    else
        zero_metrics_file_destroy(new);
    return st;
}

zero_status zero_metrics_read(zero_metrics_file *file, const char *path)
{
    zero_metrics_file new = {.path = path};
    return finish(file, &new, zero_bytes_read(&new.text, path));
}

zero_status zero_metrics_parse(zero_metrics_file *file, const char *path, const void *text,
                               size_t len)
{
    zero_metrics_file new = {.path = path};
    return finish(file, &new, zero_bytes_append(&new.text, text, len));
}

void zero_metrics_file_destroy(zero_metrics_file *file)
{
    json_decref(file->run);
    json_decref(file->final);
    free(file->steps);
    zero_bytes_destroy(&file->text);
    *file = (zero_metrics_file){0};
}

zero_status zero_metrics_step_at(const zero_metrics_file *file, int64_t i, json_t **step)
{
    const zero_metrics_line *line = &file->steps[i];
    return zero_json_parse(file->path, file->text.bytes + line->at, line->length, step);
}
