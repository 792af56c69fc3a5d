"""Whole pipelines before and after one import is changed: times, and how much of a model's step is preprocessing."""

from collections.abc import Iterator

from matplotlib.figure import Figure

from octopus_study.names import IMAGE_INPUTS, PIPELINE_METHODS, PIPELINES, SUBJECT
from octopus_study.report import captions
from octopus_study.report.charts import ratios
from octopus_study.report.frame import Frame, Key, Number, joined, make_number, make_text
from octopus_study.report.missing import absent
from octopus_study.report.study import Chart, StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.spec import Spec
from octopus_study.report.view import View, every_view

STUDY = "pipelines"
PREPARE, STEP = "prepare", "model_step"
MODELS = [name for name in PIPELINES if name.startswith("model-")]
QUANTITIES = (PREPARE, "crops", "loaded")
ORIGINAL, TORCHVISION = "transformers", "transformers-torchvision"
FILES = "jpeg"
DRAWN = ("model-one", "model-ragged"), ("pillow", FILES)  # of images into a model; the table has all
OTHERS = tuple(name for name in PIPELINE_METHODS if not name.startswith(SUBJECT))


def of_inputs(frame: Frame) -> Iterator[Number]:
    """Yield the least and the greatest speed-up over the processor among all batches and inputs whose answer is the
    same, and which they are; files are left out, whose reader is changed too. What is chosen as the least or greatest
    of many has no interval of one."""
    for view in every_view(frame, STUDY):
        found = view.select(quantity=PREPARE, layer="host", derived="speedup", other=ORIGINAL, method=SUBJECT)
        medians = {
            one: view.get(one.key.but(derived="", other=""))
            for one in found
            if one.known and one.input not in ("", FILES)
        }
        known = [one for one, median in medians.items() if median is not None and not median.differs]
        if not known:
            continue
        key, source = view.key("model", method=SUBJECT, quantity=PREPARE, layer="host"), joined(*known)
        for name, pick in (("least", min), ("greatest", max)):
            one = pick(known, key=lambda one: one.value)
            note = f"of {len(known)} batches and inputs: {one.id}"
            yield make_number(key.derive(name, ORIGINAL), source, one.unit, one.value, note=note)
            images = "1 image" if one.n == 1 else f"{one.n} images"
            text = f"{images} ({PIPELINES[one.workload]}), {IMAGE_INPUTS[one.input]}"
            yield make_text(key.derive(name), source, text, note=note)


def of_a_step(frame: Frame) -> Iterator[Number]:
    """Yield which share of a model's step preprocessing takes."""
    for view in every_view(frame, STUDY):
        for step in view.select(quantity=STEP, layer="host"):
            prepared = view.get(step.key.but(quantity=PREPARE))
            if step.known and prepared:
                key, note = prepared.key.derive("share", STEP), "median of preprocessing / median of the step"
                value = prepared.value / step.value
                yield make_number(key, joined(prepared, step), "fraction", value, note=note)


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


def named_case(key: Key) -> str:
    """Say a pipeline's name and what is passed to it."""
    return ", ".join(filter(None, (named(key.workload), IMAGE_INPUTS.get(key.input, ""))))


def batches(view: View) -> list[Key]:
    """Return the batches of a model's images, each once whatever is passed."""
    return list(dict.fromkeys(key.but(input="") for key in cases(view, (PREPARE,))))


_SHARE = {"quantity": PREPARE, "derived": "share", "other": STEP}
BY_INPUT = Spec(
    study=STUDY,
    first="Images",
    label=lambda view, key: f"{key.n}: {named(key.workload)}",
    cases=batches,
    columns={name: cells.versus(ORIGINAL, input=form) for form, name in IMAGE_INPUTS.items()}
    | {
        "over torchvision's": cells.versus(TORCHVISION, input=FILES),
        "and the model": cells.versus(ORIGINAL, input="pillow", quantity=STEP),
    },
    caption=captions.TABLES["pipelines_inputs"],
    absent=absent(STUDY, "Images into a model"),
    widths=("2.6fr", "0.8fr", "0.8fr", "0.8fr", "1.1fr", "1.1fr", "1.3fr", "1fr"),
)
_ALONE = {"quantity": PREPARE}
STEP_TABLE = Spec(
    study=STUDY,
    first="Images",
    label=lambda view, key: f"{key.n}: {named(key.workload)}",
    cases=lambda view: view.cases(SUBJECT, STEP, ("host",), order=MODELS),
    columns={
        "Step": cells.time(),
        "over transformers": cells.versus(ORIGINAL),
        "Preprocessing": cells.time(**_ALONE),
        "share": cells.text(**_SHARE),
        "before": cells.text(**_SHARE, method=ORIGINAL),
        "over threads": cells.versus("transformers-threads", **_ALONE),
        "over compiled": cells.versus("transformers-compiled", **_ALONE),
        "over Rust": cells.versus("hf-processors-rs", **_ALONE),
        "Cosine": cells.fact(quantity="cosine", layer="deterministic"),
        "Bytes off": cells.fact(quantity="values_differing", layer="deterministic"),
    },
    caption=captions.TABLES["pipelines_step"],
    absent=absent(STUDY, "A model's step"),
    widths=("1.8fr", "1.4fr", "1fr", "1.4fr", *("1fr",) * 7),
)


def draw(frame: Frame) -> Figure:
    """Draw the time of each pipeline as a multiple of that with Octopus, one panel per machine."""
    return ratios.draw(frame, STUDY, drawn, OTHERS, PIPELINE_METHODS, named_case)


def drawn(view: View) -> list[Key]:
    """Return the pipelines that the figure has room for."""
    workloads, inputs = DRAWN
    return [
        key for key in cases(view) if key.quantity != PREPARE or (key.workload in workloads and key.input in inputs)
    ]


REPORT = StudyReport(
    of_all=(of_a_step, of_inputs),
    tables={"pipelines_inputs": BY_INPUT, "pipelines_step": STEP_TABLE},
    figures={"pipelines": Chart(draw, caption=captions.FIGURES["pipelines"])},
)
