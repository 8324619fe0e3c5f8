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
#include "nn/shape.h"

#include <string.h>

#include "base/fail.h"

/* clang-format off */
#define SHAPE(l, c, h, t) {.layers = (l), .hidden = (c), .heads = (h), .seq = (t), .vocab = 50257}
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
        "gpt2-xl and lesson, and of the papers paper-1.5b to paper-170b, paper-1t, "
        "paper-ddp-1.16b and -1.38b, paper-nomp-1.5b to -13b, turing-nlg-17b and gpt3-175b "
        "(zero plan --models lists all; --layers, --hidden, --heads, --seq and --vocab "
        "change a preset's shape)",
        name);
}
