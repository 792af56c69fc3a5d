"""NVML readings that may fail one by one: a failed reading is None, never 0 and never an exception."""

import logging
from functools import cache
from typing import Any

log = logging.getLogger(__name__)


@cache
def session() -> tuple[Any, Any] | None:
    """Return the NVML module and the handle of the GPU that CUDA uses, or None. The GPU is found by its PCI address,
    since CUDA and NVML number GPUs differently (``CUDA_VISIBLE_DEVICES``, fastest first). The session stays open until
    the process ends."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return pynvml, pynvml.nvmlDeviceGetHandleByPciBusId(pci_address())
    except Exception as error:  # no package, library, permission or GPU: NVML doesn't answer
        log.debug("NVML doesn't answer: %s", error)
        return None


def pci_address() -> str:
    """Return the PCI address of CUDA's first device, as NVML writes it."""
    from octopus.backends import cuda

    if why := cuda.missing():
        raise RuntimeError(why)
    driver = cuda.device.driver()
    _, device = driver.cuDeviceGet(0)
    status, address = driver.cuDeviceGetPCIBusId(13, device)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"cuDeviceGetPCIBusId answers {status.name}")
    return address.split(b"\0")[0].decode()


def read(function: str, *arguments: int | str) -> Any:
    """Call an NVML function on the device; text arguments name NVML constants. None when it fails."""
    opened = session()
    if opened is None:
        return None
    nvml, handle = opened
    try:
        given = [getattr(nvml, each) if isinstance(each, str) else each for each in arguments]
        return getattr(nvml, function)(handle, *given)
    except Exception as error:  # unsupported here, or unknown to this version: this field alone is missing
        log.debug("%s: %s", function, error)
        return None


def read_system(function: str) -> Any:
    """Call an NVML function that takes no device. None when it fails."""
    opened = session()
    if opened is None:
        return None
    try:
        return getattr(opened[0], function)()
    except Exception as error:
        log.debug("%s: %s", function, error)
        return None


def scaled(value: Any, factor: float) -> float | None:
    """Change the unit of a reading; a missing one stays missing."""
    return None if value is None else value * factor


def text(value: Any) -> str | None:
    """Return a reading as text; older bindings give bytes."""
    if value is None:
        return None
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
