#include "sharding/plan_input.h"

#include "lists/algorithm.h"

zero_plan_input zero_plan_input_standard(const zero_model *model, int n_ranks, int rank)
{
    return (zero_plan_input){.model = model,
                             .type = ZERO_FP32,
                             .activations =
                                 model ? zero_model_activations(model) : ZERO_FP32,
                             .partition = ZERO_PARTITION_SLICE,
                             .n_ranks = n_ranks,
                             .pp = 1,
                             .micro_batch = 1,
                             .seq = model->seq,
                             .accumulation = 1,
                             .bucket = ZERO_PLAN_BUCKET,
                             .prefetch = 1,
                             .check_replicas = ZERO_PLAN_REPLICAS,
                             .offload_depth = ZERO_PLAN_DEPTH,
                             .threads = 1,
                             .collectives = ZERO_ALGORITHM_P2P,
                             .rank = rank};
}

static const char *const offload_names[ZERO_OFFLOAD_PLACES] = {
    [ZERO_OFFLOAD_OFF] = "off",         [ZERO_OFFLOAD_END] = "end",
    [ZERO_OFFLOAD_LAZY] = "lazy",       [ZERO_OFFLOAD_BACKWARD] = "backward",
    [ZERO_OFFLOAD_DELAYED] = "delayed",
};

const char *zero_offload_name(int place)
{
    return offload_names[place];
}

static const char *const pipeline_names[ZERO_PIPELINE_KINDS] = {
    [ZERO_PIPELINE_GPIPE] = "gpipe", [ZERO_PIPELINE_1F1B] = "1f1b"};

const char *zero_pipeline_name(int kind)
{
    return pipeline_names[kind];
}

const char *zero_pipeline_name_at(int i)
{
    return i < ZERO_PIPELINE_KINDS ? pipeline_names[i] : NULL;
}

static const char *type_name(int type)
{
    return zero_type_name((zero_type)type);
}

static const char *algorithm_name(int algorithm)
{
    return zero_algorithm_name((zero_algorithm)algorithm);
}

const zero_field zero_plan_fields[ZERO_PLAN_FIELDS] = {
#define FIELD(type, name, words) ZERO_FIELD_NAMED(zero_plan_input, name, words),
    ZERO_PLAN_MEMBERS(FIELD)
#undef FIELD
};

bool zero_plan_can_reach_devices(const zero_plan_input *in, const char **why)
{
    int ranks = in->layout ? zero_layout_largest_node(in->layout) : 1;
    *why = "there is one rank";
    if (in->n_ranks == 1) return false;
    *why = "one rank per node";
    if (ranks == 1) return false;
    *why = "only --collectives shm and hier read neighbours' memory";
    if (in->collectives != ZERO_ALGORITHM_SHM && in->collectives != ZERO_ALGORITHM_HIER)
        return false;
    *why = "a node has more ranks than a device adds up";
    if (ranks > ZERO_MEMORY_TERMS) return false;
    *why = ranks == in->n_ranks ? "all ranks on one node"
                                : "inside nodes; between them through the host";
    return true;
}

bool zero_plan_can_message_devices(const zero_plan_input *in, const char **why)
{
    *why = "there is one rank";
    if (in->n_ranks == 1) return false;
    *why = "only --collectives p2p sends messages of its own from devices";
    if (in->collectives != ZERO_ALGORITHM_P2P) return false;
    *why = "there are more ranks than a device adds up";
    if (in->n_ranks > ZERO_MEMORY_TERMS) return false;
    *why = "pairs of ranks exchange messages";
    return true;
}

const char *zero_plan_device_exchange(const zero_plan_input *in)
{
    if (in->device_messages) return "mpi";
    return in->ipc ? "ipc" : "staged";
}
