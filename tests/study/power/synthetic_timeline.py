"""The timeline of a made-up power run, the sensor that looks at it, and the rows that follow; see `synthetic_power`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from octopus_study.measure.rows import Case, Row, unavailable
from octopus_study.power.rules import POWER_ON, RULES

WORKLOAD = "visdrone"
SETTLE, TAIL, IDLE_SETTLE, IDLE_SECONDS = 1.0, 0.25, 3.0, 5.0
Law = Callable[[str, int], float]


class Arm(NamedTuple):
    """A method's milliseconds, fixed and per object, and the watts that it comes near with many objects."""

    fixed_ms: float
    ms_per_object: float
    most_watts: float


class Profile(NamedTuple):
    """A pretended sensor and what it is the sensor of."""

    source: str
    device: str
    idle: float
    limit: float
    period: float
    power: bool
    counter: bool
    laws: dict[str, Arm]


_GPU = {
    "octopus": Arm(0.04, 1.5e-4, 700),
    "published": Arm(0.2, 1.7e-3, 345),
    "n-launches": Arm(0.1, 0.054, 136),
}
_MODULE = {
    "octopus": Arm(0.9, 0.12, 9.6),
    "published": Arm(1.6, 0.198, 8.7),
    "n-launches": Arm(0.4, 0.244, 8.05),
}
_CPU = {"octopus": Arm(0.1, 0.15, 128), "published": Arm(0.2, 0.62, 121), "n-launches": Arm(0.2, 0.64, 110)}
PROFILES = {
    "gpu_board": Profile("nvml", "cuda", 125.5, 700.0, 0.1, True, True, _GPU),
    "module_vdd_in": Profile("ina3221", "cuda", 5.73, 25.0, 0.005, True, False, _MODULE),
    "cpu_package": Profile("rapl", "cpu", 32.0, 150.0, 0.001, False, True, _CPU),
}


@dataclass
class _Window:
    """A window of an arm, or idle (no frames), on the timeline."""

    n: int
    method: str
    layer: str
    block: int
    start: float
    seconds: float
    frames: int = 0
    busy_ms: float = 0.0


@dataclass
class Builder:
    """Lays segments of constant power on a timeline, looks at it with the sensor, and derives the rows."""

    scope: str
    profile: Profile
    dataset: str
    watts: Law | None
    time_ms: Law | None
    frame_rate: float
    idle_drift: float
    rng: np.random.Generator
    window: float = 5.0
    now: float = 0.0
    segments: list[tuple[float, float, str, int]] = field(default_factory=list)
    windows: list[_Window] = field(default_factory=list)
    too_slow: list[tuple[int, str, float]] = field(default_factory=list)
    phases: list[dict[str, Any]] = field(default_factory=list)

    def hold(self, seconds: float, watts: float, method: str, n: int) -> float:
        """Append a segment and return when it began."""
        self.segments.append((self.now, watts, method, n))
        self.now += seconds
        return self.now - seconds

    def power(self, method: str, n: int) -> float:
        """Return the power of a method under load."""
        name = method.removesuffix("-again")
        if self.watts is not None:
            return self.watts(name, n)
        idle, most = self.profile.idle, self.profile.laws[name].most_watts
        return idle + (most - idle) * n / (n + 60)

    def time(self, method: str, n: int) -> float:
        """Return the milliseconds of a frame."""
        name = method.removesuffix("-again")
        if self.time_ms is not None:
            return self.time_ms(name, n)
        law = self.profile.laws[name]
        return law.fixed_ms + law.ms_per_object * n

    def self_test(self) -> None:
        """Idle, load, idle, load."""
        load = self.profile.idle + 0.7 * (self.profile.limit - self.profile.idle)
        for name, watts in (("idle", self.profile.idle), ("load", load)) * 2:
            self.hold(2.0, watts, "between", 0)
            start = self.hold(3.0, watts, "self-test", 0)
            self.phases.append({"phase": name, "start_seconds": start, "end_seconds": self.now})
        self.hold(1.0, self.profile.idle, "between", 0)

    def count(self, n: int, methods: Sequence[str], paced: Sequence[str], rounds: int) -> None:
        """Idle, the rounds of windows in random order, idle."""
        self.idle(n, 0, self.profile.idle)
        arms = [(method, "back_to_back") for method in methods] + [(method, "paced") for method in paced]
        slow = [
            (m, layer) for m, layer in arms if layer == "paced" and self.time(m, n) > 1000 / self.frame_rate
        ]
        self.too_slow += [(n, method, self.time(method, n)) for method, _ in slow]
        arms = [arm for arm in arms if arm not in slow]
        for block in range(rounds):
            for index in self.rng.permutation(len(arms)):
                self.arm(n, *arms[index], block)
        self.idle(n, 1, self.profile.idle * (1 + self.idle_drift))

    def idle(self, n: int, block: int, watts: float) -> None:
        """Append an idle window."""
        self.hold(IDLE_SETTLE, watts, "between", n)
        seconds = max(IDLE_SECONDS, self.window)
        start = self.hold(seconds, watts, "idle", n)
        self.hold(TAIL, watts, "between", n)
        self.windows.append(_Window(n, "idle", "idle", block, start, seconds))

    def arm(self, n: int, method: str, layer: str, block: int) -> None:
        """Append the window of an arm with its settle time and its tail."""
        time = self.time(method, n) * self.rng.normal(1, 0.003)
        frame = time if layer == "back_to_back" else 1000 / self.frame_rate
        load, idle = self.power(method, n), self.profile.idle
        watts = (idle + (load - idle) * min(1, time / frame)) * self.rng.normal(1, 0.002)
        watts = watts if layer == "back_to_back" else max(watts, idle * 1.002)
        frames = math.ceil(1000 * self.window / frame)
        seconds = frames * frame / 1000
        self.hold(SETTLE, watts, "between", n)
        start = self.hold(seconds, watts, method, n)
        self.hold(TAIL, watts, "between", n)
        self.windows.append(_Window(n, method, layer, block, start, seconds, frames, time))

    def observe(self) -> None:
        """Read the sensor over the whole timeline: one value per update, at least 50 ms apart."""
        step = max(self.profile.period, 0.05)
        self.at = np.round(np.arange(0, self.now, step), 3)
        starts = np.array([segment[0] for segment in self.segments])
        self.of = np.searchsorted(starts, self.at, side="right") - 1
        levels = np.array([segment[1] for segment in self.segments])[self.of]
        noise = self.rng.normal(0, 0.0008 * self.profile.idle, len(self.at))
        self.values = np.round(levels + noise, 6)

    def integral(self, window: _Window) -> float:
        """Return the joules of a window by the trapezoid rule, its ends interpolated."""
        start, end = window.start, window.start + window.seconds
        inside = (self.at > start) & (self.at < end)
        times = np.concatenate(([start], self.at[inside], [end]))
        return float(np.trapezoid(np.interp(times, self.at, self.values), times))

    def rows(self) -> list[Row]:
        """Return the rows of all windows, of the arms that are too slow, and of the trace."""
        idles = {w.n: [] for w in self.windows}
        for window in self.windows:
            if window.layer == "idle":
                idles[window.n].append(self._energy(window) / window.seconds)
        rows = [row for window in self.windows for row in self._window_rows(window, idles[window.n])]
        for n, method, time in self.too_slow:
            budget = f"{1000 / self.frame_rate:.1f} ms"
            why = f"one frame takes {time:.0f} ms, at {self.frame_rate:g} frames/s there are {budget}"
            rows.append(
                unavailable(self._case(n), method, "paced", f"energy_per_frame_{self.scope}", "mJ", why)
            )
        rows += [
            self._case(n).row("energy_per_frame", layer, "discarded_blocks", "count", 0.0)
            for n, layer in sorted({(w.n, w.layer) for w in self.windows if w.layer != "idle"})
        ]
        return rows + self._trace_rows()

    def _case(self, n: int) -> Case:
        return Case("power", self.dataset, WORKLOAD, n)

    def _energy(self, window: _Window) -> float:
        return self.integral(window) * (1.003 if self.profile.counter else 1.0)

    def _window_rows(self, window: _Window, idles: list[float]) -> list[Row]:
        scope, energy = self.scope, self._energy(window)
        values = {
            "window": ("s", window.seconds),
            "window_start": ("s", window.start),
            f"power_mean_{scope}": ("W", energy / window.seconds),
            f"window_energy_integral_{scope}": ("J", self.integral(window)),
        }
        if self.profile.counter:
            values[f"window_energy_counter_{scope}"] = ("J", energy)
        missing: dict[str, str] = {}
        if window.layer != "idle":
            per_frame = 1e3 * energy / window.frames
            idle = 1e3 * float(np.mean(idles)) * window.seconds / window.frames
            values |= {
                "time_per_frame": ("ms", window.busy_ms),
                "frames": ("count", float(window.frames)),
                f"energy_per_frame_{scope}": ("mJ", per_frame),
                f"energy_per_frame_net_{scope}": ("mJ", per_frame - idle),
                f"energy_uncertainty_{scope}": ("fraction", 0.004),
                "power_capped": ("fraction", 0.0),
            }
            if (drift := max(idles) / min(idles) - 1) > 0.05:
                missing[f"energy_per_frame_net_{scope}"] = f"unavailable: idle drifted by {drift:.1%}"
            if window.layer == "paced":
                values["late_frames"] = ("count", 0.0)
        answer = "n/a" if window.layer == "idle" else "same"
        case = self._case(window.n)
        return [
            case.row(
                window.method,
                window.layer,
                quantity,
                unit,
                None if quantity in missing else value,
                block=window.block,
                answer=missing.get(quantity, answer),
            )
            for quantity, (unit, value) in values.items()
        ]

    def _trace_rows(self) -> list[Row]:
        rows = []
        for at, index, value in zip(self.at, self.of, self.values, strict=True):
            _, _, method, n = self.segments[index]
            block = round(1000 * at)
            rows.append(
                self._case(n).row(method, "trace", f"power_{self.scope}", "W", float(value), block=block)
            )
        return rows

    def record(self) -> dict[str, Any]:
        """Return what the provenance says of the sensor and its power-on test."""
        profile, seen = self.profile, self.at < self.phases[-1]["end_seconds"]
        facts = {"name": profile.source, "scope": self.scope, "accuracy": 0.02, "pretended": True}
        for phase in self.phases:
            inside = (self.at >= phase["start_seconds"]) & (self.at < phase["end_seconds"])
            values = self.values[inside]
            phase |= {
                "mean_w": float(values.mean()),
                "deviation_w": float(values.std(ddof=1)),
                "levels": int(inside.sum()),
                "voltages_mv": {},
                "parts_w": {},
            }
        checks = [
            {"id": rule.id, "outcome": "passed", "detail": "pretended"}
            for rule in RULES
            if rule.stage == POWER_ON
        ]
        return {
            "selftest": {
                "passed": True,
                "reason": "",
                "scope": self.scope,
                "source": facts,
                "limit_w": profile.limit,
                "checks": checks,
                "phases": self.phases,
                "samples": int(seen.sum()),
                "failures": 0,
                "update_seconds": profile.period,
                "read_seconds": 0.0001,
            },
            "sensor": profile.source,
            "scope": self.scope,
            "source": facts,
            "sampler": {
                "scope": self.scope,
                "interval_s": min(max(profile.period / 5, 0.002), 0.02),
                "period_s": profile.period,
                "read_s": 0.0001,
                "samples": len(self.at),
                "failures": 0,
            },
            "looked_at": {profile.source: "used"},
            "window_seconds": self.window,
            "settle_seconds": SETTLE,
            "tail_seconds": TAIL,
            "failed_readings": 0,
        }


def sampling_cost(builder: Builder, n: int) -> list[Row]:
    """Rows of what the sampler costs: the same work, and the same idleness, with and without it."""
    case, rng = builder._case(n), builder.rng
    rows = [
        case.row(
            f"octopus-{name}",
            "host",
            "time_per_frame",
            "ms",
            builder.time("octopus", n) * rng.normal(1, 0.004),
            block=block,
            answer="same",
        )
        for block in range(5)
        for name in ("sampled", "unsampled")
    ]
    if builder.profile.counter:
        quantity = f"power_mean_{builder.scope}"
        rows += [
            case.row(name, "idle", quantity, "W", builder.profile.idle * rng.normal(1, 0.001), block=block)
            for block in range(3)
            for name in ("idle-sampled", "idle-unsampled")
        ]
    return rows
