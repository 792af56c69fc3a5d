"""Memory in four lines, never in one: payload, allocator peak, growth on the device, and the fixed part.

Each method is measured in a fresh Python process, since neither a heap nor a CUDA context returns to what it
was. A *target*, named ``"module:function"``, is called there with keyword arguments and returns a
:class:`MemoryProbe`.

* `payload`: bytes of inputs and outputs, computed from their shapes; exact.
* `allocator_peak`: what the method's own allocator says it held at most, where it has one.
* `device_delta`: how much more memory the device held for the run than before it. On a CPU this is the
  growth of the peak resident memory over the state after imports and compilation, so it also holds
  temporaries; the kernel tells it to a few hundred kB. On CUDA it is the loss of free memory with everything
  that the run returned still alive, after deferred frees are done.
* `fixed`: what imports, compiled code and the CUDA context take before any work.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np

from octopus.errors import InputError, OctopusError
from octopus_study.errors import MeasureError
from octopus_study.measure.rows import Case, Row, unavailable
from octopus_study.measure.worker import Worker, WorkerError

Meter = Literal["rss", "cuda"]
_MEASURE = "octopus_study.measure._memory_child:measure"


@dataclass(frozen=True)
class MemoryProbe:
    """What a target hands to the measuring process. The target itself imports, makes the context and compiles (by one
    small run), but holds no working memory: all of that counts as fixed."""

    payload: int  # Bytes, from :func:`payload`
    # Allocates inputs and outputs, does the work, waits for it, and returns what must stay alive
    run: Callable[[], object]
    # Called after `run`; bytes that the method's own allocator held at most
    allocator_peak: Callable[[], int] | None = None


class MemoryLines(NamedTuple):
    """Four numbers in bytes; None where there is nothing that could tell, or a text that says why."""

    payload: int
    allocator_peak: int | None
    device_delta: int | str
    fixed: int | None


_WHY_MISSING = {
    "allocator_peak": "the method has no allocator of its own",
    "fixed": "the memory before the context can't be read",
}


def payload(*items: Any) -> int:
    """Return the bytes of arrays, or of (shape, dtype) pairs: ``payload(frame, ((1000, 3, 224, 224), "float32"))``."""
    return sum(_bytes(item) for item in items)


def measure_memory(
    target: str, *, kwargs: Mapping[str, Any] | None = None, meter: Meter = "rss", timeout: float = 300.0
) -> MemoryLines:
    """Measure one method, ``"module:function"`` that returns a :class:`MemoryProbe`, in a fresh Python process by a
    meter: ``rss``, its resident memory, or ``cuda``, the GPU's free memory. `MeasureError` says its last words where it
    failed or took longer than `timeout` seconds."""
    if target.count(":") != 1 or meter not in ("rss", "cuda"):
        raise InputError(f"Expected module:function and the meter rss or cuda, found {target!r} and {meter!r}.")
    try:
        with Worker("its process") as worker:
            lines = worker.ask(_MEASURE, target, dict(kwargs or {}), meter, seconds=timeout)
    except OctopusError as error:
        what = f"The memory of {target} was not measured: " if isinstance(error, WorkerError) else ""
        raise MeasureError(f"{what}{error}") from error
    return MemoryLines(**lines)


def memory_rows(
    case: Case,
    method: str,
    target: str,
    *,
    kwargs: Mapping[str, Any] | None = None,
    meter: Meter = "rss",
    timeout: float = 300.0,
) -> list[Row]:
    """Measure one method and return its four rows (layer ``memory``, quantities ``memory_…``, unit bytes). A process
    that fails gives four ``unavailable`` rows."""
    names = [f"memory_{name}" for name in MemoryLines._fields]
    try:
        lines = measure_memory(target, kwargs=kwargs, meter=meter, timeout=timeout)
    except MeasureError as error:
        return [unavailable(case, method, "memory", name, "bytes", str(error)) for name in names]
    return [
        unavailable(case, method, "memory", name, "bytes", value or _WHY_MISSING[field])
        if value is None or isinstance(value, str)
        else case.row(method, "memory", name, "bytes", value)
        for name, field, value in zip(names, MemoryLines._fields, lines, strict=True)
    ]


def _bytes(item: Any) -> int:
    if isinstance(item, tuple) and len(item) == 2:
        shape, dtype = item
        return prod(shape) * np.dtype(dtype).itemsize
    try:
        return int(item.nbytes)
    except AttributeError:
        raise InputError(f"Expected an array or (shape, dtype), found {type(item).__name__}.") from None
