/* The config.json of a model: what it says is a shape that exists, and what is written of that is
 * read again as the same. */
#include <string.h>

#include "checkpoint/hugging_face.h"
#include "fuzz.h"

static void check_written(const zero_shape *shape)
{
    zero_model model;
    zero_bytes text = {0};
    zero_shape again;
    FUZZ_LAW(zero_model_build(shape, &model) == ZERO_OK);
    FUZZ_LAW(zero_hugging_face_write_config(&(zero_hugging_face_export){.model = &model},
                                            &text) == ZERO_OK);
    FUZZ_LAW(zero_hugging_face_read_config("f", &text, &again) == ZERO_OK);
    FUZZ_LAW(again.kind == shape->kind);
    for (int i = 0; i < ZERO_SHAPE_FIELDS; i++) {
        double one = zero_shape_get(shape, &zero_shape_fields[i]);
        double other = zero_shape_get(&again, &zero_shape_fields[i]);
        double apart = one > other ? one - other : other - one;
        /* A GPT-2's file does not say what follows from its five numbers. */
        FUZZ_LAW(apart <= 1e-14 * one || other == 0.0);
    }
    zero_bytes_destroy(&text);
    zero_model_destroy(&model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zero_bytes text = {.bytes = (unsigned char *)data, .len = size};
    zero_shape shape;
    zero_status st = zero_hugging_face_read_config("f", &text, &shape);
    fuzz_check_refusal(st);
    if (st != ZERO_OK) return 0;
    FUZZ_LAW(shape.kind != NULL);
    if (shape.kind->has & ZERO_HAS_ROTARY) FUZZ_LAW(zero_shape_check(&shape) == ZERO_OK);
    if (shape.layers <= 64 && zero_shape_check(&shape) == ZERO_OK) check_written(&shape);
    return 0;
}
