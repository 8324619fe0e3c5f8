#include "sharding/update.h"

zero_adamw zero_update_adamw(double lr, double beta1, double beta2, double eps,
                             double weight_decay)
{
    return (zero_adamw){.lr = (float)lr,
                        .beta1 = (float)beta1,
                        .beta2 = (float)beta2,
                        .eps = (float)eps,
                        .weight_decay = (float)weight_decay};
}

static zero_status check_number(const char *name, float value, float end)
{
    ZERO_FAIL_IF(!(value >= 0.0f && value < end), ZERO_ERR_INVALID,
                 "an update with %s %g: expected 0 or more, below %g", name, (double)value,
                 (double)end);
    return ZERO_OK;
}

zero_status zero_update_check(const zero_adamw *h, double clip)
{
    ZERO_TRY(check_number("lr", h->lr, INFINITY));
    ZERO_TRY(check_number("weight_decay", h->weight_decay, INFINITY));
    ZERO_TRY(check_number("clip", (float)clip, INFINITY));
    ZERO_TRY(check_number("beta1", h->beta1, 1.0f));
    ZERO_TRY(check_number("beta2", h->beta2, 1.0f));
    ZERO_TRY(check_number("eps", h->eps, INFINITY));
    ZERO_FAIL_IF(!(h->eps > 0.0f), ZERO_ERR_INVALID,
                 "an update with eps 0: expected a positive number such as 1e-8");
    return ZERO_OK;
}

float zero_update_grad_scale(double norm, double clip, double scale)
{
    double clipped = clip > 0.0 ? clip / (norm + 1e-6) : 1.0;
    return (float)((clipped < 1.0 ? clipped : 1.0) / scale);
}

/* ---- squares ---- */

/* Blocks of the subtree of the tree over a flat space that begins at block `at`. */
static int64_t subtree(zero_range range, int64_t at)
{
    return zero_tree_span_next(at, zero_tree_blocks(range.end) - at);
}

int64_t zero_gradient_pieces(zero_range range)
{
    int64_t at = zero_tree_blocks(range.begin), end = zero_tree_blocks(range.end), n = 0;
    for (; at < end; at += subtree(range, at)) n++;
    return n;
}

void zero_gradient_sums(const zero_backend *backend, const zero_math *math, zero_type type,
                        zero_range range, const void *x, double *sums)
{
    int64_t at = zero_tree_blocks(range.begin), end = zero_tree_blocks(range.end);
    for (; at < end; at += subtree(range, at)) {
        int64_t begin = at * ZERO_TREE_BLOCK;
        int64_t len = zero_min(subtree(range, at) * ZERO_TREE_BLOCK, range.end - begin);
        backend->sum_squares(math, type, len, zero_type_at(type, x, begin - range.begin),
                             sums++);
    }
}

zero_tree_span zero_gradient_span(int64_t n_params, zero_range range, const double *sums)
{
    int64_t at = zero_tree_blocks(range.begin), end = zero_tree_blocks(range.end);
    zero_tree_span span = {.blocks = zero_tree_blocks(n_params), .first = at};
    for (; at < end; at += subtree(range, at))
        zero_tree_span_append(&span, subtree(range, at), *sums++);
    return span;
}

zero_tree_span zero_gradient_squares(const zero_backend *backend, const zero_math *math,
                                     zero_type type, int64_t n_params, zero_range range,
                                     const void *x)
{
    double sums[ZERO_TREE_SPAN_TERMS];
    zero_gradient_sums(backend, math, type, range, x, sums);
    return zero_gradient_span(n_params, range, sums);
}

/* Elements have numbers from 0 on, through all tensors. */
static int64_t number_of(const zero_model *model, int tensor)
{
    int64_t number = 0;
    for (int i = 0; i < tensor; i++)
        number += model->tensors[i].rows * model->tensors[i].cols;
    return number;
}

int zero_update_changed(const zero_model *model, uint64_t changed, int64_t *element)
{
    int64_t number = (int64_t)~changed; /* zero_changed() */
    int tensor = model->n_tensors - 1;
    while (number < number_of(model, tensor)) tensor--;
    *element = number - number_of(model, tensor);
    return tensor;
}

int64_t zero_update_room(int optimizer, const zero_model *model, int group,
                         zero_range range)
{
    zero_range part;
    int64_t most = 0;
    for (int i = -1; zero_next_part(model, group, range, &i, &part);)
        if (zero_rule_moves_whole(optimizer, &model->tensors[i]))
            most = zero_max(most, zero_muon_room(&model->tensors[i]));
    return most;
}

void zero_update_apply(const zero_backend *backend, const zero_math *math,
                       const zero_model *model, int group, zero_range range,
                       const zero_adamw *hyper, const zero_update_state *s)
{
    size_t size = zero_type_size(s->type);
    int64_t kept[ZERO_MOST_STATES] = {0}; /* before this part */
    zero_range part;
    for (int i = -1; zero_next_part(model, group, range, &i, &part);) {
        const zero_tensor *t = &model->tensors[i];
        const int states = zero_rule_states(s->optimizer, t);
        zero_adamw h = *hyper;
        if (!t->decays) h.weight_decay = 0.0f;
        int64_t at = part.begin - range.begin, n = zero_range_len(part);
        size_t byte = (size_t)at * size;
        zero_adamw_arrays a = {.n = n,
                               .type = s->type,
                               .grad = (const char *)s->grad + byte,
                               .master = s->master + at,
                               .m = s->state[0] + kept[0],
                               .v = states > 1 ? s->state[1] + kept[1] : NULL,
                               .param = s->param ? (char *)s->param + byte : NULL,
                               .first = number_of(model, i) + part.begin - t->offset,
                               .changed = s->changed};
        if (zero_rule_moves_whole(s->optimizer, t)) {
            assert(n == t->rows * t->cols && "a matrix is moved by one rank");
            zero_muon_update(backend, math, &h, &s->how, t, &a, s->room);
        } else {
            zero_rule_update(s->optimizer, backend, math, &h, &a);
        }
        for (int k = 0; k < states; k++) kept[k] += n;
    }
}
