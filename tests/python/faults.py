"""The last rank does something wrong between a reduce-scatter and the next one: faults.py WHAT [SECONDS]."""
import datetime
import os
import sys
import time

from common import dist, start, torch

what, *limit = sys.argv[1:]
rank, size = start(**({"timeout": datetime.timedelta(seconds=int(limit[0]))} if limit else {}))
out, whole = torch.empty(1000), torch.ones(1000 * size)


def load_batch():
    time.sleep(600)


def wrong():
    if what == "operation":
        dist.all_reduce(torch.ones(4096))
    elif what == "size":
        dist.reduce_scatter_single(torch.empty(500), torch.ones(500 * size))
    elif what == "type":
        dist.reduce_scatter_single(out.bfloat16(), whole.bfloat16())
    elif what == "asleep":
        load_batch()
    elif what == "raise":
        raise ValueError("bad batch on this rank")
    elif what == "kill":
        os.kill(os.getpid(), 9)
    elif what == "exit":
        sys.exit(0)
    elif what == "timeout":
        time.sleep(8)


dist.reduce_scatter_single(out, whole)
dist.barrier()
if rank == size - 1 and what != "skip":
    wrong()
if what != "skip" or rank != size - 1:
    dist.all_reduce(torch.ones(10))
if what == "timeout":
    dist.all_reduce(torch.ones(10))
dist.reduce_scatter_single(out, whole)
dist.all_gather_single(whole, out)
print(f"rank {rank} went through", flush=True)
dist.barrier()
dist.destroy_process_group()
