"""What stands in a cell: a time with what must be known of it, a ratio with its verdict.

A cell is a function of one machine's view and the key of a row's case. Those that are made here look at that key with
other columns, such as another method's, and give a dash where there is nothing.
"""

from collections.abc import Callable
from typing import Any

from octopus_study.report.frame import WIDE, Frame, Key, Number
from octopus_study.report.tables.writers import MISSING
from octopus_study.report.view import KERNEL, Reasons, View
from octopus_study.units import significant, with_unit

Cell = Callable[[View, Key], str]
DIFFERENT = "\u2020"
DIFFERENT_NOTE = f"{DIFFERENT}: the answer differs from the reference"
LOOSE = 1.25  # a speed-up is shown with an interval that reaches farther than this factor
LOOSE_NOTE = f"with an interval of 95 % where it reaches farther than a factor of {LOOSE:g}"
WIDE_NOTE = f"an interval of 95 % is shown where it is wider than ±{100 * WIDE:g} %"


def text(**columns: Any) -> Cell:
    """Say the number's text alone."""
    return lambda view, key: number_text(view.frame, at(view, key, columns))


def interval(**columns: Any) -> Cell:
    """Say a number with its interval, or why there is none."""

    def cell(view: View, key: Key) -> str:
        number = view.frame.find(at(view, key, columns))
        if number is None:
            return MISSING
        if not number.known:
            return f"{MISSING} ({view.reasons.letter(number.reason)})"
        return with_interval(number) if number.interval else number.text

    return cell


def fact(**columns: Any) -> Cell:
    """Say the text of a number or a fact, or why there is none."""

    def cell(view: View, key: Key) -> str:
        place = at(view, key, columns)
        reason = view.reason(place)
        return view.reasons.cell(reason) if reason else view.text(place, MISSING)

    return cell


def time(**columns: Any) -> Cell:
    """Say a time with its interval where that is wide, or why there is none."""
    return lambda view, key: time_text(view.frame, at(view, key, columns), view.reasons)


def versus(other: str, **columns: Any) -> Cell:
    """Say the speed-up over another method, with the verdict where it isn't ``faster`` and a mark where an answer of
    the two differs; or why the other has no time."""

    def cell(view: View, key: Key) -> str:
        own = at(view, key, columns)
        shown = versus_text(view.frame, own, other, view.reasons)
        medians = (own, own.but(method=other)) if view.get(own.speedup(other)) else (own.but(method=other),)
        return shown + "".join(dict.fromkeys(different_mark(view.get(median), view.reasons) for median in medians))

    return cell


def speedup(other: str, **columns: Any) -> Cell:
    """Say the speed-up over another method, with the verdict where it isn't ``faster``, and nothing where there is
    none."""
    return lambda view, key: speedup_text(view.frame, at(view, key, columns), other)


def speedup_alone(other: str, **columns: Any) -> Cell:
    """Say the speed-up over another method and no verdict."""
    return lambda view, key: number_text(view.frame, at(view, key, columns).speedup(other))


def floor(**columns: Any) -> Cell:
    """Say the noise floor of a comparison."""
    return lambda view, key: floor_text(view.frame, at(view, key, columns))


def at(view: View, key: Key, columns: dict[str, Any]) -> Key:
    """Return a key with other columns; the layer ``kernel`` is that on which the machine times its kernels."""
    changed = key.but(**columns)
    return changed.but(layer=view.kernel_layer) if changed.layer == KERNEL else changed


def number_text(frame: Frame, key: Key) -> str:
    """Return the text of a number, a dash where there is none."""
    number = frame.get(key)
    return number.text if number else MISSING


def time_text(frame: Frame, key: Key, reasons: Reasons | None = None) -> str:
    """Return a time, with its interval where that is wide; or why there is none."""
    shown = frame.text(key, MISSING)
    if reason := frame.reason(key):
        return reasons.cell(reason) if reasons else "unavailable"
    number = frame.get(key)
    if number is not None and number.wide:
        shown = with_interval(number)
    return shown


def versus_text(frame: Frame, key: Key, other: str, reasons: Reasons) -> str:
    """Return a speed-up; or a dash with the letter of the reason why the other method has no time."""
    if frame.get(key.speedup(other)):
        return speedup_text(frame, key, other)
    reason = frame.reason(key.but(method=other))
    return f"{MISSING} ({reasons.letter(reason)})" if reason else MISSING


def speedup_text(frame: Frame, key: Key, other: str, loose: bool = False) -> str:
    """Return a speed-up, with the verdict where it isn't ``faster``; a verdict of ``ambiguous`` for want of a noise
    floor is left out. With `loose` an interval that reaches farther stands beside it."""
    number = frame.get(key.speedup(other))
    if number is None:
        return MISSING
    verdict = frame.text(key.derive("verdict", other))
    far = max(number.high / number.value, number.value / number.low) > LOOSE  # False without an interval
    shown = with_interval(number) if loose and far else number.text
    return shown if verdict in ("faster", "") else f"{shown}, {verdict}"


def floor_text(frame: Frame, key: Key) -> str:
    """Return the noise floor of a comparison, a dash where there is none."""
    number = frame.get(key.derive("noise_floor"))
    return with_unit(significant(100 * number.value, 2), "percent") if number else MISSING


def different_mark(number: Number | None, reasons: Reasons) -> str:
    """Return the mark of an answer that differs from the reference, with the letter of the reason; else nothing."""
    if number is None or not number.differs:
        return ""
    return f" {DIFFERENT} ({reasons.letter(number.reason)})"


def with_interval(number: Number) -> str:
    """Return value and interval with the unit once, as ``19.8 [18.7 to 22.1] µs`` with a dash."""
    digits, _, unit = number.precise.partition(" ")
    ends, _, other = number.interval.partition(" ")
    return f"{digits} [{ends}] {unit}".rstrip() if ends and unit == other else f"{number.precise} [{number.interval}]"
