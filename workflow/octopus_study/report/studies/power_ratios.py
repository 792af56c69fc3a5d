"""Ratios of two methods' energies, taken apart into time and power, from the paired windows of a run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from octopus_study.names import AGAIN, PUBLISHED_PAIR, SHORT_METHODS, SUBJECT, human
from octopus_study.report.frame import Key, Number, make_number, make_text
from octopus_study.report.runs import Run
from octopus_study.report.samples import Group, alone, groups, noted, paired, pivot
from octopus_study.report.selector import either, where
from octopus_study.report.studies import power_view as power
from octopus_study.report.studies.power_decomposition import (
    NO_FLOORS,
    Decomposition,
    Floors,
    Ratio,
    decompose,
    paired_ratio,
    sentence,
)
from octopus_study.report.studies.power_quality import sensor_scope

if TYPE_CHECKING:
    import pandas as pd

TWICE = (SUBJECT, f"{SUBJECT}{AGAIN}")
_NOTE = "paired windows, Student's t over the logarithms of their ratios"


def _energies(run: Run, layer: str) -> Iterator[tuple[Group, pd.DataFrame]]:
    """Yield the energies per frame on a layer, one table per count."""
    for group, rows in groups(run, quantity=f"energy_per_frame_{sensor_scope(run)}", layer=layer):
        yield group, pivot(rows)


def _key(run: Run, group: Group, pair: tuple[str, str], part: str) -> Key:
    return group.key(run, pair[0]).but(quantity=f"over_{pair[1]}", derived=part)


def _pairs(run: Run) -> Iterator[tuple[Group, tuple[str, str], Decomposition, str]]:
    """Yield the ratios of every two methods that share windows back to back, Octopus entered twice among them, with
    what their intervals don't hold."""
    for group, energies in _energies(run, power.BACK_TO_BACK):
        chosen = groups(run, **(group._asdict() | {"quantity": "time_per_frame"}))
        times = next((pivot(rows) for _, rows in chosen), run.rows[:0])
        for pair in (*power.PAIRS, TWICE):
            both = [paired(table, *pair) for table in (times, energies)]
            rounds = both[0].index.intersection(both[1].index)
            if len(rounds) > 1:
                columns = [table.loc[rounds, method] for method in pair for table in both]
                yield group, pair, decompose(*columns), alone(columns[0])


def back_to_back(run: Run) -> Iterator[Number]:
    """Yield the three ratios of every pair and count, the share of time and the sentence; of the published pair also
    what is saved."""
    found = list(_pairs(run))
    seen = [Floors(*map(_farther, parts[:3])) for _, pair, parts, _ in found if pair == TWICE]
    floors = Floors(*map(max, zip(*seen, strict=True))) if seen else NO_FLOORS
    for group, pair, ratios, caveat in found:
        if pair != TWICE:
            yield from _parts(run, group, pair, ratios, floors, caveat)


def _parts(
    run: Run, group: Group, pair: tuple[str, str], ratios: Decomposition, floors: Floors, caveat: str
) -> Iterator[Number]:
    source = _both(group).rows_of(run, " and ".join(pair))
    note = noted(f"{pair[0]} / {pair[1]}, {ratios.windows} {_NOTE}", caveat)
    for name in Floors._fields:
        ratio = getattr(ratios, name)
        yield make_number(_key(run, group, pair, name), source, "ratio", *ratio, ratios.windows, note=note)
    if pair == PUBLISHED_PAIR:
        for name, ends in _changes(ratios).items():
            yield make_number(
                _key(run, group, pair, name), source, "fraction", *ends, ratios.windows, note=note
            )
    share = ratios.share_of_time
    if math.isfinite(share):
        key = _key(run, group, pair, "share").but(other="time")
        yield make_number(key, source, "fraction", share, note="log time / log energy")
    quantities = (group.quantity, "time_per_frame")
    twice = where(quantity=quantities, layer=group.layer, method=TWICE)
    source = source._replace(selector=either([source.selector, twice]))  # with the noise floors of all counts
    yield make_text(_key(run, group, pair, "sentence"), source, sentence(ratios, floors), note)


def _both(group: Group) -> Group:
    return group._replace(quantity=f"{group.quantity} and time_per_frame")


def _changes(ratios: Decomposition) -> dict[str, tuple[float, float, float]]:
    """Return the ratios as what is saved or added, each with the ends of its interval in ascending order."""

    def saved(ratio: Ratio) -> tuple[float, float, float]:
        return 1 - ratio.value, 1 - ratio.high, 1 - ratio.low

    time, power = ratios.time, ratios.power
    return {
        "time_saved": saved(time),
        "energy_saved": saved(ratios.energy),
        "power_added": (power.value - 1, power.low - 1, power.high - 1),
        "longer": (1 / time.value - 1, 1 / time.high - 1, 1 / time.low - 1),
    }


def noise(run: Run) -> Iterator[Number]:
    """Yield by how much time, power and energy of one method under two names seem to differ."""
    for group, pair, parts, _ in _pairs(run):
        if pair == TWICE:
            source, note = _both(group).rows_of(run, " and ".join(pair)), f"{' against '.join(pair)}, {_NOTE}"
            for name in Floors._fields:
                key = run.key(group.workload, int(group.n), quantity=f"{name}_noise_floor")
                floor = _farther(getattr(parts, name))
                yield make_number(
                    key, source, "fraction", floor, note=f"{note}; the farther end of the interval"
                )


def _farther(ratio: Ratio) -> float:
    """Return the end of an interval that lies farther from 1, as a fraction."""
    return math.expm1(max(abs(math.log(ratio.low)), abs(math.log(ratio.high))))


def paced(run: Run) -> Iterator[Number]:
    """Yield the ratios of energies at a fixed frame rate, where time is given."""
    for group, energies in _energies(run, power.PACED):
        for pair in power.PAIRS:
            both = paired(energies, *pair)
            if len(both) > 1:
                ratio = paired_ratio(both[pair[0]], both[pair[1]])
                source = group.rows_of(run, f"{pair[0]} and {pair[1]}")
                note = f"{pair[0]} / {pair[1]}, {len(both)} {_NOTE}"
                yield make_number(
                    _key(run, group, pair, "energy"), source, "ratio", *ratio, len(both), note=note
                )


def paced_facts(run: Run) -> Iterator[Number]:
    """Yield that a fixed frame rate was measured, the rate, and which methods have no energy at it."""
    names = ("energy_per_frame", f"energy_per_frame_{sensor_scope(run)}")
    rows = run.rows[(run.rows["layer"] == power.PACED) & run.rows["quantity"].isin(names)]
    if rows["value"].notna().sum() == 0:
        return
    rate = _frame_rate(run)
    gaps = rows[rows["value"].isna()].drop_duplicates(["n", "method"])
    parts = [
        f"{human(SHORT_METHODS, row.method)} at n = {row.n} ({row.answer.partition(':')[2].strip()})"
        for row in gaps.itertuples()
    ]
    texts = {"paced": "measured", "frame_rate": f"{rate:g}" if rate == rate else ""}
    for name, text in (texts | {"paced_gaps": "; ".join(parts)}).items():
        if text:
            yield make_text(run.fact_key(name), run.from_rows("", "layer=paced"), text)


def _frame_rate(run: Run) -> float:
    """Return frames per second as the windows counted them: frames / seconds, rounded to what a camera gives."""
    rows = run.rows[(run.rows["layer"] == power.PACED) & run.rows["value"].notna()]
    index = ["n", "method", "block"]
    frames, seconds = (
        rows[rows["quantity"] == name].set_index(index)["value"] for name in ("frames", "window")
    )
    rates = (frames / seconds).dropna()
    return float(round(rates.median(), 1)) if len(rates) else math.nan


def idle_shares(run: Run) -> Iterator[Number]:
    """Yield which share of a frame's energy at a fixed frame rate is that of the idle device."""
    scope, rows = sensor_scope(run), run.rows[run.rows["layer"] == power.PACED]
    index = ["dataset", "workload", "n", "method", "block"]
    net, gross = (
        rows[rows["quantity"] == f"energy_per_frame_{name}"].set_index(index)["value"]
        for name in (f"net_{scope}", scope)
    )
    shares = (1 - net / gross).dropna().groupby(level=index[:-1]).median()
    for (dataset, workload, n, method), share in shares.items():
        source = run.from_rows(dataset, f"layer=paced, n={n}, method={method}")
        key = run.key(workload, n, method, quantity="paced_idle_share")
        note = "1 - net / gross, median of the windows"
        yield make_number(key, source, "fraction", float(share), note=note)
