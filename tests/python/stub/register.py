"""Imports the package with the torch of this folder, and prints what it registers."""
import zero_torch  # noqa: F401
import torch.distributed as dist

print(f"backend {' '.join(dist.registered)}, rendezvous {' '.join(dist.rendezvous.schemes)}")
