"""Operations in flight: who waits for them, and what they keep alive."""
import queue
import threading
from ctypes import byref, c_bool

import torch
import torch.distributed as dist

from .job import job
from .library import ZeroError, check, lib

SLICE = 0.25  # seconds after which a wait looks for signals such as Ctrl-C
_lost = []    # operations that never ended: their buffers still belong to MPI


class Op:
    """Operations in flight that end together. `keep` holds their memory until then, `result` is what a future
    tells, `after` runs once they have ended (copies into tensors that were not contiguous). Without a `limit` only
    the watchdog ends a wait."""

    def __init__(self, works, keep, result=(), after=None):
        self.works, self.keep, self.result, self.after = works, keep, result, after
        self.limit, self.error, self.lock = None, None, threading.Lock()

    def wait(self, limit=None, function=lib.zero_work_wait):
        """Until all have ended. Any thread; a second one waits for the first."""
        with self.lock:
            limit, waited, done = limit or self.limit, 0.0, c_bool()
            while self.works and not self.error:
                try:
                    check(function(self.works[-1], SLICE, byref(done)))
                except ZeroError as error:  # from now on the job can only end
                    self.error, job.exit_code = error, error.exit_code
                if done.value:
                    lib.zero_work_close(byref(self.works.pop()))
                    continue
                waited += SLICE
                if limit and waited >= limit:
                    self.error = dist.DistBackendError(f"zero: an operation has not ended within {limit:g} s")
            if self.error:
                _lost.append(self)
                raise self.error
            if self.after:
                self.after()
            self.keep = self.after = None


class Work(dist.Work):
    """What torch holds of an Op. The caller's wait drives it; a future, and an Op that nobody waits for, are left to
    the completer."""

    def __init__(self, op):
        super().__init__()
        self.op, self.is_left = op, False

    def wait(self, timeout=None):
        seconds = timeout.total_seconds() if timeout else 0
        self.op.wait(seconds if seconds > 0 else None)
        return True

    def get_future(self):
        future = torch.futures.Future()
        if self.op.works:
            self.is_left = True
            completer.put(self.op, future)
        else:
            future.set_result(self.op.result)
        return future

    def __del__(self):
        if self.op.works and not self.op.error and not self.is_left:
            completer.put(self.op, None)


class Completer:
    """A thread that waits for operations in turn, beside one that computes, and tells futures."""

    def __init__(self):
        self.queue, self.thread = queue.SimpleQueue(), None

    def put(self, op, future):
        if not self.thread:
            self.thread = threading.Thread(target=self.run, name="zero-completer", daemon=True)
            self.thread.start()
            job.closers.append(self.close)
        self.queue.put((op, future))

    def finish(self):
        """Waits until it is done with what it was given so far: a group may be closed then, whose operations it
        would else look at."""
        if self.thread and self.thread is not threading.current_thread():
            done = threading.Event()
            self.queue.put((None, done))
            done.wait()

    def run(self):
        for op, future in iter(self.queue.get, None):
            if op is None:
                future.set()
                continue
            try:
                op.wait(function=lib.zero_work_wait_beside)
            except Exception:
                pass  # told below, or by the next operation
            if future and op.error:
                future.set_exception(op.error)
            elif future:
                future.set_result(op.result)

    def close(self):
        self.queue.put(None)
        self.thread.join()
        self.thread = None


completer = Completer()
