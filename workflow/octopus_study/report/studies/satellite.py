"""Satellite tiles: what each rule keeps and saves on the way down, and how fast each method judges the tiles."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from octopus_study.names import SCENES, SUBJECT, TILE_RULES, VARIANTS, stand_in
from octopus_study.report import captions
from octopus_study.report.charts import style
from octopus_study.report.charts.palette import GREY, VERMILION
from octopus_study.report.frame import Frame, Key, Number, make_absent, make_number, make_text, published
from octopus_study.report.measured import medians, share_of_bound
from octopus_study.report.missing import no_run
from octopus_study.report.runs import Run
from octopus_study.report.samples import groups, pivot
from octopus_study.report.selector import ALL_ROWS, either, where
from octopus_study.report.series import Series
from octopus_study.report.study import Chart, StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.spec import Row, Spec
from octopus_study.report.tables.writers import MISSING
from octopus_study.report.view import KERNEL, View, views
from octopus_study.status import MethodStatus

STUDY = "satellite"
NO_PICTURE = "No run of the study satellite that is shown has a picture of its scene."
EDGES = ("left", "top", "right", "bottom")
# Quantities whose block is the index of a tile or of a pixel.
INDEXED = (*(f"tile_{edge}" for edge in EDGES), "tile_brightness", "tile_kept", "thumbnail")
ATTRIBUTION = "Contains modified Copernicus Sentinel data 2019, processed by ESA"
GENERATED = "Generated stand-in, no picture of a satellite"
_VEIL = 0.5  # opacity of a dropped tile
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
_WHOLE = "(processing + downlink of the kept tiles)"


def scenes(view: View) -> list[Key]:
    """Return the number of tiles of each scene that a machine judged."""
    order = [f"{scene}-{variant}" for scene in SCENES for variant in VARIANTS]
    return view.cases("scene", "tiles", ("deterministic",), order=order)


def pictures(run: Run) -> Iterator[Series]:
    """Yield ``picture.<scene>``: the scene made small, and its tiles. A scene that lacks a part has none."""
    rows = run.rows[run.rows["quantity"].isin(INDEXED) & run.rows["value"].notna()]
    for workload, chosen in rows.groupby("workload", sort=False):
        parts = {
            (quantity, method): one.sort_values("block")["value"].to_numpy()
            for (quantity, method), one in chosen.groupby(["quantity", "method"], sort=False)
        }
        columns = {edge: parts.get((f"tile_{edge}", "tiles"), ()) for edge in EDGES}
        columns |= {f"kept.{rule}": parts.get(("tile_kept", rule), ()) for rule in TILE_RULES}
        tiles = len(columns[EDGES[0]])
        columns = {name: list(values) for name, values in columns.items() if len(values) == tiles}
        pixels = parts.get(("thumbnail", "scene"))
        if pixels is not None and tiles and set(EDGES) < set(columns):
            name = f"picture.{str(workload).partition('-')[0]}"
            yield Series(run.scope, run.study, name, columns, _levels(pixels))


def _levels(pixels: np.ndarray) -> np.ndarray:
    """Return pixels as a square, shape (side, side), uint8; the darkest is 0, the brightest 255."""
    dark, light = float(pixels.min()), float(pixels.max())
    levels = np.rint(255 * (pixels - dark) / max(light - dark, 1e-12)).astype(np.uint8)
    side = round(len(levels) ** 0.5)
    return levels[: side * side].reshape(side, side)


class Picture(NamedTuple):
    """A scene to draw: the number of its tiles, real or synthetic as the scene is; left, top, right and bottom of each,
    shape (tiles, 4); and by rule which are kept."""

    view: View
    tiles: Number
    series: Series
    boxes: np.ndarray
    kept: dict[str, np.ndarray]


def picture(frame: Frame) -> Picture | None:
    """Return the picture to draw, None where no run has one: of real data before generated ones, of the full scene
    before a window of it, of this machine before others."""
    found = []
    for view in views(frame, STUDY):
        for key in scenes(view):
            scene, variant = key.facts.distribution, key.facts.dtype
            series = view.series(f"picture.{scene}") if variant == "uint16" else None
            if series:
                found.append(((frame[key].synthetic, scene != "full"), view, frame[key], series))
    if not found:
        return None
    _, view, tiles, series = min(found, key=lambda one: one[0])
    names = [rule for rule in TILE_RULES if f"kept.{rule}" in series.columns]
    kept = {rule: np.array(series[f"kept.{rule}"]) == 1 for rule in names}
    return Picture(view, tiles, series, np.stack([series[edge] for edge in EDGES], axis=1), kept)


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
        ([everything / time for time in (value, high, low)], f"downlink of the scene / {_WHOLE}"),
        ([time / 1000 / (sent + time / 1000) for time in times], f"processing / {_WHOLE}"),
    )
    counted, own = _counted(tiles, rule), {"method": SUBJECT, "layer": "host", "quantity": "end_to_end"}
    timed = either([counted, where(workload=tiles.workload, n=tiles.n, **own)])
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


def _saved(rule: str) -> cells.Cell:
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


def draw(frame: Frame) -> Figure:
    """Draw one panel per rule."""
    shown = picture(frame)
    if shown is None:
        return style.empty(NO_PICTURE)
    width, height = shown.boxes[:, 2:].max(axis=0)
    scene = SCENES[shown.tiles.key.facts.distribution]
    note = f"{scene}, {width:.0f} \u00d7 {height:.0f} px. {GENERATED if shown.tiles.synthetic else ATTRIBUTION}."
    result, parts, legend = style.stacked([0.5 + 2.25 * height / width], 0.25, note)
    axes = parts[0].subplots(1, len(shown.kept), squeeze=False)[0]
    for axis, (rule, kept) in zip(axes, shown.kept.items(), strict=True):
        _scene(axis, shown, kept, (width, height))
        areas = (shown.boxes[:, 2:] - shown.boxes[:, :2]).prod(axis=1)
        share = f"{100 * float(areas[kept].sum() / areas.sum()):.2g} % of the bytes"
        title = f"{TILE_RULES[rule]}\n{int(kept.sum())} of {len(kept)} tiles, {share}"
        axis.set_title(title, fontsize=7.5, fontweight="normal")
    handles = [
        Patch(facecolor="white", edgecolor=GREY, label="Kept"),
        Patch(facecolor=VERMILION, alpha=_VEIL, label="Dropped"),
    ]
    legend.legend(handles=handles, loc="center", ncols=2)
    return result


def footer(frame: Frame) -> str:
    """Name the run whose picture is shown."""
    shown = picture(frame)
    return f"Scene of: {shown.view.title}." if shown else "Nothing was measured."


def synthetic(frame: Frame) -> bool:
    """Say whether the scene that is shown is a generated one."""
    shown = picture(frame)
    return shown is not None and shown.tiles.synthetic


def _scene(axis: Axes, shown: Picture, kept: np.ndarray, size: tuple[float, float]) -> None:
    """Draw the scene, stretched to what most of its pixels use, with a veil over the dropped tiles."""
    pixels = shown.series.picture
    dark, light = np.percentile(pixels, (1, 99))
    options = {"cmap": "gray", "vmin": dark, "vmax": max(light, dark + 1), "interpolation": "nearest"}
    axis.imshow(pixels, extent=(0, size[0], size[1], 0), aspect="auto", **options)
    line = 0.7 if len(kept) < 100 else 0.25
    veil = (*(int(VERMILION[place : place + 2], 16) / 255 for place in (1, 3, 5)), _VEIL)
    for chosen, face in ((kept, "none"), (~kept, veil)):
        boxes = [Rectangle((x, y), right - x, bottom - y) for x, y, right, bottom in shown.boxes[chosen]]
        axis.add_collection(PatchCollection(boxes, facecolor=face, edgecolor="white", linewidth=line))
    axis.set(xlim=(0, size[0]), ylim=(size[1], 0), xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
    axis.grid(visible=False)


REPORT = StudyReport(
    numbers=(bounds, rules, answers, of_published_scene),
    series=(pictures,),
    indexed=INDEXED,
    tables={"satellite": TABLE},
    figures={
        "satellite_tiles": Chart(
            draw, captions.FIGURES["satellite_tiles"], footer=footer, synthetic=synthetic, real="Sentinel-2"
        )
    },
)
