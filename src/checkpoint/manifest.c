#include "checkpoint/manifest_fields.h"

#include "checkpoint/hugging_face.h"
#include "io/json_input.h"

void zero_shard_name(int rank, int n_ranks, char name[64])
{
    snprintf(name, 64, "shard-%05d-of-%05d.safetensors", rank, n_ranks);
}

const char *const zero_manifest_cuts[ZERO_MANIFEST_CUTS] = {
    [ZERO_CUT_NONE] = "none", [ZERO_CUT_ROWS] = "rows", [ZERO_CUT_COLS] = "cols"};

#define TAIL_BEGIN " \"checksum\": \""
#define TAIL_END   "\"\n}\n"
_Static_assert(sizeof TAIL_BEGIN - 1 + ZERO_CHECKSUM - 1 + sizeof TAIL_END ==
                   ZERO_MANIFEST_TAIL,
               "the last line has a fixed length");

void zero_manifest_tail(const void *bytes, size_t len, char tail[ZERO_MANIFEST_TAIL])
{
    char hex[ZERO_CHECKSUM];
    zero_checksum(bytes, len, hex);
    snprintf(tail, ZERO_MANIFEST_TAIL, TAIL_BEGIN "%s" TAIL_END, hex);
}

/* ---- reading ---- */

static bool is_plain(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f) return false;
    return true;
}

/* If an optimizer moves whole matrices, one more number says whether the tensor is one: 0
 * or 1. In a pipeline the last number is the stage that has the tensor. */
static zero_status take_tensor(const char *path, const json_t *value, int i,
                               const zero_state_layout *layout, zero_tensor *t, int *stage)
{
    const bool is_shared = layout->slices > 1, has_stage = layout->pp > 1;
    const bool tells_whole = zero_rule_at(layout->optimizer)->moves_matrices;
    const size_t size = (is_shared ? 6u : 4u) + tells_whole + has_stage;
    const json_t *whole = json_array_get(value, size - 1 - has_stage);
    const json_t *last = json_array_get(value, size - 1);
    const char *name = json_string_value(json_array_get(value, 0));
    const json_t *numbers[3];
    bool sound = json_array_size(value) == size && name && strlen(name) < sizeof t->name &&
                 is_plain(name);
    for (size_t k = 0; k < 3; k++) {
        numbers[k] = json_array_get(value, k + 1);
        sound = sound && json_is_integer(numbers[k]);
    }
    json_int_t group = json_integer_value(numbers[2]);
    const json_int_t is_whole = tells_whole ? json_integer_value(whole) : 0;
    sound =
        sound && (!tells_whole || json_is_integer(whole)) && is_whole >= 0 && is_whole <= 1;
    if (has_stage) {
        sound = sound && json_is_integer(last) && json_integer_value(last) >= 0 &&
                json_integer_value(last) < layout->pp;
        *stage = (int)json_integer_value(last);
    }
    ZERO_FORMAT_IF(
        !sound || group < 0 || group > i,
        "%s: tensor %d: expected [name, rows, columns, group%s%s%s], a name of at "
        "most %zu bytes without control characters, and no group above %d",
        path, i, is_shared ? ", cut, parts" : "", tells_whole ? ", 0 or 1" : "",
        has_stage ? ", stage" : "", sizeof t->name - 1, i);
    *t = (zero_tensor){.rows = json_integer_value(numbers[0]),
                       .cols = json_integer_value(numbers[1]),
                       .group = (int)group,
                       .is_hidden = is_whole == 1};
    zero_print(t->name, "%s", name);
    if (!is_shared) return ZERO_OK;
    /* Only columns have several parts. */
    const char *cut_name = json_string_value(json_array_get(value, 4));
    const json_t *parts = json_array_get(value, 5);
    json_int_t n = json_integer_value(parts);
    int cut = 0;
    while (cut < ZERO_MANIFEST_CUTS && cut_name &&
           !zero_same_text(zero_manifest_cuts[cut], cut_name))
        cut++;
    int64_t most = cut == ZERO_CUT_COLS ? t->cols : 1;
    ZERO_FORMAT_IF(
        !cut_name || cut == ZERO_MANIFEST_CUTS || !json_is_integer(parts) || n < 1 ||
            n > most || n > INT32_MAX,
        "%s: tensor %d: expected [name, rows, columns, group, cut, parts], a cut "
        "none, rows or cols, and 1 part, or as many as divide cols",
        path, i);
    t->cut = (zero_cut)cut;
    t->cut_parts = (int)n;
    return ZERO_OK;
}

static zero_status take_tensors(const char *path, const json_t *list, zero_manifest *m)
{
    zero_state_layout layout = m->table.layout;
    size_t n = json_array_size(list);
    ZERO_FORMAT_IF(n < 1 || n > INT32_MAX, "%s: \"tensors\": expected at least one", path);
    ZERO_FREED zero_tensor *tensors = NULL;
    ZERO_FREED int *stages = NULL;
    ZERO_TRY(zero_new(&tensors, n, "tensors"));
    ZERO_TRY(zero_new(&stages, n, "tensors"));
    for (size_t i = 0; i < n; i++)
        ZERO_TRY(take_tensor(path, json_array_get(list, i), (int)i, &layout, &tensors[i],
                             &stages[i]));
    layout.stages = stages;
    zero_status st = zero_state_table_init(&m->table, (int)n, tensors, &layout);
    return st == ZERO_ERR_FORMAT ? zero_fail(st, "%s: %s", path, zero_last_error()) : st;
}

/* The layout says how many bytes the shards of p have at least. */
static zero_status check_bytes_of(const char *path, const zero_manifest *m, int p)
{
    const zero_state_layout *l = &m->table.layout;
    const int states = zero_rule_least_states(l->optimizer);
    const uint64_t size = (uint64_t)(1 + states) * sizeof(float);
    ZERO_AT_END(zero_state_local_destroy) zero_state_local local = {0};
    ZERO_FREED uint64_t *elements = NULL;
    ZERO_TRY(zero_new(&elements, l->n_ranks / l->tp, "shards"));
    ZERO_TRY(zero_state_local_init(&local, &m->table, p));
    ZERO_TRY(zero_state_add_elements(&m->table, &local, elements));
    for (int rank = p; rank < l->n_ranks; rank += l->tp) {
        uint64_t n = elements[rank / l->tp], bytes = m->shards[rank].bytes;
        ZERO_FORMAT_IF(n > UINT64_MAX / size || bytes < size * n,
                       "%s: shard %d has %" PRIu64 " bytes, but the %" PRIu64
                       " parameters that its rank owned take %" PRIu64 " and a header",
                       path, rank, bytes, n, size * n);
    }
    return ZERO_OK;
}

static zero_status take_object(const char *path, const json_t *object, const field *fields,
                               void *to);

static zero_status take_shards(const char *path, const json_t *list, zero_manifest *m)
{
    size_t n = json_array_size(list);
    const zero_state_layout *layout = &m->table.layout;
    ZERO_FORMAT_IF(n != (size_t)layout->n_ranks, "%s: %zu shards, but \"ranks\" is %d",
                   path, n, layout->n_ranks);
    ZERO_TRY(zero_new(&m->shards, n, "shards"));
    for (size_t i = 0; i < n; i++)
        ZERO_TRY(take_object(path, json_array_get(list, i), of_file, &m->shards[i]));
    for (int p = 0; p < layout->tp; p++) ZERO_TRY(check_bytes_of(path, m, p));
    return ZERO_OK;
}

static zero_status take_plain(const char *path, const json_t *object, const char *key,
                              const char **text)
{
    ZERO_TRY(zero_json_text(path, object, key, text));
    ZERO_FORMAT_IF(!is_plain(*text), "%s: \"%s\" has control characters in it", path, key);
    return ZERO_OK;
}

static zero_status take_name(const char *path, const json_t *object, const field *f,
                             void *to)
{
    const char *name;
    ZERO_TRY(zero_json_text(path, object, f->key, &name));
    if (f->kind == TYPE && zero_type_find(name, to)) return ZERO_OK;
    if (f->kind == RULE && zero_rule_find(name, to) && *(int *)to > 0) return ZERO_OK;
    for (zero_partition_scheme s = ZERO_PARTITION_SLICE;
         f->kind == SCHEME && s <= ZERO_PARTITION_OWNER; s++)
        if (zero_same_text(name, zero_partition_scheme_name(s))) {
            *(zero_partition_scheme *)to = s;
            return ZERO_OK;
        }
    return zero_fail(ZERO_ERR_FORMAT, "%s: \"%s\": expected %s, found '%.40s'", path,
                     f->key,
                     f->kind == TYPE   ? "fp32, bf16 or fp16"
                     : f->kind == RULE ? "an optimizer that this program has"
                                       : "slice or owner",
                     name);
}

static zero_status take_copy(const char *path, const json_t *root, const field *f,
                             json_t **to)
{
    const json_t *object;
    const char *key, *text;
    json_t *value;
    ZERO_TRY(zero_json_object(path, root, f->key, &object));
    if (f->kind == KEPT) ZERO_TRY(zero_hugging_face_check_kept(path, object));
    *to = json_deep_copy(object);
    ZERO_TRY(zero_allocated(*to, "no memory for \"%s\"", f->key));
    if (f->kind == KEPT) return ZERO_OK;
    json_object_foreach(*to, key, value)
    {
        ZERO_FORMAT_IF(!is_plain(key), "%s: \"%s\" has a key with control characters", path,
                       f->key);
        ZERO_TRY(take_plain(path, *to, key, &text));
    }
    return ZERO_OK;
}

static zero_status take(const char *path, const json_t *object, const field *f, void *base)
{
    void *to = (char *)base + f->at;
    int64_t whole;
    double scale;
    const json_t *value;
    switch (f->kind) {
    case WHOLE: return zero_json_whole(path, object, f->key, f->least, f->most, to);
    case INT:
        ZERO_TRY(zero_json_whole(path, object, f->key, f->least, f->most, &whole));
        *(int *)to = (int)whole;
        return ZERO_OK;
    case SCALE:
        ZERO_TRY(zero_json_real(path, object, f->key, &scale));
        *(float *)to = (float)scale;
        if (scale >= (double)ZERO_LOSS_SCALE_LEAST && scale <= (double)ZERO_LOSS_SCALE_MOST)
            return ZERO_OK;
        return zero_fail(ZERO_ERR_FORMAT, "%s: \"%s\": expected %g to %g, found %g", path,
                         f->key, (double)ZERO_LOSS_SCALE_LEAST,
                         (double)ZERO_LOSS_SCALE_MOST, scale);
    case TYPE:
    case RULE:
    case SCHEME: return take_name(path, object, f, to);
    case CHECKSUM:
    case DATA:
    case TEXT: {
        const char *text;
        const size_t most = sizeof((zero_manifest *)to)->arithmetic - 1;
        ZERO_TRY(f->kind == TEXT ? take_plain(path, object, f->key, &text)
                                 : zero_json_text(path, object, f->key, &text));
        size_t len = strlen(text);
        bool is_checksum =
            len == ZERO_CHECKSUM - 1 && strspn(text, "0123456789abcdef") == len;
        if (f->kind == TEXT && len > most) /* cut within a letter it would not be UTF-8 */
            return zero_fail(ZERO_ERR_FORMAT,
                             "%s: \"%s\": expected at most %zu bytes, found %zu", path,
                             f->key, most, len);
        ZERO_FORMAT_IF(!is_checksum &&
                           (f->kind == CHECKSUM || (f->kind == DATA && len > 0)),
                       "%s: \"%s\": expected 32 hexadecimal digits, found '%.40s'", path,
                       f->key, text);
        memcpy(to, text, len + 1);
        return ZERO_OK;
    }
    case SHAPE:
    case OBJECT:
        ZERO_TRY(zero_json_object(path, object, f->key, &value));
        return f->kind == SHAPE ? zero_shape_read(path, value, true, to)
                                : take_object(path, value, f->fields, to);
    case OPTIONS:
    case KEPT: return take_copy(path, object, f, to);
    case TENSORS: return take_tensors(path, json_object_get(object, f->key), base);
    case SHARDS: return take_shards(path, json_object_get(object, f->key), base);
    }
    return ZERO_OK;
}

static zero_status take_object(const char *path, const json_t *object, const field *fields,
                               void *to)
{
    const char *keys[8];
    int n = 0;
    for (; fields[n].key; n++) keys[n] = fields[n].key;
    ZERO_TRY(zero_json_only(path, object, n, keys));
    for (int i = 0; i < n; i++) ZERO_TRY(take(path, object, &fields[i], to));
    return ZERO_OK;
}

static zero_status check_tail(const char *path, const unsigned char *bytes, size_t len)
{
    const size_t tail_len = ZERO_MANIFEST_TAIL - 1;
    char tail[ZERO_MANIFEST_TAIL];
    if (len > tail_len) {
        zero_manifest_tail(bytes, len - tail_len, tail);
        if (memcmp(bytes + len - tail_len, tail, tail_len) == 0) return ZERO_OK;
    }
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s: was changed after it was written: its last line is not the "
                     "checksum of the %zu bytes before it",
                     path, len > tail_len ? len - tail_len : 0);
}

static zero_status take_all(const char *path, const json_t *root, zero_manifest *m)
{
    /* The first version with a member; it must be there in that version. */
    static const int since[N_IFS] = {[IF_SHARED] = 2,
                                     [IF_KEPT] = 3,
                                     [IF_SHAPE] = 4,
                                     [IF_OPTIMIZER] = 5,
                                     [IF_STAGES] = 6};
    const int version = (int)zero_get_whole(root, "version");
    const char *keys[ZERO_COUNT(members) + 3] = {"format", "version"};
    int n = 2;
    for (const field *f = members; f->key; f++)
        if (since[f->when] <= version) keys[n++] = f->key;
    keys[n++] = "checksum";
    ZERO_TRY(zero_json_only(path, root, n, keys));
    m->has_shape = (version != 4 && json_object_get(root, "gpt2")) ||
                   (version >= 4 && json_object_get(root, "shape"));
    m->has_tokenizer = json_object_get(root, "tokenizer") != NULL;
    m->table.layout.tp = m->table.layout.slices = 1;
    for (const field *f = members; f->key; f++) {
        bool is_needed = f->when == ALWAYS || since[f->when] == version;
        if (is_needed || json_object_get(root, f->key)) ZERO_TRY(take(path, root, f, m));
    }
    m->shape.seed = m->has_shape ? m->seed : 0;
    return ZERO_OK;
}

zero_status zero_manifest_parse(const char *path, const void *bytes, size_t len,
                                zero_manifest *m)
{
    json_auto_t *root = NULL;
    ZERO_AT_END(zero_manifest_destroy) zero_manifest made = {0};
    ZERO_TRY(zero_json_parse(path, bytes, len, &root));
    /* A later version may differ in anything, so this is checked before all else. */
    const char *format = zero_get_string(root, "format");
    ZERO_FORMAT_IF(
        !format || !zero_same_text(format, ZERO_MANIFEST_FORMAT),
        "%s: not the manifest of a checkpoint: expected \"format\": \"" ZERO_MANIFEST_FORMAT
        "\"",
        path);
    int64_t version;
    ZERO_TRY(zero_json_whole(path, root, "version", 1, INT64_MAX, &version));
    ZERO_FORMAT_IF(version > ZERO_MANIFEST_VERSION,
                   "%s: a checkpoint of version %" PRId64
                   ", and this program reads versions up to %d: use a newer zero",
                   path, version, ZERO_MANIFEST_VERSION);
    ZERO_TRY(check_tail(path, bytes, len));
    ZERO_TRY(take_all(path, root, &made));
    ZERO_GIVE(m, made);
    return ZERO_OK;
}
