"""FSDP2, HSDP, DDP and ZeroRedundancyOptimizer on zero and on gloo, step by step in turns: losses within 1e-6,
one digest of all parameters per precision for all ways on zero, and the bytes of theory.

    STEPS=4 training.py"""
import os

from common import Checks, dist, start, torch, zero_torch
from gpt import Training, meshes

rank, size = start()
steps = int(os.environ.get("STEPS", "4"))
checks = Checks()
gloo = dist.new_group(list(range(size)), backend="gloo")


def train(mode):
    """-> losses of zero minus those of gloo, zero's training, what it moved in the last step, gloo's digest"""
    pair = []
    for backend, group in (("zero", dist.group.WORLD), ("gloo", gloo)):
        group = meshes(size, backend) if mode.startswith("hsdp") else group
        hook = zero_torch.average_hook
        pair.append(Training(mode, group, hook))
    for number in range(steps):
        with zero_torch.count() as moved:
            pair[0].step(number)
        pair[1].step(number)
    losses = torch.tensor([t.losses for t in pair], dtype=torch.float64)
    dist.all_reduce(losses, dist.ReduceOp.AVG)
    return (losses[0] - losses[1]).abs().max().item(), pair[0], moved, pair[1].digest()


def padded(shape, n):
    """FSDP2 pads each tensor's rows to a multiple of the ranks that share them."""
    rows = shape[0]
    return (rows + n - 1) // n * n * (shape.numel() // rows)


def expected_bytes(mode, training):
    """Sent by each rank in a step. FSDP2 keeps the root's parameters from forward to backward, so its
    unit is gathered once."""
    n, words = (2 if "hsdp" in mode else size), training.words
    whole = sum(padded(s, n) for s in training.sizes)
    named = dict(zip((name for name, _ in training.model.named_parameters()), training.sizes))
    root = sum(padded(s, n) for name, s in named.items() if "blocks" not in name)
    if words & {"fsdp", "hsdp"}:
        number = 2 if words & {"bf16", "half"} else 4
        reduced = 2 if "half" in words else 4
        gathers = 2 * whole - root
        parts = 2 if "accumulate" in words else 1
        sent = {"reduce_scatter": reduced * whole // n * (n - 1),
                "all_gather": number * gathers * parts // n * (n - 1)}
        if "hsdp" in words:  # shards are then reduced over the replicas
            replicas = size // 2
            sent["all_reduce"] = 2 * reduced * (whole // n) * (replicas - 1) // replicas
        return sent
    return {"all_reduce": 2 * 4 * training.psi * (size - 1) // size}


def main():
    modes = os.environ.get("MODES", "").split() or ["fsdp", "hook", "ddp", "zero1", "fsdp+clip", "hook+clip", "fsdp+accumulate", "hook+accumulate",
             "fsdp+bf16", "fsdp+half"]
    if size % 2 == 0:
        modes[1:1] = ["hsdp", "hsdp+clip", "hsdp+bf16"]
    digests = {}
    for mode in modes:
        difference, training, moved, other = train(mode)
        checks.true(difference <= (2e-2 if "half" in mode else 1e-6), mode, "losses differ by", difference)
        digest = training.digest()
        # Torch's own DDP multiplies by 1/N before the sum: other bits, unless N is a power of two. Norms of
        # shards are added up in another order than those of whole tensors.
        if "clip" not in mode and (mode != "ddp" or size & (size - 1) == 0):
            family = mode.partition("+")[2]
            digests.setdefault(family, {})[mode] = digest
        sent = {kind: moved[kind].sent for kind in moved}
        for kind, wanted in expected_bytes(mode, training).items():
            # An all-reduce of a count that N does not divide sends the few left over to each rank; those of
            # norms are small, too.
            more = 1024 if kind == "all_reduce" and (size == 3 or "clip" in mode) else 0
            checks.true(wanted <= sent[kind] <= wanted + more, mode, kind, "sent", sent[kind], "expected", wanted)
        if rank == 0:
            print(f"{size} ranks {mode:16s} losses within {difference:.2g}; digest {digest}, gloo's "
                  f"{other}; sent {({k: v for k, v in sent.items() if v})}", flush=True)
    for family, found in digests.items():
        checks.true(len(set(found.values())) == 1, f"one digest for {family or 'fp32'}:", found)
    checks.end("training")


main()
