"""Satellite tiles: what each rule keeps and saves on the way down, and how fast each method judges the tiles."""

import math
from collections.abc import Iterator

from octopus_study.names import SCENES, SUBJECT, TILE_RULES, VARIANTS, stand_in
from octopus_study.report import captions
from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import Frame, Key, Number, make_absent, make_number, make_text, published
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
PUBLISHED, RULE, SCENE_BYTES = "full-rgb8", "fixed", 3 * 8192**2
_KEPT = {"kept_tiles": "count", "kept_bytes": "bytes", "kept_downlink_time": "s"}
_GAINS = {
    "kept_share": "fraction",
    "bandwidth_saved": "fraction",
    "processing": "ms",
    "pipeline_speedup": "ratio",
    "processing_share": "fraction",
}
_COUNTED = (*_KEPT, "tiles", "scene_bytes", "scene_downlink_time")
# Numbers under names of their own: what the published size fixes, whatever the scene shows, and the published scene's.
_PLACES = {
    "tiling": {"scene_downlink_time": "s", "processing_share": "fraction"},
    "greenland": {"tiles": "count"} | _KEPT | _GAINS,
}


def bounds(run: Run) -> Iterator[Number]:
    """Yield the share that reading the scene once is of the kernel's time."""
    for group, rows in groups(run, unit="ms"):
        yield from share_of_bound(run, group, pivot(rows), SUBJECT, BOUND)


def _scenes(run: Run) -> Iterator[tuple[Frame, Number]]:
    """Yield the whole scenes that a run judged, as their numbers of tiles among the medians of the whole run."""
    frame = Frame(medians(run, StudyReport(indexed=INDEXED)))
    for number in frame.select(run.scope, run.study, quantity="tiles", method="scene", layer="deterministic"):
        if number.known and number.key.facts.distribution != "window":
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
    counted = _counted(tiles, rule)
    timed = either(
        [counted, where(workload=tiles.workload, n=tiles.n, method=SUBJECT, layer="host", quantity="end_to_end")]
    )
    for (name, unit), (ends, note) in zip(_GAINS.items(), values, strict=True):
        if math.isfinite(ends[0]):
            source = tiles.source._replace(selector=timed if len(ends) > 1 else counted)
            key = run.key(tiles.workload, tiles.n, rule, quantity=name)
            yield make_number(key, source, unit, *ends, note=note)


def _counted(tiles: Number, rule: str) -> str:
    """The rows of a scene and of what a rule keeps of it."""
    methods = (rule, "scene")
    return where(workload=tiles.workload, n=tiles.n, method=methods, layer="deterministic", quantity=_COUNTED)


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
    """Yield ``tiling.<name>`` of a scene of the published size, and ``greenland.<name>`` of the published scene, whole
    and real; or why a run can't have them."""
    found: dict[Key, Number] = {}
    for frame, tiles in _scenes(run):
        whole = frame.get(tiles.key.but(quantity="scene_bytes"))
        if not whole or whole.value != SCENE_BYTES or tiles.key.facts.dtype != "rgb8":
            continue
        counted = (frame.get(tiles.key.but(quantity=name)) for name in ("tiles", "scene_downlink_time"))
        kept = (frame.get(tiles.key.but(method=RULE, quantity=name)) for name in _KEPT)
        rows = _counted(tiles, RULE)
        numbers = {one.quantity: one._replace(selector=rows) for one in (*counted, *kept) if one}
        numbers |= {one.quantity: one for one in _rule(run, frame, tiles, RULE)}
        for place, names in _PLACES.items():
            if place == "tiling" or (tiles.workload == PUBLISHED and not tiles.synthetic):
                found |= {run.key(place, quantity=name): numbers[name] for name in names if name in numbers}
    source = run.from_rows("n/a", ALL_ROWS)
    for place, names in _PLACES.items():
        for name, unit in names.items():
            key = run.key(place, quantity=name)
            yield found[key].named(key) if key in found else make_absent(key, source, unit, _why_absent(run, place))


def _why_absent(run: Run, place: str) -> str:
    if place == "greenland" and any(map(stand_in, run.datasets)):
        return "needs the real scene, not generated data"
    if place == "greenland" and not run.rows["distribution"].eq("full").any():
        return "needs the whole scene, not a window of it"
    return "needs a scene of 8192 \u00d7 8192 px as three channels of bytes, and the time of its tiles"


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
    caption=captions.TABLES["satellite"].format(wide=cells.WIDE_NOTE),
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
            captions.FIGURES["satellite_tiles"],
            footer=figure.footer,
            synthetic=figure.synthetic,
            real="Sentinel-2",
        )
    },
)
