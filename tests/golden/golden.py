#!/usr/bin/env python3
"""Golden values for tests/golden/test_golden.c from an independent implementation in PyTorch.

The test itself needs neither Python nor PyTorch. To regenerate after a change of the model's
shape or of its initial weights (Debian and Ubuntu: apt-get install python3-torch):

    cmake --build build --target golden_export
    build/tests/golden/golden_export tests/golden
    /usr/bin/python3 tests/golden/golden.py tests/golden
"""
import json
import sys

import numpy as np
import torch
import torch.nn.functional as F


def read_tensors(meta, path):
    flat = np.fromfile(path, dtype="<f4")
    params, at = {}, 0
    for name, rows, cols, _ in meta["tensors"]:
        part = flat[at:at + rows * cols].copy()
        shape = (cols,) if rows == 1 else (rows, cols)
        params[name] = torch.tensor(part.reshape(shape), requires_grad=True)
        at += rows * cols
    return params


def attention(x, p, layer, heads):
    B, T, C = x.shape
    qkv = x @ p[f"h.{layer}.attn.c_attn.weight"] + p[f"h.{layer}.attn.c_attn.bias"]
    q, k, v = (t.view(B, T, heads, C // heads).transpose(1, 2) for t in qkv.split(C, dim=2))
    scores = q @ k.transpose(2, 3) / (C // heads) ** 0.5
    scores = scores.masked_fill(torch.triu(torch.ones(T, T, dtype=torch.bool), 1), float("-inf"))
    out = (scores.softmax(dim=3) @ v).transpose(1, 2).reshape(B, T, C)
    return out @ p[f"h.{layer}.attn.c_proj.weight"] + p[f"h.{layer}.attn.c_proj.bias"]


def gelu(x):
    return 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x ** 3)))


def mlp(x, p, layer):
    h = gelu(x @ p[f"h.{layer}.mlp.c_fc.weight"] + p[f"h.{layer}.mlp.c_fc.bias"])
    return h @ p[f"h.{layer}.mlp.c_proj.weight"] + p[f"h.{layer}.mlp.c_proj.bias"]


def norm(x, p, name):
    return F.layer_norm(x, x.shape[-1:], p[name + ".weight"], p[name + ".bias"], 1e-5)


def loss_of(p, window, meta):
    tokens, targets = window[:, :-1], window[:, 1:]
    x = p["wte.weight"][tokens] + p["wpe.weight"][:tokens.shape[1]]
    for layer in range(meta["layers"]):
        x = x + attention(norm(x, p, f"h.{layer}.ln_1"), p, layer, meta["heads"])
        x = x + mlp(norm(x, p, f"h.{layer}.ln_2"), p, layer)
    logits = norm(x, p, "ln_f") @ p["wte.weight"].T
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))


def flatten(meta, arrays):
    return np.concatenate([arrays[name].detach().numpy().astype("<f4").ravel()
                           for name, *_ in meta["tensors"]])


def main(folder):
    meta = json.load(open(f"{folder}/gpt2.json"))
    p = read_tensors(meta, f"{folder}/gpt2.f32")
    weights = flatten(meta, p)
    a = meta["adamw"]
    groups = [{"params": [p[n] for n, _, _, d in meta["tensors"] if bool(d) == decays],
               "weight_decay": a["weight_decay"] if decays else 0.0} for decays in (True, False)]
    adamw = torch.optim.AdamW(groups, lr=a["lr"], betas=(a["beta1"], a["beta2"]), eps=a["eps"])
    losses, norms, gradient = [], [], None
    for window in meta["tokens"]:
        adamw.zero_grad()
        loss = loss_of(p, torch.tensor(window), meta)
        loss.backward()
        if gradient is None:
            gradient = flatten(meta, {n: t.grad for n, t in p.items()})
        norms.append(float(torch.nn.utils.clip_grad_norm_(p.values(), a["clip"])))
        losses.append(float(loss))
        adamw.step()
    meta.update(losses=losses, grad_norms=norms, written_by=f"PyTorch {torch.__version__}")
    np.concatenate([weights, gradient, flatten(meta, p)]).tofile(f"{folder}/gpt2.f32")
    json.dump(meta, open(f"{folder}/gpt2.json", "w"), separators=(",", ":"))


main(sys.argv[1])
