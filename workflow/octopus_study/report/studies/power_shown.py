"""Tables and figures of power: energies by number of boxes, at a fixed rate, taken apart, and the sensor's trace."""

import math
from collections.abc import Iterator

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.names import POWER_SCOPES, PUBLISHED_POWER, SHORT_METHODS, human
from octopus_study.report import captions
from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import BLACK, ORANGE, SKY
from octopus_study.report.frame import PUBLISHED, Frame, Key, Number, published
from octopus_study.report.tables import cells
from octopus_study.report.tables.spec import Row, Spec
from octopus_study.report.tables.writers import MISSING
from octopus_study.report.view import View, views

STUDY, WORKLOAD = "power", "visdrone"
BACK_TO_BACK, PACED = "back_to_back", "paced"
LIBRARIES = ("cvcuda-views", "grid-sample")
METHODS = ("octopus", *LIBRARIES, "published", "n-launches")
# (method, other) whose ratio is taken apart, with what the comparison is called.
PAIRS = {
    ("published", "n-launches"): "One launch over N launches",
    ("octopus", "published"): "Octopus over the published kernels",
    ("octopus", "cvcuda-views"): "Octopus over CV-CUDA",
    ("octopus", "grid-sample"): "Octopus over PyTorch",
}
PARTS = ("time", "power", "energy")
CAPPED_FROM = 0.05  # from this share of a window's time on, the power limit is said to hold the clock down
_CAPPED = "\u2021"
_JETSON = "Jetson Orin Nano, as published"
_GROSS = "energy_per_frame"
_QUANTITIES = {"time_per_frame": "time", "power_mean": "power", _GROSS: "energy", f"{_GROSS}_net": "net of idle"}


def _scope_name(view: View) -> str:
    return human(POWER_SCOPES, view.fact("sensor.scope"))


def measured(frame: Frame) -> list[View]:
    """Return the machines that have energies."""
    return [view for view in views(frame, STUDY) if _counts(view)]


def note(frame: Frame) -> str:
    """Say on which machines there is no energy; empty where every machine has one."""
    lacking = [view for view in views(frame, STUDY) if not _counts(view)]
    texts = [
        f"No energy was measured on {view.name}: {view.fact('unavailable_brief') or 'no reason given'}."
        for view in lacking
    ]
    return " ".join(texts) if views(frame, STUDY) else "No energy was measured: no run of the study power is at hand."


def footer(frame: Frame) -> str:
    """Say what a figure rests on."""
    shown = frame.text(Key("shown", STUDY, quantity="energy"))
    return shown if measured(frame) else "Nothing was measured."


def _key(view: View, n: int | None, method: str, quantity: str, layer: str = BACK_TO_BACK) -> Key:
    return view.key(WORKLOAD, n, method, quantity=quantity, layer=layer)


def _counts(view: View, layer: str = BACK_TO_BACK) -> list[int]:
    """Return the numbers of boxes at which a machine has energies, ascending."""
    numbers = view.select(quantity=_GROSS, layer=layer)
    return sorted({number.n for number in numbers if number.known})


def published_counts(frame: Frame, table: str = STUDY) -> list[int]:
    """Return the numbers of boxes of a published power table, ascending."""
    numbers = frame.select(PUBLISHED, table, method=PUBLISHED_POWER["published"], quantity="time")
    return sorted(number.n for number in numbers)


def _cell(quantity: str, n: int | None = None) -> cells.Cell:
    """Say a number, a wide one with its interval and a capped power with its mark; a letter where there is a reason for
    having none."""

    def text(view: View, case: Key) -> str:
        place = _key(view, n or case.n, case.method, quantity or case.quantity, case.layer)
        number = view.frame.find(place)
        if number is None or not number.known:
            return f"{MISSING} ({view.reasons.letter(number.reason)})" if number else MISSING
        shown = cells.with_interval(number) if number.wide else number.text
        capped = view.frame.value(place.but(quantity="capped_share", layer="")) >= CAPPED_FROM
        is_power = place.quantity.startswith("power_mean") and case.layer == BACK_TO_BACK
        return f"{shown} {_CAPPED}" if capped and is_power else shown

    return text


def _all_counts(frame: Frame) -> list[int]:
    return sorted({n for view in measured(frame) for n in _counts(view)} | set(published_counts(frame)))


def _energies(view: View) -> list[Key]:
    """Return a case per method and quantity that some count has, but of libraries, which have one count."""
    numbers = _all_counts(view.frame) if _counts(view) else []
    return [
        view.key(WORKLOAD, None, method, quantity=name, layer=BACK_TO_BACK)
        for method in METHODS
        if method not in LIBRARIES
        for name in _QUANTITIES
        if any(view.frame.find(_key(view, n, method, name)) for n in numbers)
    ]


def _published_energies(frame: Frame) -> Iterator[Row]:
    yield f"{_JETSON}: module, VDD_IN"
    for method, name in PUBLISHED_POWER.items():
        label = "One launch" if method == "published" else human(SHORT_METHODS, method)
        for part in PARTS:
            texts = [frame.text(published(STUDY, f"n{n}", name, part), MISSING) for n in _all_counts(frame)]
            yield [f"{label}, {part}", *texts]


def _paced(view: View) -> list[Key]:
    """Return a case per count and method, of libraries at the one count where they were measured."""
    keys = [view.key(WORKLOAD, n, method, layer=PACED) for n in _counts(view, PACED) for method in METHODS]
    return [key for key in keys if key.method not in LIBRARIES or view.frame.find(key.but(quantity=_GROSS))]


ENERGY = Spec(
    study=STUDY,
    first="",
    label=lambda view, case: f"{human(SHORT_METHODS, case.method)}, {_QUANTITIES[case.quantity]}",
    cases=_energies,
    columns=lambda frame: [(f"n = {n}", _cell("", n)) for n in _all_counts(frame)],
    title=lambda view: f"{view.title}: {_scope_name(view)}, idle {view.fact('idle') or MISSING}",
    before=_published_energies,
    caption=lambda frame: (
        captions.TABLES["power"].format(wide=cells.WIDE_NOTE, capped=_CAPPED, note=note(frame)).strip()
    ),
)
PACED_TABLE = Spec(
    study=STUDY,
    first="n",
    label=lambda view, case: str(case.n),
    cases=_paced,
    columns={
        "Method": lambda view, case: human(SHORT_METHODS, case.method),
        **{
            head: _cell(quantity)
            for head, quantity in zip(("Busy", "Mean power", "Energy", "Net of idle"), _QUANTITIES, strict=True)
        },
        "Late": _cell("late_frames"),
    },
    title=lambda view: f"{view.title}: {_scope_name(view)}, {view.fact('frame_rate')} frames/s",
    caption=lambda frame: captions.TABLES["power_paced"].format(wide=cells.WIDE_NOTE, note=note(frame)).strip(),
    text_columns=(1,),
)

_PART_NAMES = {"time": "Time", "power": "Power", "energy": "Energy = time \u00d7 power"}
_PART_COLORS = {"time": SKY, "power": ORANGE, "energy": BLACK}
_SOME_COUNTS, _OF_LIBRARIES = (100, 1000, 5000), 1000
_BAR, _ROOM = 0.27, (1.1, 1.9)  # between two marks; space left and right of all, in the farthest from 1
_TABLES = {
    "First table: a voltage read as power": "power_voltage_misread",
    "Third table: voltage \u00d7 current": STUDY,
}
Ratios = dict[tuple[str, int], list[Number]]


def draw_decomposition(frame: Frame) -> Figure:
    """Draw the energy ratios taken apart, that of the energies being time times power: both published tables, and one
    panel per machine that has energies."""
    printed = {
        (title, n): [frame[Key(PUBLISHED, "derived", table, n, quantity=part)] for part in PARTS]
        for title, table in _TABLES.items()
        for n in _some(published_counts(frame, table))
    }
    panels = {f"{_JETSON}: one launch over N launches": printed}
    panels |= {f"{view.name} ({_scope_name(view)})": _ratios(view) for view in measured(frame)}
    panels = {title: rows for title, rows in panels.items() if rows}
    height = max(0.45 + 0.25 * (len(rows) + len({group for group, _ in rows})) for rows in panels.values())
    below = "" if measured(frame) else f"{note(frame)} Only the published values are shown."
    result, parts, legend = style.stacked([height], 0.25, below)
    axes = parts[0].subplots(1, len(panels), squeeze=False)[0]
    for axis, (title, rows) in zip(axes, panels.items(), strict=True):
        _decomposition(axis, rows)
        style.title(axis, title, 78 // len(panels))
    style.legend_of_looks(legend, {_PART_NAMES[part]: {"color": _PART_COLORS[part]} for part in PARTS})
    return result


def _ratios(view: View) -> Ratios:
    found = {
        (name, n): [
            view.get(_key(view, n, pair[0], "time").but(quantity=f"over_{pair[1]}", derived=part)) for part in PARTS
        ]
        for pair, name in PAIRS.items()
        for n in (_some(_counts(view)) if pair[1] not in LIBRARIES else [_OF_LIBRARIES])
    }
    return {place: parts for place, parts in found.items() if all(parts)}


def _some(known: list[int]) -> list[int]:
    return [n for n in _SOME_COUNTS if n in known] or known[: len(_SOME_COUNTS)]


def _decomposition(axis: Axes, rows: Ratios) -> None:
    logs = [math.log(number.value) for parts in rows.values() for number in parts]
    position, ticks, last = 0.0, {}, ""
    for (group, n), parts in rows.items():
        if group != last:  # its heading starts at the axis, above the marks
            look = {"fontsize": 7, "style": "italic", "va": "center", "bbox": {"facecolor": "white", "lw": 0, "pad": 1}}
            axis.annotate(group, (0.015, position + 0.05), xycoords=("axes fraction", "data"), **look)
            position, last = position + 0.95, group
        ticks[position] = f"n = {n}"
        for index, (part, number) in enumerate(zip(PARTS, parts, strict=True)):
            bars.ratio(axis, position + _BAR * (index - 1), number, color=_PART_COLORS[part])
        position += 1.05
    axis.set(xscale="log", xlabel="Ratio (left of 1\u00d7: less)")
    reach = max(map(abs, logs))
    axis.set_xlim(math.exp(-_ROOM[0] * reach), math.exp(_ROOM[1] * max(0.35 * reach, *logs)))
    axis.axvline(1, color=BLACK, linewidth=0.8)
    axis.set_yticks(list(ticks), list(ticks.values()), fontsize=6.5)
    axis.set_ylim(position - 0.4, -0.25)
    style.near_log(axis.xaxis)
    bars.plain(axis)
