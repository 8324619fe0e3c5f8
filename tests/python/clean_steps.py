"""Many right steps of one number of ranks, as step files: every trainer, model, type and accumulation.

    mpirun -n 3 clean_steps.py FOLDER mode,mode...     then zero verify FOLDER/*.safetensors: none may be wrong"""
import itertools
import os
import sys

import torch.distributed as dist

import zero_torch  # noqa: F401
from steps import Trainer

folder, modes = sys.argv[1], sys.argv[2].split(",")
dist.init_process_group(os.environ.get("BACKEND", "zero"), init_method="zero://")
n = dist.get_world_size()
for seed, (mode, model, dtype, M) in enumerate(itertools.product(modes, ("gpt2", "llama"), ("fp32", "bf16"), "14")):
    path = f"{folder}/{mode}-{n}-{model}-{dtype}-{M}.safetensors"
    Trainer(model=model, mode=mode, dtype=dtype, accumulation=M, seed=str(seed + 100 * n), uneven=str(seed % 3 == 1 or ""),
            steps=str(1 + seed % 4)).record(path)
dist.destroy_process_group()
