#!/usr/bin/env python3
"""Pipelines beside torch.distributed.pipelining: the same steps of a Llama, from the same weights.

    python3 bench/torch_pipeline.py build/zero

Ten steps of AdamW in fp32 on random tokens, 8 microbatches each, by GPipe and 1F1B. PyTorch's stages are
processes that exchange by gloo; zero runs as many. Prints how far losses and gradient norms are apart, and
whether zero's digest is that of --pp 1. Needs torch and safetensors.
"""
import json
import os
import subprocess
import sys
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

STEPS, M, T, V, C, HEADS, KEYS, WIDE, LAYERS = 10, 8, 32, 256, 64, 4, 2, 176, 4
D = C // HEADS
CONFIG = dict(model_type="llama", architectures=["LlamaForCausalLM"], hidden_size=C, intermediate_size=WIDE,
              num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=KEYS, vocab_size=V,
              max_position_embeddings=T, rms_norm_eps=1e-5, rope_theta=1e4, tie_word_embeddings=False,
              hidden_act="silu", torch_dtype="float32")


def linears(**sizes):
    return nn.ModuleDict({name: nn.Linear(*size, bias=False) for name, size in sizes.items()})


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn = linears(q_proj=(C, C), k_proj=(C, KEYS * D), v_proj=(C, KEYS * D), o_proj=(C, C))
        self.mlp = linears(gate_proj=(C, WIDE), up_proj=(C, WIDE), down_proj=(WIDE, C))
        self.input_layernorm, self.post_attention_layernorm = nn.RMSNorm(C, 1e-5), nn.RMSNorm(C, 1e-5)

    def forward(self, x):
        at, mlp, n = self.self_attn, self.mlp, self.input_layernorm(x)
        q, k, v = (at[name](n).view(*x.shape[:2], -1, D).transpose(1, 2) for name in ("q_proj", "k_proj", "v_proj"))
        angle = torch.outer(torch.arange(T), 1e4 ** (-torch.arange(0, D, 2) / D)).repeat(1, 2)
        q, k = (t * angle.cos() + torch.cat([-t[..., D // 2:], t[..., :D // 2]], -1) * angle.sin() for t in (q, k))
        k, v = (t.repeat_interleave(HEADS // KEYS, 1) for t in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + at["o_proj"](y.transpose(1, 2).flatten(2))
        n = self.post_attention_layernorm(x)
        return x + mlp["down_proj"](F.silu(mlp["gate_proj"](n)) * mlp["up_proj"](n))


class Stage(nn.Module):
    """Blocks of one stage, under their names in the whole model."""

    def __init__(self, stage, stages):
        super().__init__()
        each = LAYERS // stages
        self.model = nn.Module()
        self.model.layers = nn.ModuleDict({str(i): Block() for i in range(stage * each, (stage + 1) * each)})
        self.model.embed_tokens = nn.Embedding(V, C) if stage == 0 else nn.Identity()
        self.model.norm = nn.RMSNorm(C, 1e-5) if stage == stages - 1 else nn.Identity()
        self.lm_head = nn.Linear(C, V, bias=False) if stage == stages - 1 else nn.Identity()

    def forward(self, x):
        x = self.model.embed_tokens(x)
        for block in self.model.layers.values():
            x = block(x)
        return self.lm_head(self.model.norm(x))


def loss_of(logits, y):
    return F.cross_entropy(logits.flatten(0, 1), y.flatten())


def train(rank, stages, schedule):
    """Of one process: its stage's steps. The last one writes losses and norms."""
    from safetensors.torch import load_file
    from torch.distributed import pipelining
    dist.init_process_group("gloo", init_method=f"file://{os.getcwd()}/meet.{stages}.{schedule}", rank=rank,
                            world_size=stages)
    module, weights = Stage(rank, stages), load_file("model/model.safetensors")
    module.load_state_dict({name: weights[name] for name in module.state_dict()})
    stage = pipelining.PipelineStage(module, rank, stages, torch.device("cpu"))
    steps = getattr(pipelining, schedule)(stage, M, loss_fn=loss_of)
    adam = torch.optim.AdamW([dict(params=[p for p in module.parameters() if (p.dim() > 1) == is_matrix],
                                   weight_decay=0.1 * is_matrix) for is_matrix in (True, False)],
                             lr=1e-3, betas=(0.9, 0.95))
    tokens, told = torch.load("tokens.pt"), []
    for step in range(STEPS):
        rows = [tokens[i * T:i * T + T + 1] for i in range(step * M, step * M + M)]
        x, y, losses = torch.stack([r[:-1] for r in rows]), torch.stack([r[1:] for r in rows]), []
        adam.zero_grad()
        last = dict(target=y, losses=losses) if rank == stages - 1 else {}
        steps.step(*[x] if rank == 0 else [], **last)
        squares = sum(p.grad.double().square().sum() for p in module.parameters())
        dist.all_reduce(squares)
        norm = squares.sqrt().item()
        for p in module.parameters():
            p.grad *= min(1.0, 1 / (norm + 1e-6))
        adam.step()
        if last:
            told.append((torch.stack(losses).mean().item(), norm))
    if rank == stages - 1:
        json.dump(told, open("torch.json", "w"))
    dist.destroy_process_group()


def zero_steps(zero, *options):
    """Losses and norms of zero's steps, and its digest."""
    done = subprocess.run(
        ["mpirun", "-n", options[1], "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none", zero, "train", "--init-from",
         "model", "--data", "tokens.bin", "--token-bytes", "2", "--shuffle=off", "--seq", str(T), "--micro-batch", "1",
         "--global-batch", str(M), "--steps", str(STEPS), "--lr", "1e-3", "--lr-decay", "none", "--warmup", "0",
         "--clip", "1", "--weight-decay", "0.1", "--beta1", "0.9", "--beta2", "0.95", "--eval-every", "0", "--sample",
         "0", "--reproducible", "--metrics", "metrics", *options], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr[-800:])
    lines = [json.loads(line) for line in open("metrics")]
    os.remove("metrics")
    return [(line["loss"], line["grad_norm"]) for line in lines if "grad_norm" in line], done.stdout.split()[-1]


def main():
    from safetensors.torch import save_file
    zero = os.path.abspath(sys.argv[1])
    os.chdir(tempfile.mkdtemp())
    torch.manual_seed(1)
    os.mkdir("model")
    save_file({name: torch.randn_like(p) * 0.08 + ("norm" in name) for name, p in Stage(0, 1).state_dict().items()},
              "model/model.safetensors", metadata=dict(format="pt"))
    json.dump(CONFIG, open("model/config.json", "w"))
    tokens = torch.randint(0, V, (3 * M * T * STEPS + 1,))  # zero evaluates on some
    tokens.numpy().astype("uint16").tofile("tokens.bin")
    torch.save(tokens, "tokens.pt")
    _, alone = zero_steps(zero, "--pp", "1")
    for stages in 2, 4:
        for schedule, ours in ("ScheduleGPipe", "gpipe"), ("Schedule1F1B", "1f1b"):
            torch.multiprocessing.spawn(train, (stages, schedule), stages)
            pairs, digest = zero_steps(zero, "--pp", str(stages), "--pp-schedule", ours)
            apart = [max(abs(a[k] / b[k] - 1) for a, b in zip(pairs, json.load(open("torch.json")))) for k in (0, 1)]
            print(f"{stages} stages, {ours:5}: losses at most {apart[0]:.1e} apart, gradient norms {apart[1]:.1e}; digest "
                  f"{'that of --pp 1' if digest == alone else 'ANOTHER THAN that of --pp 1'}", flush=True)


if __name__ == "__main__":
    main()
