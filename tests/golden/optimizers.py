#!/usr/bin/env python3
"""Golden weights for tests/golden/test_optimizers.c: 20 steps of each optimizer, computed in float64.

AdamW and SGD are PyTorch's, Lion and Muon are written out here; Muon is also held against
torch.optim.Muon, whose iterations are in bfloat16. To write them again:

    python3 tests/golden/optimizers.py tests/golden
"""
import sys

import numpy as np
import torch

STEPS, LR, DECAY, EPS = 20, 0.02, 0.1, 1e-8
# name, rows, columns, whether it decays, whether it is between layers, whether it is stored [out, in]
TENSORS = [("table", 10, 8, True, False, False), ("gain", 1, 12, False, False, False),
           ("wide", 12, 20, True, True, False), ("tall", 20, 12, True, True, False),
           ("turned", 20, 12, True, True, True), ("square", 16, 16, True, True, False),
           ("bias", 1, 12, False, False, False)]
# the optimizer, beta1, beta2, the scale of Muon
RUNS = [("adamw", 0.9, 0.95, "rms"), ("lion", 0.9, 0.99, "rms"), ("sgd", 0.9, 0.95, "rms"),
        ("muon", 0.95, 0.95, "rms"), ("muon", 0.95, 0.95, "original")]


def numbers(count, seed):
    """Multiples of 2^-10 below 1 in size, as test_optimizers.c makes them."""
    i = np.arange(count, dtype=np.uint64)
    x = (i * np.uint64(2654435761) + np.uint64(seed) * np.uint64(40503)) % np.uint64(4294967296)
    return torch.tensor(((x >> np.uint64(21)).astype(np.float64) - 1024) / 1024)


def orthogonal(u):
    x = u.mT if u.shape[0] > u.shape[1] else u
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(5):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.mT if u.shape[0] > u.shape[1] else x


def lion(p, state, g, lr, decay, beta1, beta2):
    m = state.setdefault("m", torch.zeros_like(p))
    p -= lr * decay * p + lr * torch.sign(beta1 * m + (1 - beta1) * g)
    m.mul_(beta2).add_((1 - beta2) * g)


def muon(p, state, g, lr, decay, beta, scale, out_in):
    m = state.setdefault("m", torch.zeros_like(p))
    m.mul_(beta).add_((1 - beta) * g)
    out, into = p.shape if out_in else reversed(p.shape)
    length = 0.2 * max(p.shape) ** 0.5 if scale == "rms" else max(1.0, out / into) ** 0.5
    p -= lr * decay * p + lr * length * orthogonal(beta * m + (1 - beta) * g)


def run(name, beta1, beta2, scale):
    weights = []
    for index, (_, rows, cols, decays, hidden, out_in) in enumerate(TENSORS):
        p = numbers(rows * cols, 1000 + index).reshape(rows, cols).clone()
        decay, state = DECAY if decays else 0.0, {}
        whole = name == "muon" and hidden
        if name in ("adamw", "muon") and not whole:
            theirs = torch.optim.AdamW([p], lr=LR, betas=(beta1, beta2), eps=EPS, weight_decay=decay)
        elif name == "sgd":
            theirs = torch.optim.SGD([p], lr=LR, momentum=beta1, weight_decay=decay)
        for step in range(STEPS):
            g = numbers(rows * cols, 17 * step + index).reshape(rows, cols)
            if whole:
                muon(p, state, g, LR, decay, beta1, scale, out_in)
            elif name == "lion":
                lion(p, state, g, LR, decay, beta1, beta2)
            else:
                p.grad = g
                theirs.step()
        weights.append(p)
    return weights


def beside_torch(scale):
    """The largest distance from torch.optim.Muon, whose matrices are [out, in]."""
    most = 0.0
    for index, (_, rows, cols, _, hidden, _) in enumerate(TENSORS):
        if not hidden:
            continue
        ours = numbers(rows * cols, 1000 + index).reshape(rows, cols).clone()
        theirs, state = ours.clone(), {}
        adjust = "match_rms_adamw" if scale == "rms" else "original"
        muon_of_torch = torch.optim.Muon([theirs], lr=LR, weight_decay=DECAY, momentum=0.95, adjust_lr_fn=adjust)
        for step in range(STEPS):
            theirs.grad = numbers(rows * cols, 17 * step + index).reshape(rows, cols)
            muon(ours, state, theirs.grad, LR, DECAY, 0.95, scale, True)
            muon_of_torch.step()
        most = max(most, float((ours - theirs).abs().max()))
    return most


def main(folder):
    all_runs = [np.concatenate([w.numpy().ravel() for w in run(*r)]) for r in RUNS]
    np.concatenate(all_runs).astype("<f4").tofile(f"{folder}/optimizers.f32")
    for scale in ("rms", "original") if hasattr(torch.optim, "Muon") else ():
        print(f"torch.optim.Muon, {scale}: after {STEPS} steps at most {beside_torch(scale):.3g} apart")


main(sys.argv[1])
