"""Steps of torch over this library and over gloo, by turns in one process: a line of JSON per mode, whose
times are seconds of rank 0 and whose ratio is gloo's median over ours.

    PYTHONPATH=build/python:tests/python mpirun -n 4 python3 bench/torch_groups.py fsdp ddp
    ... ROUNDS=9 WIDTH=512 LAYERS=4          (12.9 million parameters; a rank has one sequence of SEQ tokens)
"""
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist

import zero_torch
from gpt import Training

rounds, layers, width, seq, bucket = (int(os.environ.get(name, value)) for name, value in
                              (("ROUNDS", 5), ("LAYERS", 4), ("WIDTH", 512), ("SEQ", 64), ("BUCKET_MB", 1)))
torch.set_num_threads(1)
dist.init_process_group("zero", init_method="zero://")
groups = {"zero": dist.group.WORLD, "gloo": dist.new_group(list(range(dist.get_world_size())), backend="gloo")}
for mode in sys.argv[1:]:
    trainings = {name: Training(mode, group, zero_torch.average_hook, bucket_mb=bucket, layers=layers, width=width, seq=seq)
                 for name, group in groups.items()}
    seconds = {name: [] for name in groups}
    for number in range(rounds + 1):
        for name, training in trainings.items():
            dist.barrier()
            begin = time.perf_counter()
            training.step(number)
            dist.barrier()
            seconds[name].append(time.perf_counter() - begin)
    ours, gloos = (statistics.median(seconds[name][1:]) for name in ("zero", "gloo"))
    if dist.get_rank() == 0:
        print(json.dumps({"mode": mode, "ranks": dist.get_world_size(), "parameters": trainings["zero"].psi,
                          "zero": ours, "gloo": gloos, "ratio": gloos / ours,
                          "rounds": {name: [round(t, 4) for t in seconds[name][1:]] for name in seconds}}), flush=True)
dist.destroy_process_group()
