"""Tables of the satellite's tiles: what each rule keeps and saves, and how fast each way to judge the tiles is."""

from __future__ import annotations

from collections.abc import Iterator

from octopus_study.report import satellite
from octopus_study.report.captions import scope_name, scope_title
from octopus_study.report.labels_edge import SCENES, TILE_RULES, VARIANTS
from octopus_study.report.numbers import Numbers
from octopus_study.report.satellite import NO_RUN, STUDY
from octopus_study.report.tables import oldcells as cells
from octopus_study.report.tables.oldwriters import MISSING, Table

_PUBLISHED = "published.satellite.greenland"
_OVER = {
    "n-launches": "over a launch per tile",
    "padded": "over padding",
    "integral": "over an integral image",
    "opencv": "over OpenCV",
    "numpy": "over NumPy",
}
_KERNELS = ("n-launches", "padded")
_KEPT = ("threshold", "kept_tiles", "kept_bytes")


def rules(numbers: Numbers) -> Table:
    """What each rule keeps of each scene, once for all machines, and the gain of the pipeline on each of them."""
    scopes = satellite.measured(numbers)
    rows: list[list[str] | str] = ["Full scene, 3\u00a0\u00d7\u00a0uint8, as published, Jetson Orin Nano"]
    texts = {name: numbers.text(f"{_PUBLISHED}.{name}") for name in ("tiles_kept", "tiles", "kept_bytes")}
    published = numbers.text(f"{_PUBLISHED}.pipeline_speedup")
    rows.append(
        [
            TILE_RULES["fixed"],
            numbers.text("published.derived.satellite.threshold"),
            f"{texts['tiles_kept']} of {texts['tiles']}",
            texts["kept_bytes"],
            numbers.text(f"{_PUBLISHED}.bandwidth_saved"),
            numbers.text(f"{_PUBLISHED}.kept_downlink_time"),
            *(MISSING for _ in scopes),
        ]
    )
    for title, starts in _scenes(numbers, scopes).items():
        rows.append(title)
        rows += [_rule(numbers, starts, rule, scopes) for rule in satellite.RULES]
    caption = (
        "Tiles that each rule keeps, and what they take to the ground, the same on every machine. Then the pipeline: "
        "time of the whole scene to the ground / (processing + time of the kept tiles), with the share of processing "
        f"in brackets; published: {published}. Brightness is in percent of full brightness."
        f"{'' if scopes else ' ' + NO_RUN}"
    )
    header = ["Rule", "Brightness from", "Tiles", "Bytes", "Saved", "To the ground"]
    header += [f"Pipeline, {scope_name(numbers, scope)}" for scope in scopes]
    widths = ("1.3fr", *("1fr" for _ in header[1:6]), *("1.6fr" for _ in scopes))
    return Table("satellite", caption, header, rows, widths=widths)


def _scenes(numbers: Numbers, scopes: list[str]) -> dict[str, dict[str, str]]:
    """Return by scene the start of ids on each machine that judged it; generated stand-ins are scenes of their own."""
    found: dict[str, dict[str, str]] = {}
    for scope in scopes:
        for (scene, variant), start in satellite.prefixes(numbers, scope).items():
            whole = numbers[f"{start}.scene.scene_bytes.deterministic"]
            stand_in = " (synthetic sample)" if "synthetic-" in whole.dataset else ""
            to_ground = numbers.text(f"{start}.scene.scene_downlink_time.deterministic")
            title = f"{SCENES[scene]}{stand_in}, {VARIANTS[variant]}: {whole.text}, {to_ground} to the ground"
            found.setdefault(title, {})[scope] = start
    return found


def _rule(numbers: Numbers, starts: dict[str, str], rule: str, scopes: list[str]) -> list[str]:
    start = f"{next(iter(starts.values()))}"
    threshold, kept, size = (numbers.text(f"{start}.{rule}.{name}.deterministic", MISSING) for name in _KEPT)
    tiles = numbers.text(f"{start}.scene.tiles.deterministic")
    gains = []
    for scope in scopes:
        own = f"{starts.get(scope, '')}.{rule}"
        gain, share = (numbers.text(f"{own}.{name}") for name in ("pipeline_speedup", "processing_share"))
        gains.append(f"{gain} ({share})" if gain else MISSING)
    return [
        TILE_RULES[rule],
        threshold,
        f"{kept} of {tiles}",
        size,
        numbers.text(f"{start}.{rule}.bandwidth_saved", MISSING),
        numbers.text(f"{start}.{rule}.kept_downlink_time.deterministic", MISSING),
        *gains,
    ]


def methods(numbers: Numbers) -> Table:
    """Time from the scene on the host to the flags there, of the kernel alone, and speed-ups of Octopus."""
    reasons = cells.Reasons()
    rows: list[list[str] | str] = []
    for scope in satellite.measured(numbers):
        rows += _section(numbers, scope, reasons)
    caption = (
        "Judging the tiles of a scene: time of Octopus from the scene on the host to the flags there, its speed-ups "
        "and the noise floor; then its kernel alone, with its share of the time to read the scene once, and speed-ups. "
        f"Verdicts stand where it isn't faster. Medians, {cells.WIDE_NOTE}.{reasons.note}"
    )
    header = ["Scene", "Octopus", *(_OVER[name] for name in satellite.METHODS[1:]), "Floor"]
    header += ["Kernel", "Of read bound", *(_OVER[name] for name in _KERNELS)]
    widths = ("1.6fr", *("1fr" for _ in header[1:]))
    return Table(
        "satellite_methods", caption if rows else f"Judging the tiles. {NO_RUN}", header, rows, widths=widths
    )


def _section(numbers: Numbers, scope: str, reasons: cells.Reasons) -> Iterator[list[str] | str]:
    found = satellite.timed(numbers, scope)
    if found:
        yield scope_title(numbers, scope, STUDY)
    for (scene, variant), start in found.items():
        whole = f"{start}.octopus.end_to_end.host"
        layer = "device" if numbers.get(f"{start}.octopus.keep_tiles.device") else "host"
        kernel = f"{start}.octopus.keep_tiles.{layer}"
        yield [
            f"{SCENES[scene]}, {VARIANTS[variant]}",
            cells.time_cell(numbers, whole, reasons),
            *(cells.versus_cell(numbers, whole, other, reasons) for other in satellite.METHODS[1:]),
            cells.floor_cell(numbers, whole),
            cells.time_cell(numbers, kernel, reasons),
            cells.text_cell(numbers, f"{kernel}.share_of_read-bound"),
            *(cells.versus_cell(numbers, kernel, other, reasons) for other in _KERNELS),
        ]
