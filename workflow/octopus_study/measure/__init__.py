"""Everything that turns a runnable method into numbers which can be trusted.

The way of a number: a study makes one `Method` for each that takes part, `check_answers` compares what they compute
with the CPU reference, `run_paired` times them in blocks (`run_series` on the steps of a series, such as the frames of
a video), `write_rows` stores one row per method and block, and `write_provenance` binds the stored rows to the code,
data and machine they came from. Summaries (`ratio_interval`, `compare`, `slope`) are made from the stored rows and from
nothing else. Names are imported on first use, so that `machine` or `digest` can be imported without pandas.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from octopus_study.measure.clocks import Clock, HostClock
    from octopus_study.measure.digest import config_digest, source_digest
    from octopus_study.measure.line import slope
    from octopus_study.measure.machine import available_cores, machine_facts, machine_id, machine_state
    from octopus_study.measure.memory import MemoryProbe, measure_memory, memory_rows, payload
    from octopus_study.measure.methods import Method, again, check_answers
    from octopus_study.measure.provenance import validate_provenance, write_provenance
    from octopus_study.measure.rows import Case, Row, read_rows, unavailable, validate_rows, write_rows
    from octopus_study.measure.runner import Budget, run_paired
    from octopus_study.measure.series import PacedClock, run_series
    from octopus_study.measure.statistics import compare, median_interval, noise_floor, ratio_interval
    from octopus_study.measure.throttle import CpuThrottle, GpuThrottle, PowerCapKept, throttle_reasons

_HOME = {
    "clocks": ("Clock", "HostClock"),
    "digest": ("config_digest", "source_digest"),
    "line": ("slope",),
    "machine": ("available_cores", "machine_facts", "machine_id", "machine_state"),
    "memory": ("MemoryProbe", "measure_memory", "memory_rows", "payload"),
    "methods": ("Method", "again", "check_answers"),
    "provenance": ("validate_provenance", "write_provenance"),
    "rows": ("Case", "Row", "read_rows", "unavailable", "validate_rows", "write_rows"),
    "runner": ("Budget", "run_paired"),
    "series": ("PacedClock", "run_series"),
    "statistics": ("compare", "median_interval", "noise_floor", "ratio_interval"),
    "throttle": ("CpuThrottle", "GpuThrottle", "PowerCapKept", "throttle_reasons"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    """Import the module that owns `name`, the first time that it is asked for."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__})
