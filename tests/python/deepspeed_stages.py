"""Run by hand: DeepSpeed's ZeRO stages 1, 2 and 3 on the backend: equal losses, and how much each stage sends."""
import os
import sys

os.environ["DS_ACCELERATOR"] = "cpu"
import deepspeed  # noqa: E402

from common import Checks, dist, start, torch, zero_torch  # noqa: E402

# With all ranks on one node DeepSpeed would compile an all-reduce of its own, for inference.
sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None
rank, size = start()
checks = Checks()
os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank), LOCAL_SIZE=str(size))


def train(stage):
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Sequential(
        torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64)) for _ in range(3)])
    psi, losses = sum(p.numel() for p in model.parameters()), []
    engine, *_ = deepspeed.initialize(
        model=model, model_parameters=model.parameters(), dist_init_required=False, config={
            "train_micro_batch_size_per_gpu": 4, "steps_per_print": 10**9, "gradient_clipping": 1.0,
            "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
            "zero_optimization": {"stage": stage}})
    for step in range(5):
        with zero_torch.count() as moved:
            g = torch.Generator().manual_seed(step * size + rank)
            x = torch.randn(4, 64, generator=g)
            loss = ((engine(x) - x.roll(1, 1)) ** 2).mean()
            engine.backward(loss)
            engine.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(mean.item() / size)
    unit = 4 * psi * (size - 1) / size
    if rank == 0:
        print(f"stage {stage}: losses {losses}; sent in units of 4 psi (n-1)/n: "
              f"{({k: round(m.sent / unit, 2) for k, m in moved.items() if m.sent})}", flush=True)
    return losses


found = [train(stage) for stage in (1, 2, 3)]
for losses in found[1:]:
    checks.equal("losses", torch.tensor(losses), torch.tensor(found[0]), 1e-6)
checks.end("deepspeed")
