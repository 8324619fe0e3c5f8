"""The store that torch shares between ranks: a TCPStore on rank 0, wherever others reach it."""
import array
import fcntl
import os
import socket
import struct
from ctypes import byref, c_void_p

import torch.distributed as dist

from .job import job
from .library import check, lib
from .work import Op

SIOCGIFADDR = 0x8915  # Linux: an interface's IPv4 address


def open_store(timeout):
    """Collective over all ranks."""
    store, hosts, port = None, [], 0
    if job.rank == 0:
        store = dist.TCPStore("0.0.0.0", 0, None, True, timeout=timeout, wait_for_workers=False)
        hosts, port = addresses(), store.port
    *hosts, port = from_rank_0(" ".join([*hosts, str(port)])).split()
    if job.rank == 0:
        return store
    for host in hosts:
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
        except OSError:
            continue
        return dist.TCPStore(host, int(port), None, False, timeout=timeout, wait_for_workers=False)
    raise RuntimeError(f"zero: rank {job.rank} reaches rank 0 at none of {', '.join(hosts)}: set "
                       "MASTER_ADDR to an address that it can reach")


def from_rank_0(text):
    """The text of rank 0, of at most 1 KiB. Collective."""
    memory, work = array.array("B", text.encode()[:1024].ljust(1024)), c_void_p()
    check(lib.zero_broadcast_begin(job.world, len(memory), 0, memory.buffer_info()[0], byref(work)))
    Op([work], memory).wait()
    return memory.tobytes().decode().strip()


def addresses():
    """This machine's IPv4 addresses, the loopback last. MASTER_ADDR, if set, is the only one."""
    if os.environ.get("MASTER_ADDR"):
        return [os.environ["MASTER_ADDR"]]
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(s, SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:
                continue  # it has none
            found.append(socket.inet_ntoa(answer[20:24]))
    return sorted(set(found), key=lambda a: a.startswith("127.")) or ["127.0.0.1"]
