"""Was the machine slowed down while a block was measured?

A watcher is called after each block and says what happened since its call before. Counters are preferred to
the state of the moment, since a short slow-down within a block is over when the block is.
"""

import time
from collections.abc import Callable
from pathlib import Path

from octopus_study.measure import _nvml

# NVML's clock event reasons that lower the clock below what was set; idle and settings of the user are none.
REASONS = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
_POWER = ("power cap", "power limit")
_POLICIES = {"NVML_PERF_POLICY_POWER": "power limit", "NVML_PERF_POLICY_THERMAL": "thermal limit"}
# GPU Boost touches its limits for moments under any load (NVIDIA/DCGM issue 285), which slows nothing down.
_LEAST_SHARE = 0.05

CPU_ROOT = Path("/sys/devices/system/cpu")
CGROUP_STAT = Path("/sys/fs/cgroup/cpu.stat")


def throttle_reasons() -> tuple[str, ...] | None:
    """Return why the GPU's clocks are lowered now: empty when they are not, None when it can't be read."""
    mask = _nvml.read("nvmlDeviceGetCurrentClocksEventReasons")
    if mask is None:
        mask = _nvml.read("nvmlDeviceGetCurrentClocksThrottleReasons")
    return None if mask is None else tuple(name for bit, name in REASONS.items() if mask & bit)


class GpuThrottle:
    """Watches the GPU: the reasons of the moment, and the time that it lost since the last call. Not `readable`, where
    NVML doesn't tell (Jetson), a call always returns None."""

    def __init__(self) -> None:
        self._lost_ns, self._at_ns = self._counters(), time.monotonic_ns()
        self.readable = throttle_reasons() is not None or bool(self._lost_ns)

    def __call__(self) -> str | None:
        """Say why the GPU was slowed down since the last call, or None."""
        lost, now = self._counters(), time.monotonic_ns()
        elapsed = max(now - self._at_ns, 1)
        reasons = [
            f"{name} for {(lost[name] - before) / elapsed:.0%} of the time"
            for name, before in self._lost_ns.items()
            if name in lost and (lost[name] - before) / elapsed > _LEAST_SHARE
        ]
        self._lost_ns, self._at_ns = lost, now
        return self._judged([*(throttle_reasons() or ()), *reasons])

    def _judged(self, reasons: list[str]) -> str | None:
        return ", ".join(reasons) or None

    @staticmethod
    def _counters() -> dict[str, int]:
        """Return the nanoseconds lost per policy, where this GPU counts them."""
        found = {name: _nvml.read("nvmlDeviceGetViolationStatus", policy) for policy, name in _POLICIES.items()}
        return {name: int(status.violationTime) for name, status in found.items() if status is not None}


class PowerCapKept(GpuThrottle):
    """Watches the GPU under loads that reach the board's power limit by themselves, such as large convolutions. The
    limit belongs to what is measured then: without it there would be no block left. It throws no block away; every
    other reason still does."""

    def _judged(self, reasons: list[str]) -> str | None:
        return super()._judged([reason for reason in reasons if not reason.startswith(_POWER)])


class CpuThrottle:
    """Watches the CPU: thermal throttling (bare metal) and the CPU quota of the container. Not `readable`, where the
    kernel counts neither, as in most virtual machines, a call always returns None."""

    def __init__(self) -> None:
        self._counters: dict[str, Callable[[], int | None]] = {
            "thermal throttling": _thermal_events,
            "CPU quota of the container": _quota_events,
        }
        self._before = self._read()
        self.readable = bool(self._before)

    def __call__(self) -> str | None:
        """Say why the CPU was slowed down since the last call, or None."""
        now = self._read()
        grown = [name for name, count in now.items() if count > self._before.get(name, count)]
        self._before = now
        return ", ".join(grown) or None

    def _read(self) -> dict[str, int]:
        found = {name: read() for name, read in self._counters.items()}
        return {name: count for name, count in found.items() if count is not None}


def _thermal_events() -> int | None:
    """Return how often any core or package was throttled since the start of the machine."""
    files = sorted(CPU_ROOT.glob("cpu[0-9]*/thermal_throttle/*_throttle_count"))
    counts = [_integer(file) for file in files]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _quota_events() -> int | None:
    """Return how often the container ran into its CPU quota; None without a quota of its own."""
    try:
        fields = dict(line.split() for line in CGROUP_STAT.read_text(encoding="ascii").splitlines())
        return int(fields["nr_throttled"])
    except (OSError, ValueError, KeyError):
        return None


def _integer(file: Path) -> int | None:
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
