"""A small GPT, its data, and the ways in which torch trains it on several ranks."""
import hashlib

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer

VOCAB = 256


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm2, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (y.view(B, T, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(C, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, C)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """tokens, targets [B, T] -> mean cross-entropy"""

    def __init__(self, layers=4, width=128, heads=4, seq=64):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCAB, width), nn.Embedding(seq, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCAB, bias=False)

    def forward(self, tokens, targets):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def batch(number, seq, sequences=1):
    """Tokens and targets of a batch: pairs of equal tokens, which a model can learn."""
    g = torch.Generator().manual_seed(number)
    tokens = torch.randint(0, VOCAB, (sequences, seq // 2 + 1), generator=g).repeat_interleave(2, 1)
    return tokens[:, :seq], tokens[:, 1:seq + 1]


class Training:
    """A model on a group in one of the modes, and its optimizer.

    mode: words joined by "+": one of fsdp, hsdp, ddp, hook (DDP with a mean after the sum), zero1 (hook with
    ZeroRedundancyOptimizer), and any of bf16 (parameters in bf16, gradients reduced in fp32), half (both in bf16),
    clip, accumulate (2 microbatches per step), windows (FSDP2's buffers in shared memory)."""

    def __init__(self, mode, group, hook=None, bucket_mb=1, **shape):
        self.words, self.group, self.seq = set(mode.split("+")), group, shape.get("seq", 64)
        torch.manual_seed(1)
        self.model = GPT(**shape)
        self.psi = sum(p.numel() for p in self.model.parameters())
        self.sizes = [p.shape for p in self.model.parameters()]
        is_sharded = self.words & {"fsdp", "hsdp"}
        self.model = self.sharded() if is_sharded else self.replicated(hook, bucket_mb)
        settings = {"lr": 1e-3, "foreach": False}
        if "zero1" in self.words:
            self.optimizer = ZeroRedundancyOptimizer(self.model.parameters(), process_group=group,
                                                     optimizer_class=torch.optim.AdamW, **settings)
        else:
            self.optimizer = torch.optim.AdamW(self.model.parameters(), **settings)
        self.losses = []

    def sharded(self):
        mesh = self.group if isinstance(self.group, DeviceMesh) else DeviceMesh.from_group(self.group, "cpu")
        settings = {"mesh": mesh}
        if self.words & {"bf16", "half"}:
            reduced = torch.bfloat16 if "half" in self.words else torch.float32
            settings["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=reduced)
        for part in (*self.model.blocks, self.model):
            fully_shard(part, **settings)
        if "windows" in self.words:
            for part in (*self.model.blocks, self.model):
                part.set_allocate_memory_from_process_group_for_comm(True)
        return self.model

    def replicated(self, hook, bucket_mb):
        model = nn.parallel.DistributedDataParallel(self.model, process_group=self.group,
                                                    bucket_cap_mb=bucket_mb)
        if self.words & {"hook", "zero1"} and hook:
            model.register_comm_hook(self.group, hook)
        return model

    def step(self, number, sequences=1):
        rank, size = dist.get_rank(), dist.get_world_size()
        parts = 2 if "accumulate" in self.words else 1
        total = 0.0
        for part in range(parts):
            self.synchronize(part + 1 == parts)
            loss = self.model(*batch((number * parts + part) * size + rank, self.seq, sequences)) / parts
            loss.backward()
            total += loss.item()
        if "clip" in self.words:
            nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.losses.append(total)

    def synchronize(self, is_last):
        """Gradients of the other microbatches stay where they are."""
        if hasattr(self.model, "set_requires_gradient_sync"):
            self.model.set_requires_gradient_sync(is_last)
        else:
            self.model.require_backward_grad_sync = is_last

    def digest(self):
        """Of the bits of all parameters. Collective."""
        h = hashlib.sha256()
        for _, p in sorted((name.replace("module.", ""), p) for name, p in self.model.named_parameters()):
            whole = p.full_tensor() if hasattr(p, "full_tensor") else p
            h.update(whole.detach().contiguous().numpy().tobytes())
        return h.hexdigest()[:16]


def meshes(size, backend):
    """HSDP's two groups, N/2 replicas of shards on 2 ranks. Groups of another backend than the default
    group's are made one by one."""
    names = ("replicate", "shard")
    if backend == "zero":
        return init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=names)
    rank, table = dist.get_rank(), torch.arange(size).view(-1, 2)
    shards = [dist.new_group(row.tolist(), backend=backend) for row in table]
    replicas = [dist.new_group(column.tolist(), backend=backend) for column in table.t()]
    return DeviceMesh.from_group([replicas[rank % 2], shards[rank // 2]], "cpu", mesh=table,
                                 mesh_dim_names=names)
