#include "verify/step_file.h"

#include "base/field.h"
#include "base/text.h"
#include "io/json_input.h"

#define FORMAT    "zero-step-1"
#define POSITIONS (INT64_C(1) << 28) /* of a step, at most */

const char *const zero_step_prefixes[ZERO_STEP_PARTS] = {
    "before/",         "momentum_before/", "variance_before/", "after/",
    "momentum_after/", "variance_after/",  "gradient/"};

/* ---- "step" ---- */

/* A member of "step", read and written by one row. */
typedef struct {
    zero_field field;
    enum { FREE, NEEDED, COUNTS } is; /* may be missing; not; and decides the numbers */
    double most;                      /* of numbers, which are 0 or more */
} fact;

#define FACT(member, is, most) \
    { \
        ZERO_FIELD(zero_step_facts, member), is, most \
    }

static const fact facts[] = {
    FACT(framework, NEEDED, 0),       FACT(sharding, FREE, 0),
    FACT(dtype, COUNTS, 0),           FACT(updates, COUNTS, 0x1p53),
    FACT(lr, COUNTS, 1e30),           FACT(beta1, COUNTS, 1),
    FACT(beta2, COUNTS, 1),           FACT(eps, COUNTS, 1e30),
    FACT(weight_decay, COUNTS, 1e30), FACT(clip, COUNTS, 1e30),
    FACT(loss_scale, FREE, 0x1p32),   FACT(step, FREE, 0x1p40),
    FACT(seed, FREE, 0x1p53),         FACT(dropout, FREE, 0.99),
    FACT(activations, FREE, 0),       FACT(slices, FREE, 4096),
    FACT(reproducible, FREE, 0),
};

static zero_status read_fact(const char *path, const json_t *root, const fact *f,
                             zero_step_facts *to)
{
    void *at = (char *)to + f->field.offset;
    const char *key = f->field.name;
    const bool is_there = json_object_get(root, key) != NULL;
    double real = 0.0;
    if (f->field.kind == ZERO_FIELD_TEXT) *(const char **)at = "";
    if (!is_there && f->is == FREE) return ZERO_OK;
    switch (f->field.kind) {
    case ZERO_FIELD_TEXT: return zero_json_text(path, root, key, at);
    case ZERO_FIELD_FLAG: return zero_json_flag(path, root, key, at);
    case ZERO_FIELD_WHOLE: return zero_json_whole(path, root, key, 0, (int64_t)f->most, at);
    default: break;
    }
    ZERO_TRY(zero_json_real(path, root, key, &real));
    ZERO_FORMAT_IF(real < 0.0 || real > f->most,
                   "%s: \"%s\" is %g: expected a number from 0 to %g", path, key, real,
                   f->most);
    *(double *)at = real;
    return ZERO_OK;
}

static zero_status read_facts(const char *path, const char *text, zero_step_file *f)
{
    const char *names[ZERO_COUNT(facts) + 1] = {"no_decay"};
    ZERO_TRY(zero_json_parse(path, text, strlen(text), &f->root));
    for (int i = 0; i < ZERO_COUNT(facts); i++) {
        ZERO_TRY(read_fact(path, f->root, &facts[i], &f->facts));
        names[i + 1] = facts[i].field.name;
    }
    ZERO_TRY(zero_json_only(path, f->root, ZERO_COUNT(names), names));
    ZERO_TRY(zero_json_array(path, f->root, names[0], &f->no_decay));
    zero_step_facts *s = &f->facts;
    if (s->loss_scale == 0.0) s->loss_scale = 1.0;
    ZERO_FORMAT_IF(!zero_type_find(s->dtype, &f->type),
                   "%s: \"dtype\" is \"%s\": expected fp32, bf16 or fp16", path,
                   ZERO_SHOWN_SHORT(s->dtype));
    ZERO_FORMAT_IF(
        s->beta1 >= 1.0 || s->beta2 >= 1.0 || s->eps == 0.0,
        "%s: beta1 %g, beta2 %g, eps %g: expected betas below 1, and an eps above "
        "0",
        path, s->beta1, s->beta2, s->eps);
    return ZERO_OK;
}

static json_t *fact_value(const fact *f, const zero_step_facts *from)
{
    const void *at = (const char *)from + f->field.offset;
    switch (f->field.kind) {
    case ZERO_FIELD_TEXT: return json_string(*(const char *const *)at);
    case ZERO_FIELD_FLAG: return json_boolean(*(const bool *)at);
    case ZERO_FIELD_WHOLE: return json_integer(*(const int64_t *)at);
    default: return json_real(*(const double *)at);
    }
}

/* ---- reading ---- */

static zero_status read_tokens(zero_step_file *f, const char *name, int64_t least,
                               int32_t **to)
{
    const char *path = f->file.path;
    const zero_safetensors_entry *e = zero_safetensors_find(&f->table, name);
    ZERO_FORMAT_IF(!e || e->n_dims != 4 || !zero_same_text(e->type, "I32") || e->n == 0 ||
                       e->n > POSITIONS,
                   "%s: tensor \"%s\": expected I32 [ranks, microbatches, sequences, "
                   "positions], up to 2^28 in all",
                   path, name);
    const int64_t dims[4] = {f->ranks, f->microbatches, f->batch, f->seq};
    ZERO_FORMAT_IF(f->tokens && memcmp(dims, e->dims, sizeof dims) != 0,
                   "%s: tensor \"%s\" has another shape than \"tokens\"", path, name);
    f->ranks = e->dims[0], f->microbatches = e->dims[1];
    f->batch = e->dims[2], f->seq = e->dims[3];
    ZERO_TRY(zero_new(to, e->n, name));
    ZERO_TRY(zero_file_read(&f->file, e->begin, *to, (size_t)e->n * sizeof **to));
    for (int64_t i = 0; i < e->n; i++)
        ZERO_FORMAT_IF((*to)[i] < least || (*to)[i] >= f->shape.vocab,
                       "%s: %s[%" PRId64 "] is %d: expected %" PRId64 " to %" PRId64, path,
                       name, i, (*to)[i], least, f->shape.vocab - 1);
    return ZERO_OK;
}

/* NAN without it, and where nobody knew it. */
static zero_status read_number(const zero_step_file *f, const char *name, double *value)
{
    const zero_safetensors_entry *e = zero_safetensors_find(&f->table, name);
    *value = NAN;
    if (!e) return ZERO_OK;
    ZERO_FORMAT_IF(e->n != 1 || !zero_same_text(e->type, "F64"),
                   "%s: tensor \"%s\": expected F64 [1]", f->file.path, name);
    ZERO_TRY(zero_file_read(&f->file, e->begin, value, sizeof *value));
    ZERO_FORMAT_IF(isinf(*value), "%s: %s is %g: expected a finite number", f->file.path,
                   name, *value);
    return ZERO_OK;
}

static zero_status read_all(zero_step_file *f)
{
    const char *path = f->file.path;
    ZERO_AT_END(zero_bytes_destroy) zero_bytes text = {0};
    ZERO_TRY(zero_safetensors_read_header(&f->file, &text));
    ZERO_TRY(zero_safetensors_parse(path, f->file.bytes, &text, &f->table));
    const char *format = zero_safetensors_metadata(&f->table, "format");
    const char *step = zero_safetensors_metadata(&f->table, "step");
    const char *config = zero_safetensors_metadata(&f->table, "config");
    ZERO_FORMAT_IF(
        !format || !zero_same_text(format, FORMAT) || !step || !config,
        "%s: not a step file: expected \"format\": \"" FORMAT
        "\", \"step\" and \"config\" in __metadata__; zero_torch.record and zero "
        "train --record write them",
        path);
    ZERO_TRY(read_facts(path, step, f));
    text.len = 0;
    ZERO_TRY(zero_bytes_append(&text, config, strlen(config)));
    ZERO_TRY(zero_hugging_face_read_config(path, &text, &f->shape));
    /* Each tensor is one of those that are read, or of a part. */
    static const char *const own[] = {"tokens", "targets", "loss", "norm"};
    for (int i = 0; i < f->table.n; i++) {
        const char *name = f->table.entries[i].name;
        bool is_known = false;
        for (int k = 0; k < ZERO_COUNT(own); k++) is_known |= zero_same_text(name, own[k]);
        for (int k = 0; k < ZERO_STEP_PARTS; k++)
            is_known |=
                strncmp(name, zero_step_prefixes[k], strlen(zero_step_prefixes[k])) == 0;
        ZERO_FORMAT_IF(!is_known,
                       "%s: tensor \"%s\": expected tokens, targets, loss, norm, and names "
                       "that begin with before/, after/, momentum_before/ and the like",
                       f->file.path, ZERO_SHOWN_SHORT(name));
    }
    ZERO_TRY(read_tokens(f, "tokens", 0, &f->tokens));
    ZERO_TRY(read_tokens(f, "targets", -1, &f->targets));
    ZERO_TRY(read_number(f, "loss", &f->loss));
    ZERO_TRY(read_number(f, "norm", &f->norm));
    ZERO_FORMAT_IF(f->seq > f->shape.seq && f->shape.seq > 0,
                   "%s: %" PRId64 " positions in a sequence, and the model has %" PRId64,
                   path, f->seq, f->shape.seq);
    f->shape.seq = f->seq; /* later positions were not used */
    ZERO_FORMAT_IF(zero_shape_check(&f->shape) != ZERO_OK, "%s: %s", path,
                   zero_last_error());
    for (int64_t i = 0; i < zero_step_samples(f) * f->seq; i++)
        f->counted += f->targets[i] >= 0;
    ZERO_FORMAT_IF(f->counted == 0, "%s: no target counts: all are negative", path);
    return ZERO_OK;
}

zero_status zero_step_open(const char *path, zero_step_file *file)
{
    ZERO_AT_END(zero_step_close) zero_step_file f = {.facts.lr = 0.0};
    ZERO_TRY(zero_file_open(path, &f.file));
    ZERO_TRY(read_all(&f));
    ZERO_GIVE(file, f);
    return ZERO_OK;
}

zero_status zero_step_match(zero_step_file *f, zero_model *model)
{
    for (int p = 0; p < ZERO_STEP_PARTS; p++) {
        ZERO_AT_END(zero_safetensors_destroy) zero_safetensors table = {0};
        const bool is_moment =
            p == ZERO_STEP_MOMENTUM_BEFORE || p == ZERO_STEP_VARIANCE_BEFORE;
        ZERO_TRY(zero_safetensors_under(&f->table, zero_step_prefixes[p], &table));
        f->has[p] = table.n > 0;
        if (table.n == 0 &&
            (p == ZERO_STEP_GRADIENT || (is_moment && f->facts.updates == 0)))
            continue;
        zero_status st =
            zero_hugging_face_open_table(f->file.path, &table, model, &f->parts[p]);
        if (st == ZERO_ERR_FORMAT)
            st = zero_fail(st, "%s; in the tensors %s...", zero_last_error(),
                           zero_step_prefixes[p]);
        ZERO_TRY(st);
    }
    /* Names may have one prefix more than the model's. */
    size_t i;
    const json_t *name;
    f->n_tensors = model->n_tensors;
    ZERO_TRY(zero_new(&f->decays, model->n_tensors, "tensors of a step file"));
    for (int t = 0; t < model->n_tensors; t++) model->tensors[t].decays = true;
    json_array_foreach(f->no_decay, i, name)
    {
        const char *text = json_string_value(name);
        int t = -1;
        for (int k = 0; text && k < model->n_tensors && t < 0; k++) {
            const char *own = model->tensors[k].name, *end = text + strlen(text);
            bool is_end = zero_ends_in(text, own);
            if (is_end &&
                (end - strlen(own) == text || end[-(ptrdiff_t)strlen(own) - 1] == '.'))
                t = k;
        }
        ZERO_FORMAT_IF(t < 0,
                       "%s: \"no_decay\": [%zu] is not the name of a tensor of the model",
                       f->file.path, i);
        model->tensors[t].decays = false;
    }
    for (int t = 0; t < model->n_tensors; t++) f->decays[t] = model->tensors[t].decays;
    return ZERO_OK;
}

void zero_step_close(zero_step_file *f)
{
    for (int p = 0; p < ZERO_STEP_PARTS; p++) zero_hugging_face_close(&f->parts[p]);
    zero_free(f->tokens, f->targets, f->decays);
    zero_safetensors_destroy(&f->table);
    json_decref(f->root);
    zero_file_close(&f->file);
    *f = (zero_step_file){.root = NULL};
}

/* ---- two files ---- */

/* True if they are equal; else they are added. */
static bool compare_fact(json_t *all, const char *name, json_t *x, json_t *y)
{
    const size_t flags = JSON_ENCODE_ANY | JSON_REAL_PRECISION(17);
    const bool is_equal = json_equal(x, y);
    if (!is_equal) {
        ZERO_FREED char *own = json_dumps(x, flags), *other = json_dumps(y, flags);
        zero_put_item(all, "{s:s, s:s, s:s}", "name", name, "x", own, "y", other);
    }
    json_decref(x);
    json_decref(y);
    return is_equal;
}

json_t *zero_step_compare_facts(const zero_step_file *a, const zero_step_file *b,
                                bool *alike)
{
    json_t *all = json_array();
    int64_t decay[2] = {0};
    *alike = true;
    for (int i = 0; i < ZERO_COUNT(facts); i++) {
        const bool is_equal =
            compare_fact(all, facts[i].field.name, fact_value(&facts[i], &a->facts),
                         fact_value(&facts[i], &b->facts));
        *alike &= is_equal || facts[i].is != COUNTS;
    }
    for (int t = 0; t < a->n_tensors; t++) {
        decay[0] += a->decays[t], decay[1] += b->decays[t];
        *alike &= a->decays[t] == b->decays[t];
    }
    const struct {
        const char *name;
        int64_t x, y;
    } counts[] = {{"tensors that decay", decay[0], decay[1]},
                  {"ranks", a->ranks, b->ranks},
                  {"microbatches", a->microbatches, b->microbatches},
                  {"sequences", a->batch, b->batch}};
    for (int i = 0; i < ZERO_COUNT(counts); i++)
        compare_fact(all, counts[i].name, json_integer(counts[i].x),
                     json_integer(counts[i].y));
    return all;
}

/* ---- values ---- */

int64_t zero_step_samples(const zero_step_file *f)
{
    return f->ranks * f->microbatches * f->batch;
}

static zero_status fill_zeros(ZERO_UNUSED void *arg, ZERO_UNUSED int tensor, int64_t begin,
                              int64_t end, float *out)
{
    zero_clear(out, end - begin);
    return ZERO_OK;
}

zero_weights zero_step_weights(zero_step_file *f, zero_step_part part)
{
    if (!f->has[part]) return (zero_weights){.fill = fill_zeros};
    return zero_hugging_face_weights(&f->parts[part]);
}

void zero_step_sample(const void *arg, ZERO_UNUSED int64_t step, int64_t i, int64_t T,
                      void *inputs, void *targets)
{
    const zero_step_file *f = arg;
    const size_t bytes = (size_t)T * sizeof(int32_t);
    const bool is_there = i < zero_step_samples(f);
    memcpy(inputs, f->tokens + (is_there ? i : 0) * T, bytes);
    if (is_there)
        memcpy(targets, f->targets + i * T, bytes);
    else
        memset(targets, 0xff, bytes);
}

/* ---- writing ---- */

static zero_status describe(const zero_step_outline *o, json_t *texts)
{
    const zero_hugging_face_export e = {.model = o->model, .type = o->type};
    const zero_shape *shape = o->model->shape;
    json_auto_t *config = NULL, *step = json_object(), *none = json_array();
    ZERO_TRY(zero_hugging_face_make_config(&e, &config));
    for (int i = 0; i < ZERO_COUNT(facts); i++)
        json_object_set_new(step, facts[i].field.name, fact_value(&facts[i], o->facts));
    for (int t = 0; t < o->model->n_tensors; t++) {
        char name[ZERO_HUGGING_FACE_NAME];
        zero_hugging_face_name(shape->kind, o->model->tensors[t].name, name);
        if (!o->model->tensors[t].decays) json_array_append_new(none, json_string(name));
    }
    json_object_set(step, "no_decay", none);
    const size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(17);
    ZERO_FREED char *config_text = json_dumps(config, flags),
                    *step_text = json_dumps(step, flags);
    ZERO_TRY(zero_allocated(config_text && step_text, "no memory for a step file"));
    zero_put_string(texts, "format", FORMAT);
    zero_put_string(texts, "config", config_text);
    zero_put_string(texts, "step", step_text);
    return ZERO_OK;
}

zero_status zero_step_write_header(const zero_step_outline *o, zero_bytes *header)
{
    enum { PARTS = ZERO_STEP_GRADIENT, OTHERS = 4 };
    const zero_model *m = o->model;
    const zero_shape *shape = m->shape;
    int n = 0;
    ZERO_FREED zero_safetensors_entry *entries = NULL;
    ZERO_FREED char(*names)[ZERO_HUGGING_FACE_NAME + 16] = NULL;
    json_auto_t *texts = json_object();
    ZERO_TRY(zero_new(&entries, PARTS * m->n_tensors + OTHERS, "tensors of a step file"));
    ZERO_TRY(zero_new(&names, PARTS * m->n_tensors, "names of a step file"));
    ZERO_TRY(describe(o, texts));
    for (int i = 0; i < 2; i++)
        entries[n++] = (zero_safetensors_entry){
            .name = i == 0 ? "tokens" : "targets",
            .type = "I32",
            .n_dims = 4,
            .dims = {o->ranks, o->microbatches, o->batch, shape->seq}};
    for (int p = 0; p < PARTS; p++)
        for (int t = 0; t < m->n_tensors; t++) {
            char *name = names[p * m->n_tensors + t], theirs[ZERO_HUGGING_FACE_NAME];
            zero_hugging_face_name(shape->kind, m->tensors[t].name, theirs);
            snprintf(name, sizeof *names, "%s%s", zero_step_prefixes[p], theirs);
            entries[n] = (zero_safetensors_entry){.name = name, .type = "F32"};
            entries[n].n_dims = zero_hugging_face_dims(&m->tensors[t], entries[n].dims);
            n++;
        }
    for (int i = 0; i < 2; i++)
        entries[n++] = (zero_safetensors_entry){
            .name = i == 0 ? "loss" : "norm", .type = "F64", .n_dims = 1, .dims = {1}};
    return zero_safetensors_write_header(n, entries, texts, header);
}
