"""The arena's numbers, tables and notes: paired shares, the best peer, memory, nobody missing silently, and of the
kernel alone each step over the one before and shares of the right bound."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from frames import lines, matching, number, text
from synthetic_arena import GPU, KINDS, LADDER, OUTPUT_BYTES
from synthetic_runs import ROOT

from octopus_study.measure.rows import read_rows
from octopus_study.names import ARENA_METHODS, LADDER_CHANGES, LADDER_STEPS, RESULT_KINDS, ROADS
from octopus_study.report.charts.palette import METHOD_COLORS
from octopus_study.report.fastest import fastest
from octopus_study.report.frame import Frame, Key
from octopus_study.report.literals import check_paper
from octopus_study.report.runs import read_run
from octopus_study.report.samples import Group
from octopus_study.report.studies import arena_figures
from octopus_study.report.studies import arena_view as arena
from octopus_study.report.studies.arena_numbers import answers, limit_of
from octopus_study.report.view import View
from octopus_study.studies.arena import ladder as arena_ladder
from octopus_study.studies.arena.layers import WRITE_BOUNDS, names

ARENA, KEY = "gpu.arena", "gpu.arena.visdrone.n1000"
TIMED = "crop_resize_normalize.device"
DEVICE, HOST = f"{KEY}.octopus.crop_resize_normalize.device", f"{KEY}.octopus.end_to_end.host"
IMAGE = f"{KEY}.octopus-image.end_to_end.host"


def values(runs: Path, workload: str, layer: str, method: str) -> np.ndarray:
    rows = read_rows(runs / "reference" / "pretended-gpu" / "arena.csv")
    chosen = rows[(rows["workload"] == workload) & (rows["n"] == 1000) & (rows["unit"] == "ms")]
    return chosen[(chosen["layer"] == layer) & (chosen["method"] == method)]["value"].to_numpy()


def gpu(numbers: Frame) -> View:
    return View(numbers, "pretended-gpu", "arena")


def test_everyone_in_the_arena_and_every_setting_has_a_name() -> None:
    assert {*names(), *WRITE_BOUNDS} <= set(ARENA_METHODS)
    assert len(set(ARENA_METHODS.values())) == len(ARENA_METHODS)


def test_each_type_is_compared_with_the_bound_of_its_own_output(numbers: Frame, runs: Path) -> None:
    share = numbers[f"{KEY}.octopus-fp16.crop_resize_normalize.device.share_of_write-bound-fp16"]
    ratio = values(runs, "visdrone", "device", "octopus-fp16") / values(
        runs, "visdrone", "device", "write-bound-fp16"
    )
    assert share.value == pytest.approx(1 / np.median(ratio)) and share.low < share.value < share.high
    assert f"{KEY}.octopus-fp16.crop_resize_normalize.device.share_of_write-bound" not in numbers
    assert f"{DEVICE}.speedup_over_write-bound-fp16" not in numbers


def test_the_best_peer_gives_the_same_answer_and_is_no_work_of_ours(numbers: Frame) -> None:
    assert numbers.text(f"{DEVICE}.best_peer") == "CV-CUDA"
    assert numbers.value(f"{DEVICE}.speedup_over_best_peer") == numbers.value(f"{DEVICE}.speedup_over_cvcuda")
    # RoIAlign reads across the edge of a box, as Octopus does with the edge of the image, and is a rival of that.
    assert numbers.text(f"{HOST}.best_peer") == "torchvision (RoIAlign)"
    over = numbers.value(f"{HOST}.speedup_over_best_peer")
    assert over == numbers.value(f"{IMAGE}.speedup_over_roi-align")
    assert over < numbers.value(f"{HOST}.speedup_over_cvcuda-views")


@pytest.mark.parametrize(
    ("group", "best", "id_of_best"),
    [
        ("cpu.arena.visdrone-1thread.n1000.octopus.end_to_end.host", "OpenCV by a table (1 thread)", "opencv-table"),
        ("cpu.arena.visdrone.n1000.octopus.end_to_end.host", "OpenCV by a table (all threads)", "opencv-table-threads"),
        ("gpu.arena.visdrone.n1000.octopus.end_to_end.pipeline", "OpenCV + NumPy (1 thread)", "opencv"),
    ],
)  # fmt: skip
def test_the_fastest_form_of_opencv_says_its_threads(
    numbers: Frame, group: str, best: str, id_of_best: str
) -> None:
    assert numbers.text(f"{group}.best_opencv") == best
    over = numbers.value(f"{group}.speedup_over_best_opencv")
    assert over == numbers.value(f"{group}.speedup_over_{id_of_best}")
    assert numbers.text(f"{group}.verdict_over_best_opencv") == numbers.text(
        f"{group}.verdict_over_{id_of_best}"
    )


def test_a_method_is_compared_with_octopus_of_the_same_answer_or_not_at_all(numbers: Frame) -> None:
    key = numbers[HOST].key
    run = SimpleNamespace(key=lambda *_, **__: key, from_rows=lambda *_: numbers[HOST].source)
    table = pd.DataFrame(
        {"octopus": [1.0] * 30, "roi-align": [2.0] * 30, "cvcuda": [3.0] * 30},
        index=pd.RangeIndex(30, name="block"),
    )
    group = Group("visdrone-val", "visdrone", 1000, "end_to_end", "host")
    found = list(fastest(run, group, table, ["roi-align", "cvcuda"], "best_peer", "peers"))
    assert found[0].text == "CV-CUDA" and found[1].value == 3
    table["octopus-image"] = 2.0
    found = list(fastest(run, group, table, ["roi-align", "cvcuda"], "best_peer", "peers"))
    assert found[0].text == "torchvision (RoIAlign)" and found[1].value == 1
    assert found[1].other == "best_peer" and found[1].method == "octopus"


def test_batches_in_a_row_have_a_table(full: Path, numbers: Frame) -> None:
    rows = {row[0]: row for row in lines(full, "arena_series")}
    assert {"Octopus", "DALI (pipeline)", "torchvision (RoIAlign)"} <= set(rows)
    key = f"{KEY}.octopus-image.end_to_end.pipelined.speedup_over_dali-pipeline"
    assert rows["DALI (pipeline)"][1:] == ["same, image", rows["DALI (pipeline)"][2], numbers.text(key)]


def test_memory_beyond_the_payload_and_multiples_of_the_published(numbers: Frame) -> None:
    beyond = numbers[f"{KEY}.octopus.memory_beyond_payload.memory"]
    assert beyond.value == 65536 - 16 * 1000 and beyond.text == "48.4 KiB"
    ratio = numbers.value(f"{KEY}.cvcuda.memory_device_delta.memory.times_published")
    frame = 1920 * 1080 * 3 + 65536
    output = 1000 * OUTPUT_BYTES
    assert ratio == pytest.approx((frame + output + output // 8) / (frame + output + output // 4))


def test_what_host_work_and_transfers_add(numbers: Frame) -> None:
    device, _, host, fixed, _ = GPU["cvcuda"]
    share = numbers.value(f"{KEY}.cvcuda.end_to_end.host.host_share")
    assert share == pytest.approx(1 - (1000 * device + 0.005) / (1000 * host + fixed), rel=0.01)
    assert 0.9 < numbers.value(f"{KEY}.octopus.end_to_end.pipeline.transfer_share") < 1


def test_answers_are_counted_and_explained(numbers: Frame) -> None:
    counted = [numbers.value(f"gpu.arena.methods.{word}") for word in ("same", "different", "unavailable")]
    assert sum(counted) == len(GPU) and counted[2] == 2
    why = numbers.text("gpu.arena.methods.unavailable_why")
    assert why.endswith("TensorRT (grid sample), TensorRT (padded): TensorRT is not installed")
    assert "PyTorch (padded), ONNX Runtime (padded): resizes the padded image" in numbers.text(
        "gpu.arena.methods.different_why"
    )


def test_tables_say_answers_times_and_who_is_missing(full: Path, numbers: Frame) -> None:
    table = lines(full, "arena")
    rows = {row[0]: row for row in table}
    assert rows["CV-CUDA"][1] == "same" and rows["CV-CUDA"][5] == numbers.text(
        f"{DEVICE}.speedup_over_cvcuda"
    )
    assert rows["torchvision (RoIAlign)"][1] == "same, image" and rows["Published"][1].startswith("other (")
    assert rows["torchvision (RoIAlign)"][6] == numbers.text(f"{IMAGE}.speedup_over_roi-align")
    assert rows["Octopus (float16)"][5].endswith("\u00d7, slower")
    number = numbers[DEVICE]
    assert rows["Octopus"][2].startswith(f"{number.value:.3f} [")
    assert any(row[0].startswith("**Unavailable here. TensorRT") for row in table)
    assert not any("Pretended (this machine)" in row[0] for row in table)
    assert any("Pretended (this machine)" in row[0] for row in lines(full, "arena_cpu"))


def test_every_kind_of_bytes_has_its_rivals_in_one_table(full: Path, numbers: Frame) -> None:
    table = lines(full, "arena_cpu_bytes")
    first = table.index(["**uint8, NHWC, antialiased, one thread each, n = 1000**", *[""] * 6]) + 1
    octopus, pillow, simd = table[first : first + 3]
    assert octopus[0] == "Octopus"
    key = "cpu.arena.large-antialias-1thread.n1000.octopus.end_to_end.host"
    assert simd[0] == "Pillow-SIMD (1 thread)" and simd[6] == numbers.text(f"{key}.speedup_over_pillow-simd")
    assert pillow[0] == "Pillow (1 thread)" and pillow[5].startswith("\u2013 (") and pillow[6] == "\u2013"
    for kind, form in (("uint8", "resized and split"), ("uint8-nhwc", "straight into place")):
        key = f"cpu.arena.visdrone-{kind}-1thread.n1000.octopus.end_to_end.host"
        assert numbers.text(f"{key}.best_opencv") == f"OpenCV {form} (1 thread)"


def test_padding_table_stands_beside_the_published_values(full: Path) -> None:
    rows = [row for row in lines(full, "arena_padding") if row[1] == "1000"]
    assert {(row[0], row[5], row[6]) for row in rows} == {
        ("Uniform 256 \u00d7 256", "750 MiB", "750 MiB"),
        ("VisDrone", "1118 MiB", "1118 MiB, 95 %"),
    }


def test_without_tensorrt_a_note_names_it_and_with_it_there_is_none(numbers: Frame, tensorrt: Path) -> None:
    without, with_it = (
        arena.without_time(gpu(frame), [numbers[HOST].key])
        for frame in (numbers, Frame.read(tensorrt / "numbers.csv"))
    )
    assert "TensorRT is not installed" in without and "TensorRT" not in with_it


def test_a_line_over_the_boxes_is_the_fastest_form_of_a_library_that_answers_alike(numbers: Frame) -> None:
    view = gpu(numbers)
    device, host = (
        arena.fastest_forms(view, arena.comparisons(view, "visdrone", layer)) for layer in ("device", "host")
    )
    # The form with one scale is faster, and answers otherwise; views by hand are faster on the host alone.
    assert [name for name in device if name.startswith(("cvcuda", "dali"))] == ["cvcuda"]
    assert [name for name in host if name.startswith(("cvcuda", "dali"))] == ["cvcuda-views", "dali-pipeline"]
    assert {"octopus", "octopus-image", "published", "write-bound"} <= set(device)


def test_a_library_without_a_line_is_named_once(numbers: Frame) -> None:
    view = gpu(numbers)
    note = arena.without_time(view, arena.comparisons(view, "visdrone", "device"), forms=False)
    assert note.count("DALI") == 1 and "TensorRT: TensorRT is not installed" in note and "CV-CUDA" not in note


def test_the_largest_error_stands_for_a_method(runs: Path) -> None:
    run = read_run(runs / "reference" / "pretended-gpu" / "arena.csv", "reference")
    rows = run.rows["method"] == "grid-sample"
    run.rows.loc[rows, "answer"] = [f"different: largest error {i % 7} exceeds 1" for i in range(rows.sum())]
    (why,) = (number for number in answers(run) if number.quantity == "different_why")
    assert "PyTorch (grid sample): by as much as 6.00, more than 1.00" in why.text
    run.rows.loc[run.rows.index[rows][3::7], "answer"] = "different: 7 of 30 values are NaN or infinite"
    (why,) = (number for number in answers(run) if number.quantity == "different_why")
    assert "PyTorch (grid sample): 7 of 30 values are NaN or infinite" in why.text


def test_the_same_job_in_other_comparisons_of_a_run_has_a_range_of_shares(numbers: Frame) -> None:
    again = numbers[f"{DEVICE}.share_range_of_write-bound"]
    shares = [
        numbers[f"gpu.arena.{name}.n1000.octopus.{TIMED}.share_of_write-bound"].value
        for name in ("visdrone", "ladder", "kinds")
    ]
    assert (again.value, again.low, again.high) == (shares[0], min(shares), max(shares))


def test_forms_that_lack_a_time_for_two_reasons_are_named_one_by_one() -> None:
    case = Key("m", "arena", "visdrone", 1000, "octopus", "crop_resize_normalize", "device")
    absent = {"dali": "too slow", "dali-slice": "too slow", "cvcuda": "too slow", "cvcuda-views": "no memory"}
    numbers = [text(case.but(method=name), f"unavailable: {why}") for name, why in absent.items()]
    numbers = [number._replace(note=number.text, unit="ms") for number in numbers]
    view = View(Frame([number(case, "ms", 1.0), *numbers]), "m", "arena")
    assert arena.without_time(view, [case]) == "CV-CUDA, DALI: too slow; CV-CUDA (views by hand): no memory"


def test_a_different_answer_is_hatched(numbers: Frame) -> None:
    group = arena_figures.group_of(gpu(numbers), {("visdrone", "device"): "VisDrone"})
    assert group is not None and group.panels["VisDrone"].n == 1000
    figure = arena_figures.draw_groups([group], "ms")
    axis = figure.subfigs[0].axes[0]
    hatched = {
        label.get_text()
        for label, bar in zip(axis.get_yticklabels(), axis.patches, strict=True)
        if bar.get_hatch()
    }
    measured = arena.measured(group.view, group.panels["VisDrone"])
    different = [name for name, times in measured.items() if arena.differs(times)]
    assert hatched == {ARENA_METHODS[name] for name in different} and len(hatched) == 3
    assert set(measured) <= set(METHOD_COLORS)


def test_results_without_the_study_are_told_and_not_refused(old: Path) -> None:
    known = Frame.read(old / "numbers.csv")
    assert known.machines("arena") == [] and check_paper(ROOT / "paper", known) == []
    for name in (
        "arena",
        "arena_cpu",
        "arena_cpu_bytes",
        "arena_counts",
        "arena_memory",
        "arena_padding",
    ):
        assert "No run" in (old / "tables" / f"{name}.md").read_text(encoding="utf-8")


def test_a_run_of_few_boxes_is_shown_at_its_largest(tmp_path: Path, numbers: Frame) -> None:
    few = [
        number._replace(id=number.key.but(n=6).id, n=6)
        for number in numbers
        if number.id.startswith("here.arena.visdrone.n1000.")
    ]
    here = View(Frame(few), "here", "arena")
    key = arena.shown(here, "visdrone", "host")
    assert key is not None and key.n == 6
    assert arena.shown(here, "uniform", "host") is None


def test_every_kind_of_result_has_a_name_and_every_step_says_what_changes() -> None:
    assert set(RESULT_KINDS) == {*arena_ladder.KINDS, *arena_ladder.BOUNDS} == set(KINDS)
    assert list(LADDER_STEPS) == list(LADDER_CHANGES) == list(LADDER)[:-1]


def test_each_step_is_compared_with_the_one_before(numbers: Frame, runs: Path) -> None:
    steps = list(LADDER_STEPS)
    for workload in ("ladder", "ladder-large"):
        for before, step in pairwise(steps):
            found = numbers[f"{ARENA}.{workload}.n1000.{step}.{TIMED}.speedup_over_{before}"]
            ratio = values(runs, workload, "device", before) / values(runs, workload, "device", step)
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
    assert arena.bound_of(method) == bound


def test_what_limits_a_kernel_follows_from_its_share(numbers: Frame) -> None:
    assert limit_of(0.7) == "memory" and limit_of(0.69) == "issuing instructions"
    kinds = f"{ARENA}.kinds.n1000"
    for method, limit in (("octopus", "memory"), ("octopus-uint8", "issuing instructions")):
        key = f"{kinds}.{method}.{TIMED}"
        share = numbers.value(f"{key}.share_of_{arena.bound_of(method)}")
        assert share == pytest.approx(KINDS[arena.bound_of(method)] / KINDS[method], rel=0.02)
        assert numbers.text(f"{key}.limited_by") == limit
    assert numbers.text(f"{ARENA}.ladder-large.n1000.octopus.{TIMED}.limited_by") == "issuing instructions"
    assert numbers.text(f"{kinds}.not_memory_limited").startswith("float16, NHWC (")
    # A slow step may wait for memory that it reads twice: the rule says nothing about it.
    assert f"{ARENA}.ladder.n1000.two-passes.{TIMED}.limited_by" not in numbers


def test_the_kernel_itself_is_no_contender(numbers: Frame) -> None:
    assert {key.workload for key in arena.all_comparisons(gpu(numbers))} == {"uniform", "visdrone"}
    counted = [numbers.value(f"{ARENA}.methods.{word}") for word in ("same", "different", "unavailable")]
    assert sum(counted) == len(GPU)
    assert not [
        found for name in arena.KERNEL_WORKLOADS for found in matching(numbers, rf".*\.{name}\..*best_peer")
    ]
    assert not matching(numbers, r".*\.submit\.host\.(best_peer|host_share|transfer_share)")


def test_tables_of_the_kernel(full: Path, numbers: Frame) -> None:
    steps = {row[0].partition(" (a)")[0]: row for row in lines(full, "arena_ladder")}
    assert list(LADDER_STEPS.values()) == [name for name in steps if name in LADDER_STEPS.values()]
    gain = numbers.text(f"{ARENA}.ladder.n1000.octopus.{TIMED}.speedup_over_paired")
    assert steps["Words (Octopus)"][4] == gain and steps["Two passes"][4] == "\u2013"
    share = numbers.text(f"{ARENA}.ladder-large.n1000.streamed.{TIMED}.share_of_write-bound")
    assert steps["Streamed"][6] == share
    kinds = {row[0]: row for row in lines(full, "arena_kinds")}
    assert kinds["uint8, NHWC"][3] == "issuing instructions" and kinds["Write bound, uint8"][3] == "\u2013"
    submitted = {row[0]: row for row in lines(full, "arena_submit")}
    assert submitted["1000"][1].endswith(" µs") and submitted["1000"][2] == "\u2013 (a)"
    assert submitted["28"][4].startswith(
        numbers.text(f"{ARENA}.visdrone.n28.octopus-one-call.end_to_end_alone.host")[:3]
    )
    doors = {row[0]: row[1:] for row in lines(full, "arena_doors")}
    assert doors["Octopus"][0] == "28" and doors["Octopus"][2] == "\u2013"
    assert doors["Octopus (CuPy arrays)"][2].startswith("1.")
    assert doors["Octopus (DLPack)"][1:] == ["unavailable (a)", "\u2013 (a)"]


@pytest.mark.parametrize("name", ["arena_ladder", "arena_kinds", "arena_submit", "arena_doors"])
def test_a_machine_without_a_gpu_says_so(alone: Path, name: str) -> None:
    text = (alone / "tables" / f"{name}.md").read_text(encoding="utf-8")
    assert "need a GPU" in text and "unavailable" not in text


def test_a_road_has_its_share_of_what_writing_all_its_bytes_takes(full: Path, numbers: Frame) -> None:
    for workload, n, share in (("road-float32", 1000, 0.139 / 0.154), ("road-frames", 16, 0.04 / 0.05)):
        key = f"gpu.arena.{workload}.n{n}.octopus.kernel.device"
        assert numbers.value(f"{key}.share_of_write-bound") == pytest.approx(share, rel=0.02)
    table = lines(full, "arena_roads")
    named = [row[:2] for row in table if len(row) > 1 and row[0] in ROADS.values()]
    assert named == [
        [ROADS["road-float32"], "28"], [ROADS["road-float32"], "1000"], [ROADS["road-frames"], "16"],
    ]  # fmt: skip


def test_other_inputs_stand_beside_what_others_do_with_them(full: Path, numbers: Frame) -> None:
    key = "gpu.arena.nv12.n1000.octopus.kernel.device"
    assert numbers.value(f"{key}.speedup_over_cuframe") == pytest.approx(0.604 / 0.165, rel=0.02)
    rows = {tuple(row[:2]): row for row in lines(full, "arena_inputs") if len(row) > 1}
    video, maps = rows["NV12 frame", "1000"], rows["Affine maps", "1000"]
    assert video[3] == numbers.text(f"{key}.share_of_write-bound")
    assert video[4].startswith(numbers.text(f"{key}.speedup_over_octopus-rgb")) and video[8] == "\u2013"
    assert maps[8].startswith(
        numbers.text("gpu.arena.warp.n1000.octopus.kernel.device.speedup_over_affine-grid")
    )
    assert ("NV12 frame, one thread", "28") in rows
    # They are no part of the comparisons on boxes of RGB.
    assert "NV12" not in numbers.text("gpu.arena.methods.different_why")
    assert f"{key}.best_peer" not in numbers


def test_a_count_on_the_gpu_has_its_own_table(full: Path, numbers: Frame) -> None:
    rows = [row for row in lines(full, "arena_count") if len(row) > 1 and " of 1000" in row[0]]
    assert [row[0] for row in rows] == [f"{count} of 1000" for count in (0, 28, 100, 1000)]
    beyond = numbers["gpu.arena.count-0.n1000.octopus.kernel.device.per_object"]
    assert beyond.value == pytest.approx(0.006, rel=0.02) and rows[0][3] == beyond.text
    assert rows[1][-2:] == ["0", "1"] and rows[1][-3] == numbers.text(
        "gpu.arena.count-28.n1000.octopus.end_to_end_alone.host.speedup_over_octopus-read-back"
    )
