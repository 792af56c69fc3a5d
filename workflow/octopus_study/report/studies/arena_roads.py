"""Tables of the arena about what Octopus takes and gives beside float32 crops of RGB: roads, frames of video, affine
maps, and a count that lies on the GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from octopus_study.names import BOUND, INPUTS, ROADS, SUBJECT
from octopus_study.report.frame import Key
from octopus_study.report.studies.arena_kernel import NO_ROWS
from octopus_study.report.studies.arena_numbers import ALONE, KERNEL, SUBMIT
from octopus_study.report.studies.arena_view import STUDY
from octopus_study.report.tables import cells
from octopus_study.report.tables.spec import Spec
from octopus_study.report.view import View

_ON_DEVICE = "all that is read on the device, by events with a cold L2; medians with intervals of 95 %"


def _kernel_cases(workloads: Iterable[str]) -> Callable[[View], list[Key]]:
    """Return the rows of a table: what Octopus was timed on of some workloads."""
    return lambda view: view.cases(SUBJECT, KERNEL, (cells.KERNEL,), list(workloads))


ROAD_TABLE = Spec(
    study=STUDY,
    first="Result, boxes",
    label=lambda view, key: ROADS[key.workload],
    columns={
        "n": lambda view, key: str(key.n),
        "Octopus": cells.interval(),
        "Write bound": cells.time(method=BOUND),
        "Share of the bound": cells.interval(derived="share", other=BOUND),
    },
    cases=_kernel_cases(ROADS),
    caption=f"The kernel's roads, results of 224 \u00d7 224 unless said otherwise; {_ON_DEVICE}. Bound: to write "
    "as many bytes as are read of the frame and written, in the same blocks.",
    absent=f"The kernel's roads. {NO_ROWS}",
    widths=("2.6fr", "0.6fr", *("1.7fr",) * 3),
)
OTHER_INPUTS = Spec(
    study=STUDY,
    first="Input",
    label=lambda view, key: INPUTS[key.workload],
    columns={
        "n": lambda view, key: str(key.n),
        "Octopus": cells.interval(),
        "Share of filling": cells.fact(derived="share", other=BOUND),
        "over an RGB frame": cells.versus("octopus-rgb"),
        "converted first": cells.versus("octopus-converted"),
        "roiconvert": cells.versus("roiconvert"),
        "cuframe": cells.versus("cuframe"),
        "affine_grid": cells.versus("affine-grid"),
        "OpenCV": cells.versus("opencv-table"),
    },
    cases=_kernel_cases(INPUTS),
    caption="Other inputs, float32 NCHW: frames of video in NV12, VisDrone boxes, and affine maps of the frame, turned "
    f"and scaled at random; {_ON_DEVICE}, on a CPU by the host's clock, one thread each. Speed-ups: time of the other "
    "/ time of Octopus, faster unless said otherwise.",
    absent="Other inputs than boxes of an RGB frame. No run that is shown has these rows.",
    widths=("2.2fr", "0.6fr", "2.3fr", *("1.1fr",) * 7),
)


def _counted(view: View) -> list[Key]:
    keys = [key for key in view.cases(SUBJECT, KERNEL) if key.workload.startswith("count-")]
    return sorted(keys, key=lambda key: int(key.workload.partition("-")[2]))


_WAITS = {"quantity": "host_waits", "layer": "deterministic"}
_SUBMIT, _ALONE = {"quantity": SUBMIT, "layer": "host"}, {"quantity": ALONE, "layer": "host"}
COUNTED = Spec(
    study=STUDY,
    first="Boxes that count",
    label=lambda view, key: f"{key.workload.partition('-')[2]} of {key.n}",
    columns={
        "Kernel": cells.interval(),
        "replayed": cells.time(method="octopus-graph"),
        "per box": cells.text(derived="per_object"),
        "for as many": cells.time(method="octopus-known"),
        "A run, host": cells.time(**_SUBMIT),
        "a replay, host": cells.time(**_SUBMIT, method="octopus-graph"),
        "Whole": cells.time(**_ALONE),
        "over reading back": cells.versus("octopus-read-back", **_ALONE),
        "Waits": cells.fact(**_WAITS),
        "reading back": cells.fact(**_WAITS, method="octopus-read-back"),
    },
    cases=_counted,
    caption="A count of boxes that lies on the GPU, VisDrone boxes. Kernel: by events with a cold L2, one launch for "
    "all that there may be, from a plan or a CUDA graph; over all boxes; and a launch for as many as count. Host: what "
    "queueing it takes. Whole: to the synchronised result, and the speed-up over copying the count to the host first. "
    "Waits of the host for the GPU in one call, in the driver's own trace, and those of reading the count back.",
    absent=f"A count of boxes that lies on the GPU. {NO_ROWS}",
    widths=("1.3fr", "2fr", *("1.2fr",) * 7, "0.8fr", "1fr"),
)
TABLES = {"arena_roads": ROAD_TABLE, "arena_inputs": OTHER_INPUTS, "arena_count": COUNTED}
