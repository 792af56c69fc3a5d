"""Digits, units and tables as a reader sees them: both formats agree, mark what is synthetic, leave no silent gap."""

import math
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
from octopus_study.report.text import interval_text, quantity_text, range_text
from octopus_study.report.view import View
from octopus_study.status import as_answer, different


@pytest.mark.parametrize(("value", "unit", "text"), [
    (0.19234, "ms", "0.192 ms"), (0.0068, "ms", "6.80 µs"), (1234.4, "ms", "1.23 s"), (99.97, "ms", "100 ms"),
    (0.9491, "fraction", "94.9 %"), (0.9991, "fraction", "99.91 %"), (0.99982, "fraction", "99.98 %"),
    (1.0, "fraction", "100 %"), (5.0, "ratio", "5.00\u00d7"), (204 * 2**20, "bytes", "204 MiB"),
    (3.5 * 2**10, "bytes", "3.50 KiB"), (12 * 2**30, "bytes", "12.0 GiB"), (41.0, "px", "41 px"),
    (10500.0, "count", "10\u202f500"), (-1.5, "ms", "\u22121.50 ms"), (4588.0, "GB/s", "4588 GB/s"),
    (math.nan, "ms", "\u2013 ms"),
])  # fmt: skip
def test_quantity_text(value: float, unit: str, text: str) -> None:
    assert quantity_text(value, unit) == text


def test_an_interval_has_digits_enough_to_tell_its_ends_apart() -> None:
    assert interval_text(1.0002, 1.0001, 1.0004, "ratio") == "1.0001\u20131.0004\u00d7"
    assert interval_text(647.56, 647.56, 647.56, "MB") == "648\u2013648 MB"
    assert interval_text(1.0, math.nan, math.nan, "ms") == ""
    assert interval_text(-0.02, -0.03, -0.01, "fraction") == "\u22123.00\u00a0to\u00a0\u22121.00 %"


def test_a_value_beside_its_interval_has_as_many_digits() -> None:
    narrow, wide = (number(TIME, "ms", 0.22241, *ends) for ends in ((0.22233, 0.22249), (0.21, 0.24)))
    assert (narrow.text, narrow.precise) == ("0.222 ms", "0.2224 ms")
    assert wide.precise == wide.text == "0.222 ms"
    assert cells.with_interval(narrow) == "0.2224 [0.2223\u20130.2225] ms"


def test_a_range_is_in_the_unit_of_its_greatest_value() -> None:
    assert range_text(0.45, 0.99982, "fraction") == "45.0\u201399.98 %"
    assert range_text(0.99981, 0.99982, "fraction") == "99.98 %"
    assert range_text(0.01, 0.02, "ms") == "10.0\u201320.0 µs"
    assert range_text(15.21, 129.1, "ratio") == "15.2\u2013129\u00d7"


@pytest.mark.parametrize(("note", "why"), [
    ("unavailable: RuntimeError: NVCV_ERROR_OVERFLOW: Output size exceeds 2147483647.",
     "CV-CUDA takes no tensor of 2\u00b3\u00b9 bytes or more"),
    ("unavailable: DALI is not installed (pip install -e './workflow[x]')", "DALI is not installed"),
    ("unavailable: it can't be loaded: [ONNXRuntimeError] : 1 : FAIL : twice", "it can't be loaded"),
    ("unavailable: MemoryError: Can't allocate 31 bytes on device 0.", "too little memory was free"),
    ("unavailable: beside others 6,021 bytes are needed, 4,584 are free", "too little memory was free"),
    ("unavailable: it needs 6,021 bytes on the GPU for this batch, 4,584 are free", "too little memory was free"),
    ("unavailable: The memory of a.memory:probe was not measured: exit status 1, ModuleNotFoundError: No a",
     "the process that measures it failed"),
    ("unavailable: one batch takes 0.77 s: too slow for 20 blocks beside the others (arena.max_seconds = 3)",
     "too slow for 20 blocks beside the others"),
])  # fmt: skip
def test_a_reason_is_the_cause_alone(note: str, why: str) -> None:
    assert as_answer(note).reason == why


def test_a_difference_without_a_reason_says_how_large_it_is() -> None:
    assert different("", 0.0088, 0.0044).reason == "by as much as 0.00880, more than 0.00440"


# Of each group of studies: identifiers of the rows that a reader would stumble over.
IDENTIFIERS = {
    ("mapping", "total_cost", "sequences"): ("thread-search block-metadata lookup- photos- nlp-1k blur5x5"),
    ("satellite", "drone"): ("n-launches octopus-graph n-launches-published clip- rgb8 byte-budget end_to_end"),
    ("concurrency", "image_shape"): ("two- cuda-graphs no-prefetch padded-whole -step drunet mps_clients"),
}


def test_too_few_blocks_give_no_verdict() -> None:
    other = TIME.but(method="a")
    over, floor = number(other.speedup("b"), "ratio", 2.0), number(TIME.derive("noise_floor"), "fraction")
    frame = Frame([over, text(other.derive("verdict", "b"), "ambiguous"), floor])
    assert cells.speedup_text(frame, other, "b") == "2.00\u00d7, ambiguous"
    assert cells.floor_text(frame, TIME) == "\u2013"


def test_a_wide_interval_is_shown() -> None:
    narrow = TIME.but(method="narrow")
    frame = Frame([number(TIME, "ms", 10.0, 8.0, 11.0), number(narrow, "ms", 10.0, 9.9, 10.1)])
    assert cells.time_text(frame, TIME) == "10.0 [8.00\u201311.0] ms"
    assert cells.time_text(frame, narrow) == "10.0 ms"


@pytest.mark.parametrize(("ends", "shown"), [
    ((1.5, 2.4), "2.00\u00d7 [1.50\u20132.40\u00d7]"), ((1.9, 2.1), "2.00\u00d7"), ((), "2.00\u00d7"),
])  # fmt: skip
def test_a_loose_speed_up_has_its_interval(ends: tuple[float, ...], shown: str) -> None:
    frame = Frame([number(TIME, "ms", 1.0), number(TIME.speedup("b"), "ratio", 2.0, *ends)])
    assert cells.speedup_text(frame, TIME, "b", loose=True) == shown
    assert cells.speedup_text(frame, TIME, "b") == "2.00\u00d7"


def test_a_speed_up_over_another_answer_is_marked_with_the_reason() -> None:
    other = make_number(TIME.but(method="b"), SOURCE, "ms", 2.0, answer=different("why"))
    view = View(Frame([number(TIME, "ms", 1.0), other, number(TIME.speedup("b"), "ratio", 2.0)]), "m", "stage_timing")
    assert cells.versus("b")(view, TIME) == "2.00\u00d7 \u2020 (a)" and view.reasons.note == " (a) why."


def test_a_mark_of_another_answer_is_explained(full: Path) -> None:
    marked = {name for name in table_names() if any(cells.DIFFERENT in " ".join(row) for row in lines(full, name))}
    assert marked and [name for name in marked if f"{cells.DIFFERENT}:" not in caption(full, name)] == []


def test_every_study_says_its_day_commit_data_and_foreign_load(runs: Path, tmp_path: Path) -> None:
    reference = Path(shutil.copytree(runs / "reference", tmp_path / "reference"))
    path = reference / CPU / "mapping.json"
    edit_record(path, git__commit="f" * 40, ended="2026-11-30T03:00:00+00:00")
    edit_record(path, state_after__cpu={"load_average_1min": 3.75})
    runs_of = load_runs(None, reference)
    facts = (by(function, runs_of) for function in (machine_facts, shown_runs, aliases))
    numbers = Frame(number for part in facts for number in part)
    rows = {row[0]: row[1:] for row in overview.machines(numbers).rows if not isinstance(row, str)}
    usual = [f"2026-11-{day}, 0123456789, VisDrone val" for day in (28, 27)]
    assert [cell[: len(usual[0])] for cell in rows["Stage timing"]] == usual
    assert rows["Mapping"][1] == "2026-11-30, ffffffffff, VisDrone val; load 1.30 and 3.75"
    assert {"Power", "Image shape", "Sequences"} <= set(rows)
    commits = r"commits 0123456789 \(\d+ studies\), .*f{10} \(1 study\).*"
    assert re.fullmatch(commits, numbers.text("cpu.machine.commits"))
    assert numbers.text("cpu.machine.days") == "2026-11-27 to 2026-11-30"


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
