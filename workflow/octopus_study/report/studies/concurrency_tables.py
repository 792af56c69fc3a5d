"""Tables of two models on one GPU: every way to run both, which one to take by rule, and crops beside a model."""

from __future__ import annotations

import re
from functools import partial

from octopus_study.names import CONCURRENCY_ARMS, CONCURRENCY_PROOFS, CONCURRENCY_STAGES, CROPS_BESIDE
from octopus_study.report.frame import Frame, Key
from octopus_study.report.missing import no_run
from octopus_study.report.studies import concurrency_figures as pair
from octopus_study.report.studies.concurrency_rule import BASE
from octopus_study.report.tables import cells
from octopus_study.report.tables.cells import Cell
from octopus_study.report.tables.spec import Spec
from octopus_study.report.tables.writers import MISSING
from octopus_study.report.text import reason
from octopus_study.report.view import View, views

BESIDE, LATENCY = "crops-beside-model", "latency_"
_LATE = "\u00b6"
_GOALS = {
    "makespan": "Shortest makespan",
    "critical": "Least median latency of visual odometry",
    "other": "Least median latency of satellite matching",
    "memory": "Least device memory",
    "whole": "By the rule",
}


def _absent(frame: Frame, subject: str = "Two models on one GPU") -> str:
    return f"{subject}. {pair.no_times(frame) if frame.shown(pair.STUDY) else no_run(pair.STUDY)}"


def _makespan(view: View, key: Key) -> str:
    mark = cells.different_mark(view.get(key), view.reasons)
    return f"{cells.time_text(view.frame, key, view.reasons)}{mark}"


def _over_sequential(view: View, key: Key) -> str:
    number = view.get(view.key("arms", method=key.method, quantity="over_sequential"))
    if number is None:
        return MISSING
    verdict = view.text(key.derive("verdict", BASE))
    noise = cells.floor_text(view.frame, key.but(method=BASE))
    return f"{number.text}, {verdict} ({noise})" if verdict else number.text


def _percentiles(model: str) -> Cell:
    """Say the median and the 99th percentile of a model's latency with one unit."""

    def text(view: View, key: Key) -> str:
        middle, end = pair.latency(view, model, key.method, "p50"), pair.late(view, model, key.method)
        if middle is None or end is None:
            return MISSING
        mark = "" if end.quantity == "p99" else f" {_LATE}"
        digits, _, unit = middle.text.partition(" ")
        first = digits if end.text.endswith(f" {unit}") else middle.text
        return f"{first} / {end.text}{mark}"

    return text


WAYS = Spec(
    study=pair.STUDY,
    first="Way",
    label=lambda view, key: CONCURRENCY_ARMS[key.method],
    cases=lambda view: (
        [key for key in map(partial(pair.makespan, view), CONCURRENCY_ARMS) if view.text(key)]
        if pair.timed(view)
        else []
    ),
    columns={
        "Makespan": _makespan,
        "Ratio": _over_sequential,
        "Hidden": cells.interval(workload="arms", n=None, quantity="overlap", layer=""),
        "Odometry": _percentiles("visual-odometry"),
        "Matching": _percentiles("satellite-matching"),
    },
    caption="Two models on one GPU: visual odometry (SuperPoint and LightGlue) and satellite matching (DINOv2 and "
    "EfficientLoFTR, which stands in for LiteSAM), random weights. Makespan: until both results of a frame pair "
    "are there. Ratio: makespan / that of one after the other, with the verdict and, in brackets, the noise floor. "
    "Hidden: share of the shorter model, (T1 + T2 \u2212 makespan) / min(T1, T2). Odometry, matching: median / "
    f"99th percentile of each model's latency. {_LATE}: the longest, there are too few iterations for a 99th "
    "percentile.",
    absent=_absent,
    widths=("auto", "auto", "1.2fr", "1fr", "auto", "auto"),
)


def _counted(view: View, key: Key) -> str:
    counts = []
    for quantity, names in CONCURRENCY_PROOFS.items():
        number = view.get(key.but(quantity=quantity, layer="deterministic"))
        if number:
            counts.append(f"{number.text} {names[number.value != 1]}")
    return ", ".join(counts) or MISSING


def _proof_caption(frame: Frame) -> str:
    """Return the caption: what each way counts of its mechanism, and which models no graph could hold."""
    caught: dict[str, str] = {}
    for view in filter(pair.timed, views(frame, pair.STUDY)):
        for stage, name in CONCURRENCY_STAGES.items():
            key = pair.makespan(view, "cuda-graphs").but(quantity=f"captured_{stage}", layer="deterministic")
            if view.text(key).startswith("unavailable"):
                caught[name] = first_words(reason(view.text(key)))
    parts = "; ".join(f"{name} ({why})" for name, why in caught.items())
    return (
        "Proofs: what each way counts of its mechanism (MPS clients are those that the daemon lists), and traces of "
        "the GPU by PyTorch's profiler, which slows the host, medians over runs: kernels per pair, share of the time "
        "in which one ran, share of that in which one with a block for every multiprocessor ran (filled), time in "
        "which kernels of two streams ran / kernel time of the shorter stream, share of the uploads beside a "
        "kernel. Memory: what the device lacks while it runs, contexts included."
        + (f" Not held in a graph: {parts}." if parts else "")
    )


def first_words(why: str) -> str:
    """Return what an error of CUDA or PyTorch says, without its type and the advice behind it; rows keep both."""
    words = re.sub(r"^\w+Error: (CUDA error: )?", "", why)
    return re.split(r" Search for |(?<=\w)[.] (?=[A-Z])", words)[0].rstrip(".")


PROOF = Spec(
    study=pair.STUDY,
    first="Way",
    label=lambda view, key: CONCURRENCY_ARMS[key.method],
    cases=lambda view: [pair.makespan(view, method) for method in pair.timed(view)],
    columns={
        "Counted": _counted,
        "Kernels": cells.text(quantity="kernels", layer="device"),
        "Busy": cells.fact(quantity="kernel_busy", layer="device"),
        "Filled": cells.text(quantity="kernel_filled", layer="device"),
        "Streams overlap": cells.text(quantity="kernel_overlap", layer="device"),
        "Uploads hidden": cells.text(quantity="copies_hidden", layer="device"),
        "Memory": cells.text(quantity="device_delta", layer="memory"),
    },
    caption=_proof_caption,
    absent=_absent,
    widths=("auto", "1fr", *("auto",) * 6),
    text_columns=(0, 1),
)


def _goals(view: View) -> list[Key]:
    keys = [view.key("recommended", quantity=goal) for goal in _GOALS]
    return [key for key in keys if view.text(key)] if pair.timed(view) else []


RULE = Spec(
    study=pair.STUDY,
    first="Goal",
    label=lambda view, key: _GOALS[key.quantity],
    cases=_goals,
    columns={
        "Way": lambda view, key: view.text(key).partition("; ")[0],
        "Not told apart from it": lambda view, key: view.text(key).partition("; ")[2] or MISSING,
    },
    caption="Which way to run two models, by rule from the rows. The rule takes, of the ways that give the answers of "
    "the models alone and whose makespan is not slower than the shortest beyond noise, the one on which visual "
    "odometry, the critical model, waits least. Beside it stand ways that are not told apart: "
    "by the verdict of their makespans, and by the intervals of medians for the rest.",
    absent=_absent,
    widths=("1.3fr", "1fr", "1.6fr"),
    text_columns=(0, 1, 2),
)


def _beside(view: View) -> list[Key]:
    """Return the ways to crop beside a model on a machine that timed a model there."""
    numbers = view.select(workload=BESIDE, quantity="latency_model", layer="host")
    n = next((number.n for number in numbers if number.known), None)
    timed = [
        method
        for method in CROPS_BESIDE
        if any(pair.latency(view, what, method, "p50") for what in ("model", "crops"))
    ]
    return [view.key(BESIDE, n, method, layer="host") for method in timed] if n else []


def _delay(what: str) -> Cell:
    def text(view: View, key: Key) -> str:
        number = view.get(view.key("crops", method=key.method, quantity=f"{what}_delay"))
        if number is None:
            return MISSING
        verdict = view.text(key.but(quantity=f"{LATENCY}{what}").derive("verdict", f"{what}-alone"))
        return f"{cells.with_interval(number)}{', ' + verdict if verdict else ''}"

    return text


CROPS = Spec(
    study=pair.STUDY,
    first="Way",
    label=lambda view, key: CROPS_BESIDE[key.method],
    cases=_beside,
    columns={
        "Model": _percentiles("model"),
        "Delay of the model": _delay("model"),
        "Crops": _percentiles("crops"),
        "Delay of the crops": _delay("crops"),
    },
    title=lambda view: f"{view.title}: {_beside(view)[0].n} crops per batch",
    caption="Does the preprocessing delay the model? A model and Octopus cropping beside it: before the model on its "
    "stream, or on a stream of their own. Latencies: median / 99th percentile; delay: against each alone, "
    "median over the blocks with its interval, and the verdict.",
    absent=lambda frame: _absent(frame, "Crops beside a model"),
    widths=("1.4fr", "auto", "1.5fr", "auto", "1.5fr"),
)
