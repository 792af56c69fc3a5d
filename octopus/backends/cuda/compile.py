"""Load a kernel, from the wheel, from the disk, or compiled and kept there; and what the driver needs to launch it.

Numba's own dispatcher unpacks every array argument at every launch; a kernel whose arguments are pointers and scalars
can be launched through the driver for a fraction of that (the study `stage_timing` measures both). PTX is kept rather
than machine code: the driver turns it into code for its device and caches that itself, also after an upgrade.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from octopus.backends import cache as files
from octopus.backends import shipped
from octopus.backends.cuda.device import COMPILER, INSTALL, compiler_problem, compute_capability, current, driver
from octopus.backends.cuda.memory import check
from octopus.errors import DeviceError

UNASKED_SHARED_BYTES = 48 << 10  # of shared memory, which any kernel may have
VERSION = 12000  # of the driver's interface whose functions these are: later ones take other arguments
FUNCTIONS = ("cuLaunchKernel", "cuCtxGetDevice", "cuStreamIsCapturing", "cuMemcpyHtoDAsync")
Build = Callable[[], Callable[..., Any]]
_listed: dict[str, Build] | None = None


def load(name: str, build: Build, *sources: Path) -> Any:
    """The `cuda.core` kernel of a name, which says all that distinguishes it, for the current device. `build` makes the
    kernel, see `to_ptx`; it is called, and the compiler imported, only when needed. `sources` are folders of kernels
    outside this package, if it is one of theirs. Raises `DeviceError` where there is no compiler."""
    if _listed is not None:
        _listed[name] = build
        return None
    from cuda.core import ObjectCode

    current()
    capability = compute_capability()
    ptx = None if sources else shipped.ptx(name, capability)
    if ptx is None:
        file = f"cuda-{files.kernel_digest('cuda', *sources)}/{shipped.key(name, capability)}.ptx"
        ptx = files.load(file)
    if ptx is None:
        if why := compiler_problem():
            raise DeviceError(f"the kernel {name} is not among those that the wheel carries, and {why}; {COMPILER}")
        files.announce()
        ptx = to_ptx(build(), capability)
        files.store(file, ptx)
    try:
        return ObjectCode.from_ptx(ptx.encode(), name=name).get_kernel(entry_name(ptx))
    except Exception as error:  # a class of cuda.core's
        if "UNSUPPORTED_PTX_VERSION" not in str(error):
            raise
        made = re.search(r"\.version (\S+)", ptx)
        raise DeviceError(
            f"the driver is too old for PTX {made and made[1]} of the kernel {name}; update it, or take packages of an "
            f"older CUDA: {INSTALL}"
        ) from error


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
    """PTX of a kernel for one compute capability; its attribute `arguments`, of `kernels.arguments`, names them all."""
    from octopus.backends.cuda import language  # which imports the compiler

    names, kinds = kernel.arguments  # type: ignore[attr-defined]
    own = kernel.__code__.co_varnames[: kernel.__code__.co_argcount]
    if own != names:
        raise TypeError(f"{kernel.__name__} has the parameters {own}, its arguments are {names}")
    return language.to_ptx(kernel, kinds, capability)


def entry_name(ptx: str) -> str:
    (name,) = re.findall(r"\.visible \.entry (\S+?)\(", ptx)
    return str(name)


@cache
def functions() -> tuple[int, ...]:
    """Addresses of the driver's functions of `FUNCTIONS`, as `kernels.launches` wants them."""
    api = driver()
    flags = api.CUdriverProcAddress_flags.CU_GET_PROC_ADDRESS_LEGACY_STREAM
    return tuple(int(check(api.cuGetProcAddress(name.encode(), VERSION, flags))[0]) for name in FUNCTIONS)


def function_of(kernel: Any, shared: int = 0) -> int:
    """The driver's handle of a kernel from `load` in the current context; a launch may take `shared` bytes."""
    api = driver()
    function = check(api.cuKernelGetFunction(api.CUkernel(int(kernel.handle))))[0]
    if shared > UNASKED_SHARED_BYTES:
        name = api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        check(api.cuFuncSetAttribute(function, name, shared))
    return int(function)
