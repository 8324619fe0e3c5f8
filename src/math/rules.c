#include "math/rules.h"

#include "math/team.h"

/* Chen et al. 2023, arXiv:2302.06675, algorithm 2. */
static void lion(const zero_adamw *h, int64_t n, const float *grad, float *weight,
                 float *const *state)
{
    const float rest1 = 1.0f - h->beta1, rest2 = 1.0f - h->beta2;
    const float decay = h->lr * h->weight_decay;
    float *m = state[0];
    for (int64_t i = 0; i < n; i++) {
        const float old = zero_rule_flush(m[i]), c = h->beta1 * old + rest1 * grad[i];
        const float sign = (float)zero_order(c, 0.0f);
        weight[i] = weight[i] - decay * weight[i] - h->lr * sign;
        m[i] = h->beta2 * old + rest2 * grad[i];
    }
}

/* With momentum; the decay is part of the gradient, as in PyTorch. */
static void sgd(const zero_adamw *h, int64_t n, const float *grad, float *weight,
                float *const *state)
{
    float *m = state[0];
    for (int64_t i = 0; i < n; i++) {
        m[i] = h->beta1 * zero_rule_flush(m[i]) + (grad[i] + h->weight_decay * weight[i]);
        weight[i] = weight[i] - h->lr * m[i];
    }
}

/* clang-format off */
static const zero_rule rules[] = {
    {"adamw", {"momentum", "variance"}, 1.0, 0.9, 0.95, NULL, false},
    {"muon", {"momentum", "variance"}, 1.0, 0.95, 0.95, NULL, true},
    {"lion", {"momentum"}, 0.1, 0.9, 0.99, lion, false},
    {"sgd", {"momentum"}, 30.0, 0.9, 0.95, sgd, false},
};
/* clang-format on */

const zero_rule *zero_rule_at(int optimizer)
{
    assert(optimizer >= 0 && optimizer < ZERO_COUNT(rules));
    return &rules[optimizer];
}

const char *zero_rule_name_at(int optimizer)
{
    return optimizer < ZERO_COUNT(rules) ? rules[optimizer].name : NULL;
}

bool zero_rule_find(const char *name, int *optimizer)
{
    for (int i = 0; i < ZERO_COUNT(rules); i++)
        if (zero_same_text(rules[i].name, name)) {
            *optimizer = i;
            return true;
        }
    return false;
}

zero_status zero_rule_read(const char *name, int *optimizer)
{
    char known[128] = "";
    for (int i = 0, n = 0; i < ZERO_COUNT(rules); i++)
        n += snprintf(known + n, sizeof known - (size_t)n, i > 0 ? ", %s" : "%s",
                      rules[i].name);
    *optimizer = 0;
    if (!name || zero_rule_find(name, optimizer)) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID, "optimizer '%s': expected one of %s", name, known);
}

int zero_rule_most_states(int optimizer)
{
    int n = 0;
    while (zero_rule_at(optimizer)->states[n]) n++;
    return n;
}

int zero_rule_least_states(int optimizer)
{
    return zero_rule_at(optimizer)->moves_matrices ? 1 : zero_rule_most_states(optimizer);
}

bool zero_rule_moves_whole(int optimizer, const zero_tensor *tensor)
{
    return zero_rule_at(optimizer)->moves_matrices && tensor->is_hidden;
}

int zero_rule_states(int optimizer, const zero_tensor *tensor)
{
    return zero_rule_moves_whole(optimizer, tensor) ? 1 : zero_rule_most_states(optimizer);
}

int64_t zero_rule_total(int optimizer, const zero_model *model)
{
    const int most = zero_rule_most_states(optimizer);
    int64_t n = 0;
    if (zero_rule_least_states(optimizer) == most) return model->n_params * most;
    for (int i = 0; i < model->n_tensors; i++) {
        const zero_tensor *t = &model->tensors[i];
        n += t->rows * t->cols * zero_rule_states(optimizer, t);
    }
    return n;
}

const char *zero_rule_part_name(int optimizer, int part)
{
    return part == 0 ? "master" : zero_rule_at(optimizer)->states[part - 1];
}

void zero_rule_list_parts(int optimizer, char text[ZERO_RULE_TEXT])
{
    const int last = zero_rule_most_states(optimizer);
    for (int p = 0, n = 0; p <= last; p++)
        n += snprintf(text + n, ZERO_RULE_TEXT - (size_t)n, "%s%s",
                      p == 0      ? ""
                      : p == last ? " and "
                                  : ", ",
                      zero_rule_part_name(optimizer, p));
}

/* ---- an update ---- */

#define AT_ONCE 1024 /* elements, which a core's first cache holds */

typedef struct {
    const zero_rule *rule;
    const zero_adamw *h;
    const zero_adamw_arrays *a;
    _Atomic uint64_t changed; /* of all threads */
} update_call;

/* The word of the first parameter in [i, i + n) that was not its master, rounded; or 0. */
static uint64_t changed_in(const zero_adamw_arrays *a, int64_t i, int64_t n)
{
    const uint16_t *param = (const uint16_t *)a->param + i;
    uint16_t rounded[AT_ONCE];
    int64_t k = 0;
    zero_convert(ZERO_FP32, a->type, n, a->master + i, rounded);
    while (k < n && rounded[k] == param[k]) k++;
    return k < n ? zero_changed(a->first + i + k) : 0;
}

void zero_rule_note_changes(const zero_adamw_arrays *a)
{
    uint64_t word = 0;
    for (int64_t i = 0; a->changed && i < a->n && word == 0; i += AT_ONCE)
        word = changed_in(a, i, zero_min(AT_ONCE, a->n - i));
    if (word > 0 && word > *a->changed) *a->changed = word;
}

static void update_part(const zero_math *math, const void *arg, int64_t first, int64_t end)
{
    update_call *call = *(update_call *const *)arg;
    const zero_adamw_arrays *a = call->a;
    float grad[AT_ONCE];
    for (int64_t i = first, n; i < end; i += n) {
        n = zero_min(AT_ONCE, end - i);
        const uint64_t mine = a->changed ? changed_in(a, i, n) : 0;
        uint64_t largest = atomic_load(&call->changed);
        while (mine > largest &&
               !atomic_compare_exchange_weak(&call->changed, &largest, mine))
            continue;
        zero_convert(a->type, ZERO_FP32, n, zero_type_at(a->type, a->grad, i), grad);
        for (int64_t k = 0; k < n; k++) grad[k] *= call->h->grad_scale;
        float *const state[ZERO_MOST_STATES] = {a->m + i, a->v ? a->v + i : NULL};
        call->rule->move(call->h, n, grad, a->master + i, state);
        if (a->param)
            zero_convert(ZERO_FP32, a->type, n, a->master + i,
                         zero_type_to(a->type, a->param, i));
        zero_math_poll(math);
    }
}

void zero_rule_update(int optimizer, const zero_backend *backend, const zero_math *math,
                      const zero_adamw *h, const zero_adamw_arrays *a)
{
    update_call call = {zero_rule_at(optimizer), h, a, 0}, *at = &call;
    if (!call.rule->move) {
        backend->adamw(math, h, a);
        return;
    }
    assert(!backend->memory && "a device has kernels of AdamW alone");
    zero_team_share(math, a->n, 16 * AT_ONCE, update_part, &at);
    if (call.changed > 0 && call.changed > *a->changed) *a->changed = call.changed;
}
