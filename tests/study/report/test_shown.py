"""What is derived is shown: by a table, a figure, a claim or the paper."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from drawing import looked_up
from synthetic_runs import CLAIMS, PAPER

from octopus_study.report import outputs
from octopus_study.report.claims import build_claims
from octopus_study.report.frame import Frame, Number

# Medians are the data, and facts say where they come from.
DATA = ("medians", "machine_facts", "shown_runs", "aliases", "published_numbers")
# A verdict goes with its speed-up; speed-ups are derived for all counts of a comparison, of which some are shown.
MOST_UNREAD = 0.2


def test_nearly_every_derived_number_is_read(
    full: Path, drawn: Callable[[str], Path], tmp_path: Path
) -> None:
    with looked_up() as read:
        claims = build_claims(full / "numbers.csv", CLAIMS, tmp_path / "claims.csv")
        outputs.build_tables(full / "numbers.csv", claims, tmp_path)
    for name in outputs.figures():
        read |= set(json.loads((drawn(name) / f"{name}.json").read_text())["read"])
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
