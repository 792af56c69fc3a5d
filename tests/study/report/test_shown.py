"""What is derived is shown: by a table, a figure, a claim or the paper."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from synthetic_runs import CLAIMS, PAPER

from octopus_study.report import outputs
from octopus_study.report.charts import style
from octopus_study.report.claims import build_claims
from octopus_study.report.frame import Frame, Key, Number

# Medians are the data, and facts say where they come from.
DATA = ("medians", "machine_facts", "shown_runs", "aliases", "published_numbers")
# A verdict goes with its speed-up; speed-ups are derived for all counts of a comparison, of which some are shown.
MOST_UNREAD = 0.2


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The ids of all numbers that are looked up from here on."""
    ids: set[str] = set()
    find, select = Frame.find, Frame.select

    def finding(self: Frame, key: Key | str) -> Number | None:
        ids.add(self.resolve(key))
        return find(self, key)

    def selecting(self: Frame, *where: str, **columns: object) -> list[Number]:
        numbers = select(self, *where, **columns)
        ids.update(number.id for number in numbers)
        return numbers

    monkeypatch.setattr(Frame, "find", finding)
    monkeypatch.setattr(Frame, "select", selecting)
    monkeypatch.setattr(style, "save", lambda *_: None)
    return ids


def test_nearly_every_derived_number_is_read(full: Path, read: set[str], tmp_path: Path) -> None:
    claims = build_claims(full / "numbers.csv", CLAIMS, tmp_path / "claims.csv")
    outputs.build_tables(full / "numbers.csv", claims, tmp_path)
    for name in outputs.figures():
        outputs.draw(name, full / "numbers.csv", tmp_path / name)
    text = "".join(path.read_text("utf-8") for path in PAPER.rglob("*.typ"))
    numbers = [number for number in Frame.read(full / "numbers.csv") if is_derived(number)]
    read |= {number.key.derive("verdict", number.other).id for number in numbers if number.id in read}
    unread = [number for number in numbers if number.id not in read and not is_in(number, text)]
    kinds = Counter((number.study, number.quantity, number.derived) for number in unread)
    assert len(unread) < MOST_UNREAD * len(numbers), kinds.most_common(20)


def is_derived(number: Number) -> bool:
    return bool(number.derived) or number.function.rpartition(".")[2] not in DATA


def is_in(number: Number, text: str) -> bool:
    """Whether the paper's text names such a number of the study."""
    return number.study in text and (number.derived or number.quantity) in text
