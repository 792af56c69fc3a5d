"""Tables of image shapes: memory under each intervention, splits per width, how well lines fit, and patches."""

from __future__ import annotations

from collections.abc import Iterator

from octopus_study.report import image_shape
from octopus_study.report.captions import scope_title
from octopus_study.report.image_shape import MULTIPLE, NO_RUN, PEAK, PUBLISHED, SPLITS, STUDY, Patch
from octopus_study.report.labels import DENOISERS, SHAPE_WAYS
from octopus_study.report.numbers import Numbers
from octopus_study.report.tables import oldcells as cells
from octopus_study.report.tables.oldwriters import MISSING, Table

_MEMORY = {
    "allocated_peak": "Allocated",
    "first_allocated_peak": "Allocated, first",
    "reserved_peak": "Reserved",
    "device_delta": "Device",
}
_MEMORY_NOTE = (
    "Peaks of a forward, weights and image included: held by tensors (allocated; of the first forward apart) and by "
    "PyTorch's allocator (reserved); and what the forward takes of the device's free memory, where the weights lie "
    "already (device)"
)
_FOLLOWED = " Where there is no GPU, the calls are counted by following the shapes."
_SUBSETS = {"all": "all", "whole": "run whole", "split": "split"}
MODEL = "drunet"  # the only one that splits


def cause(numbers: Numbers) -> Table:
    """Peak and time under each intervention, at a width that is split and at one that runs whole."""
    reasons = cells.Reasons()
    rows: list[list[str] | str] = []
    for scope in image_shape.measured(numbers):
        for model in image_shape.interventions(numbers, scope):
            for width in image_shape.widths(numbers, scope, f"{model}-interventions"):
                verdict = numbers.text(f"{scope}.{STUDY}.cause.{model}.verdict", "no verdict")
                rows.append(
                    f"{scope_title(numbers, scope, STUDY)}: {DENOISERS[model]}, width {width}; verdict: {verdict}"
                )
                rows += [_way(numbers, scope, model, width, way, reasons) for way in SHAPE_WAYS]
    caption = (
        f"What changes DRUNet's memory. {_MEMORY_NOTE}. Ratio: allocated peak / that of the unchanged model. The "
        "verdict is by rule: four quadrants, if images are split exactly at widths that are no multiple of "
        f"{MULTIPLE}, running one whole raises the peak, splitting one lowers it, and cuDNN's benchmark mode changes "
        f"it by less; cuDNN heuristics in the opposite case; else undecided. {cells.DIFFERENT_NOTE}.{reasons.note}"
    )
    header = ["Way", "Splits", *_MEMORY.values(), "Ratio", "Forward"]
    widths = ("1.6fr", *("1fr" for _ in header[1:]))
    return Table("shape_cause", caption if rows else _none(numbers), header, rows, widths=widths)


def _none(numbers: Numbers) -> str:
    said = image_shape.no_memory(numbers) if numbers.scopes(STUDY) else NO_RUN
    return f"Memory of image models by the width of the image. {said}"


def _way(numbers: Numbers, scope: str, model: str, width: int, way: str, reasons: cells.Reasons) -> list[str]:
    workload = f"{model}-interventions"
    keys = [image_shape.key(scope, workload, width, way, name, "memory") for name in _MEMORY]
    first = numbers.text(keys[0])
    peak = numbers.get(keys[0])
    differs = peak is not None and peak.note.startswith("different")
    mark = f" {cells.DIFFERENT} ({reasons.letter(peak.note)})" if peak and differs else ""
    unavailable = reasons.cell(first) if first.startswith("unavailable") else MISSING
    ratio = f"{scope}.{STUDY}.interventions.{model}.w{width}.{way}.{PEAK}"
    return [
        f"{SHAPE_WAYS[way]}{mark}",
        cells.text_cell(numbers, image_shape.key(scope, workload, width, way, SPLITS, "deterministic")),
        cells.text_cell(numbers, keys[0]) if peak else unavailable,
        *(cells.text_cell(numbers, key) for key in keys[1:]),
        "1" if way == PUBLISHED and peak else cells.text_cell(numbers, ratio),
        cells.text_cell(numbers, image_shape.key(scope, workload, width, way, "forward", "device")),
    ]


def widths(numbers: Numbers) -> Table:
    """Splits, memory and time of DRUNet at every width of the step that is no multiple of 8."""
    rows: list[list[str] | str] = []
    for scope in image_shape.counted(numbers):
        for workload in _uneven(numbers, scope):
            step = workload.rpartition("step")[2]
            found = image_shape.widths(numbers, scope, workload, SPLITS, "deterministic")
            rows.append(f"{scope_title(numbers, scope, STUDY)}: {DENOISERS[MODEL]}, step {step}")
            rows += [_width(numbers, scope, workload, width) for width in found]
    caption = (
        f"Calls that split an image in quadrants, per width of DRUNet's image. {_MEMORY_NOTE}."
        f"{'' if image_shape.counted(numbers) == image_shape.measured(numbers) else _FOLLOWED}"
    )
    header = ["Width", f"Modulo {MULTIPLE}", "Splits", *_MEMORY.values(), "Forward"]
    return Table("shape_widths", caption if rows else _none(numbers), header, rows, text_columns=())


def _uneven(numbers: Numbers, scope: str) -> list[str]:
    """Return the workloads of steps that are no multiple of 8."""
    found = numbers.matching(rf"{scope}\.{STUDY}\.splits\.({MODEL})\.step(\d+)")
    steps = sorted(int(match[2]) for match, _ in found)
    return [f"{MODEL}-step{step}" for step in steps if step % MULTIPLE]


def _width(numbers: Numbers, scope: str, workload: str, width: int) -> list[str]:
    def text(quantity: str, layer: str) -> str:
        return cells.text_cell(numbers, image_shape.key(scope, workload, width, PUBLISHED, quantity, layer))

    memory = [text(name, "memory") for name in _MEMORY]
    return [
        str(width),
        str(width % MULTIPLE),
        text(SPLITS, "deterministic"),
        *memory,
        text("forward", "device"),
    ]


def lines(numbers: Numbers) -> Table:
    """How well a line explains the peak over the width, by model and step, and where images are split."""
    rows: list[list[str] | str] = []
    for scope in image_shape.counted(numbers):
        rows.append(scope_title(numbers, scope, STUDY))
        for model in DENOISERS:
            rows += _lines(numbers, scope, model)
    caption = (
        "Allocated peak over the width: a line through the medians (Theil and Sen), the share of the variance that it "
        "explains (below zero: less than their mean does), its root mean square residual as a share of the "
        "median peak, and its slope. Split: widths at which the image was split, as counted."
    )
    header = ["Model, step, widths", "R\u00b2", "Residual", "Per column", "Split"]
    widths_of = ("1.3fr", "auto", "auto", "auto", "2fr")
    absent = _none(numbers)
    return Table("shape_lines", caption if rows else absent, header, rows, (0, 4), widths_of)


def _lines(numbers: Numbers, scope: str, model: str) -> Iterator[list[str]]:
    found = numbers.matching(rf"{scope}\.{STUDY}\.splits\.{model}\.step(\d+)")
    for step in sorted(int(match[1]) for match, _ in found):
        for subset, name in _SUBSETS.items():
            start = f"{scope}.{STUDY}.linearity.{model}.step{step}.{subset}"
            if subset != "all" and not numbers.get(f"{start}.r2"):
                continue
            yield [
                f"{DENOISERS[model]}, step {step}, {name}",
                *(cells.text_cell(numbers, f"{start}.{one}") for one in ("r2", "residual", "per_column")),
                numbers.text(f"{scope}.{STUDY}.splits.{model}.step{step}", MISSING)
                if subset == "all"
                else MISSING,
            ]


def patches(numbers: Numbers) -> Table:
    """Time to cover the image, by side and batch, and what batches gain."""
    scopes = image_shape.covered(numbers)
    batches = sorted(
        {
            patch.batch
            for scope in scopes
            for model in DENOISERS
            for patch in image_shape.patches(numbers, scope, model)
        }
    )
    rows: list[list[str] | str] = []
    for scope in scopes:
        rows.append(scope_title(numbers, scope, STUDY))
        for model in DENOISERS:
            rows += _sides(numbers, scope, model, batches)
    caption = (
        "Time to cover the image with square patches, by patches per batch, and the gain of the largest batch over the "
        "smallest and over the next smaller one (ratios of times, paired, with intervals). Floor: "
        "difference of a way to itself. Best: the least time of a model."
    )
    header = [
        "Model, side",
        *(f"Batch {batch}" for batch in batches),
        "Gain",
        "Last doubling",
        "Floor",
        "Best",
    ]
    widths_of = ("1.2fr", *("auto" for _ in batches), "1fr", "1fr", "auto", "auto")
    return Table("shape_patches", caption if rows else _none(numbers), header, rows, widths=widths_of)


def _sides(numbers: Numbers, scope: str, model: str, batches: list[int]) -> Iterator[list[str]]:
    found = image_shape.patches(numbers, scope, model)
    start = f"{scope}.{STUDY}.patches.{model}"
    for place, side in enumerate(sorted({patch.side for patch in found})):
        times = [found.get(Patch(side, batch)) for batch in batches]
        gains = [numbers.get(f"{start}.side{side}.{name}") for name in ("gain", "last_doubling")]
        yield [
            f"{DENOISERS[model]}, {side} px",
            *(number.text if number else MISSING for number in times),
            *(cells.with_interval(number).strip() if number else MISSING for number in gains),
            cells.text_cell(numbers, f"{start}.noise_floor") if place == 0 else "",
            numbers.text(f"{start}.best", MISSING) if place == 0 else "",
        ]
