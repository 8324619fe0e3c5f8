#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "nn/shape.h"
#include "verify/step_file.h"

/* A model that is small enough to be built for every input. */
static bool is_small(const zero_shape *s)
{
    return s->layers <= 4 && s->hidden <= 1024 && s->vocab <= 65536 && s->seq <= 65536 &&
           s->inner <= 65536 && s->heads <= 64;
}

static void check_match(zero_step_file *file)
{
    zero_model model = {0};
    float values[8];
    if (zero_model_build(&file->shape, &model) != ZERO_OK) return;
    zero_status st = zero_step_match(file, &model);
    fuzz_check_refusal(st);
    for (int p = 0; st == ZERO_OK && p < ZERO_STEP_PARTS; p++) {
        const zero_weights from = zero_step_weights(file, (zero_step_part)p);
        fuzz_check_refusal(from.fill(from.arg, 0, 0, 8, values));
    }
    if (st == ZERO_OK) { /* nothing differs from itself */
        bool alike;
        json_t *differences = zero_step_compare_facts(file, file, &alike);
        FUZZ_LAW(alike && json_array_size(differences) == 0);
        json_decref(differences);
    }
    zero_model_destroy(&model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *stream; /* one unnamed file serves all inputs */
    char path[64];
    zero_step_file file = {.root = NULL};
    if (!stream) stream = tmpfile();
    FUZZ_LAW(stream != NULL && ftruncate(fileno(stream), 0) == 0);
    FUZZ_LAW(size == 0 || pwrite(fileno(stream), data, size, 0) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(stream));
    zero_status st = zero_step_open(path, &file);
    fuzz_check_refusal(st);
    if (st == ZERO_OK) {
        FUZZ_LAW(file.counted > 0 && file.seq == file.shape.seq);
        for (int64_t i = 0; i < zero_step_samples(&file) * file.seq; i++)
            FUZZ_LAW(file.tokens[i] >= 0 && file.tokens[i] < file.shape.vocab &&
                     file.targets[i] >= -1 && file.targets[i] < file.shape.vocab);
        if (is_small(&file.shape)) check_match(&file);
    }
    zero_step_close(&file);
    return 0;
}
