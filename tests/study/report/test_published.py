"""The typed tables: complete in form, a source in every row, and the values that later issues rest on."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from committed_runs import PUBLISHED

from octopus.errors import InputError
from octopus_study.report.frame import Frame
from octopus_study.report.published import COLUMNS, published_numbers


@pytest.fixture(scope="module")
def published() -> Frame:
    return Frame(published_numbers(PUBLISHED))


@pytest.mark.parametrize("path", sorted(PUBLISHED.glob("*.csv")), ids=lambda path: path.stem)
def test_every_row_has_a_value_a_unit_and_a_source(path: Path) -> None:
    with open(path, newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            assert row["value"] or row["low"] or row["high"] or row.get("printed")
            assert row["source"][:2] in {"P1", "P2", "P3", "P4"} and row["unit"]


def test_words_and_lists_are_no_exact_numbers(published: Frame) -> None:
    equal = published["published.block_metadata_gain.rtx-4090.memory-bound.speedup_over_thread_search"]
    assert (equal.text, equal.value == equal.value) == ("about equal", False)
    streams = published["published.two_models.two-streams.time"]
    assert (streams.text, streams.low, streams.value == streams.value) == ("≈ 430 ms or worse", 430.0, False)
    assert published.text("published.image_shape.patches.batch") == "1, 2, 4, 8, 16"
    assert published.text("published.stated_limits.per-pixel-independent-on-balanced-batches.gain") == "no gain"


def test_all_four_documents_are_there(published: Frame) -> None:
    assert {number.note[:2] for number in published} == {"P1", "P2", "P3", "P4"}


def test_a_table_without_its_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("n,value\n1,2\n")
    with pytest.raises(InputError, match=COLUMNS[0]):
        list(published_numbers(tmp_path))
