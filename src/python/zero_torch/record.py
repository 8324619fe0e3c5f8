"""One training step in a file, for `zero verify` (zero help step-files).

    with zero_torch.record(model, optimizer, (tokens, targets), "step.safetensors", clip=1.0) as step:
        step.loss, step.norm = train_one_step()     # with its optimizer.step(); both may stay None

Plain torch, DDP, FSDP2 and ZeroRedundancyOptimizer, on any backend, and DeepSpeed's ZeRO 1, 2 and 3 (engine,
engine.optimizer; around all its engine.step() of one update); all ranks make the call, and rank 0 writes.
AdamW with one learning rate; no dropout, whose masks nobody could draw again.
"""
import contextlib
import importlib
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
    kind = DeepSpeedTape if hasattr(model, "zero_optimization_stage") else Tape
    tape = kind(model, optimizer, path, rename or (lambda name, tensor: (name, tensor)))
    facts = tape.facts(clip, dtype, sharding, loss_scale)
    config = config or getattr(model, "module", model).config.to_dict()
    texts = {"format": "zero-step-1", "step": json.dumps(facts), "config": json.dumps(config)}
    step = types.SimpleNamespace(loss=None, norm=None)
    tape.begin(batch, facts["updates"] > 0, texts)
    tape.write_states("before")
    hook = tape.watch()
    try:
        yield step
        tape.write_states("after")
        tape.end(step)
    finally:
        hook()
        tape.close()


class Tape:
    parts = PARTS

    def __init__(self, model, optimizer, path, rename):
        self.model, self.optimizer, self.path = model, optimizer, path
        is_on = dist.is_available() and dist.is_initialized()
        self.rank, self.size = (dist.get_rank(), dist.get_world_size()) if is_on else (0, 1)
        self.file = None
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout) and module.p > 0 and module.training:
                raise ValueError("zero_torch.record: the model has dropout, whose masks nobody can draw again: set p to 0")
        self.parameters = [(name.removeprefix("module.").removeprefix("_orig_mod."), p)
                           for name, p in model.named_parameters()]
        self.rename = rename
        self.likes = [rename(name, torch.empty(getattr(p, "ds_shape", p.shape), device="meta"))
                      for name, p in self.parameters]
        self.names = [name for name, _ in self.likes]

    def facts(self, clip, dtype, sharding, loss_scale):
        groups = self.groups()
        one = groups[0]
        decays = {float(g["weight_decay"]) for g in groups} - {0.0}
        for key in ("lr", "betas", "eps"):
            if any(g[key] != one[key] for g in groups) or len(decays) > 1:
                raise ValueError(f"zero_torch.record: groups of parameters have several values of {key}, or of weight decay")
        none = {id(p) for g in groups if g["weight_decay"] == 0 for p in g["params"]} if decays else set()
        steps = [int(s["step"]) for s in self.inner().state.values() if "step" in s]
        return {"framework": f"torch {torch.__version__.split('+')[0]}", "sharding": sharding,
                "dtype": dtype or TYPES[str(self.parameters[0][1].dtype)], "updates": self.most(max(steps, default=0)),
                "lr": float(one["lr"]), "beta1": one["betas"][0], "beta2": one["betas"][1], "eps": one["eps"],
                "weight_decay": max(decays, default=0.0), "clip": clip, "loss_scale": loss_scale,
                "no_decay": [name for name, (_, p) in zip(self.names, self.parameters) if id(p) in none]}

    def groups(self):
        return self.optimizer.param_groups

    def watch(self):
        """Writes the gradient when the optimizer gets it."""
        return self.optimizer.register_step_pre_hook(lambda *_: self.write("gradient", lambda p: p.grad)).remove

    def inner(self):
        """ZeroRedundancyOptimizer has an optimizer of its own, with the states of some parameters."""
        return getattr(self.optimizer, "optim", self.optimizer)

    def most(self, number):
        numbers = [torch.zeros(1, dtype=torch.int64) for _ in range(self.size)]
        if self.size > 1:
            dist.all_gather(numbers, torch.tensor([number]))
        return max(number, *(int(n) for n in numbers))

    def state(self, p, key):
        owner = getattr(self.optimizer, "_param_to_rank", {}).get(p)
        value = self.inner().state[p][key] if p in self.inner().state else torch.empty_like(p)
        if owner is not None and self.size > 1:
            value = value.detach().clone()
            dist.broadcast(value, owner)
        return value

    def begin(self, batch, has_moments, texts):
        tokens, targets = (x if x.dim() == 3 else x[None] for x in batch)
        everyone = [self.everyones(x) for x in (tokens, targets.clamp(min=-1))]
        self.counted = [int((x >= 0).sum()) for x in everyone[1]]
        header, at = {"__metadata__": texts}, 0
        shapes = [(n, "I32", list(everyone[0].shape), 4) for n in ("tokens", "targets")]
        for part in self.parts:
            if has_moments or part not in PARTS[1:3]:
                shapes += [(f"{part}/{name}", "F32", list(like.shape), 4) for name, like in self.likes]
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
            tensor = value_of(p)
            tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
            if self.rank == 0:
                name, tensor = self.rename(name, tensor.detach().float())
                self.put(f"{part}/{name}", tensor)

    def weights(self, p):
        return p

    def write_states(self, when):
        self.write(when, self.weights)
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


class DeepSpeedTape(Tape):
    """Weights and moments are the fp32 ones. The gradient follows from the moments: nobody sees it clipped."""
    parts = PARTS[:-1]

    def facts(self, clip, dtype, sharding, loss_scale):
        self.of = importlib.import_module("deepspeed.utils")
        return super().facts(clip or self.model.gradient_clipping(), dtype,
                             sharding or f"deepspeed {self.model.zero_optimization_stage()}",
                             float(getattr(self.optimizer, "loss_scale", loss_scale)))

    def write_states(self, when):
        link = getattr(self.optimizer, "_lazy_init_hp_params_optimizer_state", None)
        if link:  # DeepSpeed 0.19's stages 1 and 2 link states once the first group has some: the others stay without
            self.optimizer._hp_optimizer_states_linked = False
            link()
        super().write_states(when)

    def groups(self):
        """The optimizer's own hold flat shards in place of parameters."""
        of, lists = self.optimizer, getattr(self.optimizer, "bit16_groups", None)
        at = range(len(lists)) if lists else of.sub_group_to_group_id.values()
        return [of.param_groups[i] | {"params": params} for i, params in zip(at, lists or of.fp16_groups)]

    def inner(self):
        return self.optimizer.optimizer

    def watch(self):
        return lambda: None

    def end(self, step):
        step.norm = self.model.get_global_grad_norm() if step.norm is None else step.norm
        super().end(step)

    def weights(self, p):
        return self.of.safe_get_full_fp32_param(p)

    def state(self, p, key):
        return self.of.safe_get_full_optimizer_state(p, key)
