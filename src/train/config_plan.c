/* What a configuration says about where a run computes, and the plan's input that it
 * makes. */

#include "math/device.h"
#include "plan/plan.h"
#include "sharding/compile.h"
#include "train/config.h"

/* True if --offload names the host's memory, beside a device. */
static bool zero_config_offloads_to_host(const zero_config *c)
{
    return c->offload && zero_same_text(c->offload, "host");
}

const char *zero_config_directory(const zero_config *c)
{
    return zero_config_offloads_to_host(c) ? NULL : c->offload;
}

bool zero_config_has_device(const zero_config *c)
{
    return !zero_same_text(c->device, zero_device_name_at(0));
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
    return !c->device_exchange || zero_same_text(c->device_exchange, "auto");
}

static bool reaches_devices(const zero_config *c, const zero_plan_input *in)
{
    const char *why;
    if (!zero_config_chooses_exchange(c)) return zero_same_text(c->device_exchange, "ipc");
    return has_cuda(c) && zero_plan_can_reach_devices(in, &why);
}

int zero_config_shard_ranks(const zero_config *c)
{
    return c->plan.shard_ranks > 0 ? (int)c->plan.shard_ranks : c->plan.n_ranks;
}

zero_status zero_activations_choose(const char *name, zero_type parameters,
                                    const char *device, zero_type *activations)
{
    const bool halves = zero_device_halves_rows(device);
    zero_type type = halves && !zero_device_is_host(device) ? parameters : ZERO_FP32;
    if (name) (void)zero_type_find(name, &type); /* an option's name is valid */
    if (type != ZERO_FP32 && type != parameters) {
        const char *given = zero_type_name(type), *dtype = zero_type_name(parameters);
        ZERO_INVALID_IF(
            parameters == ZERO_FP32,
            "--activations %s with --dtype fp32: activations are fp32 or of the "
            "type of parameters; give --dtype %s, or leave --activations out",
            given, given);
        return zero_fail(ZERO_ERR_INVALID,
                         "--activations %s with --dtype %s: activations are fp32 or of the "
                         "type of parameters; give --activations %s or fp32",
                         given, dtype, dtype);
    }
    ZERO_INVALID_IF(type != ZERO_FP32 && !halves,
                    "--activations %s with --device %s, which computes with activations of "
                    "fp32: leave --activations out",
                    name, device);
    *activations = type;
    return ZERO_OK;
}

zero_type zero_config_activations(const zero_config *c)
{
    zero_type type = ZERO_FP32;
    zero_status st =
        zero_activations_choose(c->activations, c->plan.type, c->device, &type);
    return st == ZERO_OK ? type : ZERO_FP32; /* a checked configuration's is valid */
}

int64_t zero_config_bucket(const zero_config *c, const zero_plan_input *in)
{
    return c->bucket_grows ? zero_max(c->plan.bucket, zero_schedule_least_bucket(in))
                           : c->plan.bucket;
}

void zero_config_plan(const zero_config *c, zero_plan_input *in)
{
    in->seq = in->model->seq;
    in->activations = zero_model_activations(in->model);
    if (!c->offload)
        in->offload = ZERO_OFFLOAD_OFF;
    else if (in->delayed_from > 0)
        in->offload = ZERO_OFFLOAD_DELAYED;
    in->device = zero_config_has_device(c);
    in->offload_host = zero_config_offloads_to_host(c);
    in->shard_ranks = zero_config_shard_ranks(c);
    in->texts = c->sample > 0; /* the sample of a run */
    in->threads = zero_max(in->threads, 1);
    in->ipc = reaches_devices(c, in);
    in->device_messages = c->device_exchange && zero_same_text(c->device_exchange, "mpi");
    in->bucket = zero_config_bucket(c, in);
}

zero_plan_input zero_config_plan_at(const zero_config *c, const zero_model *part,
                                    const zero_tp_place *place, const zero_layout *world,
                                    zero_algorithm collectives)
{
    zero_plan_input in = c->plan;
    in.model = part;
    in.rank = place->rank;
    in.layout = &place->data;
    in.tp_layout = place->group.size > 1 ? &place->group : NULL;
    in.pp_layout = place->stages.size > 1 ? &place->stages : NULL;
    in.pp_stage = place->stage;
    in.world_layout = world;
    in.collectives = collectives;
    zero_config_plan(c, &in);
    return in;
}
