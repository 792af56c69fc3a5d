"""How many claims ended how: counted here alone, for the tables, the paper, the page and the terminal."""

from collections.abc import Iterable
from typing import get_args

from octopus_study.report.claims.judgement import Judgement
from octopus_study.report.claims.outcome import Verdict
from octopus_study.report.claims.rules import OWN

VERDICTS = get_args(Verdict)
PUBLISHED_GROUPS = ("arithmetic", "direction", "magnitude")
MAJOR, GOALS = "claims of this paper", "goals of this paper"
# What a group is counted in, too: published claims, and those of them that a measurement could refute.
_TOGETHER = {name: ("published", "measured") for name in PUBLISHED_GROUPS} | {"arithmetic": ("published",)}
Tally = dict[str, dict[str, dict[Verdict, int]]]


def group_of(judgement: Judgement) -> str:
    """Return what a verdict is counted with; facts follow from constants and are no claims."""
    if judgement.source == OWN:
        return GOALS if judgement.kind == "goal" else MAJOR
    return judgement.kind


def tally(judgements: Iterable[Judgement]) -> Tally:
    """Return by machine, group and verdict how many claims ended so."""
    groups = (*PUBLISHED_GROUPS, "published", "measured", MAJOR, GOALS, "fact")
    counts: Tally = {}
    for one in judgements:
        empty = {group: dict.fromkeys(VERDICTS, 0) for group in groups}
        of_machine = counts.setdefault(one.scope, empty)
        group = group_of(one)
        for name in (group, *_TOGETHER.get(group, ())):
            of_machine[name][one.verdict] += 1
    return counts
