"""Compile a kernel of Numba's kernel language for raw pointers, keep its PTX on disk, and load it.

Numba's own dispatcher unpacks every array argument at every launch; a kernel whose arguments are pointers and scalars
can be launched through `cuda.core` for a fraction of that (the study `stage_timing` measures both). The PTX is kept
rather than machine code: the driver turns it into code for its device and caches that itself, also after an upgrade.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from octopus.backends import cache
from octopus.backends.cuda.device import compute_capability, current
from octopus.backends.cuda.launch import TAIL


def load(name: str, build: Callable[[], tuple[Callable, tuple]], *sources: Path) -> Any:
    """The `cuda.core` kernel of that name for the current device, compiled unless the disk has it.

    Parameters
    ----------
    name : str
        Says all that distinguishes this kernel from others of the same sources (dtypes, channels, layout).
    build : callable
        Returns the Python function and its Numba argument types; called, and Numba imported, only when needed.
    *sources : Path
        Folders of kernels outside this package, for a function that is one of theirs.
    """
    from cuda.core import ObjectCode

    current()
    capability = compute_capability()
    file = f"cuda-{cache.kernel_digest('cuda', *sources)}/{name}-sm_{capability[0]}{capability[1]}.ptx"
    ptx = cache.load(file)
    if ptx is None:
        ptx = to_ptx(*build(), capability)
        cache.store(file, ptx)
    return ObjectCode.from_ptx(ptx.encode(), name=name).get_kernel(entry_name(ptx))


def to_ptx(function: Callable, argument_types: tuple, capability: tuple[int, int]) -> str:
    """PTX of a kernel for one compute capability.

    A function may say in `launch_bounds` how many threads its blocks have at most, and how many blocks a processor has
    to find registers for; and in `tail_bytes` how long a last argument is that Numba has no type for, an array by
    value, which `kernels.cuda.ptx` reads under the name `octopus_tail`.
    """
    from numba import cuda, types

    signature = types.void(*argument_types)
    ptx, _ = cuda.compile(function, signature, device=False, abi="numba", cc=capability, output="ptx", lineinfo=False)
    bounds = getattr(function, "launch_bounds", None)
    if bounds is not None:  # not by Numba: LLVM then works out in loops what it had kept in registers before them
        ptx = ptx.replace("\n)\n{", f"\n)\n.maxntid {bounds[0]}, 1, 1\n.minnctapersm {bounds[1]}\n{{", 1)
    if tail := getattr(function, "tail_bytes", 0):
        ptx = ptx.replace("\n)", f",\n\t.param .align 16 .b8 {TAIL}[{tail}]\n)", 1)
    return ptx


def entry_name(ptx: str) -> str:
    """Name of the only kernel in a PTX text."""
    names = re.findall(r"\.visible \.entry (\S+?)\(", ptx)
    if len(names) != 1:
        raise RuntimeError(f"one kernel was expected in the PTX, found {len(names)}")
    return names[0]
