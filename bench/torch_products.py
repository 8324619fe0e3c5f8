"""The products of bench_gemm by PyTorch (in bf16: oneDNN), beside ours.

    python bench/torch_products.py [TOKENS] [--rounds N]

One thread, CPU time of it, medians of rounds; in each round build/bench_gemm runs first. Factors are bf16
already, and so is the result: PyTorch converts nothing here, while our products round fp32 activations and
give fp32. ONEDNN_VERBOSE=1 shows the instruction set.
"""
import argparse
import statistics
import subprocess
import time

import torch

LAYERS = [("qkv", 768, 2304, False), ("attention, out", 768, 768, False), ("MLP, up", 768, 3072, False),
          ("MLP, down", 3072, 768, False), ("head", 768, 50257, True)]
BLOCKS, CHUNK = 12, 256


def products(tokens):
    """name, product, flops, times in a step, call"""
    for name, n_in, n_out, head in LAYERS:
        rows = min(tokens, CHUNK) if head else tokens
        x = torch.randn(rows, n_in).bfloat16()
        y = torch.randn(rows, n_out).bfloat16()
        w = torch.randn(n_out, n_in).bfloat16() if head else torch.randn(n_in, n_out).bfloat16()
        times = tokens / rows if head else BLOCKS
        flops = 2.0 * rows * n_in * n_out
        yield name, "forward", flops, times, lambda x=x, w=w, h=head: x @ (w.t() if h else w)
        yield name, "d(x)", flops, times, lambda y=y, w=w, h=head: y @ (w if h else w.t())
        yield name, "d(W)", flops, times, lambda x=x, y=y, h=head: y.t() @ x if h else x.t() @ y


def ours(tokens, kernels):
    text = subprocess.run(["build/bench_gemm", "--rounds", "1", "--kernels", kernels, str(tokens)],
                          check=True, capture_output=True, text=True).stdout
    rows = [line for line in text.splitlines() if line[16:25].strip() in ("forward", "d(x)", "d(W)")]
    return [float(line[25:]) for line in rows]


def seconds(call):
    start = time.thread_time()
    call()
    return time.thread_time() - start


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("tokens", type=int, nargs="?", default=1024)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--kernels", default="AVX512-BF16", help="a column of bench_gemm")
    given = options.parse_args()
    torch.set_num_threads(1)
    rows = list(products(given.tokens))
    theirs, mine = [[] for _ in rows], [[] for _ in rows]
    for row in rows:
        row[4]()
    for _ in range(given.rounds):
        for i, rate in enumerate(ours(given.tokens, given.kernels)):
            mine[i].append(rate)
        for i, row in enumerate(rows):
            theirs[i].append(1e-9 * row[2] / seconds(row[4]))
    print(f"{given.tokens} tokens, Gflop/s, PyTorch {torch.__version__}: {given.kernels}, PyTorch, ratio")
    total = [0.0, 0.0]
    for i, (name, product, flops, times, _) in enumerate(rows):
        a, b = statistics.median(mine[i]), statistics.median(theirs[i])
        total[0] += times * flops / a
        total[1] += times * flops / b
        print(f"{name:<16}{product:<9}{a:8.0f}{b:8.0f}{a / b:8.2f}")
    print(f"{'the step':<41}{total[1] / total[0]:8.2f}")


main()
