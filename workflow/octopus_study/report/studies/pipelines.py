"""Whole pipelines before and after one import is changed: times, and how much of a model's step is preprocessing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from octopus_study.report.charts import ratios, style
from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import Frame, Key, Number, joined, make_number
from octopus_study.report.labels import PIPELINE_METHODS, PIPELINES
from octopus_study.report.measured import SUBJECT, floor_of, speedup
from octopus_study.report.missing import no_run
from octopus_study.report.runs import Run
from octopus_study.report.samples import Group, groups, pivot
from octopus_study.report.study import StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.spec import Spec
from octopus_study.report.view import View, every_view, views

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STUDY = "pipelines"
NO_TIMES = "No run of the study pipelines that is shown timed anything."
PREPARE, STEP, CROPS = "prepare", "model_step", "crops"
MODELS = [name for name in PIPELINES if name.startswith("model-")]
QUANTITIES = (PREPARE, CROPS, "slices", "loaded")
BOUND, ON_CPU = "upload-only", ("octopus-cpu", "transformers-cpu")
RIVALS = tuple(
    name
    for name in PIPELINE_METHODS
    if not (name.startswith(SUBJECT) or name.endswith("cpu") or name == BOUND)
)


def compares(group: Group, other: str) -> bool:
    """A bare copy is no opponent."""
    return other != BOUND


def on_the_cpu(run: Run) -> Iterator[Number]:
    """Yield the speed-up over the model's processor where both work on the CPU, beside a GPU."""
    for group, rows in groups(run, quantity=PREPARE, unit="ms"):
        table = pivot(rows)
        if set(ON_CPU) <= set(table.columns):
            yield from speedup(run, group, table, ON_CPU, floor_of(table))


def of_a_step(frame: Frame) -> Iterator[Number]:
    """Yield which share of a model's step preprocessing takes, and how many images a second go through it."""
    for view in every_view(frame, STUDY):
        for step in view.select(quantity=STEP, layer="host"):
            prepared = view.get(step.key.but(quantity=PREPARE))
            if step.key.derived or not step.known or prepared is None or not prepared.known:
                continue
            source, key = joined(prepared, step), prepared.key.derive("share", STEP)
            note = "median of preprocessing / median of the step"
            yield make_number(key, source, "fraction", prepared.value / step.value, note=note)
            key, note = step.key.derive("images_per_second"), "images / median of the step"
            yield make_number(key, source, "1/s", 1000 * step.n / step.value, note=note)


def cases(view: View, quantities: tuple[str, ...] = QUANTITIES) -> list[Key]:
    """Return the pipelines that Octopus was timed in."""
    return [
        key
        for quantity in quantities
        for key in view.cases(SUBJECT, quantity, ("host",), order=MODELS if quantity == PREPARE else ())
    ]


def named(workload: str) -> str:
    """Say a pipeline's name; those of crops and loaders have a number in them."""
    kind, _, number = workload.partition("-")
    numbered = {"crops": "{} detections", "loader": "JPEG, {} workers"}
    return numbered[kind].format(number.partition("-")[0]) if kind in numbered else PIPELINES[workload]


def _label(view: View, key: Key) -> str:
    return named(key.workload)


def _of(*quantities: str) -> Callable[[View], list[Key]]:
    return lambda view: cases(view, quantities)


def _absent(what: str) -> Callable[[Frame], str]:
    return lambda frame: f"{what}: no run at hand has it." if frame.shown(STUDY) else no_run(STUDY)


_SHARE = {"quantity": PREPARE, "derived": "share", "other": STEP}
_WAITS = {"quantity": "host_waits", "layer": "deterministic"}
MODEL = Spec(
    study=STUDY,
    first="Images",
    label=lambda view, key: f"{key.n}: {_label(view, key)}",
    cases=_of(PREPARE),
    columns={
        "Octopus": cells.time(),
        "over transformers": cells.versus("transformers"),
        "Upload alone": cells.time(method=BOUND),
        "On the CPU": cells.time(method=ON_CPU[0]),
        "over transformers there": cells.versus(ON_CPU[1], method=ON_CPU[0]),
        "Bytes one level off": cells.fact(quantity="values_differing", layer="deterministic"),
    },
    caption="Images into Qwen2-VL, from the host to patch rows where the model is: transformers' processor with its "
    "import changed, on the GPU and on the CPU beside it. Upload alone: as many bytes from page-locked memory. Bytes "
    "one level off: share of all values.",
    absent=_absent("Images into a model"),
    widths=("2fr", "1.3fr", "1.2fr", "1.2fr", "1.3fr", "1.4fr", "0.8fr"),
)
STEP_TABLE = Spec(
    study=STUDY,
    first="Images",
    label=lambda view, key: f"{key.n}: {_label(view, key)}",
    cases=lambda view: view.cases(SUBJECT, STEP, ("host",), order=MODELS),
    columns={
        "Octopus": cells.time(),
        "over transformers": cells.versus("transformers"),
        "Preprocessing": cells.text(**_SHARE),
        "with transformers": cells.text(**_SHARE, method="transformers"),
        "Images/s": cells.text(derived="images_per_second"),
        "Cosine": cells.fact(quantity="cosine", layer="deterministic"),
    },
    caption="Images through Qwen2-VL's processor and vision tower, in bfloat16 with random weights: time of the step, "
    "the share of it that preprocessing takes, and took with transformers, and the least cosine between the two "
    "embeddings of a patch.",
    absent=_absent("A model's step"),
    widths=("2fr", *("1fr",) * 6),
)
CROP_TABLE = Spec(
    study=STUDY,
    first="Boxes",
    label=lambda view, key: f"{_label(view, key)} of {key.n}",
    cases=_of(CROPS),
    columns={
        "Graph": cells.time(method="octopus-graph"),
        "Plan": cells.time(),
        "over PyTorch": cells.versus("torch-loop"),
        "over OpenCV": cells.versus("opencv-loop"),
        "Waits": cells.fact(**_WAITS, method="octopus-graph"),
        "PyTorch's": cells.fact(**_WAITS, method="torch-loop"),
    },
    caption="Crops of a detector's boxes, whose number the GPU alone knows: to the synchronised result, by a CUDA "
    "graph, by a plan, and its speed-up over a loop of PyTorch where the frame is, and one of OpenCV on the host. "
    "Waits of the host for the GPU in a frame, in the driver's trace.",
    absent=_absent("Crops of a detector's boxes"),
    widths=("2fr", *("1fr",) * 6),
)
DATA = Spec(
    study=STUDY,
    first="Pipeline",
    label=_label,
    cases=_of("slices", "loaded"),
    columns={
        "n": lambda view, key: str(key.n),
        "Octopus": cells.time(),
        "over sahi": cells.versus("sahi"),
        "over NumPy": cells.versus("numpy-slices"),
        "over transformers": cells.versus("transformers"),
        "in the workers": cells.versus("octopus-cpu"),
    },
    caption="A frame of 4K as overlapping slices for a detector, and a folder of JPEG images read by a DataLoader to "
    "batches for SigLIP; from the host to where the network is. In the workers: Octopus on the CPU in the processes "
    "that decode, in place of one launch on the GPU.",
    absent=_absent("Slices and loaders"),
    widths=("2fr", "0.6fr", *("1fr",) * 5),
)


def draw(frame: Frame) -> Figure:
    """Draw the time of each pipeline as a multiple of that with Octopus, one panel per machine."""
    shown = [view for view in views(frame, STUDY) if cases(view)]
    if not shown:
        return style.empty(NO_TIMES)
    names = {key.workload: named(key.workload) for view in shown for key in cases(view)}
    return ratios.draw(shown, cases, RIVALS, PIPELINE_METHODS, names)


REPORT = StudyReport(
    of_all=(of_a_step,),
    numbers=(on_the_cpu,),
    compares=compares,
    tables={
        "pipelines_model": MODEL,
        "pipelines_step": STEP_TABLE,
        "pipelines_crops": CROP_TABLE,
        "pipelines_data": DATA,
    },
    figures={
        "pipelines": Chart(
            draw,
            caption="Whole pipelines: images into Qwen2-VL, crops of detections, slices, and a folder of images; time "
            "of each way as a multiple of that with Octopus.",
        )
    },
)
