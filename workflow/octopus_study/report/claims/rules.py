"""Claims of ``config/claims.yaml`` and what their rules allow; what the fields mean stands at the top of that file."""

import csv
import hashlib
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator, model_validator

from octopus.errors import InputError
from octopus_study.report.claims.formula import evaluate, ids_of
from octopus_study.report.frame import PUBLISHED, Number
from octopus_study.report.text import quantity_text
from octopus_study.units import size_of, with_unit

# Published machines: what a machine's name must match for one of them, and how it is called.
BOARDS = {
    "jetson": (re.compile(r"orin", re.I), "a Jetson Orin Nano"),
    "t4": (re.compile(r"\bT4\b"), "a T4"),
    "rtx-4090": (re.compile(r"\b4090\b"), "an RTX 4090"),
    "rtx-2060": (re.compile(r"\b2060\b"), "an RTX 2060"),
}
Kind = Literal["fact", "arithmetic", "direction", "magnitude", "goal"]
# No measurement could refute the first two kinds: their numbers are computed, so they have no interval.
COMPUTED: tuple[Kind, ...] = ("fact", "arithmetic")
# What separates more from less: a direction needs no other limit, and gives no reason for it.
_NEUTRAL = (0, 1)
# Beside the claims: when each rule got the form that it has, and the digest of that form.
DATES = "rules.tsv"
# What a claim says of itself, and why; all else decides.
_WORDS = ("claim", "source", "study", "why", "unmeasured", "dated")
# The source of what this paper itself says.
OWN = "this paper"
_SIGNS = {"at_most": "≤", "at_least": "≥", "above": ">", "below": "<"}
_DIGITS = re.compile(r"\d+(?:\.(\d+))?")
_PLAIN = re.compile(r"[\d.]+(\u2013[\d.]+)?\s?\S*")
Lookup = Callable[[str], Number]


class Limits(NamedTuple):
    """What a rule allows, in the units that are computed with."""

    low: float  # ends, infinite where there is none
    high: float
    strict: bool  # whether the ends themselves are excluded
    target: str  # what was published or set, as a reader sees it
    text: str  # the rule as a reader would say it: ``1 µs ± 50 %``, ``≤ 1 %``


class Rule(BaseModel):
    """Which numbers must lie where."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    number: tuple[str, ...] = ()
    each: dict[str, str] = {}
    operator: Literal["about", "between", "rounds_to", "at_most", "at_least", "above", "below"] = "about"
    value: int | float | tuple[float, float] | None = None
    published: str = ""
    tolerance: float = 0.0
    room: float = 0.0
    unit: str = ""
    why: str = ""

    @field_validator("number", mode="before")
    @classmethod
    def _one_or_more(cls, number: object) -> object:
        return (number,) if isinstance(number, str) else number

    @field_validator("each", mode="before")
    @classmethod
    def _as_mapping(cls, each: object) -> object:
        return {part: part for part in each} if isinstance(each, list) else each

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.number:
            self._require_target()
            self._require_reason()
        return self

    def _require_target(self) -> None:
        if (self.value is None) == (not self.published):
            raise ValueError("give either value or published")
        if isinstance(self.value, tuple) != (self.operator == "between"):
            raise ValueError(f"the operator {self.operator} can't take the value {self.value}")
        if self.operator == "about" and not (self.tolerance or self.room):
            raise ValueError("the operator about needs a tolerance, a part of the value, or room in its unit")
        ids = ids_of(self.published) if self.published else []
        wrong = [name for name in ids if not name.startswith(f"{PUBLISHED}.")]
        if wrong:
            raise ValueError(f"published values start with {PUBLISHED!r}: {wrong}")

    def _require_reason(self) -> None:
        stated = bool(self.published) and not (self.tolerance or self.room)
        if not (self.why or stated or self.neutral):
            raise ValueError("a limit that the source doesn't state needs a reason, `why`")

    @property
    def neutral(self) -> bool:
        """Whether the limit only separates more from less."""
        return self.value in _NEUTRAL and self.operator in _SIGNS

    def parts(self) -> dict[str, tuple[str, ...]]:
        """Return the patterns of its numbers by the part of the published ids that they belong to."""
        if not self.each:
            return {"": self.number}
        return {key: tuple(name.replace("{each}", part) for name in self.number) for key, part in self.each.items()}

    def ids(self, machine: str) -> list[str]:
        """Return the ids of its numbers on one machine."""
        return [name.replace("{run}", machine) for names in self.parts().values() for name in names]

    def limits(self, part: str, number_of: Lookup) -> Limits:
        """Return what it allows for a key of :meth:`parts`; `number_of` gives the number of an id."""
        low, high, unit, text = self._target(part, number_of)
        size, half = size_of(unit), 0.0
        if self.operator == "rounds_to":
            half = 0.5 * 10.0 ** -_decimals(text)
        low, high = low - self._room(low) - half, high + self._room(high) + half
        ends = {"at_most": (-math.inf, high), "below": (-math.inf, high)}
        ends |= {"at_least": (low, math.inf), "above": (low, math.inf)}
        low, high = ends.get(self.operator, (low, high))
        strict = self.operator in ("above", "below")
        return Limits(low * size, high * size, strict, text, self.text_of(text, unit))

    def _room(self, end: float) -> float:
        return abs(end) * self.tolerance + self.room

    def _target(self, part: str, number_of: Lookup) -> tuple[float, float, str, str]:
        """Return the ends of what was published or set, their unit, and how they read."""
        if isinstance(self.value, tuple):
            unit = self.unit or "ratio"
            return *self.value, unit, "\u2013".join(_printed(end, unit) for end in self.value)
        if self.value is not None:
            unit = self.unit or "ratio"
            return self.value, self.value, unit, _printed(self.value, unit)
        formula = self.published.replace("{each}", part)
        if " " not in formula:
            return _stated(number_of(formula), self.unit)
        unit = self.unit or "ratio"
        value = evaluate(formula, lambda name: number_of(name).value * size_of(number_of(name).unit)) / size_of(unit)
        return value, value, unit, quantity_text(value, unit)

    def text_of(self, target: str, unit: str) -> str:
        """Return the rule as a reader would say it, of one target or of several that are printed elsewhere."""
        if self.operator == "rounds_to":
            return f"rounds to {target}"
        sign = _SIGNS.get(self.operator)
        text = self._with_room(target, unit)
        return f"{sign} {text}" if sign else text

    def _with_room(self, target: str, unit: str) -> str:
        room = [_printed(self.tolerance, "fraction")] if self.tolerance else []
        if self.room:
            points = unit in ("fraction", "percent")
            room.append(f"{100 * self.room * size_of(unit):g} points" if points else _printed(self.room, unit))
        return " ± ".join([target, *room])


class Precondition(Rule):
    """What must be so on a machine before a claim means anything there; `text` says it. With `beside` the verdict is
    given all the same, and a second sentence says that it isn't so."""

    text: str
    beside: bool = False


class Claim(Rule):
    """A claim with its rule, or with the reason why nothing here can measure it."""

    id: str
    claim: str
    source: str
    study: str
    kind: Kind
    needs: Literal["any", "real-data", "gpu", "cpu", "jetson", "t4", "rtx-4090", "rtx-2060"]
    unmeasured: str = ""
    exact: str = ""
    windows: bool = False
    noise: str = ""
    precondition: Precondition | None = None
    dated: str = ""

    @property
    def digest(self) -> str:
        """Digest of what decides: another one makes another rule, with another date."""
        hidden = {name: True for name in _WORDS} | {"precondition": {"text": True, "why": True}}
        decides = self.model_dump(mode="json", exclude=hidden, exclude_defaults=True) | {"exact": bool(self.exact)}
        return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:12]

    @model_validator(mode="after")
    def _can_be_judged(self) -> Self:
        if bool(self.number) == bool(self.unmeasured):
            raise ValueError("name a number that decides, or say why nothing measures it (`unmeasured`)")
        return self


def load_claims(path: str | Path) -> list[Claim]:
    """Read the claims; `InputError` where one lacks a field, has one that isn't known, or the id of another. A claim is
    `dated` where the file beside it has its rule as it is."""
    records, dates = claim_records(Path(path).read_text(encoding="utf-8")), rule_dates(Path(path).with_name(DATES))
    claims = [_claim(record, path) for record in records]
    claims = [claim.model_copy(update={"dated": dates.get((claim.id, claim.digest), "")}) for claim in claims]
    names = [claim.id for claim in claims]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"Claims in {path} repeat an id: {repeated}.")
    return claims


def rule_dates(path: Path) -> dict[tuple[str, str], str]:
    """Return the dates of rules, to the minute, by the id of the claim and the digest of its rule."""
    if not path.is_file():
        return {}
    with open(path, newline="", encoding="utf-8") as stream:
        return {(row["claim"], row["digest"]): row["dated"] for row in csv.DictReader(stream, delimiter="\t")}


def claim_records(text: str) -> list[dict[str, Any]]:
    """Return the claims of a file's text as they are written, without a look at them; a null takes a merged field
    away."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    records = yaml.load(text, Loader=loader)["claims"]
    return [{name: value for name, value in record.items() if value is not None} for record in records]


def _claim(record: dict[str, Any], path: str | Path) -> Claim:
    try:
        return Claim.model_validate(record)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, one['loc'])) or 'rule'}: {one['msg']}" for one in error.errors())
        raise InputError(f"Claim {record.get('id', '(without id)')} in {path}: {faults}.") from None


def _stated(number: Number, unit: str) -> tuple[float, float, str, str]:
    """Return the ends of one published number; a one-sided limit is both."""
    ends = [end for end in (number.low, number.high) if math.isfinite(end)] or [number.value]
    if math.isfinite(number.value):
        ends = [number.value]
    factor = size_of(number.unit) / size_of(unit or number.unit)
    ends = [end * factor for end in ends]
    text = number.text.lstrip("≤≥≈ ")
    if not _PLAIN.fullmatch(text):  # printed in words
        text = _printed(ends[0], unit or number.unit)
    return ends[0], ends[-1], unit or number.unit, text


def _decimals(text: str) -> int:
    """Return how many decimals a number was printed with."""
    digits = _DIGITS.search(text)
    return len(digits.group(1) or "") if digits else 0


def _printed(value: float, unit: str) -> str:
    """Show a value of a rule as it was written: it is no measurement, so it has no digits to round."""
    return with_unit(f"{100 * value:g}", "percent") if unit == "fraction" else with_unit(f"{value:g}", unit)
