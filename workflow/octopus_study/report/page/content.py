"""What the results page shows: claims, studies with their figures, and all numbers with their traces."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple

from octopus_study import names
from octopus_study.names import human, in_order
from octopus_study.report import studies, uses
from octopus_study.report.charts.palette import CONCURRENCY_COLORS, METHOD_COLORS, METHOD_MARKERS
from octopus_study.report.claims import BOARDS, Claim, Judgement
from octopus_study.report.claims.outcome import NOT_HERE
from octopus_study.report.claims.rules import COMPUTED, OWN
from octopus_study.report.frame import PUBLISHED, Frame, Number
from octopus_study.report.studies.image_shape import Patch
from octopus_study.report.tables.writers import MISSING
from octopus_study.report.view import every_view

NO_RUN = "not measured"
_PLACES = {
    "any": "any machine",
    "real-data": "any machine with the real data",
    "gpu": "an NVIDIA GPU",
    "cpu": "a CPU alone",
}
_PLACES |= {board: name for board, (_, name) in BOARDS.items()}
_COLOURS = METHOD_COLORS | CONCURRENCY_COLORS
# What n counts, by study or by what its workload begins with; boxes elsewhere.
_COUNTED = dict.fromkeys(("images", "pipelines", "total_cost"), "Images") | {
    "crops": "Boxes", "drone": "Detections", "image_shape": "Width (px)", "launch": "Launches", "mapping": "Items",
    "sequences": "Sequences",
}  # fmt: skip
_LABEL = 14  # letters of a line that say what it is
# What a study's chart begins with, on its first machine, so that it shows what the study found: quantity and workload.
_FIRST = {
    "stage_timing": ("End to end", "VisDrone"),
    "power": ("Energy of a frame", "VisDrone"),
    "mapping": ("Kernel", "VisDrone, Multiply"),
    "total_cost": ("Total", "500 and an 8K image, light kernel"),
    "sequences": ("Total", "NLP, 10 K"),
    "images": ("End to end", "512 to 2048 px, rows"),
    "pipelines": ("Prepare", "512 to 2048 px"),
    "satellite": ("End to end", "Window of the scene, uint16"),
    "drone": ("Frame time", "Clip, 10s"),
    "reading": ("Whole", "Pages"),
    "concurrency": ("Makespan", "Two models"),
    "image_shape": ("Allocated peak", "DRUNet, step68"),
}


class ClaimRow(NamedTuple):
    """A claim: how it ended on the machines that decide it, and what each of them measured."""

    id: str
    claim: str
    source: str
    kind: str
    study: str
    rule: str
    verdict: str
    cells: list[tuple[str, str]]
    reason: str

    @property
    def decided(self) -> bool:
        """Whether any machine here decides it."""
        return self.verdict not in (NO_RUN, NOT_HERE)


def claim_rows(claims: Sequence[Claim], judgements: Iterable[Judgement], frame: Frame) -> list[ClaimRow]:
    """Return a row per claim, with a verdict and a value for each of :func:`judged_machines`; first those of this
    paper, then those that could be refuted and were decided."""
    judged: dict[str, dict[str, Judgement]] = {}
    for judgement in judgements:
        judged.setdefault(judgement.claim_id, {})[judgement.scope] = judgement
    scopes = judged_machines(frame, judged.values())
    return sorted((_row(claim, judged.get(claim.id, {}), scopes) for claim in claims), key=_rank)


def judged_machines(frame: Frame, judged: Iterable[Iterable[str]]) -> list[str]:
    """Return the machines with a verdict, in the order of the frame."""
    found = {scope for scopes in judged for scope in scopes}
    return [scope for scope in frame.machines() if scope in found]


def _rank(row: ClaimRow) -> tuple[bool, bool, bool]:
    major = row.source == OWN and row.kind != "goal"
    return not major, not row.decided, row.kind in COMPUTED


def _row(claim: Claim, judged: dict[str, Judgement], scopes: list[str]) -> ClaimRow:
    known = [judged[scope] for scope in scopes if scope in judged]
    cells = [(judged[scope].verdict, judged[scope].measured) if scope in judged else ("", MISSING) for scope in scopes]
    decided = [one for one in known if one.verdict != NOT_HERE]
    verdict = ", ".join(dict.fromkeys(one.verdict for one in decided)) or (NOT_HERE if known else NO_RUN)
    notes = dict.fromkeys(one.reason for one in decided or known if one.reason)
    about = (claim.id, claim.claim, claim.source, claim.kind, human({}, claim.study))
    rule = f"{known[0].rule} (of {known[0].dated or 'no date'})" if known else MISSING
    return ClaimRow(*about, rule, verdict, cells, "; ".join(notes) or _lacks(claim) * (not known))


def _lacks(claim: Claim) -> str:
    """What is missing for a verdict where no run has the study, and how to get it."""
    study = human({}, claim.study).lower()
    measure = f"on {_PLACES[claim.needs]}, {command(claim.study)} measures it"
    return claim.unmeasured or f"no run of the study of {study} is here; {measure}"


def command(study: str) -> str:
    """Return what measures a study, and shows it beside all others."""
    return f".venv/bin/snakemake --cores 1 --config 'studies=[{study}]'"


def sections(frame: Frame) -> list[dict[str, Any]]:
    """Return the studies with figures or numbers, each with its name, runs, first machine and figures."""
    reports = studies.reports()
    measured = {number.study for number in frame if number.known and number.role != PUBLISHED}
    return [
        {
            "id": study,
            "title": human({}, study),
            "runs": "; ".join(view.title for view in every_view(frame, study)),
            "first": next(map(frame.machine_name, frame.shown(study)), ""),
            "chart": _FIRST.get(study, ("Crop, resize, normalise", "VisDrone")),
            "command": command(study),
            "figures": {name: chart.caption for name, chart in reports[study].figures.items()},
        }
        for study in in_order(reports)
        if study in measured or reports[study].figures
    ]


def all_numbers(frame: Frame, traces: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return the numbers by column, and the traces of numbers and claims: each line once, and its place in each. Like
    lines stand together, and a number's places are steps from those of the number before: half as many bytes when
    compressed."""
    drawn = {name for ids in uses.read_by_figures(frame).values() for name in ids}
    columns: dict[str, list[Any]] = {}
    for number in frame:
        for name, value in cells(number, frame, number.id in drawn).items():
            columns.setdefault(name, []).append(value)
    every = dict.fromkeys(line for trace in traces.values() for line in trace)
    lines = sorted(every, key=lambda line: line[:_LABEL])
    places = {line: place for place, line in enumerate(lines)}
    coded = {name: [places[line] for line in trace] for name, trace in traces.items()}
    of_numbers = [coded.pop(number.id) for number in frame]  # the first line is the id
    packed = {"numbers": columns, "lines": lines, "traces": list(_steps(of_numbers)), "claims": coded}
    return packed | {"looks": _looks(frame)}


def _looks(frame: Frame) -> dict[str, dict[str, tuple[str, str]]]:
    """Return colour and marker of each method of a study, as in its figures."""
    looks: dict[str, dict[str, tuple[str, str]]] = {}
    for number in frame:
        if number.method in _COLOURS:
            look = (_COLOURS[number.method], METHOD_MARKERS.get(number.method, "o"))
            looks.setdefault(human({}, number.study), {})[method_name(number.study, number.method)] = look
    return looks


def _steps(traces: Iterable[Sequence[int]]) -> Iterator[list[int]]:
    before: Sequence[int] = ()
    for trace in traces:
        yield [place - last for place, last in zip(trace, chain(before, repeat(0)), strict=False)]
        before = trace


def cells(number: Number, frame: Frame, drawn: bool = False) -> dict[str, Any]:
    """Return by column what a table of numbers says of one: names, not identifiers."""
    return {
        "machine": frame.machine_name(number.machine) if frame.fact(number.machine, "id") else number.machine,
        "study": human({}, number.study),
        "workload": ", ".join(
            filter(None, (workload_name(number.study, number.workload), names.IMAGE_INPUTS.get(number.input, "")))
        ),
        "n": number.n,
        "counts": _COUNTED.get(number.workload.partition("-")[0]) or _COUNTED.get(number.study, "Boxes"),
        "method": method_name(number.study, number.method),
        "quantity": quantity_name(number),
        "layer": "computed" if number.layer == "deterministic" else number.layer.replace("_", " "),
        "unit": number.unit,
        "drawn": int(drawn),
        "differs": int(number.differs),
    }


def method_name(study: str, method: str) -> str:
    """Return what the figures of a study call a method; empty where there is none."""
    labels = names.METHODS | names.METHODS_OF.get(study, {})
    once = method.removesuffix("-again")
    if patch := Patch.of(once):
        labels = {once: patch.text}
    name = human(labels, once) if once else ""
    return name if once == method else f"{name}, entered twice"


def workload_name(study: str, workload: str) -> str:
    """Return a workload's name: the longest beginning that the figures of a study name, then the rest as words."""
    labels, parts = names.WORKLOADS | names.WORKLOAD_PARTS | names.WORKLOADS_OF.get(study, {}), workload.split("-")
    for count in range(len(parts), 0, -1):
        if begin := labels.get("-".join(parts[:count])):
            words = " ".join(labels.get(part, part) for part in parts[count:])
            rest = labels.get("-".join(parts[count:]), words)
            return f"{begin}, {rest}" if rest else begin
    return human({}, workload.replace(".", " "))


def quantity_name(number: Number) -> str:
    """Return what a number is of, and what was derived from it."""
    derived, other = number.derived.replace("_", " "), method_name(number.study, number.other)
    if other:
        derived = f"{names.DERIVED_NAMES.get(number.derived, f'{derived} over')} {other}"
    return ": ".join(filter(None, (human(names.QUANTITY_NAMES, number.quantity), derived)))
