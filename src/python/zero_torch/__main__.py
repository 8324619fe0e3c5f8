"""mpirun -n 4 python -m zero_torch train.py ...: runs a script that knows nothing of MPI.

It finds in the environment what torchrun would give it: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR,
MASTER_PORT. init_process_group("zero") then needs no more. With ZERO_TORCH_AS=gloo (or another name) groups of that
backend are of this one. "-m package" in the place of train.py runs a module.
"""
import os
import runpy
import socket
import sys

import torch.distributed as dist

import zero_torch  # noqa: F401
from zero_torch.job import addresses, job


def main(arguments):
    if not arguments:
        sys.exit("zero_torch: expected a script: mpirun -n 4 python -m zero_torch train.py ...")
    job.start()
    prepare_environment()
    name = os.environ.get("ZERO_TORCH_AS", "zero").lower()
    dist.Backend._plugins[name.upper()] = dist.Backend._plugins["ZERO"]
    # Else torch's C++ takes the object for one of its own class.
    dist.Backend.backend_type_map[name] = dist.ProcessGroup.BackendType.CUSTOM
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
    def first(names, otherwise):
        return next((os.environ[n] for n in names if n in os.environ), otherwise)

    with socket.socket() as s:
        s.bind(("", 0))
        host, port = job.tell_all(f"{next(iter(addresses()))} {s.getsockname()[1]}").split()
    given = {"RANK": job.rank, "WORLD_SIZE": job.size, "MASTER_ADDR": host, "MASTER_PORT": port,
             "LOCAL_RANK": first(("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"), job.rank),
             "LOCAL_WORLD_SIZE": first(("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"), job.size)}
    for name, value in given.items():
        os.environ.setdefault(name, str(value))


if __name__ == "__main__":
    main(sys.argv[1:])
