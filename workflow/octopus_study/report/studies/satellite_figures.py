"""Figures of the satellite's tiles: the scene with what each rule keeps, and what a scene takes to the ground."""

from __future__ import annotations

import textwrap
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from octopus_study.names import SCENES, SUBJECT, TILE_METHODS, TILE_RULES, VARIANTS, stand_in
from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import (
    BLACK,
    GREY,
    LIGHT,
    MACHINE_MARKERS,
    METHOD_COLORS,
    RULE_COLORS,
    VERMILION,
)
from octopus_study.report.frame import Frame, Key, Number, published
from octopus_study.report.missing import NOT_THERE, by_reason
from octopus_study.report.series import Series
from octopus_study.report.studies.satellite_numbers import EDGES, PUBLISHED, rank
from octopus_study.report.text import quantity_text
from octopus_study.report.view import View, views

STUDY = "satellite"
NO_TILES = "No run of the study satellite that is shown judged a tile."
NO_PICTURE = "No run of the study satellite that is shown has a picture of its scene."
METHODS = (SUBJECT, "n-launches", "padded", "integral", "opencv-threads", "opencv", "numpy")
WORKLOADS = [f"{scene}-{variant}" for scene in SCENES for variant in VARIANTS]
BUDGET = "byte-budget"
_VEIL = 0.5  # opacity of a dropped tile
_BAR = 0.19  # inches
# In the order of the bars: the whole scene, and what the fixed threshold keeps of it.
_PUBLISHED = (
    published("device_independent_facts", "satellite-8192", "downlink_time"),
    published("satellite", "greenland", "kept_downlink_time"),
)


def scenes(view: View) -> list[Key]:
    """Return the number of tiles of each scene that a machine judged."""
    return view.cases("scene", "tiles", ("deterministic",), order=WORKLOADS)


def timed(view: View) -> list[Key]:
    """Return the time of Octopus from each scene on the host to its flags there."""
    keys = [key.but(method=SUBJECT, quantity="end_to_end", layer="host") for key in scenes(view)]
    return [key for key in keys if view.get(key)]


def scene_name(key: Key) -> str:
    """Return scene and variant in words."""
    scene, _, variant = key.workload.partition("-")
    return f"{SCENES[scene]}, {VARIANTS[variant]}"


class Picture(NamedTuple):
    """A scene to draw.

    Attributes
    ----------
    view : View
    tiles : Number
        The number of its tiles; real or synthetic as the scene is.
    series : Series
    boxes : ndarray, shape (tiles, 4)
        Left, top, right, bottom in pixels of the scene.
    kept : dict
        Rule -> bool array, shape (tiles,).
    """

    view: View
    tiles: Number
    series: Series
    boxes: np.ndarray
    kept: dict[str, np.ndarray]

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the scene in pixels."""
        return self.boxes[:, 2].max(), self.boxes[:, 3].max()

    @property
    def areas(self) -> np.ndarray:
        """Pixels of each tile, which bytes are in proportion to."""
        return (self.boxes[:, 2] - self.boxes[:, 0]) * (self.boxes[:, 3] - self.boxes[:, 1])

    def share(self, kept: np.ndarray) -> float:
        """Return the share of the bytes of some tiles in percent."""
        return 100 * float(self.areas[kept].sum() / self.areas.sum())

    def threshold(self, rule: str) -> float:
        """Return the brightness in percent above which a rule keeps a tile."""
        return 100 * self.view.frame.value(self.tiles.key.but(method=rule, quantity="threshold"))


def picture(frame: Frame) -> Picture | None:
    """Return the picture to draw, None where no run has one; see `rank`, and this machine's before others."""
    found = []
    for view in views(frame, STUDY):
        for key in scenes(view):
            scene, _, variant = key.workload.partition("-")
            series = view.series(f"picture.{scene}") if variant == "uint16" else None
            if series:
                found.append((rank(frame[key].synthetic, scene), view, frame[key], series))
    if not found:
        return None
    _, view, tiles, series = min(found, key=lambda one: one[0])
    boxes = np.stack([series[edge] for edge in EDGES], axis=1)
    names = [rule for rule in TILE_RULES if f"kept.{rule}" in series.columns]
    return Picture(
        view, tiles, series, boxes, {rule: np.array(series[f"kept.{rule}"]) == 1 for rule in names}
    )


def tiles(frame: Frame) -> Figure:
    """Draw one panel per rule, and below them the share of the bytes that is kept over the threshold."""
    shown = picture(frame)
    if shown is None:
        return style.empty(NO_PICTURE)
    width, height = shown.size
    note = frame.text(Key("shown", STUDY, quantity="picture"))
    result, parts, legend = style.stacked([0.5 + 2.25 * height / width, 1.9], 0.25, note)
    axes = parts[0].subplots(1, len(shown.kept), squeeze=False)[0]
    for axis, rule in zip(axes, shown.kept, strict=True):
        _scene(axis, shown, shown.kept[rule])
        axis.set_title(_title(shown, rule), fontsize=7.5, fontweight="normal")
    _curve(parts[1].subplots(), shown)
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


def _scene(axis: Axes, shown: Picture, kept: np.ndarray) -> None:
    """Draw the scene, stretched to what most of its pixels use, with a veil over the dropped tiles."""
    (width, height), pixels = shown.size, shown.series.picture
    dark, light = np.percentile(pixels, (1, 99))
    options = {"cmap": "gray", "vmin": dark, "vmax": max(light, dark + 1), "interpolation": "nearest"}
    axis.imshow(pixels, extent=(0, width, height, 0), aspect="auto", **options)
    line = 0.7 if len(kept) < 100 else 0.25
    veil = (*(int(VERMILION[place : place + 2], 16) / 255 for place in (1, 3, 5)), _VEIL)
    for chosen, face in ((kept, "none"), (~kept, veil)):
        boxes = [
            Rectangle((left, top), right - left, bottom - top)
            for left, top, right, bottom in shown.boxes[chosen]
        ]
        axis.add_collection(PatchCollection(boxes, facecolor=face, edgecolor="white", linewidth=line))
    axis.set(xlim=(0, width), ylim=(height, 0), xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
    axis.grid(visible=False)


def _title(shown: Picture, rule: str) -> str:
    kept, threshold = shown.kept[rule], shown.threshold(rule)
    above = f", {threshold:.3g} %" if threshold == threshold else ""
    above = ", the brightest that fit" if rule == BUDGET else above
    share = f"{shown.share(kept):.2g} % of the bytes"
    return f"{TILE_RULES[rule]}{above}\n{int(kept.sum())} of {len(kept)} tiles, {share}"


def _curve(axis: Axes, shown: Picture) -> None:
    """Draw the share of the bytes in tiles at least as bright as a threshold, with a mark per rule."""
    brightness = np.array(shown.series["brightness"])
    order = np.argsort(brightness)
    levels = 100 * brightness[order]
    left = 100 * shown.areas[order][::-1].cumsum()[::-1] / shown.areas.sum()
    axis.step(np.r_[levels, levels[-1]], np.r_[left, 0], where="pre", color=BLACK, linewidth=1)
    for place, (rule, kept) in enumerate(shown.kept.items()):
        color, at, share = RULE_COLORS[rule], shown.threshold(rule), shown.share(kept)
        look = {"color": color, "linewidth": 0.8, "linestyle": "--"}
        if rule == BUDGET:
            # Tiles that no longer fit are left out and darker ones taken: a share of the bytes, and no threshold.
            axis.axhline(share, label=TILE_RULES[rule], **look)
        elif at == at:
            axis.axvline(at, **look)
            axis.plot(at, share, MACHINE_MARKERS[place], color=color, label=TILE_RULES[rule])
    axis.set(
        xlabel="Threshold: mean brightness of a tile (% of full)", ylabel="Bytes kept (%)", ylim=(-3, 105)
    )
    axis.legend(loc="lower left", fontsize=7, frameon=True, framealpha=0.9, edgecolor="none")


def pipeline(frame: Frame) -> Figure:
    """Draw what a scene takes to the ground, whole and rule by rule, one panel per scene; below, what judging its tiles
    takes before, one panel per machine."""
    shown = [view for view in views(frame, STUDY) if scenes(view)]
    if not shown:
        return style.empty(NO_TILES)
    titles = _titles(shown)
    machines = {view: _most_tiles(keys) for view in shown if (keys := timed(view))}
    notes = " ".join(filter(None, (_note(view, key) for view, key in machines.items())))
    heights = [2.0, 0.9 + _BAR * len(METHODS)] if machines else [2.0]
    result, parts, legend = style.stacked(heights, 0.25, notes)
    above = parts[0].subplots(1, len(titles), squeeze=False)[0]
    for place, (axis, (title, key)) in enumerate(zip(above, titles.items(), strict=True)):
        _downlink(axis, frame, key)
        axis.set_title(textwrap.fill(title, 104 // len(titles)), fontsize=7.2, fontweight="normal")
        if place == 0:
            axis.set_ylabel("Time to the ground (s)")
    below = parts[1].subplots(1, len(machines), squeeze=False)[0] if machines else []
    for place, (axis, (view, key)) in enumerate(zip(below, machines.items(), strict=True)):
        _processing(axis, view, key)
        if place:
            axis.set_yticklabels([])
    style.legend_of(legend, list(above), 5)
    return result


def _titles(shown: list[View]) -> dict[str, Key]:
    """Return each scene by its title; what it takes to the ground is the same on every machine."""
    titles: dict[str, Key] = {}
    for view in shown:
        # As published, in three channels of bytes, where there are some: they come last.
        for key in {key.workload.partition("-")[0]: key for key in scenes(view)}.values():
            number = view.frame[key]
            scene, _, variant = key.workload.partition("-")
            generated = ", generated" if stand_in(number.dataset) else ""
            title = f"{SCENES[scene]}{generated}, {number.text} tiles, {VARIANTS[variant]}"
            titles.setdefault(title, key)
    return titles


def _downlink(axis: Axes, frame: Frame, key: Key) -> None:
    """Draw a bar for everything, and one for what each rule keeps, with its share of the bytes; marks where the source
    has a value for the same scene."""
    all_of_it = key.but(quantity="scene_downlink_time")
    rules = {rule: key.but(method=rule, quantity="kept_downlink_time") for rule in TILE_RULES}
    times = [frame.value(all_of_it), *(frame.value(one) for one in rules.values())]
    labels = ["All tiles", *TILE_RULES.values()]
    colors = [LIGHT, *(RULE_COLORS[rule] for rule in rules)]
    for place, (label, color, time) in enumerate(zip(labels, colors, times, strict=True)):
        if time == time:
            axis.bar(place, time, width=0.74, color=color, label=label)
            share = f"\n{100 * time / times[0]:.2g} %" if place and times[0] == times[0] else ""
            options = {"ha": "center", "va": "bottom", "fontsize": 6, "textcoords": "offset points"}
            axis.annotate(f"{quantity_text(time, 's')}{share}", (place, time), (0, 2), **options)
    if key.workload == PUBLISHED:
        values = [frame.value(one) for one in _PUBLISHED]
        look = {"markerfacecolor": "white", "markeredgecolor": BLACK, "label": "As published"}
        axis.plot([place + 0.5 for place in range(len(values))], values, "D", markersize=4, **look)
    axis.set(xticks=[], xlim=(-0.6, len(times) - 0.4), ylim=(0, 1.22 * np.nanmax(times)))
    axis.grid(axis="x", visible=False)


def _most_tiles(keys: list[Key]) -> Key:
    """Return the scene with most tiles, in three channels of bytes if there are some."""
    return max(keys, key=lambda key: (key.n, key.workload.endswith("-rgb8")))


def _processing(axis: Axes, view: View, key: Key) -> None:
    numbers = {name: view.get(key.but(method=name)) for name in METHODS}
    values = [number.value for number in numbers.values() if number]
    left, highest = min(values) / 2, max(values)
    for place, (name, number) in enumerate(numbers.items()):
        if number is None:
            bars.beside(axis, place, left, "\u2013", gap=3, fontsize=7)
            continue
        look = {"height": 0.7, "color": METHOD_COLORS.get(name, GREY)}
        error = {"ecolor": BLACK, "elinewidth": 0.8, "capsize": 1.3}
        bars.bar(axis, place, number, left=left, error=error, **look)
        bars.beside(axis, place, bars.end_of(number), quantity_text(number.value, "ms"), gap=3, fontsize=6)
    scene, _, variant = key.workload.partition("-")
    axis.set(xscale="log", xlabel=f"{VARIANTS[variant]} to flags (ms)".capitalize())
    axis.set_xlim(left, highest * (highest / left) ** 0.4)
    bars.names(axis, [TILE_METHODS[name] for name in METHODS], fontsize=6.5)
    style.plain_log(axis.xaxis, narrow=True)
    axis.set_title(f"{view.name}\n{SCENES[scene]}", fontsize=7.2, fontweight="normal")


def _note(view: View, key: Key) -> str:
    """Name the methods that a machine has no time of."""
    keys = {TILE_METHODS[name]: key.but(method=name) for name in METHODS}
    said = by_reason(
        (name, view.text(one) or NOT_THERE) for name, one in keys.items() if view.get(one) is None
    )
    return f"No time on {view.name}. {said}." if said else ""
