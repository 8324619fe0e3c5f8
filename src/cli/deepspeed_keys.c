#include "cli/deepspeed_keys.h"

#include <stddef.h>
#include <string.h>

#define TAKEN                ZERO_DEEPSPEED_TAKEN, NULL, NULL
#define SECTION              ZERO_DEEPSPEED_SECTION, NULL, NULL
#define SWITCH               ZERO_DEEPSPEED_SWITCH, NULL, NULL
#define NAMED(reason)        ZERO_DEEPSPEED_NAMED, reason, NULL
#define FIXED(value, reason) ZERO_DEEPSPEED_FIXED, reason, value
#define OFF(reason)          FIXED("false", reason)

#define PLACE   "zero decides that when it plans memory"
#define MONITOR "zero writes --metrics FILE"
#define TRANSFERS \
    "zero chooses the transfers of --offload; zero info --offload DIR shows them"
#define BESIDE  "--offload-when says what updates run beside"
#define PINNED  "zero pins what a device copies"
#define BLOCKS  "--offload-depth counts blocks of 262144 parameters' states instead"
#define CUT     "zero knows where its model is cut for --tp"
#define QUANTS  "zero sends what it computes, not quantized"
#define SCALING "zero's loss scale has DeepSpeed's default here and no other value"
#define SAVING  "zero's checkpoints load on any ranks and any stage"

/* clang-format off */
static const zero_deepspeed_key keys[] = {
    /* batches */
    {"train_batch_size", TAKEN},
    {"train_micro_batch_size_per_gpu", TAKEN},
    {"gradient_accumulation_steps", TAKEN},

    /* optimizer and scheduler */
    {"gradient_clipping", TAKEN},
    {"optimizer", SECTION},
    {"optimizer.type", TAKEN},
    {"optimizer.legacy_fusion", NAMED("zero has one AdamW")},
    {"optimizer.params", SECTION},
    {"optimizer.params.lr", TAKEN},
    {"optimizer.params.betas", TAKEN},
    {"optimizer.params.eps", TAKEN},
    {"optimizer.params.weight_decay", TAKEN},
    {"optimizer.params.torch_adam", TAKEN},
    {"optimizer.params.adam_w_mode", TAKEN},
    {"optimizer.params.bias_correction",
     FIXED("true", "zero always corrects the bias of both moments")},
    {"optimizer.params.amsgrad", OFF("zero has no AMSGrad")},
    {"optimizer.params.fp32_optimizer_states", FIXED("true", "zero's moments are fp32")},
    {"optimizer.params.max_grad_norm",
     OFF("DeepSpeed does not take it either: its key is gradient_clipping")},
    {"optimizer.params.fused", NAMED("zero has one AdamW")},
    {"optimizer.params.foreach", NAMED("zero has one AdamW")},
    {"optimizer.params.set_grad_none", NAMED(PLACE)},
    {"scheduler", SECTION},
    {"scheduler.type", TAKEN},
    {"scheduler.params", SECTION},
    {"scheduler.params.warmup_min_lr", TAKEN},
    {"scheduler.params.warmup_max_lr", TAKEN},
    {"scheduler.params.warmup_num_steps", TAKEN},
    {"scheduler.params.warmup_type", TAKEN},
    {"scheduler.params.total_num_steps", TAKEN},
    {"scheduler.params.warmup_min_ratio", OFF("zero's warm-up begins near 0")},
    {"scheduler.params.cos_min_ratio", TAKEN},
    {"scheduler.params.last_batch_iteration",
     FIXED("-1", "a run of zero begins at its first step")},

    /* precision */
    {"bf16", SWITCH},
    {"bf16.enabled", TAKEN},
    {"bf16.immediate_grad_update", NAMED("zero adds each gradient as soon as it is there")},
    {"bf16.check_grad_overflow", NAMED("a gradient that is not finite ends a bf16 run of zero")},
    {"bf16.bf16_master_weights_and_grads", OFF("zero's masters are fp32")},
    {"bf16.bf16_optimizer_states", OFF("zero's moments are fp32")},
    {"bfloat16", SWITCH},
    {"bfloat16.enabled", TAKEN},
    {"fp16", SWITCH},
    {"fp16.enabled", TAKEN},
    {"fp16.auto_cast", NAMED("the inputs are tokens, which are whole numbers")},
    {"fp16.loss_scale", FIXED("0", "zero's loss scale is dynamic")},
    {"fp16.initial_scale_power", FIXED("16", SCALING)},
    {"fp16.loss_scale_window", FIXED("1000", SCALING)},
    {"fp16.hysteresis", FIXED("2", SCALING)},
    {"fp16.consecutive_hysteresis", OFF(SCALING)},
    {"fp16.min_loss_scale", FIXED("1", SCALING)},
    {"fp16.fused_mode", NAMED("zero has one AdamW")},
    {"fp16.fp16_master_weights_and_grads", OFF("zero's masters are fp32")},
    {"amp", OFF("zero has bf16 and fp16 of its own, but not Apex")},
    {"torch_autocast", OFF("zero has one type for parameters and gradients")},
    {"data_types", SECTION},
    {"data_types.grad_accum_dtype", NAMED("zero adds microbatches in fp32; only rounding differs")},

    /* ZeRO */
    {"zero_optimization", SECTION},
    {"zero_optimization.stage", TAKEN},
    {"zero_optimization.reduce_bucket_size", TAKEN},
    {"zero_optimization.overlap_comm", TAKEN},
    {"zero_optimization.stage3_prefetch_bucket_size", TAKEN},
    {"zero_optimization.stage3_param_persistence_threshold", TAKEN},
    {"zero_optimization.allgather_bucket_size", NAMED("zero gathers a group at a time")},
    {"zero_optimization.allgather_partitions",
     NAMED("zero always gathers; --partition owner broadcasts")},
    {"zero_optimization.reduce_scatter", NAMED("zero always reduces to the owner of a shard")},
    {"zero_optimization.contiguous_gradients", NAMED(PLACE)},
    {"zero_optimization.use_multi_rank_bucket_allreduce",
     NAMED("zero always reduces to the owner of a shard")},
    {"zero_optimization.round_robin_gradients", NAMED("zero cuts each group evenly")},
    {"zero_optimization.sub_group_size", NAMED("zero updates a group at a time")},
    {"zero_optimization.stage3_max_live_parameters",
     NAMED("zero releases a group after each use; --prefetch decides how many are gathered")},
    {"zero_optimization.stage3_max_reuse_distance", NAMED("zero releases a group after each use")},
    {"zero_optimization.stage3_model_persistence_threshold",
     NAMED("--persist has no limit over the model")},
    {"zero_optimization.stage3_module_granularity_threshold",
     NAMED("zero's groups are blocks, not modules")},
    {"zero_optimization.stage3_use_all_reduce_for_fetch_params", NAMED("zero always gathers")},
    {"zero_optimization.stage3_allgather_sequential", NAMED("zero gathers a group at a time")},
    {"zero_optimization.stage3_partition_stream_chunk_size",
     NAMED("zero makes each rank's shard alone")},
    {"zero_optimization.stage3_gather_16bit_weights_on_model_save",
     NAMED("zero checkpoint export writes whole weights")},
    {"zero_optimization.stage3_gather_fp16_weights_on_model_save",
     NAMED("zero checkpoint export writes whole weights")},
    {"zero_optimization.offload_optimizer", SECTION},
    {"zero_optimization.offload_optimizer.device", TAKEN},
    {"zero_optimization.offload_optimizer.nvme_path", TAKEN},
    {"zero_optimization.offload_optimizer.buffer_count", NAMED(BLOCKS)},
    {"zero_optimization.offload_optimizer.pin_memory", NAMED(PINNED)},
    {"zero_optimization.offload_optimizer.pipeline", NAMED(BESIDE)},
    {"zero_optimization.offload_optimizer.pipeline_read", NAMED(BESIDE)},
    {"zero_optimization.offload_optimizer.pipeline_write", NAMED(BESIDE)},
    {"zero_optimization.offload_optimizer.fast_init", NAMED(TRANSFERS)},
    {"zero_optimization.offload_optimizer.ratio", NAMED("--offload moves all optimizer states")},
    {"zero_optimization.offload_optimizer.super_offload", NAMED(BESIDE)},
    {"zero_optimization.offload_optimizer.convert_grad_on_cpu", NAMED(PLACE)},
    {"zero_optimization.offload_optimizer.cpuadam_cores_perc", NAMED("--threads says how many compute")},
    {"zero_optimization.offload_param", SECTION},
    {"zero_optimization.offload_param.device", TAKEN},
    {"zero_optimization.offload_param.nvme_path", TAKEN},
    {"zero_optimization.offload_param.buffer_count", NAMED(BLOCKS)},
    {"zero_optimization.offload_param.buffer_size", NAMED(BLOCKS)},
    {"zero_optimization.offload_param.max_in_cpu", NAMED(PLACE)},
    {"zero_optimization.offload_param.pin_memory", NAMED(PINNED)},
    {"zero_optimization.cpu_offload", TAKEN},
    {"zero_optimization.cpu_offload_params", TAKEN},
    {"zero_optimization.cpu_offload_param", TAKEN},
    {"zero_optimization.cpu_offload_use_pin_memory", NAMED(PINNED)},
    {"zero_optimization.zero_hpz_partition_size", TAKEN},
    {"zero_optimization.mics_shard_size", TAKEN},
    {"zero_optimization.mics_hierarchical_params_gather",
     NAMED("--collectives hier gathers in two levels")},
    {"zero_optimization.zero_quantized_weights", OFF(QUANTS)},
    {"zero_optimization.zero_quantized_nontrainable_weights", OFF(QUANTS)},
    {"zero_optimization.zero_quantized_gradients", OFF(QUANTS)},
    {"zero_optimization.zeropp_loco_param", OFF(QUANTS)},
    {"zero_optimization.zenflow", OFF("zero updates all parameters in each step")},
    {"zero_optimization.memory_efficient_linear", NAMED(PLACE)},
    {"zero_optimization.override_module_apply", NAMED("zero's model has no modules of PyTorch")},
    {"zero_optimization.leaf_module", NAMED("zero's groups are blocks, not modules")},
    {"zero_optimization.ignore_unused_parameters", NAMED("zero's model uses all parameters")},
    {"zero_optimization.load_from_fp32_weights", NAMED(SAVING)},
    {"zero_optimization.elastic_checkpoint", NAMED(SAVING)},
    {"zero_optimization.legacy_stage1", NAMED("zero has one stage 1")},
    {"zero_optimization.pipeline_loading_checkpoint", NAMED(SAVING)},
    {"zero_optimization.log_trace_cache_warnings", NAMED("zero's schedule has no cache")},
    {"zero_optimization.enable_sanity_checks", NAMED("--check collectives compares the ranks")},
    {"zero_optimization.save_muon_momentum_buffer_in_memory", NAMED("zero has one AdamW")},
    {"zero_allow_untested_optimizer", NAMED("zero has one AdamW")},
    {"zero_force_ds_cpu_optimizer", NAMED("zero has one AdamW")},

    /* activations */
    {"activation_checkpointing", SECTION},
    {"activation_checkpointing.partition_activations", TAKEN},
    {"activation_checkpointing.cpu_checkpointing", TAKEN},
    {"activation_checkpointing.contiguous_memory_optimization", TAKEN},
    {"activation_checkpointing.number_checkpoints", TAKEN},
    {"activation_checkpointing.synchronize_checkpoint_boundary", NAMED("it is about GPU streams")},
    {"activation_checkpointing.profile", NAMED("zero's summary has a profile")},

    /* communication */
    {"communication_data_type", NAMED("gradients travel in --dtype; only rounding differs")},
    {"seq_parallel_comm_data_type", NAMED("zero does not cut sequences")},
    {"prescale_gradients", NAMED("zero scales the loss instead; only rounding differs")},
    {"gradient_predivide_factor", NAMED("zero scales the loss instead; only rounding differs")},
    {"sparse_gradients", NAMED("zero sends the embedding's gradient whole")},
    {"disable_allgather", NAMED("zero always gathers")},
    {"sequence_parallel_size",
     FIXED("1", "zero does not cut sequences, so the batches would differ")},
    {"tensor_parallel", SECTION},
    {"tensor_parallel.autotp_size", TAKEN},
    {"tensor_parallel.dtype", NAMED("--dtype is that of bf16 or fp16")},
    {"tensor_parallel.tp_overlap_comm", NAMED("--overlap is about all messages")},
    {"tensor_parallel.tp", NAMED("DeepSpeed trains with autotp_size")},
    {"tensor_parallel.injection_policy_tuple", NAMED(CUT)},
    {"tensor_parallel.partition_config", NAMED(CUT)},
    {"tensor_parallel.preset_model", NAMED(CUT)},
    {"tensor_parallel.keep_module_on_host", NAMED(PLACE)},
    {"tensor_parallel.replace_with_kernel_inject", NAMED("zero has kernels of its own")},
    {"tensor_parallel.kernel_inject", NAMED("zero has kernels of its own")},
    {"use_data_before_expert_parallelism", NAMED("zero's model has no experts")},
    {"pipeline", NAMED("zero does not cut the model into pipeline stages")},

    /* what changes the model or its data */
    {"sparse_attention", OFF("zero's attention is dense")},
    {"progressive_layer_drop", OFF("zero trains all layers in each step")},
    {"curriculum_learning", OFF("zero's sequences have one length")},
    {"data_efficiency", OFF("zero draws samples in its own order")},
    {"compression_training", OFF("zero trains dense weights")},
    {"quantize_training", OFF("zero trains dense weights")},
    {"weight_quantization", OFF("zero trains dense weights")},
    {"eigenvalue", OFF("zero trains dense weights")},
    {"elasticity", OFF("it chooses the batch; give train_batch_size")},
    {"autotuning", OFF("it chooses the batch; give train_batch_size")},
    {"hybrid_engine", OFF("zero has no reinforcement learning")},

    /* what is shown and saved */
    {"steps_per_print", TAKEN},
    {"wall_clock_breakdown", NAMED("zero's summary has a profile")},
    {"memory_breakdown", NAMED("zero plan shows memory by class")},
    {"flops_profiler", NAMED("zero's summary has a profile")},
    {"comms_logger", NAMED("zero's summary counts messages and bytes")},
    {"timers", NAMED("zero's summary has a profile")},
    {"dump_state", NAMED("zero info --defaults MODEL shows all options")},
    {"tensorboard", NAMED(MONITOR)},
    {"wandb", NAMED(MONITOR)},
    {"comet", NAMED(MONITOR)},
    {"csv_monitor", NAMED(MONITOR)},
    {"checkpoint", NAMED(SAVING)},
    {"nebula", NAMED(SAVING)},
    {"datastates_ckpt", NAMED(SAVING)},
    {"aio", NAMED(TRANSFERS)},
    {"dataloader_drop_last", NAMED("zero's batches are all full")},
    {"vocabulary_size", NAMED("DeepSpeed only warns by it; --vocab N sets zero's")},
    {"graph_harvesting", NAMED("it is about GPU kernels")},
    {"compile", NAMED("zero is compiled")},
};
/* clang-format on */

const zero_deepspeed_key *zero_deepspeed_key_at(int i)
{
    return (size_t)i < sizeof keys / sizeof keys[0] ? &keys[i] : NULL;
}

const zero_deepspeed_key *zero_deepspeed_find(const char *path)
{
    const zero_deepspeed_key *key;
    for (int i = 0; (key = zero_deepspeed_key_at(i)); i++)
        if (strcmp(key->path, path) == 0) return key;
    return NULL;
}
