"""Numbers computed again the short way: NumPy on the texts of the rows that their selectors take.

None of the code that derives the numbers is used, but for what a selector means.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from octopus_study import units
from octopus_study.measure.dependence import PROCESS_BLOCKS
from octopus_study.report.frame import PUBLISHED, Number
from octopus_study.report.measured import subject_of
from octopus_study.report.rows import AND, read
from octopus_study.report.selector import parse
from octopus_study.report.studies import report_of
from octopus_study.verify.scene import Outcome, Scene

_CLOSE = 1e-9
# Unit of a text -> its kind, and its size. Here a ratio, a share and a count of the same value are no equals.
UNITS = units.UNITS | {
    "ratio": ("ratio", 1.0), units.TIMES: ("ratio", 1.0), "count": ("count", 1.0),
    "fraction": ("share", 1.0), "percent": ("share", 0.01), "%": ("share", 0.01),
}  # fmt: skip


def texts(scene: Scene) -> Outcome:
    """The text of each number against its value and unit."""
    count, faults = 0, []
    for number in scene.frame:
        shown = _shown(number)
        if shown is not None:
            count += 1
            value, half = shown
            if abs(value - number.value * UNITS[number.unit][1]) > half * (1 + 1e-6):
                faults.append(f"{number.id}: {number.value!r} {number.unit} is shown as {number.text}")
    return Outcome(count, faults)


def intervals(scene: Scene) -> Outcome:
    """The interval of each number: its value lies within."""
    known = [number for number in scene.frame if math.isfinite(number.low) and number.known]
    faults = [f"{n.id}: {n.value!r} is not from {n.low!r} to {n.high!r}" for n in known if not _within(n)]
    return Outcome(len(known), faults)


def _within(number: Number) -> bool:
    room = _CLOSE * abs(number.value)
    return number.low - room <= number.value <= number.high + room


def _compare(compute: Callable[[Number], float | None], scene: Scene) -> Outcome:
    count, faults = 0, []
    for number in scene.frame:
        if number.known and (value := compute(number)) is not None:
            count += 1
            if not math.isclose(value, number.value, rel_tol=_CLOSE):
                faults.append(f"{number.id}: {value!r} from the rows, {number.value!r} is shown")
    return Outcome(count, faults)


def _median(number: Number) -> float | None:
    name = number.function.rpartition(".")[2]
    if name != "medians" or number.quantity == "discarded_blocks":
        return None
    chosen = np.array([float(text) if text else math.nan for text in _column(number, "value")])
    of_windows = report_of(number.study).windows
    middle = float(np.nanmean(chosen)) if of_windows else _middle(_column(number, "block"), chosen)
    return 1000 * middle / (number.n or 1) if number.derived == "per_object" else middle


def _ratio(number: Number) -> float | None:
    kind = number.derived if number.other else ""
    if kind not in ("speedup", "times", "share", "gain") or number.role == PUBLISHED:
        return None
    methods = _methods(number)
    if kind == "speedup" and number.chosen:
        return _over(number, subject_of(number.chosen), number.chosen)
    if len(methods) != 2 or number.quantity.startswith(("over_", "memory_", "total_without")):
        return None
    if kind in ("speedup", "gain") or number.other == "roof":  # a median of an even number of ratios has a direction
        return _over(number, *methods)
    times = _over(number, *reversed(methods))
    return times if kind == "times" else 1 / times


def _energy(number: Number) -> float | None:
    if not number.function.endswith("studies.power.ratios"):
        return None
    first, second = _methods(number)
    energy = next(name for name in _column(number, "quantity") if name.startswith("energy_per_frame"))
    times, energies = (_log_ratio(number, name, first, second) for name in ("time_per_frame", energy))
    rounds = sorted(set(times) & set(energies))
    time, whole = (math.exp(np.mean([logs[block] for block in rounds])) for logs in (times, energies))
    parts = {"time": time, "energy": whole, "power": whole / time, "longer": 1 / time - 1}
    saved = {"time_saved": 1 - time, "energy_saved": 1 - whole, "power_added": whole / time - 1}
    return (parts | saved)[number.derived]


def _typed(number: Number) -> float | None:
    if number.role != PUBLISHED or number.study == "derived":
        return None
    (text,) = _column(number, "value")
    return float(text)


def _column(number: Number, name: str) -> list[str]:
    table = read(number.file.partition(AND)[0]).table  # of two runs the first, whose value it is
    return [str(table.columns[name][index]) for index in table.rows(number.selector)]


def _middle(blocks: Sequence[str], values: np.ndarray) -> float:
    """Return the median over the blocks that have a value; of several processes the geometric mean of their medians."""
    process = np.array([int(block) // PROCESS_BLOCKS for block in blocks])
    known = np.isfinite(values)
    parts = [values[known & (process == one)] for one in np.unique(process[known])]
    middles = np.array([np.median(part) for part in parts])
    positive = len(parts) > 1 and bool((values[known] > 0).all())
    return float(np.exp(np.log(middles).mean()) if positive else middles.mean())


def _by_block(number: Number, method: str, quantity: str = "") -> dict[str, float]:
    columns = zip(*(_column(number, name) for name in ("method", "quantity", "block", "value")), strict=True)
    return {
        block: float(value)
        for name, what, block, value in columns
        if value and name == method and quantity in ("", what)
    }


def _over(number: Number, method: str, other: str) -> float:
    """Return the median over the blocks that both have of the other method's value over the method's."""
    first, second = _by_block(number, method), _by_block(number, other)
    both = [block for block in first if block in second]
    return _middle(both, np.array([second[block] / first[block] for block in both]))


def _log_ratio(number: Number, quantity: str, method: str, other: str) -> dict[str, float]:
    first, second = (_by_block(number, name, quantity) for name in (method, other))
    return {block: math.log(first[block] / second[block]) for block in first if block in second}


def _methods(number: Number) -> list[str]:
    conditions = (condition for part in parse(number.selector) for condition in part)
    return [name for condition in conditions if condition.column == "method" for name in condition.values]


def _shown(number: Number) -> tuple[float, float] | None:
    """Return the value that a text shows, and by how much rounding may change it; None for words and ranges."""
    text = number.text.replace("\u2212", "-").replace("\u202f", "").replace("\u00d7", " \u00d7")
    digits, _, unit = text.partition(" ")
    unit = unit or number.unit
    if not (number.known and unit in UNITS and number.unit in UNITS):
        return None
    try:
        value = float(digits)
    except ValueError:
        return None
    if UNITS[unit][0] != UNITS[number.unit][0]:
        return math.inf, 0.0  # a ratio as a share, say, is wrong even where the values are equal
    step = 10.0 ** -len(digits.partition(".")[2])
    return value * UNITS[unit][1], step / 2 * UNITS[unit][1]


# Medians over blocks, means over windows, and what they are per object; speed-ups, multiples and shares of bounds, and
# ratios of bytes; ratios of time, power and energy of windows, and what is saved; published values as typed.
medians, ratios, energies, published = (partial(_compare, one) for one in (_median, _ratio, _energy, _typed))
