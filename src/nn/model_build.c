/* model_build.c - what an architecture's rows say of a shape: how many parameters, and its
 * model. */

#include "nn/shape.h"

/* ---- rows ---- */

static int64_t extent(zero_dimension of, const zero_shape *s)
{
    switch (of) {
    case ZERO_OF_ONE: break;
    case ZERO_OF_HIDDEN: return s->hidden;
    case ZERO_OF_QUERIES: return s->heads * s->head_size;
    case ZERO_OF_KEYS: return s->kv_heads * s->head_size;
    case ZERO_OF_QKV: return (s->heads + 2 * s->kv_heads) * s->head_size;
    case ZERO_OF_HEAD: return s->head_size;
    case ZERO_OF_INNER: return s->inner;
    case ZERO_OF_WORDS: return s->vocab;
    case ZERO_OF_SEQ: return s->seq;
    }
    return 1;
}

static bool is_there(const zero_tensor_row *row, const zero_shape *s)
{
    return (zero_shape_has(s) & row->needs) == row->needs;
}

int zero_row_place(const zero_tensor_row *rows, int index, const zero_shape *s)
{
    int place = 0;
    if (!is_there(&rows[index], s)) return -1;
    for (int i = 0; i < index; i++) place += is_there(&rows[i], s);
    return place;
}

static int64_t count(const zero_tensor_row *rows, const zero_shape *s)
{
    int64_t n = 0;
    for (const zero_tensor_row *row = rows; row->name; row++)
        if (is_there(row, s)) n += extent(row->rows, s) * extent(row->cols, s);
    return n;
}

int64_t zero_shape_count(const zero_shape *shape)
{
    if (!shape) return 0;
    const zero_shape s = zero_shape_complete(shape);
    return count(s.kind->embedding, &s) + s.layers * count(s.kind->block, &s) +
           count(s.kind->final, &s);
}

double zero_shape_multiplied(const zero_shape *shape)
{
    const zero_shape s = zero_shape_complete(shape);
    int64_t n = 0;
    for (const zero_tensor_row *row = s.kind->block; row->name; row++)
        if (row->rows != ZERO_OF_ONE) n += extent(row->rows, &s) * extent(row->cols, &s);
    return (double)s.layers * (double)n + (double)s.vocab * (double)s.hidden;
}

double zero_shape_flops(const zero_shape *shape)
{
    const zero_shape s = zero_shape_complete(shape);
    double attention =
        (double)s.layers * (double)s.seq * (double)s.heads * (double)s.head_size;
    return 6.0 * zero_shape_multiplied(&s) + 6.0 * attention;
}

/* ---- the model ---- */

static void add_group(zero_model *m, const zero_shape *s, const char *name,
                      const zero_tensor_row *rows, const char *prefix)
{
    const float residual = s->kind->scales_leaving ? sqrtf(2.0f * (float)s->layers) : 1.0f;
    zero_group *g = &m->groups[m->n_groups++];
    zero_print(g->name, "%s", name);
    for (const zero_tensor_row *row = rows; row->name; row++) {
        if (!is_there(row, s)) continue;
        const bool is_normal = row->init == ZERO_INIT_NORMAL;
        zero_tensor *t = &m->tensors[m->n_tensors++];
        *t = (zero_tensor){.rows = extent(row->rows, s),
                           .cols = extent(row->cols, s),
                           .group = m->n_groups - 1,
                           .decays = is_normal,
                           .init = row->init,
                           .init_std = is_normal ? 0.02f : 0.0f,
                           .cut = row->cut,
                           .cut_parts = row->cut_parts,
                           .out_in = row->out_in,
                           .is_hidden = rows == s->kind->block && row->rows != ZERO_OF_ONE};
        if (row->leaves) t->init_std = 0.02f / residual;
        zero_print(t->name, "%s%s", prefix, row->name);
    }
}

static zero_unit *add_unit(zero_model *m, int64_t index, int group, int second_group)
{
    zero_unit *u = &m->units[m->n_units++];
    *u = (zero_unit){.index = (int)index, .n_groups = 1, .shape = m->shape};
    u->groups[0] = group;
    u->groups[1] = second_group;
    if (second_group >= 0) u->n_groups = 2;
    return u;
}

zero_status zero_model_build(const zero_shape *shape, zero_model *model)
{
    ZERO_TRY(zero_shape_check(shape));
    ZERO_INVALID_IF(!model, "zero_model_build() without a place for the model");
    const zero_shape s = zero_shape_complete(shape);
    ZERO_AT_END(zero_model_destroy)
    zero_model m = {.vocab = s.vocab,
                    .seq = s.seq,
                    .input_bytes = sizeof(int32_t),
                    .target_bytes = sizeof(int32_t)};
    const size_t layers = (size_t)s.layers;
    m.tensors = calloc((layers + 2) * ZERO_MOST_ROWS, sizeof *m.tensors);
    m.groups = calloc(layers + 2, sizeof *m.groups);
    m.units = calloc(layers + 2, sizeof *m.units);
    m.shape = malloc(sizeof s);
    ZERO_TRY(zero_allocated(m.tensors && m.groups && m.units && m.shape,
                            "no memory for the tables of %" PRId64 " layers", s.layers));
    memcpy(m.shape, &s, sizeof s);

    const zero_architecture *kind = s.kind;
    add_group(&m, &s, "embedding", kind->embedding, "");
    for (int64_t i = 0; i < s.layers; i++) {
        char name[32], prefix[32];
        zero_print(name, "block %" PRId64, i);
        zero_print(prefix, "%s%" PRId64 ".", kind->layer, i);
        add_group(&m, &s, name, kind->block, prefix);
    }
    add_group(&m, &s, "final", kind->final, "");

    const int embedding = 0, final = m.n_groups - 1;
    zero_embedding_unit(add_unit(&m, 0, embedding, -1));
    for (int64_t i = 0; i < s.layers; i++)
        zero_block_unit(add_unit(&m, i, (int)(1 + i), -1));
    zero_head_unit(add_unit(&m, 0, final, s.tied ? embedding : -1));
    ZERO_TRY(zero_model_complete(&m));
    ZERO_GIVE(model, m);
    return ZERO_OK;
}
