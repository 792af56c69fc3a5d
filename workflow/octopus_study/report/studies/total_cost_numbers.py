"""What only the study of total cost knows: gains over each form of the lookup table, the number of uses from which a
table pays, and whether published gains survive a fair table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from octopus_study.measure.statistics import Interval, median_interval
from octopus_study.report.frame import Frame, Key, Number, joined, make_number, make_text, published
from octopus_study.report.labels import IMAGE_KERNELS, IMAGE_MIXES
from octopus_study.report.machines import kind
from octopus_study.report.measured import SUBJECT, floor_of, medians, memory_gains, speedup, spread
from octopus_study.report.runs import Run
from octopus_study.report.samples import Group, groups, paired, pivot
from octopus_study.report.selector import either, where
from octopus_study.report.study import StudyReport
from octopus_study.report.text import quantity_text
from octopus_study.report.view import View, views

if TYPE_CHECKING:
    import pandas as pd

STUDY = "total_cost"
OWNER, PUBLISHED_TABLE = "block-metadata", "lookup-published"
TABLES = (PUBLISHED_TABLE, "lookup-vectorised", "lookup-device")
CHALLENGERS = (OWNER, SUBJECT)
LADDER = ("one-thread-per-image", "linear-search")
NO_DOWNLOAD = "total_without_download"
NEVER, UNDECIDED = "never", "undecided"
WORKLOADS = {
    f"{mix}-{kernel}": f"{name}, {kernel}" for kernel in IMAGE_KERNELS for mix, name in IMAGE_MIXES.items()
}
# Gain -> the columns of its numbers but for the table; bytes and kernels are those of one table, however it is filled.
GAINS = {
    "setup": {"quantity": "setup", "layer": "host", "derived": "speedup"},
    "upload": {"quantity": "upload", "layer": "host", "derived": "speedup"},
    "memory": {"quantity": "map_bytes", "layer": "deterministic", "derived": "gain"},
    "kernel": {"quantity": "kernel", "layer": "kernel", "derived": "speedup"},
    "total": {"quantity": "total", "layer": "host", "derived": "speedup"},
    "without_download": {"quantity": NO_DOWNLOAD, "layer": "host", "derived": "gain"},
}
# A gain -> the stage of the published one.
_STAGES = {"setup": "setup", "upload": "h2d", "total": "total", "without_download": "total-without-d2h"}
_FILLED = {
    PUBLISHED_TABLE: "filled image by image",
    "lookup-vectorised": "filled by one call",
    "lookup-device": "built on the device",
}
# Name -> the published number of uses, by kernel.
_USES = {
    "break_even": published("amortisation", "{kernel}", "break_even"),
    "limit": published("stated_limits", "same-batch-repeated", "repetitions"),
}


class Cost(NamedTuple):
    """Milliseconds before the first kernel, and of each kernel."""

    once: float
    each: float

    def after(self, uses: float) -> float:
        """Return the milliseconds of so many uses of one batch."""
        return self.once + self.each * uses


def crossover(saved: float, dearer: float) -> float:
    """Return the uses from which on a lookup table is the cheaper one; NaN for never.

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
    if not saved > 0:  # nor where too few blocks give an interval
        return 1.0 if saved == 0 and dearer < 0 else math.nan
    return float(max(1, math.floor(dearer / saved) + 1))


def parts(frame: Frame, case: Key, method: str) -> dict[str, float]:
    """Return the milliseconds of each step that a method has in a workload.

    Setup and copies are those of the mix with its light kernel, and the result's way back is the same for all methods.
    """
    case = case.but(method=method, layer="host")
    mix = case.but(workload=case.workload.replace("-heavy", "-light"))
    back = [frame.value(mix.but(method=name, quantity="download")) for name in (method, SUBJECT)]
    values = {name: frame.value(mix.but(quantity=name)) for name in ("setup", "upload")}
    values["kernel"] = frame.value(case.but(quantity="kernel"))
    values["download"] = next((value for value in back if value == value), math.nan)
    return {part: value for part, value in values.items() if value == value}


def cost(frame: Frame, case: Key, method: str) -> Cost | None:
    """Return what a method costs once and per use; None where its kernel or set-up was not measured."""
    values = parts(frame, case, method)
    if "kernel" not in values or "setup" not in values:
        return None
    return Cost(values["setup"] + values.get("upload", 0.0), values["kernel"])


def cases(view: View) -> list[Key]:
    """Return the total time of Octopus in each workload that was measured."""
    return view.cases(SUBJECT, "total", ("host",), order=list(WORKLOADS))


def measured(frame: Frame) -> list[View]:
    """Return the machines that measured some workload."""
    return [view for view in views(frame, STUDY) if cases(view)]


def _rests(workload: str, n: int | None, *methods: str) -> str:
    """Return the selector of what methods cost in a workload; see `parts`."""
    once = where(
        workload=workload.replace("-heavy", "-light"),
        n=n,
        quantity=("setup", "upload"),
        layer="host",
        method=methods,
    )
    return either([once, where(workload=workload, n=n, quantity="kernel", layer="host", method=methods)])


def _costs(run: Run) -> Iterator[tuple[Group, pd.DataFrame, dict[str, Cost]]]:
    """Yield the workloads whose kernels the host timed, with their blocks and what each method costs."""
    frame = Frame(medians(run, StudyReport()))
    for group, rows in groups(run, quantity="kernel", layer="host"):
        costs = {name: cost(frame, group.key(run, ""), name) for name in (*TABLES, *CHALLENGERS)}
        yield group, pivot(rows), {name: one for name, one in costs.items() if one}


def gains(run: Run) -> Iterator[Number]:
    """Yield the gains of block metadata over each table; the same by workload, whatever its number of images; and the
    least and the greatest of them."""
    numbers = [*_speedups(run), *memory_gains(run, (OWNER,), (PUBLISHED_TABLE,))]
    yield from numbers
    numbers += [number for number in without_download(run) if number.method == OWNER]
    names = {columns["quantity"]: name for name, columns in GAINS.items()}
    ranges: dict[tuple[str, str], list[Number]] = {}
    for number in numbers:
        name = names[number.quantity]
        ranges.setdefault((name, number.other), []).append(number)
        key = run.key(f"gain.{name}.{number.workload}", method=OWNER, derived="over", other=number.other)
        yield number.named(key)
    for (name, table), chosen in ranges.items():
        values = [number.value for number in chosen]
        key = run.key(f"gain.{name}", method=OWNER, derived="over", other=table)
        source = joined(*chosen)._replace(dataset="synthetic")
        yield spread(key, source, values, sorted(values)[len(values) // 2], "workloads")


def _speedups(run: Run) -> Iterator[Number]:
    timed = {"setup": "host", "upload": "host", "total": "host"}
    timed["kernel"] = "device" if kind(run) == "gpu" else "host"
    for group, rows in groups(run, unit="ms"):
        if timed.get(group.quantity) == group.layer:
            table = pivot(rows)
            for other in TABLES[:1] if group.quantity == "kernel" else TABLES:
                if len(table) > 1 and {OWNER, other} <= set(table.columns):
                    yield from list(speedup(run, group, table, (OWNER, other), math.nan))[:1]


def without_download(run: Run) -> Iterator[Number]:
    """Yield the gains in setup + upload + kernel over the tables, as the larger published total."""
    for group, _, costs in _costs(run):
        for method in CHALLENGERS:
            for table in TABLES:
                if {method, table} <= set(costs):
                    source = run.from_rows(group.dataset, _rests(group.workload, group.n, method, table))
                    key = group._replace(quantity=NO_DOWNLOAD).key(run, method).derive("gain", table)
                    value = costs[table].after(1) / costs[method].after(1)
                    yield make_number(key, source, "ratio", value, note="time / time")


def crossovers(run: Run) -> Iterator[Number]:
    """Yield the uses from which on each table is the cheaper one, with the interval that follows from that of the
    kernels' paired differences; the text says never, or that the kernels don't differ enough to tell."""
    for group, blocks, costs in _costs(run):
        for table in TABLES:
            for method in CHALLENGERS:
                if {method, table} <= set(costs):
                    both = paired(blocks, method, table)
                    saved = Interval(math.nan, math.nan, math.nan, 0)
                    if len(both):
                        saved = median_interval(both[method] - both[table])
                    dearer = costs[table].once - costs[method].once
                    ends = [crossover(end, dearer) for end in (saved.value, saved.high, saved.low)]
                    text = quantity_text(ends[0], "count") if ends[0] == ends[0] else NEVER
                    if not (saved.low > 0 or saved.high <= 0):
                        ends, text = [math.nan] * 3, UNDECIDED
                    key = run.key(group.workload, int(group.n), table, derived="crossover", other=method)
                    source = run.from_rows(group.dataset, _rests(group.workload, group.n, method, table))
                    note = "setup + upload + uses * kernel, from medians"
                    yield make_number(key, source, "count", *ends, text=text, note=f"{note}; {text}")


def ladder(run: Run) -> Iterator[Number]:
    """Yield ``ladder.<baseline>``: time of an unfair baseline / time of Octopus."""
    for group, rows in groups(run, unit="ms", quantity="kernel"):
        table = pivot(rows)
        for other in LADDER:
            if len(table) > 1 and {SUBJECT, other} <= set(table.columns):
                for number in list(speedup(run, group, table, (SUBJECT, other), floor_of(table)))[:1]:
                    yield number.named(run.key("ladder", method=other))


def survives(frame: Frame) -> Iterator[Number]:
    """Yield, gain by gain, against which tables the published one survives."""
    for view in views(frame, STUDY):
        for name, stage in _STAGES.items():
            gain = frame.get(published("pipeline_gain", stage, "gain"))
            key = view.key(f"gain.{name}", method=OWNER, derived="over")
            numbers = [number for table in TABLES if (number := view.get(key.but(other=table)))]
            if gain is not None and numbers:
                text = ", ".join(_survives(number, gain.value) for number in numbers)
                note = f"published: {gain.text}; survives where every workload reaches it"
                key = view.key(f"gain.{name}", quantity="survives")
                yield make_text(key, joined(*numbers), text, note)


def _survives(number: Number, gain: float) -> str:
    some = "survives in part" if number.high >= gain else "does not survive"
    verdict = "survives" if number.low >= gain else some
    return f"against a table {_FILLED[number.other]} it {verdict} ({number.text})"


def reuse(frame: Frame) -> Iterator[Number]:
    """Yield ``reuse.<name>.<kernel>.<table>.over_block-metadata``: time with a table / time with block metadata after
    the published numbers of uses, on the smallest mix; at most 1 where the table has caught up."""
    mix = next(iter(IMAGE_MIXES))
    for view in views(frame, STUDY):
        for case in cases(view):
            kernel = case.workload.removeprefix(f"{mix}-")
            ours = cost(frame, case, OWNER)
            if kernel not in IMAGE_KERNELS or ours is None:
                continue
            for name, pattern in _USES.items():
                number = frame[pattern.format(kernel=kernel)]
                # A limit that is printed as "100+" begins at its lower end.
                uses = number.value if number.known else number.low
                for table in TABLES:
                    other = cost(frame, case, table)
                    if other is not None and math.isfinite(uses):
                        key = view.key(f"reuse.{name}.{kernel}", method=table, derived="over", other=OWNER)
                        source = frame[case.but(method=table, quantity="kernel")].source
                        chosen = _rests(case.workload, case.n, table, OWNER)
                        source = source._replace(selector=chosen)
                        note = f"setup + upload + {uses:g} kernels, from medians"
                        ratio = other.after(uses) / ours.after(uses)
                        yield make_number(key, source, "ratio", ratio, note=note)
