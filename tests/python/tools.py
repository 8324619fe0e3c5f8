"""What PyTorch builds on a backend: DTensor and tensor parallelism, full tensors, functional collectives,
distributed checkpoints (also beside training), FSDP1, pipelines of messages, threads, workers of a DataLoader.

    tools.py FOLDER"""
import os
import sys
import threading
import warnings

import torch.distributed._functional_collectives as functional
import torch.distributed.checkpoint as dcp
import torch.nn as nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.data import DataLoader, TensorDataset

from common import Checks, cpu_backend, dist, start, torch, zero_torch

warnings.filterwarnings("ignore")
rank, size = start()
checks = Checks()
mesh = init_device_mesh("cpu", (size,))


def net(seed):
    torch.manual_seed(seed)
    return nn.Sequential(*[nn.Sequential(nn.Linear(64, 192), nn.GELU(), nn.Linear(192, 64)) for _ in range(3)])


def sharded(seed):
    model = net(seed)
    for part in (*model, model):
        fully_shard(part, mesh=mesh)
    return model, torch.optim.AdamW(model.parameters(), foreach=False)


def steps(model, optimizer, n, first=0):
    for k in range(n):
        g = torch.Generator().manual_seed(first + k)
        model(torch.randn(8, 64, generator=g)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def full(model):
    return [p.full_tensor() for p in model.parameters()]


def dtensors():
    torch.manual_seed(3)
    a = torch.randn(size * 2 + 1, 6)
    d = distribute_tensor(a, mesh, [Shard(0)])
    checks.equal("full tensor", d.full_tensor(), a)
    checks.equal("rows to columns", d.redistribute(mesh, [Shard(1)]).full_tensor(), a)
    p = DTensor.from_local(torch.full((2 * size, 3), rank + 1.0), mesh, [Partial()])
    total = torch.full((2 * size, 3), size * (size + 1) / 2)
    checks.equal("partial to rows", p.redistribute(mesh, [Shard(0)]).full_tensor(), total)
    checks.equal("partial to whole", p.redistribute(mesh, [Replicate()]).to_local(), total)
    b = torch.randn(6, 2 * size)
    product = d @ distribute_tensor(b, mesh, [Replicate()])
    checks.equal("product", product.full_tensor(), a @ b, 1e-6)


def tensor_parallel():
    whole = net(5)[0]
    shared = parallelize_module(net(5)[0], mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    x = torch.randn(4, 64, generator=torch.Generator().manual_seed(1))
    checks.equal("tensor parallel", shared(x), whole(x), 1e-5)
    shared(x).square().sum().backward()
    whole(x).square().sum().backward()
    checks.equal("its gradient", shared[0].weight.grad.full_tensor(), whole[0].weight.grad, 1e-4)


def functionals():
    world, t = dist.group.WORLD, torch.arange(4.0 * size) + rank
    checks.equal("functional all-reduce", functional.all_reduce(t, "sum", world) + 0,
                 size * torch.arange(4.0 * size) + size * (size - 1) / 2)
    checks.equal("functional all-gather", functional.all_gather_tensor(t[:1], 0, world) + 0,
                 torch.arange(float(size)))
    checks.equal("functional reduce-scatter",
                 functional.reduce_scatter_tensor(torch.ones(2 * size), "avg", 0, world) + 0, torch.ones(2))
    checks.equal("functional all-to-all",
                 functional.all_to_all_single(torch.full((size,), float(rank)), None, None, world) + 0,
                 torch.arange(float(size)))
    a, b = functional.all_reduce_coalesced([torch.ones(3), torch.ones(5)], "sum", world)
    checks.equal("coalesced", torch.cat([a + 0, b + 0]), torch.full((8,), float(size)))


def checkpoints(folder):
    """Saved beside training, loaded into another model: both go on with the same bits."""
    for name, save in (("sync", dcp.save), ("async", dcp.async_save)):
        group = dist.new_group(list(range(size)))
        model, optimizer = sharded(0)
        steps(model, optimizer, 2)
        weights, states = get_state_dict(model, optimizer)
        saving = save({"model": weights, "optimizer": states}, process_group=group,
                      checkpoint_id=os.path.join(folder, name))
        steps(model, optimizer, 3, 2) if name == "async" else None
        if name == "async":
            saving.result()
            model, optimizer = sharded(0)
            steps(model, optimizer, 5)
        else:
            steps(model, optimizer, 3, 2)
        other, its_optimizer = sharded(1)
        weights, states = get_state_dict(other, its_optimizer)
        dcp.load({"model": weights, "optimizer": states}, process_group=group,
                 checkpoint_id=os.path.join(folder, name))
        set_state_dict(other, its_optimizer, model_state_dict=weights, optim_state_dict=states)
        steps(other, its_optimizer, 3, 2)
        for a, b in zip(full(model), full(other)):
            checks.equal(f"{name} checkpoint", a, b)
    whole, _ = get_state_dict(model, optimizer, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    checks.true(rank or whole["0.0.weight"].shape == (192, 64), "a full state dict on rank 0")


def older_fsdp():
    plain, model = net(7), FullyShardedDataParallel(net(7), device_id=torch.device("cpu"))
    x = torch.randn(4, 64, generator=torch.Generator().manual_seed(2))
    for m in (plain, model):
        optimizer = torch.optim.SGD(m.parameters(), lr=0.1)
        m(x).square().mean().backward()
        optimizer.step()
    with FullyShardedDataParallel.summon_full_params(model):
        for a, b in zip(plain.parameters(), model.parameters()):
            checks.equal("FSDP1", b.detach().view_as(a), a.detach(), 1e-5)


def threads():
    """Two threads, each on a group of its own."""
    def work(group, odd):
        for k in range(100):
            t = torch.full((1000 + k * odd,), float(k + rank))
            request = dist.all_reduce(t, group=group, async_op=k % 2 == 1)
            if request:
                request.wait()
            checks.true(t[-1].item() == size * k + size * (size - 1) / 2, "threads", k)
    second = threading.Thread(target=work, args=(dist.new_group(list(range(size))), 7))
    second.start()
    work(None, 13)
    second.join()


def workers():
    """Forked workers load data, leave, and do not disturb; they cannot communicate."""
    loader = DataLoader(TensorDataset(torch.arange(32.0)), batch_size=4, num_workers=2,
                        multiprocessing_context="fork")
    for (t,) in loader:
        dist.all_reduce(t)
    checks.equal("a forked loader", t, size * torch.arange(28.0, 32.0))
    child = os.fork()
    if child == 0:
        try:
            dist.all_reduce(torch.ones(1))
        except RuntimeError as error:
            os._exit(0 if "forked" in str(error) else 1)
        os._exit(2)
    checks.true(os.waitpid(child, 0)[1] == 0, "a forked child is refused")


def windows():
    """FSDP2's buffers in memory that neighbours read: equal bits, and less is sent in messages."""
    results = []
    for shared in (False, True):
        model, optimizer = sharded(4)
        if shared:
            zero_torch.share(4 << 20, mesh.get_group())
            for part in (*model, model):
                part.set_allocate_memory_from_process_group_for_comm(True)
        with zero_torch.count() as moved:
            steps(model, optimizer, 3)
        results.append((full(model), moved))
    for a, b in zip(results[0][0], results[1][0]):
        checks.equal("shared buffers", a, b)
    before, after = results[0][1], results[1][1]
    checks.true(before.sent == after.sent and (size == 1 or after.messages < before.messages / 2),
                "shared buffers need few messages:", before.messages, after.messages)


dtensors()
tensor_parallel()
functionals()
checkpoints(sys.argv[1])
older_fsdp()
threads()
workers()
checks.true(cpu_backend().name() == "zero", "the backend's name")
dist.monitored_barrier()
windows()
checks.end("tools")
