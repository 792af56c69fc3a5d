"""The points of the sensor's trace that the figure shows: the self-test, and one round of windows at one count."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from octopus_study.report.derive.samples import origin
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import Run

if TYPE_CHECKING:
    import pandas as pd

SHOWN_COUNT = 1000
SELF_TEST = "self-test"
# Seconds of the trace that are shown before the first window of the round and after the last one.
_MARGIN = 4.0
_LAYER = "back_to_back"


def trace_numbers(run: Run, scope: str) -> Iterator[Number]:
    """Yield ``<scope>.power.trace.<part>.<method>.t<ms>`` in watts, and the windows and phases within them."""
    trace = run.rows[(run.rows["layer"] == "trace") & (run.rows["quantity"] == f"power_{scope}")]
    trace = trace[trace["value"].notna()]
    test = ((run.provenance.get("extra") or {}).get("power") or {}).get("selftest") or {}
    last = trace.loc[trace["method"] == SELF_TEST, "block"].max()
    yield from _points(run, "selftest", trace[trace["block"] <= last])
    yield from _self_test(run, test)
    windows = shown_windows(run)
    if len(windows):
        start, end = windows["start"].min() - _MARGIN, windows["end"].max() + _MARGIN
        seconds = trace["block"] / 1000
        chosen = trace[~(trace["block"] <= last) & seconds.between(start, end)]
        yield from _points(run, "round", chosen)
        yield from _window_ends(run, windows)


def shown_windows(run: Run) -> pd.DataFrame:
    """Return the windows of the shown round: method, n, start and end in seconds since the trace's zero.

    It is the first round of the published count, or of the largest one, that has every method.
    """
    rows = run.rows[(run.rows["layer"] == _LAYER) & run.rows["value"].notna()]
    counts = sorted(rows.loc[rows["quantity"] == "window_start", "n"].unique())
    if not counts:
        return rows[:0]
    n = SHOWN_COUNT if SHOWN_COUNT in counts else counts[-1]
    rows = rows[rows["n"] == n]
    table = rows[rows["quantity"].isin(["window_start", "window"])].pivot(
        index=["block", "method"], columns="quantity", values="value"
    )
    table = table.dropna().reset_index()
    sizes = table.groupby("block")["method"].nunique()
    first = sizes[sizes == sizes.max()].index.min()
    chosen = table[table["block"] == first].assign(n=n)
    return chosen.assign(start=chosen["window_start"], end=chosen["window_start"] + chosen["window"])


def _points(run: Run, part: str, rows: pd.DataFrame) -> Iterator[Number]:
    for row in rows.itertuples():
        key = f"{run.scope}.{run.study}.trace.{part}.{row.method}.t{row.block}"
        selector = f"layer=trace, n={row.n}, method={row.method}, block={row.block} (ms)"
        yield make_number(key, origin(run, row.dataset), selector, "W", float(row.value))


def _window_ends(run: Run, windows: pd.DataFrame) -> Iterator[Number]:
    for row in windows.itertuples():
        for name in ("start", "end"):
            key = f"{run.scope}.{run.study}.trace.window.n{row.n}.{row.method}.{name}"
            selector = (
                f"layer={_LAYER}, n={row.n}, method={row.method}, block={row.block}, window_start and window"
            )
            yield make_number(key, origin(run, "n/a"), selector, "s", float(getattr(row, name)))


def _self_test(run: Run, test: dict[str, Any]) -> Iterator[Number]:
    """Yield the phases of the self-test, and what each check said; its first sample is the trace's zero too."""
    where = (origin(run, ""), "provenance, extra.power.selftest")
    for index, phase in enumerate(test.get("phases", [])):
        prefix = f"{run.scope}.{run.study}.selftest.phase{index}.{phase['phase']}"
        for name, key in (("start", "start_seconds"), ("end", "end_seconds")):
            yield make_number(f"{prefix}.{name}", *where, "s", float(phase[key]))
        for name, key in (("mean", "mean_w"), ("deviation", "deviation_w")):
            if phase.get(key) is not None:
                yield make_number(f"{prefix}.{name}", *where, "W", float(phase[key]))
    for check in test.get("checks", []):
        key = f"{run.scope}.{run.study}.selftest.check.{check['id']}"
        yield make_number(
            key, *where, "text", math.nan, text=str(check["detail"]), note=str(check["outcome"])
        )
