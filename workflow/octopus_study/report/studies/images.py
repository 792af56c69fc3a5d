"""Images of any size on their way into a model: times beside their bounds, and beside other processors."""

from collections.abc import Iterator

from matplotlib.figure import Figure

from octopus_study import names
from octopus_study.names import EMBEDDERS, IMAGE_BATCHES, PROCESSORS, ROOF, SUBJECT, TILE_OWNERS
from octopus_study.report import captions
from octopus_study.report.charts import ratios
from octopus_study.report.frame import Frame, Key, Number
from octopus_study.report.measured import floor_of, share_of_roof, speedup
from octopus_study.report.missing import absent
from octopus_study.report.runs import Run
from octopus_study.report.samples import Group, groups, pivot
from octopus_study.report.study import Chart, StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.spec import Spec
from octopus_study.report.view import View

STUDY = "images"
# Octopus' methods and the bounds of a result of their dtype.
BOUNDS = {SUBJECT: ("write-bound", "copy-bound"), "octopus-bf16": ("write-bound-bf16", "copy-bound-bf16")}
# Of rows on their way to embeddings: copying the images' bytes and theirs.
ROW_BOUNDS = {name: (f"{name}-bound",) for name in EMBEDDERS}
# Who gives another answer is also compared with Octopus that gives that one.
ALIKE = {row.name: row.like for row in (*names.PROCESSOR_METHODS, *names.OWNER_METHODS) if row.like != SUBJECT}
# Those of the figure, all from where Octopus has the images.
OTHERS = tuple(
    name
    for name in PROCESSORS
    if not (name.startswith(SUBJECT) or name.endswith("bound") or name == "transformers-cpu")
)
SEARCH = "block-search"
TABLED = ("lookup", "block-metadata", SEARCH)  # who is told something else than the others


def compares(group: Group, other: str) -> bool:
    """A bound is no baseline: shares of the roof stand in its place."""
    return "bound" not in other


def roofs(run: Run) -> Iterator[Number]:
    """Yield the share of its roof that a method reaches: filling the result or copying all bytes."""
    for group, rows in groups(run, unit="ms"):
        table = pivot(rows)
        for method, bounds in (ROW_BOUNDS if group.quantity == "patch_rows" else BOUNDS).items():
            yield from share_of_roof(run, group, table, method, bounds)


def alike(run: Run) -> Iterator[Number]:
    """Yield the speed-ups over those that are to be compared with another of its methods than `octopus`."""
    for group, rows in groups(run, unit="ms"):
        table = pivot(rows)
        for other, own in ALIKE.items():
            yield from speedup(run, group, table, (own, other), floor_of(table))


def cases(view: View) -> list[Key]:
    """Return the batches that Octopus was timed on."""
    return view.cases(SUBJECT, "end_to_end", ("host",), order=list(IMAGE_BATCHES))


def _label(view: View, key: Key) -> str:
    return f"{key.n} of {IMAGE_BATCHES[key.workload]}"


_KERNEL = {"quantity": "kernel", "layer": "device"}
_OF_ROOF = {"derived": "share", "other": ROOF}
_TABLE = {"quantity": "table_bytes", "layer": "deterministic"}
_COUNT = {"quantity": "launches", "layer": "deterministic"}
_TORCHVISION = {
    "torchvision, grouped": cells.versus("torchvision-grouped"),
    "torchvision, one by one": cells.versus("torchvision-loop"),
}


KERNELS = Spec(
    study=STUDY,
    first="Images",
    label=_label,
    cases=lambda view: cases(view) if view.is_gpu else [],
    columns=lambda frame: [
        ("Kernel", cells.time(**_KERNEL)),
        ("of its roof", cells.text(**_KERNEL, **_OF_ROOF)),
        ("bfloat16", cells.time(**_KERNEL, method="octopus-bf16")),
        ("of its roof", cells.text(**_KERNEL, **_OF_ROOF, method="octopus-bf16")),
        ("simple kernel", cells.time(**_KERNEL, method="octopus-simple")),
        ("Launches", cells.fact(**_COUNT)),
        ("those of transformers", cells.fact(**_COUNT, method="transformers")),
    ],
    caption=captions.TABLES["images_kernel"],
    absent=absent(STUDY, "Images of any size on a GPU"),
    widths=("1.9fr", *("1fr",) * 7),
)
OWNERS = Spec(
    study=STUDY,
    first="Images",
    label=lambda view, key: f"{_label(view, key)}, {'kernel' if key.layer == 'device' else 'whole way'}",
    cases=lambda view: [
        key.but(quantity=quantity, layer=layer)
        for key in (cases(view) if view.is_gpu else [])
        for quantity, layer in (("kernel", "device"), ("end_to_end", "host"))
    ],
    columns={
        TILE_OWNERS[SEARCH]: cells.time(method=SEARCH),
        **{label: cells.versus(name, method=SEARCH) for name, label in TILE_OWNERS.items() if name != SEARCH},
        **{f"bytes of {TILE_OWNERS[name][0]}": cells.fact(method=name, **_TABLE) for name in TABLED},
    },
    caption=captions.TABLES["images_owners"],
    absent=absent(STUDY, "Who owns which tile of images of any size"),
    widths=("2.2fr", *("1fr",) * 9),
)
ON_GPU = Spec(
    study=STUDY,
    first="Images",
    label=_label,
    cases=lambda view: cases(view) if view.is_gpu else [],
    columns={
        "Octopus": cells.time(),
        "one call": cells.time(method="octopus-one-call"),
        "sizes as before": cells.time(method="octopus-same-sizes"),
        "over transformers": cells.versus("transformers"),
        "on the CPU": cells.versus("transformers-cpu"),
        **_TORCHVISION,
        "DALI": cells.versus("dali"),
        "CV-CUDA": cells.versus("cvcuda"),
    },
    caption=captions.TABLES["images"],
    absent=absent(STUDY, "Images of any size on a GPU"),
    widths=("1.9fr", *("1.5fr",) * 3, "1.3fr", "0.8fr", "1.1fr", "1.1fr", "0.9fr", "0.9fr"),
)
ON_CPU = Spec(
    study=STUDY,
    first="Images",
    label=_label,
    cases=lambda view: [] if view.is_gpu else cases(view),
    columns={
        "Octopus": cells.time(),
        "over transformers": cells.versus("transformers"),
        **_TORCHVISION,
        **{PROCESSORS[name]: cells.versus(name, method=own) for name, own in ALIKE.items() if name in PROCESSORS},
        "of its roof": cells.text(**_OF_ROOF),
    },
    caption=captions.TABLES["images_cpu"],
    absent=absent(STUDY, "Images of any size on a CPU"),
    widths=("1.9fr", *("1fr",) * 8),
)


def steps(view: View) -> Iterator[Key | str]:
    """Yield the batches whose patches became embeddings, and below each its methods."""
    for key in view.cases(SUBJECT, "projection", ("device",), order=list(IMAGE_BATCHES)):
        yield _label(view, key)
        found = (key.but(method=name) for name in EMBEDDERS)
        yield from (one for one in found if view.get(one) or view.reason(one))


def _bytes(quantity: str) -> cells.Cell:
    return cells.fact(quantity=quantity, layer="deterministic")


_ROWS = {"quantity": "patch_rows", "layer": "device"}
_WHOLE = {"quantity": "embeddings", "layer": "host"}
STEPS = Spec(
    study=STUDY,
    first="Rows and layer",
    label=lambda view, key: EMBEDDERS[key.method],
    cases=steps,
    columns={
        "Rows": _bytes("row_bytes"),
        "Read": _bytes("bytes_read"),
        "Written": _bytes("bytes_written"),
        "Kernel": cells.time(**_ROWS),
        "Share": cells.text(**_ROWS, **_OF_ROOF),
        "Layer": cells.time(),
        "Whole way": cells.time(**_WHOLE),
        "Octopus over it": lambda view, key: cells.speedup(key.method, method=SUBJECT, **_WHOLE)(view, key),
        "Error": _bytes("largest_error"),
    },
    caption=captions.TABLES["images_embeddings"],
    absent=absent(STUDY, "Images on a GPU to embeddings"),
    widths=("auto", *("1fr",) * 6, "auto", "1.2fr", "1fr"),
)


def draw(frame: Frame) -> Figure:
    """Draw the whole time of a batch as a multiple of that of Octopus, one panel per machine."""
    return ratios.draw(frame, STUDY, cases, OTHERS, PROCESSORS, lambda key: IMAGE_BATCHES[key.workload], ALIKE)


REPORT = StudyReport(
    numbers=(roofs, alike),
    compares=compares,
    tables={
        "images_kernel": KERNELS,
        "images": ON_GPU,
        "images_cpu": ON_CPU,
        "images_owners": OWNERS,
        "images_embeddings": STEPS,
    },
    figures={"images": Chart(draw, caption=captions.FIGURES["images"])},
)
