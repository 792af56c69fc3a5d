"""What every study gets: the median of every group of rows with its interval, and ratios of methods, paired per block,
with their verdicts and the noise floor."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from octopus_study.measure import statistics
from octopus_study.names import AGAIN, ARENA_METHODS, BOUND, CROP_METHODS, PUBLISHED_PAIR, ROOF, SUBJECT, human
from octopus_study.report.frame import Key, Number, Source, make_absent, make_number, make_text
from octopus_study.report.runs import DataFrame, Run
from octopus_study.report.samples import Group, aligned, groups, pivot
from octopus_study.report.selector import where
from octopus_study.report.study import StudyReport
from octopus_study.report.text import range_text
from octopus_study.status import Answer, MethodStatus

_DISCARDED = "discarded_blocks"
_OPENCV = {row.name for row in CROP_METHODS if row.library == "OpenCV"}
# Which of Octopus' methods gives a method's answer, where it isn't the usual one.
LIKE = {row.name: row.like for row in CROP_METHODS if row.like != SUBJECT}


def medians(run: Run, report: StudyReport) -> Iterator[Number]:
    """Yield the median of every method in every group, its value per object where that is shown, and the blocks that
    the run discarded."""
    for group, rows in groups(run):
        if not {group.quantity, group.layer} & {*report.indexed, _DISCARDED}:
            # By hand: there are thousands of groups, and pandas' own choosing of rows takes a quarter of a report.
            methods, blocks, values, units = (rows[name].to_numpy() for name in ("method", "block", "value", "unit"))
            wrong = _is_wrong(rows)
            for method in dict.fromkeys(methods):
                chosen = methods == method
                unit, answer = units[chosen.argmax()], _said(rows, chosen & wrong)
                places = np.flatnonzero(chosen & ~np.isnan(values))
                places = places[np.argsort(blocks[places], kind="stable")]
                yield from _median(run, report, group, str(method), unit, answer, values[places], blocks[places])
    yield from _discarded(run)


def worst_answer(rows: DataFrame) -> Answer | None:
    """Return what the rows of a method say of its answer where that is different or unavailable: the first, where
    processes say several things; else None."""
    return _said(rows, _is_wrong(rows))


def _is_wrong(rows: DataFrame) -> NDArray[np.bool_]:
    status = rows["status"].to_numpy()
    return (status == MethodStatus.DIFFERENT) | (status == MethodStatus.UNAVAILABLE)


def _said(rows: DataFrame, wrong: NDArray[np.bool_]) -> Answer | None:
    if not wrong.any():
        return None
    place = int(wrong.argmax())
    return Answer(rows["status"].iat[place], rows["reason"].iat[place])


def _median(
    run: Run,
    report: StudyReport,
    group: Group,
    method: str,
    unit: str,
    answer: Answer | None,
    values: NDArray[np.float64],
    blocks: NDArray[np.int64],
) -> Iterator[Number]:
    key, source = group.key(run, method), group.rows_of(run, method)
    if not values.size:
        yield make_number(key, source, unit, math.nan, text=answer or "", answer=answer)
        return
    middle = statistics.mean_interval(values) if report.windows else statistics.median_interval(values, blocks)
    yield make_number(key, source, unit, *middle, answer=answer)
    if unit == "ms" and group.n > 0 and group.quantity in report.per_object:
        per_object = middle.scaled(1000 / group.n)
        yield make_number(key.derive("per_object"), source, "us", *per_object, note="median / n")


def _discarded(run: Run) -> Iterator[Number]:
    """Yield how many blocks a whole run discarded, or why that can't be known."""
    rows = run.rows[run.rows["quantity"] == _DISCARDED]
    if rows.empty:
        return
    measured = rows[rows["value"].notna()]
    place = (run.fact_key(_DISCARDED), run.from_rows("n/a", where(quantity=_DISCARDED)), "count")
    if measured.empty:
        yield make_absent(*place, rows["reason"].iloc[0])
        return
    part = "" if len(measured) == len(rows) else f"{len(measured)} of {len(rows)} "
    yield make_number(*place, float(measured["value"].sum()), note=f"sum over {part}groups")


def comparisons(run: Run, report: StudyReport) -> Iterator[Number]:
    """Yield speed-ups of Octopus over the other methods of a group, multiples of the bound, and noise floors."""
    for group, rows in groups(run):
        subjects = [name for name in (SUBJECT, PUBLISHED_PAIR[0]) if name in set(rows["method"])]
        if not subjects or rows["unit"].iloc[0] != "ms":
            continue
        table = pivot(rows)
        pairs = [pair for pair in _pairs(table) if report.compares(group, pair[1])]
        if len(table) < 2:
            continue
        floor = floor_of(table)
        if report.compares(group, f"{SUBJECT}{AGAIN}"):
            yield from noise(run, group, table, floor)
        for pair in pairs:
            yield from speedup(run, group, table, pair, floor)
        if report.compares(group, BOUND):
            for method in subjects:
                yield from share_of_bound(run, group, table, method, BOUND)


def floor_of(table: DataFrame, method: str = SUBJECT) -> float:
    """Return the noise floor of a group's blocks; NaN where the method was not entered twice."""
    numbers, (mine, again) = aligned(table, method, f"{method}{AGAIN}")
    return statistics.noise_floor(mine, again, numbers) if len(numbers) else math.nan


def _pairs(table: DataFrame) -> list[tuple[str, str]]:
    others = [
        name for name in table.columns if name != SUBJECT and not name.startswith(BOUND) and not name.endswith(AGAIN)
    ]
    pairs = [(SUBJECT, other) for other in others] if SUBJECT in table else []
    return [*pairs, PUBLISHED_PAIR] if set(PUBLISHED_PAIR) <= set(table.columns) else pairs


def noise(run: Run, group: Group, table: DataFrame, floor: float) -> Iterator[Number]:
    """Yield the noise floor of a group; nothing where nothing was entered twice."""
    again = f"{SUBJECT}{AGAIN}"
    if {SUBJECT, again} <= set(table.columns):
        source = group.rows_of(run, f"{SUBJECT} and {again}")
        place = (group.key(run, SUBJECT).derive("noise_floor"), source, "fraction")
        if floor != floor:
            yield make_absent(*place, f"{len(table)} blocks are too few")
            return
        yield make_number(*place, floor, note=f"{SUBJECT} against {again}, paired per block")


def speedup(
    run: Run, group: Group, table: DataFrame, pair: tuple[str, str], floor: float, twice: str = SUBJECT
) -> Iterator[Number]:
    """Yield the speed-up (time of the other / time of the method) and the verdict as a text, over the blocks that
    both have. The verdict rests on `floor` too, and so on the blocks of the method that was entered twice."""
    method, other = pair
    numbers, (mine, others) = aligned(table, method, other)
    if len(numbers) < 2:
        return
    result = statistics.compare(mine, others, floor, numbers)
    key, source = group.key(run, method), group.rows_of(run, f"{method} and {other}")
    # The inverse of a median of ratios is not the median of the inverses when the number of blocks is even.
    times = statistics.ratio_interval(others, mine, numbers)
    yield make_number(key.speedup(other), source, "ratio", *times, note="median of per-block ratios")
    if floor == floor:
        source = group.rows_of(run, " and ".join(dict.fromkeys((*pair, twice, f"{twice}{AGAIN}"))))
    yield make_text(key.derive("verdict", other), source, result.verdict, result.text)


def ratio_of(table: DataFrame, method: str, other: str) -> float:
    """Return the speed-up as :func:`speedup` gives it, without its interval."""
    numbers, (mine, others) = aligned(table, method, other)
    return statistics.ratio_interval(others, mine, numbers).value if len(numbers) else math.nan


def subject_of(method: str) -> str:
    """Return the method of Octopus with which a method is compared."""
    return LIKE.get(method, SUBJECT)


def fastest(run: Run, group: Group, table: DataFrame, names: Sequence[str], word: str, what: str) -> Iterator[Number]:
    """Yield which of some methods is the fastest, and the speed-up over it of Octopus with the same answer. The fastest
    is the one over which the speed-up is least; `word` stands for it in keys."""
    own = {name: subject_of(name) for name in names if subject_of(name) in table}
    own = {name: subject for name, subject in own.items() if len(aligned(table, subject, name)[0]) > 1}
    if not own or SUBJECT not in table:
        return
    best = min(own, key=lambda name: ratio_of(table, own[name], name))
    note = f"fastest of {len(own)} {what}, by its speed-up: {best}"
    name = make_text(group.key(run, SUBJECT).derive(word), group.rows_of(run), human(ARENA_METHODS, best), note)
    yield name._replace(chosen=best)
    for number in speedup(run, group, table, (own[best], best), floor_of(table)):
        key = number.key.but(method=SUBJECT, other=word)
        rows = group.rows_of(run).selector  # which one is the fastest rests on all of them
        yield number.named(key)._replace(selector=rows, note=f"{number.note}; {note}", chosen=best)


def best_opencv(run: Run, group: Group, table: DataFrame) -> Iterator[Number]:
    """Yield the fastest form of OpenCV, whatever its threads, and the speed-up over it."""
    forms = [name for name in table if name in _OPENCV]
    yield from fastest(run, group, table, forms, "best_opencv", "forms of OpenCV")


def share_of_bound(run: Run, group: Group, table: DataFrame, method: str, bound: str) -> Iterator[Number]:
    """Yield time / time to write the output, and its inverse, the share of the write bound; nothing where one of
    the two was not measured."""
    numbers, (mine, least) = aligned(table, method, bound)
    if len(numbers) < 2:
        return
    ratio = statistics.ratio_interval(mine, least, numbers)
    key, source = group.key(run, method), group.rows_of(run, f"{method} and {bound}")
    note = "median of per-block ratios"
    yield make_number(key.derive("times", bound), source, "ratio", *ratio, note=note)
    share = ratio._replace(value=1 / ratio.value, low=1 / ratio.high, high=1 / ratio.low)
    yield make_number(key.derive("share", bound), source, "fraction", *share, note=f"1 / times_{bound}")


def share_of_roof(run: Run, group: Group, table: DataFrame, method: str, bounds: tuple[str, ...]) -> Iterator[Number]:
    """Yield the share of its roof that a method reaches, the longest of its bounds in each block; nothing where one of
    them was not measured."""
    numbers, (mine, *least) = aligned(table, method, *bounds)
    if len(numbers) < 2:
        return
    share = statistics.ratio_interval(np.max(least, axis=0), mine, numbers)
    key = group.key(run, method).derive("share", ROOF)
    note = "max(fill, copy) / time per block"
    source = group.rows_of(run, " and ".join((method, *bounds)))
    yield make_number(key, source, "fraction", *share, note=note)


def spread(key: Key, source: Source, values: Sequence[float], middle: float, note: str) -> Number:
    """Return the least and the greatest of several ratios as the interval of one number."""
    low, high = min(values), max(values)
    note = f"least and greatest of {len(values)} {note}"
    return make_number(key, source, "ratio", middle, low, high, text=range_text(low, high, "ratio"), note=note)


def memory_gains(run: Run, challengers: tuple[str, ...], tables: tuple[str, ...]) -> Iterator[Number]:
    """Yield how many times as many bytes another method's map takes: the gain of the method over the other. The
    offsets, which are all that Octopus needs, aren't counted: every ragged batch has them."""
    for group, rows in groups(run, quantity="map_bytes"):
        sizes = rows.dropna(subset="value").groupby("method")["value"].first()
        for method in challengers:
            for other in tables:
                if {method, other, SUBJECT} <= set(sizes.index) and sizes[method] > sizes[SUBJECT]:
                    key = group.key(run, method).derive("gain", other)
                    source = group.rows_of(run, f"{method} and {other} and {SUBJECT}")
                    beside = [float(sizes[name] - sizes[SUBJECT]) for name in (other, method)]
                    note = "bytes / bytes, beside the offsets"
                    yield make_number(key, source, "ratio", beside[0] / beside[1], note=note)


def padded_float32(run: Run) -> Iterator[Number]:
    """Yield the bytes of the padded batch as float32, which the source documents state; rows have it as uint8."""
    for row in run.rows[run.rows["quantity"] == "padded_bytes"].itertuples():
        key = run.key(row.workload, row.n, "padding", quantity="padded_float32_bytes")
        selector = f"workload={row.workload}, n={row.n}, method=padding, quantity=padded_bytes"
        value = 4 * float(row.value)
        yield make_number(key, run.from_rows(row.dataset, selector), "bytes", value, note="4 x the bytes as uint8")
