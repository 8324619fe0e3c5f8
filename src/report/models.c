#include "report/models.h"

#include "nn/shape.h"
#include "sharding/formula.h"

void zero_models_show(FILE *out)
{
    int n;
    const zero_preset *rows = zero_model_presets(&n);
    fprintf(out, "%-16s %6s %6s %5s %5s %6s %15s %10s  %s\n", "model", "layers", "hidden",
            "heads", "seq", "vocab", "parameters", "states, GB", "from");
    for (int i = 0; i < n; i++) {
        const zero_shape *s = &rows[i].shape;
        zero_shape one = *s;
        one.vocab++;
        char heads[32];
        int64_t keys = zero_shape_complete(s).kv_heads;
        int n_heads = snprintf(heads, sizeof heads, "%" PRId64, s->heads);
        if (keys < s->heads)
            snprintf(heads + n_heads, sizeof heads - (size_t)n_heads, "/%" PRId64, keys);
        fprintf(out, "%-16s %6" PRId64 " %6" PRId64 " %5s %5" PRId64 " ", rows[i].name,
                s->layers, s->hidden, heads, s->seq);
        /* Without a vocabulary Psi depends on V. */
        int64_t psi = zero_shape_count(s);
        double gb = zero_formula_state_bytes(psi, 1, 0, ZERO_FP32) / 1e9;
        if (s->vocab > 0)
            fprintf(out, "%6" PRId64 " %15" PRId64 " %10.3f", s->vocab, psi, gb);
        else
            fprintf(out, "%6s %7" PRId64 " + %" PRId64 " V %10s", "data's", psi,
                    zero_shape_count(&one) - psi, "");
        fprintf(out, "  %s\n", rows[i].source);
    }
    fputs("\nstates: parameters, gradients and Adam's moments, 16 bytes per parameter, "
          "before sharding.\nHeads 32/8: 32 of queries share 8 of keys and values.\nThe "
          "ZeRO paper gives layers, hidden and heads; vocabulary and "
          "length are GPT-2's.\n",
          out);
}
