#include "report/plan_facts.h"

#include "report/json_put.h"
#include "sharding/formula.h"

/* Without a vocabulary Psi depends on V. */
zero_status zero_models_show(FILE *out)
{
    int n;
    const zero_preset *rows = zero_model_presets(&n);
    json_t *models = json_array();
    for (int i = 0; i < n; i++) {
        const zero_shape *s = &rows[i].shape;
        zero_shape one = *s;
        one.vocab++;
        const int64_t psi = zero_shape_count(s);
        zero_put_item(
            models, "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:s}", "name",
            rows[i].name, "layers", s->layers, "hidden", s->hidden, "heads", s->heads,
            "keys", zero_shape_complete(s).kv_heads, "seq", s->seq, "vocab", s->vocab,
            "psi", psi, "of_word", zero_shape_count(&one) - psi, "states",
            zero_formula_state_bytes(psi, 1, 0, ZERO_FP32) / 1e9, "from", rows[i].source);
    }
    return zero_report_print("models", json_pack("{s:o}", "models", models), out);
}
