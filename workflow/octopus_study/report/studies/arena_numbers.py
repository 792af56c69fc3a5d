"""What only the arena knows: the best peer, shares of the write bound, memory beyond the payload, what transfers and
host work take, which answers are which, and of the kernel alone what each step brings and what limits it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from octopus_study.names import (
    AGAIN,
    ARENA_METHODS,
    BOUND,
    LADDER_STEPS,
    LADDER_WORKLOADS,
    PUBLISHED_PAIR,
    RESULT_KINDS,
    SUBJECT,
    human,
    place,
)
from octopus_study.report.fastest import LIKE, best_opencv, fastest
from octopus_study.report.frame import Frame, Number, joined, make_number, make_text
from octopus_study.report.measured import floor_of, share_of_bound, speedup
from octopus_study.report.missing import by_reason
from octopus_study.report.runs import Run, slug
from octopus_study.report.samples import Group, groups, pivot
from octopus_study.report.selector import BY_RULE, where
from octopus_study.report.studies.arena_view import (
    KERNEL_WORKLOADS,
    KINDS,
    QUANTITIES,
    STUDY,
    bound_of,
)
from octopus_study.report.text import quantity_text, range_text, significant
from octopus_study.report.view import View, every_view
from octopus_study.units import with_unit

if TYPE_CHECKING:
    import pandas as pd

HALF = f"{SUBJECT}-fp16"
# What this project brings along: no peer that a user would pick instead.
OWN = (
    SUBJECT, f"{SUBJECT}-one-call", HALF, f"{SUBJECT}-image", "published", "n-launches", "n-launches-fused",
)  # fmt: skip
# Pairs beside those of Octopus: its own two types, both ways to describe views for CV-CUDA, the two methods of the
# published comparison, and methods that read across the edge of a box, over which Octopus that does so too is judged.
_PAIRS = (
    (HALF, SUBJECT),
    ("cvcuda-views", "cvcuda"),
    ("published", "tensorrt-padded"),
    ("tensorrt-padded", "published"),
    # The same padded graph in another runtime: what it says of TensorRT is said by proxy.
    ("published", "padded-onnxruntime"),
    ("padded-onnxruntime", "published"),
    *((own, other) for other, own in LIKE.items()),
)
# Where Octopus makes the crops of the arena again, beside other methods.
_SAME_JOB = ("ladder", KINDS)
# The published kernels read eight int32 per box.
_METADATA_BYTES = 8 * 4
# (layer, the layer within it, name of what it adds)
_LAYER_SHARES = (("host", "device", "host_share"), ("pipeline", "host", "transfer_share"))
# Whose shares of the layers the paper quotes.
_SHARES_OF = {"host_share": (SUBJECT, "cvcuda", "cvcuda-views"), "transfer_share": (SUBJECT,)}
SUBMIT, ALONE, CALL = "submit", "end_to_end_alone", "submit_call"  # Octopus with nobody beside it
KERNEL = "kernel"  # roads, other frames, maps, and counts that the GPU knows
JUDGED = tuple(dict.fromkeys(QUANTITIES.values()))  # where everyone takes part
# The rule: a kernel at this share of what filling its output reaches, or above, is limited by memory. Below it the
# result could be written faster and the frame lies in L2, so what is left is issuing instructions.
MEMORY_LIMITED_FROM = 0.7
MEMORY, INSTRUCTIONS = "memory", "issuing instructions"


def limit_of(share: float) -> str:
    """Say what limits a kernel that reaches a share of its write bound."""
    return MEMORY if share >= MEMORY_LIMITED_FROM else INSTRUCTIONS


def _is_method(name: str) -> bool:
    return not name.startswith(BOUND) and not name.endswith(AGAIN)


def _has_peers(group: Group) -> bool:
    """Say whether a group compares methods on the same boxes of RGB, and not the kernel with itself."""
    return group.workload not in KERNEL_WORKLOADS and group.quantity in JUDGED


def _timed(run: Run) -> Iterator[tuple[Group, pd.DataFrame, pd.DataFrame]]:
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
    """Yield the speed-ups beside those of Octopus over every method: of pairs, and of each step of the kernel over
    the one before."""
    for group, _, table in _timed(run):
        ladder = [(step, before) for before, step in pairwise(LADDER_STEPS) if step != SUBJECT]
        for pair in (*_PAIRS, *(ladder if group.workload in LADDER_WORKLOADS else ())):
            if set(pair) <= set(table.columns):
                yield from speedup(run, group, table, pair, floor_of(table))


def bound_shares(run: Run) -> Iterator[Number]:
    """Yield the share that every method reaches of the write bound of its output."""
    for group, _, table in _timed(run):
        for method in filter(_is_method, table.columns):
            # Those of Octopus and of the published kernels every study has.
            if method not in (SUBJECT, PUBLISHED_PAIR[0]):
                numbers = share_of_bound(run, group, table, method, bound_of(method))
                yield from (number for number in numbers if number.derived == "share")


def best_peers(run: Run) -> Iterator[Number]:
    """Yield the fastest peer that gives the same answer, the fastest form of OpenCV, and the speed-ups over them."""
    for group, rows, table in filter(lambda timed: _has_peers(timed[0]), _timed(run)):
        same = set(rows["method"]) - set(rows.loc[rows["answer"] != "same", "method"])
        peers = [name for name in table if name in same and name not in OWN and _is_method(name)]
        yield from fastest(run, group, table, peers, "best_peer", "peers with the same answer")
        yield from best_opencv(run, group, table)


def limits(run: Run) -> Iterator[Number]:
    """Yield what limits each kind of result, and a list of those that memory does not limit; nothing on a machine
    without these rows.

    Of the kernel in use alone: a slow step may wait for memory that it reads twice.
    """
    kernels = [timed for timed in _timed(run) if timed[0].workload in KERNEL_WORKLOADS]
    for group, _, table in kernels:
        shares = [
            number
            for method in table.columns
            if method.startswith(SUBJECT) and _is_method(method)
            for number in share_of_bound(run, group, table, method, bound_of(method))
            if number.derived == "share"
        ]
        for share in shares:
            note = f"by its share of the write bound, {share.text}"
            yield make_text(share.key.derive("limited_by"), share.source, limit_of(share.value), note)
        if group.workload == KINDS:
            below = [share for share in shares if limit_of(share.value) != MEMORY]
            texts = [f"{human(RESULT_KINDS, s.method)} ({quantity_text(s.value, s.unit)})" for s in below]
            key = run.key(KINDS, group.n, quantity="not_memory_limited")
            yield make_text(key, group.rows_of(run), "; ".join(texts) or "none")
    if kernels:
        text = with_unit(significant(100 * MEMORY_LIMITED_FROM, 2), "percent")
        note = f"least share of the write bound that counts as limited by {MEMORY}"
        place = (run.fact_key("memory_limited_from"), run.from_rows("n/a", BY_RULE), "fraction")
        yield make_number(*place, MEMORY_LIMITED_FROM, text=text, note=note)


def share_range(frame: Frame) -> Iterator[Number]:
    """Yield the least and the greatest share of the bound that the kernel reached on the same job: beside the peers,
    its own steps, and other kinds of results. Each comparison has memory of its own."""
    for view, time in _known(frame, QUANTITIES["device"], "device"):
        if (time.workload, time.method) != ("visdrone", SUBJECT):
            continue
        keys = [time.key.but(workload=name).derive("share", BOUND) for name in ("visdrone", *_SAME_JOB)]
        shares = [share for key in keys if (share := view.get(key))]
        if len(shares) > 1:
            low, high = min(share.value for share in shares), max(share.value for share in shares)
            key, source = time.key.derive("share_range", BOUND), joined(*shares)
            about = {
                "text": range_text(low, high, "fraction"),
                "note": f"of {len(shares)} comparisons of one run",
            }
            yield make_number(key, source, "fraction", shares[0].value, low, high, **about)


def memory(frame: Frame) -> Iterator[Number]:
    """Yield what a method's growth leaves beside its payload, and multiples of that of the published kernels."""
    other = PUBLISHED_PAIR[0]
    for view, grown in _known(frame, "memory_device_delta", "memory"):
        key = grown.key
        if payload := view.get(key.but(quantity="memory_payload")):
            beyond, left = key.but(quantity="memory_beyond_payload"), grown.value - payload.value
            source = joined(grown, payload)
            yield make_number(beyond, source, "bytes", left, note="device delta - payload")
        published = view.get(key.but(method=other))
        if grown.method != other and published and published.value > 0:
            ratio, note = grown.value / published.value, f"device delta / that of {other}"
            yield make_number(key.derive("times", other), joined(grown, published), "ratio", ratio, note=note)


def layer_shares(frame: Frame) -> Iterator[Number]:
    """Yield which share of a time a layer adds to the layer within it; the two are separate measurements."""
    for outer, inner, name in _LAYER_SHARES:
        for view, time in _known(frame, QUANTITIES[outer], outer):
            inside = view.get(time.key.but(quantity=QUANTITIES[inner], layer=inner))
            if inside and time.method in _SHARES_OF[name]:
                share, note = 1 - inside.value / time.value, f"1 - median on the layer {inner} / median"
                yield make_number(time.key.derive(name), joined(time, inside), "fraction", share, note=note)


def _known(frame: Frame, quantity: str, layer: str) -> Iterator[tuple[View, Number]]:
    """Yield the numbers of a quantity on a layer, machine by machine."""
    for view in every_view(frame, STUDY):
        yield from ((view, n) for n in view.select(quantity=quantity, layer=layer) if n.known)


# What `_answers` looks at.
_JUDGED = f"workload!={' and '.join(KERNEL_WORKLOADS)}, quantity={' and '.join(JUDGED)}, method!={BOUND}* and *{AGAIN}"


def answers(run: Run) -> Iterator[Number]:
    """Yield how many methods gave which answer, and the reasons of those that gave another or none."""
    by_method = _answers(run)
    source = run.from_rows("n/a", f"unit=ms, {_JUDGED}")
    for word in ("same", "different", "unavailable"):
        key = run.key("methods", quantity=word)
        chosen = {name: note for name, note in by_method.items() if note.partition(":")[0] == word}
        notes = [(human(ARENA_METHODS, slug(name)), note) for name, note in chosen.items()]
        yield make_number(key, source, "count", float(len(notes)))
        if word != "same":
            yield make_text(key.but(quantity=f"{word}_why"), source, by_reason(notes) or "none")


def _error(answer: str) -> float:
    """Return how far an answer is off; what has no size, such as values that are no numbers, is farther than all."""
    found = re.search(r"largest error (\S+) exceeds", answer)
    return math.inf if found is None or found[1] == "nan" else float(found[1])


def _answers(run: Run) -> dict[str, str]:
    """Return each method's answer, in the order of the arena.

    Measured on some layer it is available; then one different answer makes it different, by the largest of its errors.
    """
    timed = run.rows[run.rows["unit"] == "ms"]
    timed = timed[~timed["workload"].isin(KERNEL_WORKLOADS) & timed["quantity"].isin(JUDGED)]
    by_method = {}
    for method, rows in timed.groupby("method", sort=False):
        known = rows[rows["value"].notna()]
        given = list((known if len(known) else rows)["answer"])
        by_method[str(method)] = max(
            (answer for answer in given if answer != "same"), key=_error, default="same"
        )
    names = sorted(filter(_is_method, by_method), key=partial(place, ARENA_METHODS))
    return {name: by_method[name] for name in names}
