#!/usr/bin/env python3
"""zero's 16-bit activations beside PyTorch's autocast: the first gradient, and the losses of a run.

    bench/torch_autocast.py build/zero [--steps 200] [words of zero train ...]

zero trains a small GPT on one rank with --dtype bf16 --activations bf16. PyTorch starts from the same
weights, sees the same tokens in the same order, and computes by torch.autocast
to bf16 with the same AdamW. Gradients are read from zero's momentum after one step at rate 0.
It prints one line of JSON, and ends with 1 if a gradient is off by more than 1e-2 of the largest one
or the last losses by more than 0.5 %."""
import argparse
import glob
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

import torch

from torch_gpt2 import GPT

LAYERS, HIDDEN, HEADS, SEQ, VOCAB, BATCH = 3, 96, 4, 64, 256, 8
BETAS, EPS, DECAY, RATE = (0.9, 0.95), 1e-8, 0.1, 1e-3
SHAPE = ["--layers", LAYERS, "--hidden", HIDDEN, "--heads", HEADS, "--seq", SEQ, "--vocab", VOCAB,
         "--tokenizer", "byte", "--global-batch", BATCH, "--eval-every", 0, "--sample", 0]


def tensors(path):
    """name -> fp32 tensor of a safetensors file."""
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack("<Q", data[:8])[0]
    found = {}
    for name, at in json.loads(data[8:8 + n]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + n + x for x in at["data_offsets"])
        found[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float32)
    return found


def states(checkpoint, kind):
    """tensor's name -> its masters or momentum; one rank has each in one piece."""
    path, = glob.glob(f"{checkpoint}/step-*/*.safetensors")
    return {name.split("[")[0]: x for name, x in tensors(path).items() if name.endswith(kind)}


def zero(program, *words):
    subprocess.run([program, "train", *map(str, words)], check=True, stdout=subprocess.DEVNULL)


def named(model):
    """zero's name -> torch's parameter, and whether torch keeps it transposed."""
    pairs = {"wte.weight": (model.words.weight, False), "wpe.weight": (model.positions.weight, False),
             "ln_f.weight": (model.norm.weight, False), "ln_f.bias": (model.norm.bias, False)}
    for i, b in enumerate(model.blocks):
        for name, layer in (("ln_1", b.norm1), ("ln_2", b.norm2), ("attn.c_attn", b.attention.qkv),
                            ("attn.c_proj", b.attention.out), ("mlp.c_fc", b.up),
                            ("mlp.c_proj", b.down)):
            pairs[f"h.{i}.{name}.weight"] = (layer.weight, layer.weight.dim() == 2)
            pairs[f"h.{i}.{name}.bias"] = (layer.bias, False)
    return pairs


def rate_at(step, steps):
    """zero's --warmup 0, --lr-min 0: half a cosine."""
    return RATE * 0.5 * (1.0 + math.cos(math.pi * step / max(steps - 1, 1)))


def batch(data, step):
    """zero's windows without --shuffle: sample j begins at j * T modulo n - T."""
    starts = [((step * BATCH + i) * SEQ) % (len(data) - SEQ) for i in range(BATCH)]
    rows = torch.stack([data[s:s + SEQ + 1] for s in starts])
    return rows[:, :-1], rows[:, 1:]


def loss_of(model, data, step):
    with torch.autocast("cpu", torch.bfloat16):
        return model(*batch(data, step))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("zero")
    parser.add_argument("--steps", type=int, default=200)
    options, more = parser.parse_known_args()
    torch.set_num_threads(2)
    half = ["--dtype", "bf16", "--activations", "bf16", *more]
    program = os.path.abspath(options.zero)
    with tempfile.TemporaryDirectory() as work:
        # Sources as data, and a tenth of them for validation, in a file of its own.
        text = b"".join(open(p, "rb").read() for p in sorted(glob.glob(
            os.path.join(os.path.dirname(__file__), "..", "src", "*", "*.c"))))[:400000]
        train, val = f"{work}/train.txt", f"{work}/val.txt"
        open(train, "wb").write(text)
        open(val, "wb").write(text[:5000])
        data = torch.tensor(list(text), dtype=torch.long)
        common = [*SHAPE, "--data", train, "--val-data", val, *half]
        # At rate 0 masters stay, and the momentum has the gradient.
        zero(program, *common, "--steps", 1, "--lr", 0, "--lr-min", 0, "--clip", 0,
             "--checkpoint", f"{work}/one")
        zero(program, *common, "--steps", options.steps, "--lr", RATE, "--lr-min", 0, "--warmup", 0,
             "--beta1", BETAS[0], "--beta2", BETAS[1], "--eps", EPS, "--weight-decay", DECAY,
             "--clip", 1.0, "--metrics", f"{work}/metrics")
        masters = states(f"{work}/one", ".master")
        momentum = states(f"{work}/one", ".momentum")
        with open(f"{work}/metrics") as f:
            ours = [line["loss"] for line in map(json.loads, f)
                    if "loss" in line and not line.get("final")]

    shape = argparse.Namespace(hidden=HIDDEN, seq=SEQ, vocab=VOCAB, heads=HEADS, layers=LAYERS)
    model = GPT(shape)
    pairs = named(model)
    assert sorted(pairs) == sorted(masters), "other tensors"
    with torch.no_grad():
        for name, (p, turned) in pairs.items():
            x = masters[name].bfloat16().float()  # zero computes with these
            p.copy_(x.view(p.shape[::-1]).t() if turned else x.view(p.shape))
    loss_of(model, data, 0).backward()
    largest = max(p.grad.abs().max().item() for p, _ in pairs.values())
    off = 0.0
    for name, (p, turned) in pairs.items():
        g = momentum[name] / (1.0 - BETAS[0])
        want = (p.grad.t() if turned else p.grad).reshape(-1)
        off = max(off, (g - want).abs().max().item() / largest)

    with torch.no_grad():
        for name, (p, turned) in pairs.items():
            p.copy_(masters[name].view(p.shape[::-1]).t() if turned else masters[name].view(p.shape))
            p.grad = None
    decays = [p for p in model.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if p.dim() != 2]
    adamw = torch.optim.AdamW([{"params": decays, "weight_decay": DECAY},
                               {"params": others, "weight_decay": 0.0}], betas=BETAS, eps=EPS)
    theirs = []
    for step in range(options.steps):
        for group in adamw.param_groups:
            group["lr"] = rate_at(step, options.steps)
        loss = loss_of(model, data, step)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adamw.step()
        adamw.zero_grad(set_to_none=True)
        theirs.append(loss.item())
    last = min(20, options.steps)
    a, b = (sum(x[-last:]) / last for x in (ours, theirs))
    print(json.dumps({"torch": torch.__version__, "steps": options.steps,
                      "gradient_off": round(off, 6), "first_losses": [ours[0], theirs[0]],
                      "last_losses": [round(a, 5), round(b, 5)],
                      "loss_off": round(abs(a / b - 1.0), 6)}))
    return 0 if off < 1e-2 and abs(a / b - 1.0) < 5e-3 else 1


if __name__ == "__main__":
    sys.exit(main())
