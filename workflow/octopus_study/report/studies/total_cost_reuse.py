"""One batch used many times: what a method costs once and per use, and from how many uses on a lookup table is cheaper.

Intervals resample the blocks of every stage that goes into a number: setup, upload and kernel. Where several processes
measured, each gives a number of its own, and the interval is over them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from octopus_study.measure.dependence import PROCESS_BLOCKS, blocks_of, by_process, process_count
from octopus_study.measure.statistics import Interval, of_processes
from octopus_study.names import IMAGE_KERNELS, IMAGE_MIXES, SUBJECT
from octopus_study.report.frame import Frame, Key, Number, Source, make_number, published
from octopus_study.report.runs import Run, once
from octopus_study.report.samples import RESAMPLED, RESAMPLES, Group, blocks, groups
from octopus_study.report.selector import either, where
from octopus_study.report.student import mean_interval

if TYPE_CHECKING:
    import pandas as pd

STUDY = "total_cost"
PUBLISHED_OWNER, OWNER = OWNERS = ("block-metadata-published", "block-metadata")
PUBLISHED_TABLE, SAME_TABLE = "lookup-published", "lookup-vectorised"
TABLES = (PUBLISHED_TABLE, SAME_TABLE, "lookup-device")
CHALLENGERS = (*OWNERS, SUBJECT)
FIRST_KERNEL = next(iter(IMAGE_KERNELS))
NEVER, UNDECIDED = "never", "undecided"
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


class Draws(NamedTuple):
    """A value with what its interval is made of.

    Attributes
    ----------
    values : ndarray, (1 + draws,)
        First as measured, then of resampled blocks or, where several processes measured, of each of them.
    blocks : int
        How many it rests on.
    processes : int
    selector : str
        Of its rows.
    """

    values: np.ndarray
    blocks: int
    processes: int = 1
    selector: str = ""

    @property
    def note(self) -> str:
        """What the interval rests on; empty where there is none."""
        return "" if self.blocks < 2 else of_processes(self.processes) or f"{RESAMPLED} blocks"

    @property
    def interval(self) -> Interval:
        """The value with its interval (95 %); an infinite end says that it has none."""
        value, draws = float(self.values[0]), self.values[1:]
        if self.blocks < 2 or not draws.size:
            return Interval(value, math.nan, math.nan, self.blocks)
        if self.processes == 1:
            low, high = np.quantile(draws, (0.025, 0.975), method="inverted_cdf")
        elif np.isinf(draws).any():
            value, low, high = math.inf, draws.min(), math.inf
        else:
            value, low, high = np.exp(mean_interval(np.log(draws))[:3])
        return Interval(float(value), float(low), float(high), self.blocks)


class Sampled(NamedTuple):
    """What the methods cost on one workload, as measured and drawn.

    Attributes
    ----------
    once, each : dict
        Milliseconds before the first kernel, and of each kernel, by method, (1 + draws,).
    kernels : DataFrame
        Milliseconds of the kernels, a row per block.
    blocks : int
        The fewest of any stage.
    """

    once: dict[str, np.ndarray]
    each: dict[str, np.ndarray]
    kernels: pd.DataFrame
    blocks: int

    def ratio(self, table: str, method: str, uses: float) -> Draws:
        """Return time with a table / time with a method after so many uses."""
        times = [self.once[name] + uses * self.each[name] for name in (table, method)]
        return Draws(times[0] / times[1], self.blocks, process_count(self.kernels))

    def crossover(self, table: str, method: str) -> Draws:
        """Return the uses from which on a table is cheaper than a method, infinite for never."""
        saved = draw(self.kernels[method] - self.kernels[table])
        uses = crossover(saved, self.once[table] - self.once[method])
        return Draws(uses, self.blocks, process_count(self.kernels))


def crossover(saved: np.ndarray, dearer: np.ndarray) -> np.ndarray:
    """Return the uses from which on a lookup table is the cheaper one; infinite for never.

    Parameters
    ----------
    saved : ndarray
        Milliseconds by which each use of the table is shorter.
    dearer : ndarray
        Milliseconds by which the table takes longer to set up.

    Notes
    -----
    It is 1 where the table is cheaper from the first use, and never where it ends up dearer, even if it was cheaper
    for a while.
    """
    uses = np.floor(np.divide(dearer, saved, out=np.full(np.shape(saved), math.inf), where=saved > 0)) + 1
    return np.where((saved == 0) & (dearer < 0), 1.0, np.maximum(uses, 1.0))


def draw(table: pd.DataFrame | pd.Series) -> np.ndarray:
    """Return medians over the blocks, (1 + draws, ...): as measured, then of blocks drawn with replacement, or of each
    process where several measured.

    Parameters
    ----------
    table : DataFrame or Series, (blocks, ...)
        Indexed by block. Blocks are drawn whole, so that methods stay paired.
    """
    values = table.to_numpy()
    parts = by_process(values, blocks_of(table))
    if len(parts) > 1:
        drawn = np.stack([np.median(part, axis=0) for part in parts])
    else:
        chosen = np.random.default_rng(0).integers(0, len(values), (RESAMPLES, len(values)))
        drawn = np.median(values[chosen], axis=1)
    return np.concatenate([np.median(values, axis=0)[None], drawn])


def together(*tables: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the blocks of those processes that measured all of some tables."""
    common = set.intersection(*({*(table.index // PROCESS_BLOCKS)} for table in tables))
    return [table[(table.index // PROCESS_BLOCKS).isin(common)] for table in tables]


@once
def sampled(run: Run) -> Iterator[tuple[Group, Sampled]]:
    """Yield the workloads whose kernels the host timed, with what each method costs. Setup and upload are those of the
    mix with its light kernel."""
    stages = {
        (group.workload, group.quantity): blocks(rows)
        for group, rows in groups(run, layer="host", unit="ms")
        if group.quantity in ("setup", "upload", "kernel")
    }
    for group, _ in groups(run, quantity="kernel", layer="host"):
        mix = group.workload.replace("-heavy", "-light")
        parts = [stages.get((mix, "setup")), stages[group.workload, "kernel"], stages.get((mix, "upload"))]
        shown = together(*(part for part in parts if part is not None))
        if parts[0] is not None and min(map(len, shown)):
            once, each = _by_method(shown[0]), _by_method(shown[1])
            for name, times in _uploads(shown[2:]).items():
                once[name] = once[name] + times if name in once else times
            both = [name for name in each if name in once]
            once, each = ({name: one[name] for name in both} for one in (once, each))
            yield group, Sampled(once, each, shown[1], min(map(len, shown)))


def rests(workload: str, n: int | None, *methods: str) -> str:
    """Return the selector of what methods cost in a workload; see :func:`sampled`."""
    mix, uploaded = workload.replace("-heavy", "-light"), [PUBLISHED_TABLE] if SAME_TABLE in methods else []
    once = where(workload=mix, n=n, quantity="setup", layer="host", method=methods)
    there = dict.fromkeys([*methods, *uploaded])
    upload = where(workload=mix, n=n, quantity="upload", layer="host", method=there)
    return either(
        [once, upload, where(workload=workload, n=n, quantity="kernel", layer="host", method=methods)]
    )


def _uploads(upload: list[pd.DataFrame]) -> dict[str, np.ndarray]:
    """Return what is uploaded, by method: a table takes as long, whether one call filled it or a loop."""
    times = _by_method(upload[0]) if upload else {}
    if PUBLISHED_TABLE in times:
        times.setdefault(SAME_TABLE, times[PUBLISHED_TABLE])
    return times


def _by_method(table: pd.DataFrame) -> dict[str, np.ndarray]:
    return dict(zip(map(str, table.columns), draw(table).T, strict=True))


def parts(frame: Frame, case: Key, method: str) -> dict[str, float]:
    """Return the milliseconds of each step that a method has in a workload.

    Setup and copies are those of the mix with its light kernel; the result's way back is the same for all methods, and
    a table's way there is the same for both that are filled on the host.
    """
    case = case.but(method=method, layer="host")
    mix = case.but(workload=case.workload.replace("-heavy", "-light"))
    back = [frame.value(mix.but(method=name, quantity="download")) for name in (method, SUBJECT)]
    there = [frame.value(mix.but(method=name, quantity="upload")) for name in (method, PUBLISHED_TABLE)]
    values = {"setup": frame.value(mix.but(quantity="setup"))}
    values["upload"] = _first(there if method == SAME_TABLE else there[:1])
    values["kernel"] = frame.value(case.but(quantity="kernel"))
    values["download"] = _first(back)
    return {part: value for part, value in values.items() if value == value}


def _first(values: list[float]) -> float:
    return next((value for value in values if value == value), math.nan)


def cost(frame: Frame, case: Key, method: str) -> Cost | None:
    """Return what a method costs once and per use; None where its kernel or set-up was not measured."""
    values = parts(frame, case, method)
    if "kernel" not in values or "setup" not in values:
        return None
    return Cost(values["setup"] + values.get("upload", 0.0), values["kernel"])


def crossovers(run: Run) -> Iterator[Number]:
    """Yield the uses from which on each table is the cheaper one, with its interval; the text says never, or that the
    kernels don't differ enough to tell."""
    for group, costs in sampled(run):
        for table in TABLES:
            for method in CHALLENGERS:
                if {method, table} <= set(costs.once):
                    found = costs.crossover(table, method)
                    key = run.key(group.workload, int(group.n), table, derived="crossover", other=method)
                    chosen = rests(group.workload, group.n, table, method)
                    yield _uses_of(key, run.from_rows(group.dataset, chosen), found)


def _uses_of(key: Key, source: Source, drawn: Draws) -> Number:
    note, found = f"setup + upload + uses * kernel, from medians; {drawn.note}", drawn.interval
    if math.isfinite(found.high) and math.isfinite(found.value):
        return make_number(key, source, "count", *found, note=note)
    # Never in nearly all resamples, or in some of them.
    text = NEVER if math.isinf(found.low) else UNDECIDED
    return make_number(key, source, "count", math.nan, text=text, note=f"{note}; {text}")


def reuse(run: Run, frame: Frame) -> Iterator[Number]:
    """Yield ``reuse.<name>.<kernel>.<table>.over_<owner>``: time with a table / time with block metadata after the
    published numbers of uses, on the smallest mix; at most 1 where the table has caught up."""
    mix = next(iter(IMAGE_MIXES))
    for group, costs in sampled(run):
        kernel = group.workload.removeprefix(f"{mix}-")
        for name, pattern in _USES.items() if kernel in IMAGE_KERNELS else ():
            uses = _published_uses(frame, pattern.format(kernel=kernel))
            for table in TABLES:
                for owner in OWNERS:
                    if {owner, table} <= set(costs.once) and math.isfinite(uses):
                        key = run.key(f"reuse.{name}.{kernel}", method=table, derived="over", other=owner)
                        chosen = rests(group.workload, group.n, table, owner)
                        source = run.from_rows(group.dataset, chosen)
                        found = costs.ratio(table, owner, uses)
                        note = f"setup + upload + {uses:g} kernels, from medians; {found.note}"
                        yield make_number(key, source, "ratio", *found.interval, note=note)


def _published_uses(frame: Frame, name: str) -> float:
    """Return a published number of uses; a limit that is printed as "100+" begins at its lower end."""
    number = frame[name]
    return number.value if number.known else number.low
