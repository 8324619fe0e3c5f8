#include "checkpoint/model.h"

#include "checkpoint/hugging_face.h"

zero_status zero_checkpoint_describe(const zero_checkpoint *c, zero_model *model)
{
    ZERO_FAIL_IF(
        !c->manifest.has_shape, ZERO_ERR_UNSUPPORTED,
        "%s holds a model that another program described: only that program can compute it",
        c->dir.path);
    ZERO_AT_END(zero_model_destroy) zero_model made = {0};
    ZERO_TRY(zero_model_build(&c->manifest.shape, &made));
    /* The manifest has both, and one may have been changed without the other. */
    const zero_state_table *table = &c->manifest.table;
    bool same = table->n_tensors == made.n_tensors && table->n_groups == made.n_groups;
    for (int i = 0; same && i < made.n_tensors; i++) {
        const zero_tensor *a = &table->tensors[i], *b = &made.tensors[i];
        same = zero_same_text(a->name, b->name) && a->rows == b->rows &&
               a->cols == b->cols && a->group == b->group && a->offset == b->offset;
    }
    ZERO_FORMAT_IF(
        !same,
        "%s: its manifest describes a GPT-2 of %d tensors and lists %d of another model",
        c->dir.path, made.n_tensors, table->n_tensors);
    ZERO_GIVE(model, made);
    return ZERO_OK;
}

static zero_status fill(void *arg, int tensor, int64_t begin, int64_t end, float *out)
{
    return zero_checkpoint_tensor(arg, tensor, ZERO_STATE_MASTER, begin, end, out);
}

zero_weights zero_checkpoint_weights(zero_checkpoint *c)
{
    return (zero_weights){.fill = fill, .arg = c};
}

zero_status zero_checkpoint_export(zero_checkpoint *c, const char *to, int64_t file_bytes,
                                   zero_type type)
{
    ZERO_AT_END(zero_model_destroy) zero_model model = {0};
    ZERO_AT_END(zero_tokenizer_destroy) zero_tokenizer tokenizer = {0};
    zero_weights weights = zero_checkpoint_weights(c);
    /* The run's dropout, which no tensor shows. */
    const char *text = zero_get_string(c->manifest.options, "dropout");
    double share = text ? strtod(text, NULL) : 0.0;
    bool has_tokenizer = c->manifest.has_tokenizer;
    c->manifest.shape.dropout = share > 0.0 && share < 1.0 ? (float)share : 0.0f;
    ZERO_TRY(zero_checkpoint_describe(c, &model));
    if (has_tokenizer) ZERO_TRY(zero_checkpoint_tokenizer(c, &tokenizer));
    const zero_hugging_face_export e = {
        &model,           &weights,   has_tokenizer ? &tokenizer : NULL,
        c->manifest.kept, file_bytes, type};
    return zero_hugging_face_write(to, &e);
}
