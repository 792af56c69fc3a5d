"""What is derived is shown: by a table, a figure, a claim or the paper."""

from __future__ import annotations

from pathlib import Path

from committed_runs import CLAIMS, PAPER

from octopus_study.report import outputs, uses
from octopus_study.report.claims import judge, load_claims, read_claims
from octopus_study.report.frame import Frame, Number

# Medians are the data, and facts say where they come from.
DATA = ("medians", "machine_facts", "shown_runs", "aliases", "published_numbers")
# What every comparison and bound of any study gives; some are shown.
OF_ALL = {"noise_floor", "speedup", "verdict", "times", "share"}
# What other numbers are derived from, and the reason that claims find in the place of an energy.
FOR_OTHERS = {("drone", "late_share", ""), ("satellite", "scene_bytes", ""), ("power", "over_n-launches", "")}


def test_every_kind_of_derived_number_is_read(full: Path, references: Path) -> None:
    kinds: dict[tuple[str, str, str], bool] = dict.fromkeys(FOR_OTHERS, True)
    for folder in (full, references):
        frame = Frame.read(folder / "numbers.csv")
        read = looked_up(frame, folder)
        for number in filter(is_derived, frame):
            kind = (number.study, number.quantity, number.derived)
            if not kinds.get(kind):
                kinds[kind] = number.id in read or any(uses.in_text(number.id, frame, PAPER))
    assert [kind for kind, is_read in kinds.items() if not is_read] == []


def looked_up(frame: Frame, folder: Path) -> set[str]:
    """Return the ids of the numbers that claims, tables and figures name or look up."""
    claims, judgements = load_claims(CLAIMS), read_claims(folder / "claims.csv")
    _, judged = uses.watch(lambda frame: [list(judge(claim, frame)) for claim in claims], frame)
    _, listed = uses.watch(lambda frame: outputs.tables_of(frame, judgements), frame)
    machines = {number.machine for number in frame}
    named = [name for claim in claims for machine in machines for name in claim.ids(machine)]
    return judged.seen.union(named, listed.seen, *uses.read_by_figures(frame).values())


def is_derived(number: Number) -> bool:
    data = not number.derived and number.function.rpartition(".")[2] in DATA
    return not data and not {number.derived, number.quantity} & OF_ALL
