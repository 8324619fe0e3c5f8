"""mpirun -n 4 python -m zero_torch train.py ...: runs a script that knows nothing of MPI.

It finds what torchrun would give it in the environment: RANK, WORLD_SIZE, LOCAL_RANK,
LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT. init_process_group("zero") then needs no more. With
ZERO_TORCH_AS=gloo (or another name) groups of that backend are of this one. "-m package" in the
place of train.py runs a module.
"""
import os
import runpy
import socket
import sys

import torch.distributed as dist

import zero_torch
from zero_torch.job import job
from zero_torch.store import addresses, from_rank_0

LOCAL = {"LOCAL_RANK": ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"),
         "LOCAL_WORLD_SIZE": ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                              "SLURM_NTASKS_PER_NODE")}


def main(arguments):
    if not arguments:
        sys.exit("zero_torch: expected a script: mpirun -n 4 python -m zero_torch train.py ...")
    job.start()
    prepare_environment()
    name = os.environ.get("ZERO_TORCH_AS", "")
    if name:
        dist.Backend._plugins[name.upper()] = dist.Backend._plugins["ZERO"]
    try:
        if arguments[0] == "-m":
            sys.argv = arguments[1:]
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv = arguments
            sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as leaving:
        # The others would wait for a rank that left early.
        if leaving.code not in (None, 0):
            job.exit_code = leaving.code if isinstance(leaving.code, int) else 1
        raise


def prepare_environment():
    """Variables that are set already stay, such as MASTER_ADDR on a machine with several networks."""
    with socket.socket() as s:
        s.bind(("", 0))
        host, port = from_rank_0(f"{addresses()[0]} {s.getsockname()[1]}").split()
    given = {"RANK": job.rank, "WORLD_SIZE": job.size, "MASTER_ADDR": host, "MASTER_PORT": port}
    for name, sources in LOCAL.items():
        found = next((os.environ[s] for s in sources if s in os.environ), None)
        given[name] = found or (job.rank if name == "LOCAL_RANK" else job.size)
    for name, value in given.items():
        os.environ.setdefault(name, str(value))


if __name__ == "__main__":
    main(sys.argv[1:])
