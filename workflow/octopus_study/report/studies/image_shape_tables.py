"""Tables of image shapes: memory under each intervention, splits per width, how well lines fit, and patches."""

from __future__ import annotations

from collections.abc import Iterator

from octopus_study.names import AS_PUBLISHED as PUBLISHED
from octopus_study.names import DENOISERS, SHAPE_WAYS
from octopus_study.names import DRUNET_MULTIPLE as MULTIPLE
from octopus_study.report.frame import Frame, Key
from octopus_study.report.missing import no_run
from octopus_study.report.studies import image_shape_view as shape
from octopus_study.report.tables import cells
from octopus_study.report.tables.cells import Cell
from octopus_study.report.tables.spec import Spec, build
from octopus_study.report.tables.writers import MISSING, Table
from octopus_study.report.view import View, views

_MEMORY = {
    shape.PEAK: "Allocated",
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
_CELLS: dict[str, Cell] = {
    "Splits": cells.text(quantity=shape.SPLITS, layer="deterministic"),
    **{head: cells.text(quantity=name, layer="memory") for name, head in _MEMORY.items()},
}
_FORWARD: dict[str, Cell] = {"Forward": cells.text(quantity="forward", layer="device")}


def _no_title(view: View) -> str:
    return ""


def _absent(frame: Frame) -> str:
    why = shape.no_memory(frame) if frame.shown(shape.STUDY) else no_run(shape.STUDY)
    return f"Memory of image models by the width of the image. {why}"


def _ways(view: View) -> Iterator[Key | str]:
    for model in shape.with_interventions(view):
        verdict = view.text(view.key("cause", method=model, quantity="verdict"), "no verdict")
        for key in shape.widths(view, f"{model}{shape.INTERVENTIONS}"):
            yield f"{view.title}: {DENOISERS[model]}, width {key.n}; verdict: {verdict}"
            yield from (key.but(method=way) for way in SHAPE_WAYS)


def _way(view: View, key: Key) -> str:
    return f"{SHAPE_WAYS[key.method]}{cells.different_mark(view.get(key), view.reasons)}"


def _ratio(view: View, key: Key) -> str:
    if key.method == PUBLISHED and view.get(key):
        return "1"
    model = key.workload.removesuffix(shape.INTERVENTIONS)
    ratio = view.key(f"interventions.{model}.w{key.n}", method=key.method, quantity=shape.PEAK)
    return cells.number_text(view.frame, ratio)


CAUSE = Spec(
    study=shape.STUDY,
    first="Way",
    label=_way,
    cases=_ways,
    columns={**_CELLS, _MEMORY[shape.PEAK]: cells.fact(), "Ratio": _ratio, **_FORWARD},
    title=_no_title,
    caption=f"What changes DRUNet's memory. {_MEMORY_NOTE}. Ratio: allocated peak / that of the unchanged model. The "
    "verdict is by rule: four quadrants, if images are split exactly at widths that are no multiple of "
    f"{MULTIPLE}, running one whole raises the peak, splitting one lowers it, and cuDNN's benchmark mode changes "
    "it by less; cuDNN heuristics in the opposite case; else undecided.",
    absent=_absent,
    widths=("1.6fr", *("1fr",) * 7),
)


def _uneven(view: View) -> Iterator[Key | str]:
    """Yield the widths of the steps that are no multiple of 8."""
    for step in shape.steps(view, shape.MODEL, shape.SPLITS):
        if step % MULTIPLE:
            yield f"{view.title}: {DENOISERS[shape.MODEL]}, step {step}"
            yield from shape.widths(view, f"{shape.MODEL}-step{step}", shape.SPLITS)


def _widths_caption(frame: Frame) -> str:
    """Return the caption: calls that split an image in quadrants, and memory, per width of DRUNet's image."""
    measured, counted = (
        [view.machine for view in shape.machines(frame, name)] for name in (shape.PEAK, shape.SPLITS)
    )
    followed = "" if measured == counted else _FOLLOWED
    return f"Calls that split an image in quadrants, per width of DRUNet's image. {_MEMORY_NOTE}.{followed}"


WIDTHS = Spec(
    study=shape.STUDY,
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
    for model in shape.models(view, shape.SPLITS):
        for step in shape.steps(view, model, shape.SPLITS):
            for subset in shape.SUBSETS:
                key = view.key(f"linearity.{model}.step{step}", method=subset)
                if subset == "all" or view.get(key.but(quantity="r2")):
                    yield key


def _line(view: View, key: Key) -> str:
    _, model, step = key.workload.split(".")
    return f"{DENOISERS[model]}, step {step.removeprefix('step')}, {shape.SUBSETS[key.method]}"


def _split(view: View, key: Key) -> str:
    _, model, step = key.workload.split(".")
    words = view.text(view.key("splits", method=model, quantity=step), MISSING)
    return words if key.method == "all" else MISSING


LINES = Spec(
    study=shape.STUDY,
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
        for side in sorted({patch.side for patch in shape.patches(view, model)}):
            yield view.key(f"patches.{model}", method=f"side{side}")


def _side(key: Key) -> tuple[str, int]:
    return key.workload.removeprefix("patches."), int(key.method.removeprefix("side"))


def _side_name(view: View, key: Key) -> str:
    model, side = _side(key)
    return f"{DENOISERS[model]}, {side} px"


def _time(batch: int) -> Cell:
    def text(view: View, key: Key) -> str:
        model, side = _side(key)
        number = shape.patches(view, model).get(shape.Patch(side, batch))
        return number.text if number else MISSING

    return text


def _of_model(quantity: str) -> Cell:
    """Say what a model has once, beside its smallest side."""

    def text(view: View, key: Key) -> str:
        first = next(one for one in _sides(view) if one.workload == key.workload)
        return view.text(key.but(method="", quantity=quantity), MISSING) if key == first else ""

    return text


def patches(frame: Frame) -> Table:
    """Time to cover the image, by side and batch, and what batches gain."""
    timed = [shape.patches(view, model) for view in views(frame, shape.STUDY) for model in DENOISERS]
    batches = sorted({patch.batch for patches in timed for patch in patches})
    spec = Spec(
        study=shape.STUDY,
        first="Model, side",
        label=_side_name,
        cases=_sides,
        columns={
            **{f"Batch {batch}": _time(batch) for batch in batches},
            "Gain": cells.interval(quantity="gain"),
            "Last doubling": cells.interval(quantity="last_doubling"),
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
