"""The C library (zero/collective.h) by ctypes: its functions, its errors, and where it lies."""
import ctypes
import os
from ctypes import POINTER, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p

from torch.distributed import DistBackendError

from .place import library as beside, version

REDUCTIONS = {"SUM": 0, "AVG": 1, "PRODUCT": 2, "MIN": 3, "MAX": 4, "BAND": 5, "BOR": 6, "BXOR": 7}
NUMBERS = {"float32": 0, "bfloat16": 1, "float16": 2, "float64": 3, "int8": 4, "uint8": 5,
           "int16": 6, "int32": 7, "int64": 8, "bool": 5}


class Message(ctypes.Structure):
    """zero_message"""
    _fields_ = [("peer", c_int), ("receives", c_bool), ("tag", c_int), ("data", c_void_p), ("bytes", c_size_t)]


class Moved(ctypes.Structure):
    """zero_moved: bytes and messages of one kind of operation."""
    _fields_ = [(name, c_int64) for name in ("sent", "received", "messages", "messages_received")]

    def plus(self, other, sign=1):
        return Moved(*(getattr(self, n) + sign * getattr(other, n) for n, _ in self._fields_))

    def __repr__(self):
        return f"sent {self.sent}, received {self.received} bytes"


class Traffic(ctypes.Structure):
    """zero_comm_bytes"""
    _fields_ = [(kind, Moved) for kind in ("reduce_scatter", "all_gather", "reduce", "broadcast", "all_reduce",
                                           "exchange")]


Tell = ctypes.CFUNCTYPE(None, c_void_p, POINTER(ctypes.c_char), c_size_t)

# A letter for each argument, after what the function returns: a status, text, an int, a pointer, nothing.
LETTERS = {"t": c_char_p, "i": c_int, "d": c_double, "n": c_int64, "z": c_size_t, "p": c_void_p, "P": POINTER(c_void_p),
           "R": POINTER(c_int), "B": POINTER(c_bool), "M": POINTER(Message), "T": POINTER(Traffic), "F": Tell,
           "s": c_int, "-": None}
FUNCTIONS = """
    zero_last_error t                   zero_version t                  zero_exit_code ii
    zero_world_open sdP                 zero_world_close -P             zero_world_abort -i
    zero_comm_open_ranks spiRtP         zero_comm_close -P              zero_comm_rank ip
    zero_comm_size ip                   zero_comm_traffic -pT           zero_comm_on_question spFp
    zero_comm_share spz                 zero_comm_allocate ppz          zero_comm_free -pp
    zero_reduce_scatter_begin spiinppP  zero_all_gather_begin spzppP    zero_all_reduce_begin spiinpP
    zero_reduce_begin spiinipP          zero_broadcast_begin spzipP     zero_exchange_begin spiMP
    zero_barrier_begin spP              zero_work_wait spdB             zero_work_wait_beside spdB
    zero_work_close -P                  zero_world_set_watchdog spd""".split()


def _load():
    """The library that ZERO_TORCH_LIB names, else the one installed with this package, else the loader's. Its
    version must be the package's."""
    path = os.environ.get("ZERO_TORCH_LIB") or os.path.join(os.path.dirname(os.path.abspath(__file__)), beside)
    if not os.path.exists(path) and not os.environ.get("ZERO_TORCH_LIB"):
        path = os.path.basename(beside)
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"zero: cannot load {path}: {error}. Set ZERO_TORCH_LIB to the path of "
                          f"{os.path.basename(beside)}") from None
    for name, letters in zip(FUNCTIONS[::2], FUNCTIONS[1::2]):
        function = getattr(library, name)
        function.restype, *function.argtypes = [LETTERS[letter] for letter in letters]
    found = library.zero_version().decode()
    if found != version:
        raise ImportError(f"zero: this package has version {version}, but {path} has {found}: install both from "
                          "one build")
    return library


lib = _load()


class ZeroError(DistBackendError):
    """What the library says. `exit_code`: what the program should end with."""

    def __init__(self, status):
        super().__init__("zero: " + lib.zero_last_error().decode())
        self.exit_code = lib.zero_exit_code(status)


def check(status):
    if status:
        raise ZeroError(status)
