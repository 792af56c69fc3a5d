"""Why memory jumps with the width: the peak under each intervention, and the verdict that follows by rule.

``four quadrants``: images are split exactly at the widths that are no multiple of 8, running the split one whole raises
the peak, splitting the whole one lowers it, and cuDNN's benchmark mode on or off changes the peak by less than that.
``cuDNN heuristics``: benchmark mode changes the peak by more than splitting does, and neither running whole raises nor
splitting lowers it. ``undecided``: anything else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from octopus_study.measure.statistics import EQUAL_WITHIN
from octopus_study.names import AS_PUBLISHED as PUBLISHED
from octopus_study.names import DRUNET_MULTIPLE as MULTIPLE
from octopus_study.names import SHAPE_WAYS
from octopus_study.report.frame import Number, make_number, make_text
from octopus_study.report.runs import Run
from octopus_study.report.samples import Group, groups
from octopus_study.report.selector import either
from octopus_study.report.studies import image_shape_view as shape

FIRST = "first_allocated_peak"
CUDNN = ("cudnn-benchmark", "cudnn-no-benchmark")
WITHOUT = "no-cudnn"
QUADRANTS, HEURISTICS, UNDECIDED = "four quadrants", "cuDNN heuristics", "undecided"
_LEAST = math.log1p(EQUAL_WITHIN)  # what a split changes at least, so that nothing is divided by nothing

Ratios = dict[tuple[str, int], float]


def _changes(run: Run, quantity: str) -> Iterator[tuple[Group, dict[str, float]]]:
    """Yield each width of the interventions with a quantity of each way over that as published."""
    workload = f"{shape.MODEL}{shape.INTERVENTIONS}"
    for group, rows in groups(run, workload=workload, quantity=quantity, layer="memory"):
        medians = rows.dropna(subset="value").groupby("method")["value"].median()
        if base := medians.get(PUBLISHED):
            ways = (way for way in SHAPE_WAYS if way in medians and way != PUBLISHED)
            yield group, {way: float(medians[way] / base) for way in ways}


def interventions(run: Run) -> Iterator[Number]:
    """Yield the peak under each intervention over that as published."""
    for group, ratios in _changes(run, shape.PEAK):
        for way, ratio in ratios.items():
            key = run.key(f"interventions.{shape.MODEL}.w{group.n}", method=way, quantity=shape.PEAK)
            yield make_number(key, group.rows_of(run), "ratio", ratio, note=f"{way} / {PUBLISHED}")


def causes(run: Run) -> Iterator[Number]:
    """Yield what each side of the question rests on, and the verdict."""
    peaks, first = (
        {(way, int(group.n)): ratio for group, ratios in _changes(run, name) for way, ratio in ratios.items()}
        for name in (shape.PEAK, FIRST)
    )
    workload = f"{shape.MODEL}{shape.INTERVENTIONS}"
    yield from _first_forward(run, workload)
    if not peaks:
        return
    dataset = run.rows.loc[run.rows["workload"] == workload, "dataset"].iloc[0]
    for name, (value, note) in _grounds(peaks, first).items():
        needed = f"{shape.PEAK} and {FIRST}" if name == "first_forward" else shape.PEAK
        source = run.from_rows(dataset, f"workload={workload}, quantity={needed}, layer=memory")
        key = run.key("cause", method=shape.MODEL, quantity=name)
        yield make_number(key, source, "ratio", value, note=note)
    padded, forced, over = _sides(peaks)
    if padded and forced and over is not None:
        text = verdict(_splits_as_expected(run), padded, forced, over)
        peaks_rows = f"workload={workload}, quantity={shape.PEAK}, layer=memory"
        splits = f"workload={shape.MODEL}-step*, quantity={shape.SPLITS}"
        source = run.from_rows(dataset, either([peaks_rows, splits]))
        yield make_text(run.key("cause", method=shape.MODEL, quantity="verdict"), source, text, "by rule")


def _first_forward(run: Run, workload: str) -> Iterator[Number]:
    """Yield what a first forward takes at most where cuDNN tries its algorithms out, and where nobody told it to."""
    rows = run.rows[(run.rows["workload"] == workload) & (run.rows["quantity"] == FIRST)]
    known = rows.dropna(subset="value")
    for name, ways in (("searched", CUDNN[:1]), ("unsearched", CUDNN[1:])):
        chosen = known[known["method"].isin(ways)]
        if len(chosen):
            key = run.key("first_forward", method=shape.MODEL, quantity=name)
            rows_of = f"workload={workload}, quantity={FIRST}, method={ways[0]}"
            source = run.from_rows(chosen["dataset"].iat[0], rows_of)
            value, note = float(chosen["value"].max()) / shape.GIGABYTE, "greatest of its widths"
            yield make_number(key, source, "GB", value, note=note)


def _grounds(peaks: Ratios, first: Ratios) -> dict[str, tuple[float, str]]:
    """Return the ratios with what they are of; those that were not measured are left out."""
    padded, forced, over = _sides(peaks)
    published = f"peak / peak {PUBLISHED}"
    moved = "greatest |log ratio| of the peak with benchmark on or off / with the split on or off"
    grounds = {
        "padded": (padded, published),
        "forced": (forced, published),
        "cudnn_over_split": (over, moved),
        "without_cudnn": (_greatest(peaks, (WITHOUT,)), f"{WITHOUT}: greatest {published}"),
        "first_forward": (
            _greatest(first, CUDNN),
            f"greatest {FIRST} / {FIRST} {PUBLISHED}: {', '.join(CUDNN)}",
        ),
    }
    return {name: (value, note) for name, (value, note) in grounds.items() if value is not None}


def _greatest(ratios: Ratios, ways: tuple[str, ...]) -> float | None:
    return max((ratio for (way, _), ratio in ratios.items() if way in ways), default=None)


def _sides(peaks: Ratios) -> tuple[float | None, float | None, float | None]:
    """Return the peak of the split image run whole, that of the whole one split, both over those as published, and the
    change by cuDNN's benchmark mode over that by the split."""
    padded, forced = _at(peaks, "padded-whole", multiple=False), _at(peaks, "forced-split", multiple=True)
    split = [abs(math.log(ratio)) for ratio in (padded, forced) if ratio]
    cudnn = [abs(math.log(ratio)) for (way, _), ratio in peaks.items() if way in CUDNN]
    return padded, forced, max(cudnn) / max(*split, _LEAST) if cudnn and split else None


def _at(peaks: Ratios, way: str, multiple: bool) -> float | None:
    """Return a way's ratio at the width that is, or is not, a multiple of 8."""
    ratios = (ratio for (name, n), ratio in peaks.items() if name == way and (n % MULTIPLE == 0) == multiple)
    return next(ratios, None)


def verdict(as_expected: bool, padded: float, forced: float, over: float) -> str:
    """Return what memory follows, by rule.

    Parameters
    ----------
    as_expected : bool
        Whether images were split exactly where a side is no multiple of 8.
    padded, forced : float
        Peak of the split image run whole, and of the whole image split, over the peak as published.
    over : float
        Change of the peak by cuDNN's benchmark mode over that by the split, as logarithms of ratios.
    """
    raises, lowers = padded > 1 + EQUAL_WITHIN, forced < 1 / (1 + EQUAL_WITHIN)
    if as_expected and raises and lowers and over < 1:
        return QUADRANTS
    return HEURISTICS if over > 1 and not raises and not lowers else UNDECIDED


def _splits_as_expected(run: Run) -> bool:
    """Say whether the model was split exactly at the widths that are no multiple of 8, in every step."""
    rows = run.rows[run.rows["workload"].str.startswith(f"{shape.MODEL}-step") & run.rows["value"].notna()]
    rows = rows[rows["quantity"] == shape.SPLITS]
    return bool(len(rows)) and bool(((rows["value"] > 0) == (rows["n"] % MULTIPLE != 0)).all())
