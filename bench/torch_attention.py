#!/usr/bin/env python3
"""Attention in PyTorch, beside that of bench_kernels: scaled_dot_product_attention, causal, forward and
backward, with the shapes of bench_kernels.

    python3 bench/torch_attention.py --device cuda --dtype bf16 --batch 8 --seq 1024

q, k and v are [B, H, T, C/H] each, which spares PyTorch what a packed [B, T, 3C] would cost it. It prints
one line of JSON: nanoseconds per element of the output [B, T, C], as bench_kernels does, the medians of
rounds of as many calls as take 10 ms or more.
"""
import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F

ROUND = 0.01  # seconds of a round, at least


def seconds_of(options, calls, call):
    if options.device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    if options.device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / calls


def median_of(options, call):
    seconds_of(options, 3, call)
    calls = 1
    while seconds_of(options, calls, call) * calls < ROUND:
        calls *= 2
    return statistics.median(seconds_of(options, calls, call) for _ in range(options.rounds))


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--device", choices=("cpu", "cuda"), default="cpu")
    add("--dtype", choices=("fp32", "bf16", "fp16"), default="bf16")
    add("--batch", type=int, default=8)
    add("--seq", type=int, default=1024)
    add("--hidden", type=int, default=768)
    add("--heads", type=int, default=12)
    add("--rounds", type=int, default=11)
    options = parser.parse_args()
    if options.hidden % options.heads:
        parser.error(f"--hidden {options.hidden} is not a multiple of {options.heads} heads")
    return options


def main():
    options = parse()
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[options.dtype]
    torch.manual_seed(1)
    shape = (options.batch, options.heads, options.seq, options.hidden // options.heads)
    q, k, v, gradient = (torch.randn(shape, device=options.device, dtype=dtype) for _ in range(4))
    for x in (q, k, v):
        x.requires_grad_()

    def forward():
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    out = forward()

    def backward():
        torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True)

    name = torch.cuda.get_device_name() if options.device == "cuda" else "cpu"
    element = 1e9 / (options.batch * options.seq * options.hidden)
    print(json.dumps({"torch": torch.__version__, "device": name, "dtype": options.dtype,
                      "attention": median_of(options, forward) * element,
                      "attention backward": median_of(options, backward) * element}))


if __name__ == "__main__":
    main()
