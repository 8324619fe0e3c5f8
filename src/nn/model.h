/* model.h - a model (zero/model.h) as the rest of the library uses it. */
#pragma once

#include "base/range.h"
#include "math/backend.h"
#include "zero/model.h"

/* The elements of a tensor in its group's flat space. */
static inline zero_range zero_range_of_tensor(const zero_tensor *t)
{
    return (zero_range){t->offset, t->offset + t->rows * t->cols};
}

/* Moves *t to the next tensor of a group with elements in `range` of the group's space, and
 * *part to these elements; false after the last one. Begin with *t = -1. */
static inline bool zero_next_part(const zero_model *model, int group, zero_range range,
                                  int *t, zero_range *part)
{
    const zero_group *g = &model->groups[group];
    for (*t = *t < 0 ? g->first_tensor : *t + 1; *t < g->first_tensor + g->n_tensors;
         ++*t) {
        *part = zero_range_overlap(zero_range_of_tensor(&model->tensors[*t]), range);
        if (!zero_range_is_empty(*part)) return true;
    }
    return false;
}

/* The parts side by side that columns are cut in. */
static inline int64_t zero_cut_parts(const zero_tensor *t)
{
    return t->cut == ZERO_CUT_COLS && t->cut_parts > 0 ? t->cut_parts : 1;
}

/* zero_model_describe() for a model that owns its tables already: sets and checks the same.
 * If it fails, the caller still destroys the model. */
zero_status zero_model_complete(zero_model *model);

/* ZERO_ERR_INVALID for NULL, a zeroed or destroyed model, and one whose tables nobody
 * completed. */
zero_status zero_model_check_described(const zero_model *model);

/* ZERO_ERR_INVALID, naming the unit, unless all sizes for B samples of T positions are from
 * 0 to 2^48 floats and the last unit has a loss for each of the B*T rows. */
zero_status zero_model_check_sizes(const zero_model *model, int64_t B, int64_t T);

/* The floats of memory that a unit's `out` takes. */
static inline int64_t zero_unit_out_room(const zero_unit *unit,
                                         const zero_unit_sizes *sizes)
{
    return zero_unit_room(unit, sizes->out);
}

/* The type of a model's activations. */
static inline zero_type zero_model_activations(const zero_model *model)
{
    return model->n_units > 0 ? model->units[0].activations : ZERO_FP32;
}

/* Sets what suits the device that computes: zero_device_logits(). Of models that are not
 * shared. */
static inline void zero_model_chunk_logits(zero_model *model, zero_logits_chunk chunk)
{
    for (int u = 0; u < model->n_units; u++) model->units[u].logits = chunk;
}

/* Writes the initial values of elements [begin, begin + n) of a whole tensor to out. They
 * depend on the seed, the tensor's number in the model, and the element. */
void zero_tensor_init(const zero_tensor *t, int number, int64_t seed, int64_t begin,
                      int64_t n, float *out);

/* Writes the initial values of a group's elements [begin, end) to out. They depend only on
 * the seed, the tensor and the element. Padding, from n_params on, is zero. */
void zero_model_init_params(const zero_model *model, int group, int64_t seed, int64_t begin,
                            int64_t end, float *out);
