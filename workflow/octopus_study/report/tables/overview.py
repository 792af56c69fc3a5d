"""The machines that results come from, and the verdicts on the published claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from octopus_study.report.claims import Judgement
from octopus_study.report.frame import Frame
from octopus_study.report.labels import human, machine_name
from octopus_study.report.tables.writers import MISSING, Table
from octopus_study.report.text import reason
from octopus_study.sections import in_order

_RULE_NOTE = (
    f"The whole 95 % interval must satisfy the rule. {MISSING}: not measurable on this machine, with what it would "
    "need."
)


@dataclass(frozen=True)
class Claims:
    """A table of claims: those of the studies whose report names it.

    Attributes
    ----------
    what : str
        What its claims are on, for the caption; `note` is a further sentence.
    shown : tuple of str
        Facts ``shown.<fact>`` of which the first that is known says what was measured.
    measured : str
        How that is said.
    absent : str
        What the caption says where nothing was judged.
    """

    what: str
    shown: tuple[str, ...]
    measured: str = "{}."
    note: str = ""
    absent: str = ""


CLAIMS = {
    "claims": Claims("", ("stage_timing",)),
    "claims_mapping": Claims(
        "block metadata, a search by every thread and the lookup table",
        ("mapping", "total_cost"),
        note="Without more said, a gain is that of block metadata over the table as published. ",
        absent="No run of the study mapping is at hand: older results lack it.",
    ),
    "claims_edge": Claims(
        "the satellite's tiles, the drone's video and the detector",
        ("drone", "satellite"),
        absent="No run of the studies satellite, drone and detector is at hand: older results lack them.",
    ),
    "claims_companions": Claims(
        "two models on one GPU and on image shape and memory",
        ("concurrency.measured", "image_shape.measured"),
        measured="Measured on {}.",
        absent="No run of the studies concurrency and image_shape is at hand: older results lack them.",
    ),
}
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
}
# What a row of each study says of its run.
_OF_A_RUN = ("measured_on", "commit", "dataset")


def machines(frame: Frame) -> Table:
    """One column per machine, one row per fact, and per study its day, commit, data and load."""
    names = frame.machines()
    rows = [[name, *(_facts(frame, machine, keys) for machine in names)] for name, keys in _FACTS.items()]
    rows.append(["Discarded blocks", *(_discarded(frame, machine) for machine in names)])
    caption = (
        "Machines, and per study the day, the commit of the code and the data of the runs shown, with the load average "
        "of the minute before and after where other work ran on the machine. Peers: those that any of the runs found. "
        "Discarded blocks: those during which the device reported throttling, over all studies."
    )
    shown: list[list[str] | str] = [row for row in rows if any(cell != MISSING for cell in row[1:])]
    shown += [
        "Measured on, commit, data",
        *(
            [human({}, study), *(_run(frame, machine, study) for machine in names)]
            for study in _studies(frame)
        ),
    ]
    return _by_machine(frame, caption, [""], shown, names, ("auto",))


def _by_machine(
    frame: Frame, caption: str, header: list[str], rows: list, machines: list[str], widths: Sequence[str]
) -> Table:
    """Return a table of texts with a column per machine behind the first ones."""
    header = [*header, *(frame.machine_name(machine) for machine in machines)]
    return Table(caption, header, rows, tuple(range(len(header))), (*widths, *("1fr" for _ in machines)))


def _facts(frame: Frame, machine: str, names: tuple[str, ...]) -> str:
    texts = (frame.text(f"{machine}.{name}") for name in names)
    return ", ".join(machine_name(text).replace("unavailable: ", "") for text in texts if text) or MISSING


def _studies(frame: Frame) -> list[str]:
    """Return the studies that any machine ran, in the order of the paper."""
    return in_order({number.study for number in frame if number.quantity == "measured_on"})


def _run(frame: Frame, machine: str, study: str) -> str:
    facts = _facts(frame, machine, tuple(f"{study}.{name}" for name in _OF_A_RUN))
    load = frame.text(f"{machine}.{study}.other_load")
    return f"{facts}; load {load}" if load else facts


def _discarded(frame: Frame, machine: str) -> str:
    """Return how many blocks each study discarded, those with none together; or why that can't be known."""
    numbers = [
        number for number in frame if number.machine == machine and number.quantity == "discarded_blocks"
    ]
    counts = {number.study: int(number.value) for number in numbers if number.known}
    if not counts:
        return ", ".join(dict.fromkeys(reason(number.text) for number in numbers)) or MISSING
    some = [f"{count} ({human({}, study)})" for study, count in counts.items() if count]
    if len(some) < len(counts):
        some.append("0 in the other studies" if some else "0 in all studies")
    return ", ".join(some)


def claims(group: Claims, frame: Frame, chosen: list[Judgement]) -> Table:
    """One row per claim, one column per machine with the measured value and the verdict."""
    by_claim: dict[str, list[Judgement]] = {}
    for judgement in chosen:
        by_claim.setdefault(judgement.claim_id, []).append(judgement)
    names = [name for name in frame.machines() if name in {judgement.scope for judgement in chosen}]
    rows: list[list[str] | str] = []
    for same in by_claim.values():
        cells = {judgement.scope: _cell(judgement) for judgement in same}
        rows.append([same[0].claim, same[0].rule, *(cells.get(machine, MISSING) for machine in names)])
    header, widths = ["Published claim", "Rule"], ("1.9fr", "auto")
    return _by_machine(frame, _caption(group, frame, bool(chosen)), header, rows, names, widths)


def _caption(table: Claims, frame: Frame, judged: bool) -> str:
    shown = next(filter(None, (frame.text(f"shown.{fact}") for fact in table.shown)), "")
    if not table.what:
        return (
            "Published claims that the studies touch and the verdict of a fixed rule; the sample is that of 1000 "
            f"VisDrone boxes. {_RULE_NOTE} {shown}."
        )
    if not judged:
        return f"Published claims on {table.what}. {table.absent}"
    measured = table.measured.format(shown) if shown or table.measured == "{}." else ""
    rule = f"and the verdict of a fixed rule. {table.note}{_RULE_NOTE} {measured}"
    return f"Published claims on {table.what}, {rule}".rstrip()


def _cell(judgement: Judgement) -> str:
    if judgement.verdict == "not measurable here":
        why = judgement.reason.removesuffix(" Orin Nano")
        return f"{MISSING} ({reason(why) if why.startswith('unavailable: ') else why})"
    mark = f"{judgement.verdict}, {judgement.measured}"
    return f"{mark} (synthetic)" if "synthetic-" in judgement.dataset else mark
