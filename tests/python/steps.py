"""One step of a torch trainer, right or wrong in a known way, as a step file.

    mpirun -n 3 steps.py OUT.safetensors model=gpt2 mode=fsdp2 fault=sum accumulation=2

The model is a GPT-2 or a Llama with Hugging Face's names and layouts. Without mpirun it is one process."""
import math
import os
import sys

os.environ["DS_ACCELERATOR"] = "cpu"
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

import zero_torch

torch.set_num_threads(1)
V, C, H, T, LAYERS = 96, 32, 4, 16, 2
LR, BETAS, EPS, DECAY, CLIP = 1e-2, (0.9, 0.95), 1e-5, 0.1, 0.3


class Conv1D(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(i, o) * 0.05), nn.Parameter(torch.zeros(o))

    def forward(self, x):
        return x @ self.weight + self.bias


class Of(nn.Module):
    """Modules by their names."""

    def __init__(self, **modules):
        super().__init__()
        for name, module in modules.items():
            setattr(self, name, module)


def attend(q, k, v):
    B, n, c = q.shape
    q, k, v = (x.view(B, n, H, -1).transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, n, c)


class GPT2Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.attn = Of(c_attn=Conv1D(C, 3 * C), c_proj=Conv1D(C, C))
        self.mlp = Of(c_fc=Conv1D(C, 4 * C), c_proj=Conv1D(4 * C, C))

    def forward(self, x):
        x = x + self.attn.c_proj(attend(*self.attn.c_attn(self.ln_1(x)).split(C, -1)))
        return x + self.mlp.c_proj(F.gelu(self.mlp.c_fc(self.ln_2(x)), approximate="tanh"))


class GPT2(nn.Module):
    config = {"model_type": "gpt2", "vocab_size": V, "n_positions": T, "n_embd": C, "n_layer": LAYERS, "n_head": H}

    def __init__(self):
        super().__init__()
        self.transformer = Of(wte=nn.Embedding(V, C), wpe=nn.Embedding(T, C),
                              h=nn.ModuleList(GPT2Block() for _ in range(LAYERS)), ln_f=nn.LayerNorm(C))
        self.cut_reading = self.cut_head = False

    def blocks(self):
        return self.transformer.h

    def forward(self, tokens):
        t = self.transformer
        words = t.wte(tokens)
        x = (words.detach() if self.cut_reading else words) + t.wpe(torch.arange(tokens.shape[1]))
        for block in t.h:
            x = block(x)
        return F.linear(t.ln_f(x), t.wte.weight.detach() if self.cut_head else t.wte.weight)


class RMSNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(C))

    def forward(self, x):
        y = x.float()
        return (self.weight * (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype))


def turn(x):
    B, n, c = x.shape
    d = C // H
    x = x.view(B, n, -1, d)
    angle = torch.outer(torch.arange(n).float(), 1.0 / 10000.0 ** (torch.arange(0, d, 2).float() / d))
    cos, sin = (torch.cat((y, y), -1)[:, None].to(x.dtype) for y in (angle.cos(), angle.sin()))
    a, b = x.chunk(2, -1)
    return (x * cos + torch.cat((-b, a), -1) * sin).reshape(B, n, c)


class LlamaBlock(nn.Module):
    def __init__(self):
        super().__init__()
        linear = lambda i, o: nn.Linear(i, o, bias=False)  # noqa: E731
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(), RMSNorm()
        self.self_attn = Of(q_proj=linear(C, C), k_proj=linear(C, C), v_proj=linear(C, C), o_proj=linear(C, C))
        self.mlp = Of(gate_proj=linear(C, 2 * C), up_proj=linear(C, 2 * C), down_proj=linear(2 * C, C))

    def forward(self, x):
        y, a, m = self.input_layernorm(x), self.self_attn, self.mlp
        x = x + a.o_proj(attend(turn(a.q_proj(y)), turn(a.k_proj(y)), a.v_proj(y)))
        y = self.post_attention_layernorm(x)
        return x + m.down_proj(F.silu(m.gate_proj(y)) * m.up_proj(y))


class Llama(nn.Module):
    config = {"model_type": "llama", "vocab_size": V, "hidden_size": C, "intermediate_size": 2 * C,
              "num_hidden_layers": LAYERS, "num_attention_heads": H, "num_key_value_heads": H,
              "max_position_embeddings": T, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False}

    def __init__(self):
        super().__init__()
        self.model = Of(embed_tokens=nn.Embedding(V, C), layers=nn.ModuleList(LlamaBlock() for _ in range(LAYERS)),
                        norm=RMSNorm())
        self.lm_head = nn.Linear(C, V, bias=False)

    def blocks(self):
        return self.model.layers

    def forward(self, tokens):
        x = self.model.embed_tokens(tokens)
        for block in self.model.layers:
            x = block(x)
        return self.lm_head(self.model.norm(x))


def whole(x):
    return x.full_tensor() if hasattr(x, "full_tensor") else x


class Trainer:
    def __init__(self, model="gpt2", mode="single", fault="", accumulation="1", dtype="fp32", seed="0", uneven="",
                 clip="1", steps="3"):
        self.rank, self.size = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
        self.fault, self.M, self.seed, self.mode = fault, int(accumulation), int(seed), mode
        self.dtype, self.uneven, self.clip, self.steps = dtype, bool(uneven), CLIP * int(clip), int(steps)
        torch.manual_seed(1 + self.seed)
        self.plain = self.model = {"gpt2": GPT2, "llama": Llama}[model]()
        self.config = self.plain.config
        if dtype == "pure":  # parameters and moments in bf16
            self.model.to(torch.bfloat16)
        if mode == "ddp" or mode == "zero1":
            self.model = nn.parallel.DistributedDataParallel(self.model)
        if mode == "fsdp2":
            from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
            policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
            settings = {"mp_policy": policy} if dtype == "bf16" else {}
            mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (self.size,))
            for block in self.model.blocks():
                fully_shard(block, mesh=mesh, **settings)
            fully_shard(self.model, mesh=mesh, **settings)
        decayed, others = [], []
        for p in self.model.parameters():
            (decayed if p.dim() > 1 else others).append(p)
        is_odd = fault == "all_decay"
        groups = [{"params": decayed, "weight_decay": DECAY},
                  {"params": others, "weight_decay": 0.0}]
        settings = {"lr": LR, "betas": BETAS, "eps": EPS, "foreach": False}
        if mode == "zero1":
            from torch.distributed.optim import ZeroRedundancyOptimizer
            self.optimizer = ZeroRedundancyOptimizer(decayed, optimizer_class=torch.optim.AdamW,
                                                     weight_decay=DECAY, **settings)
            self.optimizer.add_param_group(groups[1])
        else:
            self.optimizer = torch.optim.AdamW(groups, **settings)
        self.is_odd = is_odd
        if mode.startswith("deepspeed"):
            self.model = self.engine(int(mode[-1]), groups)
            self.optimizer = self.model.optimizer

    def engine(self, stage, groups):
        """DeepSpeed's, whose parameters are those of the model, and of which microbatches are steps."""
        import deepspeed
        # With all ranks on one node it would compile an all-reduce of its own, for inference.
        sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None
        os.environ.update(RANK=str(self.rank), WORLD_SIZE=str(self.size), LOCAL_RANK=str(self.rank),
                          LOCAL_SIZE=str(self.size))
        optimizer = torch.optim.AdamW(groups, lr=LR, betas=BETAS, eps=EPS, foreach=False)
        return deepspeed.initialize(model=self.plain, optimizer=optimizer, dist_init_required=False, config={
            "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": self.M, "steps_per_print": 10**9,
            "gradient_clipping": self.clip, "bf16": {"enabled": self.dtype == "bf16"},
            "zero_allow_untested_optimizer": True, "zero_optimization": {"stage": stage}})[0]

    def batch(self, number):
        """[M, B, T] of this rank."""
        g = torch.Generator().manual_seed(1000 * self.seed + 10 * number + 7)
        all_tokens = torch.randint(0, V, (self.size, self.M, 2, T + 1), generator=g)
        tokens, targets = all_tokens[..., :-1], all_tokens[..., 1:].clone()
        for r in range(self.size if self.uneven else 0):
            for m in range(self.M):
                targets[r, m, :, T - 2 - 3 * r - m:] = -100
        return tokens[self.rank], targets[self.rank], targets

    def loss(self, logits, targets, everyones):
        """Of a microbatch: so that the mean over ranks of the sum over microbatches is the mean over tokens."""
        fault = self.fault
        flat = logits.float().flatten(0, 1)
        if fault == "padding":
            return F.cross_entropy(flat, self.leaked.flatten()) / self.M
        total = F.cross_entropy(flat, targets.flatten(), reduction="sum", ignore_index=-100)
        if fault == "means_of_ranks":
            return total / (everyones[self.rank] >= 0).sum()
        return total * self.size / (everyones >= 0).sum()

    def step(self, number, fault=""):
        """Loss (this rank's mean) and norm."""
        tokens, targets, everyones = self.batch(number)
        if not self.mode.startswith("deepspeed"):
            self.optimizer.zero_grad()
        summed = 0.0
        at = range(self.M)
        if fault == "last_microbatch":
            at = [self.M - 1]
        for m in at:
            following = torch.cat((tokens[m][:, 1:], torch.full((tokens.shape[1], 1), -100)), 1)
            self.leaked = torch.where(targets[m] >= 0, targets[m], following)
            if hasattr(self.plain, "cut_reading"):
                self.plain.cut_reading, self.plain.cut_head = fault == "tied_head", fault == "tied_embedding"
            factor = 1.0
            if fault == "rank_missing" and self.rank == self.size - 1:
                factor = 0.0
            if fault == "rank_twice" and self.rank == 0:
                factor = 2.0
            if self.dtype == "bf16" and self.mode != "fsdp2":
                with torch.autocast("cpu", torch.bfloat16):
                    logits = self.model(tokens[m])
            else:
                logits = self.model(tokens[m])
            kept, self.fault = self.fault, fault
            loss = self.loss(logits, targets[m], everyones)
            self.fault = kept
            if self.mode.startswith("deepspeed"):  # which divides by the microbatches
                self.model.backward(loss * factor * self.M)
                self.model.step()
            else:
                (loss * factor).backward()
            with torch.no_grad():
                summed += F.cross_entropy(logits.float().flatten(0, 1), targets[m].flatten(), reduction="sum",
                                          ignore_index=-100).item()
        if self.mode.startswith("deepspeed"):
            return summed / (targets >= 0).sum().item(), None
        parameters = list(self.model.parameters())
        with torch.no_grad():
            if fault in ("sum", "accumulation", "mean_twice"):
                by = {"sum": self.size, "accumulation": self.M, "mean_twice": 1 / self.size}[fault]
                for p in parameters:
                    p.grad.mul_(by)
            if fault == "gradient_rows":
                for p in parameters:
                    local = getattr(p.grad, "_local_tensor", p.grad)
                    if p.dim() > 1:
                        local.copy_(torch.roll(local, 1, 0))
        norm = 0.0
        local = [getattr(p.grad, "_local_tensor", p.grad) for p in parameters]
        if self.clip and fault == "clip_by_share":
            own = math.sqrt(sum(x.double().pow(2).sum().item() for x in local))
            for x in local:
                x.mul_(min(1.0, self.clip / (own + 1e-6)))
            norm = None
        elif self.clip and fault != "not_clipped":
            norm = whole(nn.utils.clip_grad_norm_(parameters, self.clip, foreach=False)).item()
            if fault == "clip_twice":
                for p in parameters:
                    p.grad.mul_(min(1.0, self.clip / (norm + 1e-6)))
            if fault == "clip_scaled":
                for p in parameters:
                    p.grad.mul_(max(1.0, norm / self.clip)).mul_(min(1.0, self.clip / (64.0 * norm + 1e-6)))
        else:
            norm = None
        before = [p.detach().clone() for p in parameters]
        self.update(fault)
        with torch.no_grad():
            if fault == "shards":
                for p in parameters:
                    w = whole(p)
                    if p.dim() > 1 and w.shape[0] % self.size == 0:
                        self.overwrite(p, torch.roll(w, w.shape[0] // self.size, 0))
        del before
        return summed / (targets >= 0).sum().item(), norm

    def overwrite(self, p, value):
        if hasattr(p, "_local_tensor"):
            p._local_tensor.copy_(value.chunk(self.size, 0)[self.rank])
        else:
            p.copy_(value)

    def update(self, fault):
        odd = {"eps_inside", "no_bias_correction", "count_early", "l2", "all_decay", "no_decay", "masters"}
        if fault not in odd:
            return self.optimizer.step()
        for hook in self.optimizer._optimizer_step_pre_hooks.values():
            hook(self.optimizer, (), {})
        with torch.no_grad():
            for group in self.optimizer.param_groups:
                for p in group["params"]:
                    s = self.optimizer.state[p]
                    s["step"] += 1
                    t = s["step"].item() - (fault == "count_early")
                    decay = DECAY if fault == "all_decay" else 0 if fault == "no_decay" else group["weight_decay"]
                    g = p.grad + decay * p if fault == "l2" else p.grad
                    m, v = s["exp_avg"], s["exp_avg_sq"]
                    m.lerp_(g, 1 - BETAS[0])
                    v.mul_(BETAS[1]).addcmul_(g, g, value=1 - BETAS[1])
                    b1, b2 = (1 - b ** t for b in BETAS)
                    if fault == "no_bias_correction":
                        b1 = b2 = 1.0
                    root = (v / b2 + EPS).sqrt() if fault == "eps_inside" else (v / b2).sqrt() + EPS
                    if fault != "l2":
                        p.mul_(1 - LR * decay)
                    p.sub_(LR * (m / b1) / root)
                    if fault == "masters":
                        p.copy_(p.bfloat16().float())

    def record(self, path):
        for number in range(self.steps - 1):
            if self.fault == "stale" and number == self.steps - 2:
                old = [p.detach().clone() for p in self.model.parameters()]
            self.step(number)
        tokens, targets, _ = self.batch(self.steps - 1)
        dtype = {"pure": "bf16"}.get(self.dtype, self.dtype)
        scale = 64.0 if self.fault == "clip_scaled" else 1.0
        with zero_torch.record(self.model, self.optimizer, (tokens, targets), path, clip=self.clip, dtype=dtype,
                               loss_scale=scale, config=self.config, sharding="" if self.mode == "single" else self.mode) as step:
            if self.fault == "stale":
                self.stale(old)
            step.loss, step.norm = self.step(self.steps - 1, self.fault)

    def stale(self, old):
        """The forward pass reads old weights; the optimizer has the new ones again."""
        parameters = list(self.model.parameters())
        new = [p.detach().clone() for p in parameters]

        def change(values):
            with torch.no_grad():
                for p, x in zip(parameters, values):
                    p.copy_(x)

        change(old)
        self.optimizer.register_step_pre_hook(lambda *_: change(new))


def main(path, *words):
    options = dict(word.split("=") for word in words)
    if options.get("mode", "single") != "single":
        backend = os.environ.get("BACKEND", "zero")
        dist.init_process_group(backend, init_method="zero://")
    Trainer(**options).record(path)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
