# scripts.sh: how programs start: scripts that know nothing of MPI, and those that do; what is refused.
# shellcheck source=tests/python/common.sh
. "$(dirname "$0")/common.sh"
demand_torch

cat >plain.py <<'END'
import os, sys, torch, torch.distributed as dist
dist.init_process_group(sys.argv[1])
t = torch.ones(3)
dist.all_reduce(t)
kind = type(dist.group.WORLD._get_backend(torch.device("cpu"))).__module__
rank, size, local = (os.environ[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
os.write(1, f"{rank} {size} {local} {t.tolist()} {kind} {__name__}\n".encode())  # a line at once
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 3))
model(t).sum().backward()
gloo = dist.new_group(backend="gloo")  # through the store
dist.all_reduce(t, group=gloo)
if len(sys.argv) > 2:
    sys.exit(int(sys.argv[2]) if dist.get_rank() == 1 else 0)
END
cp plain.py module_of_mine.py

# ---- unchanged scripts ----

runs 3 "$python" -m zero_torch plain.py zero
for rank in 0 1 2; do
    says "$rank 3 $rank \\[3.0, 3.0, 3.0\\] zero_torch.backend __main__" out
done
runs 2 env ZERO_TORCH_AS=gloo "$python" -m zero_torch plain.py gloo
says '2.0, 2.0, 2.0. zero_torch.backend' out
runs 2 "$python" -m zero_torch -m module_of_mine zero
fails 1 1 "$python" -m zero_torch
says 'expected a script' err
fails 7 2 "$python" -m zero_torch plain.py zero 7 # one rank leaves early

# ---- the entry point: no import of ours ----

cat >entry.py <<'END'
import sys, torch, torch.distributed as dist
assert "zero_torch" not in sys.modules and dist.is_backend_available("zero")
dist.init_process_group("zero", store=dist.HashStore(), rank=0, world_size=1)
t = torch.ones(2)
dist.all_reduce(t)
print(type(dist.group.WORLD._get_backend(torch.device("cpu"))).__module__)
END
runs 1 "$python" entry.py
says zero_torch.backend out

# ---- a wheel, made and installed without a network ----

if "$python" -m pip --version >/dev/null 2>&1; then
    runs 1 "$python" -m pip install --quiet --no-index --no-deps --target site "$package"
    runs 1 env PYTHONPATH="$PWD/site" "$python" entry.py
    says zero_torch.backend out
fi

# ---- refusals ----

cat >import.py <<'END'
import sys, torch, torch.distributed as dist, zero_torch
dist.init_process_group("zero", **eval(sys.argv[1]))
END
fails 1 1 env WORLD_SIZE=4 "$python" import.py '{"init_method": "zero://"}'
says 'WORLD_SIZE is 4, but MPI finds one rank: start with mpirun -n 4 \(or srun\), not with torchrun' err
fails 1 2 "$python" import.py '{"store": dist.HashStore(), "rank": 0, "world_size": 1}'
says 'rank 0 of 1 is expected, but MPI has rank [01] of 2: start with mpirun -n 1' err
sed "s/^version = .*/version = '0.0.0'/" "$package/zero_torch/place.py" >place.py
library=$(sed -n 's/^library = "\(.*\)".*/\1/p' place.py)
cp -r "$package/zero_torch" . && cp place.py zero_torch/
fails 1 1 env PYTHONPATH="$PWD" ZERO_TORCH_LIB="$package/zero_torch/$library" "$python" -c 'import zero_torch'
says 'this package has version 0.0.0, but .* has [0-9.]*: install both from one build' err
rm -r zero_torch
fails 1 1 env ZERO_TORCH_LIB=/nowhere.so "$python" -c 'import zero_torch'
says 'cannot load /nowhere.so: .*Set ZERO_TORCH_LIB' err
exit $failed
