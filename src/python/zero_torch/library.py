"""The C library (zero/collective.h) by ctypes: its functions, its errors, and where it lies."""
import ctypes
import os
from ctypes import POINTER, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p

from torch.distributed import DistBackendError

from .place import library as beside, version

REDUCTIONS = {"SUM": 0, "AVG": 1, "PRODUCT": 2, "MIN": 3, "MAX": 4, "BAND": 5, "BOR": 6, "BXOR": 7}
NUMBERS = {"float32": 0, "bfloat16": 1, "float16": 2, "float64": 3, "int8": 4, "uint8": 5,
           "int16": 6, "int32": 7, "int64": 8, "bool": 5}
KINDS = ("reduce_scatter", "all_gather", "reduce", "broadcast", "all_reduce", "exchange")


class Message(ctypes.Structure):
    """zero_message"""
    _fields_ = [("peer", c_int), ("receives", c_bool), ("tag", c_int), ("data", c_void_p),
                ("bytes", c_size_t)]


class Moved(ctypes.Structure):
    """Bytes and messages of one kind of operation, or a sum of several."""
    _fields_ = [(name, c_int64) for name in ("sent", "received", "messages_sent",
                                             "messages_received")]

    def plus(self, other, sign=1):
        return Moved(*(getattr(self, n) + sign * getattr(other, n) for n, _ in self._fields_))

    def __repr__(self):
        return f"sent {self.sent}, received {self.received} bytes"


class Traffic(ctypes.Structure):
    """zero_comm_bytes"""
    _fields_ = [(kind, Moved) for kind in KINDS]


Tell = ctypes.CFUNCTYPE(None, c_void_p, POINTER(ctypes.c_char), c_size_t)

_ANSWERS = {  # functions that return something other than a status, or take a type of their own
    "zero_last_error": (c_char_p, []),
    "zero_version": (c_char_p, []),
    "zero_exit_code": (c_int, [c_int]),
    "zero_comm_rank": (c_int, [c_void_p]),
    "zero_comm_size": (c_int, [c_void_p]),
    "zero_comm_allocate": (c_void_p, [c_void_p, c_size_t]),
    "zero_comm_free": (None, [c_void_p, c_void_p]),
    "zero_comm_traffic": (None, [c_void_p, POINTER(Traffic)]),
    "zero_world_close": (None, [POINTER(c_void_p)]),
    "zero_world_abort": (None, [c_int]),
    "zero_comm_close": (None, [POINTER(c_void_p)]),
    "zero_work_close": (None, [POINTER(c_void_p)]),
}
_WORK = POINTER(c_void_p)
_STATUSES = {  # functions that return a zero_status
    "zero_world_open": [c_double, POINTER(c_void_p)],
    "zero_comm_open_ranks": [c_void_p, c_int, POINTER(c_int), c_char_p, POINTER(c_void_p)],
    "zero_comm_on_question": [c_void_p, Tell, c_void_p],
    "zero_comm_share": [c_void_p, c_size_t],
    "zero_reduce_scatter_begin": [c_void_p, c_int, c_int, c_int64, c_void_p, c_void_p, _WORK],
    "zero_all_gather_begin": [c_void_p, c_size_t, c_void_p, c_void_p, _WORK],
    "zero_all_reduce_begin": [c_void_p, c_int, c_int, c_int64, c_void_p, _WORK],
    "zero_reduce_begin": [c_void_p, c_int, c_int, c_int64, c_int, c_void_p, _WORK],
    "zero_broadcast_begin": [c_void_p, c_size_t, c_int, c_void_p, _WORK],
    "zero_exchange_begin": [c_void_p, c_int, POINTER(Message), _WORK],
    "zero_barrier_begin": [c_void_p, _WORK],
    "zero_work_wait": [c_void_p, c_double, POINTER(c_bool)],
    "zero_work_wait_beside": [c_void_p, c_double, POINTER(c_bool)],
}


def _load():
    """The library that ZERO_TORCH_LIB names, else the one installed with this package, else the
    loader's. Its version must be the package's."""
    name = os.environ.get("ZERO_TORCH_LIB")
    if not name:
        name = os.path.join(os.path.dirname(os.path.abspath(__file__)), beside)
        if not os.path.exists(name):
            name = os.path.basename(beside)
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        raise ImportError(f"zero: cannot load {name}: {error}. Set ZERO_TORCH_LIB to the path of "
                          f"{os.path.basename(beside)}") from None
    signatures = {**_ANSWERS, **{function: (c_int, takes) for function, takes in _STATUSES.items()}}
    for function, (answer, takes) in signatures.items():
        getattr(library, function).restype = answer
        getattr(library, function).argtypes = takes
    found = library.zero_version().decode()
    if found != version:
        raise ImportError(f"zero: this package has version {version}, but {name} has {found}: "
                          "install both from one build")
    return library


lib = _load()


class ZeroError(DistBackendError):
    """What the library says. `exit_code`: what the program should end with."""

    def __init__(self, status):
        super().__init__("zero: " + lib.zero_last_error().decode())
        self.status, self.exit_code = status, lib.zero_exit_code(status)


def check(status):
    if status:
        raise ZeroError(status)
