#include "sharding/legend.h"

static const char *const ops[ZERO_OP_KINDS] = {
    [ZERO_OP_LOAD] = "takes the tokens of a microbatch",
    [ZERO_OP_GATHER] = "begins to collect a group's parameters from all ranks",
    [ZERO_OP_GATHER_WAIT] = "waits until the group's parameters are whole",
    [ZERO_OP_FORWARD] = "computes a unit, its input to its output",
    [ZERO_OP_RECOMPUTE] = "computes a unit once more, for what BACKWARD reads",
    [ZERO_OP_BACKWARD] = "computes a unit's gradients, the last unit first",
    [ZERO_OP_JOIN] = "begins to add up what a TP group's ranks computed",
    [ZERO_OP_JOIN_WAIT] = "waits for the joined result",
    [ZERO_OP_KEEP] = "keeps this rank's piece of a unit's output",
    [ZERO_OP_COLLECT] = "begins to collect the kept pieces from the TP group",
    [ZERO_OP_COLLECT_WAIT] = "waits until the output is whole again",
    [ZERO_OP_RELEASE] = "gives back the memory of gathered parameters",
    [ZERO_OP_ROUND] = "rounds a gradient from fp32 to its own type",
    [ZERO_OP_ACCUMULATE] = "adds a microbatch's gradient to the sum of others",
    [ZERO_OP_REDUCE] = "begins to add up all ranks' gradients for their owners",
    [ZERO_OP_REDUCE_WAIT] = "waits for this rank's piece of the sum",
    [ZERO_OP_ALL_REDUCE] = "begins to add up the pieces of all replicas",
    [ZERO_OP_ALL_REDUCE_WAIT] = "waits for the sum over all replicas",
    [ZERO_OP_LOSS] = "adds up the losses of all ranks",
    [ZERO_OP_NORM] = "adds up the squares of a group's gradient",
    [ZERO_OP_OVERFLOW] = "all ranks agree whether gradients are finite",
    [ZERO_OP_VERIFY] = "looks for states that changed since their RECORD",
    [ZERO_OP_COMPARE] = "looks whether copies are equal, some in each step",
    [ZERO_OP_UPDATE] = "the optimizer changes the parameters that a rank owns",
    [ZERO_OP_RECORD] = "notes hashes of what UPDATE wrote",
    [ZERO_OP_FETCH_GRAD] = "begins to copy a gradient from the device to the host",
    [ZERO_OP_STORE_PARAM] = "begins to copy new parameters to the device",
    [ZERO_OP_PUBLISH] = "puts new parameters where the next step reads them",
    [ZERO_OP_DELAY] = "keeps a gradient for the update beside the next step",
    [ZERO_OP_FETCH] = "begins to read optimizer states from the file",
    [ZERO_OP_FETCH_WAIT] = "waits until they are in memory",
    [ZERO_OP_STORE] = "begins to write optimizer states to the file",
    [ZERO_OP_STORE_WAIT] = "waits until their memory is free",
    [ZERO_OP_FETCH_PARAM] = "begins to read parameters from the file",
    [ZERO_OP_FETCH_PARAM_WAIT] = "waits until they are in memory",
    [ZERO_OP_SAVE] = "begins to write a unit's output to the file",
    [ZERO_OP_SAVE_WAIT] = "waits until its memory is free",
    [ZERO_OP_RESTORE] = "begins to read a unit's output from the file",
    [ZERO_OP_RESTORE_WAIT] = "waits until the output is in memory",
};

static const char *const classes[ZERO_CLASSES] = {
    [ZERO_CLASS_PARAMETERS] = "those that a rank holds all the time",
    [ZERO_CLASS_GRADIENTS] = "those that a rank holds all the time",
    [ZERO_CLASS_OPTIMIZER] = "momentum, variance; of 16-bit runs master weights, too",
    [ZERO_CLASS_GATHERED] = "other ranks' parameters, while they are needed",
    [ZERO_CLASS_IN_FLIGHT] = "a group's gradient from BACKWARD until it is reduced",
    [ZERO_CLASS_ACCUMULATORS] = "sums of gradients over microbatches, fp32",
    [ZERO_CLASS_BUCKETS] = "staging of collectives",
    [ZERO_CLASS_SLOTS] = "blocks of the file while they are in memory",
    [ZERO_CLASS_KEPT] = "what is kept of a unit to compute it once more",
    [ZERO_CLASS_CACHE] = "keys and values of the texts that are being generated",
    [ZERO_CLASS_ACTIVATIONS] = "what FORWARD leaves for BACKWARD, and outputs",
    [ZERO_CLASS_LOGITS] = "scores of all words at each position, and their losses",
    [ZERO_CLASS_WORKSPACE] = "what a unit needs only while it computes; sums, checks",
    [ZERO_CLASS_DATA] = "tokens of a microbatch",
};

const char *zero_op_meaning(zero_op op)
{
    return ops[op];
}

const char *zero_class_meaning(zero_class cls)
{
    return classes[cls];
}

const char *zero_freed_meaning(void)
{
    return "a gradient in flight, after its last use; no instruction";
}
