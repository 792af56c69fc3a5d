"""The map of the sources names what exists, leaves nothing out, and takes its verdicts from the claims."""

from pathlib import Path

import pytest
from committed_runs import CLAIMS, PAPER, PUBLISHED
from frames import lines

from octopus_study.names import SOURCES, STUDIES
from octopus_study.report import outputs, uses
from octopus_study.report.claims import BOARDS, Claim, judge, load_claims, read_claims
from octopus_study.report.claims.outcome import NOT_HERE
from octopus_study.report.claims.rules import OWN
from octopus_study.report.frame import Frame, Number
from octopus_study.report.tables.sources import BOARD, Item, items, source_map
from octopus_study.site.block import MARKS, sources_block

ITEMS = items()
PUBLISHED_CLAIMS = {claim.id: claim for claim in load_claims(CLAIMS) if claim.source != OWN}
# Items of which no reference has rows yet.
WAITING = {
    "ONNX Runtime: two models at once; batching",
    "Memory on one GPU and on several",
    "Why batches saturate: bandwidth and the L2 cache",
}


def claims_of(item: Item) -> list[Claim]:
    return [PUBLISHED_CLAIMS[name] for name in item.claims.split()]


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.item[:40])
def test_an_item_names_what_exists(item: Item, root: Path) -> None:
    assert item.source in SOURCES and item.item and item.published and item.shown
    assert item.study in STUDIES
    known = {*outputs.table_names(), *outputs.figures()}
    assert [name for name in item.shown.split() if name not in known and not (root / name).is_file()] == []
    assert bool(item.claims) != bool(item.why)
    assert [c.id for c in claims_of(item) if (c.study, c.source.partition(",")[0]) != (item.study, item.source)] == []


def test_no_published_claim_and_no_published_table_is_left_out() -> None:
    assert {name for item in ITEMS for name in item.claims.split()} == {*PUBLISHED_CLAIMS}
    assert {name for item in ITEMS for name in item.published.split()} == {p.stem for p in PUBLISHED.glob("*.csv")}
    assert len({item.item for item in ITEMS}) == len(ITEMS)
    assert [item.source for item in ITEMS] == sorted(item.source for item in ITEMS)


def test_every_item_ends_somehow_and_only_boards_and_tensorrt_are_not_measured(references: Path) -> None:
    _, _, *rows = (row for row in lines(references, "claims_map") if not row[0].startswith("**"))
    assert len(rows) == len(ITEMS) and all(cell for row in rows for cell in row)
    absent = {
        item.item
        for item, row in zip(ITEMS, rows, strict=True)
        if row[4].startswith(NOT_HERE) and "TensorRT" not in row[4] and not item.why.startswith(BOARD)
        if any(claim.needs not in BOARDS for claim in claims_of(item))
    }
    assert absent <= WAITING


def test_a_verdict_of_the_map_is_that_of_the_claims(references: Path, root: Path) -> None:
    frame, judged = Frame.read(references / "numbers.csv"), read_claims(references / "claims.csv")
    begin, end = (mark.format("sources") for mark in MARKS)
    page = (root / "docs/studies.md").read_text(encoding="utf-8")
    assert page.partition(begin)[2].partition(end)[0] == sources_block(frame, judged), "run `octopus report readme`"
    turned = [one._replace(verdict="ambiguous") if one.claim_id == "waste-uniform" else one for one in judged]
    maps = (source_map(frame, judged), source_map(frame, turned))
    assert [row[4] for one in maps for row in one.rows if "padding by" in row[0]] == ["5 yes", "4 yes, 1 unsure"]


# Medians are the data, and facts say where they come from.
DATA = ("medians", "machine_facts", "shown_runs", "aliases", "published_numbers")
# What every comparison and bound of any study gives; some are shown.
OF_ALL = {"noise_floor", "speedup", "verdict", "times", "share"}
# What other numbers are derived from, and the reason that claims find in the place of an energy.
FOR_OTHERS = {("drone", "late_share", ""), ("satellite", "scene_bytes", ""), ("power", "over_n-launches", "")}


def test_every_kind_of_derived_number_is_read(full: Path) -> None:
    kinds: dict[tuple[str, str, str], bool] = dict.fromkeys(FOR_OTHERS, True)
    frame = Frame.read(full / "numbers.csv")
    read = looked_up(frame, full)
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
