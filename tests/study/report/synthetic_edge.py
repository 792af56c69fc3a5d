"""Made-up rows of the studies `satellite`, `drone` and `detector`. No value here was measured.

Tiles and numbers of detections follow the published rules; brightness is drawn, and times are a cost per launch and
one per object, so that the tests know what the report must find.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.random import RandomState
from synthetic_blocks import again, timed

from octopus_study.data.distributions import satellite_tiles
from octopus_study.measure.rows import Case, Row, unavailable

SIDE = 32  # of the thumbnail
DOWNLINK = 2e6
RULES = {"fixed": 0.535, "otsu": 0.47, "byte-budget": 0.51}
NO_GPU = "needs a CUDA GPU"
# Milliseconds per tile of each way to judge them, and fixed ones, end to end.
TILE_LAWS = {
    "gpu": {"octopus": (1e-4, 2.0), "n-launches": (6e-3, 2.0), "padded": (1e-3, 9.0)},
    "cpu": {"octopus": (0.02, 0.1), "padded": (0.09, 1.0)},
}
HOST_TILES = {"numpy": (0.06, 0.0), "opencv": (0.03, 0.0), "integral": (0.05, 0.5)}


def satellite(kind: str, dataset: str, full: bool = False) -> Iterator[Row]:
    """Yield the rows of the study of satellite tiles; with `full` the manifest holds the whole scene."""
    rng = np.random.default_rng(8)
    scenes = {"full": (dataset, 8192)} if full else {"window": (dataset, 1000), "scale": ("synthetic", 8192)}
    for scene, (name, side) in scenes.items():
        tiles = satellite_tiles(side, side)
        center = 0.5 * (tiles[:, :2] + tiles[:, 2:]) / side
        brightness = 0.5 + 0.2 * np.sin(5 * center[:, 0] + 3 * center[:, 1]) * np.cos(7 * center[:, 1])
        for variant, pixel in (("uint16", 2), ("rgb8", 3)):
            case = Case("satellite", name, f"{scene}-{variant}", len(tiles))
            yield from judged(case, tiles, brightness, pixel)
            if variant == "uint16" and scene != "scale":
                yield from picture(case, tiles, brightness)
            laws = TILE_LAWS[kind] | HOST_TILES
            times = again({method: slope * len(tiles) + fixed for method, (slope, fixed) in laws.items()})
            yield from timed(rng, case, "host", "end_to_end", times)
            own = {method: 0.4 * times[method] for method in (*TILE_LAWS[kind], "octopus-again")}
            if kind == "gpu":
                yield from timed(rng, case, "device", "keep_tiles", own | {"read-bound": 0.36 * times["octopus"]})
                continue
            yield from timed(rng, case, "host", "keep_tiles", own)
            yield unavailable(case, "n-launches", "host", "end_to_end", "ms", NO_GPU)


def judged(case: Case, tiles: np.ndarray, brightness: np.ndarray, pixel: int) -> Iterator[Row]:
    """Yield what each rule keeps, and how long that takes to the ground."""
    sizes = pixel * (tiles[:, 2] - tiles[:, 0]) * (tiles[:, 3] - tiles[:, 1]).astype(np.int64)
    whole = float(sizes.sum())
    yield case.row("scene", "deterministic", "tiles", "count", len(tiles))
    yield case.row("scene", "deterministic", "scene_bytes", "bytes", whole)
    yield case.row("scene", "deterministic", "scene_downlink_time", "s", 8 * whole / DOWNLINK)
    for rule, threshold in RULES.items():
        kept = brightness > threshold
        size = float(sizes[kept].sum())
        yield case.row(rule, "deterministic", "kept_tiles", "count", int(kept.sum()), answer="same")
        yield case.row(rule, "deterministic", "kept_bytes", "bytes", size)
        yield case.row(rule, "deterministic", "threshold", "fraction", threshold)
        yield case.row(rule, "deterministic", "kept_downlink_time", "s", 8 * size / DOWNLINK)


def picture(case: Case, tiles: np.ndarray, brightness: np.ndarray) -> Iterator[Row]:
    """Yield tiles and pixels of the picture, each row's block its index."""
    for index, (box, value) in enumerate(zip(tiles, brightness, strict=True)):
        for side, edge in zip(("left", "top", "right", "bottom"), box, strict=True):
            yield case.row("tiles", "deterministic", f"tile_{side}", "px", int(edge), block=index)
        yield case.row("tiles", "deterministic", "tile_brightness", "fraction", float(value), block=index)
        for rule, threshold in RULES.items():
            flag = int(value > threshold)
            yield case.row(rule, "deterministic", "tile_kept", "count", flag, block=index)
    place = (np.arange(SIDE) + 0.5) / SIDE
    levels = 5000 + 2000 * np.sin(5 * place[None] + 3 * place[:, None]) * np.cos(7 * place[:, None])
    for index, level in enumerate(levels.ravel()):
        yield case.row("scene", "deterministic", "thumbnail", "levels", float(level), block=index)


FRAME_RATE = 30
# Milliseconds per detection and fixed ones of each way to crop a frame's detections.
FRAME_LAWS = {
    "gpu": {
        "octopus": (5e-4, 0.30),
        "octopus-graph": (5e-4, 0.27),
        "n-launches": (7e-3, 0.30),
        "n-launches-published": (2.5e-2, 0.32),
        "opencv": (0.11, 0.2),
    },
    "cpu": {
        "octopus": (0.17, 0.15),
        "n-launches": (0.18, 0.16),
        "n-launches-published": (0.7, 0.2),
        "opencv": (0.6, 0.15),
    },
}


def detections(seconds: tuple[int, ...] = (1, 5, 10)) -> dict[int, np.ndarray]:
    """Return the detections of each frame by the published rule: one generator draws all clips."""
    random = RandomState(42)
    return {clip: random.randint(5, 51, FRAME_RATE * clip) for clip in seconds}


def drone(kind: str, dataset: str) -> Iterator[Row]:
    """Yield the rows of the study of the drone's video."""
    rng = np.random.default_rng(9)
    laws = again(FRAME_LAWS[kind])
    for seconds, counts in detections().items():
        case = Case("drone", dataset, f"clip-{seconds}s", int(counts.sum()))
        facts = {"detections": counts.sum(), "frames": len(counts)}
        for quantity, value in facts.items():
            yield case.row("clip", "deterministic", quantity, "count", int(value))
        yield case.row("clip", "deterministic", "frame_budget", "ms", 1000 / FRAME_RATE)
        yield from frame_times(rng, case, "host", laws, counts)
        if kind == "cpu":
            yield unavailable(case, "octopus-graph", "host", "frame_time", "ms", NO_GPU)
        if seconds == 10:
            slower = {
                name: (1.2 * slope, 1.5 * fixed)
                for name, (slope, fixed) in laws.items()
                if name in ("octopus", "octopus-graph", "n-launches", "opencv")
            }
            yield from frame_times(rng, case, "paced", slower, counts)


def frame_times(
    rng: np.random.Generator, case: Case, layer: str, laws: dict[str, tuple[float, float]], counts: np.ndarray
) -> Iterator[Row]:
    """Yield every frame by every method; one frame in a hundred meets something else on the machine."""
    for frame, count in enumerate(counts):
        shared = rng.normal(1, 0.02) * (4 if frame % 100 == 57 else 1)
        for method, (slope, fixed) in laws.items():
            value = (slope * count + fixed) * shared * rng.normal(1, 0.01)
            answer = "different: rounds to uint8" if method == "n-launches-published" else "same"
            yield case.row(method, layer, "frame_time", "ms", value, block=frame, answer=answer)


FRAMES = 40
# Milliseconds of preparing a frame; inference and the rest are the same for all.
PREPARING = {
    "gpu": {"octopus": 0.35, "opencv": 9.0, "opencv-uint8": 4.0},
    "cpu": {"octopus": 2.5, "opencv": 9.0, "opencv-uint8": 4.0},
}
MODEL = {"gpu": (6.0, 0.6), "cpu": (310.0, 1.1)}


def detector(kind: str, dataset: str, torch: bool = True) -> Iterator[Row]:
    """Yield the rows of the study of the detector; without `torch` there is no model."""
    rng = np.random.default_rng(10)
    case = Case("detector", dataset, "ssdlite320_mobilenet_v3_large-random-weights", FRAMES)
    if not torch:
        for method in PREPARING[kind]:
            for quantity in ("preprocess", "inference", "end_to_end"):
                why = "torch is not installed (pip install torch)"
                yield unavailable(case, method, "host", quantity, "ms", why)
        return
    inference, selecting = MODEL[kind]
    methods = again(PREPARING[kind])
    for frame in range(FRAMES):
        shared = rng.normal(1, 0.02)
        for method, preparing in methods.items():
            steps = {"preprocess": preparing, "inference": inference, "postprocess": selecting}
            steps = {name: time * shared * rng.normal(1, 0.01) for name, time in steps.items()}
            steps["end_to_end"] = sum(steps.values())
            for quantity, value in steps.items():
                yield case.row(method, "host", quantity, "ms", value, block=frame, answer="same")
    found = {"octopus": 1200, "opencv": 1200, "opencv-uint8": 1207}
    for method, count in found.items():
        yield case.row(method, "deterministic", "detections", "count", count)
    smaller = case._replace(workload=f"{case.workload}-608x608", n=FRAMES // 4)
    for one, differing in ((case, 0), (smaller, 7)):
        for method, unmatched in (("opencv", 0), ("opencv-uint8", 3 * differing)):
            on_edge = (method == "opencv" or 2) * bool(differing)
            yield one.row(method, "deterministic", "detections_unmatched", "count", unmatched, answer="same")
            yield one.row(method, "deterministic", "detections_on_edge", "count", on_edge, answer="same")
