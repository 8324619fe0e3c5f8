"""zero: PyTorch's collectives on MPI, with the same bits for every way of sharding.

    import torch.distributed as dist, zero_torch
    dist.init_process_group("zero", init_method="zero://")     # mpirun -n 4 python train.py

A script that stays as it is: mpirun -n 4 python -m zero_torch train.py (see zero_torch.__main__).

    with zero_torch.count() as moved:        # bytes that this rank sends in one step, to the byte
        step()
    assert moved.sent == 2 * 4 * psi * (n - 1) // n

    ddp.register_comm_hook(None, zero_torch.average_hook)      # DDP with FSDP2's bits
"""
import contextlib
import datetime
import functools

import torch
import torch.distributed as dist
from torch.distributed.rendezvous import register_rendezvous_handler

from .place import version as __version__

if tuple(int(x) for x in torch.__version__.split(".")[:2]) < (2, 15):
    raise ImportError(f"zero needs torch 2.15 or newer (this is {torch.__version__}): earlier ones "
                      "have no backends in Python")

from . import backend  # noqa: E402
from .job import job, open_store  # noqa: E402
from .library import Moved, Traffic  # noqa: E402
from .record import record  # noqa: E402, F401


def register():
    """Makes "zero" a backend, and "zero://" a way to initialize. Torch calls this, too, when a
    program names the backend (entry point torch.distributed.backends)."""
    if "ZERO" in dist.Backend._plugins:
        return
    dist.Backend.register_backend("zero", backend.Backend, extended_api=True, devices=["cpu"])
    register_rendezvous_handler("zero", _rendezvous)


def _rendezvous(url, timeout=datetime.timedelta(seconds=1800), **_):
    """Rank and size are MPI's; a store for those who ask torch for one is opened on rank 0."""
    job.start(timeout.total_seconds())
    yield open_store(timeout), job.rank, job.size
    raise RuntimeError("zero: ranks cannot meet again under zero://")


def average_hook(group, bucket):
    """A communication hook for DDP. The mean is taken after the sum, before the one rounding, as
    FSDP2 does; DDP's own way multiplies by 1/N before the sum. `group`: DDP's, or None."""
    work = dist.all_reduce(bucket.buffer(), op=dist.ReduceOp.AVG, group=group, async_op=True)
    return work.get_future().then(lambda future: future.value()[0])


class Ledger(dict):
    """Bytes and messages (Moved) per kind of operation; `sent`, `received`, `messages` are the sums of all."""

    def __getattr__(self, name):
        return sum(getattr(moved, name) for moved in self.values())


def ledger(group=None):
    """What this rank has moved in a group, or, with None, in all that it has opened so far."""
    traffic = [_backend(group).traffic()] if group else [g.traffic() for g in backend.groups] + backend.closed
    return Ledger({kind: functools.reduce(Moved.plus, [getattr(t, kind) for t in traffic], Moved())
                   for kind, _ in Traffic._fields_})


@contextlib.contextmanager
def count(group=None):
    """Counts what this rank moves in the block: a Ledger, which is filled at the block's end."""
    before, moved = ledger(group), Ledger()
    yield moved
    moved.update({kind: now.plus(before[kind], -1) for kind, now in ledger(group).items()})


def share(size, group=None):
    """Gives each rank of a group, all on one node, `size` bytes of memory that the others read: FSDP2's buffers lie
    there after set_allocate_memory_from_process_group_for_comm(True), and travel without messages. Collective."""
    _backend(group or dist.group.WORLD).share(size)


def _backend(group):
    return group._get_backend(torch.device("cpu"))


register()
