"""What only the power study knows: its sensor, how far its windows can be trusted, and why there is no energy."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from octopus_study.report.derive.power_quality import quality_numbers
from octopus_study.report.derive.power_ratios import ratio_numbers
from octopus_study.report.derive.power_trace import trace_numbers
from octopus_study.report.derive.power_vetting import LAYERS, STUDY
from octopus_study.report.derive.samples import origin
from octopus_study.report.frame import HERE
from octopus_study.report.labels import POWER_SCOPES, POWER_SENSORS, human
from octopus_study.report.machines import dataset_names, device_name
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import Run
from octopus_study.report.text import quantity_text

if TYPE_CHECKING:
    import pandas as pd

ENERGY = "energy_per_frame_"
_LOOKED = re.compile(r"\s*\(looked at .*$")


def power_numbers(run: Run) -> Iterator[Number]:
    """Yield the study's derived numbers; of a run without energies the reason alone."""
    scope = power_scope(run)
    if not scope:
        yield from _no_energy(run)
        return
    yield from _sensor(run, scope)
    yield from quality_numbers(run, scope)
    yield from ratio_numbers(run, scope)
    yield from trace_numbers(run, scope)


def power_scope(run: Run) -> str:
    """Return what the run's energies are the energies of, as their columns name it; empty where there is none."""
    measured = run.rows.loc[run.rows["value"].notna(), "quantity"]
    found = {name.removeprefix(ENERGY) for name in measured if name.startswith(ENERGY)}
    return next(iter(sorted(name for name in found if not name.startswith("net_"))), "")


def why_none(run: Run) -> str:
    """Return why a run has no energies, in full."""
    notes = run.rows.loc[run.rows["value"].isna(), "answer"]
    return str(notes.iloc[0]).partition(":")[2].strip() if len(notes) else "its rows hold no energy"


def brief(why: str) -> str:
    """Return a reason without the list of where a sensor was looked for."""
    return _LOOKED.sub("", why)


def record(run: Run) -> dict[str, Any]:
    """Return what provenance says of the sensor and its self-test; empty where it says nothing."""
    return (run.provenance.get("extra") or {}).get("power") or {}


def _no_energy(run: Run) -> Iterator[Number]:
    why = why_none(run)
    for name, text in (("unavailable", why), ("unavailable_brief", brief(why)), ("sensor.title", brief(why))):
        yield _text(run, name, text)
    for row in _arms(run.rows).itertuples():
        # Where a claim asks for a ratio, it finds the reason.
        key = f"{run.scope}.{run.study}.{row.workload}.n{row.n}.published.over_n-launches.{row.layer}"
        why_absent = f"unavailable: {brief(why)}"
        where = (origin(run, row.dataset), f"n={row.n}, layer={row.layer}")
        yield make_number(key, *where, "ratio", math.nan, text=why_absent, note=why_absent)


def _arms(rows: pd.DataFrame) -> pd.DataFrame:
    chosen = rows[rows["layer"].isin(LAYERS) & (rows["method"] == "published")]
    return chosen.drop_duplicates(["workload", "n", "layer"])


def _sensor(run: Run, scope: str) -> Iterator[Number]:
    found = record(run)
    source = found.get("source") or {}
    name = human(POWER_SENSORS, str(source.get("name", "sensor")))
    title = f"{name}, {human(POWER_SCOPES, scope)}"
    yield _text(run, "sensor.scope", scope)
    yield _text(run, "sensor.of", human(POWER_SCOPES, scope))
    yield _text(run, "sensor.name", name)
    period = (found.get("selftest") or {}).get("update_seconds")
    updates = f", new value every {quantity_text(1000 * period, 'ms')}" if period else ""
    yield _text(run, "sensor.title", f"{title}{updates}")
    if (accuracy := source.get("accuracy")) is not None:
        where = (f"{run.scope}.{run.study}.sensor.accuracy", origin(run, ""), "provenance")
        note = "relative systematic error as the maker states it, or as it is assumed"
        yield make_number(*where, "fraction", float(accuracy), note=note)


def power_shown(runs: list[Run]) -> Iterator[Number]:
    """Yield ``shown.power.energy``: on which machines energy was measured, and on which not and why."""
    chosen = [run for run in runs if run.study == STUDY]
    if not chosen:
        return
    with_energy = [run for run in chosen if power_scope(run)]
    without = [run for run in chosen if not power_scope(run)]
    parts = []
    if with_energy:
        named = "; ".join(
            f"{_place(run)}, {dataset_names(run)}, {run.measured_on or 'unknown date'}" for run in with_energy
        )
        parts.append(f"Energy was measured on {named}.")
    parts += [f"No energy was measured on {_place(run)}: {brief(why_none(run))}." for run in without]
    where = (chosen[0].role, chosen[0].machine, "", chosen[0].source)
    text = " ".join(parts)
    yield make_number("shown.power.energy", where, "all runs of the study", "text", math.nan, text=text)
    if with_energy:
        text = "; ".join(_place(run) for run in with_energy)
        yield make_number("shown.power.measured", where, "all runs of the study", "text", math.nan, text=text)


def _place(run: Run) -> str:
    return f"{device_name(run)}{' (this machine)' if run.scope == HERE else ''}"


def _text(run: Run, name: str, text: str) -> Number:
    where = (f"{run.scope}.{run.study}.{name}", origin(run, ""), "provenance")
    return make_number(*where, "text", math.nan, text=text)
