"""The CUDA device in use: is there one, what is it, and which stream does a caller mean."""

from __future__ import annotations

import os
import threading
from functools import cache, lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from octopus.errors import DeviceError, InputError, shown_type

if TYPE_CHECKING:
    from cuda.core import Device, Stream

LEGACY = 1  # cudaStreamLegacy, which DLPack also uses for the default stream
PACKAGES = ("cuda.core", "cuda.bindings")
INSTALL = (
    'pip install "octopus-ragged[cuda13]" (driver 580 or newer) or "octopus-ragged[cuda12]" '
    '(older drivers, Jetson); in a clone of the repository pip install -e ".[cuda13,compile]"'
)
COMPILERS = {"numba": "numba_cuda", "mlir": "numba_cuda_mlir"}  # by what `OCTOPUS_COMPILER` may say
COMPILER = 'pip install "octopus-ragged[compile]" (CUDA 13) or "octopus-ragged[compile12]" brings one'


@cache
def missing() -> str | None:
    """Why no GPU can be used here, or None if one can; found once per process."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return "CUDA_VISIBLE_DEVICES is empty"
    absent = [name for name in PACKAGES if not _installed(name)]
    if absent:
        return f"the packages {', '.join(absent)} are not installed; {INSTALL}"
    return _driver_problem()


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def compiler_name() -> str:
    """Which compiler GPU kernels have: "numba", or what `OCTOPUS_COMPILER` says."""
    name = os.environ.get("OCTOPUS_COMPILER", "numba")
    if name not in COMPILERS:
        raise InputError(f"OCTOPUS_COMPILER is {name!r}; set it to one of {', '.join(COMPILERS)}, or not at all")
    return name


def compiler_problem() -> str | None:
    """Why no GPU kernel can be compiled here, or None if one can."""
    if not _installed(COMPILERS[compiler_name()]):
        return "no compiler is installed"
    if compiler_name() == "mlir":
        return None
    numpy = version("numpy")
    if tuple(map(int, numpy.split(".")[:2])) >= (2, 5):
        return f'numba-cuda can\'t be imported beside NumPy {numpy}: pip install "numpy<2.5"'
    return None


def outdated() -> str | None:
    """Why kernels that are compiled here can't be loaded: the driver is of an older CUDA than the packages."""
    offered, needed = int(driver().cuDriverGetVersion()[1]), version("cuda-bindings")
    if offered // 1000 >= int(needed.split(".")[0]):
        return None
    return f"it offers CUDA {offered // 1000}.{offered % 1000 // 10}, and cuda-bindings {needed} is of a newer one"


def _driver_problem() -> str | None:
    try:
        from cuda.bindings import driver

        status, count = (*driver.cuInit(0), *driver.cuDeviceGetCount())[0], driver.cuDeviceGetCount()[1]
        chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
        note = "" if chosen is None else f" (CUDA_VISIBLE_DEVICES={chosen})"
        if status != driver.CUresult.CUDA_SUCCESS:
            return f"the NVIDIA driver answers {status.name}{note}"
        return None if count else f"the NVIDIA driver reports no device{note}"
    except (ImportError, RuntimeError, OSError) as error:
        return f"the NVIDIA driver can't be loaded ({error})"


def require() -> None:
    why = missing()
    if why is not None:
        raise DeviceError(f"device='cuda' was asked for, but no GPU is usable: {why}")


@cache
def driver() -> Any:
    from cuda.bindings import driver

    return driver


_thread = threading.local()


def current() -> Device:
    """The device in use, made current in this thread (which asks once): that of the current context, else device 0."""
    device = getattr(_thread, "device", None)
    if device is None:
        from cuda.core import Device

        require()
        device = _thread.device = Device()
        device.set_current()
    return device


def compute_capability() -> tuple[int, int]:
    major, minor = current().compute_capability
    return int(major), int(minor)


def stream_of(stream: Any = None) -> Stream:
    """The `cuda.core` stream that a caller means: one of cuda.core, torch, CuPy or Numba, a handle, or None. None is
    the legacy default stream, which orders itself with blocking streams."""
    if isinstance(stream, _stream_type()):
        return stream
    if type(stream) is int:
        return _wrap(stream, None)
    return _wrap(_handle(stream), stream)


@cache
def _stream_type() -> type:
    from cuda.core import Stream

    return Stream


def is_capturing(stream: Stream) -> bool:
    """Whether work on the stream goes into a graph instead of being done; never that on the legacy default stream."""
    if int(stream.handle) in (0, LEGACY):
        return False
    status, state = driver().cuStreamIsCapturing(stream.handle)
    return not status and bool(state)


def _handle(stream: Any) -> int:
    if stream is None:
        return 0
    if isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        return int((protocol() if callable(protocol) else protocol)[1])
    for name in ("cuda_stream", "ptr"):  # torch, CuPy
        if isinstance(getattr(stream, name, None), int):
            return getattr(stream, name)
    value = getattr(getattr(stream, "handle", None), "value", stream)  # Numba
    if value is None or isinstance(value, int):
        return value or 0
    raise InputError(f"stream is {shown_type(stream)}; pass a CUDA stream, its handle as an int, or None")


@lru_cache(maxsize=64)
def _wrap(handle: int, owner: Any) -> Stream:
    """The stream of a handle; keeps `owner` alive, since memory may still be given back on its stream."""
    from cuda.core import Stream

    return current().default_stream if handle in (0, LEGACY) else Stream.from_handle(handle)
