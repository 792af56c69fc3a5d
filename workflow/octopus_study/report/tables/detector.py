"""The table of the detector: stages, the whole, and whether the detections are the same."""

from __future__ import annotations

from collections.abc import Iterator

from octopus_study.report import detector
from octopus_study.report.captions import scope_title
from octopus_study.report.detector import NO_RUN, STUDY
from octopus_study.report.labels_edge import DETECTOR_METHODS, DETECTOR_STAGES
from octopus_study.report.numbers import Numbers
from octopus_study.report.tables import oldcells as cells
from octopus_study.report.tables.oldwriters import MISSING, Table

_PUBLISHED = {"gpu-preprocessing": "On the GPU", "cpu-preprocessing": "On the CPU"}


def stages(numbers: Numbers) -> Table:
    """Every way to prepare a frame: medians of the stages, all frames together, and the gain of Octopus."""
    reasons = cells.Reasons()
    frames = numbers.text("published.detector.yolo.frames")
    rows: list[list[str] | str] = [f"Jetson Orin Nano, as published: YOLO, {frames} frames"]
    for name, label in _PUBLISHED.items():
        each = numbers.text(f"published.derived.detector.{name}.frame_time")
        gain = numbers.text("published.detector.gpu-preprocessing.speedup") if "cpu" in name else MISSING
        total = numbers.text(f"published.detector.{name}.time")
        rows.append(
            [
                label,
                *(MISSING for _ in detector.STAGES),
                each,
                MISSING,
                total,
                gain,
                *(MISSING for _ in range(3)),
            ]
        )
    for scope in numbers.scopes(STUDY):
        rows += _section(numbers, scope, reasons)
    caption = (
        "A detector by the way its frames are prepared, from the frame on the host to the input on the model's device: "
        "medians over the frames, all frames together, total time / total time of Octopus, detections, and "
        "in how many frames they differ from those of Octopus, on the timed input and on one that is interpolated."
        f"{reasons.note}{'' if numbers.scopes(STUDY) else ' ' + NO_RUN}"
    )
    header = ["Prepared by", *DETECTOR_STAGES.values(), "Whole", "Preparing, of whole", "All frames"]
    header += ["Gain of Octopus", "Detections", "Differ", "Differ, interpolated"]
    return Table("detector", caption, header, rows, widths=("1.5fr", *("1fr" for _ in header[1:])))


def _section(numbers: Numbers, scope: str, reasons: cells.Reasons) -> Iterator[list[str] | str]:
    prefix, start = f"{scope}.{STUDY}", detector.prefix(numbers, scope)
    if not start:
        return
    frames = numbers.text(f"{prefix}.frames")
    yield f"{scope_title(numbers, scope, STUDY)}: {detector.model_name(numbers, scope)}, {frames} frames"
    for method in detector.METHODS:
        note = numbers.text(f"{start}.{method}.end_to_end.host")
        if note.startswith("unavailable"):
            yield [DETECTOR_METHODS[method], reasons.cell(note), *(MISSING for _ in range(9))]
            continue
        times = [
            cells.time_cell(numbers, f"{start}.{method}.{stage}.host", reasons)
            for stage in (*detector.STAGES, "end_to_end")
        ]
        yield [
            DETECTOR_METHODS[method],
            *times,
            cells.text_cell(numbers, f"{prefix}.preprocess_share.{method}"),
            cells.text_cell(numbers, f"{prefix}.total.{method}"),
            cells.text_cell(numbers, f"{prefix}.gain.total.over_{method}"),
            cells.text_cell(numbers, f"{start}.{method}.detections.deterministic"),
            cells.text_cell(numbers, f"{prefix}.frames_differing.{method}"),
            cells.text_cell(numbers, f"{prefix}.frames_differing_interpolated.{method}"),
        ]
