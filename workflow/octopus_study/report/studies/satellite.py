"""Satellite tiles: what each rule keeps and saves on the way down, and how fast each method judges the tiles."""

from __future__ import annotations

from octopus_study.names import SUBJECT, TILE_RULES, stand_in
from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import Frame, Key, published
from octopus_study.report.missing import no_run
from octopus_study.report.studies import satellite_figures, satellite_numbers
from octopus_study.report.studies.satellite_figures import METHODS, STUDY, scene_name, scenes, timed
from octopus_study.report.study import StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.spec import Spec, beside
from octopus_study.report.tables.writers import MISSING, Table
from octopus_study.report.view import KERNEL, View, views

_OVER = {
    "n-launches": "over a launch per tile",
    "padded": "over padding",
    "integral": "over an integral image (1 thread)",
    "opencv": "over OpenCV (1 thread)",
    "opencv-threads": "over OpenCV (all threads)",
    "numpy": "over NumPy (1 thread)",
}
_KERNEL = {"quantity": "keep_tiles", "layer": KERNEL}


def rules(frame: Frame) -> Table:
    """What each rule keeps of each scene, once for all machines, and the gain of the pipeline on each of them."""
    machines = [view for view in views(frame, STUDY) if scenes(view)]
    fact = {
        name: frame.text(published("satellite", "greenland", name))
        for name in (
            "tiles_kept",
            "tiles",
            "kept_bytes",
            "bandwidth_saved",
            "kept_downlink_time",
            "pipeline_speedup",
        )
    }
    threshold = frame.text(published("derived", "satellite", "threshold"))
    texts = [TILE_RULES["fixed"], threshold, f"{fact['tiles_kept']} of {fact['tiles']}", fact["kept_bytes"]]
    lines = ["Full scene, 3\u00a0\u00d7\u00a0uint8, as published, Jetson Orin Nano"]
    lines.append(([*texts, fact["bandwidth_saved"], fact["kept_downlink_time"]], lambda view: MISSING))
    for title, keys in _titles(machines).items():
        lines.append(title)
        lines += [_line(frame, keys, rule) for rule in TILE_RULES]
    caption = (
        "Tiles that each rule keeps, and what they take to the ground, the same on every machine. Then the pipeline: "
        "time of the whole scene to the ground / (processing + time of the kept tiles), with the share of processing "
        f"in brackets; published: {fact['pipeline_speedup']}. Brightness is in percent of full brightness."
    )
    first = ["Rule", "Brightness from", "Tiles", "Bytes", "Saved", "To the ground"]
    widths = (["1.3fr", *["1fr"] * 5], "1.6fr")
    return beside(machines, first, lines, caption, no_run(STUDY), widths, head="Pipeline, {}")


def _titles(machines: list[View]) -> dict[str, dict[str, Key]]:
    """Return by scene its number of tiles on each machine; generated stand-ins are scenes of their own."""
    titles: dict[str, dict[str, Key]] = {}
    for view in machines:
        for key in scenes(view):
            scene, comma, variant = scene_name(key).rpartition(", ")
            sample = " (synthetic sample)" if stand_in(view.frame[key].dataset) else ""
            size, sent = (
                view.text(key.but(quantity=name), "unknown")
                for name in ("scene_bytes", "scene_downlink_time")
            )
            title = f"{scene}{sample}{comma}{variant}: {size}, {sent} to the ground"
            titles.setdefault(title, {})[view.machine] = key
    return titles


def _line(frame: Frame, keys: dict[str, Key], rule: str):
    """Return what a rule keeps, as it is on the first machine, and the gain of the pipeline on each."""
    tiles = next(iter(keys.values()))
    threshold, kept, size, sent = (
        frame.text(tiles.but(method=rule, quantity=name), MISSING)
        for name in ("threshold", "kept_tiles", "kept_bytes", "kept_downlink_time")
    )
    saved = frame.text(tiles.but(method=rule, quantity="bandwidth_saved", layer=""), MISSING)

    def pipeline(view: View) -> str:
        key = keys.get(view.machine, Key("", "")).but(method=rule, layer="")
        gain, share = (view.text(key.but(quantity=name)) for name in ("pipeline_speedup", "processing_share"))
        return f"{gain} ({share})" if gain else MISSING

    return [TILE_RULES[rule], threshold, f"{kept} of {frame.text(tiles)}", size, saved, sent], pipeline


JUDGING = Spec(
    study=STUDY,
    first="Scene",
    label=lambda view, key: scene_name(key),
    cases=timed,
    columns=lambda frame: [
        ("Octopus", cells.time()),
        *((_OVER[name], cells.versus(name)) for name in METHODS if name != SUBJECT),
        ("Floor", cells.floor()),
        ("Kernel", cells.time(**_KERNEL)),
        ("Of read bound", cells.text(**_KERNEL, derived="share", other=satellite_numbers.BOUND)),
        *((_OVER[name], cells.versus(name, **_KERNEL)) for name in ("n-launches", "padded")),
    ],
    caption="Judging the tiles of a scene: time of Octopus from the scene on the host to the flags there, its "
    "speed-ups and the noise floor; then its kernel alone, with its share of the time to read the scene once, and "
    f"speed-ups. Verdicts stand where it isn't faster. Medians, {cells.WIDE_NOTE}.",
    absent=f"Judging the tiles. {no_run(STUDY)}",
    widths=("1.6fr", *["1fr"] * 12),
)

REPORT = StudyReport(
    numbers=(
        satellite_numbers.bounds,
        satellite_numbers.rules,
        satellite_numbers.answers,
        satellite_numbers.tiling,
        satellite_numbers.greenland,
    ),
    absent=satellite_numbers.absent,
    of_runs=(satellite_numbers.picture_words,),
    of_published=(satellite_numbers.published_numbers,),
    series=(satellite_numbers.pictures,),
    indexed=satellite_numbers.INDEXED,
    tables={"satellite": rules, "satellite_methods": JUDGING},
    figures={
        "satellite_tiles": Chart(
            satellite_figures.tiles,
            caption="The scene with the tiles that each rule keeps and drops, and what any other threshold would keep.",
            footer=satellite_figures.footer,
            synthetic=satellite_figures.synthetic,
            real="Sentinel-2",
        ),
        "satellite_pipeline": Chart(
            satellite_figures.pipeline,
            caption="What a scene takes to the ground, whole and rule by rule, and what judging its tiles "
            "takes before.",
            real="Sentinel-2",
        ),
    },
)
