"""What each rule keeps of a scene, found by the library and compared with NumPy's means."""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numpy as np
from numpy.typing import NDArray

from octopus import best_within, keep_tiles, otsu_threshold, tile_means
from octopus_study.measure import Case, Row
from octopus_study.status import SAME, different
from octopus_study.studies.context import Context
from octopus_study.studies.satellite.methods import TileJob

FULL_SCALE = 10_000  # digital number of a reflectance of 1
THUMBNAIL = 128  # pixels along each side of the picture of the scene
BITS = 8  # of a byte
SIDES = ("tile_left", "tile_top", "tile_right", "tile_bottom")
Kept = tuple[NDArray[np.bool_], NDArray[np.bool_]]


def judged(context: Context, case: Case, job: TileJob, pictured: bool) -> Iterator[Row]:
    """Rows of the scene and of what each rule keeps; with `pictured` also of every tile."""
    downlink, nbytes = context.config.satellite.downlink, job.image.nbytes
    yield case.row("scene", "deterministic", "tiles", "count", len(job.tiles))
    yield case.row("scene", "deterministic", "scene_bytes", "bytes", nbytes)
    yield case.row("scene", "deterministic", "scene_downlink_time", "s", nbytes * BITS / downlink)
    means = tile_means(job.image, job.tiles, scale=job.scale, device=job.device)
    if pictured:
        for name, side in zip(SIDES, job.tiles.T.tolist(), strict=True):
            for tile, value in enumerate(side):
                yield case.row("tiles", "deterministic", name, "px", value, block=tile)
    for rule, (flags, right) in _kept(context, job, means).items():
        unlike = int((flags != right).sum())
        answer = different(f"{unlike} of {len(flags)} flags are not those of NumPy") if unlike else SAME
        nbytes = int(job.sizes[flags].sum())
        values = {
            ("kept_tiles", "count"): int(flags.sum()),
            ("kept_bytes", "bytes"): nbytes,
            ("kept_downlink_time", "s"): nbytes * BITS / downlink,
        }
        for name, value in values.items():
            yield case.row(rule, "deterministic", *name, value, answer=answer)
        for tile, flag in enumerate(flags.tolist() if pictured else ()):
            yield case.row(rule, "deterministic", "tile_kept", "count", int(flag), block=tile)


def _kept(context: Context, job: TileJob, means: NDArray[np.float64]) -> dict[str, Kept]:
    """By rule: its threshold, the flags, and the flags that NumPy's means give."""
    right = job.reference
    kept: dict[str, Kept] = {}
    for rule, level, expected in (
        ("fixed", job.threshold, right > job.threshold),
        ("otsu", otsu_threshold(means), right > otsu_threshold(right)),
    ):
        flags, _ = keep_tiles(job.image, job.tiles, level, scale=job.scale, device=job.device)
        kept[rule] = flags, expected
    budget = int(context.config.satellite.byte_budget * job.image.nbytes)
    kept["byte-budget"] = best_within(means, job.sizes, budget), best_within(right, job.sizes, budget)
    return kept


def picture(case: Case, band: NDArray[np.uint16]) -> list[Row]:
    """A small picture of the scene, in levels from 0 to 255, each the mean of its part."""
    small = cv2.resize(band.astype(np.float32), (THUMBNAIL, THUMBNAIL), interpolation=cv2.INTER_AREA)
    levels = np.rint(255 * np.clip(small / FULL_SCALE, 0, 1)).astype(int)
    return [
        case.row("scene", "deterministic", "thumbnail", "levels", level, block=place)
        for place, level in enumerate(levels.ravel().tolist())
    ]
