"""Study `reading`: pages of text found, cut out and read by RapidOCR, as it is and with its inputs made by Octopus.

It stands for the source's detector, whose model isn't named: real weights, whose boxes mean something, and text that is
known, since it is drawn. Both ways run the same networks. `whole` is the time of all pages from arrays on the host to
texts, and of the same runs `networks`, what feeds them (`page`, `lines`; both are `inputs`), what is made of their
answers, and `beside`, all but the networks. Boxes of the drone's data cut to one height, each as wide as its box asks,
are the ragged case by itself: by the block map's strategies, and padded to the widest.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus import FitHeight
from octopus.backends.cuda import stream_of
from octopus.backends.cuda.memory import DeviceArray, upload
from octopus.crop import varied
from octopus.crop.varied import VariedPlan
from octopus_study.baselines.availability import Unavailable, make_all
from octopus_study.baselines.job import TOLERANCE_LEVELS
from octopus_study.data.workload import sample_boxes
from octopus_study.measure import Case, Method, Row, check_answers, run_paired
from octopus_study.measure.bandwidth import fill
from octopus_study.measure.recorded import BlockClock, Recorded
from octopus_study.measure.rows import describe
from octopus_study.reference import crops as reference
from octopus_study.status import NO_ANSWER, SAME, Answer, different
from octopus_study.studies.comparison import BASE, Comparison, Part, compare
from octopus_study.studies.context import Context
from octopus_study.studies.reading import engine
from octopus_study.studies.reading.pages import Page, draw

ENGINE = "rapidocr"
METHODS, MORE_ON_GPU = (BASE, ENGINE), ("octopus-steady", "rapidocr-default")
WHOLE, PEAK = "whole", "host_peak"
COUNTS = {"boxes": "count", "lines_equal": "fraction", "character_errors": "fraction"}
EQUAL = 0.995  # share of lines of which the same must be read
ONE_RESAMPLING = "lines are interpolated once, not twice"
LEAST_BLOCKS, MOST_PAGES = 3, 8
PEAKS = 2  # times that memory is measured
HEIGHT, PADDED = 64, "padded"
STRATEGIES = {"lookup": "lookup", "thread-search": "thread_search", "block-metadata": "block_metadata"}
CROP_METHODS = (BASE, *STRATEGIES, PADDED, "write-bound")


def plan(context: Context) -> list[Part]:
    """One part for each number of pages, and one for each number of boxes."""
    settings, on_gpu = context.config.reading, context.device == "cuda"
    parts = []
    for count in settings.pages if on_gpu else settings.pages_cpu:
        case = context.case("pages", count, dataset="synthetic")
        methods = METHODS + MORE_ON_GPU * on_gpu
        timed = (Comparison(case, quantity, "host", methods) for quantity in (WHOLE, *engine.STEPS))
        counted = (Comparison(case, name, "deterministic", methods, unit) for name, unit in COUNTS.items())
        peak = Comparison(case, PEAK, "memory", methods, "bytes")
        parts.append(Part(_read, (*timed, *counted, peak)))
    for count in settings.crops:
        case = context.case(f"height-{HEIGHT}", count)
        parts.append(Part(_cut, (Comparison(case, "kernel", "device", CROP_METHODS),)))
    return parts


def _read(context: Context, part: Part) -> Iterator[Row]:
    try:
        engines = engine.make_engines(context.device)
    except Exception as error:  # a missing or broken package is a row, never the end of the study
        raise Unavailable(describe(error)) from error
    height, width = context.config.reading.size
    pages = [draw(height, width, context.seed + number) for number in range(part.case.n)]
    yield from measured(context, part, engines, pages)


def measured(context: Context, part: Part, engines: dict[str, Any], pages: Sequence[Page]) -> Iterator[Row]:
    """All rows of engines that read the same pages, as far as there is time for them."""
    case, pixels = part.case, [page.pixels for page in pages]
    allowed = context.config.reading.seconds
    until = time.monotonic() + allowed

    def room(count: int, names: Iterable[str] = engines) -> float:
        """Seconds that are left, if these ways can each read so many pages in them."""
        spare = until - time.monotonic()
        if spare < count * sum(takes[name] for name in names):
            slow = f"RapidOCR takes {takes[ENGINE]:.2g} s for a page"
            raise Unavailable(f"{slow}: no time is left for this (n = {case.n}, reading.seconds = {allowed:g})")
        return spare

    found, takes = dict[str, list[Any]](), dict[str, float]()
    for name, made in engines.items():
        found[name] = [made(pixels[0])]  # compiles, makes sessions, and warms what the ways share
    for name, made in engines.items():
        begin = time.monotonic()
        made(pixels[0])
        takes[name] = time.monotonic() - begin
    others = pixels[1:]
    for number, one in enumerate(others):
        room(len(others) - number)
        for name, made in engines.items():
            found[name].append(made(one))
    texts = {
        name: [page.texts(one.boxes, one.txts) for page, one in zip(pages, results, strict=True)]
        for name, results in found.items()
    }
    lines = sum(len(page.lines) for page in pages)
    letters = sum(len(line.text) for page in pages for line in page.lines)
    yield case.row("pages", "deterministic", "lines", "count", lines)
    yield case.row("pages", "deterministic", "characters", "count", letters)
    answers: dict[str, Answer] = {}
    for name, read in texts.items():
        pairs = [(a, b) for own, base in zip(read, texts[ENGINE], strict=True) for a, b in zip(own, base, strict=True)]
        other = sum(a != b for a, b in pairs)
        otherwise = different(f"{other} of {lines} lines are read otherwise; {ONE_RESAMPLING}")
        answers[name] = SAME if other <= (1 - EQUAL) * lines else otherwise
        wrong = sum(page.mistakes(own) for page, own in zip(pages, read, strict=True))
        values = (sum(map(len, found[name])), 1 - other / lines, wrong / letters)
        for (quantity, unit), value in zip(COUNTS.items(), values, strict=True):
            yield case.row(name, "deterministic", quantity, unit, value, answer=answers[name])
    own, wanted = dict(takes), _blocks(context, case.n)
    spare = until - time.monotonic() - PEAKS * sum(takes.values())  # some is left for the memory
    while len(own) > len(METHODS) and wanted * len(pixels) * sum(own.values()) > spare:
        slow = max(own, key=lambda name: own[name])
        why = f"a page takes {own.pop(slow):.2g} s: too slow for {wanted} blocks beside the others"
        for comparison in part.of(WHOLE, *engine.STEPS):
            yield from comparison.gaps(f"{why} (n = {case.n}, reading.seconds = {allowed:g})", [slow])
    block = {name: seconds * len(pixels) for name, seconds in own.items()}
    spare = max(spare, min(room(len(pixels), own), sum(block.values())))
    yield from _timed(context, case, engines, pixels, answers, spare, block)
    for block in range(PEAKS):
        room(1)
        for name, answer in answers.items():
            peak = engine.peak_bytes(engines[name], pixels[0])
            yield case.row(name, "memory", PEAK, "bytes", peak, block=block, answer=answer)


def _blocks(context: Context, pages: int) -> int:
    """How many blocks of so many pages are wanted."""
    blocks = context.config.reading.blocks
    return max(min(blocks, LEAST_BLOCKS), blocks * MOST_PAGES // max(pages, MOST_PAGES))


def _timed(
    context: Context, case: Case, engines: dict[str, Any], pixels: list[Any], answers: dict[str, Answer],
    spare: float, takes: dict[str, float],
) -> list[Row]:  # fmt: skip
    """The whole in paired blocks, as many as `spare` seconds allow by what a run of each way `takes`, and the steps of
    the same runs; a row says how many were planned. The noise floor is measured where that costs no block."""
    clock, stopwatch = context.host_clock(BlockClock), engine.watch(engines.values())
    steps, wanted = {step: step for step in engine.STEPS}, _blocks(context, case.n)
    runs = {name: partial(engine.read_all, engines[name], pixels, stopwatch) for name in takes}
    block = sum(takes.values())
    again = [f"{BASE}-again"] * (BASE in takes and spare >= wanted * (block + takes[BASE]))
    recorded = {name: Recorded(runs[name.removesuffix("-again")], clock, steps) for name in (*takes, *again)}
    answers = {name: answers[name.removesuffix("-again")] for name in recorded}
    methods = [Method(name, one.run) for name, one in recorded.items()]
    block += len(again) * takes.get(BASE, 0.0)
    least = min(wanted, int(spare / block))
    # All have read all pages. A block that begins is ended: the last one begins half a block before the time is over.
    budget = replace(context.budget, min_blocks=least, give_up_seconds=spare - block / 2, warm_up_runs=0)
    budget = replace(budget, max_blocks=max(least, budget.max_blocks))
    rows = run_paired(case, WHOLE, "ms", methods, clock, budget, answers, context.seed, BASE if BASE in takes else None)
    rows.append(case.row("pages", "limit", "blocks", "count", least))
    return [*rows, *(row for name, one in recorded.items() for row in one.rows(name, rows))]


def _cut(context: Context, part: Part) -> list[Row]:
    """Boxes to one height: into a ragged batch by each strategy, and padded to the widest."""
    if context.device != "cuda":
        raise Unavailable("finding an item's pixels is work of a GPU alone; a CPU goes from item to item")
    frame, crop = context.workload.frame, context.config.crop
    boxes = sample_boxes(context.workload.pool, part.case.n, context.seed)
    sizes, normal = FitHeight(HEIGHT).sizes(boxes), {"mean": crop.mean, "std": crop.std}
    right = [
        reference.crop_resize(frame, box[None], tuple(size), np.array(crop.mean), np.array(crop.std))[0]
        for box, size in zip(boxes, sizes.tolist(), strict=True)
    ]
    there, corners = upload(frame), upload(boxes.astype(np.float32))
    ways: dict[str, dict[str, Any]] = {name: {"strategy": strategy} for name, strategy in STRATEGIES.items()}
    ways = {BASE: {}, **ways, PADDED: {"pad_to": tuple(sizes.max(axis=0).tolist())}}
    given = varied.planned(there, corners.shape[1:], {})
    makers = {
        name: partial(VariedPlan, given, len(boxes), sizes, "cuda", **way, **normal) for name, way in ways.items()
    }
    plans, missing = make_all(makers)

    def method(name: str, crops: VariedPlan) -> Method:
        """The launch of a plan that has told the GPU its items, whose answer lies in the plan's memory."""
        answer = crops.call(there, corners, None, None, {})
        out = answer[0] if name == PADDED else answer.values
        out.fill_bytes(0xFF)  # NaN, so that what is checked below comes from the launch
        queue, addresses = stream_of(None), (there.pointer, out.pointer, 0, corners.pointer)

        def result() -> NDArray[np.float32]:
            values: NDArray[np.float32] = out.copy_to_host()
            if name != PADDED:
                return values
            return np.concatenate([one[:, :h, :w].ravel() for one, (h, w) in zip(values, sizes, strict=True)])

        run = partial(crops.engine.relaunch, addresses, queue)
        return Method(name, run, result, TOLERANCE_LEVELS / max(crop.std))

    expected = np.concatenate([one.ravel() for one in right]).astype(np.float32)
    methods = [method(name, crops) for name, crops in plans.items()]
    answers = check_answers(methods, expected)
    methods.append(Method("write-bound", fill(DeviceArray(expected.shape, np.float32))))
    answers["write-bound"] = NO_ANSWER
    return compare(context, part.comparisons[0], methods, answers, missing)
