"""Satellite tiles: what each rule keeps and saves on the way down, and how fast each method judges the tiles."""

from __future__ import annotations

import math
from collections.abc import Iterator

from octopus_study.names import SCENES, SUBJECT, TILE_RULES, VARIANTS, stand_in
from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import Frame, Key, Number, joined, make_absent, make_number, make_text, published
from octopus_study.report.measured import medians, share_of_bound
from octopus_study.report.missing import no_run
from octopus_study.report.runs import Run
from octopus_study.report.samples import groups, pivot
from octopus_study.report.selector import ALL_ROWS, either, where
from octopus_study.report.studies import satellite_figure as figure
from octopus_study.report.studies.satellite_figure import INDEXED, STUDY, scenes
from octopus_study.report.study import StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.cells import Cell
from octopus_study.report.tables.spec import Row, Spec
from octopus_study.report.tables.writers import MISSING
from octopus_study.report.view import KERNEL, View
from octopus_study.status import MethodStatus

BOUND = "read-bound"
OVER = {
    "n-launches": "over a launch per tile",
    "padded": "over padding",
    "integral": "over an integral image (1 thread)",
    "opencv-threads": "over OpenCV (all threads)",
    "numpy": "over NumPy (1 thread)",
}
# The published scene: three channels of bytes, the tiles above a fixed threshold.
SIDE, PUBLISHED, RULE = 8192, "full-rgb8", "fixed"
_PIXEL_BYTES = {"uint16": 2, "rgb8": 3}
_TILING = {"tiles": "count", "scene_downlink_time": "s"}
_KEPT = {"kept_tiles": "count", "kept_bytes": "bytes", "kept_downlink_time": "s"}
_GAINS = {
    "kept_share": "fraction",
    "bandwidth_saved": "fraction",
    "processing": "ms",
    "pipeline_speedup": "ratio",
    "processing_share": "fraction",
}
_COUNTED = (*_KEPT, "tiles", "scene_bytes", "scene_downlink_time")


def bounds(run: Run) -> Iterator[Number]:
    """Yield the share that reading the scene once is of the kernel's time."""
    for group, rows in groups(run, unit="ms"):
        yield from share_of_bound(run, group, pivot(rows), SUBJECT, BOUND)


def _scenes(run: Run) -> Iterator[tuple[Frame, Number]]:
    """Yield the scenes that a run judged, as their numbers of tiles among the medians of the whole run."""
    frame = Frame(medians(run, StudyReport(indexed=INDEXED)))
    for number in frame.select(run.scope, run.study, quantity="tiles", method="scene", layer="deterministic"):
        if number.known:
            yield frame, number


def rules(run: Run) -> Iterator[Number]:
    """Yield shares and times of each rule: ``<workload>.n<tiles>.<rule>.<name>``."""
    for frame, tiles in _scenes(run):
        for rule in TILE_RULES:
            yield from _rule(run, frame, tiles, rule)


def _rule(run: Run, frame: Frame, tiles: Number, rule: str) -> Iterator[Number]:
    kept, size, sent = (frame.value(tiles.key.but(method=rule, quantity=name)) for name in _KEPT)
    whole, everything = (frame.value(tiles.key.but(quantity=name)) for name in _COUNTED[-2:])
    number = frame.get(tiles.key.but(method=SUBJECT, quantity="end_to_end", layer="host"))
    known = number is not None and sent == sent and everything > 0
    times = (number.value, number.low, number.high) if known else (math.nan,) * 3
    value, low, high = (sent + time / 1000 for time in times)
    values = (
        ([kept / tiles.value], "tiles / tiles"),
        ([1 - size / whole], "1 - kept bytes / bytes of the scene"),
        (times, f"end_to_end of {SUBJECT}, host"),
        (
            [everything / time for time in (value, high, low)],
            "downlink of the scene / (processing + downlink of the kept tiles)",
        ),
        (
            [time / 1000 / (sent + time / 1000) for time in times],
            "processing / (processing + downlink of the kept tiles)",
        ),
    )
    scene = {"workload": tiles.workload, "n": tiles.n}
    counted = where(**scene, method=(rule, "scene"), layer="deterministic", quantity=_COUNTED)
    timed = either([counted, where(**scene, method=SUBJECT, layer="host", quantity="end_to_end")])
    for (name, unit), (ends, note) in zip(_GAINS.items(), values, strict=True):
        if math.isfinite(ends[0]):
            source = tiles.source._replace(selector=timed if len(ends) > 1 else counted)
            key = run.key(tiles.workload, tiles.n, rule, quantity=name)
            yield make_number(key, source, unit, *ends, note=note)


def answers(run: Run) -> Iterator[Number]:
    """Yield in words whether every rule kept the tiles of a NumPy reference."""
    rows = run.rows[(run.rows["quantity"] == "kept_tiles") & run.rows["value"].notna()]
    if len(rows):
        equal = int((rows["status"] == MethodStatus.SAME).sum())
        text = f"in {'all' if equal == len(rows) else f'{equal} of'} {len(rows)} cases"
        source = run.from_rows(rows["dataset"].iloc[0], "quantity=kept_tiles")
        note = "cases: scene, variant and rule; equal: the same flag for every tile"
        yield make_text(run.fact_key("flags_equal"), source, text, note)


def of_published_scene(run: Run) -> Iterator[Number]:
    """Yield under names of their own what the published size of a scene fixes, whatever it shows (``tiling``), and the
    numbers of the published scene itself (``greenland``); or why a run can't have them."""
    found: dict[Key, Number] = {}
    tiling, greenland = (
        {name: run.key(place, quantity=name) for name in names}
        for place, names in (("tiling", _TILING), ("greenland", _KEPT | _GAINS))
    )
    for frame, tiles in _scenes(run):
        size = _PIXEL_BYTES.get(tiles.key.facts.dtype, 0) * SIDE**2
        whole = frame.get(tiles.key.but(quantity="scene_bytes"))
        if whole and whole.value == size:
            for name in _TILING if tiles.workload.endswith("-rgb8") else ("tiles",):
                if number := frame.get(tiles.key.but(quantity=name)):
                    found[tiling[name]] = number._replace(selector=joined(tiles, whole, number).selector)
        if tiles.workload == PUBLISHED and not tiles.synthetic:
            kept = (frame.get(tiles.key.but(method=RULE, quantity=name)) for name in _KEPT)
            numbers = (*filter(None, kept), *_rule(run, frame, tiles, RULE))
            found |= {greenland[number.quantity]: number for number in numbers}
    source, size = run.from_rows("n/a", ALL_ROWS), f"{SIDE} \u00d7 {SIDE} px"
    for key in (*tiling.values(), *greenland.values()):
        why = f"needs a scene of {size}" if key.workload == "tiling" else _why_no_greenland(run, size)
        unit = (_TILING | _KEPT | _GAINS)[key.quantity]
        yield found[key].named(key) if key in found else make_absent(key, source, unit, why)


def _why_no_greenland(run: Run, size: str) -> str:
    if any(map(stand_in, run.datasets)):
        return "needs the real scene, not generated data"
    if not run.rows["workload"].str.startswith("full-").any():
        return f"needs the full scene of {size}, not a window of it"
    return "needs a time of the full scene as three channels of bytes"


def _scene_name(view: View, key: Key) -> str:
    scene, variant = key.facts.distribution, key.facts.dtype
    sample = " (synthetic)" if stand_in(view.frame[key].dataset) else ""
    return f"{SCENES[scene]}{sample}, {VARIANTS[variant]}"


def _saved(rule: str) -> Cell:
    """Say what a rule saves of the bytes, and how much sooner the rest is on the ground."""

    def cell(view: View, key: Key) -> str:
        place = key.but(method=rule, layer="")
        saved, gain = (view.text(place.but(quantity=name)) for name in ("bandwidth_saved", "pipeline_speedup"))
        return ", ".join(filter(None, (saved, gain))) or MISSING

    return cell


def _published_row(frame: Frame) -> Iterator[Row]:
    saved, gain = (frame.text(published(STUDY, "greenland", name)) for name in ("bandwidth_saved", "pipeline_speedup"))
    blank = [MISSING] * (len(OVER) + 4)
    yield ["Full scene, published, Jetson Orin Nano", *blank, f"{saved}, {gain}", MISSING, MISSING]


_KERNEL = {"quantity": "keep_tiles", "layer": KERNEL}
TABLE = Spec(
    study=STUDY,
    first="Scene",
    label=_scene_name,
    cases=lambda view: [key.but(method=SUBJECT, quantity="end_to_end", layer="host") for key in scenes(view)],
    columns={
        "Octopus": cells.time(),
        **{head: cells.versus(name) for name, head in OVER.items()},
        "Floor": cells.floor(),
        "Kernel": cells.time(**_KERNEL),
        "Of read bound": cells.text(**_KERNEL, derived="share", other=BOUND),
        **{name: _saved(rule) for rule, name in TILE_RULES.items()},
    },
    before=_published_row,
    caption="Judging the tiles of a scene: time of Octopus from the scene on the host to the flags there, its "
    "speed-ups with the verdict where it isn't faster, and the noise floor; its kernel alone, with its share of the "
    "time to read the scene once. Then, for each rule, the share of the bytes that it saves, and time of the whole "
    f"scene to the ground / (processing + time of the kept tiles). Medians, {cells.WIDE_NOTE}.",
    absent=f"Judging the tiles. {no_run(STUDY)}",
    widths=("1.6fr", *["1fr"] * (len(OVER) + 3 + len(TILE_RULES)), "1fr"),
)
REPORT = StudyReport(
    numbers=(bounds, rules, answers, of_published_scene),
    series=(figure.pictures,),
    indexed=INDEXED,
    tables={"satellite": TABLE},
    figures={
        "satellite_tiles": Chart(
            figure.draw,
            "The scene with the tiles that each rule keeps and drops.",
            footer=figure.footer,
            synthetic=figure.synthetic,
            real="Sentinel-2",
        )
    },
)
