"""What the driver needs to launch a kernel: its handle, and the addresses of the functions that do it."""

from __future__ import annotations

from functools import cache
from typing import Any

from octopus.backends.cuda.device import driver
from octopus.backends.cuda.memory import check

UNASKED_SHARED_BYTES = 48 << 10  # of shared memory, which any kernel may have
TAIL = "octopus_tail"  # in PTX, the name of an argument that is an array by value
VERSION = 12000  # of the driver's interface whose functions these are: later ones take other arguments
FUNCTIONS = ("cuLaunchKernel", "cuCtxGetDevice", "cuStreamIsCapturing", "cuMemcpyHtoDAsync")


@cache
def functions() -> tuple[int, ...]:
    """Addresses of the driver's functions of `FUNCTIONS`, as `kernels.launches` wants them."""
    api = driver()
    flags = api.CUdriverProcAddress_flags.CU_GET_PROC_ADDRESS_LEGACY_STREAM
    return tuple(int(check(api.cuGetProcAddress(name.encode(), VERSION, flags))[0]) for name in FUNCTIONS)


def function_of(kernel: Any, shared: int = 0) -> int:
    """The driver's handle of a kernel of `cuda.core` in the current context, quicker to launch than the kernel itself.

    It may take `shared` bytes of shared memory at a launch.
    """
    api = driver()
    function = check(api.cuKernelGetFunction(api.CUkernel(int(kernel.handle))))[0]
    if shared > UNASKED_SHARED_BYTES:
        name = api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        check(api.cuFuncSetAttribute(function, name, shared))
    return int(function)
