"""What only the arena knows: the best peer, shares of the write bound, memory beyond the payload, what transfers
and host work take, and which answers are which."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from octopus_study.report.derive.arena_kernel import (
    ALONE,
    KERNEL_WORKLOADS,
    SUBMIT,
    bound_of,
    is_contest,
    kernel_numbers,
)
from octopus_study.report.derive.comparisons import (
    BOUND,
    PUBLISHED_PAIR,
    SUBJECT,
    floor_of,
    share_of_bound,
    speedup,
)
from octopus_study.report.derive.samples import AGAIN, Group, groups, origin, pivot, slug
from octopus_study.report.labels import ARENA_METHODS, human
from octopus_study.report.measured import padded_float32
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import Run
from octopus_study.report.text import reason

if TYPE_CHECKING:
    import pandas as pd

HALF = "-fp16"
# What this project brings along: no peer that a user would pick instead.
OWN = (
    SUBJECT,
    f"{SUBJECT}-one-call",
    f"{SUBJECT}{HALF}",
    "published",
    "n-launches",
    "n-launches-fused",
)
# Pairs beside those of Octopus: its own two types, both ways to describe views for CV-CUDA, and the two contenders of
# the published comparison.
_PAIRS = (
    (f"{SUBJECT}{HALF}", SUBJECT),
    ("cvcuda-views", "cvcuda"),
    ("published", "tensorrt-padded"),
    ("tensorrt-padded", "published"),
)
# The published kernels read eight int32 per box.
_METADATA_BYTES = 8 * 4
# (layer, the layer within it, name of what it adds)
_LAYER_SHARES = (("host", "device", "host_share"), ("pipeline", "host", "transfer_share"))


class Standing(NamedTuple):
    """What became of a method in a run: its answer in one word, and the whole of it."""

    method: str
    answer: str
    note: str


def arena_numbers(run: Run) -> Iterator[Number]:
    """Yield the study's derived numbers."""
    yield from padded_float32(run)
    yield from _metadata(run)
    for group, rows in groups(run, unit="ms"):
        table = pivot(rows)
        if len(table) > 1:
            yield from _pairs(run, group, table)
            if is_contest(group):
                yield from _best_peer(run, group, rows, table)
    yield from kernel_numbers(run)
    yield from _memory(run)
    yield from _layer_shares(run)
    yield from _answers(run)


def is_peer(method: str) -> bool:
    """Say whether a method is something that a user would pick instead."""
    return method not in OWN and not method.startswith(BOUND) and not method.endswith(AGAIN)


def _metadata(run: Run) -> Iterator[Number]:
    for row in run.rows[run.rows["quantity"] == "padded_bytes"].itertuples():
        identifier = f"{run.scope}.{run.study}.{row.workload}.n{row.n}.published.metadata_bytes"
        note = f"{_METADATA_BYTES} bytes per box, as the published kernels read them"
        selector = f"workload={row.workload}, n={row.n}"
        value = float(_METADATA_BYTES * row.n)
        yield make_number(identifier, origin(run, row.dataset), selector, "bytes", value, note=note)


def _pairs(run: Run, group: Group, table: pd.DataFrame) -> Iterator[Number]:
    """Yield the further speed-ups, and every method's share of its write bound."""
    floor = floor_of(table)
    for pair in _PAIRS:
        if set(pair) <= set(table.columns):
            yield from speedup(run, group, table, pair, floor)
    for method in table.columns:
        # Those of Octopus and of the published kernels every study has.
        known = method in (SUBJECT, PUBLISHED_PAIR[0]) or method.endswith(AGAIN)
        if not known and not method.startswith(BOUND):
            yield from share_of_bound(run, group, table, method, bound_of(method))


def _best_peer(run: Run, group: Group, rows: pd.DataFrame, table: pd.DataFrame) -> Iterator[Number]:
    """Yield the fastest peer that gives the same answer, and the speed-up over it."""
    same = set(rows.loc[rows["answer"] == "same", "method"])
    peers = [name for name in table.columns if name in same and is_peer(name)]
    if not peers or SUBJECT not in table:
        return
    best = str(table[peers].median().idxmin())
    prefix, where = group.prefix(run, SUBJECT), origin(run, group.dataset)
    selector, note = (
        group.selector(),
        f"fastest of {len(peers)} peers with the same answer, by median: {best}",
    )
    yield make_number(
        f"{prefix}.best_peer", where, selector, "text", math.nan, text=human(ARENA_METHODS, best), note=note
    )
    for number in speedup(run, group, table, (SUBJECT, best), floor_of(table)):
        key = number.id.removesuffix(f"_{best}") + "_best_peer"
        yield number._replace(id=key, note=f"{number.note}; {note}")


def _memory(run: Run) -> Iterator[Number]:
    """Yield what a method's growth leaves beside its payload, and multiples of that of the published kernels."""
    for group, rows in groups(run, quantity="memory_device_delta"):
        grown = rows.set_index("method")["value"]
        payload = _values(run, group._replace(quantity="memory_payload"))
        for method, value in grown.dropna().items():
            where = (origin(run, group.dataset), group.selector(str(method)))
            prefix = group.prefix(run, str(method))
            if method in payload:
                beyond = group._replace(quantity="memory_beyond_payload").prefix(run, str(method))
                note = "device delta - payload"
                yield make_number(beyond, *where, "bytes", float(value - payload[method]), note=note)
            for other in (SUBJECT, PUBLISHED_PAIR[0]):
                if method != other and grown.get(other, 0) > 0:
                    note = f"device delta / that of {other}"
                    ratio = float(value / grown[other])
                    yield make_number(f"{prefix}.times_{other}", *where, "ratio", ratio, note=note)


def _values(run: Run, group: Group) -> dict[str, float]:
    """Return the medians of a group, method by method."""
    rows = run.rows
    for name, value in group._asdict().items():
        rows = rows[rows[name] == value]
    return rows[rows["value"].notna()].groupby("method")["value"].median().to_dict()


def _layer_shares(run: Run) -> Iterator[Number]:
    """Yield which share of a time a layer adds to the layer within it; the two are separate measurements."""
    for outer, inner, name in _LAYER_SHARES:
        for group, _ in groups(run, unit="ms", layer=outer):
            if not is_contest(group):
                continue
            quantity = "crop_resize_normalize" if inner == "device" else group.quantity
            inside = _values(run, group._replace(layer=inner, quantity=quantity))
            for method, time in _values(run, group).items():
                if method in inside and not method.endswith(AGAIN):
                    where = (origin(run, group.dataset), group.selector(method))
                    note = f"1 - median on the layer {inner} / median"
                    share = 1 - inside[method] / time
                    key = f"{group.prefix(run, method)}.{name}"
                    yield make_number(key, *where, "fraction", share, note=note)


def standings(run: Run) -> list[Standing]:
    """Return what became of each method, in the order of the arena.

    Measured on some layer it is available; then one different answer makes it different.
    """
    timed = run.rows[run.rows["unit"] == "ms"]
    timed = timed[~timed["workload"].isin(KERNEL_WORKLOADS) & ~timed["quantity"].isin([SUBMIT, ALONE])]
    found = []
    for method, rows in timed.groupby("method", sort=False):
        if str(method).endswith(AGAIN) or str(method).startswith(BOUND):
            continue
        measured = rows[rows["value"].notna()]
        answers = list(measured["answer"] if len(measured) else rows["answer"])
        said = next((answer for answer in answers if answer != "same"), "same")
        found.append(Standing(str(method), said.partition(":")[0], said))
    order = list(ARENA_METHODS)
    return sorted(found, key=lambda one: order.index(one.method) if one.method in order else len(order))


def _answers(run: Run) -> Iterator[Number]:
    """Yield how many methods gave which answer, and the reasons of those that gave another or none."""
    found = standings(run)
    where = (origin(run, "n/a"), "unit=ms, all methods but the bounds and the repeated one")
    prefix = f"{run.scope}.{run.study}.methods"
    for word in ("same", "different", "unavailable"):
        chosen = [standing for standing in found if standing.answer == word]
        yield make_number(f"{prefix}.{word}", *where, "count", float(len(chosen)))
        if word != "same":
            text = by_reason([(slug(standing.method), standing.note) for standing in chosen])
            yield make_number(f"{prefix}.{word}_why", *where, "text", math.nan, text=text or "none")


def by_reason(pairs: list[tuple[str, str]]) -> str:
    """Return methods with the reasons in their notes, each reason once: ``A, B: why; C: another``."""
    reasons: dict[str, list[str]] = {}
    for method, note in pairs:
        reasons.setdefault(reason(note), []).append(human(ARENA_METHODS, method))
    return "; ".join(f"{', '.join(names)}: {why}" for why, names in reasons.items())
