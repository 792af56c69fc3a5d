"""The verdict on a claim on every machine that has results of its study.

A verdict follows from the rule, the numbers of the machine and their intervals alone.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from octopus.errors import InputError
from octopus_study.names import SUBJECT, stand_in
from octopus_study.report.claims.judgement import Judgement
from octopus_study.report.claims.outcome import NOT_HERE, Outcome, Verdict, decide
from octopus_study.report.claims.rules import BOARDS, COMPUTED, Claim, Limits, Rule
from octopus_study.report.frame import Frame, Key, Number
from octopus_study.report.text import interval_text, quantity_text, range_text
from octopus_study.units import require_same_kind, significant, size_of

# More numbers than these are shown as their range.
_MOST_SHOWN = 3
_NOTHING, _PRINTED = "\u2013", "as printed"


class NotHereError(Exception):
    """A claim can't be measured on a machine; the text says why."""


class _Case(NamedTuple):
    """A number, what it must satisfy, and how it did."""

    number: Number
    limits: Limits
    outcome: Outcome


def judge(claim: Claim, frame: Frame) -> Iterator[Judgement]:
    """Yield the verdict on one claim for every machine with results of its study."""
    for machine in frame.machines(claim.study):
        try:
            _require_place(claim, machine, frame)
            cases = list(_cases(claim, machine, frame))
            lacking = next((name for name in claim.ids(machine) if not frame.get(name)), "")
            if not cases:
                raise NotHereError(_why_absent(lacking, frame))
            beside = _condition(claim, machine, frame)
            outcome = _together([case.outcome for case in cases])
            if lacking and outcome.verdict != "not reproduced":
                raise NotHereError(_why_absent(lacking, frame))
            outcome = outcome._replace(reason="; ".join(filter(None, (outcome.reason, beside))))
        except NotHereError as why:
            cases, outcome = [], Outcome(NOT_HERE, str(why))
        yield _judgement(claim, machine, frame, cases, outcome)


def _judgement(claim: Claim, machine: str, frame: Frame, cases: list[_Case], outcome: Outcome) -> Judgement:
    parts = claim.parts() if claim.number else ()
    limits = [case.limits for case in cases] or [_limits(claim, claim, part, frame) for part in parts]
    target = _once([one.target for one in limits])
    return Judgement(
        claim.id,
        claim.claim,
        claim.source,
        claim.kind,
        machine,
        frame.fact(machine, "name") or machine,
        claim.text_of(target, claim.unit or "ratio") if limits else _NOTHING,
        target,
        _shown(cases, outcome) if cases else _NOTHING,
        *outcome,
        cases[0].number.dataset if cases else "",
        claim.study,
        claim.dated[:10],
    )


def _once(texts: list[str]) -> str:
    """Return what several numbers have in common, else where to look."""
    unlike = list(dict.fromkeys(texts)) or [_NOTHING]
    return " and ".join(unlike) if len(unlike) <= _MOST_SHOWN else _PRINTED


def _require_place(claim: Claim, machine: str, frame: Frame) -> None:
    """Refuse a machine on which a claim can't be measured."""
    if claim.unmeasured:
        raise NotHereError(claim.unmeasured)
    if claim.needs in BOARDS:
        pattern, name = BOARDS[claim.needs]
        if not pattern.search(frame.fact(machine, "name")):
            raise NotHereError(f"needs {name}")
    if claim.needs == "gpu" and not frame.is_gpu(machine):
        raise NotHereError("needs a GPU")
    if claim.needs == "cpu" and frame.is_gpu(machine):
        raise NotHereError("needs a run without a GPU")


def _condition(claim: Claim, machine: str, frame: Frame) -> str:
    """Return what stands beside a verdict where that which a claim presumes is not so, or not known; refuse the machine
    where the claim means nothing without it."""
    condition = claim.precondition
    if condition is None:
        return ""
    limits = _limits(condition, claim, "", frame)
    for name in condition.ids(machine):
        number = frame.get(name)
        if number is None:
            why = f"precondition not measured: {condition.text} ({_why_absent(name, frame)})"
        else:
            verdict = decide(number, limits, exact=not math.isfinite(number.low), windows=True).verdict
            if verdict == "reproduced":
                continue
            how = "not met" if verdict == "not reproduced" else "not certain"
            why = f"precondition {how}: {condition.text} ({number.text}, not {limits.text})"
        if condition.beside:
            return why
        raise NotHereError(why)
    return ""


def _cases(claim: Claim, machine: str, frame: Frame) -> Iterator[_Case]:
    """Yield the numbers that decide and are there, each with its limits and its outcome."""
    for part, names in claim.parts().items():
        limits = _limits(claim, claim, part, frame)
        for name in names:
            number = frame.get(name.replace("{run}", machine))
            if number is None:
                continue
            if claim.needs == "real-data" and stand_in(number.dataset):
                raise NotHereError("needs the real VisDrone boxes")
            yield _Case(number, limits, _outcome(claim, number, limits, part, machine, frame))


def _limits(rule: Rule, claim: Claim, part: str, frame: Frame) -> Limits:
    """Return what a rule allows."""
    try:
        return rule.limits(part, frame.__getitem__)
    except (InputError, ZeroDivisionError) as error:
        raise InputError(f"Claim {claim.id}: {error}") from None


def _outcome(claim: Claim, number: Number, limits: Limits, part: str, machine: str, frame: Frame) -> Outcome:
    require_same_kind(claim.unit or number.unit, number.unit, f"Claim {claim.id}")
    noise = claim.noise.replace("{run}", machine).replace("{each}", claim.each.get(part, ""))
    found = decide(
        number,
        limits,
        floor=_as_floor(frame.get(noise)) if noise else _floor(number, frame),
        exact=bool(claim.exact) or claim.kind in COMPUTED,
        windows=claim.windows,
    )
    # Runs differ by more than the blocks of one process tell.
    alone = number.of_one_process
    return found._replace(reason="of one process") if alone and not found.reason else found


def _floor(number: Number, frame: Frame) -> float:
    """Return the noise floor beside a speed-up or a share of a bound; 0 where a number compares nothing, or nothing was
    measured twice."""
    if number.derived not in ("speedup", "share", "over"):
        return 0.0
    methods = (SUBJECT, number.other, number.method)
    keys = (number.key.but(method=name, derived="noise_floor", other="") for name in methods)
    return next((found.value for key in keys if (found := frame.find(key))), 0.0)


def _as_floor(number: Number | None) -> float:
    """Return a noise floor as a fraction; of a method against itself the end that lies farther from 1."""
    if number is None:
        return math.nan
    if number.unit == "fraction":
        return number.value
    return math.expm1(max(abs(math.log(number.low)), abs(math.log(number.high))))


def _together(outcomes: list[Outcome]) -> Outcome:
    """All numbers must satisfy a rule: one that doesn't decides, then one that is ambiguous."""
    order: tuple[Verdict, ...] = ("not reproduced", "ambiguous", "reproduced")
    return min(outcomes, key=lambda outcome: order.index(outcome.verdict))


def _shown(cases: list[_Case], outcome: Outcome) -> str:
    """Return what was measured, with its interval where the verdict rests on that or it is wide."""
    if len(cases) <= _MOST_SHOWN:
        texts = [_one(case, outcome.verdict == "ambiguous") for case in cases]
        alike = len(texts) > 1 and len(set(texts)) == 1
        return f"{texts[0]} ({len(texts)} numbers)" if alike else ", ".join(texts)
    values = [case.number.value for case in cases]
    return f"{range_text(min(values), max(values), cases[0].number.unit)} ({len(cases)} numbers)"


def _one(case: _Case, whole: bool) -> str:
    number = case.number
    if whole and math.isfinite(number.low) and (not number.wide or _looks_like(case.limits, number)):
        ends = interval_text(number.value, number.low, number.high, number.unit, 4)
        return f"{quantity_text(number.value, number.unit, 4)} [{ends}]"
    if number.wide:
        return f"{number.precise} [{number.interval}]"
    # A digit more where a number that doesn't satisfy the rule looks like its limit.
    alike = number.text == case.limits.target and case.outcome.verdict == "not reproduced"
    return quantity_text(number.value, number.unit, 4) if alike else number.text


def _looks_like(limits: Limits, number: Number) -> bool:
    """Say whether an end of an interval looks like a limit at the usual digits."""
    ends = {significant(end) for end in (number.low, number.high)}
    unit = size_of(number.unit)
    return any(math.isfinite(limit) and significant(limit / unit) in ends for limit in (limits.low, limits.high))


def _why_absent(name: str, frame: Frame) -> str:
    """Return why there is no number."""
    said = _unavailable(name, frame) or _elsewhere(name, frame) or _of_study(name, frame)
    return said or f"not in the rows{_day(name, frame)}"


def _unavailable(name: str, frame: Frame) -> str:
    """Return what the row of a number's method says, or of the method that it is compared with; else nothing."""
    base, _, derived = name.rpartition(".")
    median, other = frame.find(base), None
    if median is not None:
        other = frame.find(median.key.but(method=derived.partition("_over_")[2]))
    few = "too few blocks to compare" if median and other and median.known and other.known else ""
    reasons = (number.reason for number in (frame.find(name), median, other) if number and number.absent)
    return next(reasons, few)


def _of_study(name: str, frame: Frame) -> str:
    """Return why the method that a number's id names has no median, or why a study has none at all."""
    machine, study, *parts = name.split(".")
    medians = frame.select(machine, study)
    known = {number.method for number in medians if number.known}
    absent = {one.method: one.reason for one in medians if one.absent and one.method not in known}
    return next((why for method, why in absent.items() if method in parts or not known), "")


def _elsewhere(name: str, frame: Frame) -> str:
    """Say that machines of the other kind alone have a number; nothing where that isn't so."""
    machine, _, rest = name.partition(".")
    on_gpus = {frame.is_gpu(other) for other in frame.machines() if frame.get(f"{other}.{rest}")}
    return (
        f"measured on {'GPUs' if True in on_gpus else 'CPUs'} alone" if on_gpus == {not frame.is_gpu(machine)} else ""
    )


def _day(name: str, frame: Frame) -> str:
    """Return when the rows of a number's study were measured, where that is known."""
    machine, study, *_ = name.split(".")
    started = frame.text(Key(machine, study, quantity="started"))
    return f" of {started[:10]}" if started else ""
