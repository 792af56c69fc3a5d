"""Made-up runs of the study `power`, complete and consistent, for the tests of the linter and of the report.

::

    run = power_run()                                      # a GPU board, 2 counts, 3 methods, 5 rounds
    run = power_run("module_vdd_in", counts=(50, 1000), watts=lambda method, n: 8.0)
    run.rows                                               # DataFrame in the layout of result rows
    run.extra["power"]                                     # the provenance's extra, with a self-test that passed
    table = run.write(folder)                              # power.csv and power.json, returns the CSV
    table = no_sensor_run().write(folder)                  # every row unavailable

One timeline is drawn (power-on test, idle, windows, idle), a sensor looks at it, and every row follows from what the
sensor saw: so the energies are the integrals of the trace, and a test can spoil one thing and leave the rest whole.
No value here was measured.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from octopus.measure.rows import Case, Row, unavailable
from octopus.power.checks import CHECKS, POWER_ON

METHODS = ("octopus", "published", "n-launches")
WORKLOAD = "visdrone"
NO_SENSOR = "no power sensor (looked at NVML: no driver; RAPL: energy_uj: permission denied)"
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


PROFILES = {
    "gpu_board": Profile(
        "nvml",
        "cuda",
        125.5,
        700.0,
        0.1,
        True,
        True,
        {
            "octopus": Arm(0.04, 1.5e-4, 700),
            "published": Arm(0.2, 1.7e-3, 345),
            "n-launches": Arm(0.1, 0.054, 136),
        },
    ),
    "module_vdd_in": Profile(
        "ina3221",
        "cuda",
        5.73,
        25.0,
        0.005,
        True,
        False,
        {
            "octopus": Arm(0.9, 0.12, 9.6),
            "published": Arm(1.6, 0.198, 8.7),
            "n-launches": Arm(0.4, 0.244, 8.05),
        },
    ),
    "cpu_package": Profile(
        "rapl",
        "cpu",
        32.0,
        150.0,
        0.001,
        False,
        True,
        {
            "octopus": Arm(0.1, 0.15, 128),
            "published": Arm(0.2, 0.62, 121),
            "n-launches": Arm(0.2, 0.64, 110),
        },
    ),
}


@dataclass
class PowerRun:
    """Rows and provenance of a run, as the study hands them over."""

    rows: pd.DataFrame
    extra: dict[str, Any]
    device: str = "cuda"
    machine: str = "pretended"

    @property
    def power(self) -> dict[str, Any]:
        """What the provenance says of power."""
        return self.extra["power"]

    def select(self, **conditions: Any) -> pd.Series:
        """Return which rows have the given values in the given columns, as a mask."""
        chosen = pd.Series(True, index=self.rows.index)
        for column, value in conditions.items():
            chosen &= self.rows[column] == value
        return chosen

    def scale(self, factor: float, **conditions: Any) -> None:
        """Multiply the values of the chosen rows."""
        chosen = self.select(**conditions)
        assert chosen.any(), f"no rows with {conditions}"
        self.rows.loc[chosen, "value"] *= factor

    def drop(self, **conditions: Any) -> None:
        """Leave the chosen rows out."""
        chosen = self.select(**conditions)
        assert chosen.any(), f"no rows with {conditions}"
        self.rows = self.rows[~chosen].reset_index(drop=True)

    def write(self, folder: Path, name: str = "power.csv") -> Path:
        """Write rows and provenance into `folder` and return the path of the rows."""
        folder.mkdir(parents=True, exist_ok=True)
        table = folder / name
        self.rows.to_csv(table, index=False, lineterminator="\n")
        table.with_suffix(".json").write_text(json.dumps(self._provenance(table), indent=1))
        return table

    def _provenance(self, table: Path) -> dict[str, Any]:
        gpu = {
            "name": "Pretended GPU",
            "driver": "580.1",
            "cuda": "13.0",
            "power_limit_w": 700.0,
            "clock_sm_max_mhz": 1980,
        }
        state = {"read_at": "2026-11-21T00:00:00+00:00", "gpu": None, "cpu": {}}
        dataset = str(self.rows["dataset"].iloc[0])
        return {
            "study": "power",
            "started": "2026-11-20T23:40:00+00:00",
            "ended": "2026-11-21T00:00:00+00:00",
            "git": {"commit": "0123456789abcdef0123456789abcdef01234567", "dirty": False, "reason": None},
            "octopus": {"version": "0.1.0", "sha256": "0" * 64},
            "config": {"sha256": "0" * 64, "values": {}},
            "datasets": [
                {"dataset": dataset, "synthetic": dataset.startswith("synthetic"), "sha256": "0" * 64}
            ],
            "machine": {
                "id": self.machine,
                "device": self.device,
                "gpu": gpu if self.device == "cuda" else None,
                "cpu": {"model": "Pretended CPU @ 2.00GHz", "cores": 2, "threads": 2, "governor": None},
                "memory_bytes": 1 << 34,
                "os": "Linux",
                "python": "3.11.0",
                "packages": {"numpy": "2.4.0", "numba": "0.65.0", "numba-cuda": None, "torch": "2.9.0"},
                "state": state,
            },
            "state_after": state,
            "extra": self.extra,
            "results": {
                "file": table.name,
                "sha256": hashlib.sha256(table.read_bytes()).hexdigest(),
                "rows": len(self.rows),
            },
        }


def power_run(
    scope: str = "gpu_board",
    *,
    counts: Sequence[int] = (100, 1000),
    paced_counts: Sequence[int] = (100,),
    again_counts: Sequence[int] = (),
    methods: Sequence[str] = METHODS,
    windows: int = 5,
    window_seconds: float = 5.0,
    frame_rate: float = 30.0,
    watts: Law | None = None,
    time_ms: Law | None = None,
    idle_watts: float | None = None,
    limit_watts: float | None = None,
    period_seconds: float | None = None,
    counter: bool | None = None,
    idle_drift: float = 0.0,
    dataset: str = "visdrone-val",
    machine: str = "pretended",
    seed: int = 1,
) -> PowerRun:
    """Return a healthy, complete run of the study.

    Parameters
    ----------
    scope : {"gpu_board", "module_vdd_in", "cpu_package"}
        Takes the sensor, the levels and the times of `PROFILES`; the further arguments change them.
    counts, paced_counts, again_counts : sequence of int
        Numbers of boxes back to back; those also run at `frame_rate`; those with ``octopus-again``.
    methods : sequence of str
    windows : int
        Rounds; each arm has one window in each.
    window_seconds : float
        Shortest window; 50 updates of the sensor where those take longer.
    watts, time_ms : callable (method, n) -> float, optional
        Power under load, and the time of a frame.
    idle_watts, limit_watts, period_seconds : float, optional
        Idle level, limit, and time between two values of the sensor.
    counter : bool, optional
        Whether the sensor has an energy counter.
    idle_drift : float
        By which fraction idle is higher after a count than before it; beyond 5 % the net energies are unavailable.
    """
    profile = PROFILES[scope]
    overrides = {"idle": idle_watts, "limit": limit_watts, "period": period_seconds, "counter": counter}
    profile = profile._replace(**{name: value for name, value in overrides.items() if value is not None})
    builder = _Builder(
        scope, profile, dataset, watts, time_ms, frame_rate, idle_drift, np.random.default_rng(seed)
    )
    builder.window = max(window_seconds, 50 * profile.period)
    builder.self_test()
    for n in counts:
        again = ("octopus-again",) if n in again_counts else ()
        paced = n in paced_counts
        builder.count(n, (*methods, *again), tuple(methods) if paced else (), windows)
    builder.observe()
    rows = [*builder.rows(), *_sampling_cost(builder, min(counts))]
    power = builder.record()
    return PowerRun(pd.DataFrame(rows, columns=Row._fields), {"power": power}, profile.device, machine)


def no_sensor_run(
    counts: Sequence[int] = (100, 1000),
    paced_counts: Sequence[int] = (100,),
    methods: Sequence[str] = METHODS,
    dataset: str = "visdrone-val",
    why: str = NO_SENSOR,
    machine: str = "pretended",
    device: str = "cpu",
) -> PowerRun:
    """Return what the study writes on a machine without a sensor, or where the power-on test failed."""
    arms = [(n, "back_to_back") for n in counts] + [(n, "paced") for n in paced_counts]
    rows = [
        unavailable(Case("power", dataset, WORKLOAD, n), method, layer, "energy_per_frame", "mJ", why)
        for n, layer in arms
        for method in methods
    ]
    power = {"sensor": None, "reason": why, "looked_at": {"rapl": why}, "selftests": []}
    return PowerRun(pd.DataFrame(rows, columns=Row._fields), {"power": power}, device, machine)


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
class _Builder:
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
            {"id": check.id, "outcome": "passed", "detail": "pretended"}
            for check in CHECKS
            if check.stage == POWER_ON
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


def _sampling_cost(builder: _Builder, n: int) -> list[Row]:
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
