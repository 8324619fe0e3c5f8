"""The backend "zero" of torch.distributed: what torch calls, as operations of the library."""
import ctypes
import hashlib
import weakref
from ctypes import byref, c_void_p

import torch
from torch._C import _distributed_c10d as c10d

from .job import job
from .library import NUMBERS, REDUCTIONS, Message, Traffic, check, lib
from .work import Op, Work, completer

groups, closed = [], []  # backends that are open, oldest first; the traffic of others


class Backend(c10d.Backend):
    """One process group. Its methods have the names and arguments of torch's C++ class."""

    supports_coalescing = property(lambda self: True)
    shares = False  # memory that neighbours read

    def __init__(self, options, _):
        job.start(options.timeout.total_seconds())
        rank, size = options.group_rank, options.group_size
        ranks = list(options.global_ranks_in_group)  # empty: all
        if size > job.size or not ranks and (rank, size) != (job.rank, job.size):
            raise RuntimeError(f"zero: rank {rank} of {size} is expected, but MPI has rank {job.rank} of {job.size}: "
                               f"start with mpirun -n {size} (or srun -n {size})")
        super().__init__(rank, size)
        self.comm, self.n_begun, self.together = c_void_p(), 0, None
        self.set_timeout(options.timeout)
        name = str(options.group_id).encode()
        if len(name) > 63:
            name = hashlib.blake2b(name, digest_size=16).hexdigest().encode()
        job.demand()
        check(lib.zero_comm_open_ranks(job.world, size, (ctypes.c_int * size)(*(ranks or range(size))), name,
                                       byref(self.comm)))
        if close_all not in job.closers:
            job.closers.append(close_all)
        groups.append(self)

    # ---- the group ----

    def name(self):
        return "zero"

    getBackendName = name

    def set_timeout(self, timeout):
        """Limits waits where it is shorter than the watchdog's limit."""
        self.limit = timeout.total_seconds() if 0 < timeout.total_seconds() < job.limit else None

    def shutdown(self):
        if self in groups:
            groups.remove(self)
            closed.append(self.traffic())
            if not job.exit_code:
                completer.finish()
                lib.zero_comm_close(byref(self.comm))

    def abort(self):
        lib.zero_world_abort(job.exit_code or 1)

    def traffic(self):
        moved = Traffic()
        lib.zero_comm_traffic(self.comm, byref(moved))
        return moved

    def _set_sequence_number_for_group(self):
        pass

    def _get_sequence_number_for_group(self):
        return self.n_begun

    def share(self, size):
        check(lib.zero_comm_share(self.comm, size))
        self.shares = True

    def supports_tensor_alloc(self, device):
        return self.shares

    def allocate_tensor(self, size, *, dtype, device):
        """From the memory of share(); once that is used up, as usual."""
        n_bytes = size * dtype.itemsize
        address = lib.zero_comm_allocate(self.comm, n_bytes) if size else None
        if not address:
            return torch.empty(size, dtype=dtype)
        memory = (ctypes.c_char * n_bytes).from_address(address)
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

    def _exchange(self, messages, tag=-1):
        """messages: (peer, receives, tensor). -1: an operation of the whole group."""
        rows = [(peer, receives, tag, t.data_ptr(), t.nbytes) for peer, receives, t in messages]
        return self._begin(lib.zero_exchange_begin, len(rows), (Message * len(rows))(*rows))

    def _work(self, op, options=None):
        """What torch waits for; in a block of coalesced operations their end does."""
        timeout = options.timeout.total_seconds() if options else 0
        op.limit = timeout if timeout > 0 else self.limit
        if self.together is None:
            return Work(op)
        self.together.append(op)
        return Work(Op([], None, op.result))

    def start_coalescing(self):
        self.together = []

    def end_coalescing(self):
        ops, self.together = self.together, None
        return self._work(_joined(ops))

    # ---- reductions ----

    def _in_place(self, tensors, op, function, *root):
        ops, keeps = [], root and root[0] != self.rank()
        for t in tensors:
            dense = _dense(t)
            source, numbers, *kind = _as_numbers(dense, op)
            work = self._begin(function, *kind, numbers.numel(), *root, numbers.data_ptr())
            ops.append(Op([work], (t, numbers), [t], None if keeps else _copies([(t, source)])))
        return _joined(ops)

    def allreduce(self, tensors, options):
        return self._work(self._in_place(tensors, options.reduceOp, lib.zero_all_reduce_begin), options)

    allreduce_coalesced = allreduce

    def reduce(self, tensors, options):
        return self._work(self._in_place(tensors, options.reduceOp, lib.zero_reduce_begin, options.rootRank), options)

    def _reduce_scatter(self, output, tensor, op):
        _demand_dense(output, "a reduce-scatter")
        if tensor.numel() != output.numel() * self.size():
            raise RuntimeError(f"zero: a reduce-scatter of {tensor.numel()} elements to {output.numel()} on each of "
                               f"{self.size()} ranks")
        source, numbers, *kind = _as_numbers(_dense(tensor), op)
        work = self._begin(lib.zero_reduce_scatter_begin, *kind, numbers.numel() // self.size(), numbers.data_ptr(),
                           output.data_ptr())
        return Op([work], (output, source), [output])

    def reduce_scatter_single(self, output, tensor, options):
        return self._work(self._reduce_scatter(output, tensor, options.reduceOp), options)

    def reduce_scatter_single_coalesced(self, outputs, tensors, options):
        return self._work(_joined([self._reduce_scatter(o, t, options.reduceOp)
                                   for o, t in zip(outputs, tensors)]), options)

    def reduce_scatter(self, outputs, tensors, options):
        dense, whole = _dense(outputs[0]), torch.cat([t.reshape(-1) for t in tensors[0]])
        op = self._reduce_scatter(dense, whole, options.reduceOp)
        op.after, op.result = _copies([(outputs[0], dense)]), outputs
        return self._work(op, options)

    # ---- copies ----

    def broadcast(self, tensors, options):
        dense = _dense(tensors[0])
        work = self._begin(lib.zero_broadcast_begin, dense.nbytes, options.rootRank, dense.data_ptr())
        return self._work(Op([work], dense, tensors, _copies([(tensors[0], dense)])), options)

    def _all_gather(self, output, tensor):
        source = _dense(tensor)
        _demand_dense(output, "an all-gather")
        if output.nbytes != source.nbytes * self.size():
            raise RuntimeError(f"zero: an all-gather of {source.nbytes} bytes from each of {self.size()} ranks into "
                               f"{output.nbytes} bytes")
        work = self._begin(lib.zero_all_gather_begin, source.nbytes, source.data_ptr(), output.data_ptr())
        return Op([work], (output, source), [output])

    def all_gather_single(self, output, tensor, options):
        return self._work(self._all_gather(output, tensor), options)

    def all_gather_single_coalesced(self, outputs, tensors, options):
        return self._work(_joined([self._all_gather(o, t) for o, t in zip(outputs, tensors)]), options)

    def _all_gather_list(self, outputs, tensor):
        if any(o.numel() != tensor.numel() for o in outputs):
            return self._all_to_all(outputs, [tensor] * self.size())
        whole = torch.empty((self.size(), *tensor.shape), dtype=tensor.dtype)
        op = self._all_gather(whole, tensor)
        op.after, op.result = _copies(zip(outputs, whole)), outputs
        return op

    def allgather(self, outputs, tensors, options):
        return self._work(self._all_gather_list(outputs[0], tensors[0]), options)

    def allgather_coalesced(self, outputs, tensors, options):  # outputs[rank][tensor]
        return self._work(_joined([self._all_gather_list(of_one, t)
                                   for of_one, t in zip(zip(*outputs), tensors)]), options)

    def gather(self, outputs, tensors, options):
        root, parts = options.rootRank, []
        if self.rank() == root:
            parts = [(k, t) for k, t in enumerate(outputs[0]) if k != root]
            outputs[0][root].copy_(tensors[0])
        dense = [(k, True, _dense(t)) for k, t in parts]
        messages = dense if self.rank() == root else [(root, False, _dense(tensors[0]))]
        after = _copies((t, d) for (_, t), (_, _, d) in zip(parts, dense))
        return self._work(Op([self._exchange(messages)], messages, outputs[0] if parts else [], after), options)

    def scatter(self, outputs, tensors, options):
        root, dense = options.rootRank, _dense(outputs[0])
        messages, after = [(root, True, dense)], _copies([(outputs[0], dense)])
        if self.rank() == root:
            outputs[0].copy_(tensors[0][root])
            messages, after = [(k, False, _dense(t)) for k, t in enumerate(tensors[0]) if k != root], None
        return self._work(Op([self._exchange(messages)], messages, outputs, after), options)

    def _all_to_all(self, outputs, tensors):
        mine, others = self.rank(), [k for k in range(self.size()) if k != self.rank()]
        sent, received = [_dense(t) for t in tensors], [_dense(t) for t in outputs]
        received[mine].copy_(sent[mine])
        work = self._exchange([(k, False, sent[k]) for k in others] + [(k, True, received[k]) for k in others])
        return Op([work], (sent, received), outputs, _copies(zip(outputs, received)))

    def alltoall(self, outputs, tensors, options):
        return self._work(self._all_to_all(outputs, tensors), options)

    def all_to_all_single(self, output, tensor, output_rows, rows, options):
        _demand_dense(output, "an all-to-all")
        op = self._all_to_all(self._cut(output, output_rows), self._cut(_dense(tensor), rows))
        op.result = [output]
        return self._work(op, options)

    def _cut(self, tensor, counts):
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
        work = self._exchange([(peer, True, dense)], tag)
        return self._work(Op([work], dense, tensors, _copies([(tensors[0], dense)])))

    def recv_anysource(self, tensors, tag):
        raise RuntimeError("zero: a receive from any rank: name the sender (torch could not tell which one it was)")

    def barrier(self, options):
        return self._work(Op([self._begin(lib.zero_barrier_begin)], None), options)

    def monitored_barrier(self, options, wait_all_ranks):
        self.barrier(options).wait()


def close_all():
    while groups:
        groups[-1].shutdown()


def _joined(ops):
    """Operations as one."""
    return ops[0] if len(ops) == 1 else Op(
        [work for op in ops for work in op.works], [op.keep for op in ops], [t for op in ops for t in op.result],
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


def _as_numbers(tensor, op):
    """-> the tensor to reduce, the same as numbers of the library, the reduction, and the type."""
    name = str(getattr(op, "op", op)).rsplit(".", 1)[-1]  # torch.distributed.ReduceOp.SUM -> SUM
    if name == "PREMUL_SUM":
        tensor, name = tensor * op.__getstate__()[1], "SUM"
    numbers = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    kind = str(numbers.dtype).removeprefix("torch.")
    allowed = [r for r in REDUCTIONS if r[0] != "B"] if numbers.is_floating_point() else \
        [r for r in REDUCTIONS if r != "AVG"]
    if tensor.is_complex():
        allowed = ["SUM", "AVG"]
    if kind not in NUMBERS:
        raise RuntimeError(f"zero: {name} of {kind}: expected {', '.join(NUMBERS)} or a complex type (others are only "
                           "copied)")
    if name not in allowed:
        raise RuntimeError(f"zero: {name} of {str(tensor.dtype)[6:]}: expected {', '.join(allowed)}")
    if kind == "bool":  # or, and
        name = {"SUM": "MAX", "PRODUCT": "MIN"}.get(name, name)
    return tensor, numbers, REDUCTIONS[name], NUMBERS[kind]
