#include "train/activations.h"

#include "base/fail.h"
#include "base/type.h"
#include "math/device.h"

zero_status zero_activations_choose(const char *name, zero_type parameters,
                                    const char *device, zero_type *activations)
{
    const bool halves = zero_device_halves_rows(device);
    zero_type type = halves && !zero_device_is_host(device) ? parameters : ZERO_FP32;
    if (name) (void)zero_type_find(name, &type); /* an option's name is valid */
    if (type != ZERO_FP32 && type != parameters) {
        const char *given = zero_type_name(type), *dtype = zero_type_name(parameters);
        if (parameters == ZERO_FP32)
            return zero_fail(
                ZERO_ERR_INVALID,
                "--activations %s with --dtype fp32: activations are fp32 or of the type "
                "of parameters; give --dtype %s, or leave --activations out",
                given, given);
        return zero_fail(ZERO_ERR_INVALID,
                         "--activations %s with --dtype %s: activations are fp32 or of the "
                         "type of parameters; give --activations %s or fp32",
                         given, dtype, dtype);
    }
    if (type != ZERO_FP32 && !halves)
        return zero_fail(ZERO_ERR_INVALID,
                         "--activations %s with --device %s, which computes with "
                         "activations of fp32: leave --activations out",
                         name, device);
    *activations = type;
    return ZERO_OK;
}
