#!/usr/bin/env python3
"""GPT-2 in PyTorch, one token after the other with a cache of keys and values: the peer of
build/bench_generate and of `zero generate`.

The model is that of include/zero/gpt2.h, with random weights. The cache is allocated once, [B, H, T, C/H]
of each layer's keys and values, in the type of the weights; a token's attention is
scaled_dot_product_attention over the first positions of it; the likeliest token comes next. With
--compile torch compiles a step for any number of positions.

--dtype bf16 has weights, activations and cache in bf16. It prints one line of JSON; the speed is
--texts / the median of the seconds of --tokens steps, after --warmup steps, of which the last one
starts with --context tokens.

    python3 bench/torch_generate.py --dtype bf16 --context 512 --tokens 32
"""
import argparse
import json
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, options):
        super().__init__()
        hidden, self.heads = options.hidden, options.heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)
        shape = (options.texts, self.heads, options.seq, hidden // self.heads)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.randn(shape))

    def attend(self, x, position, mask, context):
        B, C = x.shape
        q, k, v = (t.view(B, self.heads, 1, -1) for t in self.qkv(x).split(C, 1))
        self.keys.index_copy_(2, position, k)
        self.values.index_copy_(2, position, v)
        keys, values = self.keys, self.values
        if context is not None:
            keys, values = keys[:, :, :context], values[:, :, :context]
        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
        return self.out(y.reshape(B, C))

    def forward(self, x, position, mask, context):
        x = x + self.attend(self.norm1(x), position, mask, context)
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.words = nn.Embedding(options.vocab, options.hidden)
        self.positions = nn.Embedding(options.seq, options.hidden)
        self.blocks = nn.ModuleList(Block(options) for _ in range(options.layers))
        self.norm = nn.LayerNorm(options.hidden)
        self.register_buffer("places", torch.arange(options.seq))
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens, position, context):
        """The likeliest token [B] after tokens [B] at `position` [1]; context: its number, or None
        for a mask over the whole cache."""
        x = self.words(tokens) + self.positions(position)
        mask = None if context is not None else self.places <= position
        for block in self.blocks:
            x = block(x, position, mask, context)
        return F.linear(self.norm(x), self.words.weight).argmax(1)


def measure(options):
    """Seconds of each step."""
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    dtype = torch.bfloat16 if options.dtype == "bf16" else torch.float32
    model = GPT(options).to(dtype).eval()
    step = torch.compile(model, fullgraph=True) if options.compile else model
    tokens, seconds = torch.zeros(options.texts, dtype=torch.long), []
    first = max(0, options.context - options.warmup)
    with torch.inference_mode():
        for i in range(options.warmup + options.tokens):
            at = min(first + i, options.seq - 1)
            position = torch.tensor([at])
            start = time.perf_counter()
            tokens = step(tokens, position, None if options.mask else at + 1)
            tokens.tolist()
            seconds.append(time.perf_counter() - start)
    return seconds[options.warmup:]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--dtype", choices=("fp32", "bf16"), default="fp32")
    add("--context", type=int, default=512, help="tokens that a text has at the first step")
    add("--tokens", type=int, default=32, help="measured steps")
    add("--warmup", type=int, default=8)
    add("--texts", type=int, default=1, help="at one time")
    add("--threads", type=int, default=2)
    add("--layers", type=int, default=12)
    add("--hidden", type=int, default=768)
    add("--heads", type=int, default=12)
    add("--seq", type=int, default=1024)
    add("--vocab", type=int, default=50257)
    add("--mask", action="store_true", help="attend to the whole cache with a mask, as gpt-fast has it")
    add("--compile", action="store_true", help="use torch.compile (torch 2)")
    return parser.parse_args()


def main():
    options = parse()
    seconds = statistics.median(measure(options))
    print(json.dumps({
        "torch": torch.__version__, "dtype": options.dtype, "context": options.context,
        "texts": options.texts, "threads": options.threads, "compiled": options.compile,
        "tokens_per_second": options.texts / seconds, "step_seconds": seconds}))


if __name__ == "__main__":
    main()
