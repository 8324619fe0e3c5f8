"""Every operation, in every type, with sizes around the number of ranks, in place, on the group of all
ranks and on that of all but the first, in reverse order."""
from common import Checks, dist, start, torch, zero_torch

rank, size = start()
checks = Checks()
FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
OTHERS = (torch.complex64, torch.float8_e4m3fn)
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 4e-3, torch.float64: 1e-12}
REDUCTIONS = ("SUM", "AVG", "MIN", "MAX", "PRODUCT", "BAND", "BOR", "BXOR")


def numbers(seed, count, dtype):
    g = torch.Generator().manual_seed(seed + 1000 * count)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(count, generator=g).to(dtype)
    return torch.randint(0, 2 if dtype is torch.bool else 7, (count,), generator=g).to(dtype)


def reduced(rows, name):
    """The reduction of all ranks' numbers [N, count], exact or in fp64."""
    dtype = rows.dtype
    wide = rows.double() if dtype.is_floating_point else rows.long()
    fold = {"SUM": torch.add, "AVG": torch.add, "PRODUCT": torch.mul, "MIN": torch.minimum,
            "MAX": torch.maximum, "BAND": torch.bitwise_and, "BOR": torch.bitwise_or,
            "BXOR": torch.bitwise_xor}[name]
    result = wide[0]
    for row in wide[1:]:
        result = fold(result, row)
    result = result / len(rows) if name == "AVG" else result
    return result > 0 if dtype is torch.bool else result.to(dtype)


def is_defined(dtype, name):
    if name == "AVG":
        return dtype.is_floating_point
    return name[0] != "B" or not dtype.is_floating_point


def reductions(group, me, n):
    for dtype in FLOATS + INTEGERS:
        for name in REDUCTIONS:
            op = getattr(dist.ReduceOp, name)
            if not is_defined(dtype, name):
                checks.raises("expected", lambda: dist.all_reduce(numbers(0, 3, dtype), op, group=group))
                continue
            tolerance = TOLERANCE.get(dtype, 0.0) if name not in ("MIN", "MAX") else 0.0
            for count in sorted({0, 1, n - 1, n, n + 1, 1000}):
                what = f"{name} of {count * n} {dtype}"
                rows = torch.stack([numbers(k, count * n, dtype) for k in range(n)])
                whole = rows[me].clone()
                dist.all_reduce(whole, op, group=group)
                checks.equal(f"all-reduce, {what}", whole, reduced(rows, name), tolerance)
                piece = torch.empty(count, dtype=dtype)
                dist.reduce_scatter_single(piece, rows[me].clone(), op, group=group)
                checks.equal(f"reduce-scatter's bits, {what}", piece, whole[count * me:count * (me + 1)])
                source = rows[me].clone()
                dist.reduce_scatter_single(source[count * me:count * (me + 1)], source, op, group=group)
                checks.equal(f"in place, {what}", source[count * me:count * (me + 1)], piece)
                root = count % n
                source = rows[me].clone()
                dist.reduce(source, op=op, group=group, group_dst=root)
                checks.equal(f"reduce's bits, {what}", source, whole if me == root else rows[me])


def odd_counts(group, me, n):
    """Counts that no number of ranks divides."""
    for count in (1, 5, 7, 1001, (1 << 20) + 1):
        rows = torch.stack([numbers(k, count, torch.float32) for k in range(n)])
        whole = rows[me].clone()
        dist.all_reduce(whole, group=group)
        checks.equal(f"all-reduce of {count}", whole, reduced(rows, "SUM"), 1e-5)
        root = rows[me].clone()
        dist.reduce(root, group=group, group_dst=0)
        if me == 0:
            checks.equal(f"reduce's bits of {count}", root, whole)


def many_shapes(group, me, n):
    """More than the library keeps step lists of; then the oldest ones that it still has."""
    for count in [*range(1, 81), *range(17, 81)]:
        t = torch.full((count * n,), me + 1.0)
        dist.all_reduce(t, group=group)
        checks.equal("many shapes", t, torch.full((count * n,), n * (n + 1) / 2))


def copies(group, me, n):
    for dtype in FLOATS + INTEGERS + OTHERS:
        for count in (0, 1, 3, 64, 1001):
            what = f"of {count} {dtype}"
            # bits, since torch cannot compare numbers of 8 bits
            rows = [numbers(k, count, dtype).view(torch.uint8) for k in range(n)]
            mine = rows[me].view(dtype)
            whole = torch.empty(n * count, dtype=dtype)
            dist.all_gather_single(whole, mine, group=group)
            checks.equal(f"all-gather {what}", whole.view(torch.uint8), torch.cat(rows))
            whole = torch.zeros(n * count, dtype=torch.uint8).to(dtype)
            whole[count * me:count * (me + 1)] = mine
            dist.all_gather_single(whole, whole[count * me:count * (me + 1)], group=group)
            checks.equal(f"all-gather in place {what}", whole.view(torch.uint8), torch.cat(rows))
            parts = [torch.empty(count, dtype=dtype) for _ in range(n)]
            dist.all_gather(parts, mine, group=group)
            checks.equal(f"all-gather of a list {what}", torch.cat(parts).view(torch.uint8), torch.cat(rows))
            for root in range(n):
                t = mine.clone()
                dist.broadcast(t, group=group, group_src=root)
                checks.equal(f"broadcast {what}", t.view(torch.uint8), rows[root])
                parts = [torch.empty(count, dtype=dtype) for _ in range(n)] if me == root else None
                dist.gather(mine, parts, group=group, group_dst=root)
                if me == root:
                    checks.equal(f"gather {what}", torch.cat(parts).view(torch.uint8), torch.cat(rows))
                t = torch.empty(count, dtype=dtype)
                dist.scatter(t, [r.view(dtype) for r in rows] if me == root else None, group=group,
                             group_src=root)
                checks.equal(f"scatter {what}", t.view(torch.uint8), rows[me])
    sizes = [k + 1 for k in range(n)]
    parts = [torch.empty(s) for s in sizes]
    dist.all_gather(parts, torch.full((sizes[me],), float(me)), group=group)
    checks.equal("all-gather of unequal sizes", torch.cat(parts),
                 torch.cat([torch.full((s,), float(k)) for k, s in enumerate(sizes)]))


def all_to_all(group, me, n):
    table = torch.arange(n * n, dtype=torch.float32).view(n, n)  # [sender, receiver]
    out = torch.empty(n)
    dist.all_to_all_single(out, table[me].clone(), group=group)
    checks.equal("all-to-all", out, table[:, me].contiguous())
    rows = [(me + k) % 3 for k in range(n)]  # sender me sends these many rows to k
    out = torch.empty(sum(rows), 2)
    dist.all_to_all_single(out, torch.full((sum(rows), 2), float(me)), rows, rows, group=group)
    checks.equal("all-to-all of unequal parts", out[:, 0],
                 torch.cat([torch.full((rows[k],), float(k)) for k in range(n)]))
    parts = [torch.empty(k + 1) for k in range(n)]
    dist.all_to_all(parts, [torch.full((me + 1,), float(me)) for k in range(n)], group=group)
    checks.equal("all-to-all of a list", torch.cat(parts),
                 torch.cat([torch.full((k + 1,), float(k)) for k in range(n)]))


def messages(group, me, n):
    right, left = (me + 1) % n, (me - 1) % n
    if n == 1:
        return
    for count in (0, 5, 100_000):
        got = torch.empty(count)
        works = [dist.isend(torch.full((count,), float(me)), group=group, group_dst=right, tag=7),
                 dist.irecv(got, group=group, group_src=left, tag=7)]
        for work in works:
            work.wait()
        checks.equal("send and receive", got, torch.full((count,), float(left)))
    got = torch.empty(4, 4)[:, ::2]
    works = dist.batch_isend_irecv([
        dist.P2POp(dist.isend, torch.full((4, 2), float(me)), group=group, group_peer=right),
        dist.P2POp(dist.irecv, got, group=group, group_peer=left)])
    for work in works:
        work.wait()
    checks.equal("batch_isend_irecv", got, torch.full((4, 2), float(left)))


def shapes(group, me, n):
    total = n * (n + 1) / 2
    t = torch.full((4, 4), me + 1.0)[:, ::2]
    dist.all_reduce(t, group=group)
    checks.equal("not contiguous", t, torch.full((4, 2), total))
    t = torch.full((3, 4), me + 1.0).t()
    dist.broadcast(t, group=group, group_src=0)
    checks.equal("transposed", t, torch.full((4, 3), 1.0))
    t = torch.full((3,), complex(me + 1, 1))
    dist.all_reduce(t, group=group)
    checks.true(bool((t == complex(total, n)).all()), "sum of complex numbers", t)
    t = torch.full((3,), me + 1.0)
    dist.all_reduce(t, dist._make_nccl_premul_sum(0.5), group=group)
    checks.equal("scaled sum", t, torch.full((3,), total / 2))


def asynchronous(group, me, n):
    works = [(k, t := torch.full((100 + k,), k + 1.0), dist.all_reduce(t, group=group, async_op=True))
             for k in range(30)]
    for k, t, work in reversed(works):
        work.wait()
        checks.equal("30 in flight, waited for in reverse", t, torch.full((100 + k,), n * (k + 1.0)))
    future = dist.all_reduce(torch.ones(5), group=group, async_op=True).get_future()
    twice = future.then(lambda f: f.value()[0] * 2).wait()
    checks.equal("future", twice, torch.full((5,), 2.0 * n))
    work = dist.all_reduce(torch.ones(5), group=group, async_op=True)
    work.wait()
    checks.true(work.get_future().done(), "a future after wait() is done")
    forgotten = torch.ones(7)
    dist.all_reduce(forgotten, group=group, async_op=True)  # nobody waits
    dist.barrier(group=group)
    with dist._coalescing_manager(group=group, device=torch.device("cpu")):
        a, b = torch.ones(3), torch.ones(5)
        dist.all_reduce(a, group=group)
        dist.all_reduce(b, group=group)
    checks.equal("coalesced", torch.cat([a, b]), torch.full((8,), float(n)))


def objects(group, me, n):
    box = [{"a": 5}] if me == 0 else [None]
    dist.broadcast_object_list(box, group=group, group_src=0)
    checks.true(box == [{"a": 5}], "broadcast_object_list", box)
    box = [None] * n
    dist.all_gather_object(box, "x" * (me * 7 + 1), group=group)
    checks.true(box == ["x" * (k * 7 + 1) for k in range(n)], "all_gather_object", box)
    box = [None] * n if me == 0 else None
    dist.gather_object((me, "y" * me), box, group=group, group_dst=0)
    checks.true(me or box == [(k, "y" * k) for k in range(n)], "gather_object", box)
    box = [None]
    dist.scatter_object_list(box, list(range(n)) if me == 0 else None, group=group, group_src=0)
    checks.true(box == [me], "scatter_object_list", box)


def refused(group, me, n):
    checks.raises("all-gather of 8 bytes", lambda: dist.all_gather_single(torch.empty(n * 2 + 1), torch.empty(2), group=group))
    checks.raises("not contiguous", lambda: dist.all_gather_single(torch.empty(2, 2 * n).t(), torch.empty(2, 2), group=group))
    checks.raises("expected float32", lambda: dist.all_reduce(torch.empty(3).to(torch.float8_e4m3fn), group=group))
    checks.raises("name the sender", lambda: dist.recv(torch.empty(3), group=group))
    checks.raises("parse", lambda: dist.all_reduce(torch.eye(3).to_sparse(), group=group))
    checks.raises("cannot cut 3 rows", lambda: dist.all_to_all_single(torch.empty(n), torch.empty(3), None, [4] * n, group=group))


def everything(group, me, n):
    for part in (reductions, odd_counts, many_shapes, copies, all_to_all, messages, shapes, asynchronous, objects, refused):
        part(group, me, n)


everything(None, rank, size)
backwards = dist.new_group(list(range(size - 1, 0, -1)) or [0], sort_ranks=False)
if rank >= 1 or size == 1:
    everything(backwards, dist.get_rank(backwards), dist.get_world_size(backwards))
checks.true(zero_torch.ledger(dist.group.WORLD)["all_reduce"].sent > 0 or size == 1, "the ledger counts")
checks.end("operations")
