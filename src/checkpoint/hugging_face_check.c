/* Compares a file's tensors with the model's. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "checkpoint/hugging_face.h"
#include "io/json_input.h"

#define EMBEDDING "wte.weight"
#define POSITIONS "wpe.weight"
#define HEAD      "lm_head.weight"

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

/* ---- names ---- */

enum { PREFIX = 160, NAME = PREFIX + 64 }; /* bytes, at most */

/* The tensors, and what stands before all of their names, as torch.compile, DDP and
 * classes around a model add it: "", "transformer.", "_orig_mod.transformer.". */
struct names {
    const zero_safetensors *table;
    char prefix[PREFIX];
};

/* The prefix is that of the first embedding. False if there is none. */
static bool read_names(const zero_safetensors *table, struct names *names)
{
    const size_t n = sizeof EMBEDDING - 1;
    *names = (struct names){.table = table};
    for (int i = 0; i < table->n; i++) {
        const char *name = table->entries[i].name;
        size_t len = strlen(name), before = len - n;
        if (len < n || strcmp(name + before, EMBEDDING) != 0) continue;
        if (before > 0 && (name[before - 1] != '.' || before >= PREFIX)) continue;
        memcpy(names->prefix, name, before);
        return true;
    }
    return false;
}

static const zero_safetensors_entry *find(const struct names *names, const char *name)
{
    char prefixed[NAME];
    snprintf(prefixed, sizeof prefixed, "%s%s", names->prefix, name);
    return zero_safetensors_find(names->table, prefixed);
}

/* "h.12.attn.bias", after the prefix: returns 12 and sets *rest to ".attn.bias"; -1 for
 * other names. */
static int64_t layer_of(const struct names *names, const char *name, const char **rest)
{
    char *end;
    size_t n = strlen(names->prefix);
    if (strncmp(name, names->prefix, n) != 0) return -1;
    name += n;
    if (strncmp(name, "h.", 2) != 0 || name[2] < '0' || name[2] > '9') return -1;
    long long layer = strtoll(name + 2, &end, 10);
    *rest = end;
    return *end == '.' && layer < ZERO_MOST_LAYERS ? layer : -1;
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
                         e->dims[1] == dims[1] && strcmp(t->name, POSITIONS) == 0;
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

/* Compares a tensor of the model with the file's; e is NULL if the file does not have
 * it. */
static void check_tensor(const zero_tensor *t, const char *name,
                         const zero_safetensors_entry *e, zero_hugging_face_place *place,
                         struct problems *p)
{
    char text[320], ours[64], theirs[64] = "";
    int64_t dims[2];
    int n = dims_of(t, dims);
    print_dims(n, dims, ours);
    if (e) print_dims(e->n_dims, e->dims, theirs);
    if (e) *place = (zero_hugging_face_place){.file = e->file, .at = e->begin};
    if (e && fits(t, e) && find_type(e, &place->type)) return;
    /* nn.Linear has [out, in], Hugging Face's GPT-2 [in, out]. */
    if (!e)
        snprintf(text, sizeof text, "%s %s is missing", name, ours);
    else if (!fits(t, e))
        snprintf(text, sizeof text, "%s is %s and should be %s%s", name, theirs, ours,
                 t->decays && has_dims(e, 2, (const int64_t[]){t->cols, t->rows})
                     ? ", transposed: this is nn.Linear's order"
                     : "");
    else
        snprintf(text, sizeof text, "%s has type %.16s: expected F32, F16 or BF16", name,
                 e->type);
    add(p, text);
}

zero_status zero_hugging_face_match(const char *path, const zero_safetensors *table,
                                    const zero_model *model,
                                    zero_hugging_face_place *places,
                                    zero_hugging_face_place *head)
{
    struct problems p = {0};
    struct names names;
    bool *used = calloc((size_t)table->n + 1, sizeof *used);
    ZERO_TRY(zero_allocated(used, "no memory to check %d tensors", table->n));
    (void)read_names(table, &names); /* without the embedding it is missing below */
    for (int i = 0; i < model->n_tensors; i++) {
        const zero_tensor *t = &model->tensors[i];
        const zero_safetensors_entry *e = find(&names, t->name);
        check_tensor(t, t->name, e, &places[i], &p);
        if (e) used[e - table->entries] = true;
    }
    *head = (zero_hugging_face_place){0};
    /* The head is not within the transformer. */
    struct names outer = names;
    size_t n = strlen(outer.prefix), k = sizeof ZERO_HUGGING_FACE_PREFIX - 1;
    if (n >= k && strcmp(outer.prefix + n - k, ZERO_HUGGING_FACE_PREFIX) == 0)
        outer.prefix[n - k] = '\0';
    const zero_safetensors_entry *e = find(&outer, HEAD);
    if (e) {
        check_tensor(&model->tensors[ZERO_WTE], HEAD, e, head, &p);
        used[e - table->entries] = true;
    }
    for (int i = 0; i < table->n; i++) {
        char text[320], dims[64], shown[ZERO_JSON_SHOWN];
        const char *rest;
        e = &table->entries[i];
        /* The causal mask, which older files store beside the weights. */
        bool is_mask =
            layer_of(&names, e->name, &rest) >= 0 &&
            (strcmp(rest, ".attn.bias") == 0 || strcmp(rest, ".attn.masked_bias") == 0);
        if (used[i] || is_mask) continue;
        print_dims(e->n_dims, e->dims, dims);
        snprintf(text, sizeof text, "%.160s %s is not one of the model's",
                 zero_json_shown(e->name, shown), dims);
        add(&p, text);
    }
    free(used);
    char more[32] = "";
    if (p.n == 0) return ZERO_OK;
    if (p.n > p.n_named) snprintf(more, sizeof more, "; and %d more", p.n - p.n_named);
    return zero_fail(ZERO_ERR_FORMAT, "%s does not hold this model: %s%s", path, p.text,
                     more);
}

zero_status zero_hugging_face_shape(const char *path, const zero_safetensors *table,
                                    zero_shape *shape)
{
    struct names names;
    char shown[ZERO_JSON_SHOWN] = "none";
    bool has_names = read_names(table, &names);
    const zero_safetensors_entry *wte = find(&names, EMBEDDING),
                                 *wpe = find(&names, POSITIONS);
    if (!has_names || !wpe || wte->n_dims != 2 || wpe->n_dims != 2)
        return zero_fail(
            ZERO_ERR_FORMAT,
            "%s: not the weights of a GPT-2: expected matrices " EMBEDDING " and " POSITIONS
            ", after any one prefix; its first tensor is %s",
            path, table->n > 0 ? zero_json_shown(table->entries[0].name, shown) : shown);
    zero_shape s = {.vocab = wte->dims[0], .hidden = wte->dims[1], .seq = wpe->dims[0]};
    for (int i = 0; i < table->n; i++) {
        const char *rest;
        int64_t layer = layer_of(&names, table->entries[i].name, &rest);
        if (layer >= s.layers) s.layers = layer + 1;
    }
    *shape = s;
    return ZERO_OK;
}
