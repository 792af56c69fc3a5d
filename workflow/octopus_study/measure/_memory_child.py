"""What the fresh process of :func:`octopus_study.measure.measure_memory` does; before its first reading it has imported
next to nothing, so that what the method imports counts as the method's."""

import ctypes
import gc
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

STATUS = Path("/proc/self/status")
CLEAR_REFS = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # see proc(5)

Growth = tuple[int | str, object]  # bytes more than before a run, or why they can't be read, and what it returned


def measure(target: str, kwargs: dict[str, Any], meter: str) -> dict[str, int | str | None]:
    """Return the four lines of a target."""
    held, growth = METERS[meter]
    at_start = held()
    module, function = target.split(":")
    probe = getattr(import_module(module), function)(**kwargs)
    ready = held()
    delta, kept = growth(probe.run)
    peak = probe.allocator_peak() if probe.allocator_peak else None
    del kept
    return {
        "payload": int(probe.payload),
        "allocator_peak": None if peak is None else int(peak),
        "device_delta": delta,
        "fixed": None if at_start is None or ready is None else ready - at_start,
    }


def _resident() -> int:
    """Resident bytes after freed memory is returned to the system, so that it isn't taken for memory in use."""
    gc.collect()
    with suppress(OSError, AttributeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)
    return _status("VmRSS")


def _resident_growth(run: Callable[[], object]) -> Growth:
    """The peak during the run over the state before it; some kernels can't forget the peak before."""
    before = _resident()
    try:
        CLEAR_REFS.write_text(_RESET_PEAK, encoding="ascii")
    except OSError as error:
        why = error.strerror or str(error)
        return f"the kernel was asked to forget the peak of resident memory (clear_refs): {why}", run()
    kept = run()
    return _status("VmHWM") - before, kept


def _status(field: str) -> int:
    line = next(line for line in STATUS.read_text(encoding="ascii").splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def _used_on_device() -> int | None:
    """Bytes in use according to NVML, which needs no context, by any process; None where it doesn't answer."""
    from octopus_study.measure import _nvml

    memory = _nvml.read("nvmlDeviceGetMemoryInfo")
    return None if memory is None else int(memory.used)


def _device_growth(run: Callable[[], object]) -> Growth:
    """The free memory that the run took and still holds."""
    from octopus_study.measure.cuda import free_memory  # only here: needs a GPU

    before = free_memory()
    kept = run()
    return before - free_memory(), kept


METERS: dict[str, tuple[Callable[[], int | None], Callable[[Callable[[], object]], Growth]]] = {
    "rss": (_resident, _resident_growth),
    "cuda": (_used_on_device, _device_growth),
}
