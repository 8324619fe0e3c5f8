"""The backend "zero" of torch.distributed: what torch calls, as operations of the library."""
import ctypes
import hashlib
import weakref
from ctypes import byref, c_void_p

import torch
from torch._C import _distributed_c10d as c10d

from .job import job
from .library import NUMBERS, REDUCTIONS, Message, Traffic, check, lib
from .work import Op, Work

BOOL = {"SUM": "MAX", "PRODUCT": "MIN"}  # of truth values: or, and
COMPLEX = ("SUM", "AVG")                 # work on pairs of numbers
groups = []                              # backends that are open, oldest first
closed = []                              # what others have moved


class Backend(c10d.Backend):
    """One process group. Its methods have the names and arguments of torch's C++ class."""

    def __init__(self, options, _):
        job.start(options.timeout.total_seconds())
        rank, size = options.group_rank, options.group_size
        ranks = list(options.global_ranks_in_group)  # empty: all
        if (rank, size) != (job.rank, job.size) and not ranks or size > job.size:
            raise RuntimeError(f"zero: rank {rank} of {size} is expected, but MPI has rank {job.rank} "
                               f"of {job.size}: start with mpirun -n {size} (or srun -n {size})")
        super().__init__(rank, size)
        self.comm, self.n_begun, self.together = c_void_p(), 0, None
        self.set_timeout(options.timeout)
        name = str(options.group_id).encode()
        if len(name) > 63:
            name = hashlib.blake2b(name, digest_size=16).hexdigest().encode()
        ranks = ranks or range(size)
        check(lib.zero_comm_open_ranks(job.demand(), size, (ctypes.c_int * size)(*ranks), name,
                                       byref(self.comm)))
        if not groups:
            job.closers.append(close_all)
        groups.append(self)

    # ---- the group ----

    def name(self):
        return "zero"

    getBackendName = name

    def set_timeout(self, timeout):
        """Limits waits where it is shorter than the watchdog's, which counts otherwise."""
        seconds = timeout.total_seconds()
        self.limit = seconds if 0 < seconds < job.limit else None

    def shutdown(self):
        if self in groups:
            self.moved = self.traffic()
            groups.remove(self)
            closed.append(self.moved)
            if not job.exit_code:
                lib.zero_comm_close(byref(self.comm))

    def abort(self):
        lib.zero_world_abort(job.exit_code or 1)

    def traffic(self):
        if self not in groups:
            return self.moved
        moved = Traffic()
        lib.zero_comm_traffic(self.comm, byref(moved))
        return moved

    def _set_sequence_number_for_group(self):
        pass

    def _get_sequence_number_for_group(self):
        return self.n_begun

    # ---- memory that neighbours read ----

    def share(self, size):
        check(lib.zero_comm_share(self.comm, size))
        self.shares = True

    shares = False

    def supports_tensor_alloc(self, device):
        return self.shares

    def allocate_tensor(self, size, *, dtype, device):
        """From the memory of share(), else, once that is used up, as usual."""
        size_bytes = size * dtype.itemsize
        address = lib.zero_comm_allocate(self.comm, size_bytes) if size else None
        if not address:
            return torch.empty(size, dtype=dtype)
        memory = (ctypes.c_char * size_bytes).from_address(address)
        weakref.finalize(memory, self._free, address)
        return torch.frombuffer(memory, dtype=dtype, count=size)

    def _free(self, address):
        if self.comm:
            lib.zero_comm_free(self.comm, address)

    # ---- one operation ----

    def _begin(self, function, *arguments):
        work = c_void_p()
        job.demand()
        check(function(self.comm, *arguments, byref(work)))
        self.n_begun += 1
        return work

    def _work(self, op, options=None):
        """What torch waits for; in a block of coalesced operations their end does."""
        timeout = options.timeout.total_seconds() if options else 0
        op.limit = timeout if timeout > 0 else self.limit
        if self.together is None:
            return Work(op)
        self.together.append(op)
        return Work(Op([], None, op.result))

    @property
    def supports_coalescing(self):
        return True

    def start_coalescing(self):
        self.together = []

    def end_coalescing(self):
        ops, self.together = self.together, None
        return self._work(_joined(ops))

    def _exchange(self, messages, tag=-1):
        """messages: (peer, receives, tensor). -1: an operation of the whole group."""
        array = (Message * len(messages))(*[(peer, receives, tag, t.data_ptr(), t.nbytes)
                                            for peer, receives, t in messages])
        return self._begin(lib.zero_exchange_begin, len(messages), array)

    # ---- reductions ----

    def _in_place(self, tensors, op, function, *root):
        ops, name = [], _name_of(op)
        for t in tensors:
            dense = _scaled(_dense(t), op, name)
            numbers, number, reduction = _as_numbers(dense, name)
            work = self._begin(function, reduction, number, numbers.numel(), *root, numbers.data_ptr())
            keeps = root and root[0] != self.rank()
            ops.append(Op([work], (t, numbers), [t], None if keeps else _copies([(t, dense)])))
        return ops[0] if len(ops) == 1 else _joined(ops)

    def allreduce(self, tensors, options=c10d.AllreduceOptions()):
        return self._work(self._in_place(tensors, options.reduceOp, lib.zero_all_reduce_begin), options)

    allreduce_coalesced = allreduce

    def reduce(self, tensors, options=c10d.ReduceOptions()):
        return self._work(self._in_place(tensors, options.reduceOp, lib.zero_reduce_begin,
                                         options.rootRank), options)

    def _reduce_scatter(self, output, tensor, op):
        source, name = _dense(tensor), _name_of(op)
        _demand_dense(output, "a reduce-scatter")
        if source.numel() != output.numel() * self.size():
            raise RuntimeError(f"zero: a reduce-scatter of {source.numel()} elements to "
                               f"{output.numel()} on each of {self.size()} ranks")
        source = _scaled(source, op, name)
        numbers, number, reduction = _as_numbers(source, name)
        piece = _as_numbers(output, name)[0]
        work = self._begin(lib.zero_reduce_scatter_begin, reduction, number, piece.numel(),
                           numbers.data_ptr(), piece.data_ptr())
        return Op([work], (output, source), [output])

    def reduce_scatter_single(self, output, tensor, options=c10d.ReduceScatterOptions()):
        return self._work(self._reduce_scatter(output, tensor, options.reduceOp), options)

    def reduce_scatter_single_coalesced(self, outputs, tensors, options=c10d.ReduceScatterOptions()):
        return self._work(_joined([self._reduce_scatter(o, t, options.reduceOp)
                                   for o, t in zip(outputs, tensors)]), options)

    def reduce_scatter(self, outputs, tensors, options=c10d.ReduceScatterOptions()):
        output, parts = outputs[0], tensors[0]
        if any(t.numel() != output.numel() for t in parts):
            raise RuntimeError("zero: a reduce-scatter of tensors of unequal sizes: pad them")
        whole = torch.cat([t.reshape(-1) for t in parts])
        dense = _dense(output)
        op = self._reduce_scatter(dense, whole, options.reduceOp)
        op.after, op.result = _copies([(output, dense)]), outputs
        return self._work(op, options)

    # ---- copies ----

    def broadcast(self, tensors, options=c10d.BroadcastOptions()):
        dense = _dense(tensors[0])
        work = self._begin(lib.zero_broadcast_begin, dense.nbytes, options.rootRank, dense.data_ptr())
        return self._work(Op([work], dense, tensors, _copies([(tensors[0], dense)])), options)

    def _all_gather(self, output, tensor):
        source = _dense(tensor)
        _demand_dense(output, "an all-gather")
        if output.nbytes != source.nbytes * self.size():
            raise RuntimeError(f"zero: an all-gather of {source.nbytes} bytes from each of "
                               f"{self.size()} ranks into {output.nbytes} bytes")
        work = self._begin(lib.zero_all_gather_begin, source.nbytes, source.data_ptr(),
                           output.data_ptr())
        return Op([work], (output, source), [output])

    def all_gather_single(self, output, tensor, options=c10d.AllgatherOptions()):
        return self._work(self._all_gather(output, tensor), options)

    def all_gather_single_coalesced(self, outputs, tensors, options=c10d.AllgatherOptions()):
        return self._work(_joined([self._all_gather(o, t) for o, t in zip(outputs, tensors)]), options)

    def allgather(self, outputs, tensors, options=c10d.AllgatherOptions()):
        return self._work(self._all_gather_list(outputs[0], tensors[0]), options)

    def allgather_coalesced(self, outputs, tensors, options=c10d.AllgatherOptions()):
        # one list for each rank, with one tensor for each input
        return self._work(_joined([self._all_gather_list(list(of_one), t)
                                   for of_one, t in zip(zip(*outputs), tensors)]), options)

    def _all_gather_list(self, outputs, tensor):
        if all(o.numel() == tensor.numel() for o in outputs):
            whole = torch.empty((self.size(), *tensor.shape), dtype=tensor.dtype)
            op = self._all_gather(whole, tensor)
            op.after = _copies(list(zip(outputs, whole)))
        else:
            op = self._all_to_all(outputs, [tensor] * self.size())
        op.result = outputs
        return op

    def gather(self, outputs, tensors, options=c10d.GatherOptions()):
        parts = outputs[0] if self.rank() == options.rootRank else []
        return self._work(self._collect(options.rootRank, parts, tensors[0]), options)

    def _collect(self, root, parts, tensor):
        source, dense = _dense(tensor), [_dense(t) for t in parts]
        messages = [(k, True, t) for k, t in enumerate(dense)] or [(root, False, source)]
        if parts:
            parts[root].copy_(tensor)
        work = self._exchange([m for m in messages if m[0] != self.rank()])
        return Op([work], (source, dense), parts, _copies(
            [(p, d) for k, (p, d) in enumerate(zip(parts, dense)) if k != root]))

    def scatter(self, outputs, tensors, options=c10d.ScatterOptions()):
        root, output = options.rootRank, outputs[0]
        dense = _dense(output)
        messages = [(root, True, dense)]
        if self.rank() == root:
            output.copy_(tensors[0][root])
            messages = [(k, False, _dense(t)) for k, t in enumerate(tensors[0]) if k != root]
        work = self._exchange(messages)
        after = _copies([(output, dense)]) if self.rank() != root else None
        return self._work(Op([work], messages, outputs, after), options)

    def _all_to_all(self, outputs, tensors):
        mine, others = self.rank(), [k for k in range(self.size()) if k != self.rank()]
        sent, received = [_dense(t) for t in tensors], [_dense(t) for t in outputs]
        received[mine].copy_(sent[mine])
        work = self._exchange([(k, False, sent[k]) for k in others] +
                              [(k, True, received[k]) for k in others])
        return Op([work], (sent, received), outputs, _copies(list(zip(outputs, received))))

    def alltoall(self, outputs, tensors, options=c10d.AllToAllOptions()):
        return self._work(self._all_to_all(outputs, tensors), options)

    def all_to_all_single(self, output, tensor, output_rows, rows, options=c10d.AllToAllOptions()):
        _demand_dense(output, "an all-to-all")
        op = self._all_to_all(self._rows(output, output_rows), self._rows(_dense(tensor), rows))
        op.result = [output]
        return self._work(op, options)

    def _rows(self, tensor, counts):
        """A tensor's parts for all ranks: of `counts` rows each, or equal ones."""
        n, rows = self.size(), tensor.shape[0] if tensor.dim() else 0
        counts = counts or [rows // n] * n
        if len(counts) != n or sum(counts) != rows:
            raise RuntimeError(f"zero: an all-to-all cannot cut {rows} rows into {list(counts)}")
        return tensor.split(counts)

    def send(self, tensors, peer, tag):
        dense = _dense(tensors[0])
        return self._work(Op([self._exchange([(peer, False, dense)], tag)], dense, tensors))

    def recv(self, tensors, peer, tag):
        dense = _dense(tensors[0])
        return self._work(Op([self._exchange([(peer, True, dense)], tag)], dense, tensors,
                             _copies([(tensors[0], dense)])))

    def recv_anysource(self, tensors, tag):
        raise RuntimeError("zero: a receive from any rank: name the sender (torch could not tell "
                           "which one it was)")

    def barrier(self, options=c10d.BarrierOptions()):
        return self._work(Op([self._begin(lib.zero_barrier_begin)], None), options)

    def monitored_barrier(self, options=c10d.BarrierOptions(), wait_all_ranks=False):
        self.barrier(options).wait()


def close_all():
    while groups:
        groups[-1].shutdown()


def _joined(ops):
    """Operations as one."""
    return Op([work for op in ops for work in op.works], [op.keep for op in ops],
              [t for op in ops for t in op.result],
              lambda: [op.after() for op in ops if op.after])


def _dense(tensor):
    """The tensor itself if its memory is contiguous, else a copy."""
    if tensor.device.type != "cpu":
        raise RuntimeError(f"zero: a tensor on {tensor.device}: this backend moves memory of CPUs")
    if tensor.layout is not torch.strided:
        raise RuntimeError(f"zero: a tensor of layout {tensor.layout}: make it dense first (to_dense)")
    return tensor.contiguous()


def _demand_dense(output, operation):
    if _dense(output) is not output:
        raise RuntimeError(f"zero: {operation} into a tensor that is not contiguous")


def _copies(pairs):
    """What copies results from the memory of operations to the tensors that asked for them."""
    pairs = [(tensor, dense) for tensor, dense in pairs if tensor is not dense]
    return (lambda: [tensor.copy_(dense.view_as(tensor)) for tensor, dense in pairs]) if pairs else None


def _name_of(op):
    """torch.distributed.ReduceOp.SUM -> "SUM" """
    return str(getattr(op, "op", op)).rsplit(".", 1)[-1]


def _scaled(tensor, op, name):
    return tensor * op.__getstate__()[1] if name == "PREMUL_SUM" else tensor


def _as_numbers(tensor, name):
    """A tensor of numbers that the library reduces, their type, and the reduction."""
    kind = str(tensor.dtype).removeprefix("torch.")
    if name == "PREMUL_SUM":
        name = "SUM"
    if name not in REDUCTIONS:
        raise RuntimeError(f"zero: there is no reduction {name}: expected one of {', '.join(REDUCTIONS)}")
    if tensor.is_complex():
        if name not in COMPLEX:
            raise RuntimeError(f"zero: {name} of {kind}: expected SUM or AVG")
        tensor = torch.view_as_real(tensor)
        kind = str(tensor.dtype).removeprefix("torch.")
    if kind not in NUMBERS:
        raise RuntimeError(f"zero: {name} of {kind}: expected {', '.join(NUMBERS)} or a complex type "
                           "(others are only copied)")
    is_float = tensor.is_floating_point()
    if name == "AVG" and not is_float:
        raise RuntimeError(f"zero: AVG of {kind}: expected a floating-point type")
    if name in ("BAND", "BOR", "BXOR") and is_float:
        raise RuntimeError(f"zero: {name} of {kind}: expected an integer type or bool")
    if kind == "bool":
        name = BOOL.get(name, name)
    return tensor, NUMBERS[kind], REDUCTIONS[name]
