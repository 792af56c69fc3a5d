"""Tables of two models on one GPU: every way to run both, which one to take by rule, and crops beside a model."""

from __future__ import annotations

import re
from collections.abc import Iterator

from octopus_study.report import concurrency
from octopus_study.report.captions import scope_title
from octopus_study.report.concurrency import BASE, NO_RUN, STUDY
from octopus_study.report.labels import CONCURRENCY_ARMS, CONCURRENCY_PROOFS, CONCURRENCY_STAGES, CROPS_BESIDE
from octopus_study.report.numbers import Number, Numbers
from octopus_study.report.tables import oldcells as cells
from octopus_study.report.tables.oldwriters import MISSING, Table
from octopus_study.report.text import reason, significant

_LATE = "\u00b6"
_LATE_NOTE = f"{_LATE}: the longest, there are too few iterations for a 99th percentile"
_GOALS = {
    "makespan": "Shortest makespan",
    "critical": "Least median latency of visual odometry",
    "other": "Least median latency of satellite matching",
    "memory": "Least device memory",
    "whole": "By the rule",
}
_RULE = (
    "The rule takes, of the ways that give the answers of the models alone and whose makespan is not slower than the "
    "shortest beyond noise, the one on which visual odometry, the critical model, waits least"
)


def arms(numbers: Numbers) -> Table:
    """Makespan, what is hidden, and latencies of every way."""
    reasons = cells.Reasons()
    rows: list[list[str] | str] = []
    for scope in concurrency.measured(numbers):
        rows.append(scope_title(numbers, scope, STUDY))
        rows += [_arm(numbers, scope, arm, reasons) for arm in CONCURRENCY_ARMS if _said(numbers, scope, arm)]
    caption = (
        "Two models on one GPU: visual odometry (SuperPoint and LightGlue) and satellite matching (DINOv2 and "
        "EfficientLoFTR, which stands in for LiteSAM), random weights. Makespan: until both results of a frame pair "
        "are there. Ratio: makespan / that of one after the other, with the verdict and, in brackets, the noise floor. "
        "Hidden: share of the shorter model, (T1 + T2 \u2212 makespan) / min(T1, T2). Odometry, matching: median / "
        f"99th percentile of each model's latency. {_LATE_NOTE}. "
        f"{cells.DIFFERENT_NOTE}.{reasons.note}"
    )
    header = ["Way", "Makespan", "Ratio", "Hidden", "Odometry", "Matching"]
    widths = ("auto", "auto", "1.2fr", "1fr", "auto", "auto")
    return Table("concurrency", caption if rows else _none(numbers), header, rows, widths=widths)


def _none(numbers: Numbers) -> str:
    said = concurrency.no_times(numbers) if numbers.scopes(STUDY) else NO_RUN
    return f"Two models on one GPU. {said}"


def _said(numbers: Numbers, scope: str, arm: str) -> str:
    return numbers.text(f"{concurrency.start(scope)}.{arm}.makespan.host")


def _arm(numbers: Numbers, scope: str, arm: str, reasons: cells.Reasons) -> list[str]:
    start = f"{concurrency.start(scope)}.{arm}"
    hidden = numbers.get(concurrency.derived(scope, arm, "overlap"))
    makespan = cells.time_cell(numbers, f"{start}.makespan.host", reasons)
    number = concurrency.makespan(numbers, scope, arm)
    differs = number is not None and number.note.startswith("different")
    mark = f" {cells.DIFFERENT} ({reasons.letter(number.note)})" if number and differs else ""
    return [
        CONCURRENCY_ARMS[arm],
        f"{makespan}{mark}",
        _ratio(numbers, scope, arm),
        cells.with_interval(hidden) if hidden else MISSING,
        *(_latency(numbers, scope, model, arm) for model in concurrency.MODELS),
    ]


def _ratio(numbers: Numbers, scope: str, arm: str) -> str:
    """Return the makespan over that of one after the other, with its verdict."""
    number = numbers.get(concurrency.derived(scope, arm, "over_sequential"))
    if number is None:
        return MISSING
    start = concurrency.start(scope)
    verdict = numbers.text(f"{start}.{arm}.makespan.host.verdict_over_{BASE}")
    floor = numbers.get(f"{start}.{BASE}.makespan.host.noise_floor")
    noise = f"{significant(100 * floor.value, 2)} %" if floor else MISSING
    return f"{number.text}, {verdict} ({noise})" if verdict else number.text


def _latency(numbers: Numbers, scope: str, model: str, arm: str) -> str:
    return _percentiles(
        concurrency.latency(numbers, scope, model, arm, "p50"), concurrency.late(numbers, scope, model, arm)
    )


def _percentiles(middle: Number | None, late: Number | None) -> str:
    if middle is None or late is None:
        return MISSING
    mark = "" if late.id.endswith(".p99") else f" {_LATE}"
    digits, _, unit = middle.text.partition(" ")
    return (
        f"{digits} / {late.text}{mark}"
        if late.text.endswith(f" {unit}")
        else f"{middle.text} / {late.text}{mark}"
    )


def proof(numbers: Numbers) -> Table:
    """What shows that each way was what its name says, and what it takes of the device's memory."""
    reasons = cells.Reasons()
    rows: list[list[str] | str] = []
    for scope in concurrency.measured(numbers):
        rows.append(scope_title(numbers, scope, STUDY))
        rows += [_proof(numbers, scope, arm, reasons) for arm in concurrency.arms(numbers, scope)]
    caption = (
        "Proofs: what each way counts of its mechanism (MPS clients are those that the daemon lists), and a trace of "
        "the GPU by PyTorch's profiler, which slows the host: kernels per pair, share of the time in which one ran, "
        "time in which kernels of two streams ran / kernel time of the shorter stream, share of the uploads beside a "
        f"kernel. Memory: what the device lacks while it runs, contexts included.{_stages(numbers)}{reasons.note}"
    )
    header = ["Way", "Counted", "Kernels", "Busy", "Streams overlap", "Uploads hidden", "Memory"]
    widths = ("auto", "1fr", "auto", "auto", "auto", "auto", "auto")
    return Table("concurrency_proof", caption if rows else _none(numbers), header, rows, (0, 1), widths)


def _proof(numbers: Numbers, scope: str, arm: str, reasons: cells.Reasons) -> list[str]:
    start = f"{concurrency.start(scope)}.{arm}"
    counted = []
    for quantity, names in CONCURRENCY_PROOFS.items():
        count = numbers.get(f"{start}.{quantity}.deterministic")
        if count:
            counted.append(f"{count.text} {names[count.value != 1]}")
    busy = numbers.text(f"{start}.kernel_busy.device", MISSING)
    return [
        CONCURRENCY_ARMS[arm],
        ", ".join(counted) or MISSING,
        cells.text_cell(numbers, f"{start}.kernels.device"),
        reasons.cell(busy) if busy.startswith("unavailable") else busy,
        *(cells.text_cell(numbers, f"{start}.{name}.device") for name in ("kernel_overlap", "copies_hidden")),
        cells.text_cell(numbers, f"{start}.device_delta.memory"),
    ]


def _stages(numbers: Numbers) -> str:
    """Say which models no graph could hold, and why."""
    found: dict[str, str] = {}
    for scope in concurrency.measured(numbers):
        for stage, name in CONCURRENCY_STAGES.items():
            text = numbers.text(f"{concurrency.start(scope)}.cuda-graphs.captured_{stage}.deterministic")
            if text.startswith("unavailable"):
                found[name] = _first_words(reason(text))
    parts = "; ".join(f"{name} ({why})" for name, why in found.items())
    return f" Not held in a graph: {parts}." if parts else ""


def _first_words(why: str) -> str:
    """Return what an error of CUDA or PyTorch says, without its type and the advice behind it; rows keep both."""
    said = re.sub(r"^\w+Error: (CUDA error: )?", "", why)
    return re.split(r" Search for |(?<=\w)[.] (?=[A-Z])", said)[0].rstrip(".")


def rule(numbers: Numbers) -> Table:
    """Which way is the best at what, and which one the rule takes."""
    rows: list[list[str] | str] = []
    for scope in concurrency.measured(numbers):
        prefix = f"{scope}.{STUDY}.recommended"
        texts = {goal: numbers.text(f"{prefix}.{goal}") for goal in _GOALS}
        if any(texts.values()):
            rows.append(scope_title(numbers, scope, STUDY))
        for goal, text in texts.items():
            if text:
                first, _, others = text.partition("; ")
                rows.append([_GOALS[goal], first, others or MISSING])
    caption = (
        f"Which way to run two models, by rule from the rows. {_RULE}. Beside it stand ways that are not told apart: "
        "by the verdict of their makespans, and by the intervals of medians for the rest."
    )
    header = ["Goal", "Way", "Not told apart from it"]
    widths = ("1.3fr", "1fr", "1.6fr")
    return Table("concurrency_rule", caption if rows else _none(numbers), header, rows, (0, 1, 2), widths)


def crops(numbers: Numbers) -> Table:
    """What crops cost a model that runs beside them, and the model its crops."""
    rows: list[list[str] | str] = []
    for scope in numbers.scopes(STUDY):
        start = concurrency.crops_start(numbers, scope)
        if start:
            count = start.rpartition(".n")[2]
            rows.append(f"{scope_title(numbers, scope, STUDY)}: {count} crops per batch")
            rows += _beside(numbers, scope, start)
    caption = (
        "Does the preprocessing delay the model? A model and Octopus cropping beside it: before the model on its "
        "stream, or on a stream of their own. Latencies: median / 99th percentile; delay: against each alone, "
        "median over the blocks with its interval, and the verdict."
    )
    absent = f"Crops beside a model. {concurrency.no_times(numbers) if numbers.scopes(STUDY) else NO_RUN}"
    header = ["Way", "Model", "Delay of the model", "Crops", "Delay of the crops"]
    widths = ("1.4fr", "auto", "1.5fr", "auto", "1.5fr")
    return Table("concurrency_crops", caption if rows else absent, header, rows, widths=widths)


def _beside(numbers: Numbers, scope: str, start: str) -> Iterator[list[str]]:
    for method, name in CROPS_BESIDE.items():
        texts = []
        for what in ("model", "crops"):
            middle = concurrency.latency(numbers, scope, what, method, "p50")
            texts.append(_percentiles(middle, concurrency.late(numbers, scope, what, method)))
            texts.append(_delay(numbers, scope, start, method, what))
        if any(text != MISSING for text in texts):
            yield [name, *texts]


def _delay(numbers: Numbers, scope: str, start: str, method: str, what: str) -> str:
    number = numbers.get(f"{scope}.{STUDY}.crops.{method}.{what}_delay")
    if number is None:
        return MISSING
    verdict = numbers.text(f"{start}.{method}.latency_{what}.host.verdict_over_{what}-alone")
    return f"{cells.with_interval(number)}{', ' + verdict if verdict else ''}"
