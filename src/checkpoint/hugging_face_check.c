/* Compares what files hold with the model: their tensors, and the shape that they and a
 * config.json have. */

#include "base/text.h"
#include "checkpoint/hugging_face.h"
#include "io/json_input.h"

const zero_hugging_face_type zero_hugging_face_types[ZERO_TYPES] = {
    [ZERO_FP32] = {"F32", "float32"},
    [ZERO_BF16] = {"BF16", "bfloat16"},
    [ZERO_FP16] = {"F16", "float16"}};

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
    const zero_architecture *kind;
    char prefix[PREFIX];
};

/* The prefix is that of the first embedding. False if there is none. */
static bool read_names(const zero_safetensors *table, const zero_architecture *kind,
                       struct names *names)
{
    const char *words = kind->embedding[ZERO_WTE].name;
    const size_t n = strlen(words);
    *names = (struct names){.table = table, .kind = kind};
    for (int i = 0; i < table->n; i++) {
        const char *name = table->entries[i].name;
        size_t len = strlen(name), before = len - n;
        if (len < n || !zero_same_text(name + before, words)) continue;
        if (before > 0 && (name[before - 1] != '.' || before >= PREFIX)) continue;
        memcpy(names->prefix, name, before);
        return true;
    }
    return false;
}

const char *zero_hugging_face_head(const zero_architecture *kind)
{
    const zero_tensor_row *last = &kind->final[kind->n_final - 1];
    return last->needs & ZERO_HAS_OWN_WORDS ? last->name : "lm_head.weight";
}

void zero_hugging_face_name(const zero_architecture *kind, const char *name,
                            char theirs[ZERO_HUGGING_FACE_NAME])
{
    bool is_head = zero_same_text(name, zero_hugging_face_head(kind));
    snprintf(theirs, ZERO_HUGGING_FACE_NAME, "%s%s", is_head ? "" : kind->prefix, name);
}

static const zero_safetensors_entry *find(const struct names *names, const char *name)
{
    char prefixed[NAME];
    const char *own = names->kind->prefix;
    size_t n = strlen(names->prefix);
    /* The head is not within the transformer. */
    if (zero_same_text(name, zero_hugging_face_head(names->kind)) &&
        zero_ends_in(names->prefix, own))
        n -= strlen(own);
    zero_print(prefixed, "%.*s%s", (int)n, names->prefix, name);
    return zero_safetensors_find(names->table, prefixed);
}

/* "h.12.attn.c_attn.bias", after the prefix: 12; -1 for other names. */
static int64_t layer_of(const struct names *names, const char *name)
{
    const char *layer = names->kind->layer;
    char *end;
    size_t n = strlen(names->prefix), k = strlen(layer);
    if (strncmp(name, names->prefix, n) != 0) return -1;
    name += n;
    if (strncmp(name, layer, k) != 0 || name[k] < '0' || name[k] > '9') return -1;
    long long number = strtoll(name + k, &end, 10);
    return *end == '.' && number < ZERO_MOST_LAYERS ? number : -1;
}

/* Masks and angles, which files of older versions have beside the parameters. */
static bool is_ignored(const struct names *names, const char *name)
{
    bool is_one = false;
    for (const char *const *end = names->kind->ignored; *end && !is_one; end++)
        is_one = zero_ends_in(name, *end);
    return is_one && strncmp(name, names->prefix, strlen(names->prefix)) == 0;
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

int zero_hugging_face_dims(const zero_tensor *t, int64_t dims[2])
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
static bool fits(const zero_architecture *kind, const zero_tensor *t,
                 const zero_safetensors_entry *e)
{
    int64_t dims[2];
    int n = zero_hugging_face_dims(t, dims);
    bool are_positions = (kind->has & ZERO_HAS_POSITIONS) &&
                         zero_same_text(t->name, kind->embedding[ZERO_WPE].name);
    bool has_more_rows = are_positions && n == 2 && e->n_dims == 2 &&
                         e->dims[0] > dims[0] && e->dims[1] == dims[1];
    return has_more_rows || has_dims(e, n, dims);
}

static bool find_type(const zero_safetensors_entry *e, zero_type *type)
{
    for (int i = 0; i < ZERO_TYPES; i++)
        if (zero_same_text(e->type, zero_hugging_face_types[i].file)) {
            *type = (zero_type)i;
            return true;
        }
    return false;
}

/* Compares a tensor of the model with the file's; e is NULL if the file does not have
 * it. */
static void check_tensor(const zero_architecture *kind, const zero_tensor *t,
                         const char *name, const zero_safetensors_entry *e,
                         zero_hugging_face_place *place, struct problems *p)
{
    char text[320], ours[64], theirs[64] = "";
    int64_t dims[2];
    int n = zero_hugging_face_dims(t, dims);
    print_dims(n, dims, ours);
    if (e) print_dims(e->n_dims, e->dims, theirs);
    if (e) *place = (zero_hugging_face_place){.file = e->file, .at = e->begin};
    if (e && fits(kind, t, e) && find_type(e, &place->type)) return;
    /* nn.Linear has [out, in], the Conv1D of a GPT-2 [in, out]. */
    if (!e)
        zero_print(text, "%s %s is missing", name, ours);
    else if (!fits(kind, t, e))
        zero_print(text, "%s is %s and should be %s%s", name, theirs, ours,
                   !t->decays || !has_dims(e, 2, (const int64_t[]){t->cols, t->rows}) ? ""
                   : t->out_in ? ", transposed: this is Conv1D's order"
                               : ", transposed: this is nn.Linear's order");
    else
        zero_print(text, "%s has type %.16s: expected F32, F16 or BF16", name, e->type);
    add(p, text);
}

zero_status zero_hugging_face_match(const char *path, const zero_safetensors *table,
                                    const zero_model *model,
                                    zero_hugging_face_place *places,
                                    zero_hugging_face_place *head)
{
    struct problems p = {0};
    struct names names;
    ZERO_FREED bool *used = NULL;
    ZERO_TRY(zero_new(&used, table->n + 1, "tensors"));
    const zero_shape *shape = model->shape;
    (void)read_names(table, shape->kind, &names); /* without words they are missing below */
    for (int i = 0; i < model->n_tensors; i++) {
        const zero_tensor *t = &model->tensors[i];
        const zero_safetensors_entry *e = find(&names, t->name);
        check_tensor(shape->kind, t, t->name, e, &places[i], &p);
        if (e) used[e - table->entries] = true;
    }
    *head = (zero_hugging_face_place){0};
    const char *own = zero_hugging_face_head(shape->kind);
    const zero_safetensors_entry *e = find(&names, own);
    if (e && !used[e - table->entries]) {
        check_tensor(shape->kind, &model->tensors[ZERO_WTE], own, e, head, &p);
        used[e - table->entries] = true;
    }
    for (int i = 0; i < table->n; i++) {
        char text[320], dims[64];
        e = &table->entries[i];
        if (used[i] || is_ignored(&names, e->name)) continue;
        print_dims(e->n_dims, e->dims, dims);
        zero_print(text, "%.160s %s is not one of the model's", ZERO_SHOWN_SHORT(e->name),
                   dims);
        add(&p, text);
    }
    char more[32] = "";
    if (p.n == 0) return ZERO_OK;
    if (p.n > p.n_named) zero_print(more, "; and %d more", p.n - p.n_named);
    return zero_fail(ZERO_ERR_FORMAT, "%s does not hold this model: %s%s", path, p.text,
                     more);
}

zero_status zero_hugging_face_shape(const char *path, const zero_safetensors *table,
                                    zero_shape *shape)
{
    const zero_architecture *kind = shape->kind;
    struct names names;
    const bool has_positions = kind->has & ZERO_HAS_POSITIONS;
    const char *words = kind->embedding[ZERO_WTE].name;
    const char *positions = has_positions ? kind->embedding[ZERO_WPE].name : "";
    bool has_names = read_names(table, kind, &names);
    const zero_safetensors_entry *wte = find(&names, words), *wpe = find(&names, positions);
    bool has_wpe = !has_positions || (wpe && wpe->n_dims == 2);
    ZERO_FORMAT_IF(!has_names || wte->n_dims != 2 || !has_wpe,
                   "%s: not the weights of a %s: expected matrices %s%s%s, after any one "
                   "prefix; its first tensor is %s%s",
                   path, kind->about, words, has_positions ? " and " : "", positions,
                   table->n > 0 ? ZERO_SHOWN_SHORT(table->entries[0].name) : "none",
                   has_positions ? "; other architectures need their config.json" : "");
    zero_shape s = {.kind = kind, .vocab = wte->dims[0], .hidden = wte->dims[1]};
    if (has_positions) s.seq = wpe->dims[0];
    for (int i = 0; i < table->n; i++)
        s.layers = zero_max(s.layers, layer_of(&names, table->entries[i].name) + 1);
    *shape = s;
    return ZERO_OK;
}

/* ---- comparing ---- */

/* Numbers that differ, as options that give what was found, where there is one, and as
 * words for what was wanted. */
struct differences {
    char found[256], wanted[256];
};

/* Zeros in `found` are unknown, but for flags. */
static bool differ(const zero_shape *found, const zero_shape *wanted, struct differences *d)
{
    *d = (struct differences){.found = ""};
    for (int i = 0; i < ZERO_SHAPE_FIELDS; i++) {
        const zero_shape_field *f = &zero_shape_fields[i];
        double theirs = zero_shape_get(found, f), ours = zero_shape_get(wanted, f);
        size_t n = strlen(d->found), k = strlen(d->wanted);
        char option[32];
        if ((found->kind->has & f->needs) != f->needs || theirs == ours) continue;
        if (theirs == 0.0 && f->kind != ZERO_SHAPE_FLAG) continue;
        zero_shape_option(f, option);
        if (f->kind == ZERO_SHAPE_FLAG)
            snprintf(d->found + n, sizeof d->found - n, " --%s %s", option,
                     theirs > 0.0 ? "on" : "off");
        else
            snprintf(d->found + n, sizeof d->found - n, " --%s %.15g", option, theirs);
        snprintf(d->wanted + k, sizeof d->wanted - k, "%s%s %.15g", k > 0 ? ", " : "",
                 option, ours);
    }
    return d->wanted[0] != '\0';
}

zero_status zero_hugging_face_compare(const char *path, const zero_shape *found,
                                      const zero_shape *wanted)
{
    struct differences d;
    zero_shape read = *found;
    ZERO_INVALID_IF(found->kind != wanted->kind,
                    "%s holds a model of the architecture %s, and this run's is %s: give "
                    "--architecture %s, or leave it out",
                    path, found->kind->name, wanted->kind->name, found->kind->name);
    if (wanted->seq < read.seq) read.seq = 0; /* the first positions are read */
    ZERO_INVALID_IF(differ(&read, wanted, &d),
                    "%s holds a %s of another shape than this run's (%s): give%s%s the "
                    "--model that has all of it",
                    path, found->kind->about, d.wanted, d.found, d.found[0] ? ", or" : "");
    return ZERO_OK;
}

zero_status zero_hugging_face_check_config(const char *path, const char *weights,
                                           const zero_shape *said,
                                           const zero_shape *tensors)
{
    struct differences d;
    zero_shape found = {.kind = said->kind, .layers = said->layers, .hidden = said->hidden};
    found.vocab = said->vocab;
    found.seq = tensors->seq > 0 ? said->seq : 0;
    ZERO_FORMAT_IF(differ(&found, tensors, &d),
                   "%s describes another model (%s) than that of the tensors in %s (%s): "
                   "files of two models, or not all files of one",
                   path, d.found + 1, weights, d.wanted);
    return ZERO_OK;
}
