"""What only the study of satellite tiles knows: what each rule saves on the way down, and the picture's parts."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from octopus_study.names import SCENES, SUBJECT, TILE_RULES, stand_in
from octopus_study.report.frame import HERE, Frame, Number, make_number, make_text, published
from octopus_study.report.machines import kind, shown
from octopus_study.report.measured import medians, share_of_bound
from octopus_study.report.missing import make_absent
from octopus_study.report.published import derived
from octopus_study.report.runs import Run
from octopus_study.report.samples import groups, pivot
from octopus_study.report.selector import ALL_ROWS, either, where
from octopus_study.report.series import Series
from octopus_study.report.study import StudyReport

BOUND = "read-bound"
EDGES = ("left", "top", "right", "bottom")
# Quantities whose block is the index of a tile or of a pixel.
INDEXED = (*(f"tile_{edge}" for edge in EDGES), "tile_brightness", "tile_kept", "thumbnail")
# The published scene: three channels of bytes, the tiles above a fixed threshold.
SIDE, PUBLISHED, RULE = 8192, "full-rgb8", "fixed"
_PIXEL_BYTES = {"uint16": 2, "rgb8": 3}
_TILING = {"tiles": "count", "scene_bytes": "bytes", "scene_downlink_time": "s"}
_KEPT = {"kept_tiles": "count", "kept_bytes": "bytes", "kept_downlink_time": "s"}
_KNOWN_BY = ("tiles", "scene_bytes")  # what tells the published scene
_COUNTED = (*_KEPT, *_TILING)
_GREENLAND = _KEPT | {
    "kept_share": "fraction",
    "bandwidth_saved": "fraction",
    "pipeline_speedup": "ratio",
    "processing": "ms",
    "processing_share": "fraction",
}
ATTRIBUTION = "Contains modified Copernicus Sentinel data 2019, processed by ESA"
GENERATED = "Generated stand-in, no picture of a satellite"


def bounds(run: Run) -> Iterator[Number]:
    """Yield the share that reading the scene once is of the kernel's time."""
    for group, rows in groups(run, unit="ms"):
        yield from share_of_bound(run, group, pivot(rows), SUBJECT, BOUND)


def _scenes(run: Run) -> Iterator[tuple[Frame, Number]]:
    """Yield the scenes that a run judged, as their numbers of tiles among the medians of the whole run."""
    frame = Frame(medians(run, StudyReport(indexed=INDEXED)))
    for number in frame.select(run.scope, run.study, quantity="tiles", method="scene", layer="deterministic"):
        if number.known:
            yield frame, number


def rules(run: Run) -> Iterator[Number]:
    """Yield shares and times of each rule: ``<workload>.n<tiles>.<rule>.<name>``."""
    for frame, tiles in _scenes(run):
        for rule in TILE_RULES:
            yield from _rule(run, frame, tiles, rule)


def _rule(run: Run, frame: Frame, tiles: Number, rule: str) -> Iterator[Number]:
    kept, size, sent = (frame.value(tiles.key.but(method=rule, quantity=name)) for name in _KEPT)
    whole, everything = (
        frame.value(tiles.key.but(quantity=name)) for name in ("scene_bytes", "scene_downlink_time")
    )
    number = frame.get(tiles.key.but(method=SUBJECT, quantity="end_to_end", layer="host"))
    known = number is not None and sent == sent and everything > 0
    times = (number.value, number.low, number.high) if known else (math.nan,) * 3
    value, low, high = (sent + time / 1000 for time in times)
    values = {
        "kept_share": ([kept / tiles.value], "tiles / tiles"),
        "bandwidth_saved": ([1 - size / whole], "1 - kept bytes / bytes of the scene"),
        "processing": (times, f"end_to_end of {SUBJECT}, host"),
        "pipeline_speedup": (
            [everything / time for time in (value, high, low)],
            "downlink of the scene / (processing + downlink of the kept tiles)",
        ),
        "processing_share": (
            [time / 1000 / (sent + time / 1000) for time in times],
            "processing / (processing + downlink of the kept tiles)",
        ),
    }
    scene = {"workload": tiles.workload, "n": tiles.n}
    counted = where(**scene, method=(rule, "scene"), layer="deterministic", quantity=_COUNTED)
    timed = where(**scene, method=SUBJECT, layer="host", quantity="end_to_end")
    for name, (ends, note) in values.items():
        if math.isfinite(ends[0]):
            chosen = counted if len(ends) == 1 and name != "pipeline_speedup" else either([counted, timed])
            source = tiles.source._replace(selector=chosen)
            key = run.key(tiles.workload, tiles.n, rule, quantity=name)
            yield make_number(key, source, _GREENLAND.get(name, "fraction"), *ends, note=note)


def answers(run: Run) -> Iterator[Number]:
    """Yield in words whether every rule kept the tiles of a NumPy reference."""
    rows = run.rows[(run.rows["quantity"] == "kept_tiles") & run.rows["value"].notna()]
    if len(rows):
        equal = int((rows["answer"] == "same").sum())
        text = f"in {'all' if equal == len(rows) else f'{equal} of'} {len(rows)} cases"
        source = run.from_rows(rows["dataset"].iloc[0], "quantity=kept_tiles")
        note = "cases: scene, variant and rule; equal: the same flag for every tile"
        yield make_text(run.fact_key("flags_equal"), source, text, note)


def tiling(run: Run) -> Iterator[Number]:
    """Yield what the published size of the scene fixes, whatever it shows: tiles and time to send it all."""
    numbers: dict[str, Number] = {}
    for frame, tiles in _scenes(run):
        variant = tiles.workload.rpartition("-")[2]
        if frame.value(tiles.key.but(quantity="scene_bytes")) == _PIXEL_BYTES.get(variant, 0) * SIDE**2:
            for name in _TILING if variant == "rgb8" else ("tiles",):
                if number := frame.get(tiles.key.but(quantity=name)):
                    numbers[name] = number
    for name, number in numbers.items():
        known = dict.fromkeys((name, *_KNOWN_BY))
        chosen = where(workload=number.workload, n=number.n, method="scene", quantity=known)
        source = number.source._replace(selector=chosen)
        yield make_number(run.key("tiling", quantity=name), source, number.unit, number.value)


def greenland(run: Run) -> Iterator[Number]:
    """Yield the published scene's numbers under names of their own."""
    for frame, tiles in _scenes(run):
        if tiles.workload == PUBLISHED and not tiles.synthetic:
            source = tiles.source._replace(
                selector=where(workload=PUBLISHED, n=tiles.n, method=(RULE, "scene"))
            )
            for name, unit in _KEPT.items():
                number = frame.get(tiles.key.but(method=RULE, quantity=name))
                if number:
                    yield make_number(run.key("greenland", quantity=name), source, unit, number.value)
            for number in _rule(run, frame, tiles, RULE):
                if number.quantity in _GREENLAND:
                    yield number.named(run.key("greenland", quantity=number.quantity))
            return


def absent(run: Run) -> Iterator[Number]:
    """Yield why a run can't have the numbers of a whole scene, or of the published one."""
    source = run.from_rows("n/a", ALL_ROWS)
    for name, unit in _TILING.items():
        why = f"needs a scene of {SIDE} \u00d7 {SIDE} px"
        yield make_absent(run.key("tiling", quantity=name), source, unit, why)
    for name, unit in _GREENLAND.items():
        yield make_absent(run.key("greenland", quantity=name), source, unit, _why_not(run))


def _why_not(run: Run) -> str:
    if any(map(stand_in, run.datasets)):
        return "needs the real scene, not generated data"
    if not run.rows["workload"].str.startswith("full-").any():
        return f"needs the full scene of {SIDE} \u00d7 {SIDE} px, not a window of it"
    return "needs a time of the full scene as three channels of bytes"


def published_numbers(frame: Frame) -> Iterator[Number]:
    """Yield the published threshold as a share of full brightness, and what processing is of the time to the ground."""
    threshold, processing, sent = (
        frame.get(published("satellite", "greenland", name))
        for name in ("threshold", "processing", "kept_downlink_time")
    )
    if threshold:
        yield derived(threshold, "satellite", "fraction", threshold.value, "as printed", quantity="threshold")
    if processing and sent:
        share = processing.value / (processing.value + 1000 * sent.value)
        note = "processing / (processing + downlink of the kept tiles)"
        yield derived((processing, sent), "satellite", "fraction", share, note, quantity="processing_share")


def pictures(run: Run) -> Iterator[Series]:
    """Yield ``picture.<scene>``: the scene made small, and its tiles."""
    for series, _, _ in _pictures(run):
        yield series


def _pictures(run: Run) -> Iterator[tuple[Series, str, str]]:
    """Yield each picture with its data set and workload. A scene that lacks a part has none."""
    rows = run.rows[run.rows["quantity"].isin(INDEXED) & run.rows["value"].notna()]
    for (dataset, workload), chosen in rows.groupby(["dataset", "workload"], sort=False):
        parts = {
            (quantity, method): one.sort_values("block")["value"].to_numpy()
            for (quantity, method), one in chosen.groupby(["quantity", "method"], sort=False)
        }
        names = {edge: (f"tile_{edge}", "tiles") for edge in EDGES} | {
            "brightness": ("tile_brightness", "tiles")
        }
        pixels = parts.get(("thumbnail", "scene"))
        lengths = {len(parts.get(part, ())) for part in names.values()}
        if pixels is None or len(lengths) != 1 or 0 in lengths:
            continue
        columns = {name: parts[part].tolist() for name, part in names.items()}
        columns["brightness"] = [float(f"{value:.5g}") for value in columns["brightness"]]
        for rule in TILE_RULES:
            if len(parts.get(("tile_kept", rule), ())) == len(columns["left"]):
                columns[f"kept.{rule}"] = parts["tile_kept", rule].tolist()
        name = f"picture.{workload.partition('-')[0]}"
        yield Series(run.scope, run.study, name, columns, _levels(pixels)), str(dataset), str(workload)


def _levels(pixels: np.ndarray) -> np.ndarray:
    """Return pixels as a square, shape (side, side), uint8; the darkest is 0, the brightest 255."""
    dark, light = float(pixels.min()), float(pixels.max())
    levels = np.rint(255 * (pixels - dark) / max(light - dark, 1e-12)).astype(np.uint8)
    side = round(len(levels) ** 0.5)
    return levels[: side * side].reshape(side, side)


def rank(synthetic: bool, scene: str) -> tuple[bool, bool]:
    """Return what sorts pictures: real data before generated ones, the full scene before its window."""
    return synthetic, scene != "full"


def picture_words(runs: list[Run]) -> Iterator[Number]:
    """Yield ``shown.satellite.picture``: what the picture shows, with what must stand under it."""
    ordered = sorted(runs, key=lambda run: (run.scope != HERE, kind(run) != "gpu", run.scope))
    found = [(run, *one) for run in ordered for one in _pictures(run)]
    ranked = sorted(found, key=lambda one: rank("synthetic" in one[2], one[3].partition("-")[0]))
    for run, series, dataset, workload in ranked[:1]:
        scene, size = workload.partition("-")[0], (max(series["right"]), max(series["bottom"]))
        attribution = GENERATED if "synthetic" in dataset else ATTRIBUTION
        text = (
            f"{SCENES.get(scene, scene)}, {size[0]:.0f} \u00d7 {size[1]:.0f} px, {len(series['left'])} tiles"
        )
        number = shown(
            [run],
            "picture",
            f"{text}. {attribution}.",
            f"workload={workload}, quantity={' and '.join(INDEXED)}",
        )
        yield number._replace(dataset=dataset)
