"""What the scripts of this folder share. Each runs on all ranks of `mpirun -n N`, prints what is wrong,
and exits with 1 then: its rank's exception ends the job."""
import sys

import torch
import torch.distributed as dist

import zero_torch

torch.set_num_threads(1)


def start(**options):
    """(rank, size) of the default group."""
    dist.init_process_group("zero", init_method="zero://", **options)
    return dist.get_rank(), dist.get_world_size()


class Checks:
    """Counts what is checked, and what is wrong."""

    def __init__(self):
        self.n = self.wrong = 0

    def true(self, is_right, *what):
        self.n += 1
        if not is_right:
            self.wrong += 1
            print(f"rank {dist.get_rank()}: wrong:", *what, file=sys.stderr, flush=True)

    def equal(self, name, found, expected, tolerance=0.0):
        same = torch.equal(found, expected) if tolerance == 0.0 else torch.allclose(
            found.double(), expected.double(), rtol=tolerance, atol=tolerance, equal_nan=True)
        self.true(same, name, found.flatten()[:6].tolist(), "expected", expected.flatten()[:6].tolist())

    def raises(self, words, call):
        """The call fails with a sentence that has these words."""
        try:
            call()
        except Exception as error:
            self.true(words in str(error), f'expected "{words}" in "{error}"')
        else:
            self.true(False, f'expected an error with "{words}"')

    def end(self, what):
        """Collective. Every rank has found everything right, or this one exits with 1."""
        wrong = torch.tensor([self.wrong])
        dist.all_reduce(wrong)
        if dist.get_rank() == 0:
            print(f"{what}: {self.n} checks on rank 0 of {dist.get_world_size()}, {wrong.item()} wrong on all")
        dist.destroy_process_group()
        sys.exit(wrong.item() > 0)


def cpu_backend(group=None):
    return (group or dist.group.WORLD)._get_backend(torch.device("cpu"))


__all__ = ["Checks", "cpu_backend", "dist", "start", "torch", "zero_torch"]
