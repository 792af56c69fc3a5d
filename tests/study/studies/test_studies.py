"""The studies end to end on the sample: the right rows, checked answers, and nothing silently missing."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from selecting import chosen

from octopus.backends import cpu
from octopus.errors import InputError
from octopus_study.config import load_config
from octopus_study.data import distributions
from octopus_study.errors import MeasureError
from octopus_study.measure import read_rows, validate_provenance, validate_rows
from octopus_study.measure.dependence import PROCESS_BLOCKS
from octopus_study.names import STUDIES
from octopus_study.report.claims import load_claims
from octopus_study.studies import processes, run_study
from octopus_study.studies.context import make_context, write_run
from octopus_study.studies.stage_timing import first_crop

QUICK, CORE, CLAIMS = (
    Path(__file__).parents[3] / "config" / name for name in ("quick.yaml", "core.yaml", "claims.yaml")
)
SETTINGS = {"device": "cpu", "stage_timing.counts": [4, 9], "crop.size": [20, 24], "distribution.count": 7}
SCENE = "satellite"  # the only study of another data set
RAGGED = (
    "mapping",
    "total_cost",
    "sequences",
)  # not on the boxes of the others; they have tests of their own


@pytest.fixture(scope="module")
def runs(receipt, scene_receipt, ragged_runs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    config = load_config(QUICK, SETTINGS)
    receipts = dict.fromkeys(STUDIES, receipt) | {SCENE: scene_receipt}
    return ragged_runs | {
        name: run_study(name, config=config, receipt=receipts[name], out=folder / f"{name}.csv")
        for name in STUDIES
        if name not in ragged_runs
    }


@pytest.fixture(scope="module")
def stages(runs):
    return read_rows(runs["stage_timing"])


@pytest.fixture(scope="module")
def sizes(runs):
    return read_rows(runs["distribution"])


@pytest.mark.parametrize("study", STUDIES)
def test_rows_and_provenance_are_valid_and_say_synthetic(runs, study):
    validate_rows(runs[study])
    record = validate_provenance(runs[study].with_suffix(".json"))
    assert record["datasets"][0]["synthetic"] is True
    assert record["results"]["rows"] == len(read_rows(runs[study]))
    assert read_rows(runs[study]).dataset.str.contains("synthetic").all()


def methods(rows, **where):
    return set(chosen(rows, **where).method)


@pytest.mark.parametrize("count", [4, 9])
def test_every_stage_has_its_methods(stages, count):
    fused = {"octopus", "octopus-again"}
    expected = {
        "end_to_end": fused | {"published", "n-launches", "n-launches-fused"},
        "crop_resize_normalize": fused | {"published", "write-bound"},
        "build_metadata": fused | {"published"},
        "upload_metadata": {"octopus", "published"},
        "crop_resize": {"published"},
        "normalize": {"published"},
    }
    for quantity, names in expected.items():
        assert methods(stages, n=count, workload="visdrone", layer="host", quantity=quantity) == names


def test_answers_are_checked(stages):
    timed = stages[(stages.quantity == "end_to_end") & (stages.workload == "visdrone")]
    assert set(timed[timed.method.isin(["octopus", "octopus-again", "n-launches-fused"])].answer) == {"same"}
    rounded = timed[timed.method.isin(["published", "n-launches"])].answer
    assert rounded.str.startswith("different: ").all()
    assert rounded.str.contains("rounds to uint8 between its two passes").all()


def test_one_thread_stands_beside_opencv(stages):
    rows = stages[stages.workload == "visdrone-1thread"]
    forms = {"opencv", "opencv-inplace", "opencv-table", "opencv-frame"}
    assert methods(rows, quantity="end_to_end") == {"octopus", "octopus-again", *forms}
    assert set(rows[rows.quantity == "end_to_end"].answer) == {"same"}


def test_the_machine_is_measured_too(stages):
    assert methods(stages, workload="bandwidth", quantity="bandwidth") == {"write", "read", "copy"}
    assert (stages[stages.quantity == "bandwidth"].value > 0).all()
    launches = stages[stages.quantity == "launch_series"]
    assert sorted(set(launches.n)) == [1, 2, 4, 8]
    assert (stages[stages.quantity == "first_crop"].value > 0).sum() == 5


def test_the_first_crop_of_a_process_has_nothing_of_the_artifact_in_it():
    script = (
        f"import runpy, sys; sys.argv[1:] = ['cpu']; runpy.run_path({first_crop.__file__!r}, run_name='__main__'); "
        "print([name for name in sys.modules if name.startswith(('octopus_study', 'pydantic', 'pandas'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    milliseconds, imported = done.stdout.splitlines()
    assert float(milliseconds) > 0 and imported == "[]"


def test_memory_has_four_lines_and_its_payload_is_exact(stages):
    memory = stages[stages.layer == "memory"]
    for method in ("octopus", "published", "n-launches"):
        lines = memory[memory.method == method].set_index("quantity")
        assert len(lines) == 4
        assert lines.loc["memory_payload"].value == 1080 * 1920 * 3 + 9 * (3 * 20 * 24 * 4 + 16)
        assert lines.loc["memory_allocator_peak"].answer.startswith("unavailable: ")


def test_the_waste_is_that_of_the_boxes(sizes):
    for workload, make in (("uniform", distributions.uniform), ("bimodal", distributions.bimodal)):
        rows = sizes[(sizes.workload == workload) & (sizes.method == "padding")].set_index("quantity")
        waste = distributions.padding_waste(make(7, 3840, 2160))
        assert rows.loc["actual_bytes"].value == waste.actual_bytes
        assert rows.loc["padded_bytes"].value == waste.padded_bytes


def test_boxes_alone_are_measured_where_times_are_switched_off(quick_rows):
    rows = quick_rows("distribution", **{"distribution.times": False, "distribution.count": 7})
    timed = rows[rows.layer == "host"]
    assert timed.value.isna().all()
    assert set(timed.answer) == {"unavailable: not measured in this run (distribution.times is false)"}
    assert {"padding_waste", "width_quantile"} <= set(rows.quantity)


@pytest.mark.parametrize("study", ["stage_timing", "arena", "images"])
def test_a_core_run_on_a_cpu_measures_what_claims_name(receipt, study):
    """Facts and growth over batches apart, which core.yaml says."""
    context = make_context(study, load_config(CORE, {"device": "cpu"}), receipt)
    plan = import_module(f"octopus_study.studies.{study}.study").plan
    cases = {(part.case.workload, f"n{part.case.n}") for part in plan(context) if part.comparisons}
    named = {
        tuple(name.format(run="", each=each).split(".")[2:4])
        for claim in load_claims(CLAIMS)
        if claim.study == study and claim.needs in ("any", "real-data") and claim.kind != "fact"
        for name in claim.number
        for each in claim.each or [""]
    }
    named = {case for case in named if case[1] != "growth"}
    assert named and named <= cases


def test_every_distribution_is_timed_with_checked_answers(sizes):
    for workload in ("uniform", "long-tail", "bimodal", "temporal", "visdrone"):
        timed = sizes[
            (sizes.workload == workload) & sizes.quantity.isin(["end_to_end", "crop_resize_normalize"])
        ]
        assert set(timed[timed.method == "octopus"].answer) == {"same"}
        assert {"octopus-again", "published"} <= set(timed.method)
        # On a CPU the published passes have no other way than the one already timed, and the row says so.
        whole = timed[(timed.quantity == "end_to_end") & (timed.method == "published")]
        assert whole.answer.str.startswith("unavailable: on a CPU").all()
        quantiles = sizes[(sizes.workload == workload) & (sizes.quantity == "width_quantile")]
        assert quantiles.block.tolist() == list(range(101))
        assert (np.diff(quantiles.value) >= 0).all()


def test_the_frames_of_the_temporal_workload_are_paired(sizes):
    frames = sizes[sizes.quantity == "frame_time"]
    assert set(frames.method) == {f"octopus/frame-{index}" for index in range(3)}
    assert set(frames.answer) == {"same"}
    assert len({tuple(blocks) for _, blocks in frames.groupby("method").block}) == 1


@pytest.mark.parametrize("study", [study for study in STUDIES if study not in (*RAGGED, SCENE)])
def test_what_does_not_fit_has_a_row_for_everything_that_is_missing(
    receipt, tmp_path, monkeypatch, study, runs
):
    monkeypatch.setattr("octopus_study.studies.context.cpu.free_bytes", lambda: 100_000)
    path = run_study(
        study, config=load_config(QUICK, SETTINGS), receipt=receipt, out=tmp_path / f"{study}.csv"
    )
    rows, complete = read_rows(path), read_rows(runs[study])
    short = rows[rows.answer.str.contains("on the host, 100,000 are free")]
    timed = complete[
        complete.unit.eq("ms") & (complete.layer == "host") & complete.workload.str.contains("visdrone")
    ]
    timed = timed[(timed.n == timed.n.max()) & ~timed.method.str.endswith("-again")]
    key = ["n", "workload", "layer", "quantity", "method"]
    missing = set(map(tuple, short[short.workload.str.contains("visdrone")][key].to_numpy()))
    assert set(map(tuple, timed[key].to_numpy())) == missing


SHARED = {
    "measure.processes": 2,
    "arena.workloads": ["uniform"],
    "arena.counts": [3],
    "measure.min_blocks": 4,
}


def test_several_processes_share_the_blocks_of_a_comparison(receipt, tmp_path):
    config = load_config(QUICK, SETTINGS | SHARED)
    path = run_study("arena", config=config, receipt=receipt, out=tmp_path / "arena.csv")
    rows = read_rows(path)
    timed = rows[rows.unit.eq("ms") & rows.value.notna()]
    numbered = timed.assign(process=timed.block // PROCESS_BLOCKS)
    per_method = numbered.groupby(["workload", "method"]).process.agg(["nunique", "size"])
    assert (per_method["nunique"] == 2).all() and (per_method["size"] == 4).all()
    assert {"uniform", "visdrone-1thread"} <= set(timed.workload)
    record = validate_provenance(path.with_suffix(".json"))
    assert record["extra"]["processes"] == {"measured": 2, "failed": []}


@pytest.mark.parametrize(
    ("code", "limit", "said"),
    [
        ("raise SystemExit('no room')", 60, "process 1 ended with code 1: no room"),
        ("import time; time.sleep(60)", 1, "process 1 gave no answer for "),
        ("raise MemoryError('no room')", 60, "process 1: MemoryError: no room"),
    ],
)
def test_a_further_process_that_fails_is_noted_and_costs_only_its_blocks(
    receipt, tmp_path, monkeypatch, code, limit, said
):
    (tmp_path / "failing.py").write_text(f"def measure(task): exec({code!r})")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(processes, "MEASURE", "failing:measure")
    monkeypatch.setattr(processes, "LEAST_SECONDS", limit)
    context, plan = make_context("arena", load_config(QUICK, SETTINGS | SHARED), receipt), len
    assert processes.further_rows(context, receipt, plan) == [] and not context.notes
    context.shared["a", "comparison"] = ["octopus"]
    assert processes.further_rows(context, receipt, plan) == []
    notes = context.notes["processes"]
    assert notes["measured"] == 1 and len(notes["failed"]) == 1 and notes["failed"][0].startswith(said)


def test_code_that_changes_while_it_is_measured_gives_no_result(receipt, tmp_path):
    context = make_context("stage_timing", load_config(QUICK, SETTINGS), receipt)
    with pytest.raises(MeasureError, match="was changed while stage_timing ran"):
        write_run(dataclasses.replace(context, code="0" * 64), [], tmp_path / "stage_timing.csv")
    assert not list(tmp_path.iterdir())


def test_auto_takes_no_more_threads_than_there_are_cores(receipt, monkeypatch):
    monkeypatch.setattr("octopus_study.studies.context.cpu.cores", lambda: 1)
    assert make_context("stage_timing", load_config(QUICK, SETTINGS), receipt).thread_count == 1


def test_threads_are_set_and_put_back(receipt):
    import numba

    context = make_context("stage_timing", load_config(QUICK, SETTINGS), receipt)
    before = cpu.get_num_threads(), numba.get_num_threads()
    with context.threads(1):
        assert (cpu.get_num_threads(), numba.get_num_threads()) == (1, 1)
    assert (cpu.get_num_threads(), numba.get_num_threads()) == before
    with pytest.raises(InputError, match="number of threads must be"), context.threads(10_000):
        pass


def test_an_unknown_study_is_named(receipt, tmp_path):
    with pytest.raises(InputError, match="no study 'power_timing'"):
        run_study("power_timing", config=load_config(QUICK), receipt=receipt, out=tmp_path / "x.csv")
