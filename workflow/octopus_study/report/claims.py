"""Published claims as rules over numbers, and the verdict that follows: nobody decides one by hand.

A claim of ``config/claims.yaml`` is checked on every machine that has results. Its number may be an id with
``{run}`` for the machine, or several of them, which must all satisfy the rule. The whole 95 % interval must
satisfy it: a claim that only holds at the lucky end of the interval is not reproduced.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator, model_validator

from octopus.errors import InputError
from octopus_study.measure._files import atomic_text
from octopus_study.report.frame import Frame, Number
from octopus_study.report.text import interval_text, quantity_text, with_unit

Verdict = Literal["reproduced", "not reproduced", "not measurable here"]
# Published machines: what a machine's name must match for one of them, and how it is called.
BOARDS = {
    "jetson": (re.compile(r"orin", re.I), "a Jetson Orin Nano"),
    "t4": (re.compile(r"\bT4\b"), "a T4"),
    "rtx-4090": (re.compile(r"\b4090\b"), "an RTX 4090"),
    "rtx-2060": (re.compile(r"\b2060\b"), "an RTX 2060"),
}
# Rules that leave room, whose size needs a reason.
_WITH_ROOM = ("about", "between")
_SIGNS = {"at_most": "≤", "at_least": "≥", "above": ">"}
_PRINTED_SCALE = {"fraction": 100.0, "MiB": 2.0**-20, "KiB": 2.0**-10}


class Claim(BaseModel):
    """A claim of ``config/claims.yaml``; what its fields mean stands at the top of that file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    claim: str
    source: str
    study: str
    needs: Literal["any", "real-data", "gpu", "jetson", "t4", "rtx-4090", "rtx-2060"]
    number: tuple[str, ...]
    operator: Literal["about", "rounds_to", "between", "at_most", "at_least", "above"]
    value: int | float | tuple[float, float]
    tolerance: float = 0.0
    unit: str
    why: str = ""

    @field_validator("number", mode="before")
    @classmethod
    def _one_or_more(cls, number: object) -> object:
        return (number,) if isinstance(number, str) else number

    @model_validator(mode="after")
    def _room_has_a_reason(self) -> Self:
        if self.operator in _WITH_ROOM and not self.why:
            raise ValueError("its tolerance needs a reason, `why`")
        if isinstance(self.value, tuple) != (self.operator == "between"):
            raise ValueError(f"the operator {self.operator} can't take the value {self.value}")
        return self

    @property
    def ends(self) -> tuple[float, float]:
        """What the rule allows, from and to."""
        if isinstance(self.value, tuple):
            return self.value
        if self.operator == "about":
            margin = abs(self.value) * self.tolerance
            return self.value - margin, self.value + margin
        return (-math.inf, self.value) if self.operator == "at_most" else (self.value, math.inf)

    def holds(self, measured: Measured) -> bool:
        """Say whether the rule is satisfied."""
        if self.operator == "rounds_to":
            return round(measured.value * _PRINTED_SCALE.get(self.unit, 1.0)) == self.value
        low, high = self.ends
        return (
            low <= measured.low
            and measured.high <= high
            and not (self.operator == "above" and measured.low == low)
        )

    @property
    def rule(self) -> str:
        """The rule as a reader would say it: ``1 µs ± 50 %``, ``≤ 1 %``."""
        if isinstance(self.value, tuple):
            return "\u2013".join(_printed(end, self.unit) for end in self.value)
        if self.operator == "rounds_to":
            unit = "percent" if self.unit == "fraction" else self.unit
            return f"rounds to {with_unit(str(self.value), unit)}"
        text = _printed(self.value, self.unit)
        if self.operator == "about":
            return f"{text} ± {_printed(self.tolerance, 'fraction')}"
        return f"{_SIGNS[self.operator]} {text}"

    def ids(self, machine: str) -> list[str]:
        """Return the ids of its numbers on one machine."""
        return [name.format(run=machine) for name in self.number]


class Judgement(NamedTuple):
    """The verdict on one claim on one machine: a row of ``claims.csv``."""

    claim_id: str
    claim: str
    source: str
    scope: str
    machine: str
    rule: str
    measured: str
    verdict: Verdict
    reason: str
    dataset: str
    study: str


class Measured(NamedTuple):
    """A value with its interval; without one, both ends are the value."""

    value: float
    low: float
    high: float
    dataset: str


def build_claims(numbers: str | Path, claims_yaml: str | Path, out: str | Path) -> Path:
    """Judge every claim on every machine and write ``claims.csv``.

    Parameters
    ----------
    numbers : path
        ``numbers.csv``.
    claims_yaml : path
        ``config/claims.yaml``.
    out : path
        The CSV to write: one row per claim and machine.
    """
    frame, claims = Frame.read(numbers), load_claims(claims_yaml)
    judgements = [judgement for claim in claims for judgement in judge(claim, frame)]
    with atomic_text(Path(out)) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(Judgement._fields)
        writer.writerows(judgements)
    return Path(out)


def read_claims(path: str | Path) -> list[Judgement]:
    """Read ``claims.csv``."""
    with open(path, newline="", encoding="utf-8") as stream:
        return [Judgement(**record) for record in csv.DictReader(stream)]


def load_claims(path: str | Path) -> list[Claim]:
    """Read the claims and check their form.

    Raises
    ------
    InputError
        A claim lacks a field, has an unknown one, or an unknown operator; or two have the same id.
    """
    import yaml

    claims = [
        _claim(record, path) for record in yaml.safe_load(Path(path).read_text(encoding="utf-8"))["claims"]
    ]
    names = [claim.id for claim in claims]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"Claims in {path} repeat an id: {repeated}.")
    return claims


def _claim(record: dict[str, object], path: str | Path) -> Claim:
    try:
        return Claim.model_validate(record)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'rule'}: {one['msg']}" for one in error.errors()
        )
        raise InputError(f"Claim {record.get('id', '(without id)')} in {path}: {faults}.") from None


def judge(claim: Claim, frame: Frame) -> Iterator[Judgement]:
    """Yield the verdict on one claim for every machine with results of its study."""
    for machine in frame.machines(claim.study):
        numbers = [frame.get(name) for name in claim.ids(machine)]
        measured = None if None in numbers else _with_ends(numbers)
        verdict, reason = _verdict(claim, machine, frame, measured)
        yield Judgement(
            claim.id,
            claim.claim,
            claim.source,
            machine,
            frame.fact(machine, "name") or machine,
            claim.rule,
            " and ".join(_shown(claim, number) for number in numbers) if measured else "\u2013",
            verdict,
            reason,
            measured.dataset if measured else "",
            claim.study,
        )


def _printed(value: float, unit: str) -> str:
    """Show a value of a rule as it was written: these are no measurements, so they have no digits to
    round."""
    return with_unit(f"{100 * value:g}", "percent") if unit == "fraction" else with_unit(f"{value:g}", unit)


def _shown(claim: Claim, number: Number) -> str:
    """Return a number's text, with what the verdict rests on where that can't be seen: its interval where the value
    alone would satisfy the rule, a digit more where it looks like the limit."""
    alone = Measured(number.value, number.value, number.value, number.dataset)
    if claim.holds(alone) and not claim.holds(_with_ends([number])):
        ends = interval_text(number.value, number.low, number.high, number.unit, 4)
        return f"{quantity_text(number.value, number.unit, 4)} [{ends}]"
    limit = claim.value
    if not isinstance(limit, tuple) and number.value != limit and number.text == _printed(limit, number.unit):
        return quantity_text(number.value, number.unit, 4)
    return number.text


def _with_ends(numbers: list[Number]) -> Measured:
    """Return what was measured; of several numbers the ends that hold them all, so that all must satisfy a rule."""
    low = min(number.low if math.isfinite(number.low) else number.value for number in numbers)
    high = max(number.high if math.isfinite(number.high) else number.value for number in numbers)
    return Measured(numbers[0].value, low, high, numbers[0].dataset)


def _verdict(claim: Claim, machine: str, frame: Frame, measured: Measured | None) -> tuple[Verdict, str]:
    if claim.needs in BOARDS:
        pattern, name = BOARDS[claim.needs]
        if not pattern.search(frame.fact(machine, "name")):
            return "not measurable here", f"needs {name}"
    if claim.needs == "gpu" and not frame.is_gpu(machine):
        return "not measurable here", "needs a GPU"
    if measured is None:
        absent = next(name for name in claim.ids(machine) if frame.get(name) is None)
        return "not measurable here", _why_absent(absent, frame)
    if claim.needs == "real-data" and measured.dataset.startswith("synthetic-"):
        return "not measurable here", "needs the real VisDrone boxes"
    return ("reproduced" if claim.holds(measured) else "not reproduced"), ""


def _why_absent(name: str, frame: Frame) -> str:
    """Return why there is no number: what the row of its method says, or of the method that it is compared with."""
    base, _, derived = name.rpartition(".")
    median, other = frame.find(base), None
    if median is not None:
        other = frame.find(median.key.but(method=derived.partition("_over_")[2]))
    texts = [frame.text(name), *(number.text for number in (median, other) if number is not None)]
    few = "too few blocks to compare" if median and other and median.known and other.known else ""
    unavailable = next((text for text in texts if text.startswith("unavailable")), few)
    return unavailable or "this run has no such number"
