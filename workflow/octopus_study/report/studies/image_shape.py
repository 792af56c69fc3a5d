"""Shapes of images: how memory grows with the width, why it jumps between the published widths, and which patches cover
an image soonest.

Why memory jumps is told by rule. ``four quadrants``: images are split exactly at the widths that are no multiple of 8,
running the split one whole raises the peak, splitting the whole one lowers it, and cuDNN's benchmark mode on or off
changes the peak by less than that. ``cuDNN heuristics``: benchmark mode changes the peak by more than splitting does,
and neither running whole raises nor splitting lowers it. ``undecided``: anything else.
"""

import math
import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, Self

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.measure.line import slope
from octopus_study.measure.statistics import EQUAL_WITHIN, Interval, ratio_interval
from octopus_study.names import AGAIN, DENOISERS, PATCH_TEXT, SHAPE_WAYS, TILE_SPREADS, WORKING_SETS, facts
from octopus_study.names import AS_PUBLISHED as PUBLISHED
from octopus_study.names import DRUNET_MULTIPLE as MULTIPLE
from octopus_study.report import captions
from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import BLACK, GREY, LIGHT, SHAPE_COLORS
from octopus_study.report.frame import Frame, Key, Number, Source, make_number, make_text, published
from octopus_study.report.measured import floor_of
from octopus_study.report.missing import footer, measured_runs, no_run, with_reasons
from octopus_study.report.runs import DataFrame, Run
from octopus_study.report.samples import groups, paired, pivot
from octopus_study.report.selector import either
from octopus_study.report.study import Chart, StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.spec import Spec
from octopus_study.report.tables.writers import MISSING
from octopus_study.report.view import View, views
from octopus_study.units import significant

STUDY = "image_shape"
MODEL = "drunet"  # the only one that splits, of which the published jump is
PEAK, SPLITS = "allocated_peak", "split_calls"
# The published jump: a width that is split, and the next one, which runs whole.
JUMP = (1228, 1296)
WORKLOAD = f"{MODEL}-interventions"
_NO_MEMORY = "No run of the study image_shape that is shown ran a model on a GPU."
_PATCH = re.compile(r"(\d+)x(\d+)")
_GIB = 2.0**30
_WAY = 0.19  # inches
no_memory = partial(with_reasons, study=STUDY, sentence=_NO_MEMORY)
SPREAD, SETS = f"{MODEL}-spread", f"{MODEL}-working-set"
NEAR, BEYOND = "nearly-l2", 2  # the base of the comparison; times the L2, from which a set is beyond it
CUDNN, WITHOUT = ("cudnn-benchmark", "cudnn-no-benchmark"), "no-cudnn"
QUADRANTS, HEURISTICS, UNDECIDED = "four quadrants", "cuDNN heuristics", "undecided"
_LEAST = math.log1p(EQUAL_WITHIN)  # what a split changes at least, so that nothing is divided by nothing
_LEAST_WIDTHS = 3  # a line through two points says nothing


class Patch(NamedTuple):
    """How an image is covered."""

    side: int
    batch: int

    @classmethod
    def of(cls, method: str) -> Self | None:
        """Return what a method's name in rows says; None where it names no patches."""
        match = _PATCH.fullmatch(method)
        return cls(int(match[1]), int(match[2])) if match else None

    @property
    def method(self) -> str:
        """Its name in rows."""
        return f"{self.side}x{self.batch}"

    @property
    def text(self) -> str:
        """Its name for readers: batch and sides."""
        return PATCH_TEXT.format(batch=self.batch, side=self.side)


BEST = Patch(128, 16)  # published as the best


def patches(view: View, model: str) -> dict[Patch, Number]:
    """Return the time to cover the image by patch, side by side."""
    numbers = view.select(workload=f"{model}-patches", quantity="cover")
    pairs = ((Patch.of(number.method), number) for number in numbers if number.known)
    return dict(sorted((patch, number) for patch, number in pairs if patch))


def steps(view: View, model: str) -> list[int]:
    """Return the distances between widths at which a machine knows the peaks of a model, ascending."""
    parts = (key.workload.partition("-step") for key in view.cases(PUBLISHED, PEAK))
    return sorted({int(step) for name, _, step in parts if name == model and step})


def widths_of(view: View, workload: str) -> list[Key]:
    """Return the keys of the peaks at the widths at which they are known, ascending."""
    keys = (key for key in view.cases(PUBLISHED, PEAK) if key.workload == workload)
    return sorted(keys, key=lambda key: key.n or 0)


class Step(NamedTuple):
    """What one model shows at the widths of one step: bytes and splits by width."""

    model: str
    name: str
    source: Source
    peaks: dict[int, float]
    splits: dict[int, float]


def _steps(run: Run) -> Iterator[Step]:
    for workload, rows in run.rows.groupby("workload", sort=False):
        of = facts(STUDY, str(workload))
        if of.operation.startswith("step"):
            source = run.from_rows(rows["dataset"].iloc[0], f"workload={workload}, method={PUBLISHED}")
            yield Step(of.model, of.operation, source, *(_by_width(rows, name) for name in (PEAK, SPLITS)))


def _by_width(rows: DataFrame, quantity: str, method: str = PUBLISHED) -> dict[int, float]:
    chosen = rows[(rows["quantity"] == quantity) & (rows["method"] == method) & rows["value"].notna()]
    return {int(n): float(value) for n, value in chosen.groupby("n")["value"].median().items()}


def widths(run: Run) -> Iterator[Number]:
    """Yield at how many widths the image was split, how well a line through the peaks explains them (of all widths, and
    of each kind where there are both), DRUNet's peaks at the published widths, and by how much it grows between them,
    as published and where nothing of cuDNN can be the cause."""
    for step in _steps(run):
        yield from _splits(run, step)
        for subset in ("all", "whole", "split"):
            peaks = {
                width: value
                for width, value in step.peaks.items()
                if subset == "all" or (step.splits.get(width, 0) > 0) == (subset == "split")
            }
            if len(peaks) >= _LEAST_WIDTHS and (subset == "all" or len(peaks) < len(step.peaks)):
                key = run.key(f"linearity.{step.model}.{step.name}", method=subset, quantity="r2")
                r2 = slope(list(peaks), list(peaks.values())).r2
                note = f"line of Theil and Sen through {len(peaks)} widths"
                yield make_number(key, step.source, "fraction", r2, note=note)
        if step.model == MODEL:
            for width in set(JUMP) & set(step.peaks):
                key, value = run.key("peak", method=MODEL, quantity=f"w{width}"), step.peaks[width] / 1e9
                yield make_number(key, step.source, "GB", value, note=f"{PEAK} at this width")
            yield from _jump(run.key("jump", method=MODEL), step.source, step.peaks)
    rows = run.rows[run.rows["workload"] == WORKLOAD]
    if len(rows):
        source = run.from_rows(rows["dataset"].iloc[0], f"workload={WORKLOAD}, method={WITHOUT}")
        yield from _jump(run.key("jump_without_cudnn", method=MODEL), source, _by_width(rows, PEAK, WITHOUT))


def _splits(run: Run, step: Step) -> Iterator[Number]:
    """Yield in words at how many widths of each kind the image was split."""
    odd = [count > 0 for width, count in step.splits.items() if width % MULTIPLE]
    even = [count > 0 for width, count in step.splits.items() if not width % MULTIPLE]
    if odd:
        text = f"{sum(odd)} of {len(odd)} widths that are no multiple of {MULTIPLE}"
        text += f" and {sum(even)} of {len(even)} that are"
        key = run.key("splits", method=step.model, quantity=step.name)
        yield make_text(key, step.source, text, f"{SPLITS} > 0 by width")


def _jump(key: Key, source: Source, peaks: dict[int, float]) -> Iterator[Number]:
    if set(JUMP) <= set(peaks):
        note = f"{PEAK} at {JUMP[1]} / at {JUMP[0]}"
        yield make_number(key, source, "ratio", peaks[JUMP[1]] / peaks[JUMP[0]], note=note)


def causes(run: Run) -> Iterator[Number]:
    """Yield the peak of the split image run whole, that of the whole one split, both over those as published, the
    change by cuDNN's benchmark mode over that by the split, and the verdict."""
    peaks: dict[tuple[str, int], float] = {}
    for group, rows in groups(run, workload=WORKLOAD, quantity=PEAK, layer="memory"):
        medians = rows.dropna(subset="value").groupby("method")["value"].median()
        if base := medians.get(PUBLISHED):
            peaks |= {(way, int(group.n)): float(medians[way] / base) for way in SHAPE_WAYS if way in medians}
    padded = next((value for (way, n), value in peaks.items() if way == "padded-whole" and n % MULTIPLE), None)
    forced = next((value for (way, n), value in peaks.items() if way == "forced-split" and not n % MULTIPLE), None)
    split = [abs(math.log(ratio)) for ratio in (padded, forced) if ratio]
    cudnn = [abs(math.log(ratio)) for (way, _), ratio in peaks.items() if way in CUDNN]
    over = max(cudnn) / max(*split, _LEAST) if cudnn and split else None
    moved = "greatest |log ratio| of the peak with benchmark on or off / with the split on or off"
    selector, source = f"workload={WORKLOAD}, quantity={PEAK}, layer=memory", None
    for name, value in (("padded", padded), ("forced", forced), ("cudnn_over_split", over)):
        if value is not None:
            dataset = run.rows.loc[run.rows["workload"] == WORKLOAD, "dataset"].iloc[0]
            source = run.from_rows(dataset, selector)
            note = moved if name == "cudnn_over_split" else f"peak / peak {PUBLISHED}"
            yield make_number(run.key("cause", method=MODEL, quantity=name), source, "ratio", value, note=note)
    if source and padded and forced and over is not None:
        text = verdict(_splits_as_expected(run), padded, forced, over)
        chosen = either([selector, f"workload={MODEL}-step*, quantity={SPLITS}"])
        key = run.key("cause", method=MODEL, quantity="verdict")
        yield make_text(key, source._replace(selector=chosen), text, "by rule")


def verdict(as_expected: bool, padded: float, forced: float, over: float) -> str:
    """Return what memory follows, by rule. `as_expected`: images were split exactly where a side is no multiple of 8.
    `padded` and `forced`: the peak of the split image run whole, and of the whole image split, over the peak as
    published. `over`: the change of the peak by cuDNN's benchmark mode over that by the split, as logarithms of
    ratios."""
    raises, lowers = padded > 1 + EQUAL_WITHIN, forced < 1 / (1 + EQUAL_WITHIN)
    if as_expected and raises and lowers and over < 1:
        return QUADRANTS
    return HEURISTICS if over > 1 and not raises and not lowers else UNDECIDED


def _splits_as_expected(run: Run) -> bool:
    """Say whether the model was split exactly at the widths that are no multiple of 8, in every step."""
    counts = [item for step in _steps(run) if step.model == MODEL for item in step.splits.items()]
    return bool(counts) and all((count > 0) == (width % MULTIPLE != 0) for width, count in counts)


def covers(run: Run) -> Iterator[Number]:
    """Yield gains of batches, side by side, the noise floor, and the best of all patches; and the least growth of the
    memory from one batch to the next."""
    for group, rows in groups(run, quantity="cover"):
        table, source = pivot(rows), group.rows_of(run)
        key = run.key(f"patches.{facts(STUDY, group.workload).model}")
        for again in (str(name) for name in table if str(name).endswith(AGAIN)):
            floor = floor_of(table, again.removesuffix(AGAIN))
            if floor == floor:
                note = f"against {again}"
                yield make_number(key.but(quantity="noise_floor"), source, "fraction", floor, note=note)
        timed = [patch for name in table if (patch := Patch.of(str(name)))]
        ranked = sorted(timed, key=lambda patch: table[patch.method].median())
        if ranked:
            note = "least median time to cover the image"
            yield make_text(key.but(quantity="best"), source, ranked[0].text, note)
        for method, quantity, ratio, note in _gains(table, ranked):
            yield make_number(key.but(method=method, quantity=quantity), source, "ratio", *ratio, note=note)
    for group, rows in groups(run, quantity="batch_peak", layer="memory"):
        medians = rows.dropna(subset="value").groupby("method")["value"].median()
        peaks = {patch: float(value) for name, value in medians.items() if (patch := Patch.of(str(name)))}
        if steps := [peaks[large] / peaks[small] for small, large in _doublings(peaks)]:
            key = run.key(f"patches.{facts(STUDY, group.workload).model}", quantity="memory_batch")
            note = "least of a batch / the next smaller one, over all sides"
            yield make_number(key, group.rows_of(run), "ratio", min(steps), note=note)


def spreads(run: Run) -> Iterator[Number]:
    """Yield the peak of each way to spread one image, on its first GPU, over that of one GPU as published."""
    for group, rows in groups(run, workload=SPREAD, quantity=PEAK, layer="memory"):
        peaks = rows.dropna(subset="value").groupby("method")["value"].median()
        for way in (*SHAPE_WAYS, *TILE_SPREADS):
            if way in peaks and PUBLISHED in peaks and way != PUBLISHED:
                key = run.key("spread", method=way, quantity="over_one_gpu")
                note = f"{PEAK} of the first GPU / that of one GPU, {PUBLISHED}"
                yield make_number(key, group.rows_of(run), "ratio", peaks[way] / peaks[PUBLISHED], note=note)


def working_sets(run: Run) -> Iterator[Number]:
    """Yield the pixels per second of each working set, and the time per pixel of the greatest one, where it is at least
    twice the L2, over the least of those that the L2 holds, with the noise floor."""
    for group, rows in groups(run, workload=SETS, quantity="convolutions"):
        table, source = pivot(rows), run.from_rows(group.dataset, f"workload={SETS}")
        other = run.rows[(run.rows["workload"] == SETS) & run.rows["value"].notna()]
        pixels, sets, cache = (other[other["quantity"] == name].set_index("method")["value"]
                               for name in ("pixels", "working_set", "cache"))  # fmt: skip
        timed = [name for name in WORKING_SETS if name in table and name in pixels and name in sets]
        for name in timed:
            key = run.key(SETS, group.n, name, quantity="throughput")
            note = "pixels of all convolutions / median time"
            yield make_number(key, source, "1/s", pixels[name] / table[name].median() * 1e3, note=note)
        inside = [name for name in timed if len(cache) and sets[name] <= cache.iloc[0]]
        outside = [name for name in timed if len(cache) and sets[name] >= BEYOND * cache.iloc[0]]
        if inside and outside:
            best = min(inside, key=lambda name: table[name].median() / pixels[name])
            far = max(outside, key=lambda name: sets[name])
            both = paired(table, far, best)
            ratio = ratio_interval(both[far] / pixels[far], both[best] / pixels[best])
            key, note = run.key("l2", method=MODEL, quantity="slowdown"), f"time per pixel: {far} / {best}"
            yield make_number(key, source, "ratio", *ratio, note=note)
            key = key.but(quantity="noise_floor")
            yield make_number(key, source, "fraction", floor_of(table, NEAR), note=f"of {NEAR} against itself")


def _doublings(known) -> list[tuple[Patch, Patch]]:
    """Return each batch with the next larger one of the same side."""
    return [(small, large) for small, large in pairwise(sorted(known)) if small.side == large.side]


def _gains(table: DataFrame, ranked: list[Patch]) -> Iterator[tuple[str, str, Interval, str]]:
    """Yield what larger batches gain: method, quantity, ratio of times and note."""

    def ratio(top: Patch, bottom: Patch) -> Interval | None:
        both = paired(table, top.method, bottom.method)
        return ratio_interval(both[top.method], both[bottom.method]) if len(both) else None

    for side in sorted({patch.side for patch in ranked}):
        of_side = sorted(patch for patch in ranked if patch.side == side)
        pairs = {"gain": (of_side[0], of_side[-1]), "last_doubling": tuple(of_side[-2:])}
        for name, (small, large) in pairs.items() if len(of_side) > 1 else ():
            if found := ratio(small, large):
                yield f"side{side}", name, found, f"time of batch {small.batch} / of batch {large.batch}"
    steps = [(found, large) for small, large in _doublings(ranked) if (found := ratio(small, large))]
    if steps:
        least, patch = min(steps, key=lambda step: step[0].value)
        yield "", "least_gain", least, f"least time with the next smaller batch / time: {patch.text}"
    other = next((patch for patch in ranked if patch != BEST), None)
    if BEST in ranked and other and (found := ratio(BEST, other)):
        yield "", "published_best", found, f"time of {BEST.text} / of {other.text}, the fastest other"


def _absent(frame: Frame) -> str:
    why = no_memory(frame) if frame.shown(STUDY) else no_run(STUDY)
    return f"Memory of image models by the width of the image. {why}"


def _ways(view: View) -> Iterator[Key | str]:
    found = view.text(view.key("cause", method=MODEL, quantity="verdict"), "no verdict")
    for key in widths_of(view, WORKLOAD):
        yield f"{view.title}: {DENOISERS[MODEL]}, width {key.n}; verdict: {found}"
        yield from (key.but(method=way) for way in SHAPE_WAYS)
    for key in widths_of(view, SPREAD):
        yield f"{view.title}: {DENOISERS[MODEL]}, one image, width {key.n}"
        yield from (key.but(method=way) for way in (PUBLISHED, "padded-whole", *TILE_SPREADS))


CAUSE = Spec(
    study=STUDY,
    first="Way",
    label=lambda view, key: (
        f"{(SHAPE_WAYS | TILE_SPREADS)[key.method]}{cells.different_mark(view.get(key), view.reasons)}"
    ),
    cases=_ways,
    columns=lambda frame: [
        ("Splits", cells.text(quantity=SPLITS, layer="deterministic")),
        ("Allocated", cells.fact(quantity=PEAK, layer="memory")),
        ("Allocated, first", cells.text(quantity="first_allocated_peak", layer="memory")),
        ("Reserved", cells.text(quantity="reserved_peak", layer="memory")),
        ("Device", cells.text(quantity="device_delta", layer="memory")),
        ("Forward", cells.text(quantity="forward", layer="device")),
        ("GPU 1", cells.text(quantity="allocated_peak_gpu1", layer="memory")),
    ],
    title=lambda view: "",
    caption=captions.TABLES["shape_cause"].format(multiple=MULTIPLE),
    absent=_absent,
    widths=("1.6fr", *("1fr",) * 7),
)
L2 = Spec(
    study=STUDY,
    first="Input and output",
    label=lambda view, key: WORKING_SETS[key.method],
    cases=lambda view: [key for name in WORKING_SETS for key in view.cases(name, "convolutions")],
    columns=lambda frame: [
        ("Bytes", cells.text(quantity="working_set", layer="memory")),
        ("Time", cells.text()),
        ("Pixels", cells.text(quantity="throughput", layer="")),
    ],
    title=lambda view: "; L2 ".join((view.title, *map(view.text, view.cases("l2", "cache")))),
    caption=captions.TABLES["shape_l2"].format(model=DENOISERS[MODEL]),
    absent=_absent,
)


def _sides(view: View) -> Iterator[Key]:
    for model in DENOISERS:
        for side in sorted({patch.side for patch in patches(view, model)}):
            yield view.key(f"patches.{model}", method=f"side{side}")


def _side(key: Key) -> tuple[str, int]:
    return key.workload.removeprefix("patches."), int(key.method.removeprefix("side"))


def _time(batch: int) -> cells.Cell:
    def text(view: View, key: Key) -> str:
        model, side = _side(key)
        number = patches(view, model).get(Patch(side, batch))
        return number.text if number else MISSING

    return text


def _of_model(quantity: str) -> cells.Cell:
    """Say what a model has once, beside its smallest side."""

    def text(view: View, key: Key) -> str:
        first = next(one for one in _sides(view) if one.workload == key.workload)
        return view.text(key.but(method="", quantity=quantity), MISSING) if key == first else ""

    return text


def _columns(frame: Frame) -> list[tuple[str, cells.Cell]]:
    timed = [patches(view, model) for view in views(frame, STUDY) for model in DENOISERS]
    batches = sorted({patch.batch for patches in timed for patch in patches})
    return [
        *((f"Batch {batch}", _time(batch)) for batch in batches),
        ("Gain", cells.interval(quantity="gain")),
        ("Last doubling", cells.interval(quantity="last_doubling")),
        ("Floor", _of_model("noise_floor")),
        ("Best", _of_model("best")),
    ]


PATCHES = Spec(
    study=STUDY,
    first="Model, side",
    label=lambda view, key: f"{DENOISERS[_side(key)[0]]}, {_side(key)[1]} px",
    cases=_sides,
    columns=_columns,
    caption=captions.TABLES["shape_patches"],
    absent=_absent,
)


def draw_memory(frame: Frame) -> Figure:
    """Draw a row of panels per machine, a panel per model; below it the peaks under each intervention."""
    models = {view: [model for model in DENOISERS if steps(view, model)] for view in views(frame, STUDY)}
    shown = [view for view, known in models.items() if known]
    if not shown:
        return style.empty(no_memory(frame))
    heights: list[float] = []
    for view in shown:
        heights += [2.35, *[0.75 + _WAY * len(SHAPE_WAYS)] * bool(widths_of(view, WORKLOAD))]
    result, parts, legend = style.stacked(heights, 0.4)
    rest, drawn = iter(parts), []
    for view in shown:
        part = next(rest)
        style.heading(part, view.name)
        axes = part.subplots(1, len(models[view]), squeeze=False, sharey=True)[0]
        for axis, model in zip(axes, models[view], strict=True):
            _memory(axis, view, model)
        axes[0].set_ylabel("Peak of a forward (GiB)")
        axes[0].set_ylim(bottom=0)  # of all panels, once all are drawn: a limit ends the scaling
        drawn += list(axes)
        if keys := widths_of(view, WORKLOAD):
            _interventions(next(rest), view, keys)
    style.legend_of(legend, drawn, 4)
    return result


def _is_split(view: View, key: Key) -> bool:
    """Say whether a forward split the image."""
    return view.frame.value(key.but(quantity=SPLITS, layer="deterministic")) > 0


def _memory(axis: Axes, view: View, model: str) -> None:
    """Draw the peaks of both steps: those of split widths apart, where there are some."""
    for step in steps(view, model):
        keys = widths_of(view, f"{model}-step{step}")
        split = [key for key in keys if _is_split(view, key)]
        whole = [key for key in keys if key not in split]
        if step % MULTIPLE == 0:
            _line(axis, view, whole, SHAPE_COLORS["step64"], "o", f"Step {step}", "-")
        else:
            axis.plot(*_points(view, keys), color=LIGHT, linewidth=0.8, zorder=1)
            _line(axis, view, whole, SHAPE_COLORS["whole"], "s", f"Step {step}, run whole")
            _line(axis, view, split, SHAPE_COLORS["split"], "D", f"Step {step}, split in quadrants")
    if model == MODEL:  # hollow: the published values
        numbers = {width: view.get(published(STUDY, f"{MODEL}-{width}", "memory")) for width in JUMP}
        points = {width: number.value * 1e9 / _GIB for width, number in numbers.items() if number}
        look = {"color": BLACK, "markerfacecolor": "white", "markersize": 8, "zorder": 4}
        axis.plot(list(points), list(points.values()), "*", **look, label="DRUNet, published")
    axis.set_title(DENOISERS[model], fontsize=8, fontweight="normal")
    axis.set_xlabel("Width (px)")


def _points(view: View, keys: Sequence[Key]) -> tuple[list[int], list[float]]:
    return [key.n for key in keys], [view.frame.value(key) / _GIB for key in keys]


def _line(axis: Axes, view: View, keys: list[Key], color: str, marker: str, label: str, line: str = "") -> None:
    if keys:
        look = {"color": color, "marker": marker, "linestyle": line, "linewidth": 1.0}
        axis.plot(*_points(view, keys), **look, markersize=3.6, label=label)


def _interventions(part: Any, view: View, keys: list[Key]) -> None:
    """Draw the peak under each intervention at both widths, with its ratio to the one as published."""
    axes = part.subplots(1, len(keys), squeeze=False, sharey=True, sharex=True)[0]
    farthest = 0.0
    for axis, key in zip(axes, keys, strict=True):
        base = view.frame.value(key)
        for place, way in enumerate(SHAPE_WAYS):
            peak = view.frame.value(key.but(method=way))
            if peak == peak:
                farthest = max(farthest, peak / _GIB)
                color = SHAPE_COLORS["split" if _is_split(view, key.but(method=way)) else "whole"]
                axis.barh(place, peak / _GIB, height=0.72, color=color)
                ratio = "" if way == PUBLISHED else f", {significant(peak / base)}\u00d7"
                bars.beside(axis, place, peak / _GIB, f"{significant(peak / _GIB)}{ratio}", gap=3)
            else:
                bars.beside(axis, place, 0, "not measured", color=GREY)
        remainder = key.n % MULTIPLE
        kind = f"{MULTIPLE} \u00d7 {key.n // MULTIPLE}" + (f" + {remainder}" if remainder else "")
        axis.set_title(f"{DENOISERS[MODEL]}, width {key.n} = {kind}", fontsize=8, fontweight="normal")
        axis.set_xlabel("Peak of a forward (GiB)")
        bars.plain(axis)
    bars.names(axes[0], list(SHAPE_WAYS.values()), edge=0.45, fontsize=7)
    axes[0].set_xlim(0, 1.4 * farthest)


REPORT = StudyReport(
    numbers=(widths, causes, covers, spreads, working_sets),
    of_runs=(measured_runs,),
    tables={"shape_cause": CAUSE, "shape_l2": L2, "shape_patches": PATCHES},
    figures={
        "image_shape_memory": Chart(
            draw_memory, captions.FIGURES["image_shape_memory"], footer=footer(STUDY, "measured")
        )
    },
)
