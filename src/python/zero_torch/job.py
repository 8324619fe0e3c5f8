"""The job: MPI's start and end, this process's rank, where its program is, and the store for torch."""
import array
import atexit
import ctypes
import fcntl
import os
import socket
import struct
import sys
import threading

import torch.distributed as dist

from .library import Tell, check, lib


class Job:
    """All ranks. There is one, `job`, which starts with the first group."""

    def __init__(self):
        self.world = self.pid = None  # zero_comm *; of the process that started MPI, not of its children
        self.exit_code = 0            # once something has failed, all ranks end with it
        self.closers = []             # called before MPI ends, last first

    def start(self, limit=None):
        """Starts MPI, once per process. If nothing moves for `limit` seconds, the first that are given, the job ends
        and says which rank is behind. ZERO_TORCH_WATCHDOG overrides it."""
        limit = float(os.environ.get("ZERO_TORCH_WATCHDOG") or limit or 0)
        if self.world:
            if limit and not self.limit:
                check(lib.zero_world_set_watchdog(self.world, limit))
                self.limit = limit
            return
        world = ctypes.c_void_p()
        check(lib.zero_world_open(limit or 1800.0, ctypes.byref(world)))
        self.world, self.pid, self.limit = world, os.getpid(), limit
        self.rank, self.size = lib.zero_comm_rank(world), lib.zero_comm_size(world)
        self.tell = Tell(_tell)  # kept: the library calls it
        check(lib.zero_comm_on_question(world, self.tell, None))
        atexit.register(self.stop)
        self.shown, sys.excepthook = sys.excepthook, self.failed
        wanted = int(os.environ.get("WORLD_SIZE", "0"))
        if wanted > self.size == 1:
            raise RuntimeError(f"zero: WORLD_SIZE is {wanted}, but MPI finds one rank: start with mpirun -n {wanted} "
                               "(or srun), not with torchrun")

    def failed(self, kind, error, trace):
        """An exception ends this rank: the others would wait for it, so they must end, too."""
        self.exit_code = self.exit_code or getattr(error, "exit_code", 1)
        self.shown(kind, error, trace)

    def stop(self):
        """Ends MPI: together with the other ranks, or all of them at once after a failure."""
        if self.pid != os.getpid():
            return
        if self.exit_code:
            sys.stdout.flush()
            sys.stderr.flush()
            lib.zero_world_abort(self.exit_code)
        for close in reversed(self.closers):
            close()
        lib.zero_world_close(ctypes.byref(self.world))

    def demand(self):
        """Only the process that started MPI may communicate."""
        if self.pid != os.getpid():
            raise RuntimeError(f"zero: this process was forked from rank {self.rank}: only that one may communicate")

    def tell_all(self, text):
        """The text of rank 0, of at most 1 KiB. Collective."""
        memory, work, done = array.array("B", text.encode()[:1024].ljust(1024)), ctypes.c_void_p(), ctypes.c_bool()
        check(lib.zero_broadcast_begin(self.world, 1024, 0, memory.buffer_info()[0], ctypes.byref(work)))
        check(lib.zero_work_wait(work, 0.0, ctypes.byref(done)))
        lib.zero_work_close(ctypes.byref(work))
        return memory.tobytes().decode().strip()


job = Job()


def where():
    """The line of the program in which the main thread is, such as "load_batch, train.py:57": the innermost one
    outside of Python's own and installed packages."""
    frame = innermost = sys._current_frames().get(threading.main_thread().ident)
    while frame and any(part in frame.f_code.co_filename for part in _INSTALLED):
        frame = frame.f_back
    if not innermost:
        return "the end of the program"
    frame = frame or innermost
    return f"{frame.f_code.co_name}, {os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


_INSTALLED = ("<frozen", os.path.dirname(os.__file__), os.path.dirname(__file__), "site-packages", "dist-packages")


def _tell(_, text, size):
    line = where().encode()[:size - 1] + b"\0"
    ctypes.memmove(text, line, len(line))


def open_store(timeout):
    """A TCPStore on rank 0, at the first of its addresses that a rank reaches. Collective."""
    options, store, told = {"timeout": timeout, "wait_for_workers": False}, None, ""
    if job.rank == 0:
        store = dist.TCPStore("0.0.0.0", 0, None, True, **options)
        told = " ".join([*addresses(), str(store.port)])
    *hosts, port = job.tell_all(told).split()
    for host in hosts if job.rank else []:
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
        except OSError:
            continue
        return dist.TCPStore(host, int(port), None, False, **options)
    if not store:
        raise RuntimeError(f"zero: rank {job.rank} reaches rank 0 at none of {', '.join(hosts)}: set MASTER_ADDR to an "
                           "address that it can reach")
    return store


def addresses():
    """This machine's IPv4 addresses, the loopback last. MASTER_ADDR, if set, is the only one."""
    found = {os.environ.get("MASTER_ADDR")}
    if found != {None}:
        return found
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(s, 0x8915, struct.pack("256s", name.encode()[:15]))  # SIOCGIFADDR
                found.add(socket.inet_ntoa(answer[20:24]))
            except OSError:
                pass  # it has none
    return sorted(found - {None}, key=lambda a: (a.startswith("127."), a)) or ["127.0.0.1"]
