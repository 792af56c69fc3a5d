"""What only the study of total cost knows: gains over each form of the lookup table, the number of reuses from which
a table pays."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from octopus_study.measure.statistics import median_interval
from octopus_study.report.derive.comparisons import SUBJECT, floor_of, speedup
from octopus_study.report.derive.samples import Group, groups, origin, pivot
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import Run
from octopus_study.report.text import quantity_text, significant, with_unit

if TYPE_CHECKING:
    import pandas as pd

PUBLISHED_TABLE = "lookup-published"
FAIR_TABLES = ("lookup-vectorised", "lookup-device")
TABLES = (PUBLISHED_TABLE, *FAIR_TABLES)
CHALLENGERS = ("block-metadata", SUBJECT)
LADDER = ("one-thread-per-image", "linear-search")
PARTS = ("setup", "upload", "kernel")
NO_DOWNLOAD = "total_without_download"
NEVER, UNDECIDED = "never", "undecided"


class Cost(NamedTuple):
    """Milliseconds before the first kernel, and of each kernel."""

    once: float
    each: float

    def after(self, uses: float) -> float:
        """Return the milliseconds of so many uses of one batch."""
        return self.once + self.each * uses


def shared_case(name: str) -> str:
    """Return the workload, or start of ids, with which setup and copies of a mix were measured: the light one."""
    return name.replace("-heavy", "-light")


def crossover(saved: float, dearer: float) -> float:
    """Return the uses from which on a lookup table is the cheaper way; NaN for never.

    Parameters
    ----------
    saved : float
        Milliseconds by which each use of the table is shorter.
    dearer : float
        Milliseconds by which the table takes longer to set up.

    Notes
    -----
    It is 1 where the table is cheaper from the first use, and never where it ends up dearer, even if it was cheaper
    for a while.
    """
    if saved <= 0:
        return 1.0 if saved == 0 and dearer < 0 else math.nan
    return float(max(1, math.floor(dearer / saved) + 1))


def total_cost_numbers(run: Run) -> Iterator[Number]:
    """Yield the study's derived numbers."""
    derived: list[Number] = []
    for group, rows in groups(run, unit="ms"):
        table = pivot(rows)
        if len(table) > 1:
            floor = floor_of(table)
            for other in (*TABLES, "thread-search"):
                if {"block-metadata", other} <= set(table.columns):
                    derived += speedup(run, group, table, ("block-metadata", other), floor)
            yield from _ladder(run, group, table, floor)
    derived += memory_gains(run, CHALLENGERS, TABLES)
    for (dataset, workload, n), costs in _costs(run).items():
        where = Group(dataset, workload, n, "total", "host")
        derived += _crossovers(run, where, costs)
        derived += _without_download(run, where, costs)
    yield from derived
    yield from _gain_ranges(run, derived)


def _ladder(run: Run, group: Group, table: pd.DataFrame, floor: float) -> Iterator[Number]:
    """Yield ``<scope>.total_cost.ladder.<baseline>``: time of an unfair baseline / time of Octopus."""
    for other in LADDER if group.quantity == "kernel" and SUBJECT in table else ():
        if other in table:
            for number in list(speedup(run, group, table, (SUBJECT, other), floor))[:1]:
                yield number._replace(id=f"{run.scope}.{run.study}.ladder.{other}")


def memory_gains(run: Run, challengers: tuple[str, ...], tables: tuple[str, ...]) -> Iterator[Number]:
    """Yield how many times as many bytes another way takes, as ``<method>.map_bytes.deterministic.gain_over_<way>``."""
    for group, rows in groups(run, quantity="map_bytes"):
        known = rows.dropna(subset="value").groupby("method")["value"].first()
        for method in challengers:
            for other in tables:
                if method in known and other in known and known[method] > 0:
                    key = f"{group.prefix(run, method)}.gain_over_{other}"
                    where = (origin(run, group.dataset), group.selector(f"{method} and {other}"))
                    value = float(known[other] / known[method])
                    yield make_number(key, *where, "ratio", value, note="bytes / bytes")


def _costs(run: Run) -> dict[tuple[str, str, int], dict[str, Cost]]:
    """Return what each method costs once and per use, from medians; a step without rows costs nothing, a method
    without a kernel has no cost."""
    found: dict[tuple[str, str, int], dict[str, dict[str, float]]] = {}
    rows = run.rows[(run.rows["layer"] == "host") & run.rows["quantity"].isin(PARTS)]
    medians = (
        rows.dropna(subset="value")
        .groupby(["dataset", "workload", "n", "method", "quantity"])["value"]
        .median()
    )
    for (dataset, workload, n, method, quantity), value in medians.items():
        found.setdefault((dataset, workload, n), {}).setdefault(method, {})[quantity] = float(value)
    for (dataset, workload, n), methods in found.items():
        shared = found.get((dataset, shared_case(workload), n), {})
        for method in methods:
            methods[method] = shared.get(method, {}) | methods[method]
    return {
        case: {
            method: Cost(parts.get("setup", 0.0) + parts.get("upload", 0.0), parts["kernel"])
            for method, parts in methods.items()
            if "kernel" in parts and "setup" in parts
        }
        for case, methods in found.items()
    }


def _crossovers(run: Run, group: Group, costs: dict[str, Cost]) -> Iterator[Number]:
    """Yield the uses from which on each table is the cheaper one, with the interval that follows from that of the
    kernels' paired differences; the text says never, or that the kernels don't differ enough to tell."""
    prefix = f"{run.scope}.{run.study}.{group.workload}.n{group.n}"
    times = groups(run, **(group._asdict() | {"quantity": "kernel"}))
    blocks = next((pivot(rows) for _, rows in times), None)
    for table, method in ((table, method) for table in TABLES for method in CHALLENGERS):
        if table not in costs or method not in costs or blocks is None:
            continue
        both = blocks[[method, table]].dropna()
        saved = median_interval(both[method] - both[table])
        dearer = costs[table].once - costs[method].once
        value, low, high = (crossover(end, dearer) for end in (saved.value, saved.high, saved.low))
        text = quantity_text(value, "count") if value == value else NEVER
        if saved.low <= 0 < saved.high:
            value, low, high, text = math.nan, math.nan, math.nan, UNDECIDED
        where = (origin(run, group.dataset), f"workload={group.workload}, n={group.n}, {table} and {method}")
        note = f"setup + upload + uses * kernel, from medians; {text}"
        key = f"{prefix}.{table}.crossover_over_{method}"
        yield make_number(key, *where, "count", value, low, high, text=text, note=note)


def _without_download(run: Run, group: Group, costs: dict[str, Cost]) -> Iterator[Number]:
    """Yield setup + upload + kernel of each method, and the gains over the tables, as the larger published total."""
    for method, cost in costs.items():
        where = (origin(run, group.dataset), group.selector(method))
        prefix = group._replace(quantity=NO_DOWNLOAD).prefix(run, method)
        yield make_number(prefix, *where, "ms", cost.after(1), note="setup + upload + kernel, from medians")
        for table in TABLES if method in CHALLENGERS else ():
            if table in costs:
                gain = costs[table].after(1) / cost.after(1)
                yield make_number(f"{prefix}.gain_over_{table}", *where, "ratio", gain, note="time / time")


# A gain -> the part of the ids that hold it; on a GPU kernels are compared by device events.
GAINS = {
    "setup": ".setup.host.speedup_over_",
    "upload": ".upload.host.speedup_over_",
    "kernel": ".kernel.{layer}.speedup_over_",
    "memory": ".map_bytes.deterministic.gain_over_",
    "total": ".total.host.speedup_over_",
    "without_download": f".{NO_DOWNLOAD}.host.gain_over_",
}


def _gain_ranges(run: Run, derived: list[Number]) -> Iterator[Number]:
    """Yield the gains of block metadata over each table by workload, whatever its number of images, and the least and
    the greatest of them."""
    on_device = any(".kernel.device." in number.id for number in derived)
    for name, part in GAINS.items():
        for table in TABLES:
            ending = f".block-metadata{part.format(layer='device' if on_device else 'host')}{table}"
            found = {
                number.id.split(".")[2]: number
                for number in derived
                if number.id.endswith(ending) and math.isfinite(number.value)
            }
            if found:
                yield _range(run, f"gain.{name}.block-metadata.over_{table}", list(found.values()))
            for workload, number in found.items():
                key = f"{run.scope}.{run.study}.gain.{name}.{workload}.block-metadata.over_{table}"
                yield number._replace(id=key)


def _range(run: Run, name: str, numbers: list[Number]) -> Number:
    values = [number.value for number in numbers]
    low, high = min(values), max(values)
    ends = dict.fromkeys([significant(low), significant(high)])
    where = (f"{run.scope}.{run.study}.{name}", origin(run, "synthetic"), f"{len(values)} workloads")
    text = with_unit("\u2013".join(ends), "ratio")
    middle = float(sorted(values)[len(values) // 2])
    note = f"least and greatest of {len(values)} workloads"
    return make_number(*where, "ratio", middle, low, high, text=text, note=note)
