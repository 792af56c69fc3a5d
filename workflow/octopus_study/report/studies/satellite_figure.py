"""The figure of the satellite's tiles: the scene with what each rule keeps."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from octopus_study.names import SCENES, TILE_RULES, VARIANTS
from octopus_study.report.charts import style
from octopus_study.report.charts.palette import GREY, VERMILION
from octopus_study.report.frame import Frame, Key, Number
from octopus_study.report.runs import Run
from octopus_study.report.series import Series
from octopus_study.report.view import View, views

STUDY = "satellite"
NO_PICTURE = "No run of the study satellite that is shown has a picture of its scene."
EDGES = ("left", "top", "right", "bottom")
# Quantities whose block is the index of a tile or of a pixel.
INDEXED = (*(f"tile_{edge}" for edge in EDGES), "tile_brightness", "tile_kept", "thumbnail")
ATTRIBUTION = "Contains modified Copernicus Sentinel data 2019, processed by ESA"
GENERATED = "Generated stand-in, no picture of a satellite"
_VEIL = 0.5  # opacity of a dropped tile


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
