"""As much of torch as zero_torch needs to be imported."""
import os

__version__ = os.environ["TORCH_VERSION"]
