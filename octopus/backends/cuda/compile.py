"""Load a kernel: from the wheel, from the disk, or compiled and kept there.

Numba's own dispatcher unpacks every array argument at every launch; a kernel whose arguments are pointers and scalars
can be launched through `cuda.core` for a fraction of that (the study `stage_timing` measures both). PTX is kept rather
than machine code: the driver turns it into code for its device and caches that itself, also after an upgrade.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from octopus.backends import cache, shipped
from octopus.backends.cuda.device import COMPILER, compiler_problem, compute_capability, current
from octopus.errors import DeviceError

Build = Callable[[], Callable[..., Any]]
_listed: dict[str, Build] | None = None


def load(name: str, build: Build, *sources: Path) -> Any:
    """The `cuda.core` kernel of that name for the current device.

    Parameters
    ----------
    name : str
        Says all that distinguishes this kernel from others of the same sources (dtypes, channels, layout).
    build : callable
        Returns the kernel, see `to_ptx`; called, and the compiler imported, only when needed.
    *sources : Path
        Folders of kernels outside this package, for a function that is one of theirs.

    Raises
    ------
    DeviceError
        If the kernel must be compiled, but no compiler is installed.
    """
    if _listed is not None:
        _listed[name] = build
        return None
    from cuda.core import ObjectCode

    current()
    capability = compute_capability()
    ptx = None if sources else shipped.ptx(name, capability)
    if ptx is None:
        file = f"cuda-{cache.kernel_digest('cuda', *sources)}/{shipped.key(name, capability)}.ptx"
        ptx = cache.load(file)
    if ptx is None:
        if why := compiler_problem():
            raise DeviceError(f"the kernel {name} is not among those that the wheel carries, and {why}; {COMPILER}")
        ptx = to_ptx(build(), capability)
        cache.store(file, ptx)
    return ObjectCode.from_ptx(ptx.encode(), name=name).get_kernel(entry_name(ptx))


@contextmanager
def listed() -> Iterator[dict[str, Build]]:
    """What is asked of `load` meanwhile, by name; nothing is loaded. For making a wheel."""
    global _listed
    _listed = {}
    try:
        yield _listed
    finally:
        _listed = None


def to_ptx(kernel: Callable[..., Any], capability: tuple[int, int]) -> str:
    """PTX of a kernel for one compute capability; its attribute `arguments` is of `kernels.arguments`.

    Raises
    ------
    TypeError
        For a kernel whose parameters are not these arguments.
    """
    from octopus.backends.cuda import language  # which imports the compiler

    names, kinds = kernel.arguments  # type: ignore[attr-defined]
    own = kernel.__code__.co_varnames[: kernel.__code__.co_argcount]
    if own != names:
        raise TypeError(f"{kernel.__name__} has the parameters {own}, its arguments are {names}")
    return language.to_ptx(kernel, kinds, capability)


def entry_name(ptx: str) -> str:
    """Name of the only kernel in a PTX text."""
    names = re.findall(r"\.visible \.entry (\S+?)\(", ptx)
    if len(names) != 1:
        raise RuntimeError(f"one kernel was expected in the PTX, found {len(names)}")
    return names[0]
