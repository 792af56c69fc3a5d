"""Ratios of two methods' energies, taken apart into time and power, from the paired windows of a run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from octopus_study.power.decomposition import Decomposition, Ratio, decompose, paired_ratio, sentence
from octopus_study.report.derive.samples import AGAIN, Group, groups, origin, pivot
from octopus_study.report.labels import SHORT_METHODS, human
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import Run

if TYPE_CHECKING:
    import pandas as pd

PAIRS = (("published", "n-launches"), ("octopus", "published"), ("octopus", "n-launches"))
SUBJECT = "octopus"
BACK_TO_BACK, PACED = "back_to_back", "paced"
_NOTE = "paired windows, Student's t over the logarithms of their ratios"


def ratio_numbers(run: Run, scope: str) -> Iterator[Number]:
    """Yield ``<scope>.power.<workload>.n<n>.<method>.over_<other>.<layer>.<part>`` for every pair and count.

    Back to back there are ``time``, ``power`` and ``energy``; at a fixed frame rate, where time is given, ``energy``.
    """
    floor = _floor(run, scope)
    for group, rows in groups(run, quantity=f"energy_per_frame_{scope}"):
        energies = pivot(rows)
        times = _times(run, group)
        for pair in PAIRS:
            if group.layer == BACK_TO_BACK:
                yield from _parts(run, group, pair, _both(energies, pair), _both(times, pair), floor)
            elif group.layer == PACED:
                yield from _energy(run, group, pair, _both(energies, pair))
        if group.layer == BACK_TO_BACK:
            yield from _noise(run, group, energies)
    yield from _paced_facts(run, scope)


def _times(run: Run, group: Group) -> pd.DataFrame:
    chosen = groups(run, **(group._asdict() | {"quantity": "time_per_frame"}))
    return next((pivot(rows) for _, rows in chosen), run.rows[:0])


def _both(table: pd.DataFrame, pair: tuple[str, str]) -> pd.DataFrame:
    """Return the windows that both methods have, one row per round."""
    return table[list(pair)].dropna() if set(pair) <= set(table.columns) else table[:0]


def _prefix(run: Run, group: Group, pair: tuple[str, str]) -> str:
    return f"{run.scope}.{run.study}.{group.workload}.n{group.n}.{pair[0]}.over_{pair[1]}.{group.layer}"


def _parts(
    run: Run,
    group: Group,
    pair: tuple[str, str],
    energies: pd.DataFrame,
    times: pd.DataFrame,
    floor: float,
) -> Iterator[Number]:
    """Yield the three ratios, what they save, the share of time and the sentence."""
    rounds = energies.index.intersection(times.index)
    if len(rounds) < 2:
        return
    method, other = pair
    energies, times = energies.loc[rounds], times.loc[rounds]
    found = decompose(times[method], energies[method], times[other], energies[other])
    prefix = _prefix(run, group, pair)
    where = (origin(run, group.dataset), group.selector(f"{method} and {other}"))
    note = f"{method} / {other}, {len(rounds)} {_NOTE}"
    for name, ratio in (("time", found.time), ("power", found.power), ("energy", found.energy)):
        yield make_number(f"{prefix}.{name}", *where, "ratio", *ratio[:3], note=note)
    for name, ends in _changes(found).items():
        yield make_number(f"{prefix}.{name}", *where, "fraction", *ends, note=note)
    share = found.share_of_time
    if math.isfinite(share):
        yield make_number(f"{prefix}.share_of_time", *where, "fraction", share, note="log time / log energy")
    yield make_number(f"{prefix}.sentence", *where, "text", math.nan, text=sentence(found, floor), note=note)


def _changes(found: Decomposition) -> dict[str, tuple[float, float, float]]:
    """Return the ratios as what is saved or added, each with the ends of its interval in ascending order."""

    def saved(ratio: Ratio) -> tuple[float, float, float]:
        return 1 - ratio.value, 1 - ratio.high, 1 - ratio.low

    time, power = found.time, found.power
    return {
        "time_saved": saved(time),
        "energy_saved": saved(found.energy),
        "power_added": (power.value - 1, power.low - 1, power.high - 1),
        "longer": (1 / time.value - 1, 1 / time.high - 1, 1 / time.low - 1),
    }


def _energy(run: Run, group: Group, pair: tuple[str, str], energies: pd.DataFrame) -> Iterator[Number]:
    if len(energies) < 2:
        return
    method, other = pair
    ratio = paired_ratio(energies[method], energies[other])
    where = (origin(run, group.dataset), group.selector(f"{method} and {other}"))
    note = f"{method} / {other}, {len(energies)} {_NOTE}"
    yield make_number(f"{_prefix(run, group, pair)}.energy", *where, "ratio", *ratio[:3], note=note)


def _noise(run: Run, group: Group, energies: pd.DataFrame) -> Iterator[Number]:
    """Yield by how much the energies of one method under two names seem to differ."""
    floor = _difference(energies)
    if floor == floor:
        key = f"{run.scope}.{run.study}.{group.workload}.n{group.n}.energy_noise_floor"
        note = f"{SUBJECT} against {SUBJECT}{AGAIN}, {_NOTE}; the farther end of the interval"
        yield make_number(key, origin(run, group.dataset), group.selector(), "fraction", floor, note=note)


def _difference(energies: pd.DataFrame) -> float:
    """Return the end of the interval of a method over itself that lies farther from 1, as a fraction; NaN without."""
    both = _both(energies, (SUBJECT, f"{SUBJECT}{AGAIN}"))
    if len(both) < 2:
        return math.nan
    ratio = paired_ratio(both[SUBJECT], both[f"{SUBJECT}{AGAIN}"])
    return math.expm1(max(abs(math.log(ratio.low)), abs(math.log(ratio.high))))


def _floor(run: Run, scope: str) -> float:
    """Return the largest noise floor of a run's energies back to back, which its sentences respect; 0 without one."""
    found = groups(run, quantity=f"energy_per_frame_{scope}", layer=BACK_TO_BACK)
    floors = [floor for _, rows in found if (floor := _difference(pivot(rows))) == floor]
    return max(floors, default=0.0)


def _paced_facts(run: Run, scope: str) -> Iterator[Number]:
    """Yield that a fixed frame rate was measured, the rate, and which arms have no energy at it."""
    names = ("energy_per_frame", f"energy_per_frame_{scope}")
    rows = run.rows[(run.rows["layer"] == PACED) & run.rows["quantity"].isin(names)]
    if rows["value"].notna().sum() == 0:
        return
    where = (origin(run, ""), "layer=paced")
    prefix = f"{run.scope}.{run.study}"
    yield make_number(f"{prefix}.paced", *where, "text", math.nan, text="measured")
    rate = _frame_rate(run)
    if rate == rate:
        yield make_number(f"{prefix}.frame_rate", *where, "text", math.nan, text=f"{rate:g}")
    yield from _idle_shares(run, scope, rows[rows["quantity"] == names[1]])
    gaps = rows[rows["value"].isna()]
    parts = [
        f"{human(SHORT_METHODS, row.method)} at n = {row.n} ({row.answer.partition(':')[2].strip()})"
        for row in gaps.drop_duplicates(["n", "method"]).itertuples()
    ]
    if parts:
        yield make_number(f"{prefix}.paced_gaps", *where, "text", math.nan, text="; ".join(parts))


def _idle_shares(run: Run, scope: str, gross: pd.DataFrame) -> Iterator[Number]:
    """Yield which share of a frame's energy at a fixed frame rate is that of the idle device."""
    net = run.rows[(run.rows["layer"] == PACED) & (run.rows["quantity"] == f"energy_per_frame_net_{scope}")]
    key = ["workload", "n", "method", "block"]
    shares = (1 - net.set_index(key)["value"] / gross.set_index(key)["value"]).dropna()
    for (workload, n, method), share in shares.groupby(level=["workload", "n", "method"]).median().items():
        name = f"{run.scope}.{run.study}.{workload}.n{n}.{method}.paced_idle_share"
        where = (origin(run, str(gross["dataset"].iloc[0])), f"layer=paced, n={n}, method={method}")
        yield make_number(
            name, *where, "fraction", float(share), note="1 - net / gross, median of the windows"
        )


def _frame_rate(run: Run) -> float:
    """Return frames per second as the windows counted them: frames / seconds, rounded to what a camera gives."""
    rows = run.rows[(run.rows["layer"] == PACED) & run.rows["value"].notna()]
    key = ["n", "method", "block"]
    frames, seconds = (
        rows[rows["quantity"] == name].set_index(key)["value"] for name in ("frames", "window")
    )
    rates = (frames / seconds).dropna()
    return float(round(rates.median(), 1)) if len(rates) else math.nan
