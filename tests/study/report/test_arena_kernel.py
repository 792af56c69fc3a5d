"""The kernel's own part of the arena: each step over the one before, shares of the right bound, and no contender."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from frames import matching
from octopus_study.measure.rows import read_rows
from octopus_study.report import arena
from octopus_study.report.derive.arena_kernel import KERNEL_WORKLOADS, bound_of, limit_of
from octopus_study.report.frame import Frame
from octopus_study.report.labels import LADDER_CHANGES, LADDER_STEPS, RESULT_KINDS
from octopus_study.studies.arena import ladder as arena_ladder
from synthetic_arena import GPU, KINDS, LADDER
from test_arena_report import lines

PREFIX, TIMED = "gpu.arena", "crop_resize_normalize.device"


def values(runs: Path, workload: str, method: str) -> np.ndarray:
    rows = read_rows(runs / "reference" / "pretended-gpu" / "arena.csv")
    chosen = rows[(rows["workload"] == workload) & (rows["unit"] == "ms") & (rows["method"] == method)]
    return chosen["value"].to_numpy()


def test_every_kind_of_result_has_a_name_and_every_step_says_what_changes() -> None:
    assert set(RESULT_KINDS) == {*arena_ladder.KINDS, *arena_ladder.BOUNDS} == set(KINDS)
    assert list(LADDER_STEPS) == list(LADDER_CHANGES) == list(LADDER)[:-1]


def test_each_step_is_compared_with_the_one_before(numbers: Frame, runs: Path) -> None:
    steps = list(LADDER_STEPS)
    for workload in ("ladder", "ladder-large"):
        for before, step in pairwise(steps):
            found = numbers[f"{PREFIX}.{workload}.n1000.{step}.{TIMED}.speedup_over_{before}"]
            ratio = values(runs, workload, before) / values(runs, workload, step)
            assert found.value == pytest.approx(np.median(ratio)) and found.low <= found.value <= found.high


@pytest.mark.parametrize(
    ("method", "bound"),
    [
        ("octopus", "write-bound"),
        ("octopus-image", "write-bound"),
        ("octopus-fp16-nhwc", "write-bound-fp16"),
        ("tensorrt-padded-fp16", "write-bound-fp16"),
        ("octopus-uint8", "write-bound-uint8"),
        ("octopus-uint8-nhwc", "write-bound-uint8"),
    ],
)
def test_each_kind_has_the_bound_of_its_type(method: str, bound: str) -> None:
    assert bound_of(method) == bound


def test_what_limits_a_kernel_follows_from_its_share(numbers: Frame) -> None:
    assert limit_of(0.7) == "memory" and limit_of(0.69) == "issuing instructions"
    kinds = f"{PREFIX}.kinds.n1000"
    for method, limit in (("octopus", "memory"), ("octopus-uint8", "issuing instructions")):
        key = f"{kinds}.{method}.{TIMED}"
        share = numbers.value(f"{key}.share_of_{bound_of(method)}")
        assert share == pytest.approx(KINDS[bound_of(method)] / KINDS[method], rel=0.02)
        assert numbers.text(f"{key}.limited_by") == limit
    assert numbers.text(f"{PREFIX}.ladder-large.n1000.octopus.{TIMED}.limited_by") == "issuing instructions"
    assert numbers.text(f"{kinds}.not_memory_limited").startswith("float16, NHWC (")
    # A slow step may wait for memory that it reads twice: the rule says nothing about it.
    assert f"{PREFIX}.ladder.n1000.two-passes.{TIMED}.limited_by" not in numbers


def test_the_kernel_itself_is_no_contender(numbers: Frame) -> None:
    shown = {field.workload for field in arena.fields(numbers, "pretended-gpu")}
    assert shown == {"uniform", "visdrone"}
    counted = [numbers.value(f"{PREFIX}.methods.{word}") for word in ("same", "different", "unavailable")]
    assert sum(counted) == len(GPU)
    assert not [
        found for name in KERNEL_WORKLOADS for found in matching(numbers, rf".*\.{name}\..*best_peer")
    ]
    assert not matching(numbers, r".*\.submit\.host\.(best_peer|host_share|transfer_share)")


def test_tables_of_the_kernel(full: Path, numbers: Frame) -> None:
    steps = {row[0].partition(" (a)")[0]: row for row in lines(full, "arena_ladder")}
    assert list(LADDER_STEPS.values()) == [name for name in steps if name in LADDER_STEPS.values()]
    gain = numbers.text(f"{PREFIX}.ladder.n1000.octopus.{TIMED}.speedup_over_paired")
    assert steps["Words (Octopus)"][4] == gain and steps["Two passes"][4] == "\u2013"
    share = numbers.text(f"{PREFIX}.ladder-large.n1000.streamed.{TIMED}.share_of_write-bound")
    assert steps["Streamed"][6] == share
    kinds = {row[0]: row for row in lines(full, "arena_kinds")}
    assert kinds["uint8, NHWC"][3] == "issuing instructions" and kinds["Write bound, uint8"][3] == "\u2013"
    submitted = {row[0]: row for row in lines(full, "arena_submit")}
    assert submitted["1000"][1].endswith(" µs") and submitted["1000"][2] == "\u2013 (a)"
    assert submitted["28"][4].startswith(
        numbers.text(f"{PREFIX}.visdrone.n28.octopus-one-call.end_to_end_alone.host")[:3]
    )


@pytest.mark.parametrize("name", ["arena_ladder", "arena_kinds", "arena_submit"])
def test_a_machine_without_a_gpu_says_so(alone: Path, name: str) -> None:
    text = (alone / "tables" / f"{name}.md").read_text(encoding="utf-8")
    assert "need a GPU" in text and "unavailable" not in text
