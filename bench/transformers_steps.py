#!/usr/bin/env python3
"""Llama, Mistral, Qwen2, Qwen3 and GPT-NeoX beside transformers: the same steps, and how long steps take.

    python3 bench/transformers_steps.py build/zero
        ten steps of AdamW from the same weights: losses and gradient norms compared
    python3 bench/transformers_steps.py build/zero --time fp32 bf16 --layers 6 30
        steps of SmolLM2-135M's shape, 1024 tokens on two cores, by turns, PyTorch compiled against zero with
        2 threads and with 2 ranks: each type, each depth. --sequences 4: of 256 tokens

The first makes small models with random weights, writes them as transformers does, and trains them on
random tokens here, in fp32, and by zero on two ranks in stage 3. It needs torch and transformers; the
second needs torch.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time

import numpy as np
import torch

T, B, STEPS = 32, 4, 10
KINDS = {
    "Llama": dict(rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                    original_max_position_embeddings=16), tie_word_embeddings=False),
    "Mistral": dict(sliding_window=None, tie_word_embeddings=False),
    "Qwen2": dict(tie_word_embeddings=True),
    "Qwen3": dict(head_dim=24, tie_word_embeddings=False),
    "GPTNeoX": dict(tie_word_embeddings=False),
}


def random_model(tr, kind):
    torch.manual_seed(1)
    own = {} if kind == "GPTNeoX" else dict(num_key_value_heads=2, rms_norm_eps=1e-5, rope_theta=1e4)
    config = getattr(tr, kind + "Config")(
        hidden_size=64, intermediate_size=176, num_hidden_layers=2, num_attention_heads=4, vocab_size=256,
        max_position_embeddings=64, **own, **KINDS[kind])
    model = getattr(tr, kind + "ForCausalLM")(config).float()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(torch.randn_like(p) * (0.08 if p.dim() > 1 else 0.05) + (1.0 if "norm" in name else 0.0))
    return model


def loss_of(model, x, y):
    logits = model(input_ids=x).logits
    return torch.nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]).float(), y.reshape(-1))


def optimizer(model, lr):
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    return torch.optim.AdamW([dict(params=matrices, weight_decay=0.1), dict(params=vectors, weight_decay=0.0)],
                             lr=lr, betas=(0.9, 0.95), eps=1e-8, fused=True)


def lines_of(command, metrics):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr[-800:])
    return [json.loads(line) for line in open(metrics)]


def compare(zero, tr, kind, tokens):
    model = random_model(tr, kind)
    shutil.rmtree("model", ignore_errors=True)
    model.save_pretrained("model")
    command = ["mpirun", "-n", "2", "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none", zero, "train", "--init-from",
               "model", "--data", "tokens.bin", "--token-bytes", "2", "--shuffle=off", "--seq", str(T),
               "--global-batch", str(B), "--steps", str(STEPS), "--lr", "1e-3", "--lr-decay", "none", "--warmup", "0",
               "--clip", "1", "--weight-decay", "0.1", "--beta1", "0.9", "--beta2", "0.95", "--stage", "3",
               "--eval-every", "0", "--sample", "0", "--metrics", kind]
    ours = [(line["loss"], line["grad_norm"]) for line in lines_of(command, kind) if "grad_norm" in line]
    adam, theirs = optimizer(model, 1e-3), []
    for step in range(STEPS):
        begins = [(step * B + b) * T for b in range(B)]
        x = torch.tensor(np.stack([tokens[i:i + T] for i in begins]))
        y = torch.tensor(np.stack([tokens[i + 1:i + T + 1] for i in begins]))
        loss = loss_of(model, x, y)
        adam.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        theirs.append((loss.item(), norm.item()))
    apart = [[abs(a[k] / b[k] - 1) for a, b in zip(ours, theirs)] for k in (0, 1)]
    print(f"{kind:8} {len(ours)} steps: losses at most {max(apart[0]):.1e} apart, gradient norms {apart[1][0]:.1e} in "
          f"the first and at most {max(apart[1]):.1e}")


class Block(torch.nn.Module):
    """A block of SmolLM2-135M, by PyTorch's own operations: transformers' module does not compile everywhere."""

    def __init__(self, C=576, H=9, K=3, F=1536):
        super().__init__()
        linear = lambda m, n: torch.nn.Linear(m, n, bias=False)
        self.H, self.K, self.D = H, K, C // H
        self.norm1, self.norm2 = torch.nn.RMSNorm(C, 1e-5), torch.nn.RMSNorm(C, 1e-5)
        self.qkv, self.out = linear(C, (H + 2 * K) * self.D), linear(C, C)
        self.gate_up, self.down = linear(C, 2 * F), linear(F, C)

    def forward(self, x, cos, sin):
        rows, D = x.shape[:2], self.D
        q, k, v = self.qkv(self.norm1(x)).split([self.H * D, self.K * D, self.K * D], 2)
        q, k, v = (t.view(*rows, -1, D).transpose(1, 2) for t in (q, k, v))
        q, k = (t * cos + torch.cat([-t[..., D // 2:], t[..., :D // 2]], -1) * sin for t in (q, k))
        k, v = (t.repeat_interleave(self.H // self.K, 1) for t in (k, v))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v.to(q.dtype), is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(*rows, -1))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, 2)
        return x + self.down(torch.nn.functional.silu(gate) * up)


class Model(torch.nn.Module):
    def __init__(self, layers, V=49152, C=576, D=64, T=1024):
        super().__init__()
        self.words, self.norm = torch.nn.Embedding(V, C), torch.nn.RMSNorm(C, 1e-5)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(layers))
        angle = torch.outer(torch.arange(T), 1e5 ** (-torch.arange(0, D, 2) / D)).repeat(1, 2)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def forward(self, x, y):
        x = self.words(x)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        logits = torch.nn.functional.linear(self.norm(x), self.words.weight)
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), y.flatten())


def time_steps(zero, dtype, layers, steps, sequences):
    torch.set_num_threads(2)
    T = 1024 // sequences
    model = Model(layers, T=T)
    adam, step_of = optimizer(model, 1e-4), torch.compile(model)
    tokens = torch.randint(0, 49152, (sequences, T + 1))
    options = ["train", "--model", "smollm2-135m", "--layers", str(layers), "--seq", str(T), "--data",
               "stories:4M", "--tokenizer", "byte", "--vocab", "49152", "--dtype", dtype, "--global-batch",
               str(sequences), "--steps", str(steps), "--eval-every", "0", "--sample", "0", "--metrics", "zero"]
    ways = {"2 threads": [zero, *options, "--threads", "2"]}
    if sequences > 1:
        ways["2 ranks"] = ["mpirun", "-n", "2", zero, *options, "--threads", "1", "--stage", "2"]
    rounds = []
    for turn in range(3):
        theirs = []
        for i in range(steps):
            began = time.time()
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == "bf16"):
                loss = step_of(tokens[:, :-1], tokens[:, 1:])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adam.step()
            adam.zero_grad(set_to_none=True)
            if i > 0:
                theirs.append(time.time() - began)
        seconds = [statistics.median(theirs)]
        for command in ways.values():
            ours = [line["step_seconds"] for line in lines_of(command, "zero") if "step_seconds" in line]
            seconds.append(statistics.median(ours[1:]))
        rounds.append(seconds)
    pytorch, *zeros = (1e3 * statistics.median(times) for times in zip(*rounds))
    for i, way in enumerate(ways):
        ratios = [seconds[0] / seconds[i + 1] for seconds in rounds]
        print(f"{layers} layers of SmolLM2-135M's shape, {sequences} x {T} tokens, {dtype}: PyTorch "
              f"{torch.__version__} compiled {pytorch:.0f} ms, zero with {way} {zeros[i]:.0f} ms "
              f"({statistics.median(ratios):.2f} x, of rounds {min(ratios):.2f} to {max(ratios):.2f})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("zero")
    parser.add_argument("--time", choices=["fp32", "bf16"], nargs="+")
    parser.add_argument("--layers", type=int, nargs="+", default=[30])
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--sequences", type=int, default=1)
    args = parser.parse_args()
    zero = os.path.abspath(args.zero)
    os.chdir(tempfile.mkdtemp())
    if args.time:
        for layers in args.layers:
            for dtype in args.time:
                torch.compiler.reset()
                time_steps(zero, dtype, layers, args.steps, args.sequences)
        return
    import transformers as tr
    tr.logging.set_verbosity_error()
    tokens = np.random.default_rng(3).integers(0, 256, 3 * B * T * STEPS + 1, dtype=np.uint16)
    tokens.tofile("tokens.bin")
    for kind in [kind for kind in KINDS if hasattr(tr, kind + "Config")]:
        compare(zero, tr, kind, tokens.astype(np.int64))


if __name__ == "__main__":
    main()
