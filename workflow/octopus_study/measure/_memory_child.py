"""What the fresh process of :func:`octopus_study.measure.measure_memory` does; before its first reading it has imported
next to nothing, so that what the method imports counts as the method's."""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

STATUS = Path("/proc/self/status")
CLEAR_REFS = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # see proc(5)
_SAMPLE_S = 0.001


class Meter(Protocol):
    """Reads the memory that is held, and how much more a run needs."""

    def held(self) -> int | None:
        """Return the bytes held now; None when it can't be read."""
        ...

    def growth(self, run: Callable[[], object]) -> tuple[int | None, object]:
        """Run and return how many bytes more were held, and what the run returned."""
        ...


class ResidentMemory:
    """Resident memory of this process; a run's growth is that of its peak."""

    def held(self) -> int | None:
        """Return the resident bytes after the garbage is gone."""
        _settle()
        return _resident()

    def growth(self, run: Callable[[], object]) -> tuple[int | None, object]:
        """Return the peak during the run over the state before it."""
        before = self.held()
        if _reset_peak():
            kept = run()
            return _status("VmHWM") - before, kept
        with _Sampler() as sampler:
            kept = run()
        return sampler.peak - before, kept


class DeviceMemory:
    """Memory of the GPU, as free memory lost; other processes on the GPU disturb it."""

    def held(self) -> int | None:
        """Return the bytes in use according to NVML, which needs no context; None where it doesn't answer."""
        from octopus_study.measure import _nvml

        memory = _nvml.read("nvmlDeviceGetMemoryInfo")
        return None if memory is None else int(memory.used)

    def growth(self, run: Callable[[], object]) -> tuple[int | None, object]:
        """Return the free memory that the run took and still holds."""
        before = _free_device_memory()
        kept = run()
        return before - _free_device_memory(), kept


METERS: dict[str, Callable[[], Meter]] = {"rss": ResidentMemory, "cuda": DeviceMemory}


class _Sampler:
    """Watches the resident memory from a thread, where the kernel can't reset the peak."""

    def __enter__(self) -> _Sampler:
        self.peak, self._stop = _resident(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.peak = max(self.peak, _resident())

    def _watch(self) -> None:
        while not self._stop.wait(_SAMPLE_S):
            self.peak = max(self.peak, _resident())


def measure(target: str, kwargs: dict[str, Any], meter: str) -> dict[str, int | None]:
    """Return the four lines of a target."""
    gauge = METERS[meter]()
    at_start = gauge.held()
    module, function = target.split(":")
    probe = getattr(import_module(module), function)(**kwargs)
    ready = gauge.held()
    delta, kept = gauge.growth(probe.run)
    peak = probe.allocator_peak() if probe.allocator_peak else None
    del kept
    return {
        "payload": int(probe.payload),
        "allocator_peak": None if peak is None else int(peak),
        "device_delta": delta,
        "fixed": None if at_start is None or ready is None else ready - at_start,
    }


def _free_device_memory() -> int:
    from octopus_study.measure.cuda import free_memory  # only here: needs a GPU

    return free_memory()


def _settle() -> None:
    """Return freed memory to the system, so that it isn't taken for memory in use."""
    gc.collect()
    with suppress(OSError, AttributeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


def _resident() -> int:
    if STATUS.is_file():
        return _status("VmRSS")
    import psutil

    return int(psutil.Process().memory_info().rss)


def _status(field: str) -> int:
    line = next(line for line in STATUS.read_text(encoding="ascii").splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def _reset_peak() -> bool:
    """Ask the kernel to forget the peak; False where it can't."""
    try:
        CLEAR_REFS.write_text(_RESET_PEAK, encoding="ascii")
    except OSError:
        return False
    return True
