"""Published claims as rules over numbers, and the verdict that follows: nobody decides one by hand.

A claim of ``config/claims.yaml`` is checked on every machine that has results. Its number may be an id with
``{run}`` for the scope, or several of them, which must all satisfy the rule. The whole 95 % interval must
satisfy it: a claim that only holds at the lucky end of the interval is not reproduced.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from octopus.errors import InputError
from octopus_study.measure._files import atomic_text
from octopus_study.report.numbers import Number, Numbers
from octopus_study.report.text import interval_text, quantity_text, with_unit

Verdict = Literal["reproduced", "not reproduced", "not measurable here"]
# Published machines: what a machine's name must match for one of them, and how it is called.
BOARDS = {
    "jetson": (re.compile(r"orin", re.I), "a Jetson Orin Nano"),
    "t4": (re.compile(r"\bT4\b"), "a T4"),
    "rtx-4090": (re.compile(r"\b4090\b"), "an RTX 4090"),
    "rtx-2060": (re.compile(r"\b2060\b"), "an RTX 2060"),
}
NEEDS = ("any", "real-data", "gpu", *BOARDS)
_FIELDS = {
    "id",
    "claim",
    "source",
    "study",
    "needs",
    "number",
    "operator",
    "value",
    "tolerance",
    "unit",
    "why",
}
_REQUIRED = _FIELDS - {"tolerance", "why"}
# Rules that leave room, whose size needs a reason.
_WITH_ROOM = ("about", "between")


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
    table, claims = Numbers.read(numbers), load_claims(claims_yaml)
    judgements = [judgement for claim in claims for judgement in judge(claim, table)]
    with atomic_text(Path(out)) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(Judgement._fields)
        writer.writerows(judgements)
    return Path(out)


def read_claims(path: str | Path) -> list[Judgement]:
    """Read ``claims.csv``."""
    with open(path, newline="", encoding="utf-8") as stream:
        return [Judgement(**record) for record in csv.DictReader(stream)]


def load_claims(path: str | Path) -> list[dict[str, Any]]:
    """Read the claims and check their form.

    Raises
    ------
    InputError
        A claim lacks a field, has an unknown one, or an unknown operator; or two have the same id.
    """
    import yaml

    claims = yaml.safe_load(Path(path).read_text(encoding="utf-8"))["claims"]
    for claim in claims:
        name, fields = claim.get("id", "(without id)"), set(claim)
        if not fields >= _REQUIRED or not fields <= _FIELDS:
            raise InputError(
                f"Claim {name} in {path}: missing {sorted(_REQUIRED - fields)}, "
                f"unknown {sorted(fields - _FIELDS)}."
            )
        if claim["operator"] not in OPERATORS or claim["needs"] not in NEEDS:
            raise InputError(
                f"Claim {name} in {path}: operator {claim['operator']!r} must be one of {sorted(OPERATORS)}, "
                f"needs {claim['needs']!r} one of {NEEDS}."
            )
        if claim["operator"] in _WITH_ROOM and not claim.get("why"):
            raise InputError(f"Claim {name} in {path}: its tolerance needs a reason, `why`.")
    names = [claim["id"] for claim in claims]
    if len(set(names)) != len(names):
        raise InputError(
            f"Claims in {path} repeat an id: {sorted({n for n in names if names.count(n) > 1})}."
        )
    return claims


def judge(claim: dict[str, Any], numbers: Numbers) -> Iterator[Judgement]:
    """Yield the verdict on one claim for every machine with results of its study."""
    for scope in numbers.scopes(claim["study"]):
        measured = _measure(claim, scope, numbers)
        text = _measured_text(claim, scope, numbers, measured)
        verdict, reason = _verdict(claim, scope, numbers, measured)
        machine = numbers.text(f"{scope}.machine.name", scope)
        dataset = measured.dataset if measured else ""
        rule = rule_text(claim)
        yield Judgement(
            claim["id"],
            claim["claim"],
            claim["source"],
            scope,
            machine,
            rule,
            text,
            verdict,
            reason,
            dataset,
            claim["study"],
        )


def rule_text(claim: dict[str, Any]) -> str:
    """Say the rule as a reader would: ``1 µs ± 50 %``, ``≤ 1 %``."""
    unit = claim["unit"]
    if claim["operator"] == "between":
        return "\u2013".join(_printed(end, unit) for end in claim["value"])
    if claim["operator"] == "rounds_to":
        return f"rounds to {with_unit(str(claim['value']), 'percent' if unit == 'fraction' else unit)}"
    text = _printed(claim["value"], unit)
    if claim["operator"] == "about":
        return f"{text} ± {_printed(claim['tolerance'], 'fraction')}"
    return f"{ {'at_most': '≤', 'at_least': '≥', 'above': '>'}[claim['operator']] } {text}"


def _printed(value: float, unit: str) -> str:
    """Show a value of a rule as it was written: these are no measurements, so they have no digits to
    round."""
    return with_unit(f"{100 * value:g}", "percent") if unit == "fraction" else with_unit(f"{value:g}", unit)


def _measured_text(claim: dict[str, Any], scope: str, numbers: Numbers, measured: Measured | None) -> str:
    if measured is None:
        return "\u2013"
    return " and ".join(_shown(claim, numbers, identifier) for identifier in _ids(claim, scope))


def _shown(claim: dict[str, Any], numbers: Numbers, identifier: str) -> str:
    """Return a number's text, with what the verdict rests on where that can't be seen: its interval where the value
    alone would satisfy the rule, a digit more where it looks like the limit."""
    number, limit = numbers[identifier], claim["value"]
    holds = OPERATORS[claim["operator"]]
    alone = Measured(number.value, number.value, number.value, number.dataset)
    if holds(alone, claim) and not holds(_with_ends([number]), claim):
        ends = interval_text(number.value, number.low, number.high, number.unit, 4)
        return f"{quantity_text(number.value, number.unit, 4)} [{ends}]"
    if not isinstance(limit, list) and number.value != limit and number.text == _printed(limit, number.unit):
        return quantity_text(number.value, number.unit, 4)
    return number.text


def _ids(claim: dict[str, Any], scope: str) -> list[str]:
    """Return the ids of a claim's numbers on one machine."""
    names = claim["number"] if isinstance(claim["number"], list) else [claim["number"]]
    return [name.format(run=scope) for name in names]


def _about(measured: Measured, claim: dict[str, Any]) -> bool:
    margin = abs(claim["value"]) * claim["tolerance"]
    return claim["value"] - margin <= measured.low and measured.high <= claim["value"] + margin


def _rounds_to(measured: Measured, claim: dict[str, Any]) -> bool:
    scale = {"fraction": 100.0, "MiB": 2.0**-20, "KiB": 2.0**-10}.get(claim["unit"], 1.0)
    return round(measured.value * scale) == claim["value"]


OPERATORS = {
    "about": _about,
    "rounds_to": _rounds_to,
    "between": lambda m, claim: claim["value"][0] <= m.low and m.high <= claim["value"][1],
    "at_most": lambda m, claim: m.high <= claim["value"],
    "at_least": lambda m, claim: m.low >= claim["value"],
    "above": lambda m, claim: m.low > claim["value"],
}


def _measure(claim: dict[str, Any], scope: str, numbers: Numbers) -> Measured | None:
    """Return what was measured; of several numbers the ends that hold them all, so that all must satisfy a
    rule."""
    known = [numbers.get(identifier) for identifier in _ids(claim, scope)]
    found = [number for number in known if number is not None]
    if len(found) < len(known):
        return None
    return _with_ends(found)


def _with_ends(found: list[Number]) -> Measured:
    low = min(number.low if math.isfinite(number.low) else number.value for number in found)
    high = max(number.high if math.isfinite(number.high) else number.value for number in found)
    return Measured(found[0].value, low, high, found[0].dataset)


def _verdict(
    claim: dict[str, Any], scope: str, numbers: Numbers, measured: Measured | None
) -> tuple[Verdict, str]:
    is_gpu = numbers.text(f"{scope}.machine.kind") == "gpu"
    if claim["needs"] in BOARDS:
        pattern, name = BOARDS[claim["needs"]]
        if not pattern.search(numbers.text(f"{scope}.machine.name")):
            return "not measurable here", f"needs {name}"
    if claim["needs"] == "gpu" and not is_gpu:
        return "not measurable here", "needs a GPU"
    if measured is None:
        absent = next((key for key in _ids(claim, scope) if numbers.get(key) is None), "")
        return "not measurable here", _why_absent(absent, numbers)
    if claim["needs"] == "real-data" and measured.dataset.startswith("synthetic-"):
        return "not measurable here", "needs the real VisDrone boxes"
    return ("reproduced" if OPERATORS[claim["operator"]](measured, claim) else "not reproduced"), ""


def _why_absent(key: str, numbers: Numbers) -> str:
    """Return why there is no number: what the row of its method says, or of the method that it is compared with."""
    base, _, derived = key.rpartition(".")
    over = re.fullmatch(r"(?:speedup|verdict)_over_(.+)", derived)
    parts = base.split(".")
    other = ".".join([*parts[:4], over[1], *parts[5:]]) if over and len(parts) > 5 else ""
    texts = [numbers.text(candidate) for candidate in (key, base, other) if candidate]
    return next((text for text in texts if text.startswith("unavailable")), "this run has no such number")
