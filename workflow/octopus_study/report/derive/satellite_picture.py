"""What the picture of the scene is drawn from: one text per list, since hundreds of tiles and thousands of pixels are
no numbers that anybody quotes."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from octopus_study.report.derive.samples import origin
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import Run

if TYPE_CHECKING:
    import pandas as pd

EDGES = ("tile_left", "tile_top", "tile_right", "tile_bottom")
# Quantities whose block is the index of a tile or of a pixel.
INDEXED = (*EDGES, "tile_brightness", "tile_kept", "thumbnail")


def picture_numbers(run: Run) -> Iterator[Number]:
    """Yield ``<scope>.satellite.picture.<scene>.<part>`` as texts.

    The parts: ``thumbnail`` (base64 of bytes, row by row; the darkest pixel is 0, the brightest 255), ``tiles`` (left,
    top, right, bottom in pixels, in the order of the tiles), ``brightness`` (mean of each), and ``kept.<rule>`` (0 or 1
    for each). A scene that lacks a part has none of them.
    """
    rows = run.rows[run.rows["quantity"].isin(INDEXED) & run.rows["value"].notna()]
    for (dataset, workload), chosen in rows.groupby(["dataset", "workload"], sort=False):
        parts = _parts(chosen)
        if parts is None:
            continue
        scene = str(workload).partition("-")[0]
        for name, (text, note) in parts.items():
            key = f"{run.scope}.{run.study}.picture.{scene}.{name}"
            where = (origin(run, str(dataset)), f"workload={workload}, {name} by block")
            yield make_number(key, *where, "text", math.nan, text=text, note=note)


def _parts(rows: pd.DataFrame) -> dict[str, tuple[str, str]] | None:
    series = {
        (quantity, method): chosen.sort_values("block")["value"].to_numpy()
        for (quantity, method), chosen in rows.groupby(["quantity", "method"], sort=False)
    }
    edges = [series.get((name, "tiles")) for name in EDGES]
    brightness, pixels = series.get(("tile_brightness", "tiles")), series.get(("thumbnail", "scene"))
    if any(edge is None for edge in edges) or brightness is None or pixels is None:
        return None
    dark, light = float(pixels.min()), float(pixels.max())
    levels = np.rint(255 * (pixels - dark) / max(light - dark, 1e-12)).astype(np.uint8)
    boxes = np.stack(edges, axis=1).astype(int)
    parts = {
        "thumbnail": (
            base64.b64encode(levels.tobytes()).decode("ascii"),
            f"{len(levels)} pixels, 0: {dark:g}, 255: {light:g}",
        ),
        "tiles": (";".join(",".join(map(str, box)) for box in boxes.tolist()), f"{len(boxes)} tiles, px"),
        "brightness": (" ".join(f"{value:.5g}" for value in brightness), "mean brightness, tile by tile"),
    }
    for (quantity, method), flags in series.items():
        if quantity == "tile_kept" and len(flags) == len(boxes):
            parts[f"kept.{method}"] = ("".join("1" if flag else "0" for flag in flags), "1: kept")
    return parts
