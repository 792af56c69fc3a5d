"""Tables in both formats say the same, mark what is synthetic, and leave no silent gap."""

import re
import shutil
from pathlib import Path

import pytest
from committed_runs import CPU, edit_record
from frames import SOURCE, TIME, caption, lines, number, text

from octopus_study.report.build import by
from octopus_study.report.frame import Frame, make_number
from octopus_study.report.machines import aliases, machine_facts, shown_runs
from octopus_study.report.outputs import table_names
from octopus_study.report.runs import load_runs
from octopus_study.report.studies import report_of
from octopus_study.report.tables import cells, overview
from octopus_study.report.tables.writers import Table, markdown, typst
from octopus_study.report.view import View
from octopus_study.status import different

# Of each group of studies: identifiers of the rows that a reader would stumble over.
IDENTIFIERS = {
    ("mapping", "total_cost", "sequences"): ("thread-search block-metadata lookup- photos- nlp-1k blur5x5"),
    ("satellite", "drone"): ("n-launches octopus-graph n-launches-published clip- rgb8 byte-budget end_to_end"),
    ("concurrency", "image_shape"): ("two- cuda-graphs no-prefetch padded-whole -step drunet mps_clients"),
}


@pytest.mark.parametrize("name", table_names())
@pytest.mark.parametrize("report", ["full", "alone"])
def test_every_table_exists_in_every_format(name: str, report: str, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(report) / "tables"
    for suffix in (".typ", ".md"):
        assert (folder / f"{name}{suffix}").stat().st_size > 100


def test_too_few_blocks_give_no_verdict() -> None:
    other = TIME.but(method="a")
    frame = Frame(
        [
            number(other.speedup("b"), "ratio", 2.0),
            text(other.derive("verdict", "b"), "ambiguous"),
            number(TIME.derive("noise_floor"), "fraction"),
        ]
    )
    assert cells.ratio_text(frame, other, "b") == "2.00\u00d7, ambiguous (\u2013)"


def test_a_wide_interval_is_shown() -> None:
    narrow = TIME.but(method="narrow")
    frame = Frame([number(TIME, "ms", 10.0, 8.0, 11.0), number(narrow, "ms", 10.0, 9.9, 10.1)])
    assert cells.time_text(frame, TIME) == "10.0 [8.00\u201311.0] ms"
    assert cells.time_text(frame, narrow) == "10.0 ms"


@pytest.mark.parametrize(
    ("ends", "shown"),
    [((1.5, 2.4), "2.00\u00d7 [1.50\u20132.40\u00d7]"), ((1.9, 2.1), "2.00\u00d7"), ((), "2.00\u00d7")],
)
def test_a_loose_speed_up_has_its_interval(ends: tuple[float, ...], shown: str) -> None:
    frame = Frame([number(TIME, "ms", 1.0), number(TIME.speedup("b"), "ratio", 2.0, *ends)])
    assert cells.speedup_text(frame, TIME, "b", loose=True) == shown
    assert cells.speedup_text(frame, TIME, "b") == "2.00\u00d7"


def test_a_speed_up_over_another_answer_is_marked_with_the_reason() -> None:
    other = make_number(TIME.but(method="b"), SOURCE, "ms", 2.0, answer=different("why"))
    view = View(Frame([number(TIME, "ms", 1.0), other, number(TIME.speedup("b"), "ratio", 2.0)]), "m", "stage_timing")
    assert cells.versus("b")(view, TIME) == "2.00\u00d7 \u2020 (a)" and view.reasons.note == " (a) why."


@pytest.mark.parametrize("name", table_names())
def test_a_mark_of_another_answer_is_explained(name: str, full: Path) -> None:
    marked = any(cells.DIFFERENT in cell for row in lines(full, name) for cell in row)
    assert not marked or f"{cells.DIFFERENT}:" in caption(full, name)


def test_every_study_says_its_day_commit_data_and_foreign_load(runs: Path, tmp_path: Path) -> None:
    reference = Path(shutil.copytree(runs / "reference", tmp_path / "reference"))
    path = reference / CPU / "mapping.json"
    edit_record(path, git__commit="f" * 40, ended="2026-11-27T03:00:00+00:00")
    edit_record(path, state_after__cpu={"load_average_1min": 3.75})
    runs_of = load_runs(None, reference)
    facts = (by(function, runs_of) for function in (machine_facts, shown_runs, aliases))
    numbers = Frame(number for part in facts for number in part)
    rows = {row[0]: row[1:] for row in overview.machines(numbers).rows if not isinstance(row, str)}
    usual = "2026-11-25, 0123456789, VisDrone val"
    assert [cell[: len(usual)] for cell in rows["Stage timing"]] == [usual] * 2
    assert rows["Mapping"][1] == "2026-11-27, ffffffffff, VisDrone val; load 0.21 and 3.75"
    assert {"Power", "Image shape", "Sequences"} <= set(rows)
    commits = r"commits 0123456789 \(\d+ studies\), .*f{10} \(1 study\).*"
    assert re.fullmatch(commits, numbers.text("cpu.machine.commits"))
    assert numbers.text("cpu.machine.days") == "2026-11-25 to 2026-11-27"


def test_synthetic_runs_are_called_so(full: Path) -> None:
    for name in ("stage_timing", "machines"):
        assert "synthetic" in (full / "tables" / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("studies", IDENTIFIERS, ids="-".join)
def test_no_identifier_is_shown(studies: tuple[str, ...], full: Path) -> None:
    identifiers = IDENTIFIERS[studies].split()
    for name in ("claims_published", *(name for study in studies for name in report_of(study).tables)):
        shown = (full / "tables" / f"{name}.md").read_text("utf-8")
        assert [word for word in identifiers if word in shown] == [], name


def test_special_characters_survive_each_format() -> None:
    table = Table("50 % of *all* & more_than_that", ["a#", "b"], [["x|y", "2 µs \u00d7 3"]])
    assert r"50 % of \*all\* & more\_than\_that" in typst("t", table)
    assert r"x\|y" in markdown(table)


def test_a_heading_stays_with_its_rows_and_a_note_with_none() -> None:
    """What is repeated above a page's first rows is their heading, never a note on others."""
    table = Table("", ["A"], ["first", ["1"], "a note", "second", ["2"], "another note"])
    rows = typst("t", table).splitlines()
    headings = [row.split("_")[1] for row in rows if "table.header(level: 2" in row]
    assert headings == ["first", "second"]
    assert sum("colspan" in row for row in rows) == 4
