"""Tables of power: time, power and energy; the energy ratios taken apart; the checks and what they measured; and energy
at a fixed frame rate."""

from __future__ import annotations

from collections.abc import Iterator

from octopus_study.names import POWER_STAGES
from octopus_study.power.checks import CHECKS, TABLE, Check
from octopus_study.report.frame import Frame, Key, Number
from octopus_study.report.studies import power_view as power
from octopus_study.report.studies.power_quality import CAPPED_FROM
from octopus_study.report.tables import cells
from octopus_study.report.tables.cells import Cell
from octopus_study.report.tables.spec import Row, Spec, build
from octopus_study.report.tables.writers import MISSING, Table
from octopus_study.report.text import bracketed
from octopus_study.report.view import View
from octopus_study.units import TIMES

_GROSS = "energy_per_frame"
_CAPPED = "\u2021"
_QUANTITIES = {
    "time_per_frame": "time",
    "power_mean": "power",
    _GROSS: "energy",
    f"{_GROSS}_net": "net of idle",
}
_OUTCOMES = {"failed": "FAILED"}


def _sentences(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


def _number(view: View, key: Key) -> Number | None:
    """Return a number, or the reason for having none: a method without windows has one row, whose energy is that of no
    sensor."""
    plain = key.but(quantity=_GROSS) if key.quantity.startswith(f"{_GROSS}_") else key
    return view.frame.find(key) or view.frame.find(plain)


def _cell(quantity: str, n: int | None = None) -> Cell:
    """Say a number, a wide one with its interval and a capped power with its mark; a letter where there is a reason for
    having none."""

    def text(view: View, case: Key) -> str:
        place = power.key(view, n or case.n, case.method, quantity or case.quantity, case.layer)
        number = _number(view, place)
        if number is None or not number.known:
            return f"{MISSING} ({view.reasons.letter(number.note)})" if number else MISSING
        shown = cells.with_interval(number) if number.wide else number.text
        marked = place.quantity.startswith("power_mean") and case.layer == power.BACK_TO_BACK
        return f"{shown} {_CAPPED}" if marked and _is_capped(view, place) else shown

    return text


def _is_capped(view: View, place: Key) -> bool:
    return view.frame.value(place.but(quantity="capped_share", layer="")) >= CAPPED_FROM


def _case(view: View, n: int | None, method: str, layer: str, quantity: str = "") -> Key:
    return view.key(power.WORKLOAD, n, method, quantity=quantity, layer=layer)


def _has(view: View, n: int, case: Key, quantity: str) -> bool:
    return _number(view, power.key(view, n, case.method, quantity, case.layer)) is not None


def _shown_counts(frame: Frame) -> list[int]:
    return sorted(
        {n for view in power.measured(frame) for n in power.counts(view)} | set(power.published_counts(frame))
    )


def _energies(view: View) -> list[Key]:
    """Return a case per method and quantity that some count has."""
    cases = [
        _case(view, None, method, power.BACK_TO_BACK, name)
        for method in power.METHODS
        for name in _QUANTITIES
    ]
    shown = _shown_counts(view.frame) if power.of(view) else []
    return [case for case in cases if any(_has(view, n, case, case.quantity) for n in shown)]


def _published_energies(frame: Frame) -> Iterator[Row]:
    yield f"{power.JETSON}: module, VDD_IN"
    for method in ("published", "n-launches"):
        points = {point.n: point for point in power.published_points(frame, method)}
        for part in power.PARTS:
            texts = [getattr(points[n], part).text if n in points else MISSING for n in _shown_counts(frame)]
            yield [f"{power.method_name(method, printed=True)}, {part}", *texts]


def _energy_caption(frame: Frame) -> str:
    """Return the caption: time, mean power and energy per frame by number of boxes."""
    places = [
        (view, _case(view, n, method, ""))
        for view in power.measured(frame)
        for n in power.counts(view)
        for method in power.METHODS
    ]
    return _sentences(
        "Time per frame, mean power while frames follow each other back to back, and energy per frame by number of "
        f"boxes n; means of the windows, {cells.WIDE_NOTE}. Net: less idle power x time.",
        f"{_CAPPED}: at the power limit." if any(_is_capped(*place) for place in places) else "",
        power.note(frame),
    )


ENERGY = Spec(
    study=power.STUDY,
    first="",
    label=lambda view, case: f"{power.method_name(case.method)}, {_QUANTITIES[case.quantity]}",
    cases=_energies,
    columns=lambda frame: [(f"n = {n}", _cell("", n)) for n in _shown_counts(frame)],
    title=lambda view: f"{view.title}: {power.of_name(view)}, idle {view.fact('idle') or MISSING}",
    before=_published_energies,
    caption=_energy_caption,
)


def _paced(view: View) -> list[Key]:
    numbers = power.counts(view, power.PACED) if power.of(view) else []
    cases = [_case(view, n, method, power.PACED) for n in numbers for method in power.METHODS]
    return [case for case in cases if any(_has(view, case.n, case, name) for name in _QUANTITIES)]


def _paced_caption(frame: Frame) -> str:
    """Return the caption: energy per frame at a fixed frame rate."""
    rates = sorted({view.fact("frame_rate") for view in power.measured(frame)} - {""})
    at = f" at {', '.join(rates)} frames/s" if rates else " at a fixed frame rate"
    return _sentences(
        f"Energy per frame{at}: the device idles until the next frame is due, so idle power is part of every "
        "frame, and a faster method saves only what it draws beyond idle. Busy: time during which the method works "
        f"on a frame. Means of the windows, {cells.WIDE_NOTE}.",
        power.note(frame),
    )


PACED_TABLE = Spec(
    study=power.STUDY,
    first="n",
    label=lambda view, case: str(case.n),
    cases=_paced,
    columns={
        "Method": lambda view, case: power.method_name(case.method),
        **{
            head: _cell(quantity)
            for head, quantity in zip(
                ("Busy", "Mean power", "Energy", "Net of idle"), _QUANTITIES, strict=True
            )
        },
    },
    title=lambda view: f"{view.title}: {power.of_name(view)}",
    caption=_paced_caption,
    text_columns=(1,),
)


def _published_ratios(frame: Frame) -> Iterator[Row]:
    for table, title in (("power_voltage_misread", "First table"), (power.STUDY, "Third table")):
        verdict = frame.text(Key("published", "derived", table, quantity="linter"))
        yield f"{power.JETSON}, one launch over N launches. {title}; the linter's verdict: {verdict}"
        for n in power.published_counts(frame, table):
            texts = [frame[power.published_ratio(table, n, part)].text for part in power.PARTS]
            yield [str(n), *texts, *([MISSING] * 2 if power.measured(frame) else [])]


def _pairs(view: View) -> Iterator[Key | str]:
    for pair, name in power.PAIRS.items() if power.of(view) else ():
        keys = [power.ratio_key(view, n, pair, "") for n in power.counts(view)]
        keys = [ratio for ratio in keys if all(view.get(ratio.derive(part)) for part in power.PARTS)]
        if keys:
            yield f"{view.title}: {name}"
            yield from keys


def _ratio(part: str) -> Cell:
    def text(view: View, case: Key) -> str:
        number = view.frame[case.derive(part)]
        shown = bracketed(number.value, number.low, number.high)
        return f"{shown}{TIMES}" if number.interval else number.text

    return text


_RATIO_COLUMNS: dict[str, Cell] = {part.capitalize(): _ratio(part) for part in power.PARTS}
_WORDS: dict[str, Cell] = {
    "Share of time": lambda view, case: view.text(case.derive("share", "time"), MISSING),
    "In words": lambda view, case: view.text(case.derive("sentence"), MISSING),
}


def decomposition(frame: Frame) -> Table:
    """Energy ratios as time ratio times power ratio, with the sentence that follows; without a measured one, the
    published ratios alone."""
    some = bool(power.measured(frame))
    caption = _sentences(
        f"Energy ratio = time ratio {TIMES} power ratio, by number of boxes n; below 1{TIMES}, the method named first "
        "takes less.",
        "Measured ratios with intervals of 95 %, by Student's t over the logarithms of the paired windows' "
        "ratios. Share: log of the time ratio / log of the energy ratio. The sentence follows from the intervals by "
        "rule."
        if some
        else "",
        power.note(frame),
    )
    spec = Spec(
        study=power.STUDY,
        first="n",
        label=lambda view, case: str(case.n),
        cases=_pairs,
        columns=_RATIO_COLUMNS | (_WORDS if some else {}),
        title=lambda view: "",
        before=_published_ratios,
        caption=caption,
        text_columns=(5,) if some else (),
        widths=("auto", "2.1fr", "1.9fr", "2.1fr", "0.9fr", "3.4fr") if some else (),
    )
    return build(spec, frame)


def checks(frame: Frame) -> Table:
    """Every check between a sensor and an energy, and what the power-on test measured for it, machine by machine."""
    shown = power.measured(frame)
    rows: list[Row] = []
    for check in CHECKS:
        stage = POWER_STAGES.get(check.stage, check.stage)
        if stage not in rows:
            rows.append(stage)
        rows.append([check.title, check.catches, *(_outcome(view, check) for view in shown)])
    caption = _sentences(
        "The checks between a sensor and an energy, in the order in which a number meets them, what each stops"
        f"{', and what the power-on test and the linter said' if shown else ''}.",
        power.note(frame),
    )
    header = ["What must hold", "What it stops", *(view.name for view in shown)]
    return Table(
        caption, header, rows, tuple(range(len(header))), ("1.5fr", "1.1fr", *["1.7fr"] * len(shown))
    )


def _outcome(view: View, check: Check) -> str:
    """Return what the power-on test said; numbers of a run that the linter refuses never come so far."""
    number = view.frame.find(view.key("selftest.check", quantity=check.id))
    if number is None:
        return "accepted" if check.stage == TABLE else MISSING
    return f"{_OUTCOMES.get(number.note, number.note)}: {number.text}"
