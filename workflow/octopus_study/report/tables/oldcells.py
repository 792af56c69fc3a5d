"""What stands in a cell: a time with what must be known of it, a ratio with its verdict and noise floor."""

from __future__ import annotations

from octopus_study.report.captions import is_launch_bound
from octopus_study.report.numbers import Number, Numbers
from octopus_study.report.tables.oldwriters import MISSING
from octopus_study.report.text import reason, significant, with_unit

DIFFERENT = "\u2020"
LAUNCH_BOUND = "\u2021"
# A median that is known less well than this shows its interval.
WIDE = 0.05
DIFFERENT_NOTE = f"{DIFFERENT}: the answer differs from the reference"
LAUNCH_BOUND_NOTE = f"{LAUNCH_BOUND}: launch-bound, launches alone take at least half of the time"
WIDE_NOTE = "an interval of 95 % is shown where it is wider than ±5 %"
RATIO_NOTE = (
    f"Beside each ratio the verdict, and in brackets the noise floor ({MISSING}: too few blocks for one)"
)


class Reasons:
    """Collects why cells have no number, and letters them for a note below the table."""

    def __init__(self) -> None:
        self._letters: dict[str, str] = {}

    def letter(self, note: str) -> str:
        """Return the letter of the reason in an ``unavailable: why`` or ``different: why`` note."""
        return self._letters.setdefault(reason(note), chr(ord("a") + len(self._letters)))

    def cell(self, note: str) -> str:
        """Return a cell for an ``unavailable: why`` note."""
        return f"unavailable ({self.letter(note)})"

    @property
    def note(self) -> str:
        """The reasons as sentences of a caption; empty where every cell has a number."""
        return "".join(f" ({letter}) {why}." for why, letter in self._letters.items())


def text_cell(numbers: Numbers, key: str) -> str:
    """Return the text of a number, a dash where there is none."""
    number = numbers.get(key)
    return number.text if number else MISSING


def time_cell(numbers: Numbers, key: str, reasons: Reasons | None = None) -> str:
    """Return a time, with its interval where that is wide and a mark where launches take most of it."""
    text = numbers.text(key, MISSING)
    if text.startswith("unavailable"):
        return reasons.cell(text) if reasons else "unavailable"
    number = numbers.get(key)
    if number is not None and is_wide(number):
        text = with_interval(number)
    return f"{text} {LAUNCH_BOUND}" if is_launch_bound(numbers, key) else text


def with_interval(number: Number) -> str:
    """Return value and interval with the unit once, as ``19.8 [18.7 to 22.1] µs`` with a dash."""
    digits, _, unit = number.text.partition(" ")
    ends, _, other = number.interval.partition(" ")
    return f"{digits} [{ends}] {unit}" if ends and unit == other else f"{number.text} [{number.interval}]"


def is_wide(number: Number) -> bool:
    """Say whether the interval of a measured value reaches farther than `WIDE` to one side."""
    return max(number.high - number.value, number.value - number.low) > WIDE * number.value


def ratio_cell(numbers: Numbers, key: str) -> str:
    """Return a speed-up with its verdict and, in brackets, the noise floor; a published one stands alone."""
    number = numbers.get(key)
    if number is None:
        return MISSING
    verdict = numbers.text(key.replace(".speedup_over_", ".verdict_over_"))
    if not verdict:
        return number.text
    floor = numbers.get(noise_floor_key(key))
    digits = with_unit(significant(100 * floor.value, 2), "percent") if floor else MISSING
    return f"{number.text}, {verdict} ({digits})"


def versus_cell(numbers: Numbers, key: str, other: str, reasons: Reasons) -> str:
    """Return the speed-up of the method of `key` over another one, with the verdict where it isn't ``faster``; or a
    dash with the letter of the reason why the other has no time."""
    number = numbers.get(f"{key}.speedup_over_{other}")
    if number is not None:
        verdict = numbers.text(f"{key}.verdict_over_{other}")
        return number.text if verdict in ("faster", "") else f"{number.text}, {verdict}"
    parts = key.split(".")
    note = numbers.text(".".join([*parts[:4], other, *parts[5:]]))
    return f"{MISSING} ({reasons.letter(note)})" if note.startswith("unavailable") else MISSING


def floor_cell(numbers: Numbers, key: str) -> str:
    """Return the noise floor of a comparison, a dash where there is none."""
    floor = numbers.get(f"{key}.noise_floor")
    return with_unit(significant(100 * floor.value, 2), "percent") if floor else MISSING


def noise_floor_key(key: str) -> str:
    """Return the id of the noise floor that a ratio is judged by: that of Octopus in the same blocks."""
    scope, study, workload, count, _, quantity, layer = key.split(".")[:7]
    return f"{scope}.{study}.{workload}.{count}.octopus.{quantity}.{layer}.noise_floor"
