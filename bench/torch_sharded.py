"""Modes of bench/torch_gpt2.py that shard more than the optimizer: FSDP2 and DeepSpeed's ZeRO.

Each function takes a GPT, the options and AdamW's settings; it returns what is called with tokens,
and the optimizer. Processes exchange by gloo, or by this library. In bf16 both keep fp32 masters and
exchange bf16. As a program it is torch_gpt2.py:

    python3 bench/torch_sharded.py --mode fsdp2 --backend zero
"""
import os

import torch
import torch.distributed as dist


def fsdp2(model, options, settings):
    """fully_shard for each block and for the rest. Parameters stay gathered from forward to backward,
    which is faster by one gather; stored gradients and optimizer states are sharded."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16 if options.dtype == "bf16" else None)
    for module in (*model.blocks, model):
        fully_shard(module, mesh=mesh, mp_policy=policy, reshard_after_forward=False)
    if options.compile:
        model.compile()
    return model, torch.optim.AdamW(model.parameters(), **settings)


def deepspeed(model, options, settings):
    """An engine of the stage that ends the mode's name. Its backward and step take the place of an
    optimizer's; all-reduce goes through its shared memory. AdamW is torch's (fused), which is as
    fast here as DeepSpeed's FusedAdam and needs less memory."""
    ranks = str(dist.get_world_size())
    os.environ.update(DS_ACCELERATOR="cpu", RANK=str(dist.get_rank()), WORLD_SIZE=ranks,
                      LOCAL_RANK=str(dist.get_rank()), LOCAL_SIZE=ranks)
    import deepspeed as ds
    ds.init_distributed("gloo")
    if options.mode == "deepspeed3":  # read outside their modules, which a compiled graph cannot gather
        ds.zero.register_external_parameter(model, model.words.weight)
        ds.zero.register_external_parameter(model, model.positions.weight)
    engine, *_ = ds.initialize(model=model, model_parameters=model.parameters(), config={
        "train_micro_batch_size_per_gpu": options.batch // int(ranks),
        "steps_per_print": 10**9,
        "gradient_clipping": 1.0,
        "bf16": {"enabled": options.dtype == "bf16"},
        "zero_optimization": {"stage": int(options.mode[-1]), "overlap_comm": False},
        "optimizer": {"type": "AdamW", "params": {"torch_adam": True, **settings}}})
    if options.compile:
        engine.compile()
    return engine, None


if __name__ == "__main__":
    import torch_gpt2
    torch_gpt2.main()
