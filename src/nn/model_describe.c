/* model_describe.c - completes a model from its tables, and says what is wrong with
 * them. */
#include "nn/model.h"

#include "base/utf8.h"

static const int64_t most_params = INT64_C(1) << 62;

/* ---- names ---- */

/* The names of a table: record i's is at `first` + i * `stride`, in `size` bytes. */
struct names {
    const char *kind, *first;
    size_t stride, size;
    int n;
};

static const char *name_of(const struct names *list, int i)
{
    return list->first + list->stride * (size_t)i;
}

static int by_text(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

/* Names go into messages, manifests and file formats, where quotes and control characters,
 * those of U+0080 to U+009F among them, would need an escape. */
static bool is_plain(const char *name)
{
    const unsigned char *at = (const unsigned char *)name;
    size_t left = strlen(name);
    while (left > 0) {
        size_t len = zero_utf8_length(at, left);
        bool is_control = *at < 0x20 || *at == 0x7f || (*at == 0xc2 && at[1] < 0xa0);
        if (len == 0 || is_control || strchr("\"'\\", *at)) return false;
        at += len;
        left -= len;
    }
    return true;
}

static zero_status check_all_names(const zero_model *m)
{
    const struct names lists[] = {
        {"tensor", m->tensors->name, sizeof *m->tensors, sizeof m->tensors->name,
         m->n_tensors},
        {"group", m->groups->name, sizeof *m->groups, sizeof m->groups->name, m->n_groups},
        {"unit", m->units->name, sizeof *m->units, sizeof m->units->name, m->n_units},
    };
    for (int i = 0; i < ZERO_COUNT(lists); i++) {
        const struct names *list = &lists[i];
        for (int k = 0; k < list->n; k++) {
            /* Names go into messages, manifests and file formats. */
            const char *name = name_of(list, k);
            ZERO_INVALID_IF(*name == '\0' || !memchr(name, '\0', list->size),
                            "%s %d has no name, or one of more than %zu characters",
                            list->kind, k, list->size - 1);
            ZERO_INVALID_IF(
                !is_plain(name),
                "%s %d is called '%s': expected UTF-8 without quotes, backslashes "
                "and control characters",
                list->kind, k, name);
        }
        ZERO_FREED const char **sorted = NULL;
        ZERO_TRY(zero_new(&sorted, list->n, "names"));
        for (int k = 0; k < list->n; k++) sorted[k] = name_of(list, k);
        zero_sort(sorted, list->n, by_text);
        for (int k = 1; k < list->n; k++)
            ZERO_INVALID_IF(zero_same_text(sorted[k - 1], sorted[k]),
                            "two %ss are called '%s': their names must differ", list->kind,
                            sorted[k]);
    }
    return ZERO_OK;
}

/* ---- tensors and groups ---- */

/* Tensors of a group adjoin, and groups come in order. */
static zero_status add_tensor(zero_model *m, int i)
{
    zero_tensor *t = &m->tensors[i];
    int newest = i > 0 ? m->tensors[i - 1].group : -1;
    ZERO_INVALID_IF(
        t->rows < 1 || t->cols < 1 || t->rows > (most_params - m->n_params) / t->cols,
        "tensor '%s' has %" PRId64 " rows and %" PRId64
        " columns: expected at least 1 of each, and at most 2^62 parameters in all",
        t->name, t->rows, t->cols);
    ZERO_INVALID_IF(
        t->cut < ZERO_CUT_NONE || t->cut > ZERO_CUT_COLS || t->cut_parts < 0 ||
            t->cols % zero_cut_parts(t) != 0,
        "tensor '%s' of %" PRId64
        " columns is cut as kind %d in %d parts: expected one of zero_cut, and a "
        "number of parts that divides the columns",
        t->name, t->cols, (int)t->cut, t->cut_parts);
    bool known = t->init == ZERO_INIT_ZEROS || t->init == ZERO_INIT_ONES ||
                 t->init == ZERO_INIT_NORMAL;
    ZERO_INVALID_IF(!known || !isfinite(t->init_std) || t->init_std < 0.0f,
                    "tensor '%s' starts as kind %d with deviation %g: expected one of "
                    "zero_init_kind, and a deviation that is finite and not negative",
                    t->name, (int)t->init, (double)t->init_std);
    ZERO_INVALID_IF(
        t->group < 0 || t->group >= m->n_groups ||
            (t->group != newest && t->group != newest + 1),
        "tensor '%s' is in group %d, after one of group %d: expected the tensors "
        "of groups 0 to %d in this order, at least one of each",
        t->name, t->group, newest, m->n_groups - 1);
    zero_group *g = &m->groups[t->group];
    if (g->n_tensors == 0) g->first_tensor = i;
    t->offset = g->n_params;
    t->whole_rows = t->rows;
    t->whole_cols = t->cols;
    t->first = 0;
    g->n_tensors++;
    g->n_params += t->rows * t->cols;
    m->n_params += t->rows * t->cols;
    return ZERO_OK;
}

/* ---- the whole ---- */

static zero_status check_counts(int tensors, int groups, int units)
{
    ZERO_INVALID_IF(
        !(tensors >= 1 && groups >= 1 && units >= 1),
        "a model of %d tensors, %d groups and %d units: expected at least one of each",
        tensors, groups, units);
    return ZERO_OK;
}

zero_status zero_model_complete(zero_model *m)
{
    m->share = (zero_share){.ranks = 1, .slices = 1};
    ZERO_TRY(check_counts(m->n_tensors, m->n_groups, m->n_units));
    const size_t most = (size_t)1 << 20;
    ZERO_INVALID_IF(
        m->seq < 1 || m->input_bytes < 1 || m->input_bytes > most || m->target_bytes > most,
        "a model of %" PRId64
        " positions with %zu bytes of inputs and %zu of targets each: expected at "
        "least 1 position, 1 to 2^20 bytes of inputs and at most 2^20 of targets",
        m->seq, m->input_bytes, m->target_bytes);
    ZERO_TRY(check_all_names(m));
    for (int i = 0; i < m->n_tensors; i++) ZERO_TRY(add_tensor(m, i));
    int reached = m->tensors[m->n_tensors - 1].group + 1;
    ZERO_INVALID_IF(reached != m->n_groups,
                    "group '%s' has no tensors: expected at least one",
                    m->groups[reached].name);
    for (int i = 0; i < m->n_units; i++) {
        zero_unit *u = &m->units[i];
        ZERO_INVALID_IF(!u->sizes || !u->forward || !u->backward,
                        "unit '%s' lacks its function %s: expected all three", u->name,
                        !u->sizes     ? "sizes"
                        : !u->forward ? "forward"
                                      : "backward");
        ZERO_INVALID_IF(u->n_groups < 0 || u->n_groups > ZERO_UNIT_GROUPS,
                        "unit '%s' reads %d groups: expected 0 to %d", u->name, u->n_groups,
                        ZERO_UNIT_GROUPS);
        for (int k = 0; k < u->n_groups; k++) {
            int g = u->groups[k];
            ZERO_INVALID_IF(
                g < 0 || g >= m->n_groups || (k > 0 && g == u->groups[0]),
                "unit '%s' reads group %d: expected different ones from 0 to %d", u->name,
                g, m->n_groups - 1);
        }
        u->share = m->share;
        for (int k = 0; k < u->n_groups; k++)
            u->tensors[k] = &m->tensors[m->groups[u->groups[k]].first_tensor];
    }
    ZERO_FREED bool *is_read = NULL;
    ZERO_TRY(zero_new(&is_read, m->n_groups, "groups"));
    for (int i = 0; i < m->n_units; i++)
        for (int k = 0; k < m->units[i].n_groups; k++)
            is_read[m->units[i].groups[k]] = true;
    for (int g = 0; g < m->n_groups; g++)
        ZERO_INVALID_IF(
            !is_read[g],
            "group '%s' is read by no unit: its gradient would never be defined",
            m->groups[g].name);
    return ZERO_OK;
}

zero_status zero_model_describe(const zero_model_tables *t, zero_model *model)
{
    ZERO_INVALID_IF(
        !t || !model,
        "zero_model_describe() with NULL: expected tables and a place for the model");
    ZERO_TRY(check_counts(t->n_tensors, t->n_groups, t->n_units));
    ZERO_INVALID_IF(!t->tensors || !t->groups || !t->units,
                    "a model without tables: expected tensors, groups and units");
    ZERO_AT_END(zero_model_destroy)
    zero_model m = {.n_tensors = t->n_tensors,
                    .n_groups = t->n_groups,
                    .n_units = t->n_units,
                    .seq = t->seq,
                    .input_bytes = t->input_bytes,
                    .target_bytes = t->target_bytes};
    ZERO_TRY(zero_new(&m.tensors, t->n_tensors, "tensors of a model"));
    ZERO_TRY(zero_new(&m.groups, t->n_groups, "groups of a model"));
    ZERO_TRY(zero_new(&m.units, t->n_units, "units of a model"));
    zero_copy(m.tensors, t->tensors, t->n_tensors);
    zero_copy(m.units, t->units, t->n_units);
    /* Long names are cut here and caught by the name check. */
    for (int g = 0; g < t->n_groups; g++)
        if (t->groups[g])
            memcpy(m.groups[g].name, t->groups[g],
                   strnlen(t->groups[g], sizeof m.groups[g].name));
    ZERO_TRY(zero_model_complete(&m));
    ZERO_GIVE(model, m);
    return ZERO_OK;
}

static bool is_complete(const zero_model *m, const zero_unit *u)
{
    if (!u->sizes || !u->forward || !u->backward) return false;
    if (u->n_groups < 0 || u->n_groups > ZERO_UNIT_GROUPS) return false;
    for (int k = 0; k < u->n_groups; k++) {
        int g = u->groups[k];
        if (g < 0 || g >= m->n_groups) return false;
        if (u->tensors[k] != &m->tensors[m->groups[g].first_tensor]) return false;
    }
    return true;
}

zero_status zero_model_check_described(const zero_model *m)
{
    bool is_described = m && m->tensors && m->groups && m->units && m->n_tensors >= 1 &&
                        m->n_groups >= 1 && m->n_units >= 1;
    for (int i = 0; is_described && i < m->n_units; i++)
        is_described = is_complete(m, &m->units[i]);
    ZERO_INVALID_IF(
        !is_described,
        "a call without a model: describe one first (zero/model.h), and destroy "
        "it after all that uses it");
    return ZERO_OK;
}

/* ---- sizes ---- */

static bool is_sound(const zero_unit_sizes *s)
{
    const int64_t most = INT64_C(1) << 48;
    const int64_t all[] = {s->out,    s->saved,    s->forward_work, s->backward_work,
                           s->logits, s->row_loss, s->thread_work};
    for (int i = 0; i < ZERO_COUNT(all); i++)
        if (all[i] < 0 || all[i] > most) return false;
    return true;
}

zero_status zero_model_check_sizes(const zero_model *m, int64_t B, int64_t T)
{
    for (int i = 0; i < m->n_units; i++) {
        const zero_unit *u = &m->units[i];
        zero_unit_sizes s = u->sizes(u, B, T);
        int64_t losses = i == m->n_units - 1 ? B * T : 0;
        ZERO_INVALID_IF(!is_sound(&s) || s.row_loss != losses,
                        "unit '%s' wants, for %" PRId64 " samples of %" PRId64
                        " positions, out %" PRId64 ", saved %" PRId64 ", work %" PRId64
                        " and %" PRId64 ", logits %" PRId64 ", row_loss %" PRId64
                        " floats: expected 0 to 2^48 of each, and a row_loss of %" PRId64,
                        u->name, B, T, s.out, s.saved, s.forward_work, s.backward_work,
                        s.logits, s.row_loss, losses);
    }
    return ZERO_OK;
}
