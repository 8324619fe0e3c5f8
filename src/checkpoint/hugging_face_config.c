/* config.json, read and made: what decides the calculation, except the tensors.
 *
 * transformers 4 has "rope_theta", "rope_scaling" and "torch_dtype" where 5 has
 * "rope_parameters" and "dtype". Both are read. The old ones are written: 5 reads them,
 * too, and 4 would take its own theta where it knows none of the keys. */

#include "checkpoint/hugging_face.h"
#include "io/json_input.h"

/* A number of the shape: its key in the architecture's files, and the one that it has in
 * others, which transformers takes, too. */
typedef struct {
    const zero_shape_field *field;
    const char *key, *also; /* NULL: none */
} number;

/* False: it follows from others, or has no key: those of stretched positions are in an
 * object (read_rotary()). */
static bool number_of(const zero_architecture *kind, int i, number *n)
{
    const zero_shape_field *f = &zero_shape_fields[i];
    const size_t scaling = offsetof(zero_shape, scaling);
    bool is_scaling =
        f->offset >= scaling && f->offset < scaling + sizeof((zero_shape *)NULL)->scaling;
    if (is_scaling || (kind->has & f->needs) != f->needs) return false;
    const char *other = zero_architectures[ZERO_LLAMA].keys[i];
    if (other && zero_same_text(other, kind->keys[i])) other = NULL;
    *n = (number){f, kind->keys[i], other};
    return true;
}

/* ---- reading ---- */

static zero_status find_kind(const char *path, const json_t *root,
                             const zero_architecture **kind)
{
    const char *type = zero_get_string(root, "model_type");
    const json_t *class = json_array_get(json_object_get(root, "architectures"), 0);
    const char *name = type ? type : json_string_value(class);
    char all[128] = "";
    *kind = &zero_architectures[ZERO_GPT2];
    /* Old files of a GPT-2 have one of its classes alone. */
    if (!name || strncmp(name, "GPT2", 4) == 0) return ZERO_OK;
    for (int i = 0; i < ZERO_ARCHITECTURES; i++) {
        const zero_architecture *a = &zero_architectures[i];
        size_t len = strlen(all);
        *kind = a;
        if (zero_same_text(name, type ? a->name : a->class_name)) return ZERO_OK;
        snprintf(all + len, sizeof all - len, "%s%s", i > 0 ? ", " : "", a->name);
    }
    return zero_fail(ZERO_ERR_UNSUPPORTED,
                     "%s: describes a model of the type %s: this program computes %s", path,
                     ZERO_SHOWN_SHORT(name), all);
}

/* Any of its values, or nothing. */
static zero_status check_member(const char *path, const json_t *root,
                                const zero_config_member *row,
                                const zero_architecture *kind)
{
    const json_t *found = json_object_get(root, row->key);
    if (!found || json_is_null(found)) return ZERO_OK;
    const size_t flags = JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15);
    ZERO_FREED char *text = json_dumps(found, flags);
    ZERO_TRY(zero_allocated(text, "no memory for %s", path));
    for (int i = 0; row->values[i]; i++)
        if (zero_same_text(text, row->values[i])) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_UNSUPPORTED,
        "%s: \"%s\" is %s: this program computes %s as it was released, with %s", path,
        row->key, ZERO_SHOWN_SHORT(text), kind->about, row->values[0]);
}

/* NAN: the file does not say it, or says null. */
static zero_status read_number(const char *path, const json_t *root, const char *key,
                               zero_shape_kind kind, bool is_needed, double *value)
{
    const json_t *member = key ? json_object_get(root, key) : NULL;
    int64_t whole = 0;
    bool flag = false;
    *value = NAN;
    if (!is_needed && (!member || json_is_null(member))) return ZERO_OK;
    switch (kind) {
    case ZERO_SHAPE_REAL: return zero_json_real(path, root, key, value);
    case ZERO_SHAPE_FLAG: ZERO_TRY(zero_json_flag(path, root, key, &flag)); break;
    case ZERO_SHAPE_WHOLE:
        ZERO_TRY(zero_json_whole(path, root, key, 1, INT64_C(1) << 40, &whole));
    }
    *value = (double)whole + flag;
    return ZERO_OK;
}

static zero_status read_rotary(const char *path, const json_t *root, zero_shape *s)
{
    const char *key = "rope_parameters", *type = "default";
    const json_t *rope = json_object_get(root, key);
    const bool has_part = s->kind->has & ZERO_HAS_PART;
    const double said = s->theta;
    double part = has_part && s->rotary > 0.0 ? s->rotary : 1.0;
    if (rope && !json_is_null(rope)) {
        ZERO_TRY(zero_json_object(path, root, key, &rope));
        ZERO_TRY(zero_json_real(path, rope, "rope_theta", &s->theta));
        ZERO_FORMAT_IF(s->theta != said && json_object_get(root, "rope_theta"),
                       "%s: \"rope_theta\" is %.15g, and %.15g in \"%s\"", path, said,
                       s->theta, key);
    } else {
        rope = json_object_get(root, key = "rope_scaling");
        if (rope && !json_is_null(rope)) ZERO_TRY(zero_json_object(path, root, key, &rope));
    }
    for (int i = 0; i < 2; i++) {
        const json_t *in = i == 0 ? root : rope;
        const double wanted = part;
        if (!json_object_get(in, "partial_rotary_factor")) continue;
        ZERO_TRY(zero_json_real(path, in, "partial_rotary_factor", &part));
        ZERO_FAIL_IF(
            part != wanted && !(has_part && s->rotary == 0.0), ZERO_ERR_UNSUPPORTED,
            "%s: \"partial_rotary_factor\" is %g: this program turns %s channels of a head",
            path, part, has_part ? "\"rotary_pct\" of the" : "all");
        if (has_part) s->rotary = part;
    }
    if (json_object_get(rope, "rope_type"))
        ZERO_TRY(zero_json_text(path, rope, "rope_type", &type));
    else if (json_object_get(rope, "type"))
        ZERO_TRY(zero_json_text(path, rope, "type", &type));
    if (zero_same_text(type, "llama3")) {
        ZERO_TRY(zero_json_real(path, rope, "factor", &s->scaling.factor));
        ZERO_TRY(zero_json_real(path, rope, "low_freq_factor", &s->scaling.low));
        ZERO_TRY(zero_json_real(path, rope, "high_freq_factor", &s->scaling.high));
        return zero_json_whole(path, rope, "original_max_position_embeddings", 1,
                               INT64_C(1) << 24, &s->scaling.seq);
    }
    ZERO_FAIL_IF(!zero_same_text(type, "default"), ZERO_ERR_UNSUPPORTED,
                 "%s: \"%s\" is of the type \"%s\": this program computes \"default\" and "
                 "\"llama3\"; for texts of the length that the model was first trained on, "
                 "take it out of the file",
                 path, key, ZERO_SHOWN_SHORT(type));
    return ZERO_OK;
}

static zero_status read_root(const char *path, const json_t *root, zero_shape *shape)
{
    zero_shape s = {.layers = 0};
    ZERO_FORMAT_IF(!json_is_object(root), "%s: expected one JSON object", path);
    ZERO_TRY(find_kind(path, root, &s.kind));
    const json_t *packed = json_object_get(root, "quantization_config");
    ZERO_FAIL_IF(packed && !json_is_null(packed), ZERO_ERR_UNSUPPORTED,
                 "%s: \"quantization_config\": this program reads F32, F16 and BF16: take "
                 "the model's unquantized files",
                 path);
    for (const zero_config_member *m = s.kind->config; m->key; m++)
        if (m->use == ZERO_CONFIG_EXPECTED && !(s.kind->has & m->lacks))
            ZERO_TRY(check_member(path, root, m, s.kind));
    if (s.kind->has & ZERO_HAS_ROTARY) s.theta = 1e4; /* transformers', as the next */
    if (s.kind->has & ZERO_HAS_RMS) s.eps = 1e-6;
    /* Tensors show a GPT-2's sizes; another architecture's file must say them. */
    const bool is_gpt2 = s.kind->has & ZERO_HAS_POSITIONS;
    double said, other;
    number n;
    for (int i = 0; i < ZERO_SHAPE_FIELDS; i++) {
        if (!number_of(s.kind, i, &n)) continue;
        size_t at = n.field->offset;
        bool is_needed = !is_gpt2 && n.field->kind == ZERO_SHAPE_WHOLE &&
                         at != offsetof(zero_shape, kv_heads) &&
                         at != offsetof(zero_shape, head_size);
        ZERO_TRY(read_number(path, root, n.key, n.field->kind, is_needed, &said));
        ZERO_TRY(read_number(path, root, n.also, n.field->kind, false, &other));
        ZERO_FORMAT_IF(!isnan(said) && !isnan(other) && said != other,
                       "%s: \"%s\" is %.15g, but \"%s\", which means the same, is %.15g",
                       path, n.key, said, n.also, other);
        if (isnan(said)) said = other;
        if (!isnan(said)) zero_shape_set(&s, n.field, said);
    }
    ZERO_TRY(read_number(path, root, "n_inner", ZERO_SHAPE_WHOLE, false, &said));
    ZERO_FAIL_IF(
        is_gpt2 && !isnan(said) && said != 4.0 * (double)s.hidden, ZERO_ERR_UNSUPPORTED,
        "%s: \"n_inner\" is %.15g: this program's blocks have 4 n_embd = %" PRId64 " there",
        path, said, 4 * s.hidden);
    if (s.kind->has & ZERO_HAS_ROTARY) {
        ZERO_TRY(read_rotary(path, root, &s));
        /* Where a layer sees the last positions alone, a model of as many positions sees
         * them all. */
        double window, first;
        ZERO_TRY(
            read_number(path, root, "sliding_window", ZERO_SHAPE_WHOLE, false, &window));
        ZERO_TRY(
            read_number(path, root, "max_window_layers", ZERO_SHAPE_WHOLE, false, &first));
        bool is_off = json_is_false(json_object_get(root, "use_sliding_window")) ||
                      first >= (double)s.layers;
        if (!is_off && window < (double)s.seq) s.seq = (int64_t)window;
        ZERO_FORMAT_IF(zero_shape_check(&s) != ZERO_OK, "%s: %s", path, zero_last_error());
        s = zero_shape_complete(&s);
    }
    *shape = s;
    return ZERO_OK;
}

zero_status zero_hugging_face_read_config(const char *path, const zero_bytes *text,
                                          zero_shape *shape)
{
    json_auto_t *root = NULL;
    ZERO_TRY(zero_json_parse(path, text->bytes, text->len, &root));
    return read_root(path, root, shape);
}

/* ---- writing ---- */

static json_t *value_of(const zero_config_member *row, const zero_hugging_face_export *e)
{
    const zero_shape *s = e->model->shape;
    int32_t id = -1;
    char text[32];
    switch (row->use) {
    case ZERO_CONFIG_TYPE: return json_string(zero_hugging_face_types[e->type].config);
    case ZERO_CONFIG_SEQ: return json_integer(s->seq);
    case ZERO_CONFIG_DROPOUT: /* a float has 9 digits */
        zero_print(text, "%.9g", (double)s->dropout);
        return json_real(strtod(text, NULL));
    case ZERO_CONFIG_TOKEN:
        if (zero_hugging_face_special(e->kept, e->tokenizer, s, row->values[0], &id) !=
            ZERO_OK)
            return NULL;
        return id >= 0 ? json_integer(id) : json_null();
    case ZERO_CONFIG_EXPECTED:
    case ZERO_CONFIG_WRITTEN: break;
    }
    return json_loads(row->values[0], JSON_DECODE_ANY, NULL);
}

static json_t *number_value(const number *n, const zero_shape *s)
{
    double value = zero_shape_get(s, n->field);
    switch (n->field->kind) {
    case ZERO_SHAPE_FLAG: return json_boolean(value > 0.0);
    case ZERO_SHAPE_REAL: return json_real(value);
    case ZERO_SHAPE_WHOLE: break;
    }
    return json_integer((json_int_t)value);
}

static json_t *scaling_value(const zero_shape *s)
{
    if (s->scaling.factor == 0.0) return json_null();
    return json_pack("{s:s, s:f, s:f, s:f, s:I}", "rope_type", "llama3", "factor",
                     s->scaling.factor, "low_freq_factor", s->scaling.low,
                     "high_freq_factor", s->scaling.high,
                     "original_max_position_embeddings", (json_int_t)s->scaling.seq);
}

/* The config.json that is written, a kept one as that of the model: the caller's. Without
 * a table of positions a model keeps as many as it had. */
zero_status zero_hugging_face_make_config(const zero_hugging_face_export *e, json_t **root)
{
    const zero_shape *s = e->model->shape;
    json_t *made;
    number n;
    ZERO_TRY(zero_hugging_face_parse_kept(e->kept, ZERO_HUGGING_FACE_CONFIG, &made));
    const bool is_kept = made != NULL, turns = s->kind->has & ZERO_HAS_ROTARY;
    if (!is_kept) made = json_object();
    json_object_del(made, "dtype");
    json_object_del(made, "rope_parameters");
    bool is_set = json_object_set_new(made, "architectures",
                                      json_pack("[s]", s->kind->class_name)) == 0 &&
                  json_object_set_new(made, "model_type", json_string(s->kind->name)) == 0;
    for (int i = 0; i < ZERO_SHAPE_FIELDS; i++) {
        if (!number_of(s->kind, i, &n)) continue;
        bool is_length = n.field->offset == offsetof(zero_shape, seq);
        if (is_kept && turns && is_length) continue;
        if (n.also) json_object_del(made, n.also);
        is_set &= json_object_set_new(made, n.key, number_value(&n, s)) == 0;
    }
    if (turns) is_set &= json_object_set_new(made, "rope_scaling", scaling_value(s)) == 0;
    for (const zero_config_member *m = s->kind->config; m->key; m++)
        if (!(s->kind->has & m->lacks) &&
            (!is_kept || m->use == ZERO_CONFIG_TYPE || m->use == ZERO_CONFIG_SEQ))
            is_set &= json_object_set_new(made, m->key, value_of(m, e)) == 0;
    if (json_is_null(json_object_get(made, "pad_token_id")) && !is_kept)
        json_object_del(made, "pad_token_id");
    *root = made;
    if (is_set) return ZERO_OK;
    json_decref(made);
    return zero_fail(ZERO_ERR_NOMEM, "no memory for " ZERO_HUGGING_FACE_CONFIG);
}

zero_status zero_hugging_face_lost_positions(const json_t *kept, const zero_shape *shape,
                                             int64_t *began)
{
    json_t *root;
    number n;
    *began = 0;
    if (!(shape->kind->has & ZERO_HAS_POSITIONS)) return ZERO_OK;
    ZERO_TRY(zero_hugging_face_parse_kept(kept, ZERO_HUGGING_FACE_CONFIG, &root));
    for (int i = 0; i < ZERO_SHAPE_FIELDS; i++)
        if (number_of(shape->kind, i, &n) && n.field->offset == offsetof(zero_shape, seq)) {
            const json_t *own = json_object_get(root, n.key);
            int64_t length = json_integer_value(own ? own : json_object_get(root, n.also));
            if (length > shape->seq) *began = length;
        }
    json_decref(root);
    return ZERO_OK;
}
