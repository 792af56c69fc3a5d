"""What only the study of total cost knows: gains of block metadata over each form of the lookup table, and whether the
published ones survive a fair table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from octopus_study.measure.dependence import process_count
from octopus_study.names import IMAGE_KERNELS, IMAGE_MIXES, SUBJECT
from octopus_study.report.frame import Frame, Key, Number, joined, make_number, make_text, published
from octopus_study.report.machines import kind
from octopus_study.report.measured import floor_of, memory_gains, noise, speedup, spread
from octopus_study.report.published import derived
from octopus_study.report.runs import Run
from octopus_study.report.samples import groups, noted, paired, pivot
from octopus_study.report.selector import either
from octopus_study.report.studies.total_cost_reuse import (
    FIRST_KERNEL,
    OWNERS,
    PUBLISHED_OWNER,
    PUBLISHED_TABLE,
    STUDY,
    TABLES,
    Draws,
    draw,
    rests,
    sampled,
)
from octopus_study.report.view import View, every_view, views

LADDER = ("one-thread-per-image", "linear-search")
NO_DOWNLOAD = "total_without_download"
WORKLOADS = {
    f"{mix}-{kernel}": f"{name}, {kernel}" for kernel in IMAGE_KERNELS for mix, name in IMAGE_MIXES.items()
}
# Gain -> the columns of its numbers but for the table; bytes and kernels are those of one table, however it is filled.
GAINS = {
    "setup": {"quantity": "setup", "layer": "host", "derived": "speedup"},
    "upload": {"quantity": "upload", "layer": "host", "derived": "speedup"},
    "memory": {"quantity": "map_bytes", "layer": "deterministic", "derived": "gain"},
    "kernel": {"quantity": "kernel", "layer": "kernel", "derived": "speedup"},
    "total": {"quantity": "total", "layer": "host", "derived": "speedup"},
    "without_download": {"quantity": NO_DOWNLOAD, "layer": "host", "derived": "gain"},
}
TABLE_BYTES = 4  # an owner is an int32
# Published mixes that differ by one large image.
_WITHOUT = {"flickr-500-4k": "flickr-500", "flickr-500-8k": "flickr-500", "flickr-1000-8k": "flickr-1000"}
# A gain -> the stage of the published one.
_STAGES = {"setup": "setup", "upload": "h2d", "total": "total", "without_download": "total-without-d2h"}
_FILLED = {
    PUBLISHED_TABLE: "filled image by image",
    "lookup-vectorised": "filled by one call",
    "lookup-device": "built on the device",
}


def cases(view: View) -> list[Key]:
    """Return the total time of Octopus in each workload that was measured."""
    return view.cases(SUBJECT, "total", ("host",), order=list(WORKLOADS))


def measured(frame: Frame) -> list[View]:
    """Return the machines that measured some workload."""
    return [view for view in views(frame, STUDY) if cases(view)]


def gains(run: Run) -> Iterator[Number]:
    """Yield the gains of block metadata, built by either code, over each table; the same by workload, whatever its
    number of images, with the noise floor; and the least and the greatest of them."""
    numbers = [*_speedups(run), *memory_gains(run, OWNERS, (PUBLISHED_TABLE,))]
    yield from numbers
    numbers += [number for number in without_download(run) if number.method in OWNERS]
    names = {columns["quantity"]: name for name, columns in GAINS.items()}
    ranges: dict[tuple[str, str, str], list[Number]] = {}
    for number in numbers:
        name = names[number.quantity]
        key = run.key(f"gain.{name}.{number.workload}", method=number.method, derived=number.derived)
        if number.other:
            ranges.setdefault((name, number.method, number.other), []).append(number)
            key = key.but(derived="over", other=number.other)
        yield number.named(key)
    for (name, owner, table), chosen in ranges.items():
        values = [number.value for number in chosen]
        key = run.key(f"gain.{name}", method=owner, derived="over", other=table)
        source = joined(*chosen)._replace(dataset="synthetic")
        yield spread(key, source, values, sorted(values)[len(values) // 2], "workloads")


def _timed(run: Run) -> dict[str, str]:
    """Return the layer of each stage that is compared."""
    kernel = "device" if kind(run) == "gpu" else "host"
    return {"setup": "host", "upload": "host", "total": "host", "kernel": kernel}


def _speedups(run: Run) -> Iterator[Number]:
    timed = _timed(run)
    for group, rows in groups(run, unit="ms"):
        if timed.get(group.quantity) == group.layer:
            table = pivot(rows)
            yield from noise(run, group, table, floor_of(table))
            for other in TABLES[:1] if group.quantity == "kernel" else TABLES:
                for owner in OWNERS:
                    if len(table) > 1 and {owner, other} <= set(table.columns):
                        yield from list(speedup(run, group, table, (owner, other), math.nan))[:1]


def without_download(run: Run) -> Iterator[Number]:
    """Yield the gains in setup + upload + kernel over the tables, as the larger published total."""
    for group, costs in sampled(run):
        for method in (*OWNERS, SUBJECT):
            for table in TABLES:
                if {method, table} <= set(costs.once):
                    source = run.from_rows(group.dataset, rests(group.workload, group.n, method, table))
                    key = group._replace(quantity=NO_DOWNLOAD).key(run, method).derive("gain", table)
                    gain = costs.ratio(table, method, 1)
                    note = f"time / time, medians of each stage; {gain.note}"
                    yield make_number(key, source, "ratio", *gain.interval, note=note)


def averages(run: Run) -> Iterator[Number]:
    """Yield ``average.<gain>``: the arithmetic mean over the mixes with the light kernel, as the source averages; and
    ``gain.total.<mix>.<owner>.heavy_over_<table>``: the gain with the heavy kernel / with the light one."""
    drawn = {(name, *where): one for name, *where, one in _drawn(run)}
    for name in GAINS:
        for owner in OWNERS:
            for table in TABLES:
                mixes = [drawn.get((name, f"{mix}-{FIRST_KERNEL}", owner, table)) for mix in IMAGE_MIXES]
                if None not in mixes:
                    key = run.key(f"average.{name}", method=owner, derived="over", other=table)
                    yield _of_draws(run, key, mixes, lambda *gains: np.mean(gains, axis=0))
    for (name, workload, owner, table), heavy in drawn.items():
        mix, _, kernel = workload.rpartition("-")
        light = drawn.get((name, f"{mix}-{FIRST_KERNEL}", owner, table))
        if name == "total" and kernel != FIRST_KERNEL and light is not None:
            key = run.key(f"gain.total.{mix}", method=owner, derived="heavy", other=table)
            yield _of_draws(run, key, [heavy, light], np.divide)


def _of_draws(run: Run, key: Key, drawn: list[Draws], function: Callable[..., np.ndarray]) -> Number:
    """Return a function of several gains; without an interval where they are not of as many processes."""
    source = run.from_rows("synthetic", either(one.selector for one in drawn))
    same = len({len(one.values) for one in drawn}) == 1
    values = function(*(one.values if same else one.values[:1] for one in drawn))
    found = Draws(values, min(one.blocks for one in drawn), drawn[0].processes)
    note = noted("from the gains of the workloads", found.note)
    count = found.blocks if found.blocks > 1 else None
    return make_number(key, source, "ratio", *found.interval[:3], count, note=note)


def _drawn(run: Run) -> Iterator[tuple[str, str, str, str, Draws]]:
    """Yield gain, workload, owner, table, and the gain's draws."""
    names, timed = {columns["quantity"]: name for name, columns in GAINS.items()}, _timed(run)
    for group, rows in groups(run, unit="ms"):
        if timed.get(group.quantity) == group.layer:
            table = pivot(rows)
            for owner in OWNERS:
                for other in TABLES:
                    both = paired(table, owner, other)
                    if len(both) > 1:
                        chosen = group.rows_of(run, f"{owner} and {other}").selector
                        ratios = both[other] / both[owner]
                        gain = Draws(draw(ratios), len(both), process_count(both), chosen)
                        yield names[group.quantity], group.workload, owner, other, gain
    for number in memory_gains(run, OWNERS, (PUBLISHED_TABLE,)):
        counted = Draws(np.array([number.value]), 1, selector=number.selector)
        yield "memory", number.workload, number.method, number.other, counted
    for group, costs in sampled(run):
        for owner in OWNERS:
            for other in TABLES:
                if {owner, other} <= set(costs.once):
                    chosen = rests(group.workload, group.n, owner, other)
                    gain = costs.ratio(other, owner, 1)._replace(selector=chosen)
                    yield "without_download", group.workload, owner, other, gain


def download(run: Run) -> Iterator[Number]:
    """Yield ``gain.download``: the result's way back with the table / with Octopus, which is the same array."""
    ratios, chosen = [], []
    for group, rows in groups(run, quantity="download", unit="ms"):
        both = paired(pivot(rows), SUBJECT, PUBLISHED_TABLE)
        if len(both) > 1:
            ratios.append(float((both[PUBLISHED_TABLE] / both[SUBJECT]).median()))
            chosen.append(group.rows_of(run, f"{SUBJECT} and {PUBLISHED_TABLE}").selector)
    if ratios:
        key = run.key("gain.download", method=SUBJECT, derived="over", other=PUBLISHED_TABLE)
        source = run.from_rows("synthetic", either(chosen))
        yield spread(key, source, ratios, float(np.median(ratios)), "mixes")


def ladder(run: Run) -> Iterator[Number]:
    """Yield ``ladder.<baseline>``: time of an unfair baseline / time of Octopus."""
    for group, rows in groups(run, unit="ms", quantity="kernel"):
        table = pivot(rows)
        for other in LADDER:
            if len(table) > 1 and {SUBJECT, other} <= set(table.columns):
                for number in list(speedup(run, group, table, (SUBJECT, other), floor_of(table)))[:1]:
                    yield number.named(run.key("ladder", method=other))


def published_entry(frame: Frame) -> Iterator[Number]:
    """Yield the bytes of a block's entry that follow from the published gains in memory: those of a mix with a large
    image less those without it, over the blocks of that image."""

    def of(mix: str, quantity: str) -> float:
        return frame.value(published("pipeline_images", mix, quantity))

    first = frame.get(published("pipeline_images", "flickr-500", "memory_gain"))
    entries = []
    for large, mix in _WITHOUT.items():
        more = [TABLE_BYTES * of(name, "pixels") / of(name, "memory_gain") for name in (large, mix)]
        pixels = of(large, "pixels") - of(mix, "pixels")
        threshold = frame.value(published("pipeline_gain", "block-assignment", "threshold"))
        if math.isfinite(pixels):
            entries.append((more[0] - more[1]) / math.ceil(pixels / threshold))
    if first is not None and entries:
        note = "bytes of a large image's blocks / their number, with and without it"
        middle = float(np.median(entries))
        number = derived(first, "pipeline_images", "bytes", middle, note, quantity="bytes_per_block")
        yield number._replace(low=min(entries), high=max(entries))


def survives(frame: Frame) -> Iterator[Number]:
    """Yield, gain by gain of block metadata built as published, against which tables the published one survives."""
    for view in every_view(frame, STUDY):
        for name, stage in _STAGES.items():
            gain = frame.get(published("pipeline_gain", stage, "gain"))
            key = view.key(f"gain.{name}", method=PUBLISHED_OWNER, derived="over")
            numbers = [number for table in TABLES if (number := view.get(key.but(other=table)))]
            if gain is not None and numbers:
                text = ", ".join(_reached(number, gain.value) for number in numbers)
                note = f"published: {gain.text}; reached where every workload reaches it"
                key = view.key(f"gain.{name}", method=PUBLISHED_OWNER, quantity="survives")
                yield make_text(key, joined(*numbers), text, note)


def _reached(number: Number, gain: float) -> str:
    some = "reached in part" if number.high >= gain else "not reached"
    verdict = "reached" if number.low >= gain else some
    return f"against a table {_FILLED[number.other]} it is {verdict} ({number.text})"
