"""The verdicts: this paper's claims, its goals, the published claims by source, how many ended how, and the map of
the sources."""

import re
from collections.abc import Iterable

from octopus_study.names import SOURCES, stand_in
from octopus_study.report import captions
from octopus_study.report.claims import Judgement
from octopus_study.report.claims.outcome import NOT_HERE
from octopus_study.report.claims.rules import OWN
from octopus_study.report.claims.tally import GOALS, MAJOR, PUBLISHED_GROUPS, VERDICTS, tally
from octopus_study.report.frame import Frame
from octopus_study.report.tables.overview import by_machine
from octopus_study.report.tables.sources import short_reason, source_map
from octopus_study.report.tables.writers import MISSING, Table

_OUTCOMES = {"reproduced": "yes", "not reproduced": "no", "ambiguous": "unsure"}
_REACHED = {"reproduced": "reached", "not reproduced": "missed", "ambiguous": "unsure"}
_KINDS = {"fact": "F", "arithmetic": "A", "direction": "D", "magnitude": "M"}
_INTERVAL = re.compile(r" \[[^]]*\]")
# What a dash says without words: another kind of machine is needed.
_OTHER_KIND = re.compile("needs a GPU|needs a run without a GPU|measured on [GC]PUs alone")


def tables_of(frame: Frame, judgements: list[Judgement]) -> dict[str, Table]:
    """Return every table of verdicts by name."""
    own = [one for one in judgements if one.source == OWN]
    published = {
        f"{source}: {title}": [one for one in judgements if one.source.partition(",")[0] == source]
        for source, title in SOURCES.items()
    }
    major = {"": [one for one in own if one.kind != "goal"]}
    goals = {"": [one for one in own if one.kind == "goal"]}
    return {
        "claims_major": _per_claim(frame, "claims_major", major, _OUTCOMES),
        "claims_goals": _per_claim(frame, "claims_goals", goals, _REACHED),
        "claims_published": _per_claim(frame, "claims_published", published, _OUTCOMES),
        "claims_counts": _counts(frame, judgements),
        "claims_map": source_map(frame, judgements),
    }


def table_names() -> list[str]:
    """Return the names of the tables of verdicts."""
    return ["claims_major", "claims_goals", "claims_published", "claims_counts", "claims_map"]


def _per_claim(frame: Frame, table: str, groups: dict[str, list[Judgement]], outcomes: dict[str, str]) -> Table:
    """Return one row per claim, under the name of its group: claim, rule, and a column per machine that decides any."""
    scopes = {one.scope for group in groups.values() for one in group if one.verdict != NOT_HERE}
    names = [name for name in frame.machines() if name in scopes]
    dates = {one.dated or MISSING for group in groups.values() for one in group}
    each = len(dates) > 1  # one date stands in the caption
    rows: list[list[str] | str] = []
    for title, group in groups.items():
        rows += [title] if title and group else []
        for same in _by_claim(group):
            why = _nowhere(same)
            cells = {one.scope: _cell(one, outcomes, why) for one in same}
            kind = f" ({_KINDS[same[0].kind]})" if title else ""
            rule = f"{same[0].rule} ({why})" if why and same[0].rule != MISSING else why or same[0].rule
            about = (f"{same[0].claim}{kind}", rule, *[same[0].dated or MISSING] * each)
            rows.append([*about, *(cells.get(name, MISSING) for name in names)])
    widths = ("2.4fr", "1.3fr" if "" not in groups else "auto", *["auto"] * each)
    caption = captions.TABLES[table].format(note=captions.TABLES["claims_note"].format(missing=MISSING))
    caption += "" if each else f" All rules are of {', '.join(dates)}."
    return by_machine(frame, caption, ["Claim", "Rule", *["Dated"] * each], rows, names, widths)


def _by_claim(judgements: Iterable[Judgement]) -> Iterable[list[Judgement]]:
    by_claim: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        by_claim.setdefault(judgement.claim_id, []).append(judgement)
    return by_claim.values()


def _nowhere(same: list[Judgement]) -> str:
    """Return the one reason why no machine that is shown can decide; empty where one can, or they differ."""
    reasons = {short_reason(one) if one.verdict == NOT_HERE else "" for one in same}
    return reasons.pop() if len(reasons) == 1 else ""


def _cell(judgement: Judgement, outcomes: dict[str, str], told: str) -> str:
    if judgement.verdict == NOT_HERE:
        why = short_reason(judgement)
        return MISSING if why == told or _OTHER_KIND.fullmatch(why) else f"{MISSING} ({why})"
    unsure = judgement.verdict == "ambiguous"  # the caption says why, the interval shows it
    notes = [judgement.reason] * bool(judgement.reason and not unsure) + ["synthetic"] * stand_in(judgement.dataset)
    measured = judgement.measured if unsure else _INTERVAL.sub("", judgement.measured)
    return f"{outcomes[judgement.verdict]}, {measured}" + (f" ({'; '.join(notes)})" if notes else "")


def _counts(frame: Frame, judgements: list[Judgement]) -> Table:
    """One row per kind of claim, a column per machine and verdict: how many ended so of the studies of the text."""
    counts = tally(one for one in judgements if one.scope in frame.shown(one.study))
    names = [name for name in frame.machines() if name in counts]
    rows: list[list[str] | str] = [
        [group.capitalize(), *(str(counts[name][group][verdict]) for name in names for verdict in VERDICTS)]
        for group in (*PUBLISHED_GROUPS, MAJOR, GOALS)
        if any(sum(counts[name][group].values()) for name in names)
    ]
    # Short words: a reader's own machine beside two references has room for no others.
    first, *others = (_OUTCOMES.get(verdict, MISSING) for verdict in VERDICTS)
    heads = [head for name in names for head in (f"{frame.machine_name(name)}: {first}", *others)]
    widths = ("auto", *("2fr", "1fr", "1fr", "1fr") * len(names))
    caption = captions.TABLES["claims_counts"].format(missing=MISSING)
    return Table(caption, ["Kind", *heads], rows, widths=widths)
