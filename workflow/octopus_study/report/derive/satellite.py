"""What only the study of satellite tiles knows: what each rule saves on the way down, and the picture's parts."""

from __future__ import annotations

import math
from collections.abc import Iterator

from octopus_study.measure.statistics import median_interval
from octopus_study.report.derive.comparisons import SUBJECT, share_of_bound
from octopus_study.report.derive.edge import absent, single_values
from octopus_study.report.derive.samples import groups, origin, pivot
from octopus_study.report.derive.satellite_picture import INDEXED, picture_numbers
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import Run

RULES = ("fixed", "otsu", "byte-budget")
BOUND = "read-bound"
# The published scene: three channels of bytes, the tiles above a fixed threshold.
SIDE, CHANNELS, PUBLISHED = 8192, 3, ("full-rgb8", "fixed")
_BYTES_PER_PIXEL = {"uint16": 2, "rgb8": CHANNELS}
_GREENLAND = {
    "kept_tiles": "count",
    "kept_share": "fraction",
    "kept_bytes": "bytes",
    "kept_downlink_time": "s",
    "bandwidth_saved": "fraction",
    "pipeline_speedup": "ratio",
    "processing": "ms",
}

Case = tuple[str, str, int]
Interval = tuple[float, float, float]


def satellite_numbers(run: Run) -> Iterator[Number]:
    """Yield the study's derived numbers."""
    for group, rows in groups(run, unit="ms"):
        table = pivot(rows)
        if {SUBJECT, BOUND} <= set(table.columns):
            yield from share_of_bound(run, group, table, SUBJECT, BOUND)
    cases = dict(single_values(run, INDEXED))
    derived: list[Number] = []
    for case, values in cases.items():
        for rule in RULES:
            derived += _rule(run, case, values, rule)
    yield from derived
    yield from _answers(run)
    yield from _tiling(run, cases)
    yield from _greenland(run, cases, derived)
    yield from picture_numbers(run)


def processing(run: Run, case: Case) -> Interval | None:
    """Return milliseconds from the scene on the host to the flags there, with their interval; None where no time was
    taken."""
    dataset, workload, n = case
    where = {"dataset": dataset, "workload": workload, "n": n, "quantity": "end_to_end", "layer": "host"}
    for _, rows in groups(run, **where, method=SUBJECT):
        values = rows["value"].dropna().to_numpy()
        if values.size:
            return median_interval(values)[:3]
    return None


def _rule(run: Run, case: Case, values: dict[tuple[str, str], float], rule: str) -> Iterator[Number]:
    """Yield shares and times of one rule: ``<scope>.satellite.<workload>.n<tiles>.<rule>.<name>``."""
    dataset, workload, n = case
    where = (origin(run, dataset), f"workload={workload}, n={n}, method={rule}, layer=deterministic")
    prefix = f"{run.scope}.{run.study}.{workload}.n{n}.{rule}"
    kept, tiles = values.get((rule, "kept_tiles")), values.get(("scene", "tiles"))
    if kept is not None and tiles:
        yield make_number(f"{prefix}.kept_share", *where, "fraction", kept / tiles, note="tiles / tiles")
    size, whole = values.get((rule, "kept_bytes")), values.get(("scene", "scene_bytes"))
    if size is not None and whole:
        note = "1 - kept bytes / bytes of the scene"
        yield make_number(f"{prefix}.bandwidth_saved", *where, "fraction", 1 - size / whole, note=note)
    times = processing(run, case)
    sent, all_of_it = (
        values.get((rule, "kept_downlink_time")),
        values.get(("scene", "scene_downlink_time")),
    )
    if times is None or sent is None or not all_of_it:
        return
    yield make_number(f"{prefix}.processing", *where, "ms", *times, note=f"end_to_end of {SUBJECT}, host")
    value, low, high = [time / 1000 for time in times]
    gain = [all_of_it / (sent + time) for time in (value, high, low)]
    note = "downlink of the scene / (processing + downlink of the kept tiles)"
    yield make_number(f"{prefix}.pipeline_speedup", *where, "ratio", *gain, note=note)
    share = [time / (sent + time) for time in (value, low, high)]
    note = "processing / (processing + downlink of the kept tiles)"
    yield make_number(f"{prefix}.processing_share", *where, "fraction", *share, note=note)


def _answers(run: Run) -> Iterator[Number]:
    """Yield in words whether every rule kept the tiles of a NumPy reference."""
    rows = run.rows[(run.rows["quantity"] == "kept_tiles") & run.rows["value"].notna()]
    if rows.empty:
        return
    equal = int((rows["answer"] == "same").sum())
    text = f"in {'all' if equal == len(rows) else f'{equal} of'} {len(rows)} cases"
    where = (f"{run.scope}.{run.study}.flags_equal", origin(run, rows["dataset"].iloc[0]))
    note = "cases: scene, variant and rule; equal: the same flag for every tile"
    yield make_number(*where, "quantity=kept_tiles, answer", "text", math.nan, text=text, note=note)


def _tiling(run: Run, cases: dict[Case, dict[tuple[str, str], float]]) -> Iterator[Number]:
    """Yield what the published size of the scene fixes, whatever it shows: tiles and time to send it all."""
    found: dict[str, tuple[Case, float]] = {}
    for case, values in cases.items():
        variant = case[1].rpartition("-")[2]
        if values.get(("scene", "scene_bytes")) != _BYTES_PER_PIXEL.get(variant, 0) * SIDE**2:
            continue
        names = ("tiles", "scene_bytes", "scene_downlink_time") if variant == "rgb8" else ("tiles",)
        for name in names:
            if ("scene", name) in values:
                found[name] = (case, values["scene", name])
    for name, unit in (("tiles", "count"), ("scene_bytes", "bytes"), ("scene_downlink_time", "s")):
        key = f"{run.scope}.{run.study}.tiling.{name}"
        if name in found:
            (dataset, workload, n), value = found[name]
            selector = f"workload={workload}, n={n}, method=scene, quantity={name}"
            yield make_number(key, origin(run, dataset), selector, unit, value)
        else:
            why = f"needs a scene of {SIDE} \u00d7 {SIDE} px"
            yield absent((key, origin(run, "n/a"), "all rows"), why, unit)


def _greenland(
    run: Run, cases: dict[Case, dict[tuple[str, str], float]], derived: list[Number]
) -> Iterator[Number]:
    """Yield the published scene's numbers under names of their own, or why this run can't have them."""
    workload, rule = PUBLISHED
    case = next((one for one in cases if one[1] == workload and "synthetic" not in one[0]), None)
    known: dict[str, Number] = {}
    if case is not None:
        where = (origin(run, case[0]), f"workload={workload}, n={case[2]}, method={rule}")
        start = f"{run.scope}.{run.study}.{workload}.n{case[2]}.{rule}."
        known = {number.id.removeprefix(start): number for number in derived if number.id.startswith(start)}
        for name, unit in _GREENLAND.items():
            if (rule, name) in cases[case]:
                known[name] = make_number("", *where, unit, cases[case][rule, name])
    for name, unit in _GREENLAND.items():
        key = f"{run.scope}.{run.study}.greenland.{name}"
        if name in known:
            yield known[name]._replace(id=key)
        else:
            yield absent((key, origin(run, "n/a"), "all rows"), _why_not(run), unit)


def _why_not(run: Run) -> str:
    if any("synthetic-" in name for name in run.datasets):
        return "needs the real scene, not generated data"
    if not any(str(name).startswith("full-") for name in run.rows["workload"].unique()):
        return f"needs the full scene of {SIDE} \u00d7 {SIDE} px, not a window of it"
    return "needs a time of the full scene as three channels of bytes"
