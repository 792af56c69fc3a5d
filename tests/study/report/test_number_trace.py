"""``octopus trace`` says where a number comes from and is used; the map of the sources is whole and true."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from committed_runs import CLAIMS, GPU, PAPER, PUBLISHED
from frames import lines

from octopus.errors import InputError
from octopus_study.names import SOURCES, STUDIES
from octopus_study.report import outputs, uses
from octopus_study.report.claims import BOARDS, Claim, judge, load_claims, read_claims
from octopus_study.report.claims.rules import OWN
from octopus_study.report.frame import Frame, Number
from octopus_study.report.tables.sources import BOARD, Item, items, source_map
from octopus_study.report.tables.writers import MISSING
from octopus_study.report.trace import recorded, trace
from octopus_study.site.block import MARKS, sources_block

HOST = "gpu.stage_timing.visdrone.n1000.octopus.end_to_end.host"


def traced(identifier: str, frame: Frame) -> str:
    return "\n".join(trace(identifier, frame, load_claims(CLAIMS), PAPER, CLAIMS))


@pytest.mark.parametrize(("identifier", "parts"), [
    (f"{HOST}.speedup_over_published",
     f"{GPU}.stage_timing|method=octopus and published|stage_timing.csv:|report/measured.py:|baselines/fused.py:|"
     f"baselines/published.py:|data/results/{GPU}/stage_timing.csv|supplement/stage_timing.typ:"),
    ("published.stage_timing.n100.published.build_metadata", "typed|stage_timing.csv:2|value 0.098"),
    ("shown.stage_timing", "provenance|in text"),
    ("one-launch-faster", "claims.yaml:|NVIDIA H200: |; rule > 1\u00d7|speedup_over_n-launches|claims.typ:"),
])  # fmt: skip
def test_a_trace_names_every_station(identifier: str, parts: str, numbers: Frame) -> None:
    text = traced(identifier, numbers)
    assert [part for part in parts.split("|") if part not in text] == []


@pytest.mark.parametrize(("provenance", "parts", "absent"), [
    ({"command": "octopus measure x --out y"}, ("octopus measure x --out y", "commit 0123456789"), "; "),
    ({"git": {"commit": "abc", "dirty": True, "reason": "a copy"}}, ("commit abc; with changes; a copy",), "0123"),
    (None, ("commit 0123456789",), "measured by"),
])  # fmt: skip
def test_a_trace_prints_the_command_and_the_commit_that_the_provenance_has(
    provenance: dict | None, parts: tuple[str, ...], absent: str, numbers: Frame, tmp_path: Path
) -> None:
    number = numbers[HOST]
    rows = Path(shutil.copy(number.file, tmp_path))
    if provenance is not None:
        rows.with_suffix(".json").write_text(json.dumps(provenance))
    measured = "\n".join(line for line in recorded(number._replace(file=str(rows))))
    assert [part for part in parts if part not in measured] == [] and absent not in measured
    assert "measured at" in traced(HOST, numbers)


def test_a_number_that_nothing_shows_is_used_nowhere(numbers: Frame) -> None:
    text = traced("cpu.satellite.window-uint16.n16.octopus.keep_tiles.host.noise_floor", numbers)
    assert text.endswith("  used:         nowhere but in numbers.csv") and "  in " not in text


def test_no_reference_of_the_paper_is_to_every_number() -> None:
    assert list(uses.in_text("machine.study.workload.method.quantity", Frame([]), PAPER)) == []


def test_an_unknown_id_suggests_near_ones(numbers: Frame) -> None:
    with pytest.raises(InputError, match=r"Did you mean.*end_to_end"):
        traced(f"{HOST}x", numbers)


@pytest.mark.parametrize(("source", "identifier", "used"), [
    ('#num("gpu.a.b.c.d")', "m.a.b.c.d", True),
    ('#let at = "gpu.a.b."\n#num(at + "c")', "m.a.b.c", True),
    ('#let at = "gpu.a.b."\n#num(at + "c")', "m.a.x.c", False),
    ('#for (scope, place) in places { num(scope + ".a.b.c") }', "m.a.b.c", True),
    ('#versus("gpu.a.b", "other")', "m.a.b.speedup_over_other", True),
    ('#said("one-claim")', "m.a.b", False),
])  # fmt: skip
def test_ids_that_are_put_together_are_found(source: str, identifier: str, used: bool, tmp_path: Path) -> None:
    (tmp_path / "section.typ").write_text(source, encoding="utf-8")
    frame = Frame([])
    frame.aliases = {"gpu": "m"}
    assert bool(list(uses.in_text(identifier, frame, tmp_path))) is used


def test_tables_and_figures_are_kept_beside_the_numbers(numbers, tmp_path, monkeypatch):
    """Till the numbers change: to find them anew, every table and figure is made."""
    folder = Path(shutil.copytree(numbers.folder, tmp_path / "build"))
    made = Frame.read(folder / "numbers.csv")
    found = [uses.in_tables(number, made) + uses.in_figures(number, made) for number in made]
    assert any(found)
    monkeypatch.setattr(uses, "watch", None)
    again = Frame.read(folder / "numbers.csv")
    assert [uses.in_tables(number, again) + uses.in_figures(number, again) for number in again] == found
    Frame(list(again)[:-1]).write(folder / "numbers.csv")
    with pytest.raises(TypeError, match="not callable"):
        uses.in_tables(again[HOST], Frame.read(folder / "numbers.csv"))


ITEMS = items()
PUBLISHED_CLAIMS = {claim.id: claim for claim in load_claims(CLAIMS) if claim.source != OWN}


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
        if (gpu := of_gpu(row)).startswith(MISSING) and "TensorRT" not in gpu and not item.why.startswith(BOARD)
        if any(claim.needs not in BOARDS for claim in claims_of(item))
    }
    assert absent == set()


def of_gpu(row: Sequence[str]) -> str:
    """Return the cell of the GPU that ran the study of a row of the map."""
    return next((cell for cell in row[4:6] if not cell.startswith("no run")), row[4])


def test_a_verdict_of_the_map_is_that_of_the_claims(references: Path, root: Path) -> None:
    frame, judged = Frame.read(references / "numbers.csv"), read_claims(references / "claims.csv")
    begin, end = (mark.format("sources") for mark in MARKS)
    page = (root / "docs/studies.md").read_text(encoding="utf-8")
    assert page.partition(begin)[2].partition(end)[0] == sources_block(frame, judged), "run `octopus report readme`"
    turned = [one._replace(verdict="ambiguous") if one.claim_id == "waste-uniform" else one for one in judged]
    maps = (source_map(frame, judged), source_map(frame, turned))
    assert [of_gpu(row) for one in maps for row in one.rows if "padding by" in row[0]] == ["5 yes", "4 yes, 1 unsure"]


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
