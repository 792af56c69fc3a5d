"""Tables of power: time, power and energy; the energy ratios taken apart; the checks and what they measured; and energy
at a fixed frame rate."""

from __future__ import annotations

from collections.abc import Iterator

from octopus_study.power.checks import CHECKS, TABLE, Check
from octopus_study.report import power
from octopus_study.report.captions import scope_name, scope_title
from octopus_study.report.labels import POWER_SCOPES, SHORT_METHODS, human
from octopus_study.report.numbers import Number, Numbers
from octopus_study.report.tables import oldcells as cells
from octopus_study.report.tables.oldwriters import MISSING, Table
from octopus_study.report.text import TIMES, interval_text, significant

STUDY = power.STUDY
PUBLISHED = f"{power.JETSON}: module, VDD_IN"
GROSS = "energy_per_frame_"
CAPPED = "\u2021"
# From this share of a window on, the power limit holds the clock down.
_CAPPED_FROM = 0.05
_QUANTITIES = {
    "time_per_frame": "time",
    "power_mean": "power",
    "energy_per_frame": "energy",
    "energy_per_frame_net": "net of idle",
}
_PUBLISHED_QUANTITIES = ("time", "power", "energy")
_PAIRS = (("published", "n-launches"), ("octopus", "published"))
_PARTS = ("time", "power", "energy")
_OUTCOMES = {"passed": "passed", "failed": "FAILED", "not applicable": "not applicable"}


def energy(numbers: Numbers) -> Table:
    """Time, mean power and energy per frame of every method at every number of boxes, the published ones first."""
    scopes = power.measured(numbers)
    shown = sorted(
        {n for scope in scopes for n in power.counts(numbers, scope)} | set(power.published_counts(numbers))
    )
    rows: list[list[str] | str] = [PUBLISHED, *_published_rows(numbers, shown)]
    reasons = cells.Reasons()
    for scope in scopes:
        rows += _energy_section(numbers, scope, shown, reasons)
    capped = f" {CAPPED}: at the power limit." if _any_capped(numbers, scopes) else ""
    caption = (
        "Time per frame, mean power while frames follow each other back to back, and energy per frame by number of "
        f"boxes n; means of the windows, {cells.WIDE_NOTE}. Net: less idle power x time."
        f"{capped} {power.note(numbers)}{reasons.note}"
    )
    header = ["", *(f"n = {n}" for n in shown)]
    return Table("power", caption.rstrip(), header, rows)


def _published_rows(numbers: Numbers, shown: list[int]) -> Iterator[list[str]]:
    for method in ("published", "n-launches"):
        arms = {arm.n: arm for arm in power.published_arms(numbers, method)}
        for quantity in _PUBLISHED_QUANTITIES:
            texts = [getattr(arms[n], quantity).text if n in arms else MISSING for n in shown]
            yield [f"{power.method_name(method, published=True)}, {quantity}", *texts]


def _energy_section(
    numbers: Numbers, scope: str, shown: list[int], reasons: cells.Reasons
) -> Iterator[list[str] | str]:
    of = human(POWER_SCOPES, power.sensor_scope(numbers, scope))
    idle = numbers.text(f"{scope}.{STUDY}.idle", MISSING)
    yield f"{scope_title(numbers, scope, STUDY)}: {of}, idle {idle}"
    for method in power.METHODS:
        for quantity, name in _QUANTITIES.items():
            keys = [power.key(numbers, scope, n, method, quantity) for n in shown]
            texts = [_cell(numbers, key, reasons) for key in keys]
            if quantity == "power_mean":
                texts = [
                    _with_cap(numbers, scope, n, method, text) for n, text in zip(shown, texts, strict=True)
                ]
            if any(text != MISSING for text in texts):
                yield [f"{power.method_name(method)}, {name}", *texts]


def _cell(numbers: Numbers, key: str, reasons: cells.Reasons) -> str:
    """Return a number, a wide one with its interval; a letter where there is a reason for having none."""
    if key not in numbers:
        # An arm without windows has one row, whose energy is that of no sensor.
        parts = key.split(".")
        key = ".".join([*parts[:5], "energy_per_frame", *parts[6:]]) if parts[5].startswith(GROSS) else key
    if key not in numbers:
        return MISSING
    number = numbers[key]
    if number.value != number.value:
        return f"{MISSING} ({reasons.letter(number.note)})"
    return cells.with_interval(number) if cells.is_wide(number) else number.text


def _with_cap(numbers: Numbers, scope: str, n: int, method: str, text: str) -> str:
    return f"{text} {CAPPED}" if _capped(numbers, scope, n, method) else text


def _capped(numbers: Numbers, scope: str, n: int, method: str) -> bool:
    key = f"{scope}.{STUDY}.{power.WORKLOAD}.n{n}.{method}.capped_share"
    return numbers.value(key) >= _CAPPED_FROM


def _any_capped(numbers: Numbers, scopes: list[str]) -> bool:
    arms = [
        (scope, n, method)
        for scope in scopes
        for n in power.counts(numbers, scope)
        for method in power.METHODS
    ]
    return any(_capped(numbers, *arm) for arm in arms)


def decomposition(numbers: Numbers) -> Table:
    """Energy ratios as time ratio times power ratio, with the sentence that follows."""
    rows: list[list[str] | str] = []
    for table, title in (("power_voltage_misread", "First table"), ("power", "Third table")):
        verdict = numbers.text(f"published.derived.{table}.linter")
        rows.append(f"{power.JETSON}, one launch over N launches. {title}; the linter's verdict: {verdict}")
        for n in power.published_counts(numbers, table):
            found = [numbers[f"published.derived.{table}.n{n}.{part}"] for part in _PARTS]
            rows.append([str(n), *(number.text for number in found), MISSING, MISSING])
    for scope in power.measured(numbers):
        for pair in _PAIRS:
            rows += _ratio_section(numbers, scope, pair)
    what = (
        f"Energy ratio = time ratio {TIMES} power ratio, by number of boxes n; below 1{TIMES}, the method named first "
        "takes less."
    )
    header = ["n", "Time", "Power", "Energy", "Share of time", "In words"]
    widths = ("auto", "2.1fr", "1.9fr", "2.1fr", "0.9fr", "3.4fr")
    if not power.measured(numbers):
        few = [row if isinstance(row, str) else row[:4] for row in rows]
        return Table("power_decomposition", f"{what} {power.note(numbers)}", header[:4], few, text_columns=())
    caption = (
        f"{what} Measured ratios with intervals of 95 %, by Student's t over the logarithms of the paired windows' "
        "ratios. Share: log of the time ratio / log of the energy ratio. The sentence follows from the intervals by "
        f"rule. {power.note(numbers)}"
    )
    return Table("power_decomposition", caption.rstrip(), header, rows, text_columns=(5,), widths=widths)


def _ratio_section(numbers: Numbers, scope: str, pair: tuple[str, str]) -> Iterator[list[str] | str]:
    lines = []
    for n in power.counts(numbers, scope):
        found = [numbers.get(power.ratio_key(scope, n, pair, part)) for part in _PARTS]
        if all(found):
            share = numbers.text(power.ratio_key(scope, n, pair, "share_of_time"), MISSING)
            words = numbers.text(power.ratio_key(scope, n, pair, "sentence"), MISSING)
            lines.append([str(n), *(_ratio(number) for number in found), share, words])
    if lines:
        yield f"{scope_title(numbers, scope, STUDY)}: {power.PAIRS[pair]}"
        yield from lines


def _ratio(number: Number) -> str:
    ends = interval_text(number.value, number.low, number.high, "")
    return f"{significant(number.value)} [{ends}]{TIMES}" if ends else number.text


def checks(numbers: Numbers) -> Table:
    """Every check between a sensor and an energy, and what the power-on test measured for it, machine by machine."""
    scopes = power.measured(numbers)
    rows: list[list[str] | str] = []
    stage = ""
    for check in CHECKS:
        if check.stage != stage:
            stage = check.stage
            rows.append(_STAGES.get(stage, stage))
        rows.append([check.title, check.catches, *(_outcome(numbers, scope, check) for scope in scopes)])
    caption = (
        "The checks between a sensor and an energy, in the order in which a number meets them, what each stops"
        f"{', and what the power-on test and the linter said' if scopes else ''}. {power.note(numbers)}"
    )
    header = ["What must hold", "What it stops", *(scope_name(numbers, scope) for scope in scopes)]
    columns = tuple(range(len(header)))
    widths = ("1.5fr", "1.1fr", *("1.7fr" for _ in scopes))
    return Table("power_checks", caption.rstrip(), header, rows, text_columns=columns, widths=widths)


_STAGES = {
    "parse": "When a file is parsed",
    "open": "When a source is opened",
    "power-on": "In the power-on test, before any energy",
    "window": "When a window is cut out of a trace",
    "table": "When a stored table is read again",
}


def _outcome(numbers: Numbers, scope: str, check: Check) -> str:
    """Return what the power-on test said; numbers of a run that the linter refuses never come so far."""
    key = f"{scope}.{STUDY}.selftest.check.{check.id}"
    if key not in numbers:
        return "accepted" if check.stage == TABLE else MISSING
    number = numbers[key]
    return f"{_OUTCOMES.get(number.note, number.note)}: {number.text}"


def paced(numbers: Numbers) -> Table:
    """Energy per frame at a fixed frame rate, where a faster method waits longer."""
    reasons = cells.Reasons()
    rows: list[list[str] | str] = []
    for scope in power.measured(numbers):
        rows += _paced_section(numbers, scope, reasons)
    rates = {numbers.text(f"{scope}.{STUDY}.frame_rate") for scope in power.measured(numbers)} - {""}
    at = f" at {', '.join(sorted(rates))} frames/s" if rates else " at a fixed frame rate"
    caption = (
        f"Energy per frame{at}: the device idles until the next frame is due, so idle power is part of every "
        "frame, and a faster method saves only what it draws beyond idle. Busy: time during which the method works "
        f"on a frame. Means of the windows, {cells.WIDE_NOTE}. {power.note(numbers)}{reasons.note}"
    )
    header = ["n", "Method", "Busy", "Mean power", "Energy", "Net of idle"]
    return Table("power_paced", caption.rstrip(), header, rows, text_columns=(1,))


def _paced_section(numbers: Numbers, scope: str, reasons: cells.Reasons) -> Iterator[list[str] | str]:
    lines = []
    for n in power.counts(numbers, scope, "paced"):
        for method in power.METHODS:
            keys = [power.key(numbers, scope, n, method, quantity, "paced") for quantity in _QUANTITIES]
            texts = [_cell(numbers, key, reasons) for key in keys]
            if any(text != MISSING for text in texts):
                lines.append([str(n), human(SHORT_METHODS, method), *texts])
    if lines:
        yield f"{scope_title(numbers, scope, STUDY)}: {human(POWER_SCOPES, power.sensor_scope(numbers, scope))}"
        yield from lines
