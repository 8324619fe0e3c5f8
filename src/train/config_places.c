#include "train/config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "math/backends.h"
#include "math/device.h"
#include "plan/plan.h"

bool zero_config_offloads_to_host(const zero_config *c)
{
    return c->offload && strcmp(c->offload, "host") == 0;
}

const char *zero_config_directory(const zero_config *c)
{
    return zero_config_offloads_to_host(c) ? NULL : c->offload;
}

static zero_status check_delayed(const zero_config *c)
{
    if (c->plan.delayed_from == 0) return ZERO_OK;
    if (!c->offload)
        return zero_fail(
            ZERO_ERR_INVALID,
            "--delayed-update without --offload: only states in a slower tier are updated "
            "beside a step; give --offload DIR, or with a device --offload host");
    if (c->plan.offload == ZERO_OFFLOAD_LAZY) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "--delayed-update with --offload-when %s: a delayed update runs "
                     "beside the whole next step; give one of them",
                     zero_offload_name(c->plan.offload));
}

bool zero_config_has_device(const zero_config *c)
{
    return strcmp(c->device, zero_device_name_at(0)) != 0;
}

/* Devices of CUDA, also an emulated one. */
static bool has_cuda(const zero_config *c)
{
    return strncmp(c->device, "cuda", strlen("cuda")) == 0;
}

size_t zero_config_context(const zero_config *c)
{
    return has_cuda(c) ? ZERO_DEVICE_CONTEXT_BYTES : 0;
}

bool zero_config_chooses_exchange(const zero_config *c)
{
    return !c->device_exchange || strcmp(c->device_exchange, "auto") == 0;
}

bool zero_config_ipc(const zero_config *c, const zero_plan_input *in)
{
    const char *why;
    if (!zero_config_chooses_exchange(c)) return strcmp(c->device_exchange, "ipc") == 0;
    return has_cuda(c) && zero_plan_can_reach_devices(in, &why);
}

bool zero_config_messages_devices(const zero_config *c)
{
    return c->device_exchange && strcmp(c->device_exchange, "mpi") == 0;
}

zero_status zero_config_check_places(const zero_config *config)
{
    const char *without = config->plan.offload_parameters    ? "parameters"
                          : config->plan.offload_activations ? "activations"
                                                             : NULL;
    if (!zero_config_directory(config) && without)
        return zero_fail(ZERO_ERR_INVALID,
                         "--offload-%s needs a directory for the scratch file: give "
                         "--offload DIR as well",
                         without);
    if (zero_config_offloads_to_host(config) && !zero_config_has_device(config))
        return zero_fail(ZERO_ERR_INVALID,
                         "--offload host without --device: optimizer states lie in the "
                         "host's memory already; give a device, or --offload DIR for a "
                         "file (./host for a directory of that name)");
    if (config->offload && config->plan.offload == ZERO_OFFLOAD_BACKWARD &&
        config->clip > 0.0)
        return zero_fail(
            ZERO_ERR_INVALID,
            "--offload-when backward with --clip %g: the norm is known after the last "
            "gradient, and backward updates before: give --clip 0, or --offload-when lazy",
            config->clip);
    ZERO_TRY(check_delayed(config));
    bool has_device = zero_config_has_device(config);
    zero_device_choice choice;
    char where[128];
    snprintf(where, sizeof where, "--device %s", config->device);
    ZERO_TRY(zero_device_read(config->device, where, &choice));
    if (has_device && strcmp(config->backend, zero_backend_name_at(0)) != 0)
        return zero_fail(
            ZERO_ERR_INVALID,
            "--backend %s with --device %s: the device computes; give one of them",
            config->backend, config->device);
    if (!has_device && !zero_config_chooses_exchange(config))
        return zero_fail(ZERO_ERR_INVALID,
                         "--device-exchange %s without a device: give --device cuda as "
                         "well, or leave it out",
                         config->device_exchange);
    if (!has_device && config->device_memory != 0)
        return zero_fail(ZERO_ERR_INVALID,
                         "--device-memory without a device: give --device cuda as well, or "
                         "--memory-limit for the host's memory");
    bool is_shared = config->tp.ranks > 1;
    if (!zero_config_has_device(config) || (!is_shared && config->tp.slices <= 1))
        return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "--%s %" PRId64
                     " with --device %s: a device does not yet add up what several ranks "
                     "or slices compute; leave one of them out",
                     is_shared ? "tp" : "tp-slices",
                     is_shared ? config->tp.ranks : config->tp.slices, config->device);
}
