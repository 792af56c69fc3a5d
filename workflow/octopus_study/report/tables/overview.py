"""The machines that results come from, and the verdicts on the published claims."""

from __future__ import annotations

from collections.abc import Collection

from octopus_study.report.captions import scope_name
from octopus_study.report.claims import Judgement
from octopus_study.report.labels import human, machine_name
from octopus_study.report.mapping import NO_RUN
from octopus_study.report.numbers import Numbers
from octopus_study.report.tables.writers import MISSING, Table
from octopus_study.report.text import reason

MAPPING_STUDIES = ("mapping", "total_cost", "sequences")
EDGE_STUDIES = ("satellite", "drone", "detector")
COMPANION_STUDIES = ("concurrency", "image_shape")
NO_EDGE_RUN = "No run of the studies satellite, drone and detector is at hand: older results lack them."
NO_COMPANION_RUN = "No run of the studies concurrency and image_shape is at hand: older results lack them."
_RULE_NOTE = (
    f"The whole 95 % interval must satisfy the rule. {MISSING}: not measurable on this machine, with what it would "
    "need."
)
# What a row says, and the facts in it.
_FACTS = {
    "GPU": ("machine.gpu",),
    "Driver, CUDA": ("machine.driver", "machine.cuda"),
    "Power limit (W)": ("machine.power_limit",),
    "CPU": ("machine.cpu",),
    "Cores, threads": ("machine.cores", "machine.threads"),
    "System": ("machine.os",),
    "Python, Numba, numba-cuda": ("machine.python", "machine.numba", "machine.numba_cuda"),
    "Peers": ("machine.peers",),
    "Power sensor": ("power.sensor.title",),
    "Data set": ("stage_timing.dataset",),
    "Measured on, commit": ("stage_timing.measured_on", "stage_timing.commit"),
}


def machines(numbers: Numbers) -> Table:
    """One column per machine, one row per fact."""
    scopes = _all_scopes(numbers)
    rows = [[name, *(_facts(numbers, scope, keys) for scope in scopes)] for name, keys in _FACTS.items()]
    rows.append(["Discarded blocks", *(_discarded(numbers, scope) for scope in scopes)])
    known = [row for row in rows if any(cell != MISSING for cell in row[1:])]
    header = ["", *(scope_name(numbers, scope) for scope in scopes)]
    caption = (
        "Machines, data and commits of the runs shown. Peers: those that any of the runs found. Discarded blocks: "
        "those during which the device reported throttling, over all studies."
    )
    columns = tuple(range(len(header)))
    widths = ("auto", *("1fr" for _ in scopes))
    return Table("machines", caption, header, known, text_columns=columns, widths=widths)


def _facts(numbers: Numbers, scope: str, keys: tuple[str, ...]) -> str:
    found = (numbers.text(f"{scope}.{key}") for key in keys)
    return ", ".join(machine_name(text).replace("unavailable: ", "") for text in found if text) or MISSING


def _discarded(numbers: Numbers, scope: str) -> str:
    """Return how many blocks each study discarded, those with none together; or why that can't be known."""
    found = {match[1]: number for match, number in numbers.matching(rf"{scope}\.(\w+)\.discarded_blocks")}
    counts = {study: int(number.value) for study, number in found.items() if number.value == number.value}
    if not counts:
        return ", ".join(dict.fromkeys(reason(number.text) for number in found.values())) or MISSING
    some = [f"{count} ({human({}, study)})" for study, count in counts.items() if count]
    if len(some) < len(counts):
        some.append("0 in the other studies" if some else "0 in all studies")
    return ", ".join(some)


def claims(numbers: Numbers, judgements: list[Judgement]) -> Table:
    """The claims on crops: one row per claim, one column per machine with the measured value and the verdict."""
    caption = (
        "Published claims that the studies touch and the verdict of a fixed rule; the sample is that of 1000 VisDrone "
        f"boxes. {_RULE_NOTE} {numbers.text('shown.stage_timing')}."
    )
    elsewhere = (*MAPPING_STUDIES, *EDGE_STUDIES, *COMPANION_STUDIES)
    chosen = [judgement for judgement in judgements if judgement.study not in elsewhere]
    return _claims(numbers, "claims", caption, chosen)


def claims_mapping(numbers: Numbers, judgements: list[Judgement]) -> Table:
    """The claims on who owns which element, likewise: a page has no room for both."""
    what = "block metadata, a search by every thread and the lookup table"
    note = "Without more said, a gain is that of block metadata over the table as published. "
    shown = numbers.text("shown.mapping") or numbers.text("shown.total_cost")
    return _claims_on("mapping", MAPPING_STUDIES, what, f"{shown}.", NO_RUN, numbers, judgements, note)


def claims_edge(numbers: Numbers, judgements: list[Judgement]) -> Table:
    """The claims on the edge scenarios."""
    what = "the satellite's tiles, the drone's video and the detector"
    shown = numbers.text("shown.drone") or numbers.text("shown.satellite")
    return _claims_on("edge", EDGE_STUDIES, what, f"{shown}.", NO_EDGE_RUN, numbers, judgements)


def claims_companions(numbers: Numbers, judgements: list[Judgement]) -> Table:
    """The claims on two models on one GPU and on the shape of images."""
    what = "two models on one GPU and on image shape and memory"
    shown = numbers.text("shown.concurrency.measured") or numbers.text("shown.image_shape.measured")
    measured = f"Measured on {shown}." if shown else ""
    return _claims_on("companions", COMPANION_STUDIES, what, measured, NO_COMPANION_RUN, numbers, judgements)


def _claims_on(
    name: str,
    studies: Collection[str],
    what: str,
    shown: str,
    absent: str,
    numbers: Numbers,
    judgements: list[Judgement],
    note: str = "",
) -> Table:
    """The claims that some studies judge; `absent` is said where there is none."""
    chosen = [judgement for judgement in judgements if judgement.study in studies]
    rest = f", and the verdict of a fixed rule. {note}{_RULE_NOTE} {shown}" if chosen else f". {absent}"
    return _claims(numbers, f"claims_{name}", f"Published claims on {what}{rest}".rstrip(), chosen)


def _claims(numbers: Numbers, name: str, caption: str, judgements: list[Judgement]) -> Table:
    by_claim: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        by_claim.setdefault(judgement.claim_id, []).append(judgement)
    judged = {judgement.scope for judgement in judgements}
    scopes = [scope for scope in _all_scopes(numbers) if scope in judged]
    rows: list[list[str] | str] = []
    for group in by_claim.values():
        cells = {judgement.scope: _cell(judgement) for judgement in group}
        rows.append([group[0].claim, group[0].rule, *(cells.get(scope, MISSING) for scope in scopes)])
    header = ["Published claim", "Rule", *(scope_name(numbers, scope) for scope in scopes)]
    columns = tuple(range(len(header)))
    widths = ("1.9fr", "auto", *("1fr" for _ in scopes))
    return Table(name, caption, header, rows, text_columns=columns, widths=widths)


def _cell(judgement: Judgement) -> str:
    if judgement.verdict == "not measurable here":
        why = judgement.reason.removesuffix(" Orin Nano")
        return f"{MISSING} ({reason(why) if why.startswith('unavailable: ') else why})"
    mark = f"{judgement.verdict}, {judgement.measured}"
    return f"{mark} (synthetic)" if "synthetic-" in judgement.dataset else mark


def _all_scopes(numbers: Numbers) -> list[str]:
    first = ("stage_timing", "distribution", "arena", "power")
    studies = (*first, *MAPPING_STUDIES, *EDGE_STUDIES, *COMPANION_STUDIES)
    return list(dict.fromkeys(scope for study in studies for scope in numbers.scopes(study)))
