"""The verdicts on published claims, group by group, and on this paper's own; how many of each kind; and the facts that
need none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import get_args

from octopus_study.names import SOURCES, human, in_order, stand_in
from octopus_study.report.claims import Judgement
from octopus_study.report.claims.outcome import Verdict
from octopus_study.report.claims.rules import BOARDS, OWN, Kind
from octopus_study.report.frame import Frame
from octopus_study.report.missing import no_run
from octopus_study.report.tables.overview import by_machine
from octopus_study.report.tables.writers import MISSING, Table
from octopus_study.report.text import reason
from octopus_study.report.view import every_view

_KINDS = {kind: kind.capitalize() for kind in get_args(Kind) if kind != "fact"}
_VERDICTS = get_args(Verdict)
_BOARDS = {f"needs {name}" for _, name in BOARDS.values()}
_NOTHING = "nothing measures it"
_INTERVAL = re.compile(r" \[[^]]*\]")
_RULE_NOTE = (
    "The whole 95 % interval must satisfy the rule, by more than the noise floor and than another seed of "
    "the resampling would move it; else the verdict is ambiguous. By proxy: another runtime executes the same graph. "
    f"{MISSING}: not measurable on this machine, with what it would need. "
)


@dataclass(frozen=True)
class Claims:
    """A table of claims.

    Attributes
    ----------
    what : str
        What its claims are on, for the caption; `note` is a further sentence.
    shown : tuple of str
        Studies, or facts ``shown.<fact>``, of which the first that is known says what was measured.
    measured : str
        How that is said.
    absent : str
        What the caption says where nothing was judged.
    """

    what: str
    shown: tuple[str, ...] = ()
    measured: str = "{}."
    note: str = ""
    absent: str = ""


# By name; a study's report names the one that its claims stand in.
CLAIMS = {
    "claims": Claims("", ("stage_timing",)),
    "claims_mapping": Claims(
        "block metadata, a search by every thread and the lookup table",
        ("mapping", "total_cost"),
        note="Without more said, a gain is that of block metadata over the table as published. ",
        absent=no_run("mapping"),
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


def tables_of(
    frame: Frame, judgements: list[Judgement], name_of: Callable[[Judgement], str]
) -> dict[str, Table]:
    """Return every table of verdicts by name; `name_of` says in which of `CLAIMS` a published claim stands."""
    published = [one for one in judgements if one.kind != "fact" and one.source != OWN]
    tables = {
        name: _published(group, frame, [one for one in published if name_of(one) == name])
        for name, group in CLAIMS.items()
    }
    tables["claims_open"] = _open(frame, published)
    tables["claims_paper"] = _own(frame, [one for one in judgements if one.source == OWN])
    tables["claims_counts"] = _counts(frame, judgements)
    tables["artifact"] = _expected(frame, [one for one in judgements if one.kind != "fact"])
    tables["facts"] = _facts(frame, [one for one in judgements if one.kind == "fact"])
    return tables


def table_names() -> list[str]:
    """Return the names of the tables of verdicts."""
    return [*CLAIMS, "claims_open", "claims_paper", "claims_counts", "artifact", "facts"]


def _published(group: Claims, frame: Frame, chosen: list[Judgement]) -> Table:
    """One row per claim, one column per machine with the measured value and the verdict; claims that wait for a board
    are counted in the caption, those that nothing measures stand in a table of their own."""
    waiting = Counter(_waits_for(same) for same in _by_claim(chosen).values())
    chosen = [one for same in _by_claim(chosen).values() if not _waits_for(same) for one in same]
    first = {"Published claim": _claim, "Kind": _kind, "Rule": lambda same: same[0].rule}
    caption = f"{_caption(group, frame, chosen)} {_waiting(waiting)}".rstrip()
    return _per_claim(frame, chosen, first, ("1.8fr", "auto", "0.8fr"), caption)


def _waits_for(same: list[Judgement]) -> str:
    """Return which published board no machine shown is, or that nothing here measures a claim; empty where some machine
    has a verdict, or could have one."""
    if same[0].rule == MISSING:
        return _NOTHING
    reasons = {one.reason for one in same}
    return reasons.pop() if len(reasons) == 1 and reasons <= _BOARDS else ""


def _waiting(waiting: Counter[str]) -> str:
    boards = [f"{count} {why.replace('needs', 'need')}" for why, count in waiting.items() if why in _BOARDS]
    return f"Not listed, since no machine shown is the published one: {', '.join(boards)}." if boards else ""


def _open(frame: Frame, chosen: list[Judgement]) -> Table:
    """What the sources say and nothing here measures, with the reason."""
    rows: list[list[str] | str] = [
        [same[0].claim, same[0].source.partition(",")[0], same[0].reason]
        for same in _by_claim(chosen).values()
        if _waits_for(same) == _NOTHING
    ]
    titles = "; ".join(f"{source}: {title}" for source, title in SOURCES.items())
    caption = f"Published claims that nothing here can decide, on any machine, and why. {titles}."
    return Table(caption, ["Published claim", "Source", "Why"], rows, (0, 1, 2), ("1fr", "auto", "1fr"))


def _own(frame: Frame, chosen: list[Judgement]) -> Table:
    """What this paper says of itself; what it predicts from a machine's own limits differs between machines."""
    caption = (
        "Claims of this paper, judged as the published ones are. Predicted: from limits that the same run measured, "
        f"the bandwidth of filling memory and of copying and the cost of a launch. {_RULE_NOTE.rstrip()}"
    )
    return _per_claim(
        frame, chosen, {"Claim of this paper": _claim, "Kind": _kind}, ("1.9fr", "auto"), caption, _of_rule
    )


def _facts(frame: Frame, chosen: list[Judgement]) -> Table:
    """What follows from constants: no measurement could refute it, so there is no verdict."""
    caption = (
        "Facts that follow from constants, as published and as computed here: no measurement could refute them, so "
        "they are no claims and aren't counted."
    )
    first: dict[str, Callable[[list[Judgement]], str]] = {
        "Fact": lambda same: same[0].claim,
        "Published": lambda same: same[0].target,
    }
    return _per_claim(frame, chosen, first, ("1.9fr", "auto"), caption, lambda one: one.measured)


def _per_claim(
    frame: Frame,
    chosen: list[Judgement],
    first: dict[str, Callable[[list[Judgement]], str]],
    widths: tuple[str, ...],
    caption: str,
    cell: Callable[[Judgement], str] | None = None,
) -> Table:
    """Return one row per claim: the columns `first`, then one per machine."""
    names = [name for name in frame.machines() if name in {judgement.scope for judgement in chosen}]
    rows: list[list[str] | str] = []
    for same in _by_claim(chosen).values():
        cells = {judgement.scope: (cell or _cell)(judgement) for judgement in same}
        rows.append(
            [*(column(same) for column in first.values()), *(cells.get(name, MISSING) for name in names)]
        )
    return by_machine(frame, caption, list(first), rows, names, widths)


def _by_claim(judgements: Iterable[Judgement]) -> dict[str, list[Judgement]]:
    by_claim: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        by_claim.setdefault(judgement.claim_id, []).append(judgement)
    return by_claim


def _claim(same: list[Judgement]) -> str:
    return same[0].claim


def _kind(same: list[Judgement]) -> str:
    return _KINDS.get(same[0].kind, same[0].kind)


def _counts(frame: Frame, judgements: list[Judgement]) -> Table:
    """One row per kind of claim, one column per machine: how many ended how."""
    names = [name for name in frame.machines() if name in {judgement.scope for judgement in judgements}]
    groups = {
        label: [one for one in judgements if one.kind == kind and one.source != OWN and not one.proxy]
        for kind, label in _KINDS.items()
    }
    groups["By proxy"] = [one for one in judgements if one.proxy]
    groups["This paper's own"] = [one for one in judgements if one.source == OWN and one.kind != "fact"]
    rows: list[list[str] | str] = [
        [label, *(_tally([one for one in chosen if one.scope == name]) for name in names)]
        for label, chosen in groups.items()
        if chosen
    ]
    caption = (
        "Claims by kind and verdict: reproduced / not reproduced / ambiguous / not measurable here. Arithmetic: "
        "computed from data or a seed, so that no measurement could refute it. Direction: more, less or no difference. "
        "Magnitude: how much, as printed. "
        f"{'By proxy: on another runtime than the published one. ' if groups['By proxy'] else ''}Facts that can't fail "
        "aren't counted."
    )
    return by_machine(frame, caption, ["Kind"], rows, names, ("auto",))


def _expected(frame: Frame, judgements: list[Judgement]) -> Table:
    """What who runs the studies should find: per study how its published claims ended, and each claim of this paper."""
    names = [name for name in frame.shown() if name in {judgement.scope for judgement in judgements}]
    rows: list[list[str] | str] = []
    for study in in_order({one.study for one in judgements}):
        mine = [one for one in judgements if one.study == study]
        published = [one for one in mine if one.source != OWN]
        tallies = [_tally([one for one in published if one.scope == name]) for name in names]
        rows.append([f"{human({}, study)}: {len(_by_claim(published)) or 'no'} published claims", *tallies])
        for same in _by_claim(one for one in mine if one.source == OWN).values():
            briefs = {one.scope: _brief(one) for one in same}
            cells = [briefs.get(name, MISSING) for name in names]
            if set(cells) != {MISSING}:
                rows.append([same[0].claim, *cells])
    caption = (
        "Expected results, study by study: how its published claims ended (reproduced / not reproduced / ambiguous / "
        "not measurable here), then each claim of this paper that a machine shown can decide, with its rule "
        "and what was measured. Reproduced unless said otherwise; no: not reproduced. Intervals, but of ambiguous "
        "ones: in the supplement. "
        f"{MISSING}: not measurable on this machine."
    )
    return by_machine(frame, caption, ["Claims"], rows, names, ("2.7fr",))


def _brief(judgement: Judgement) -> str:
    if judgement.verdict == "not measurable here":
        return MISSING
    verdict = {"reproduced": "", "not reproduced": ", no"}.get(judgement.verdict, f", {judgement.verdict}")
    unsure = judgement.verdict == "ambiguous"
    measured = judgement.measured if unsure else _INTERVAL.sub("", judgement.measured)
    return f"{judgement.rule}: {measured}{verdict}"


def _tally(chosen: list[Judgement]) -> str:
    counts = Counter(judgement.verdict for judgement in chosen)
    return " / ".join(str(counts[verdict]) for verdict in _VERDICTS)


def _caption(table: Claims, frame: Frame, judged: list[Judgement]) -> str:
    shown = next(filter(None, (_measured(frame, fact) for fact in table.shown)), "")
    if not table.what:
        return (
            "Published claims that the studies touch and the verdict of a fixed rule; the sample is that of 1000 "
            f"VisDrone boxes. {_RULE_NOTE}{shown}."
        )
    if not judged:
        return f"Published claims on {table.what}. {table.absent}"
    measured = table.measured.format(shown) if shown or table.measured == "{}." else ""
    rule = f"and the verdict of a fixed rule. {table.note}{_RULE_NOTE}{measured}"
    return f"Published claims on {table.what}, {rule}".rstrip()


def _measured(frame: Frame, fact: str) -> str:
    """Return a fact of the runs shown, or of a study all runs, since each machine has a column."""
    if "." in fact:
        return frame.text(f"shown.{fact}")
    return "; ".join(view.title for view in every_view(frame, fact))


def _of_rule(judgement: Judgement) -> str:
    """Return a machine's own rule before what it measured."""
    return _cell(judgement) if judgement.rule == MISSING else f"{judgement.rule}: {_cell(judgement)}"


def _cell(judgement: Judgement) -> str:
    if judgement.verdict == "not measurable here":
        why = judgement.reason.removesuffix(" Orin Nano")
        return f"{MISSING} ({reason(why) if why.startswith('unavailable: ') else why})"
    mark = f"{judgement.verdict}, {judgement.measured}"
    notes = judgement.notes + ["synthetic"] * stand_in(judgement.dataset)
    return f"{mark} ({'; '.join(notes)})" if notes else mark
