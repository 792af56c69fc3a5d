"""Facts about machines and runs as texts: what a set-up table and a caption name."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from octopus_study.report.labels import DATASETS, GENERATED, PEER_PACKAGES, human, machine_name
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import HERE, Run

# Fact -> where provenance keeps it (keys joined by dots).
FACTS = {
    "gpu": "machine.gpu.name",
    "driver": "machine.gpu.driver",
    "cuda": "machine.gpu.cuda",
    "power_limit": "machine.gpu.power_limit_w",
    "cpu": "machine.cpu.model",
    "cores": "machine.cpu.cores",
    "threads": "machine.cpu.threads",
    "os": "machine.os",
    "python": "machine.python",
    "numpy": "machine.packages.numpy",
    "numba": "machine.packages.numba",
    "numba_cuda": "machine.packages.numba-cuda",
}


# A kernel's build name says nothing to a reader; major and minor version do.
_KERNEL = re.compile(r"(Linux \d+\.\d+)\S*")

_CACHED = re.compile(
    r"([^.]+)\.stage_timing\.visdrone\.n(\d+)\.write-bound\.crop_resize_normalize\.(?:device|host)\.within_cache"
)


def fact(provenance: dict[str, Any], path: str) -> str:
    """Return what provenance has under a dotted path, empty where it has nothing."""
    value: Any = provenance
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return "" if value is None else _KERNEL.sub(r"\1", str(value))


def machine_facts(runs: list[Run]) -> Iterator[Number]:
    """Yield ``<scope>.machine.<fact>`` once per scope, and ``<scope>.<study>.<fact>`` for every run."""
    for scope in dict.fromkeys(run.scope for run in runs):
        run = next(run for run in runs if run.scope == scope)
        facts = {name: fact(run.provenance, path) for name, path in FACTS.items()}
        facts["kind"] = kind(run)
        facts["name"] = device_name(run)
        facts["id"] = run.machine
        facts["peers"] = _peers([one for one in runs if one.scope == scope])
        yield from (_text(run, f"{scope}.machine.{name}", text) for name, text in facts.items() if text)
    for run in runs:
        facts = {
            "measured_on": run.measured_on or "unknown date",
            "commit": fact(run.provenance, "git.commit")[:10],
            "dataset": dataset_names(run),
            "synthetic": "yes" if any("synthetic-" in name for name in run.datasets) else "no",
        }
        yield from (
            _text(run, f"{run.scope}.{run.study}.{name}", text) for name, text in facts.items() if text
        )


def _peers(runs: list[Run]) -> str:
    """Return the peers that any run of a machine found installed, with their versions."""
    packages: dict[str, Any] = {}
    for run in runs:
        found = run.provenance.get("machine", {}).get("packages", {})
        packages |= {name: version for name, version in found.items() if version}
    versions = {label: packages[name] for name, label in PEER_PACKAGES.items() if name in packages}
    return ", ".join(f"{label} {version}" for label, version in versions.items())


def kind(run: Run) -> str:
    """Say whether a run measured on a GPU or a CPU.

    Provenance says so; without it, only a GPU has rows timed by device events.
    """
    if device := fact(run.provenance, "machine.device"):
        return "gpu" if device == "cuda" else "cpu"
    device_rows = run.rows["layer"].isin(["device", "device_hot"]) & run.rows["value"].notna()
    return "gpu" if device_rows.any() else "cpu"


def device_name(run: Run) -> str:
    """Return the human name of what a run measured on."""
    name = fact(run.provenance, FACTS[kind(run)])
    return machine_name(name) if name else human({}, run.machine)


def shown_runs(runs: list[Run]) -> Iterator[Number]:
    """Yield ``shown.<study>``: the machines, data sets and days of all runs of a study, for captions."""
    for study in dict.fromkeys(run.study for run in runs):
        chosen = [run for run in runs if run.study == study]
        parts = [
            f"{device_name(run)}{' (this machine)' if run.scope == HERE else ''}, "
            f"{dataset_names(run)}, {run.measured_on or 'unknown date'}"
            for run in chosen
        ]
        yield _text(chosen[0], f"shown.{study}", "; ".join(parts))
        if study == "distribution":
            yield _text(chosen[0], f"shown.{study}.generated", _generated(chosen))


def _generated(runs: list[Run]) -> str:
    """Say on which pixels the generated boxes lie: those of each run's own frame."""
    stand_ins = [run for run in runs if any("synthetic-" in name for name in run.datasets)]
    if len(stand_ins) == len(runs):
        return "synthetic boxes on synthetic pixels"
    others = " and ".join(device_name(run) for run in stand_ins)
    return "synthetic boxes on VisDrone pixels" + (f", on {others} on synthetic ones" if others else "")


def cached_bounds(runs: list[Run], numbers: list[Number]) -> Iterator[Number]:
    """Yield a sentence that names where the write bound stays within a cache; absent without the stage timings."""
    chosen = {run.scope: run for run in runs if run.study == "stage_timing"}
    found = [
        f"{device_name(chosen[match[1]])} at n = {match[2]}"
        for number in numbers
        if (match := _CACHED.fullmatch(number.id)) and number.text == "yes"
    ]
    where = " and ".join(dict.fromkeys(found))
    text = f"Partly within the cache, so no memory bound: write bound on {where}." if found else ""
    for run in list(chosen.values())[:1]:
        yield _text(run, "shown.stage_timing.within_cache", text)


def aliases(runs: list[Run]) -> Iterator[Number]:
    """Yield ``alias.gpu`` and ``alias.cpu``: the reference machine of each kind, the first by name."""
    for name in ("gpu", "cpu"):
        found = sorted({run.scope for run in runs if run.role == "reference" and kind(run) == name})
        if found:
            run = next(run for run in runs if run.scope == found[0])
            yield _text(run, f"alias.{name}", run.scope)


def dataset_names(run: Run) -> str:
    """Name the data sets of objects; the four generators and rows without data are not worth a caption."""
    if run.study in GENERATED:
        return GENERATED[run.study]
    drawn = [name for name in run.datasets if name not in ("n/a", "none", "synthetic")]
    return " and ".join(human(DATASETS, name) for name in drawn or run.datasets)


def _text(run: Run, identifier: str, text: str) -> Number:
    origin = (run.role, run.machine, "", run.source)
    return make_number(identifier, origin, "provenance", "text", math.nan, text=text)
