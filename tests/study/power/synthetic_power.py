"""Made-up runs of the study `power`, complete and consistent, for the tests of the linter and of the report.

The study itself runs, in the time of a simulated machine: so a test can spoil one thing and leave the rest whole. No
value here was measured.
"""

import copy
import hashlib
import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pandas as pd

from octopus_study.measure import Method
from octopus_study.measure.rows import Case, Row, unavailable
from octopus_study.status import SAME, Answer
from octopus_study.status import unavailable as absent
from octopus_study.studies.comparison import measure_plan
from octopus_study.studies.power import Power, study

sys.path.insert(0, str(Path(__file__).parents[1] / "studies"))
from power_machine import Machine

REFERENCE = Path(__file__).parents[3] / "data/reference/nvidia-h200"
METHODS = ("octopus", "published", "n-launches")
WORKLOAD = "visdrone"
NO_SENSOR = "no power sensor (looked at NVML: no driver; INA3221: no such chip)"
Law = Callable[[str, int], float]
# By scope: the machine, and of each method milliseconds, fixed and per object, and the watts that it comes near.
PROFILES: dict[str, tuple[dict[str, Any], dict[str, tuple[float, float, float]]]] = {
    "gpu_board": (
        {"name": "nvml", "idle_watts": 125.5, "limit_watts": 700.0},
        {"octopus": (0.9, 5e-4, 700), "published": (2.0, 1.7e-3, 345), "n-launches": (0.1, 0.054, 136)},
    ),
    "module_vdd_in": (
        {"name": "ina3221", "idle_watts": 5.73, "limit_watts": 25.0, "has_counter": False, "dither_ns": 19_000_000},
        {"octopus": (0.9, 0.12, 9.6), "published": (1.6, 0.198, 8.7), "n-launches": (0.4, 0.244, 8.05)},
    ),
}


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
        chosen = self.select(**conditions)
        assert chosen.any(), f"no rows with {conditions}"
        self.rows = self.rows[~chosen].reset_index(drop=True)

    def write(self, folder: Path) -> Path:
        """Write rows and provenance, that of a reference but for its facts, and return the path of the rows."""
        folder.mkdir(parents=True, exist_ok=True)
        table = folder / "power.csv"
        self.rows.to_csv(table, index=False, lineterminator="\n")
        record = json.loads((REFERENCE / "power.json").read_text("utf-8"))
        record["config"]["values"] = {"power": {"frame_rate": self.frame_rate}}
        record["machine"] |= {"id": self.machine, "device": self.device}
        content = table.read_bytes()
        record["results"] |= {"sha256": hashlib.sha256(content).hexdigest(), "rows": content.count(b"\n") - 1}
        table.with_suffix(".json").write_text(json.dumps(record | {"extra": self.extra}))
        return table


def power_run(scope: str = "gpu_board", **settings: Any) -> PowerRun:
    """Return a healthy, complete run of the study, with the sensor, the levels and the times that `PROFILES` has for a
    scope; `settings` are those of `_simulated`."""
    rows, notes = _simulated(scope, **settings)
    return PowerRun(rows.copy(), copy.deepcopy(notes), frame_rate=settings.get("frame_rate", 30.0))


@cache
def _simulated(
    scope: str,
    counts: tuple[int, ...] = (100, 1000),
    paced_counts: tuple[int, ...] = (100,),
    again_counts: tuple[int, ...] = (),
    frame_rate: float = 30.0,
    watts: Law | float = 0.0,
    idle_drift: float = 0.0,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Run the study on a simulated machine; return its rows and notes. There are numbers of boxes back to back, those
    also at a fixed rate, and those with ``octopus-again``; idle is higher after a count than before it by a fraction,
    and beyond 5 % the net energies are unavailable."""
    profile, laws = PROFILES[scope]
    idle = profile["idle_watts"]
    machine = Machine(scope=scope, noise=0.001 * idle, **profile)
    gauss = random.Random(1).gauss
    jitter = cycle([gauss(1, 0.003) for _ in range(9973)])  # drawing as many as there are frames takes half the time

    def frame(name: str, n: int) -> Callable[[], None]:
        fixed, each, most = laws[name.removesuffix("-again")]
        load = watts(name, n) if callable(watts) else watts or idle + (most - idle) * n / (n + 60)

        def run() -> None:
            machine.idle_watts = idle * (1 + idle_drift) ** (1 + counts.index(n))
            machine.spend(round((fixed + each * n) * next(jitter) * 1e6), load * next(jitter))

        return run

    def make_methods(context: Any, n: int, reference: object) -> tuple[list[Method], dict[str, Answer]]:
        names = (*METHODS, "octopus-again") if n in again_counts else METHODS
        answers = dict.fromkeys(study.LIBRARIES, absent("not installed")) | dict.fromkeys(names, SAME)
        return [Method(name, frame(name, n)) for name in names], answers

    power = Power(counts=counts, paced_counts=paced_counts, again_counts=again_counts, frame_rate=frame_rate)
    context: Any = SimpleNamespace(
        config=SimpleNamespace(power=power), workload=SimpleNamespace(dataset="visdrone-val"), device="cpu", seed=1,
        notes={}, shared={}, process=0, throttle=mock.Mock(readable=True, return_value=""),
    )  # fmt: skip
    fakes = {"make_methods": make_methods, "reference_of": lambda context: None}
    with mock.patch.multiple(study, **fakes):
        rows = measure_plan(context, study.plan(context, machine.open_session, machine))
    return pd.DataFrame(rows, columns=Row._fields), context.notes


def no_sensor_run(counts: Sequence[int] = (100, 1000), device: str = "cpu") -> PowerRun:
    """Return what the study writes on a machine without a sensor, or where the power-on test failed."""
    rows = [
        unavailable(Case("power", "visdrone-val", WORKLOAD, n), method, layer, "energy_per_frame", "mJ", NO_SENSOR)
        for n, layer in [*((n, "back_to_back") for n in counts), (100, "paced")]
        for method in METHODS
    ]
    power = {"sensor": None, "reason": NO_SENSOR, "looked_at": {"ina3221": NO_SENSOR}, "selftests": []}
    return PowerRun(pd.DataFrame(rows, columns=Row._fields), {"power": power}, device)
