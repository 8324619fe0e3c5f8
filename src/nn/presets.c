/* presets.c - models that have a name: GPT-2's, and those that the papers trained or
 * planned.
 *
 * The papers name their models by billions of parameters and give layers, hidden size and
 * heads. The ZeRO paper states neither vocabulary nor sequence length: here they are
 * GPT-2's vocabulary and the 1024 of the paper's examples. Where its tables disagree:
 *   - Table 4 prints hidden 4096 for 40B and 60B, which would be models of 18 and 27
 *     billions. The appendix (table 5) says 6144, and that fits the names.
 *   - "60B" is two models: 132 x 6144 (figures 2 and 6) and 75 x 8192 (figures 3 and 8,
 *     here
 *     paper-60b-wide). So is "40B": 88 x 6144 (figure 2) and 50 x 8192 (figures 6 and 7).
 *   - Heads differ between tables, which does not change Psi. paper-60b has 32 in table 5,
 *     64
 *     in table 7; paper-60b-wide 32 in table 6, 64 in table 9.
 *   - "1.38B", the largest that fits without ZeRO, counts 1.21 billions. */
#include "nn/architecture.h"

#include "base/fail.h"

/* clang-format off */
#define MORE(kind_of, l, c, h, k, d, f, t, ...) {.kind = &zero_architectures[kind_of], \
    .layers = (l), .hidden = (c), .heads = (h), .kv_heads = (k), .head_size = (d), \
    .inner = (f), .seq = (t), .vocab = __VA_ARGS__}
#define SHAPE(l, c, h, t) {.layers = (l), .hidden = (c), .heads = (h), .seq = (t), .vocab = 50257}
#define NEOX(l, c, h, t, v) {.kind = &zero_architectures[ZERO_NEOX], .layers = (l), \
    .hidden = (c), .heads = (h), .seq = (t), .vocab = (v)}
static const zero_preset presets[] = {
    {"tiny", "for any machine", {.layers = 4, .hidden = 128, .heads = 4, .seq = 64}},
    {"lesson", "for lessons", {.layers = 1, .hidden = 4, .heads = 1, .seq = 4, .vocab = 8}},
    {"gpt2", "GPT-2", SHAPE(12, 768, 12, 1024)},
    {"gpt2-medium", "GPT-2", SHAPE(24, 1024, 16, 1024)},
    {"gpt2-large", "GPT-2", SHAPE(36, 1280, 20, 1024)},
    {"gpt2-xl", "GPT-2", SHAPE(48, 1600, 25, 1024)},

    {"paper-1.5b", "ZeRO, table 5", SHAPE(48, 1600, 16, 1024)},
    {"paper-8b", "ZeRO, table 5", SHAPE(72, 3072, 24, 1024)},
    {"paper-40b", "ZeRO, table 5", SHAPE(88, 6144, 32, 1024)},
    {"paper-40b-wide", "ZeRO, tables 7, 8", SHAPE(50, 8192, 32, 1024)},
    {"paper-50b", "ZeRO, table 7", SHAPE(62, 8192, 32, 1024)},
    {"paper-60b", "ZeRO, table 5", SHAPE(132, 6144, 32, 1024)},
    {"paper-60b-wide", "ZeRO, table 6", SHAPE(75, 8192, 32, 1024)},
    {"paper-80b", "ZeRO, table 5", SHAPE(100, 8192, 64, 1024)},
    {"paper-100b", "ZeRO, table 5", SHAPE(125, 8192, 64, 1024)},
    {"paper-120b", "ZeRO, table 5", SHAPE(150, 8192, 64, 1024)},
    {"paper-140b", "ZeRO, table 5", SHAPE(175, 8192, 64, 1024)},
    {"paper-150b", "ZeRO, table 7", SHAPE(187, 8192, 64, 1024)},
    {"paper-170b", "ZeRO, table 5", SHAPE(212, 8192, 64, 1024)},
    {"paper-1t", "ZeRO-Infinity, fig. 2a", SHAPE(128, 25600, 256, 1024)},

    /* Table 10: models that 128 ranks train without tensor parallelism, and without ZeRO
     * (DDP). */
    {"paper-ddp-1.16b", "ZeRO, table 10", SHAPE(24, 1920, 16, 1024)},
    {"paper-ddp-1.38b", "ZeRO, table 10", SHAPE(40, 1536, 16, 1024)},
    {"paper-nomp-1.5b", "ZeRO, table 10", SHAPE(34, 1920, 16, 1024)},
    {"paper-nomp-2.5b", "ZeRO, table 10", SHAPE(54, 1920, 16, 1024)},
    {"paper-nomp-4b", "ZeRO, table 10", SHAPE(64, 2304, 24, 1024)},
    {"paper-nomp-6b", "ZeRO, table 10", SHAPE(52, 3072, 24, 1024)},
    {"paper-nomp-8b", "ZeRO, table 10", SHAPE(72, 3072, 24, 1024)},
    {"paper-nomp-10b", "ZeRO, table 10", SHAPE(50, 4096, 32, 1024)},
    {"paper-nomp-11b", "ZeRO, table 10", SHAPE(54, 4096, 32, 1024)},
    {"paper-nomp-12b", "ZeRO, table 10", SHAPE(58, 4096, 32, 1024)},
    {"paper-nomp-13b", "ZeRO, table 10", SHAPE(62, 4096, 32, 1024)},

    {"turing-nlg-17b", "Turing-NLG", SHAPE(78, 4256, 28, 1024)},
    {"gpt3-175b", "GPT-3, table 2.1", SHAPE(96, 12288, 96, 2048)},

    /* Sequences of the length of most of the training, before longer ones were trained; where
     * that is not published, of 4096. */
    {"tiny-llama", "for any machine", MORE(ZERO_LLAMA, 4, 128, 4, 2, 32, 320, 64, 0)},
    {"tiny-mistral", "for any machine", MORE(ZERO_MISTRAL, 4, 128, 4, 1, 32, 320, 64, 0)},
    {"tiny-qwen2", "for any machine",
        MORE(ZERO_QWEN2, 4, 128, 4, 2, 32, 320, 64, 0, .tied = true)},
    {"tiny-qwen3", "for any machine", MORE(ZERO_QWEN3, 4, 128, 4, 2, 64, 320, 64, 0)},
    {"tiny-neox", "for any machine", NEOX(4, 128, 4, 64, 0)},

    {"llama2-7b", "Llama 2", MORE(ZERO_LLAMA, 32, 4096, 32, 32, 128, 11008, 4096, 32000)},
    {"llama2-13b", "Llama 2", MORE(ZERO_LLAMA, 40, 5120, 40, 40, 128, 13824, 4096, 32000)},
    {"llama2-70b", "Llama 2", MORE(ZERO_LLAMA, 80, 8192, 64, 8, 128, 28672, 4096, 32000)},

    {"llama3-8b", "Llama 3",
        MORE(ZERO_LLAMA, 32, 4096, 32, 8, 128, 14336, 8192, 128256, .theta = 500000)},
    {"llama3-70b", "Llama 3",
        MORE(ZERO_LLAMA, 80, 8192, 64, 8, 128, 28672, 8192, 128256, .theta = 500000)},
    {"llama3.1-405b", "Llama 3.1",
        MORE(ZERO_LLAMA, 126, 16384, 128, 8, 128, 53248, 8192, 128256, .theta = 500000,
            .scaling = {8, 1, 4, 8192})},
    {"llama3.2-1b", "Llama 3.2",
        MORE(ZERO_LLAMA, 16, 2048, 32, 8, 64, 8192, 8192, 128256, .tied = true, .theta = 500000,
            .scaling = {32, 1, 4, 8192})},
    {"llama3.2-3b", "Llama 3.2",
        MORE(ZERO_LLAMA, 28, 3072, 24, 8, 128, 8192, 8192, 128256, .tied = true, .theta = 500000,
            .scaling = {32, 1, 4, 8192})},

    {"mistral-7b", "Mistral", MORE(ZERO_MISTRAL, 32, 4096, 32, 8, 128, 14336, 4096, 32000)},
    {"mistral-nemo-12b", "Mistral",
        MORE(ZERO_MISTRAL, 40, 5120, 32, 8, 128, 14336, 4096, 131072, .theta = 1e+06)},

    {"qwen2.5-0.5b", "Qwen2.5",
        MORE(ZERO_QWEN2, 24, 896, 14, 2, 64, 4864, 4096, 151936, .tied = true)},
    {"qwen2.5-1.5b", "Qwen2.5",
        MORE(ZERO_QWEN2, 28, 1536, 12, 2, 128, 8960, 4096, 151936, .tied = true)},
    {"qwen2.5-3b", "Qwen2.5",
        MORE(ZERO_QWEN2, 36, 2048, 16, 2, 128, 11008, 4096, 151936, .tied = true)},
    {"qwen2.5-7b", "Qwen2.5", MORE(ZERO_QWEN2, 28, 3584, 28, 4, 128, 18944, 4096, 152064)},
    {"qwen2.5-14b", "Qwen2.5",
        MORE(ZERO_QWEN2, 48, 5120, 40, 8, 128, 13824, 4096, 152064, .eps = 1e-5)},
    {"qwen2.5-32b", "Qwen2.5",
        MORE(ZERO_QWEN2, 64, 5120, 40, 8, 128, 27648, 4096, 152064, .eps = 1e-5)},
    {"qwen2.5-72b", "Qwen2.5",
        MORE(ZERO_QWEN2, 80, 8192, 64, 8, 128, 29568, 4096, 152064, .eps = 1e-5)},

    {"qwen3-0.6b", "Qwen3",
        MORE(ZERO_QWEN3, 28, 1024, 16, 8, 128, 3072, 4096, 151936, .tied = true)},
    {"qwen3-1.7b", "Qwen3",
        MORE(ZERO_QWEN3, 28, 2048, 16, 8, 128, 6144, 4096, 151936, .tied = true)},
    {"qwen3-4b", "Qwen3",
        MORE(ZERO_QWEN3, 36, 2560, 32, 8, 128, 9728, 4096, 151936, .tied = true)},
    {"qwen3-8b", "Qwen3", MORE(ZERO_QWEN3, 36, 4096, 32, 8, 128, 12288, 4096, 151936)},
    {"qwen3-14b", "Qwen3", MORE(ZERO_QWEN3, 40, 5120, 40, 8, 128, 17408, 4096, 151936)},
    {"qwen3-32b", "Qwen3", MORE(ZERO_QWEN3, 64, 5120, 64, 8, 128, 25600, 4096, 151936)},

    {"smollm2-135m", "SmolLM2",
        MORE(ZERO_LLAMA, 30, 576, 9, 3, 64, 1536, 2048, 49152, .tied = true,
            .theta = 100000)},
    {"smollm2-360m", "SmolLM2",
        MORE(ZERO_LLAMA, 32, 960, 15, 5, 64, 2560, 2048, 49152, .tied = true,
            .theta = 100000)},
    {"smollm2-1.7b", "SmolLM2",
        MORE(ZERO_LLAMA, 24, 2048, 32, 32, 64, 8192, 2048, 49152, .tied = true,
            .theta = 130000)},

    {"tinyllama-1.1b", "TinyLlama",
        MORE(ZERO_LLAMA, 22, 2048, 32, 4, 64, 5632, 2048, 32000)},

    {"pythia-70m", "Pythia", NEOX(6, 512, 8, 2048, 50304)},
    {"pythia-160m", "Pythia", NEOX(12, 768, 12, 2048, 50304)},
    {"pythia-410m", "Pythia", NEOX(24, 1024, 16, 2048, 50304)},
    {"pythia-1b", "Pythia", NEOX(16, 2048, 8, 2048, 50304)},
    {"pythia-1.4b", "Pythia", NEOX(24, 2048, 16, 2048, 50304)},
    {"pythia-2.8b", "Pythia", NEOX(32, 2560, 32, 2048, 50304)},
    {"pythia-6.9b", "Pythia", NEOX(32, 4096, 32, 2048, 50432)},
    {"pythia-12b", "Pythia", NEOX(36, 5120, 40, 2048, 50688)},
};
/* clang-format on */
#define N_PRESETS ((int)(sizeof presets / sizeof presets[0]))

const zero_preset *zero_model_presets(int *n)
{
    if (n) *n = N_PRESETS;
    return presets;
}

zero_status zero_model_preset(const char *name, zero_shape *shape)
{
    if (!name || !shape)
        return zero_fail(
            ZERO_ERR_INVALID,
            "zero_model_preset() with NULL: expected a name and a place for the shape");
    for (int i = 0; i < N_PRESETS; i++) {
        if (strcmp(presets[i].name, name) != 0) continue;
        *shape = presets[i].shape;
        return ZERO_OK;
    }
    return zero_fail(
        ZERO_ERR_INVALID,
        "--model %s: no such preset; there are tiny, gpt2, gpt2-medium, gpt2-large, "
        "gpt2-xl and lesson, of the papers paper-1.5b to paper-170b, paper-1t, "
        "paper-ddp-1.16b and -1.38b, paper-nomp-1.5b to -13b, turing-nlg-17b and "
        "gpt3-175b; of other architectures tiny-llama, tiny-mistral, tiny-qwen2, "
        "tiny-qwen3, tiny-neox, llama2-7b to llama3.2-3b, mistral-7b, mistral-nemo-12b, "
        "qwen2.5-0.5b to qwen3-32b, smollm2-135m to -1.7b, tinyllama-1.1b and pythia-70m "
        "to -12b (zero plan --models lists all; --layers, --hidden, --heads, --seq and "
        "--vocab "
        "change a preset's shape)",
        name);
}
