"""The scene with the tiles that each rule keeps and drops, and what any other threshold would keep."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from octopus_study.report import satellite
from octopus_study.report.captions import scope_title
from octopus_study.report.figures import style
from octopus_study.report.labels_edge import TILE_RULES
from octopus_study.report.numbers import Numbers
from octopus_study.report.satellite import NO_RUN, STUDY, Picture

__all__ = ["NO_RUN", "REAL_DATA", "STUDY", "figure", "footer", "synthetic"]
REAL_DATA = "Sentinel-2"
NO_PICTURE = "No run of the study satellite that is shown has a picture of its scene."
BUDGET = "byte-budget"
_VEIL = 0.5  # opacity of a dropped tile


def figure(numbers: Numbers) -> Figure:
    """Draw one panel per rule, and below them the share of the bytes that is kept over the threshold."""
    picture = satellite.picture(numbers)
    if picture is None:
        return style.words(style.new_figure(1.2)[0], NO_PICTURE)
    width, height = picture.size
    note = numbers.text("shown.satellite.picture")
    result, parts, legend = style.stacked([0.5 + 2.25 * height / width, 1.9], 0.25, note)
    axes = parts[0].subplots(1, len(picture.kept), squeeze=False)[0]
    for axis, rule in zip(axes, picture.kept, strict=True):
        _scene(axis, picture, rule)
        axis.set_title(_title(numbers, picture, rule), fontsize=7.5, fontweight="normal")
    _curve(parts[1].subplots(), numbers, picture)
    handles = [
        Patch(facecolor="white", edgecolor=style.GREY, label="Kept"),
        Patch(facecolor=style.VERMILION, alpha=_VEIL, label="Dropped"),
    ]
    legend.legend(handles=handles, loc="center", ncols=2)
    return result


def footer(numbers: Numbers) -> str:
    """Name the run whose picture is shown."""
    picture = satellite.picture(numbers)
    return f"Scene of: {scope_title(numbers, picture.scope, STUDY)}." if picture else "Nothing was measured."


def synthetic(numbers: Numbers) -> bool:
    """Say whether the scene that is shown is a generated one."""
    picture = satellite.picture(numbers)
    return picture is not None and picture.synthetic


def _scene(axis: Axes, picture: Picture, rule: str) -> None:
    """Draw the scene, stretched to what most of its pixels use, with a veil over the dropped tiles."""
    width, height = picture.size
    dark, light = np.percentile(picture.thumbnail, (1, 99))
    options = {"cmap": "gray", "vmin": dark, "vmax": max(light, dark + 1), "interpolation": "nearest"}
    axis.imshow(picture.thumbnail, extent=(0, width, height, 0), aspect="auto", **options)
    line = 0.7 if len(picture.tiles) < 100 else 0.25
    for kept in (True, False):
        boxes = [
            Rectangle((left, top), right - left, bottom - top)
            for left, top, right, bottom in picture.tiles[picture.kept[rule] == kept]
        ]
        face = "none" if kept else (*_rgb(style.VERMILION), _VEIL)
        axis.add_collection(PatchCollection(boxes, facecolor=face, edgecolor="white", linewidth=line))
    axis.set(xlim=(0, width), ylim=(height, 0), xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
    axis.grid(visible=False)


def _rgb(color: str) -> tuple[float, ...]:
    return tuple(int(color[place : place + 2], 16) / 255 for place in (1, 3, 5))


def _share(picture: Picture, kept: np.ndarray) -> float:
    return float(picture.areas[kept].sum() / picture.areas.sum())


def _title(numbers: Numbers, picture: Picture, rule: str) -> str:
    kept = picture.kept[rule]
    threshold = _threshold(numbers, picture, rule)
    above = f", {threshold:.3g} %" if threshold == threshold else ""
    above = ", the brightest that fit" if rule == BUDGET else above
    share = f"{100 * _share(picture, kept):.2g} % of the bytes"
    return f"{TILE_RULES[rule]}{above}\n{int(kept.sum())} of {len(kept)} tiles, {share}"


def _threshold(numbers: Numbers, picture: Picture, rule: str) -> float:
    """Return the brightness in percent above which a rule keeps a tile."""
    start = satellite.prefixes(numbers, picture.scope).get((picture.scene, "uint16"), "")
    return 100 * numbers.value(f"{start}.{rule}.threshold.deterministic")


def _curve(axis: Axes, numbers: Numbers, picture: Picture) -> None:
    """Draw the share of the bytes in tiles at least as bright as a threshold, with a mark per rule."""
    order = np.argsort(picture.brightness)
    levels = 100 * picture.brightness[order]
    left = 100 * picture.areas[order][::-1].cumsum()[::-1] / picture.areas.sum()
    axis.step(np.r_[levels, levels[-1]], np.r_[left, 0], where="pre", color=style.BLACK, linewidth=1)
    for place, (rule, kept) in enumerate(picture.kept.items()):
        color = style.RULE_COLORS[rule]
        at, share = _threshold(numbers, picture, rule), 100 * _share(picture, kept)
        look = {"color": color, "linewidth": 0.8, "linestyle": "--"}
        if rule == BUDGET:
            # Tiles that no longer fit are left out and darker ones taken: a share of the bytes, and no threshold.
            axis.axhline(share, label=TILE_RULES[rule], **look)
        elif at == at:
            axis.axvline(at, **look)
            axis.plot(at, share, style.MACHINE_MARKERS[place], color=color, label=TILE_RULES[rule])
    axis.set(
        xlabel="Threshold: mean brightness of a tile (% of full)", ylabel="Bytes kept (%)", ylim=(-3, 105)
    )
    axis.legend(loc="lower left", fontsize=7, frameon=True, framealpha=0.9, edgecolor="none")
