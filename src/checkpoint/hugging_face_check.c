/* Compares a file's tensors with the model's. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "checkpoint/hugging_face.h"
#include "io/json_input.h"

#define HEAD "lm_head.weight"

static const struct {
    const char *name;
    zero_type type;
} types[] = {{"F32", ZERO_FP32}, {"F16", ZERO_FP16}, {"BF16", ZERO_BF16}};

/* All mismatches are counted, and as many are named as fit a message. */
struct problems {
    char text[600];
    size_t len;
    int n, n_named;
};

static void add(struct problems *p, const char *text)
{
    p->n++;
    /* All after the first that does not fit are left out. */
    if (p->n_named < p->n - 1) return;
    int n = snprintf(p->text + p->len, sizeof p->text - p->len, "%s%s",
                     p->n > 1 ? "; " : "", text);
    if (p->len + (size_t)n >= sizeof p->text) {
        p->text[p->len] = '\0';
        return;
    }
    p->len += (size_t)n;
    p->n_named++;
}

static zero_status tell(const struct problems *p, const char *path)
{
    char more[32] = "";
    if (p->n == 0) return ZERO_OK;
    if (p->n > p->n_named) snprintf(more, sizeof more, "; and %d more", p->n - p->n_named);
    return zero_fail(ZERO_ERR_FORMAT, "%s does not hold this model: %s%s", path, p->text,
                     more);
}

/* ---- names ---- */

static const char *without_prefix(const char *name)
{
    size_t n = strlen(ZERO_HUGGING_FACE_PREFIX);
    return strncmp(name, ZERO_HUGGING_FACE_PREFIX, n) == 0 ? name + n : name;
}

/* "h.12.attn.bias": returns 12 and sets *rest to "attn.bias"; -1 for other names. */
static int64_t layer_of(const char *name, const char **rest)
{
    char *end;
    if (strncmp(name, "h.", 2) != 0 || name[2] < '0' || name[2] > '9') return -1;
    long long layer = strtoll(name + 2, &end, 10);
    *rest = end;
    return *end == '.' && layer < ZERO_GPT2_LAYERS ? layer : -1;
}

/* The causal mask, which older files store beside the weights. */
static bool is_mask(const char *name)
{
    const char *rest;
    return layer_of(name, &rest) >= 0 &&
           (strcmp(rest, ".attn.bias") == 0 || strcmp(rest, ".attn.masked_bias") == 0);
}

static const zero_safetensors_entry *find(const zero_safetensors *table, const char *name,
                                          bool *twice)
{
    char prefixed[96];
    snprintf(prefixed, sizeof prefixed, "%s%s", ZERO_HUGGING_FACE_PREFIX, name);
    const zero_safetensors_entry *plain = zero_safetensors_find(table, name),
                                 *other = zero_safetensors_find(table, prefixed);
    *twice = plain && other;
    return other ? other : plain;
}

/* ---- shapes ---- */

static void print_dims(int n, const int64_t *dims, char text[64])
{
    size_t len = (size_t)snprintf(text, 64, "[");
    for (int i = 0; i < n && len < 64; i++)
        len += (size_t)snprintf(text + len, 64 - len, "%s%" PRId64, i > 0 ? ", " : "",
                                dims[i]);
    if (len < 63) snprintf(text + len, 64 - len, "]");
}

/* The dimensions that one of our tensors has in such a file. */
static int dims_of(const zero_tensor *t, int64_t dims[2])
{
    bool is_matrix = t->decays; /* also positions of T = 1, with one row */
    dims[0] = is_matrix ? t->rows : t->cols;
    dims[1] = t->cols;
    return is_matrix ? 2 : 1;
}

static bool has_dims(const zero_safetensors_entry *e, int n, const int64_t *dims)
{
    return e->n_dims == n && memcmp(e->dims, dims, (size_t)n * sizeof *dims) == 0;
}

/* Positions may be more than the model's: the first rows are read. */
static bool fits(const zero_tensor *t, const zero_safetensors_entry *e)
{
    int64_t dims[2];
    int n = dims_of(t, dims);
    bool has_more_rows = n == 2 && e->n_dims == 2 && e->dims[0] > dims[0] &&
                         e->dims[1] == dims[1] && strcmp(t->name, "wpe.weight") == 0;
    return has_more_rows || has_dims(e, n, dims);
}

static bool find_type(const zero_safetensors_entry *e, zero_type *type)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(e->type, types[i].name) == 0) {
            *type = types[i].type;
            return true;
        }
    return false;
}

/* Compares a tensor of the model with the file's; e is NULL if the file does not have it. */
static void check_tensor(const zero_tensor *t, const char *name,
                         const zero_safetensors_entry *e, zero_hugging_face_place *place,
                         struct problems *p)
{
    char text[320], ours[64], theirs[64] = "";
    int64_t dims[2];
    int n = dims_of(t, dims);
    print_dims(n, dims, ours);
    if (e) print_dims(e->n_dims, e->dims, theirs);
    if (e) place->at = e->begin;
    if (e && fits(t, e) && find_type(e, &place->type)) return;
    if (!e)
        snprintf(text, sizeof text, "%s %s is missing", name, ours);
    else if (!fits(t, e))
        snprintf(text, sizeof text, "%s is %s and should be %s", name, theirs, ours);
    else
        snprintf(text, sizeof text, "%s has type %.16s: expected F32, F16 or BF16", name,
                 e->type);
    add(p, text);
}

static void check_once(const char *name, bool twice, struct problems *p)
{
    char text[320];
    if (!twice) return;
    snprintf(text, sizeof text, "%s exists twice, with and without %s", name,
             ZERO_HUGGING_FACE_PREFIX);
    add(p, text);
}

static void check_extra(const zero_safetensors_entry *e, struct problems *p)
{
    char text[320], dims[64], shown[ZERO_JSON_SHOWN];
    print_dims(e->n_dims, e->dims, dims);
    snprintf(text, sizeof text, "%.160s %s is not one of the model's",
             zero_json_shown(e->name, shown), dims);
    add(p, text);
}

/* Tensors that are neither the model's (`used`) nor ignorable. */
static void check_others(const zero_safetensors *table, const bool *used,
                         struct problems *p)
{
    for (int i = 0; i < table->n; i++) {
        const zero_safetensors_entry *e = &table->entries[i];
        if (used[i] || is_mask(without_prefix(e->name)) || strcmp(e->name, HEAD) == 0)
            continue;
        check_extra(e, p);
    }
}

zero_status zero_hugging_face_match(const char *path, const zero_safetensors *table,
                                    const zero_model *model,
                                    zero_hugging_face_place *places,
                                    zero_hugging_face_place *head)
{
    struct problems p = {0};
    bool *used = calloc((size_t)table->n + 1, sizeof *used);
    if (!used) return zero_fail(ZERO_ERR_NOMEM, "no memory to check %d tensors", table->n);
    for (int i = 0; i < model->n_tensors; i++) {
        const zero_tensor *t = &model->tensors[i];
        bool twice;
        const zero_safetensors_entry *e = find(table, t->name, &twice);
        check_once(t->name, twice, &p);
        check_tensor(t, t->name, e, &places[i], &p);
        if (e) used[e - table->entries] = true;
        if (twice) used[zero_safetensors_find(table, t->name) - table->entries] = true;
    }
    *head = (zero_hugging_face_place){0};
    const zero_safetensors_entry *e = zero_safetensors_find(table, HEAD);
    if (e) check_tensor(&model->tensors[ZERO_WTE], HEAD, e, head, &p);
    check_others(table, used, &p);
    free(used);
    return tell(&p, path);
}

zero_gpt2_shape zero_hugging_face_shape(const zero_safetensors *table)
{
    zero_gpt2_shape shape = {0};
    bool twice;
    const zero_safetensors_entry *wte = find(table, "wte.weight", &twice),
                                 *wpe = find(table, "wpe.weight", &twice);
    if (!wte || !wpe || wte->n_dims != 2 || wpe->n_dims != 2) return shape;
    shape.vocab = wte->dims[0];
    shape.hidden = wte->dims[1];
    shape.seq = wpe->dims[0];
    for (int i = 0; i < table->n; i++) {
        const char *rest;
        int64_t layer = layer_of(without_prefix(table->entries[i].name), &rest);
        if (layer >= shape.layers) shape.layers = layer + 1;
    }
    return shape;
}
