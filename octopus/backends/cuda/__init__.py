"""CUDA backend: device, streams, memory, compiled kernels and their launch.

Importing it is cheap and never fails; `missing()` says why a GPU can't be used.
"""

from octopus.backends.cuda.device import compute_capability, missing, require, stream_of

__all__ = ["compute_capability", "missing", "require", "stream_of"]
