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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from synthetic_timeline import PROFILES, WORKLOAD, Builder, Law, sampling_cost

from octopus_study.measure.rows import Case, Row, unavailable

METHODS = ("octopus", "published", "n-launches")
NO_SENSOR = "no power sensor (looked at NVML: no driver; RAPL: energy_uj: permission denied)"


@dataclass
class PowerRun:
    """Rows and provenance of a run, as the study hands them over."""

    rows: pd.DataFrame
    extra: dict[str, Any]
    device: str = "cuda"
    machine: str = "pretended"
    frame_rate: float = 30.0

    @property
    def power(self) -> dict[str, Any]:
        """What the provenance says of power."""
        return self.extra["power"]

    def select(self, **conditions: Any) -> pd.Series:
        """Return which rows have the given values, or one of a tuple of them, in the given columns, as a mask."""
        chosen = pd.Series(True, index=self.rows.index)
        for column, value in conditions.items():
            chosen &= self.rows[column].isin(value if isinstance(value, tuple) else (value,))
        return chosen

    def scale(self, factor: float, quantity: str | tuple[str, ...] = (), **conditions: Any) -> None:
        """Multiply the values of the chosen rows, of all quantities where none is named."""
        chosen = self.select(**conditions, **({"quantity": quantity} if quantity else {}))
        assert chosen.any(), f"no rows with {conditions}"
        self.rows.loc[chosen, "value"] *= factor

    def put(self, column: str, value: Any, only: int | None = None, **conditions: Any) -> None:
        """Set a column of the chosen rows, or of one of them."""
        chosen = self.rows.index[self.select(**conditions)]
        assert len(chosen), f"no rows with {conditions}"
        self.rows.loc[chosen if only is None else chosen[only], column] = value

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
        record = pretended_provenance(
            "power",
            table,
            machine=self.machine,
            device=self.device,
            dataset=str(self.rows["dataset"].iloc[0]),
            values={"power": {"frame_rate": self.frame_rate}},
            extra=self.extra,
        )
        table.with_suffix(".json").write_text(json.dumps(record, indent=1))
        return table


def pretended_provenance(
    study: str,
    table: Path,
    *,
    machine: str,
    device: str,
    dataset: str,
    values: dict[str, Any] | None = None,
    extra: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what provenance would say of a pretended machine that wrote this table."""
    gpu = {
        "name": "Pretended GPU",
        "driver": "580.1",
        "cuda": "13.0",
        "power_limit_w": 700.0,
        "clock_sm_max_mhz": 1980,
    }
    state = {"read_at": "2026-11-21T00:00:00+00:00", "gpu": None, "cpu": {}}
    return {
        "study": study,
        "started": "2026-11-20T23:40:00+00:00",
        "ended": "2026-11-21T00:00:00+00:00",
        "git": {"commit": "0123456789abcdef0123456789abcdef01234567", "dirty": False, "reason": None},
        "octopus": {"version": "0.1.0", "sha256": "0" * 64},
        "config": {"sha256": "0" * 64, "values": values or {}},
        "datasets": [{"dataset": dataset, "synthetic": dataset.startswith("synthetic"), "sha256": "0" * 64}],
        "machine": {
            "id": machine,
            "device": device,
            "gpu": gpu if device == "cuda" else None,
            "cpu": {"model": "Pretended CPU @ 2.00GHz", "cores": 2, "threads": 2, "governor": None},
            "memory_bytes": 1 << 34,
            "os": "Linux",
            "python": "3.11.0",
            "packages": {"numpy": "2.4.0", "numba": "0.65.0", "numba-cuda": None, "torch": "2.9.0"},
            "state": state,
        },
        "state_after": state,
        "extra": extra or {},
        "results": {
            "file": table.name,
            "sha256": hashlib.sha256(table.read_bytes()).hexdigest(),
            "rows": table.read_text().count("\n") - 1,
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
    builder = Builder(
        scope, profile, dataset, watts, time_ms, frame_rate, idle_drift, np.random.default_rng(seed)
    )
    builder.window = max(window_seconds, 50 * profile.period)
    builder.self_test()
    for n in counts:
        again = ("octopus-again",) if n in again_counts else ()
        paced = n in paced_counts
        builder.count(n, (*methods, *again), tuple(methods) if paced else (), windows)
    builder.observe()
    rows = [*builder.rows(), *sampling_cost(builder, min(counts))]
    power = builder.record()
    table = pd.DataFrame(rows, columns=Row._fields)
    return PowerRun(table, {"power": power}, profile.device, machine, frame_rate)


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
