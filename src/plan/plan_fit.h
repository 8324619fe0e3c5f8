/* plan_fit.h - the deepest model that fits a given memory, beside a device two of them. */
#pragma once

#include "nn/shape.h"
#include "sharding/schedule.h"

typedef struct {
    int64_t layers, n_params;
    size_t needed; /* bytes per rank: zero_plan_device_needed() with a device, else
                    * zero_plan_needed() */
    size_t host;   /* with a device: zero_plan_needed(), bytes beside it; else 0 */
    size_t file;   /* bytes of a rank's scratch file */
} zero_plan_fitted;

/* The room of a rank. */
typedef struct {
    size_t bytes;   /* of memory; with a device: of the device's */
    size_t context; /* of these, what the device's library takes */
    size_t host;    /* with a device: bytes of the host's memory; 0: any number */
    size_t disk;    /* bytes of a scratch file; 0: any number */
} zero_plan_room;

/* The most layers with which this shape trains in this room; at most as many as
 * zero_shape_check() allows. shape->layers is ignored, and so is all of input->model but
 * its share and the last unit's chunk of logits; it may be NULL. Fails as
 * zero_schedule_compile() does; ZERO_ERR_INVALID, with the bytes needed, if not even one
 * layer fits. */
zero_status zero_plan_fit(const zero_shape *shape, const zero_plan_input *input,
                          const zero_plan_room *room, zero_plan_fitted *fitted);
