"""Study `satellite`: which tiles of a scene are worth the downlink, and what it takes to know.

The published random grid cuts Sentinel-2's red band into tiles; a tile is kept if its mean brightness is above a
fixed threshold, above Otsu's, or if it is among the brightest that fit a budget of bytes. The band is judged as it is
and as the published three channels of bytes. A generated scene of the published size stands beside a window that is
smaller.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from octopus import best_within, keep_tiles, otsu_threshold, tile_means
from octopus_study.data.distributions import satellite_tiles
from octopus_study.data.synthetic import greenland_band
from octopus_study.measure import Case, Row
from octopus_study.measure.rows import SAME
from octopus_study.studies.context import Context
from octopus_study.studies.satellite import timed as satellite_timed
from octopus_study.studies.satellite.methods import TileJob

log = logging.getLogger(__name__)
STUDY = "satellite"
PUBLISHED_SIDE = 8192  # of the published scene in pixels
FULL_SCALE = 10_000  # digital number of a reflectance of 1
THUMBNAIL = 128  # pixels along each side of the picture of the scene
BITS = 8  # of a byte
Kept = tuple[float, NDArray[np.bool_], NDArray[np.bool_]]
SIDES = ("tile_left", "tile_top", "tile_right", "tile_bottom")


@dataclass(frozen=True)
class View:
    """A scene, or the part of it that is judged.

    Attributes
    ----------
    name : {"window", "full", "scale"}
    dataset : str
    band : ndarray (H, W) uint16
        Digital numbers.
    threshold : float
        The fixed one.
    pictured : bool
        Whether its rows also hold a picture.
    """

    name: str
    dataset: str
    band: NDArray[np.uint16]
    threshold: float
    pictured: bool


def rows(context: Context) -> list[Row]:
    """All rows of the study; progress goes to the log."""
    found: list[Row] = []
    for view in _views(context):
        height, width = view.band.shape
        tiles = satellite_tiles(width, height, context.seed)
        for variant in context.config.satellite.variants:
            log.info("%s, %s: %d tiles", view.name, variant, len(tiles))
            image, scale = as_variant(view.band, variant)
            job = TileJob(
                satellite_timed.placed(image, context.device), tiles, scale, view.threshold, context.device
            )
            case = Case(STUDY, view.dataset, f"{view.name}-{variant}", len(tiles))
            found += _judged(context, case, job, pictured=view.pictured and variant == "uint16")
            found += satellite_timed.rows(context, case, job)
        if view.pictured:
            case = Case(STUDY, view.dataset, f"{view.name}-uint16", len(tiles))
            found += _picture(case, view.band)
    return found


def as_variant(
    band: NDArray[np.uint16], variant: str
) -> tuple[NDArray[np.uint8] | NDArray[np.uint16], float]:
    """The band as it is, or as three equal channels of bytes as published, and which value is full brightness."""
    if variant == "uint16":
        return band, float(FULL_SCALE)
    levels = np.arange(np.iinfo(np.uint16).max + 1) / FULL_SCALE
    table = np.rint(255 * np.clip(levels, 0, 1)).astype(np.uint8)
    return np.ascontiguousarray(np.broadcast_to(table[band][..., None], (*band.shape, 3))), 255.0


def _views(context: Context) -> list[View]:
    """The scene of the receipt, whole or its published part, and a generated one where that is smaller."""
    settings, scene = context.config.satellite, context.scene
    band = scene.pixels
    threshold = settings.threshold_synthetic if scene.synthetic else settings.threshold
    if min(band.shape) >= PUBLISHED_SIDE:
        part = np.ascontiguousarray(band[:PUBLISHED_SIDE, :PUBLISHED_SIDE])
        return [View("full", scene.dataset, part, threshold, True)]
    views = [View("window", scene.dataset, band, threshold, True)]
    side = settings.synthetic_side
    if side:
        made = greenland_band(side, side, context.seed)
        views.append(View("scale", "synthetic", made, settings.threshold_synthetic, False))
    return views


def _judged(context: Context, case: Case, job: TileJob, pictured: bool) -> list[Row]:
    """The scene, and what each rule keeps of it, found by the library and compared with NumPy's means."""
    downlink = context.config.satellite.downlink
    found = [
        case.row("scene", "deterministic", "tiles", "count", len(job.tiles)),
        case.row("scene", "deterministic", "scene_bytes", "bytes", job.image.nbytes),
        case.row("scene", "deterministic", "scene_downlink_time", "s", job.image.nbytes * BITS / downlink),
    ]
    means = tile_means(job.image, job.tiles, scale=job.scale, device=job.device)
    kept = _kept(context, job, means)
    if pictured:
        found += _tile_rows(case, job.tiles, means)
    for rule, (level, flags, right) in kept.items():
        unlike = int((flags != right).sum())
        answer = f"different: {unlike} of {len(flags)} flags are not those of NumPy" if unlike else SAME
        nbytes = int(job.sizes[flags].sum())
        values = {
            ("threshold", "fraction"): level,
            ("kept_tiles", "count"): int(flags.sum()),
            ("kept_bytes", "bytes"): nbytes,
            ("kept_downlink_time", "s"): nbytes * BITS / downlink,
        }
        found += [
            case.row(rule, "deterministic", *name, value, answer=answer) for name, value in values.items()
        ]
        if pictured:
            found += [
                case.row(rule, "deterministic", "tile_kept", "count", int(flag), block=tile)
                for tile, flag in enumerate(flags.tolist())
            ]
    return found


def _kept(context: Context, job: TileJob, means: NDArray[np.float64]) -> dict[str, Kept]:
    """By rule: its threshold, the flags, and the flags that NumPy's means give."""
    right = job.reference
    found = {}
    for rule, level, expected in (
        ("fixed", job.threshold, right > job.threshold),
        ("otsu", otsu_threshold(means), right > otsu_threshold(right)),
    ):
        flags, _ = keep_tiles(job.image, job.tiles, level, scale=job.scale, device=job.device)
        found[rule] = (level, flags, expected)
    budget = int(context.config.satellite.byte_budget * job.image.nbytes)
    best = best_within(means, job.sizes, budget)
    darkest = float(means[best].min()) if best.any() else 1.0  # digital numbers may be above full scale
    found["byte-budget"] = (darkest, best, best_within(right, job.sizes, budget))
    return found


def _tile_rows(case: Case, tiles: NDArray[np.int32], means: NDArray[np.float64]) -> list[Row]:
    """Where the tiles lie, and how bright they are."""
    columns = {(name, "px"): tiles[:, side] for side, name in enumerate(SIDES)}
    return [
        case.row("tiles", "deterministic", *name, value, block=tile)
        for name, values in {**columns, ("tile_brightness", "fraction"): means}.items()
        for tile, value in enumerate(values.tolist())
    ]


def _picture(case: Case, band: NDArray[np.uint16]) -> list[Row]:
    """A small picture of the scene, in levels from 0 to 255, each the mean of its part."""
    small = cv2.resize(band.astype(np.float32), (THUMBNAIL, THUMBNAIL), interpolation=cv2.INTER_AREA)
    levels = np.rint(255 * np.clip(small / FULL_SCALE, 0, 1)).astype(int)
    return [
        case.row("scene", "deterministic", "thumbnail", "levels", level, block=place)
        for place, level in enumerate(levels.ravel().tolist())
    ]
