"""Tables of image shapes: memory under each intervention, splits per width, how well lines fit, and patches."""

from __future__ import annotations

from collections.abc import Iterator

from octopus_study.methods import AS_PUBLISHED as PUBLISHED
from octopus_study.methods import DRUNET_MULTIPLE as MULTIPLE
from octopus_study.report.frame import Frame, Key
from octopus_study.report.labels import DENOISERS, SHAPE_WAYS
from octopus_study.report.studies.image_shape_view import (
    INTERVENTIONS,
    MODEL,
    NO_RUN,
    PEAK,
    SPLITS,
    STUDY,
    SUBSETS,
    Patch,
    machines,
    models,
    no_memory,
    steps,
    widths,
    with_interventions,
)
from octopus_study.report.studies.image_shape_view import patches as timed_patches
from octopus_study.report.tables import cells
from octopus_study.report.tables.cells import Cell
from octopus_study.report.tables.spec import Spec, build
from octopus_study.report.tables.writers import MISSING, Table
from octopus_study.report.view import View, views

_MEMORY = {
    PEAK: "Allocated",
    "first_allocated_peak": "Allocated, first",
    "reserved_peak": "Reserved",
    "device_delta": "Device",
}
_MEMORY_NOTE = (
    "Peaks of a forward, weights and image included: held by tensors (allocated; of the first forward apart) and by "
    "PyTorch's allocator (reserved); and what the forward takes of the device's free memory, where the weights lie "
    "already (device)"
)
_CELLS: dict[str, Cell] = {
    "Splits": cells.text(quantity=SPLITS, layer="deterministic"),
    **{head: cells.text(quantity=name, layer="memory") for name, head in _MEMORY.items()},
}
_FORWARD: dict[str, Cell] = {"Forward": cells.text(quantity="forward", layer="device")}


def _no_title(view: View) -> str:
    return ""


def _absent(frame: Frame) -> str:
    why = no_memory(frame) if frame.machines(STUDY) else NO_RUN
    return f"Memory of image models by the width of the image. {why}"


def _ways(view: View) -> Iterator[Key | str]:
    for model in with_interventions(view):
        verdict = view.text(view.key("cause", method=model, quantity="verdict"), "no verdict")
        for key in widths(view, f"{model}{INTERVENTIONS}"):
            yield f"{view.title}: {DENOISERS[model]}, width {key.n}; verdict: {verdict}"
            yield from (key.but(method=way) for way in SHAPE_WAYS)


def _way(view: View, key: Key) -> str:
    peak = view.get(key)
    differs = peak is not None and peak.note.startswith("different")
    mark = f" {cells.DIFFERENT} ({view.reasons.letter(peak.note)})" if differs else ""
    return f"{SHAPE_WAYS[key.method]}{mark}"


def _allocated(view: View, key: Key) -> str:
    text = view.text(key, MISSING)
    return view.reasons.cell(text) if text.startswith("unavailable") else cells.number_text(view.frame, key)


def _ratio(view: View, key: Key) -> str:
    if key.method == PUBLISHED and view.get(key):
        return "1"
    model = key.workload.removesuffix(INTERVENTIONS)
    ratio = view.key(f"interventions.{model}.w{key.n}", method=key.method, quantity=PEAK)
    return cells.number_text(view.frame, ratio)


CAUSE = Spec(
    study=STUDY,
    first="Way",
    label=_way,
    cases=_ways,
    columns={**_CELLS, _MEMORY[PEAK]: _allocated, "Ratio": _ratio, **_FORWARD},
    title=_no_title,
    caption=f"What changes DRUNet's memory. {_MEMORY_NOTE}. Ratio: allocated peak / that of the unchanged model. The "
    "verdict is by rule: four quadrants, if images are split exactly at widths that are no multiple of "
    f"{MULTIPLE}, running one whole raises the peak, splitting one lowers it, and cuDNN's benchmark mode changes "
    f"it by less; cuDNN heuristics in the opposite case; else undecided. {cells.DIFFERENT_NOTE}.",
    absent=_absent,
    widths=("1.6fr", *("1fr",) * 7),
)


def _uneven(view: View) -> Iterator[Key | str]:
    """Yield the widths of the steps that are no multiple of 8."""
    for step in steps(view, MODEL, SPLITS):
        if step % MULTIPLE:
            yield f"{view.title}: {DENOISERS[MODEL]}, step {step}"
            yield from widths(view, f"{MODEL}-step{step}", SPLITS)


def _widths_caption(frame: Frame) -> str:
    same = [view.machine for view in machines(frame)] == [view.machine for view in machines(frame, SPLITS)]
    followed = "" if same else " Where there is no GPU, the calls are counted by following the shapes."
    return f"Calls that split an image in quadrants, per width of DRUNet's image. {_MEMORY_NOTE}.{followed}"


WIDTHS = Spec(
    study=STUDY,
    first="Width",
    label=lambda view, key: str(key.n),
    cases=_uneven,
    columns={f"Modulo {MULTIPLE}": lambda view, key: str(key.n % MULTIPLE), **_CELLS, **_FORWARD},
    title=_no_title,
    caption=_widths_caption,
    absent=_absent,
    text_columns=(),
)


def _lines(view: View) -> Iterator[Key]:
    for model in models(view, SPLITS):
        for step in steps(view, model, SPLITS):
            for subset in SUBSETS:
                key = view.key(f"linearity.{model}.step{step}", method=subset)
                if subset == "all" or view.get(key.but(quantity="r2")):
                    yield key


def _line(view: View, key: Key) -> str:
    _, model, step = key.workload.split(".")
    return f"{DENOISERS[model]}, step {step.removeprefix('step')}, {SUBSETS[key.method]}"


def _split(view: View, key: Key) -> str:
    _, model, step = key.workload.split(".")
    words = view.text(view.key("splits", method=model, quantity=step), MISSING)
    return words if key.method == "all" else MISSING


LINES = Spec(
    study=STUDY,
    first="Model, step, widths",
    label=_line,
    cases=_lines,
    columns={
        "R\u00b2": cells.text(quantity="r2"),
        "Residual": cells.text(quantity="residual"),
        "Per column": cells.text(quantity="per_column"),
        "Split": _split,
    },
    caption="Allocated peak over the width: a line through the medians (Theil and Sen), the share of the variance that "
    "it explains (below zero: less than their mean does), its root mean square residual as a share of the "
    "median peak, and its slope. Split: widths at which the image was split, as counted.",
    absent=_absent,
    widths=("1.3fr", "auto", "auto", "auto", "2fr"),
    text_columns=(0, 4),
)


def _sides(view: View) -> Iterator[Key]:
    for model in DENOISERS:
        for side in sorted({patch.side for patch in timed_patches(view, model)}):
            yield view.key(f"patches.{model}", method=f"side{side}")


def _side(key: Key) -> tuple[str, int]:
    return key.workload.removeprefix("patches."), int(key.method.removeprefix("side"))


def _side_name(view: View, key: Key) -> str:
    model, side = _side(key)
    return f"{DENOISERS[model]}, {side} px"


def _time(batch: int) -> Cell:
    def text(view: View, key: Key) -> str:
        model, side = _side(key)
        number = timed_patches(view, model).get(Patch(side, batch))
        return number.text if number else MISSING

    return text


def _gain(quantity: str) -> Cell:
    def text(view: View, key: Key) -> str:
        number = view.get(key.but(quantity=quantity))
        return cells.with_interval(number).strip() if number else MISSING

    return text


def _of_model(quantity: str) -> Cell:
    """Say what a model has once, beside its smallest side."""

    def text(view: View, key: Key) -> str:
        first = next(each for each in _sides(view) if each.workload == key.workload)
        return view.text(key.but(method="", quantity=quantity), MISSING) if key == first else ""

    return text


def patches(frame: Frame) -> Table:
    """Time to cover the image, by side and batch, and what batches gain."""
    timed = [timed_patches(view, model) for view in views(frame, STUDY) for model in DENOISERS]
    batches = sorted({patch.batch for patches in timed for patch in patches})
    spec = Spec(
        study=STUDY,
        first="Model, side",
        label=_side_name,
        cases=_sides,
        columns={
            **{f"Batch {batch}": _time(batch) for batch in batches},
            "Gain": _gain("gain"),
            "Last doubling": _gain("last_doubling"),
            "Floor": _of_model("noise_floor"),
            "Best": _of_model("best"),
        },
        caption="Time to cover the image with square patches, by patches per batch, and the gain of the largest batch "
        "over the smallest and over the next smaller one (ratios of times, paired, with intervals). Floor: "
        "difference of a way to itself. Best: the least time of a model.",
        absent=_absent,
        widths=("1.2fr", *("auto" for _ in batches), "1fr", "1fr", "auto", "auto"),
    )
    return build(spec, frame)
