#!/usr/bin/env python3
"""GPT-2 training steps in PyTorch: the peer that bench/peers.sh measures on CPUs, and gpu/check.sh
on a GPU.

The model is that of include/zero/gpt2.h (pre-norm blocks, GELU by tanh, tied head). A step is the same:
forward, backward, clipping, AdamW. The modes:

    single      one process, --threads 2
    ddp         DistributedDataParallel over gloo, --ranks processes of one thread
    zero        the same, the optimizer's states sharded (ZeroRedundancyOptimizer, ZeRO's stage 1)
    fsdp2       fully_shard of torch.distributed.fsdp, the same processes (torch_sharded.py)
    deepspeed1  DeepSpeed's ZeRO, stage 1, the same processes; deepspeed2, deepspeed3

With --backend zero the processes are those of mpirun, and exchange by this library (src/python; torch 2.15).
With --device cuda one process computes on the current GPU (single), best with --compile.

--dtype bf16 is torch.autocast: products in bf16; parameters, gradients and optimizer in fp32. FSDP2
and DeepSpeed have a bf16 of their own: parameters and gradients in bf16, masters in fp32.
It prints one line of JSON: the median of the steps after the warm-up, and the peak of each rank's
resident memory. bench/peers.sh sets the environment that makes PyTorch fast (threads, malloc).

    python3 bench/torch_gpt2.py --mode ddp --dtype bf16
"""
import argparse
import inspect
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F

HAS_FUSED_ATTENTION = hasattr(F, "scaled_dot_product_attention")  # 2.0; a CPU kernel since 2.1


SHARDED = {"fsdp2": "fsdp2", "deepspeed1": "deepspeed", "deepspeed2": "deepspeed",
           "deepspeed3": "deepspeed"}  # mode: its function in torch_sharded.py


class Attention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.out = nn.Linear(hidden, hidden)

    def forward(self, x, future):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.heads, -1).transpose(1, 2) for t in self.qkv(x).split(C, 2))
        if HAS_FUSED_ATTENTION:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(2, 3)) * (C // self.heads) ** -0.5  # [B, H, T, T]
            y = scores.masked_fill(future, float("-inf")).softmax(3) @ v
        return self.out(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(hidden, eps=1e-5), nn.LayerNorm(hidden, eps=1e-5)
        self.attention = Attention(hidden, heads)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x, future):
        x = x + self.attention(self.norm1(x), future)
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    """tokens, targets [B, T] -> mean cross-entropy"""

    def __init__(self, options):
        super().__init__()
        hidden, seq = options.hidden, options.seq
        self.words = nn.Embedding(options.vocab, hidden)
        self.positions = nn.Embedding(seq, hidden)
        self.blocks = nn.ModuleList(Block(hidden, options.heads) for _ in range(options.layers))
        self.norm = nn.LayerNorm(hidden, eps=1e-5)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens, targets):
        x = self.words(tokens) + self.positions.weight
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        for block in self.blocks:
            x = block(x, future)
        return self.loss(x, targets)

    def loss(self, x, targets):
        logits = F.linear(self.norm(x), self.words.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def adamw_settings():
    """One pass over the parameters where torch has it (2.4), else tensor by tensor: foreach creates
    temporaries of the whole model and takes 1.7 times as long on CPUs."""
    known = inspect.signature(torch.optim.AdamW).parameters
    settings = {"lr": 6e-4, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}
    version = tuple(int(x) for x in torch.__version__.split(".")[:2])
    if version >= (2, 4):
        return {**settings, "fused": True}
    return {**settings, "foreach": False} if "foreach" in known else settings


def prepare(options):
    """The model, wrapped, and its optimizer; a DeepSpeed engine is both."""
    model = GPT(options).to(options.device)
    if options.mode in SHARDED:
        import torch_sharded
        return getattr(torch_sharded, SHARDED[options.mode])(model, options, adamw_settings())
    if options.mode != "single":
        model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    if options.mode != "zero":
        return model, torch.optim.AdamW(model.parameters(), **adamw_settings())
    from torch.distributed.optim import ZeroRedundancyOptimizer
    return model, ZeroRedundancyOptimizer(
        model.parameters(), optimizer_class=torch.optim.AdamW,
        parameters_as_bucket_view=True, **adamw_settings())


def take_step(model, optimizer, options, sequences):
    """Seconds of a step on this rank, and its loss."""
    words = torch.randint(options.vocab, (sequences, options.seq + 1), device=options.device)
    if options.device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    half = options.dtype == "bf16" and options.mode not in SHARDED
    with torch.autocast(options.device, torch.bfloat16, enabled=half):
        loss = model(words[:, :-1], words[:, 1:])
    if optimizer is None:
        model.backward(loss)
        model.step()
    else:
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    value = loss.item()
    return time.perf_counter() - start, value


def resident_peak():
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024


def device_name(options):
    return torch.cuda.get_device_name() if options.device == "cuda" else "cpu"


def device_peak(options):
    return torch.cuda.max_memory_reserved() if options.device == "cuda" else 0


def train(options, ranks):
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)  # equal weights and data on all ranks; equal data costs the same
    model, optimizer = prepare(options)
    if options.compile and options.mode not in SHARDED:
        model = torch.compile(model)
    steps = [take_step(model, optimizer, options, options.batch // ranks)
             for _ in range(options.warmup + options.steps)]
    seconds = [s for s, _ in steps[options.warmup:]]
    return seconds, steps[-1][1]


def run_rank(rank, ranks, store, options, results):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{store}/store", rank=rank,
                            world_size=ranks)
    seconds, loss = train(options, ranks)
    results.put((rank, seconds, loss, resident_peak()))
    dist.barrier()
    dist.destroy_process_group()


def run_under_mpi(options):
    """The same list on rank 0; elsewhere, and in the process that starts mpirun, this does not return."""
    package = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../build/python")
    if not {"OMPI_COMM_WORLD_RANK", "PMI_RANK"} & set(os.environ):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
        sys.exit(subprocess.run(["mpirun", "-n", str(options.ranks), "--bind-to", "none", "--map-by",
                                 ":OVERSUBSCRIBE", sys.executable, *sys.argv]).returncode)
    import zero_torch  # noqa: F401
    dist.init_process_group("zero", init_method="zero://")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    results = [None] * ranks
    dist.all_gather_object(results, (rank, *train(options, ranks), resident_peak()))
    dist.destroy_process_group()
    return results if rank == 0 else sys.exit(0)


def run(options):
    """A list of (rank, seconds of its steps, last loss, peak of resident bytes)."""
    if options.mode == "single":
        return [(0, *train(options, 1), resident_peak())]
    if options.backend == "zero":
        return run_under_mpi(options)
    results = mp.get_context("spawn").SimpleQueue()
    with tempfile.TemporaryDirectory() as store:
        mp.spawn(run_rank, (options.ranks, store, options, results), nprocs=options.ranks)
    return sorted(results.get() for _ in range(options.ranks))


def print_versions():
    """Versions of torch and its libraries. A product in each type loads the libraries first, and
    makes oneDNN print the instructions that it uses if ONEDNN_VERBOSE is set."""
    for dtype in (torch.float32, torch.bfloat16):
        F.linear(torch.ones(64, 64, dtype=dtype), torch.ones(64, 64, dtype=dtype))
    built = torch.__config__.show()

    def find(pattern):
        return (re.findall(pattern, built) or [None])[0]

    with open("/proc/self/maps") as maps:
        mapped = {os.path.basename(line.split()[-1]) for line in maps if "blas" in line}
    mkl = find(r"Math Kernel Library Version (\S+)")
    blas = f"MKL {mkl}" if mkl else ", ".join(sorted(mapped))
    print(f"torch {torch.__version__}, Python {platform.python_version()}, BLAS {blas}, "
          f"oneDNN {find('MKL-DNN v(.*?) ')}, own loops {find('CPU capability usage: (.*)')}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--versions", action="store_true", help="print the versions of torch and its libraries")
    add("--device", choices=("cpu", "cuda"), default="cpu")
    add("--mode", choices=("single", "ddp", "zero", *SHARDED), default="single")
    add("--backend", choices=("gloo", "zero"), default="gloo", help="how processes exchange")
    add("--dtype", choices=("fp32", "bf16"), default="fp32")
    add("--layers", type=int, default=12)
    add("--hidden", type=int, default=768)
    add("--heads", type=int, default=12)
    add("--seq", type=int, default=256)
    add("--vocab", type=int, default=50257)
    add("--batch", type=int, default=4, help="sequences per step, over all ranks")
    add("--steps", type=int, default=6)
    add("--warmup", type=int, default=2)
    add("--ranks", type=int, default=2)
    add("--threads", type=int)
    add("--compile", action="store_true", help="use torch.compile (torch 2)")
    options = parser.parse_args()
    if options.threads is None:
        options.threads = options.ranks if options.mode == "single" else 1
    if options.compile and not hasattr(torch, "compile"):
        parser.error(f"torch {torch.__version__} cannot compile: use torch 2, or omit --compile")
    if options.device == "cuda" and options.mode != "single":
        parser.error("--device cuda: one process, --mode single")
    ranks = 1 if options.mode == "single" else options.ranks
    if options.batch % ranks:
        parser.error(f"--batch {options.batch} is not a multiple of {ranks} ranks")
    return options


def main():
    options = parse()
    if options.versions:
        return print_versions()
    ranks = run(options)
    seconds = statistics.median(ranks[0][1])
    print(json.dumps({
        "torch": torch.__version__, "device": device_name(options), "mode": options.mode,
        "backend": options.backend,
        "dtype": options.dtype, "device_bytes": device_peak(options),
        "step_seconds": seconds, "tokens_per_second": options.batch * options.seq / seconds,
        "least_seconds": min(ranks[0][1]),
        "loss": ranks[0][2], "resident_bytes": [r[3] for r in ranks]}))


if __name__ == "__main__":
    main()
