"""The arena: Octopus beside every other library on the same boxes, and its kernel step by step.

A comparison is named by the key of the time of Octopus; what it holds was measured in the same blocks.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study import names
from octopus_study.names import AGAIN, ARENA_METHODS, ARENA_WORKLOADS, BOUND, GREY, SUBJECT, human
from octopus_study.report import captions, measured
from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import METHOD_COLORS
from octopus_study.report.frame import Frame, Key, Number, joined, make_number
from octopus_study.report.missing import by_reason, footer
from octopus_study.report.runs import DataFrame, Run
from octopus_study.report.samples import Group, groups, pivot
from octopus_study.report.selector import where
from octopus_study.report.study import Chart, StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.spec import Row, Spec
from octopus_study.report.view import View, every_view, views
from octopus_study.status import MethodStatus
from octopus_study.units import significant

STUDY = "arena"
# The published size of the comparison; a run without it shows its largest.
PUBLISHED_COUNT = 1000
TIMED = {
    "device": "crop_resize_normalize", "host": "end_to_end", "pipelined": "end_to_end", "pipeline": "end_to_end",
}  # fmt: skip
NO_GPU = "No run on a GPU is shown: device events, and a write bound on a device, need one."
_TYPES = ("fp16", "uint8")  # of results other than float32, as names of methods carry them
_DRAWN = ("visdrone", "uniform")
# Inches: a method, what a row of panels has besides, and a legend.
_BAR, _ROW, _LEGEND = 0.18, 0.75, 0.25
KERNEL_WORKLOADS = (*names.LADDER_WORKLOADS, "kinds")  # the kernel with itself
# Not a library that a user would pick instead: what this project brings along, and bounds.
OWN = (SUBJECT, "published", "n-launches", BOUND)
# Pairs beside those of Octopus: the two methods of the published comparison; methods that read across the edge of a
# box, over which Octopus that does so too is judged; and each step of the kernel with the one before.
_PAIRS = (
    ("published", "tensorrt-padded"),
    ("tensorrt-padded", "published"),
    # The same padded graph in another runtime: a sentence beside the claims on TensorRT.
    ("published", "padded-onnxruntime"),
    ("padded-onnxruntime", "published"),
    *((own, other) for other, own in measured.LIKE.items()),
    *((step, before) for before, step in pairwise(names.LADDER_STEPS) if step != SUBJECT),
)
_METADATA_BYTES = 8 * 4  # the published kernels read eight int32 per box
_EDGE = "\u2021"
Columns = Mapping[str, str]  # of a key


def bound_of(method: str) -> str:
    """Return the write bound that a method is compared with: the one of its own output."""
    kind = next((name for name in _TYPES if name in method.split("-")), "")
    return f"{BOUND}-{kind}" if kind else BOUND


def comparisons(view: View, workload: str, layer: str) -> list[Key]:
    """Return the comparisons of a workload on a layer in which Octopus was timed, by count."""
    keys = view.cases(SUBJECT, TIMED[layer], (layer,), order=[workload])
    return sorted(keys, key=lambda key: key.n)


def shown(view: View, workload: str, layer: str) -> Key | None:
    """Return the comparison at the published count, else at the largest; None where there is none."""
    keys = comparisons(view, workload, layer)
    return next((key for key in keys if key.n == PUBLISHED_COUNT), keys[-1] if keys else None)


def entered(view: View, keys: Iterable[Key]) -> dict[str, list[Number]]:
    """Return every method that was entered in some comparisons, with its times or the notes why it has none, in the
    order of the arena."""
    methods: dict[str, list[Number]] = {}
    for key in keys:
        for number in view.select(workload=key.workload, n=key.n, quantity=key.quantity, layer=key.layer):
            if not number.method.endswith(AGAIN):
                methods.setdefault(number.method, []).append(number)
    return {name: methods[name] for name in sorted(methods, key=partial(names.place, ARENA_METHODS))}


def with_time(view: View, *keys: Key) -> dict[str, list[Number]]:
    """Return the methods that have a time in some comparisons, with those times."""
    times = {name: [n for n in numbers if n.known] for name, numbers in entered(view, keys).items()}
    return {name: numbers for name, numbers in times.items() if numbers}


def without_time(view: View, keys: Iterable[Key]) -> str:
    """Say which methods have no time in any of some comparisons, and why the last has none; an earlier one may only
    point to it."""
    methods = entered(view, keys)
    silent = {name: ns[-1].reason for name, ns in methods.items() if not any(n.known for n in ns)}
    return by_reason((human(ARENA_METHODS, name), note) for name, note in silent.items())


def _timed(run: Run) -> Iterator[tuple[Group, DataFrame, DataFrame]]:
    """Yield the groups of times with more than one block, as rows and as a table of blocks."""
    for group, rows in groups(run, unit="ms"):
        table = pivot(rows)
        if len(table) > 1:
            yield group, rows, table


def metadata(run: Run) -> Iterator[Number]:
    """Yield the bytes of metadata that the published kernels read."""
    for row in run.rows[run.rows["quantity"] == "padded_bytes"].itertuples():
        source = run.from_rows(row.dataset, where(workload=row.workload, n=row.n, quantity="padded_bytes"))
        key = run.key(row.workload, row.n, "published", quantity="metadata_bytes")
        note = f"{_METADATA_BYTES} bytes per box, as the published kernels read them"
        yield make_number(key, source, "bytes", float(_METADATA_BYTES * row.n), note=note)


def further_speedups(run: Run) -> Iterator[Number]:
    """Yield the speed-ups beside those of Octopus over every method."""
    for group, _, table in _timed(run):
        for pair in _PAIRS:
            yield from measured.speedup(run, group, table, pair, measured.floor_of(table))


def bound_shares(run: Run) -> Iterator[Number]:
    """Yield the share that every method reaches of the write bound of its output; those of Octopus and of the published
    kernels every study has."""
    for group, _, table in _timed(run):
        for method in table.columns.difference([SUBJECT, f"{SUBJECT}{AGAIN}", names.PUBLISHED_PAIR[0]]):
            if not method.startswith(BOUND):
                numbers = measured.share_of_bound(run, group, table, method, bound_of(method))
                yield from (number for number in numbers if number.derived == "share")


def best_baselines(run: Run) -> Iterator[Number]:
    """Yield the fastest library that gives the same answer, the fastest form of OpenCV, and the speed-ups over them;
    the kernel with itself has none."""
    for group, rows, table in _timed(run):
        if group.workload not in KERNEL_WORKLOADS and group.quantity in TIMED.values():
            same = set(rows["method"]) - set(rows.loc[rows["status"] != MethodStatus.SAME, "method"])
            others = [name for name in table if name in same and not name.startswith(OWN)]
            yield from measured.fastest(run, group, table, others, "best_baseline", "baselines with the same answer")
            yield from measured.best_opencv(run, group, table)


def memory_ratios(frame: Frame) -> Iterator[Number]:
    """Yield the growth of memory as a multiple of that with the published kernels."""
    other = names.PUBLISHED_PAIR[0]
    for view in every_view(frame, STUDY):
        for grown in view.select(quantity="memory_device_delta", layer="memory"):
            published = view.get(grown.key.but(method=other))
            if grown.known and grown.method != other and published and published.value > 0:
                ratio, note = grown.value / published.value, f"device delta / that of {other}"
                yield make_number(grown.key.derive("times", other), joined(grown, published), "ratio", ratio, note=note)


def transfer_shares(frame: Frame) -> Iterator[Number]:
    """Yield which share of the time with transfers of frame and result these take; the two are separate
    measurements."""
    for view in every_view(frame, STUDY):
        for time in view.select(method=SUBJECT, quantity=TIMED["pipeline"], layer="pipeline"):
            inside = view.get(time.key.but(layer="host"))
            if time.known and inside:
                share, note = 1 - inside.value / time.value, "1 - median on the layer host / median"
                key = time.key.derive("transfer_share")
                yield make_number(key, joined(time, inside), "fraction", share, note=note)


def _named(labels: Mapping[str, str], columns: Iterable[Columns]) -> cells.Cell:
    """Say a method's name: marked if it reads across the edge of a box, and with the letter of the reason if its answer
    in one of the columns is another one."""

    def label(view: View, key: Key) -> str:
        edge = f" {_EDGE}" if key.method in (*measured.LIKE, *measured.LIKE.values()) else ""
        marks = (cells.different_mark(view.get(key.but(**one)), view.reasons) for one in columns)
        return human(labels, key.method) + edge + next(filter(None, marks), "")

    return label


def _speedup(**columns: str) -> cells.Cell:
    """Say the speed-up of Octopus with the same answer over a method."""

    def cell(view: View, key: Key) -> str:
        own = key.but(**columns, method=measured.subject_of(key.method))
        return cells.speedup_text(view.frame, own, key.method, loose=True)

    return cell


def _times(gpu: bool, columns: Mapping[str, Columns], what: str, absent: str) -> Spec:
    """Return the table of every method: times, and speed-ups of Octopus, on GPUs or on CPUs."""

    def keys_of(view: View) -> list[Key]:
        key = shown(view, "visdrone", "host")
        return [key.but(**one) for one in columns.values()] if key and view.is_gpu == gpu else []

    def missing(view: View) -> list[Row]:
        why = without_time(view, keys_of(view))
        return [f"Unavailable here. {why}"] if why else []

    return Spec(
        study=STUDY,
        first="Method",
        label=_named(ARENA_METHODS, columns.values()),
        columns={head: cells.interval(**one) for head, one in columns.items()}
        | {f"{head}, speed-up": _speedup(**one) for head, one in columns.items()},
        cases=lambda view: [keys_of(view)[0].but(method=name) for name in with_time(view, *keys_of(view))],
        title=lambda view: _title(view, keys_of(view)),
        after=missing,
        caption=captions.TABLES["arena_times"].format(what=what, loose=cells.LOOSE_NOTE, edge=_EDGE),
        absent=f"{what}. {absent}",
        # A cell over all columns would stretch those that are as wide as their content.
        widths=(
            *("3fr", *("2.7fr",) * len(columns)),
            *("1.4fr" if one.get("layer") == "device" else "2.3fr" for one in columns.values()),
        ),
    )


def _title(view: View, keys: Iterable[Key]) -> str:
    """Name the run, its count, and the noise floor of each column, by which its verdicts are judged."""
    floors = [cells.floor_text(view.frame, key) for key in keys]
    return f"{view.title}: n = {next(iter(keys)).n}; noise floor {', '.join(floors)}" if keys else ""


ON_GPUS = _times(
    True,
    {head: {"layer": layer, "quantity": TIMED[layer]} for layer, head in names.LAYERS.items()},
    f"Arena, {human(ARENA_WORKLOADS, 'visdrone')}. Device: kernels alone, by events with a cold L2. Host: from boxes "
    "on the host to the synchronised result. Pipeline: also the upload of the frame and the download of the result",
    "No run on a GPU is shown.",
)
ON_CPUS = _times(
    False,
    {"VisDrone": {}, "1 thread each": {"workload": "visdrone-1thread"}},
    "Arena on CPUs, from the boxes to the result. Methods use all cores, OpenCV those that its rows name; in the last "
    "column each uses one thread",
    "No run on a CPU is shown.",
)
_NO_ROWS = "No run that is shown has these rows: they need a GPU."
_BEFORE = {step: before for before, step in pairwise(names.LADDER_STEPS)}
_CHANGES = names.LADDER_CHANGES | {BOUND: "filling the result"}
_SHARE = {"derived": "share", "other": BOUND}


def _gain(workload: str) -> cells.Cell:
    """Say the speed-up of a step of the kernel over the one before."""
    return lambda view, key: cells.speedup_text(view.frame, key.but(workload=workload), _BEFORE.get(key.method, ""))


LADDER = Spec(
    study=STUDY,
    first="Step",
    label=_named(names.LADDER_STEPS | {BOUND: "Write bound"}, [{}]),
    columns=lambda frame: [
        ("What changes", lambda view, key: _CHANGES[key.method]),
        *(
            column
            for workload, name in names.LADDER_WORKLOADS.items()
            for column in (
                (name, cells.interval(workload=workload)),
                ("Share", cells.text(workload=workload, **_SHARE)),
                ("Gain", _gain(workload)),
            )
        ),
    ],
    cases=lambda view: [
        key.but(method=step) for key in comparisons(view, "ladder", "device") for step in (*names.LADDER_STEPS, BOUND)
    ],
    title=lambda view: f"{view.title}: n = {comparisons(view, 'ladder', 'device')[0].n}",
    caption=captions.TABLES["arena_ladder"],
    absent=f"The kernel step by step. {_NO_ROWS}",
    text_columns=(0, 1),
    widths=("1.5fr", "3fr", *(("2.8fr", "0.9fr", "1.3fr") * len(names.LADDER_WORKLOADS))),
)
_ALONE = "end_to_end_alone"  # Octopus with nothing beside it
CALLS = Spec(
    study=STUDY,
    first="Boxes",
    label=lambda view, key: str(key.n),
    columns={
        "One run, arrays": cells.interval(),
        "One run, torch tensors": cells.interval(method=f"{SUBJECT}-torch"),
        "Plan, end to end": cells.interval(quantity=_ALONE),
        "crop_resize, end to end": cells.interval(quantity=_ALONE, method=f"{SUBJECT}-one-call"),
    },
    cases=lambda view: view.cases(SUBJECT, "submit", ("host",), order=["visdrone"]),
    caption=captions.TABLES["arena_submit"],
    absent=f"What a call costs. {_NO_ROWS}",
)
_LINES = ("memory_payload", "memory_allocator_peak", "memory_device_delta", "memory_fixed")
MEMORY = Spec(
    study=STUDY,
    first="Method",
    label=lambda view, key: human(ARENA_METHODS, key.method),
    columns={human(names.QUANTITIES, line): cells.fact(quantity=line) for line in _LINES},
    cases=lambda view: [
        number.key
        for method in (names.MEMORY_METHODS if view.is_gpu else ())
        for number in view.select(workload="visdrone", method=method, quantity=_LINES[0], layer="memory")
    ],
    caption=captions.TABLES["arena_memory"],
    absent=f"Memory. {_NO_ROWS}",
    widths=("2fr", *("1fr" for _ in _LINES)),
)


def device(frame: Frame) -> Figure:
    """Draw times on the device, one row per GPU: VisDrone by number of boxes, then boxes of one size; a note names the
    methods without a time, with the reason."""
    drawn = {view: keys for view in views(frame, STUDY) if (keys := _panels(view))}
    if not drawn:
        return style.empty(NO_GPU)
    why = {view.name: without_time(view, keys) for view, keys in drawn.items()}
    note = " ".join(f"No time on {name}. {text}." for name, text in why.items() if text)
    methods = {view: list(with_time(view, *keys)) for view, keys in drawn.items()}
    bar = style.row_height(_BAR, sum(map(len, methods.values())), _ROW * len(drawn) + _LEGEND)
    result, parts, legend = style.stacked([_ROW + bar * len(names) for names in methods.values()], _LEGEND, note)
    for part, (view, keys) in zip(parts, drawn.items(), strict=True):
        axes = part.subplots(1, len(keys), squeeze=False, sharey=True)[0]
        bars.names(axes[0], [human(ARENA_METHODS, name) for name in methods[view]], fontsize=6.5)
        for axis, key in zip(axes, keys, strict=True):
            _draw_times(axis, view, key, methods[view])
        style.heading(part, f"{view.name}: time on the device")
    style.legend_of_looks(legend, {"Same answer as the reference": {"color": GREY}} | style.DIFFERENT)
    return result


def _panels(view: View) -> list[Key]:
    uniform = shown(view, "uniform", "device")
    return [*comparisons(view, "visdrone", "device"), *filter(None, [uniform])]


def _draw_times(axis: Axes, view: View, key: Key, methods: list[str]) -> None:
    """Draw the times of one comparison, a row per method, with values beside them."""
    times = {method: number for method, (number,) in with_time(view, key).items()}
    values = [number.value for number in times.values()]
    for method, number in times.items():
        row = methods.index(method)
        bars.dot(axis, row, number, color=METHOD_COLORS.get(method, GREY), hollow=number.differs)
        bars.beside(axis, row, bars.end_of(number), significant(number.value), fontsize=6)
    least, most = min(values) / 2, max(values)
    axis.set(xscale="log", xlim=(least, most * (most / least) ** 0.5), xlabel="All boxes (ms)")
    axis.set_title(f"{human(ARENA_WORKLOADS, key.workload)}\nn = {key.n}", fontsize=7, fontweight="normal")
    style.plain_log(axis.xaxis, narrow=True)
    bars.plain(axis)


def bound_share(frame: Frame) -> Figure:
    """Draw how near to the write bound each method with the same answer comes, one row per GPU: VisDrone beside boxes
    of one size, a group of bars per number of boxes."""
    drawn = {view: [_shares(view, workload) for workload in _DRAWN] for view in views(frame, STUDY)}
    drawn = {view: shares for view, shares in drawn.items() if any(shares)}
    if not drawn:
        return style.empty(NO_GPU)
    result, axes = style.new_figure(0.9 + 2.1 * len(drawn), len(drawn), len(_DRAWN), sharey="row")
    for row, (view, pair) in zip(axes, drawn.items(), strict=True):
        for axis, workload, shares in zip(row, _DRAWN, pair, strict=True):
            _bound_share(axis, shares)
            axis.set_title(f"{view.name}: {human(ARENA_WORKLOADS, workload)}")
        row[0].set_ylabel("Share of the write bound (%)")
    style.bottom_legend(list(axes.flat), 4, fontsize=7)
    return result


def _shares(view: View, workload: str) -> dict[str, list[Number]]:
    """Return the shares of each method with the same answer, by count; each against the bound of its own type."""
    shares: dict[str, list[Number]] = {}
    for method, times in with_time(view, *comparisons(view, workload, "device")).items():
        keys = [time.key.derive("share", bound_of(method)) for time in times if not time.differs]
        if known := [share for key in keys if (share := view.get(key))]:
            shares[method] = known
    return shares


def _bound_share(axis: Axes, shares: dict[str, list[Number]]) -> None:
    counts = sorted({share.n for known in shares.values() for share in known})
    width = 0.8 / max(1, len(shares))
    text = {"ha": "center", "va": "bottom", "fontsize": 6, "bbox": style.BEHIND}
    for index, (method, known) in enumerate(shares.items()):  # the first, Octopus, has labels
        places = [counts.index(share.n) + width * (index - (len(shares) - 1) / 2) for share in known]
        axis.bar(
            places,
            [100 * share.value for share in known],
            width=0.92 * width,
            yerr=style.errors(known, 100),
            color=METHOD_COLORS.get(method, GREY),
            label=human(ARENA_METHODS, method),
            error_kw={"elinewidth": 0.8, "capsize": 1.2},
        )
        for at, share in zip(places, known if index == 0 else (), strict=False):
            end, digits = (at, 100 * bars.end_of(share)), significant(100 * share.value, 2)
            axis.annotate(digits, end, (0, 2), textcoords="offset points", **text)
    axis.axhline(100, color=GREY, linewidth=0.8, linestyle=":")
    axis.set_xticks(range(len(counts)), [f"n = {n}" for n in counts])
    highest = max((100 * share.value for known in shares.values() for share in known), default=0)
    axis.set_ylim(0, max(112.0, 1.12 * highest))
    axis.grid(axis="x", visible=False)


_ON_GPUS = footer(STUDY, "device", "Nothing was measured on a GPU.")


def _synthetic(frame: Frame) -> bool:
    """Say whether a GPU that is drawn was given generated boxes."""
    drawn = [view for view in views(frame, STUDY) if any(shown(view, name, "device") for name in _DRAWN)]
    return any(view.fact("synthetic") == "yes" for view in drawn)


REPORT = StudyReport(
    numbers=(measured.padded_float32, metadata, further_speedups, bound_shares, best_baselines),
    of_all=(memory_ratios, transfer_shares),
    tables={
        "arena": ON_GPUS,
        "arena_cpu": ON_CPUS,
        "arena_ladder": LADDER,
        "arena_submit": CALLS,
        "arena_memory": MEMORY,
    },
    figures={
        "arena_device": Chart(device, captions.FIGURES["arena_device"], footer=_ON_GPUS, synthetic=_synthetic),
        "arena_bound_share": Chart(
            bound_share, captions.FIGURES["arena_bound_share"], footer=_ON_GPUS, synthetic=_synthetic
        ),
    },
)
