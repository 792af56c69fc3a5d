"""Study `satellite`: which tiles of a scene are worth the downlink, and what it takes to know.

The published random grid cuts Sentinel-2's red band into tiles; a tile is kept if its mean brightness is above a
fixed threshold, above Otsu's, or if it is among the brightest that fit a budget of bytes. The band is judged as it is
and as the published three channels of bytes. Rows say as their distribution whether they are of the ``full`` scene, of
a ``window`` of it, or of a scene that is generated beside a window in the published size (``scale``).

Timed are the kernel, beside the time to read the scene, and the way from the scene on the host to the flags there.
Beside a GPU the scene lies in page-locked memory on the host, for all methods.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import cv2
import numpy as np
from numpy.typing import NDArray

from octopus import best_within, keep_tiles, otsu_threshold, tile_means
from octopus_study.baselines.availability import make_all
from octopus_study.data.distributions import satellite_tiles
from octopus_study.data.synthetic import greenland_band
from octopus_study.measure import Case, HostClock, Method, Row, check_answers
from octopus_study.measure.bandwidth import drain
from octopus_study.status import SAME, different
from octopus_study.studies.comparison import Comparison, Part, compare
from octopus_study.studies.context import Context
from octopus_study.studies.satellite.methods import BOUND, METHODS, OnDevice, TileJob, methods, placed

KERNEL, WHOLE = "keep_tiles", "end_to_end"
FULL_SCALE = 10_000  # digital number of a reflectance of 1
THUMBNAIL = 128  # pixels along each side of the picture of the scene
BITS = 8  # of a byte
VARIANTS = ("uint16", "rgb8")  # digital numbers as they are, or three channels of bytes
# Mean brightness above which a tile is kept, of a real scene and of a generated one.
THRESHOLD, THRESHOLD_SYNTHETIC = 0.535, 0.35
BYTE_BUDGET = 0.45  # share of the scene's bytes that the best tiles may take
DOWNLINK = 2e6  # bits per second to the ground
SIDES = ("tile_left", "tile_top", "tile_right", "tile_bottom")
Kept = tuple[NDArray[np.bool_], NDArray[np.bool_]]  # flags of the library, and those that NumPy's means give
PUBLISHED_SIDE = 8192  # of the published scene in pixels
# Bytes of a scene that takes milliseconds: no method then needs an untimed run before each timed one.
LARGE = 1 << 25


@dataclass(frozen=True)
class View:
    """A scene, or the part of it that is judged."""

    name: str  # {"window", "full", "scale"}
    dataset: str
    band: NDArray[np.uint16]  # (H, W) uint16, digital numbers
    threshold: float  # the fixed one
    pictured: bool  # whether its rows also hold a picture


def plan(context: Context) -> Iterator[Part]:
    """A part for each scene and variant: what is kept, the kernels, and the whole way."""
    for view in _views(context):
        height, width = view.band.shape
        tiles = satellite_tiles(width, height, context.seed)
        for variant in VARIANTS:
            case = context.case(f"{view.name}-{variant}", len(tiles), dataset=view.dataset)
            alone = ("octopus", BOUND) if context.device == "cuda" else ("octopus",)
            comparisons = (
                Comparison(case, KERNEL, context.kernel_layer, alone),
                Comparison(case, WHOLE, "host", tuple(methods(context.device))),
            )
            yield Part(partial(_measure, view, variant, tiles), comparisons)


def as_variant(band: NDArray[np.uint16], variant: str) -> tuple[NDArray[np.uint8] | NDArray[np.uint16], float]:
    """The band as it is, or as three equal channels of bytes as published, and which value is full brightness."""
    if variant == "uint16":
        return band, float(FULL_SCALE)
    levels = np.arange(np.iinfo(np.uint16).max + 1) / FULL_SCALE
    table = np.rint(255 * np.clip(levels, 0, 1)).astype(np.uint8)
    return np.ascontiguousarray(np.broadcast_to(table[band][..., None], (*band.shape, 3))), 255.0


def _views(context: Context) -> Iterator[View]:
    """The published part of the whole scene; else the window that there is, and a generated scene of that size."""
    scene = context.scene
    band = scene.pixels
    threshold = THRESHOLD_SYNTHETIC if scene.synthetic else THRESHOLD
    if scene.whole:
        part = np.ascontiguousarray(band[:PUBLISHED_SIDE, :PUBLISHED_SIDE])
        yield View("full", scene.dataset, part, threshold, True)
        return
    yield View("window", scene.dataset, band, threshold, True)
    side = context.config.satellite.synthetic_side
    if side:
        made = greenland_band(side, side, context.seed)
        yield View("scale", "synthetic", made, THRESHOLD_SYNTHETIC, False)


def _measure(view: View, variant: str, tiles: NDArray[np.int32], context: Context, part: Part) -> Iterator[Row]:
    image, scale = as_variant(view.band, variant)
    job = TileJob(placed(image, context.device), tiles, scale, view.threshold, context.device)
    pictured = view.pictured and variant == "uint16"
    yield from _judged(context, part.case, job, pictured)
    for comparison in part.comparisons:
        yield from _timed(context, comparison, job)
    if pictured:
        yield from _picture(part.case, view.band)


def _judged(context: Context, case: Case, job: TileJob, pictured: bool) -> Iterator[Row]:
    """Rows of the scene and of what each rule keeps; with `pictured` also of every tile."""
    nbytes = job.image.nbytes
    yield case.row("scene", "deterministic", "tiles", "count", len(job.tiles))
    yield case.row("scene", "deterministic", "scene_bytes", "bytes", nbytes)
    yield case.row("scene", "deterministic", "scene_downlink_time", "s", nbytes * BITS / DOWNLINK)
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
            ("kept_downlink_time", "s"): nbytes * BITS / DOWNLINK,
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
    budget = int(BYTE_BUDGET * job.image.nbytes)
    kept["byte-budget"] = best_within(means, job.sizes, budget), best_within(right, job.sizes, budget)
    return kept


def _picture(case: Case, band: NDArray[np.uint16]) -> list[Row]:
    """A small picture of the scene, in levels from 0 to 255, each the mean of its part."""
    small = cv2.resize(band.astype(np.float32), (THUMBNAIL, THUMBNAIL), interpolation=cv2.INTER_AREA)
    levels = np.rint(255 * np.clip(small / FULL_SCALE, 0, 1)).astype(int)
    return [
        case.row("scene", "deterministic", "thumbnail", "levels", level, block=place)
        for place, level in enumerate(levels.ravel().tolist())
    ]


def _timed(context: Context, comparison: Comparison, job: TileJob) -> list[Row]:
    """Check the flags of every method that is available here, then time them."""
    is_kernel, clock = comparison.quantity == KERNEL, context.clock(comparison.layer)
    if not is_kernel and isinstance(clock, HostClock):
        clock.warm = clock.warm and job.image.nbytes < LARGE
    makers = {name: METHODS[name] for name in comparison.methods if name in METHODS}
    if is_kernel and job.on_gpu:
        makers = {"octopus": OnDevice}
    # A lack of memory is a row, never the end of the study.
    made, missing = make_all({name: partial(make, job) for name, make in makers.items()})
    compared = [Method(name, judge.run, partial(getattr, judge, "flags")) for name, judge in made.items()]
    if BOUND in comparison.methods:
        compared.append(Method(BOUND, drain(job.device_image)))
    answers = check_answers(compared, job.expected)
    budget = context.budget_within(context.config.satellite.max_seconds)
    return compare(context, comparison, compared, answers, missing, clock=clock, budget=budget)
