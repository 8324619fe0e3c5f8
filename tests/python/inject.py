"""Training loops with the mistakes that people make, each from the first step on, as step files.

    mpirun -n 3 inject.py FOLDER     makes FOLDER/FAULT@TRAINER-MODEL-DTYPE.safetensors, the third step of each;
                                     on one rank the faults that need no second one

Nothing here knows how `zero verify` finds a cause: a fault is a line of a trainer, or a patch of a framework."""
import contextlib
import os
import sys

os.environ["DS_ACCELERATOR"] = "cpu"
import torch
import torch.distributed as dist
import torch.nn.functional as F

import zero_torch
from steps import GPT2, T, V, Llama, whole

LR, BETAS, EPS, DECAY, CLIP, SCALE = 3e-3, (0.9, 0.95), 1e-5, 0.1, 0.5, 1024.0

# fault: how often a rank accumulates, and trainer-model-dtype to show it with
FAULTS = {
    # on any number of ranks
    "not_divided_by_accumulation": (4, "plain-gpt2-fp32 fsdp2-llama-fp32 deepspeed2-gpt2-fp32"),
    "zero_grad_in_the_loop": (3, "plain-llama-fp32 ddp-gpt2-bf16"),
    "means_of_microbatches": (3, "plain-gpt2-fp32 ddp-llama-fp32 fsdp2-gpt2-bf16"),
    "head_is_detached": (1, "plain-gpt2-fp32 ddp-gpt2-bf16 deepspeed1-gpt2-fp32"),
    "padding_counts": (2, "plain-llama-bf16 fsdp2-gpt2-fp32 deepspeed3-llama-fp32"),
    "clipped_before_unscaling": (1, "plain-gpt2-fp32 ddp-llama-fp32"),
    "eps_in_the_root": (1, "plain-gpt2-fp32 fsdp2-llama-bf16"),
    "counts_one_more": (1, "plain-llama-fp32 fsdp2-gpt2-bf16"),
    "adam_with_l2": (1, "plain-gpt2-fp32 ddp-llama-bf16 deepspeed2-llama-fp32"),
    "decays_everything": (1, "plain-llama-fp32 fsdp2-gpt2-fp32"),
    "stale_weights": (1, "plain-gpt2-fp32 ddp-llama-fp32"),
    "weights_in_bf16": (1, "plain-llama-bf16 fsdp2-gpt2-bf16"),
    # on three
    "summed_over_ranks": (1, "fsdp2-gpt2-fp32 fsdp2-llama-bf16 deepspeed2-llama-fp32"),
    "not_reduced": (1, "ddp-gpt2-fp32 ddp-llama-bf16"),
    "rank_2_is_lost": (2, "fsdp2-llama-fp32 ddp-gpt2-bf16 deepspeed3-gpt2-fp32"),
    "rank_2_reads_rank_1s_batch": (1, "ddp-gpt2-fp32 fsdp2-llama-fp32"),
    "means_of_ranks": (1, "fsdp2-gpt2-fp32 deepspeed2-llama-fp32"),
    "clipped_by_own_norm": (1, "fsdp2-gpt2-fp32 fsdp2-llama-bf16"),
    "norm_lacks_rank_1": (1, "fsdp2-llama-fp32 deepspeed2-gpt2-fp32"),
    "shards_of_neighbours": (1, "fsdp2-gpt2-fp32 fsdp2-llama-bf16"),
    "": (2, "plain-gpt2-fp32 plain-llama-bf16 ddp-llama-fp32 fsdp2-gpt2-bf16 deepspeed2-gpt2-fp32 deepspeed3-llama-fp32"),
}


class AdamW(torch.optim.AdamW):
    """Torch's, written out."""
    fault = ""

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state, decay = self.state[p], group["weight_decay"]
                if not state:
                    state.update(step=torch.tensor(0.0), exp_avg=torch.zeros_like(p), exp_avg_sq=torch.zeros_like(p))
                state["step"] += 1
                t = state["step"].item() + (self.fault == "counts_one_more")
                if self.fault == "decays_everything":
                    decay = DECAY
                p.mul_(1 - LR * decay)
                state["exp_avg"].lerp_(p.grad, 1 - BETAS[0])
                state["exp_avg_sq"].mul_(BETAS[1]).addcmul_(p.grad, p.grad, value=1 - BETAS[1])
                v = state["exp_avg_sq"] / (1 - BETAS[1] ** t)
                root = (v + EPS).sqrt() if self.fault == "eps_in_the_root" else v.sqrt() + EPS
                p.sub_(LR / (1 - BETAS[0] ** t) * state["exp_avg"] / root)


class Trainer:
    def __init__(self, fault, accumulation, trainer, model, dtype):
        self.fault, self.M, self.trainer, self.dtype = fault, accumulation, trainer, dtype
        self.rank, self.size = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
        torch.manual_seed(len(fault) + len(trainer))
        self.plain = self.model = {"gpt2": GPT2, "llama": Llama}[model]()
        if model == "gpt2":
            self.plain.cut_head = fault == "head_is_detached"
        if trainer == "ddp":
            self.model = torch.nn.parallel.DistributedDataParallel(self.model)
        if trainer == "fsdp2":
            from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
            policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
            settings = {"mp_policy": policy} if dtype == "bf16" else {}
            for part in (*self.model.blocks(), self.model):
                fully_shard(part, mesh=torch.distributed.device_mesh.init_device_mesh("cpu", (self.size,)), **settings)
                if fault == "summed_over_ranks":
                    part.set_gradient_divide_factor(1.0)
        groups = [{"params": [p for p in self.model.parameters() if p.dim() > 1], "weight_decay": DECAY},
                  {"params": [p for p in self.model.parameters() if p.dim() == 1], "weight_decay": 0.0}]
        kind = torch.optim.Adam if fault == "adam_with_l2" else AdamW if fault else torch.optim.AdamW
        self.optimizer = kind(groups, lr=LR, betas=BETAS, eps=EPS, foreach=False)
        self.optimizer.fault = fault
        if trainer.startswith("deepspeed"):
            self.deepspeed(int(trainer[-1]))
        self.old = None

    def deepspeed(self, stage):
        import deepspeed
        sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None  # it would compile an all-reduce of its own
        os.environ.update(RANK=str(self.rank), WORLD_SIZE=str(self.size), LOCAL_RANK=str(self.rank), LOCAL_SIZE=str(self.size))
        self.model = deepspeed.initialize(model=self.plain, optimizer=self.optimizer, dist_init_required=False, config={
            "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": self.M, "steps_per_print": 10**9,
            "gradient_clipping": CLIP, "zero_allow_untested_optimizer": True, "zero_optimization": {"stage": stage}})[0]
        self.optimizer = optimizer = self.model.optimizer
        if self.fault == "norm_lacks_rank_1" and self.rank == 1:
            own = optimizer.get_grad_norm_direct
            optimizer.get_grad_norm_direct = lambda gradients, *more, **options: own([0 * g for g in gradients], *more, **options)

    def batch(self, number):
        """Tokens and targets of all ranks, [ranks, M, 2, T]; sequences end in padding, of another length each."""
        g = torch.Generator().manual_seed(99 + number)
        tokens = torch.randint(1, V, (self.size, self.M, 2, T + 1), generator=g)
        for r in range(self.size):
            for m in range(self.M):
                tokens[r, m, :, T - 1 - 2 * r - 3 * m:] = 0
        targets = torch.where(tokens[..., 1:] > 0, tokens[..., 1:], -100)
        return tokens[..., :-1], targets

    def autocast(self):
        is_on = self.dtype == "bf16" and self.trainer in ("plain", "ddp")
        return torch.autocast("cpu", torch.bfloat16) if is_on else contextlib.nullcontext()

    def loss(self, logits, tokens, targets, everyones):
        """Of a microbatch: the mean over ranks of the sum over microbatches is the mean over all tokens."""
        logits, fault = logits.float().flatten(0, 1), self.fault
        if fault == "padding_counts":
            labels = torch.cat((tokens[:, 1:], torch.zeros_like(tokens[:, :1])), 1)
            labels = torch.where(targets >= 0, targets, labels)
            return F.cross_entropy(logits, labels.flatten()) / self.M
        total = F.cross_entropy(logits, targets.flatten(), reduction="sum")
        if fault == "means_of_microbatches":
            return F.cross_entropy(logits, targets.flatten()) / self.M
        if fault == "means_of_ranks":
            return total / (everyones[self.rank] >= 0).sum()
        scale = SCALE if fault == "clipped_before_unscaling" else 1.0
        scale *= self.M if fault == "not_divided_by_accumulation" and self.trainer != "deepspeed2" else 1.0
        scale *= 0.0 if fault == "rank_2_is_lost" and self.rank == 2 else 1.0
        if fault == "summed_over_ranks" and self.trainer.startswith("deepspeed"):
            scale *= self.size
        return total * scale * self.size / (everyones >= 0).sum()

    def gradients(self, number):
        """This rank's mean loss."""
        tokens, targets = self.batch(number)
        summed, own = 0.0, self.rank
        if self.fault == "rank_2_reads_rank_1s_batch" and self.rank == 2:
            own = 1
        for m in range(self.M):
            if self.fault == "zero_grad_in_the_loop":
                self.optimizer.zero_grad()
            is_quiet = self.fault == "not_reduced" or (self.trainer == "ddp" and m + 1 < self.M and
                                                       self.fault != "zero_grad_in_the_loop")
            with self.model.no_sync() if is_quiet else contextlib.nullcontext():
                with self.autocast():
                    logits = self.model(tokens[own, m])
                loss = self.loss(logits, tokens[own, m], targets[own, m], targets)
                if not self.trainer.startswith("deepspeed"):
                    loss.backward()
                elif self.fault == "not_divided_by_accumulation":
                    self.model.backward(loss * self.M, scale_wrt_gas=False)
                    self.model.step()
                else:
                    self.model.backward(loss * self.M)
                    self.model.step()
            summed += F.cross_entropy(logits.detach().float().flatten(0, 1), targets[own, m].flatten(), reduction="sum").item()
        return summed / (targets[own] >= 0).sum().item()

    def clip(self):
        gradients = [p.grad for p in self.model.parameters()]
        own = [getattr(g, "_local_tensor", g) for g in gradients]
        squares = sum(g.double().square().sum() for g in own)
        if self.fault == "norm_lacks_rank_1" and self.rank == 1:
            squares *= 0
        if self.fault == "norm_lacks_rank_1":
            dist.all_reduce(squares)
        if self.fault in ("norm_lacks_rank_1", "clipped_by_own_norm"):
            norm = squares.sqrt().item()
            for g in own:
                g.mul_(min(1.0, CLIP / (norm + 1e-6)))
            return norm
        norm = whole(torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP, foreach=False)).item()
        for g in gradients:
            if self.fault == "clipped_before_unscaling":
                g.div_(SCALE)
        return norm

    @torch.no_grad()
    def exchange(self, values):
        now = [p.detach().clone() for p in self.model.parameters()]
        for p, value in zip(self.model.parameters(), values or now):
            p.copy_(value)
        return now

    def step(self, number):
        if self.trainer.startswith("deepspeed"):
            return self.gradients(number), None
        self.optimizer.zero_grad()
        now = self.exchange(self.old if self.fault == "stale_weights" else None)
        loss = self.gradients(number)
        self.exchange(now)
        self.old = now
        norm = self.clip()
        self.optimizer.step()
        with torch.no_grad():
            for p in self.model.parameters():
                if self.fault == "weights_in_bf16":
                    p.copy_(p.bfloat16().float())
                if self.fault == "shards_of_neighbours" and p.dim() > 1 and p.shape[0] % self.size == 0:
                    p._local_tensor.copy_(torch.roll(whole(p), p.shape[0] // self.size, 0).chunk(self.size)[self.rank])
        return loss, norm

    def record(self, path):
        for number in range(2):
            self.step(number)
        batch = [x[self.rank] for x in self.batch(2)]
        with zero_torch.record(self.model, self.optimizer, batch, path, clip=CLIP, dtype=self.dtype, config=self.plain.config,
                               loss_scale=SCALE if self.fault == "clipped_before_unscaling" else 1.0,
                               sharding=self.trainer) as step:
            step.loss, step.norm = self.step(2)


def main(folder):
    if "OMPI_COMM_WORLD_SIZE" in os.environ:
        dist.init_process_group(os.environ.get("BACKEND", "zero"), init_method="zero://")
    size = dist.get_world_size() if dist.is_initialized() else 1
    try:
        import deepspeed  # noqa: F401
        has_deepspeed = True
    except ImportError:
        has_deepspeed = False
    for fault, (M, shown) in FAULTS.items():
        for words in shown.split():
            trainer, model, dtype = words.split("-")
            if (trainer == "plain") == (size == 1) and (has_deepspeed or "deepspeed" not in trainer):
                Trainer(fault, M, trainer, model, dtype).record(f"{folder}/{fault or 'none'}@{words}.safetensors")
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
