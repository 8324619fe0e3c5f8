"""One training step in a file, for `zero verify` (zero help step-files).

    with zero_torch.record(model, optimizer, (tokens, targets), "step.safetensors", clip=1.0) as step:
        step.loss, step.norm = train_one_step()     # with its optimizer.step(); both may stay None

Plain torch, DDP, FSDP2 and ZeroRedundancyOptimizer, on any backend; all ranks make the call, and rank 0 writes.
AdamW with one learning rate; no dropout, whose masks nobody could draw again.
"""
import contextlib
import json
import os
import types

import torch
import torch.distributed as dist

PARTS = ("before", "momentum_before", "variance_before", "after", "momentum_after", "variance_after", "gradient")
STATES = {"momentum": "exp_avg", "variance": "exp_avg_sq"}
TYPES = {"torch.float32": "fp32", "torch.bfloat16": "bf16", "torch.float16": "fp16"}


@contextlib.contextmanager
def record(model, optimizer, batch, path, *, clip=0.0, config=None, dtype=None, rename=None, sharding="",
           loss_scale=1.0):
    """batch: this rank's tokens and targets, [B, T] or [microbatches, B, T]; targets below 0 do not count. config: the
    model's config.json as a dict, if it has no `config` of its own. dtype: "bf16" where parameters are computed with in
    bf16 but kept in fp32. rename(name, tensor) -> (name, tensor): names and layouts of Hugging Face's transformers."""
    tape = Tape(model, optimizer, path, rename or (lambda name, tensor: (name, tensor)))
    facts = tape.facts(clip, dtype, sharding, loss_scale)
    texts = {"format": "zero-step-1", "step": json.dumps(facts), "config": json.dumps(config or model.config.to_dict())}
    step = types.SimpleNamespace(loss=None, norm=None)
    tape.begin(batch, facts["updates"] > 0, texts)
    tape.write_states("before")
    hook = optimizer.register_step_pre_hook(lambda *_: tape.write("gradient", lambda p: p.grad))
    try:
        yield step
        tape.write_states("after")
        tape.end(step)
    finally:
        hook.remove()
        tape.close()


class Tape:
    def __init__(self, model, optimizer, path, rename):
        self.optimizer, self.path = optimizer, path
        is_on = dist.is_available() and dist.is_initialized()
        self.rank, self.size = (dist.get_rank(), dist.get_world_size()) if is_on else (0, 1)
        self.file = None
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout) and module.p > 0 and module.training:
                raise ValueError("zero_torch.record: the model has dropout, whose masks nobody can draw again: set p to 0")
        self.parameters = []
        for name, p in model.named_parameters():
            for prefix in ("module.", "_orig_mod."):
                name = name.removeprefix(prefix)
            self.parameters.append((name, p))
        self.rename = rename
        self.names = [rename(name, torch.empty(p.shape, device="meta"))[0] for name, p in self.parameters]

    # ---- what it was ----

    def facts(self, clip, dtype, sharding, loss_scale):
        groups = self.optimizer.param_groups
        one = groups[0]
        for key in ("lr", "betas", "eps"):
            if any(g[key] != one[key] for g in groups):
                raise ValueError(f"zero_torch.record: groups of parameters have several values of {key}")
        decays = {float(g["weight_decay"]) for g in groups} - {0.0}
        if len(decays) > 1:
            raise ValueError("zero_torch.record: groups of parameters have several weight decays besides 0")
        none = {id(p) for g in groups if g["weight_decay"] == 0 for p in g["params"]} if decays else set()
        steps = [int(s["step"]) for s in self.inner().state.values() if "step" in s]
        return {"framework": f"torch {torch.__version__.split('+')[0]}", "sharding": sharding,
                "dtype": dtype or TYPES[str(self.parameters[0][1].dtype)], "updates": self.most(max(steps, default=0)),
                "lr": float(one["lr"]), "beta1": one["betas"][0], "beta2": one["betas"][1], "eps": one["eps"],
                "weight_decay": max(decays, default=0.0), "clip": clip, "loss_scale": loss_scale,
                "no_decay": [name for name, (_, p) in zip(self.names, self.parameters) if id(p) in none]}

    def inner(self):
        """ZeroRedundancyOptimizer has an optimizer of its own, with the states of some parameters."""
        return getattr(self.optimizer, "optim", self.optimizer)

    def most(self, number):
        numbers = [torch.zeros(1, dtype=torch.int64) for _ in range(self.size)]
        if self.size > 1:
            dist.all_gather(numbers, torch.tensor([number]))
        return max(number, *(int(n) for n in numbers))

    # ---- tensors, whole ----

    def whole(self, tensor):
        return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor

    def state(self, p, key):
        owner = getattr(self.optimizer, "_param_to_rank", {}).get(p)
        value = self.inner().state[p][key] if p in self.inner().state else torch.empty_like(p)
        if owner is not None and self.size > 1:
            value = value.detach().clone()
            dist.broadcast(value, owner)
        return value

    # ---- the file ----

    def begin(self, batch, has_moments, texts):
        tokens, targets = (x if x.dim() == 3 else x[None] for x in batch)
        everyone = [self.everyones(x) for x in (tokens, targets.clamp(min=-1))]
        self.counted = [int((x >= 0).sum()) for x in everyone[1]]
        header, at = {"__metadata__": texts}, 0
        shapes = [(n, "I32", list(everyone[0].shape), 4) for n in ("tokens", "targets")]
        for part in PARTS:
            if has_moments or part not in PARTS[1:3]:
                for name, p in self.parameters:
                    name, like = self.rename(name, torch.empty(p.shape, device="meta"))
                    shapes.append((f"{part}/{name}", "F32", list(like.shape), 4))
        shapes += [(n, "F64", [1], 8) for n in ("loss", "norm")]
        self.places = {}
        for name, kind, shape, size in shapes:
            end = at + size * torch.Size(shape).numel()
            header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, end]}
            self.places[name], at = at, end
        if self.rank == 0:
            text = json.dumps(header).encode()
            text += b" " * (-len(text) % 8)
            self.file = open(f"{self.path}.tmp", "wb")
            self.file.write(len(text).to_bytes(8, "little") + text)
            self.data = self.file.tell()
            for name, numbers in zip(("tokens", "targets"), everyone):
                self.put(name, numbers)

    def everyones(self, numbers):
        numbers = numbers.to("cpu", torch.int32).contiguous()
        ranks = [torch.empty_like(numbers) for _ in range(self.size)]
        if self.size == 1:
            return numbers[None]
        dist.all_gather(ranks, numbers)
        return torch.stack(ranks)

    def put(self, name, tensor):
        self.file.seek(self.data + self.places[name])
        self.file.write(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())

    def write(self, part, value_of):
        for name, p in self.parameters:
            tensor = self.whole(value_of(p))
            if self.rank == 0:
                name, tensor = self.rename(name, tensor.detach().float())
                self.put(f"{part}/{name}", tensor)

    def write_states(self, when):
        self.write(when, lambda p: p)
        for part, key in STATES.items():
            if f"{part}_{when}/{self.names[0]}" in self.places:
                self.write(f"{part}_{when}", lambda p: self.state(p, key))

    def end(self, step):
        """Each rank's loss is the mean over its own positions; the norm is that of all."""
        numbers = [torch.tensor([float("nan") if x is None else float(x)], dtype=torch.float64)
                   for x in (step.loss, step.norm)]
        losses = [torch.empty_like(numbers[0]) for _ in range(self.size)]
        if self.size > 1:
            dist.all_gather(losses, numbers[0])
            numbers[0] = sum(x * n for x, n in zip(losses, self.counted)) / sum(self.counted)
        if self.rank == 0:
            for name, number in zip(("loss", "norm"), numbers):
                self.put(name, number)
            self.file.close()
            os.replace(f"{self.path}.tmp", self.path)

    def close(self):
        if self.file and not self.file.closed:
            self.file.close()
            os.remove(f"{self.path}.tmp")
