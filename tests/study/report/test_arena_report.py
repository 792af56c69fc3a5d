"""The arena: each method is compared with Octopus of the same answer and with the bound of its own output, and one
without a time is named with the reason."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from frames import lines
from matplotlib.axes import Axes
from synthetic_arena import BOUNDS, GPU, LADDER
from synthetic_runs import PAPER

from octopus_study.names import ARENA_METHODS, LADDER_CHANGES, LADDER_STEPS
from octopus_study.report.charts.palette import METHOD_COLORS
from octopus_study.report.frame import Frame
from octopus_study.report.measured import fastest
from octopus_study.report.paper import check_paper
from octopus_study.report.samples import Group
from octopus_study.report.studies import arena_figures as arena
from octopus_study.report.view import View
from octopus_study.studies.arena.layers import WRITE_BOUNDS, names

KEY = "gpu.arena.visdrone.n1000"
DEVICE, HOST = f"{KEY}.octopus.crop_resize_normalize.device", f"{KEY}.octopus.end_to_end.host"
TABLES = ("arena", "arena_cpu", "arena_ladder", "arena_submit", "arena_memory")


def gpu(numbers: Frame) -> View:
    return View(numbers, "pretended-gpu", "arena")


def test_every_method_and_step_has_a_name_of_its_own() -> None:
    assert {*names(), *WRITE_BOUNDS} <= set(ARENA_METHODS)
    assert len(set(ARENA_METHODS.values())) == len(ARENA_METHODS)
    assert list(LADDER_STEPS) == list(LADDER_CHANGES) == list(LADDER)[:-1]


def test_each_type_is_compared_with_the_bound_of_its_own_output(numbers: Frame) -> None:
    half = f"{KEY}.octopus-fp16.crop_resize_normalize.device.share_of_write-bound"
    expected = (1000 * BOUNDS["write-bound-fp16"][0] + 0.0015) / (1000 * GPU["octopus-fp16"][0] + 0.004)
    assert numbers.value(f"{half}-fp16") == pytest.approx(expected, rel=0.02)
    assert half not in numbers and f"{DEVICE}.speedup_over_write-bound-fp16" not in numbers
    assert arena.bound_of("octopus-uint8-nhwc") == "write-bound-uint8"


def test_the_best_library_gives_the_same_answer_and_is_no_work_of_ours(numbers: Frame) -> None:
    assert numbers.text(f"{DEVICE}.best_baseline") == "CV-CUDA"
    # RoIAlign reads across the edge of a box and is compared with Octopus that does so too.
    assert numbers.text(f"{HOST}.best_baseline") == "torchvision (RoIAlign)"
    over = numbers.value(f"{HOST}.speedup_over_best_baseline")
    assert over == numbers.value(f"{KEY}.octopus-image.end_to_end.host.speedup_over_roi-align")


def test_a_method_is_compared_with_octopus_of_the_same_answer_or_not_at_all(numbers: Frame) -> None:
    key = numbers[HOST].key
    run = SimpleNamespace(key=lambda *_, **__: key, from_rows=lambda *_: numbers[HOST].source)
    blocks = pd.RangeIndex(30, name="block")
    table = pd.DataFrame({"octopus": 1.0, "roi-align": 2.0, "cvcuda": 3.0}, index=blocks)
    group = Group("visdrone-val", "visdrone", 1000, "end_to_end", "host")
    for like, best, value in ((None, "CV-CUDA", 3), (2.0, "torchvision (RoIAlign)", 1)):
        if like:
            table["octopus-image"] = like
        found = list(fastest(run, group, table, ["roi-align", "cvcuda"], "best_baseline", "baselines"))
        assert found[0].text == best and found[1].value == value


def test_a_method_without_a_time_or_memory_is_named_with_the_reason(full: Path, numbers: Frame) -> None:
    assert "TensorRT (padded): TensorRT is not installed" in arena.without_time(gpu(numbers), [numbers[HOST].key])
    assert any(row[0].startswith("**Unavailable here.") for row in lines(full, "arena"))
    memory = {row[0]: row[1:] for row in lines(full, "arena_memory")}
    assert memory["TensorRT (padded)"] == ["unavailable (b)"] * 4 and "unavailable" not in memory["Octopus"][0]
    calls = {row[0]: row for row in lines(full, "arena_submit")}
    assert calls["1000"][1].endswith(" µs") and calls["1000"][2] == "\u2013 (a)"


def test_each_kind_of_machine_has_its_own_table(full: Path, alone: Path) -> None:
    gpus, cpus = ("".join(row[0] for row in lines(full, name)) for name in ("arena", "arena_cpu"))
    assert "Pretended GPU" in gpus and "(this machine)" not in gpus and "(this machine)" in cpus
    for name in TABLES[2:]:
        assert "need a GPU" in (alone / "tables" / f"{name}.md").read_text("utf-8")


def test_another_answer_is_hatched(numbers: Frame) -> None:
    figure = arena.device(numbers)
    axis = figure.subfigs[0].findobj(Axes)[0]
    bars = zip(axis.get_yticklabels(), axis.patches, strict=True)
    hatched = {label.get_text() for label, bar in bars if bar.get_hatch()}
    assert hatched == {ARENA_METHODS["published"]} and set(GPU) <= set(METHOD_COLORS)


def test_a_run_of_few_boxes_is_shown_at_its_largest(numbers: Frame) -> None:
    few = [
        number._replace(id=number.key.but(n=6).id, n=6)
        for number in numbers
        if number.id.startswith("here.arena.visdrone.n1000.")
    ]
    here = View(Frame(few), "here", "arena")
    assert arena.shown(here, "visdrone", "host").n == 6 and arena.shown(here, "uniform", "host") is None


def test_results_without_the_study_are_told_and_not_refused(old: Path) -> None:
    known = Frame.read(old / "numbers.csv")
    assert known.machines("arena") == [] and check_paper(PAPER, known) == []
    for name in TABLES:
        assert "No run" in (old / "tables" / f"{name}.md").read_text("utf-8")
