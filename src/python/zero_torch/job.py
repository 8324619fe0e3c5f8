"""The job: MPI's start and end, this process's rank, and where its program is."""
import atexit
import ctypes
import os
import sys
import threading

from .library import Tell, check, lib

DEFAULT_LIMIT = 1800.0  # seconds: torch's own


class Job:
    """All ranks. There is one, `job`, which starts with the first group."""

    def __init__(self):
        self.world = None    # zero_comm *
        self.pid = None      # of the process that started MPI: not of its forked children
        self.exit_code = 0   # once something has failed, all ranks end with it
        self.closers = []    # called before MPI ends, last first

    def start(self, limit=None):
        """Starts MPI. If nothing moves for `limit` seconds (ZERO_TORCH_WATCHDOG overrides it), the
        job ends and says which rank is behind. Once per process; later calls do nothing."""
        if self.world:
            return
        limit = float(os.environ.get("ZERO_TORCH_WATCHDOG") or limit or DEFAULT_LIMIT)
        world = ctypes.c_void_p()
        check(lib.zero_world_open(limit, ctypes.byref(world)))
        self.world, self.pid, self.limit = world, os.getpid(), limit
        self.rank, self.size = lib.zero_comm_rank(world), lib.zero_comm_size(world)
        wanted = int(os.environ.get("WORLD_SIZE", "0"))
        if wanted > self.size == 1:
            lib.zero_world_close(ctypes.byref(world))
            self.world = None
            raise RuntimeError(f"zero: WORLD_SIZE is {wanted}, but MPI finds one rank: start with "
                               f"mpirun -n {wanted} (or srun), not with torchrun")
        self.tell = Tell(_tell)  # kept: the library calls it
        check(lib.zero_comm_on_question(world, self.tell, None))
        atexit.register(self.stop)
        self.shown, sys.excepthook = sys.excepthook, self.failed

    def failed(self, kind, error, trace):
        """An exception ends this rank: the others would wait for it, so they must end, too."""
        self.exit_code = self.exit_code or getattr(error, "exit_code", 1)
        self.shown(kind, error, trace)

    def stop(self):
        """Ends MPI: together with the other ranks, or all of them at once after a failure."""
        if not self.world or self.pid != os.getpid():
            return
        if self.exit_code:
            sys.stdout.flush()
            sys.stderr.flush()
            lib.zero_world_abort(self.exit_code)
        for close in reversed(self.closers):
            close()
        lib.zero_world_close(ctypes.byref(self.world))

    def demand(self):
        """The world, which only the process that started MPI may use."""
        if self.pid != os.getpid():
            raise RuntimeError(f"zero: this process was forked from rank {self.rank}: only that "
                               "one may communicate")
        return self.world


job = Job()


def where():
    """The line of the program in which the main thread is: "load_batch, train.py:57". That is the
    innermost one outside of Python's and other installed packages."""
    frame = innermost = sys._current_frames().get(threading.main_thread().ident)
    while frame and _is_installed(frame.f_code.co_filename):
        frame = frame.f_back
    if not (frame or innermost):
        return "the end of the program"
    code, line = (frame or innermost).f_code, (frame or innermost).f_lineno
    return f"{code.co_name}, {os.path.basename(code.co_filename)}:{line}"


def _is_installed(path):
    return path.startswith(("<frozen", os.path.dirname(os.__file__), os.path.dirname(__file__))) or \
        "site-packages" in path or "dist-packages" in path


def _tell(_, text, size):
    line = where().encode()[:size - 1] + b"\0"
    ctypes.memmove(text, line, len(line))
